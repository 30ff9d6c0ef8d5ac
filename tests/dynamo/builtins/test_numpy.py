"""numpy in the graph: the result of every row of the table equals numpy's in kind, dtype, shape, memory order and
values.
"""

from __future__ import annotations

import numpy as np
import pytest

import dynamo
import eager as torch
from dynamo.builtins.numpy import table
from dynamo.builtins.numpy.rules import UFUNCS
from dynamo.report.errors import UnsupportedUnderFullgraph
from dynamo.utils import counters
from tests.dynamo import support
from tests.dynamo.builtins.numpy.samples import NUMBERS_BESIDE, TABLE, arrays

DTYPES = ("float32", "float64", "int64", "uint8", "bool", "float16")
UFUNC_DTYPES = ("float32", "float64", "int32", "uint8", "bool", "float16")


def _compare(f, *dtypes: str, backend: str = "eager", **options):
    compiled = dynamo.compile(f, backend=backend, dynamic=False, **options)
    for dtype in dtypes:
        given = [arrays(dtype, seed) for seed in (0, 1)]
        want = [f(*(a.copy(order="K") for a in part)) for part in given]
        got = [compiled(*(a.copy(order="K") for a in part)) for part in given]
        support.same(want, got, dtype)
    return compiled


def _all_of(samples):
    def every(a, b, t, v, i):
        return [sample(a + 0, b, (a + 0).T, v + 0, i) if writes else sample(a, b, t, v, i) for sample, writes in samples]

    return every


@pytest.fixture(autouse=True)
def fresh():
    dynamo.reset()
    with np.errstate(all="ignore"):
        yield


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.filterwarnings("ignore")
def test_a_row_agrees_with_numpy(name: str) -> None:
    """In float32 and int64, the row has no break; in other dtypes it may break, and the results agree."""
    every = _all_of([(sample, name in ("fill", "__setitem__")) for sample in TABLE[name]])
    _compare(every, *(d for d in DTYPES if not (d == "bool" and name in ("ptp", "round"))))  # numpy has no ptp or round of bools
    _compare(every, "float32", "int64", fullgraph=True)


@pytest.mark.parametrize("name", "mean clip where concatenate __getitem__ __setitem__ matmul std argmax median".split())
def test_compiled_code_agrees_with_numpy(name: str) -> None:
    _compare(_all_of([(sample, name == "__setitem__") for sample in TABLE[name]]), "float32", "int64", backend="inductor", fullgraph=True)


def _attempt(ufunc, *given):
    try:
        return ufunc(*given)
    except (TypeError, ValueError, OverflowError) as error:
        return str(error)


@pytest.mark.parametrize("ufunc", [u for u in UFUNCS if u is not np.matmul], ids=lambda u: u.__name__)
@pytest.mark.filterwarnings("ignore")
def test_a_ufunc_agrees_with_numpy(ufunc: np.ufunc) -> None:
    """Of one array and of pairs of all dtypes; with Python's and numpy's numbers; written into an array."""
    others = [arrays(dtype, 1)[1] for dtype in UFUNC_DTYPES]

    def unary(a, b, t, v, i):
        return _attempt(ufunc, a), _attempt(ufunc, t), _attempt(ufunc, v[0])

    def binary(a, b, t, v, i):
        with_arrays = [_attempt(ufunc, a, c) for c in (b, v, a[:, :1], *others)]
        beside = [(_attempt(ufunc, t, n), _attempt(ufunc, n, v)) for n in NUMBERS_BESIDE]
        return with_arrays, beside, _attempt(ufunc, v[0], v[1]), _attempt(ufunc, t, b.T)

    _compare(unary if ufunc.nin == 1 else binary, *UFUNC_DTYPES)


def test_every_row_has_samples() -> None:
    rows = {**table.SHARED, **table.ONLY_FUNCTIONS, **table.ONLY_METHODS}
    assert not set(rows) - set(TABLE)


def test_functions_without_a_row_break_the_graph_and_are_named() -> None:
    for call, name in ((lambda a: np.unique(a), "unique"), (lambda a: np.linalg.svd(a), "svd"), (lambda a: a.nonzero(), "nonzero"),
                       (lambda a: np.sum(a, where=a > 1), "where"), (lambda a: a[::-1], "backwards"), (lambda a: a[a > 1], "at a mask"),
                       (lambda a: np.fft.fft(a), "fft"), (lambda a: a.view(np.int32), "view")):  # fmt: skip
        a = np.ones((2, 2), np.float32)
        with pytest.raises(UnsupportedUnderFullgraph, match=name):
            dynamo.compile(call, backend="eager", fullgraph=True)(a)
        want, got = call(a), dynamo.compile(call, backend="eager")(a)
        support.same(tuple(want) if isinstance(want, tuple) else want, tuple(got) if isinstance(got, tuple) else got)


def test_a_data_dependent_error_is_left_to_numpy() -> None:
    def f(a, v, i):
        said = []
        for key, value in ((a > 1, v), (i, 2.0), (i, v)):
            try:
                a[key] = value
            except (ValueError, IndexError) as error:
                said.append(str(error))
        return a, said

    compiled = dynamo.compile(f, backend="eager")
    for v, i in ((np.ones(2), [0, 1]), (np.ones(3), [0, 7]), (np.ones(1), [5, 2])):
        plain, captured = (np.arange(4.0), v, np.array(i)), (np.arange(4.0), v, np.array(i))
        support.same((f(*plain), plain), (compiled(*captured), captured))


def test_an_array_for_a_parameter_that_takes_none_breaks_the_graph() -> None:
    def f(a, k):
        return a.sum(axis=k.max()), np.roll(a, k[0]), np.split(a, k), np.repeat(a, k.sum()), np.broadcast_to(k.max(), (2, 3))

    compiled = dynamo.compile(f, backend="eager")
    for k in ([0, 1], [1, 1]):
        support.same(f(np.eye(3), np.array(k)), compiled(np.eye(3), np.array(k)))


def test_numbers_at_the_edges() -> None:
    edges = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.5, -1.5, 2.5, 1e-40, 3e38], np.float32)
    ints = np.array([0, 1, -1, 127, -128, 5, -7, 3, 2, -2], np.int8)

    def f(x, y, n, m):
        return (x // y, x % y, np.sign(x), np.maximum(x, y), np.fmin(x, y), x / y, np.round(x), np.isnan(x), n // m, n % m, n * m,
                abs(n), -n, n / m, np.sort(x), x.max(), np.median(x[:4]), np.argmax(x), np.clip(x, -1, 1), n.sum(), n.prod(), n.mean(),
                n ** 2)  # fmt: skip

    with np.errstate(all="ignore"):
        want = f(edges, edges[::-1].copy(), ints, ints[::-1].copy())
        for backend in ("eager", "inductor"):
            got = dynamo.compile(f, backend=backend, fullgraph=True)(edges, edges[::-1].copy(), ints, ints[::-1].copy())
            for k, (a, b) in enumerate(zip(want, got, strict=True)):
                assert a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f"), (backend, k, a, b)
                if k < 2:
                    assert np.array_equal(np.signbit(a), np.signbit(b)), (backend, k, a, b)


def test_no_call_is_captured_under_an_errstate_that_raises() -> None:
    def f(a):
        return 1 / a

    compiled = dynamo.compile(f, backend="eager")
    a = np.zeros(2)
    with np.errstate(divide="ignore"):
        assert np.isinf(compiled(a)).all()
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        compiled(a)


def test_arguments_are_guarded_by_dtype_shape_and_order() -> None:
    compiled = dynamo.compile(lambda a: (a * 2, a.T + 1), backend="eager", dynamic=False)
    counters.clear()
    a = np.ones((3, 4), np.float32)
    for given in (a, a, a.copy(), a.astype(np.float64), a[:, :2], a.T.copy().T, a.astype(np.float32)):
        support.same((given * 2, given.T + 1), compiled(given))
    assert counters["stats"]["unique_graphs"] == 4
    a.flags.writeable = False
    support.same((a * 2, a.T + 1), compiled(a))
    assert counters["stats"]["unique_graphs"] == 4


def test_sizes_become_symbols() -> None:
    compiled = dynamo.compile(lambda a: (a * 2).sum(axis=0), backend="eager")
    counters.clear()
    for n in range(2, 9):
        a = np.ones((n, 3), np.float32)
        support.same((a * 2).sum(axis=0), compiled(a))
    assert counters["stats"]["unique_graphs"] == 2


def _halves():
    a = np.arange(6.0, dtype=np.float32)
    return a[:4], a[2:]


def _as_tensor_too():
    a = np.arange(4.0, dtype=np.float32)
    return torch.from_numpy(a), a


@pytest.mark.parametrize("make", [_halves, _as_tensor_too, lambda: (np.ones(4, np.float32), np.ones(4, np.float32))])
def test_a_write_is_seen_through_every_array_over_the_memory(make) -> None:
    def looked_at_later(a, b):
        a *= 3
        c = a + 1
        return c, b - 1

    def looked_at_before(a, b):
        total = b.sum()
        a[1] = 9
        return b.sum() - total, b * 2, a

    for f in (looked_at_later, looked_at_before):
        for order in (make, lambda: (np.zeros(4, np.float32), np.ones(4, np.float32))), (lambda: make(), make):
            compiled = dynamo.compile(f, backend="aot_eager")
            for args in order:
                plain, captured = args(), args()
                support.same((f(*plain), plain), (compiled(*captured), captured))


def test_a_write_to_a_saved_array_runs_in_numpy() -> None:
    def f(w):
        y = w * w
        w.detach().numpy()[0] = 5
        return y.sum()

    grads = []
    for fn in (f, dynamo.compile(f, backend="aot_eager")):
        w = torch.ones(3, requires_grad=True)
        fn(w).backward()
        grads.append(w.grad)
    support.same(*grads)


@pytest.mark.parametrize("scalar", [np.float64(3), np.int32(2), np.float16(1), np.uint8(7), np.bool_(True)], ids=lambda s: str(s.dtype))
@pytest.mark.parametrize("make", [torch.tensor, torch.as_tensor, torch.asarray])
def test_a_scalar_that_becomes_a_tensor_keeps_its_dtype(scalar, make) -> None:
    for fn in (lambda s: make(s) * 2, lambda s: make([s, s]), lambda s: make(s, dtype=torch.float32), lambda s: torch.ones(2) * s):
        want, got = fn(scalar), dynamo.compile(fn, backend="eager")(scalar)
        assert got.dtype is want.dtype and got.tolist() == want.tolist()


def test_scalars_have_an_axis_and_a_full_name() -> None:
    def f(a):
        m = np.median(a)
        try:
            m.no_such_name  # noqa: B018 - it raises
        except AttributeError as e:
            return m.any(axis=0), m.prod(axis=-1), str(e)

    a = np.arange(6.0)
    support.same(f(a), dynamo.compile(f, backend="eager")(a), "")
    support.same(f(a), dynamo.compile(lambda a: f(a), backend="eager")(a), "")


SCALARS_OF = {
    "item": lambda v: (v[-1], v[1:2][0], v.reshape(-1)[0], v.T[0], np.transpose(v)[1], v[0].copy(), v.item(0), np.float32(v[2])),
    "two dims": lambda v: (v.reshape(3, 1)[1, 0], v.reshape(3, 1).T[0, 2], v.reshape(1, 3).squeeze()[0], v.reshape(3, 1).sum(axis=1)[1]),
    "reduced": lambda v: (v[:1].sum(), v[:1].max(), np.squeeze(v[:1]), v[:1].reshape(()), v[:1].mean(axis=0)),
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("name", SCALARS_OF)
def test_a_scalar_does_not_change_with_the_array_that_it_was_read_from(name: str, backend: str) -> None:
    def f(v):
        read = SCALARS_OF[name](v)
        v -= 3
        v[1] = 7
        return read, v

    compiled = dynamo.compile(f, backend=backend)
    for _ in range(2):
        support.same(f(np.arange(3, dtype="f4")), compiled(np.arange(3, dtype="f4")), name)
