"""Writes and loops over integers and bools in C agree with numpy and with the Python functions that they replace."""
from __future__ import annotations

import itertools

import numpy as np
import pytest

import eager as torch
from eager import _native
from eager.optable.table import OPS
from tests.eager.native.test_calls import WHOLE

RNG = np.random.default_rng(8)
KEYS = (
    1, -1, slice(1, 3), slice(None, None, 2), slice(5, 1), (..., 2), (0, 1), (slice(None), -1), (1, ..., slice(1, None, 3)), (0, 1, 2), ...,
    (slice(-2, None), 0),
)  # fmt: skip
POSITIONS = (
    ([1, 1, -2],), (None, [0, 3]), ([1, 2], [[0], [3]]), (None, [[1], [2]], [0, -1, 3]), ([0, 2], None, [1, 1]), ([1], [2], [3]),
    (None, None, [4, 0, 4]),
)  # fmt: skip


def _array(dtype: str, *shape: int) -> np.ndarray:
    return np.asarray(RNG.integers(-9, 9, shape) > 0 if dtype == "?" else RNG.integers(-9, 9, shape), dtype)


def _tensor(a: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(a.copy())


@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "i4", "?", "u1", "f2"])
@pytest.mark.parametrize("key", KEYS, ids=str)
def test_assignments_agree_with_numpy(key, dtype):
    base = _array(dtype, 3, 4, 5)
    for x in (base, base.transpose(2, 1, 0)):
        part = x[key]
        for value in (_array(dtype, *part.shape), _array(dtype, *part.shape[-1:]), _array("i8", *part.shape), True, 1):
            want = x.copy()
            want[key] = value
            got = torch.from_numpy(base.copy()).permute(2, 1, 0) if x is not base else _tensor(base)
            before = got._version
            got[key] = _tensor(value) if isinstance(value, np.ndarray) else value
            assert got._version == before + 1
            np.testing.assert_array_equal(got.numpy(), want)


def test_assignments_that_torch_refuses_are_refused():
    x = torch.zeros(3, 4)
    for key, value, error in ((3, 1.0, IndexError), ((0, 4), 1.0, IndexError), (slice(None, None, -1), 1.0, ValueError),
                              (0, torch.zeros(3), RuntimeError), ((0, 0, 0), 1.0, IndexError), (0, 1e300, RuntimeError)):  # fmt: skip
        with pytest.raises(error):
            x[key] = value
    assert x._version == 0 and not x.any()
    leaf = torch.zeros(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf Variable"):
        leaf[0] = 1.0
    with torch.no_grad():
        leaf[0] = 1.0
    assert leaf.tolist() == [1.0, 0.0, 0.0] and leaf._version == 1
    y = torch.zeros(3)
    y[0] = leaf[1] * 3
    assert y.requires_grad


def test_an_assignment_reads_memory_with_gaps_before_it_writes():
    x = torch.arange(7)
    x[2::2] = x[1:4]
    assert x.tolist() == [0, 1, 1, 3, 2, 5, 3]


def _key(indices):
    return tuple(slice(None) if i is None else np.array(i) for i in indices)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "?", "f2"])
@pytest.mark.parametrize("indices", POSITIONS, ids=str)
def test_reads_and_writes_at_positions_agree_with_numpy(indices, dtype):
    x, key = _array(dtype, 4, 4, 5), _key(indices)
    at = [None if i is None else torch.tensor(i, dtype=torch.int32 if dtype == "f8" else torch.int64) for i in indices]
    t = _tensor(x)
    np.testing.assert_array_equal(t[tuple(slice(None) if i is None else i for i in at)].numpy(), x[key])
    for value in (_array(dtype, *x[key].shape), _array(dtype, *x[key].shape[-1:]), _array(dtype)):
        want, got = x.copy(), _tensor(x)
        want[key] = value
        assert got.index_put_(at, _tensor(value)) is got and got._version == 1
        np.testing.assert_array_equal(got.numpy(), want)
        if dtype in ("f4", "f8", "i8"):
            want, got = x.copy(), _tensor(x)
            np.add.at(want, key, value)
            np.testing.assert_array_equal(torch.index_put(got, at, _tensor(value), accumulate=True).numpy(), want)
            np.testing.assert_array_equal(got.index_put_(at, _tensor(value), accumulate=True).numpy(), want)
    with pytest.raises(IndexError):
        t.index_put_([torch.tensor([4])], torch.zeros((), dtype=t.dtype))
    np.testing.assert_array_equal(t.numpy(), x)


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_index_add_and_similar_functions_agree_with_numpy(dim):
    x, at = _array("f4", 3, 4, 5), RNG.integers(0, 3, 7)
    source, want = _array("f4", *x.shape[:dim], 7, *x.shape[dim + 1 :]), x.copy()
    np.add.at(want, (slice(None),) * dim + (at,), source)
    got = _tensor(x)
    np.testing.assert_array_equal(got.index_add(dim, torch.from_numpy(at), _tensor(source)).numpy(), want)
    np.testing.assert_array_equal(got.index_add_(dim, torch.from_numpy(at), _tensor(source)).numpy(), want)
    np.testing.assert_array_equal(got.index_select(dim, torch.from_numpy(at)).numpy(), np.take(want, at, dim))
    with pytest.raises(IndexError):
        got.index_add_(dim, torch.tensor([-1]), _tensor(source).narrow(dim, 0, 1))


def test_masks_choose_as_in_numpy():
    for dtype, shape in itertools.product(("f4", "i8", "?", "f2"), ((3, 4), (7,), (2, 3, 2))):
        x, mask = _array(dtype, *shape), _array("?", *shape)
        t, m = _tensor(x), _tensor(mask)
        np.testing.assert_array_equal(t[m].numpy(), x[mask])
        np.testing.assert_array_equal(m.nonzero().numpy(), np.stack(np.nonzero(mask), 1))
        x[mask], before = 1, t._version
        t[m] = 1
        np.testing.assert_array_equal(t.numpy(), x)
        assert t._version == before + 1


def test_clamp_keeps_nan_and_takes_bounds_that_are_none():
    x = np.array([np.nan, -2.0, 0.5, np.inf, -np.inf], "f4")
    for low, high in ((-1, 1), (None, 0.25), (0.25, None), (2, 1), (float("nan"), None)):
        want = x if low is None else np.maximum(x, np.float32(low))
        want = want if high is None else np.minimum(want, np.float32(high))
        np.testing.assert_array_equal(_tensor(x).clamp(low, high).numpy(), want)
        np.testing.assert_array_equal(_tensor(x).clamp_(low, high).numpy(), want)
    assert torch.arange(5).clamp(1, 3).tolist() == [1, 1, 2, 3, 3] and torch.arange(3).clamp(0.5, None).tolist() == [0.5, 1.0, 2.0]


@pytest.mark.parametrize("name", [*WHOLE, "add", "sub", "mul", "maximum", "minimum", "eq", "ne", "lt", "le", "gt", "ge", "bitwise_and",
                                  "bitwise_or", "bitwise_xor"])  # fmt: skip
def test_loops_over_integers_agree_with_the_op(name):
    """Values by the kernel over numpy, for every pair of shapes; wraps and refusals as well."""
    op, taken = OPS[name], 0
    edge = np.array([-(2**63), 2**63 - 1, -1, 1, 7, -7], "i8")
    for dtype in ("i8", "i4", "?"):
        x, y = _array(dtype, 3, 4), _array(dtype, 3, 4)
        if name in ("floor_divide", "div_floor", "remainder"):
            y[y == 0] = 5
        pairs = [(x, y), (x, y[:1, :1]), (x[0, 0], y), (x, y[0]), (x, True if dtype == "?" else 3), (2 if dtype != "?" else False, y)]
        if dtype == "i8":
            pairs += [(edge, edge[::-1].copy()), (edge, -1)]
        for a, b in pairs:
            args = tuple(_tensor(np.asarray(v)) if isinstance(v, (np.ndarray, np.generic)) else v for v in (a, b))
            got = _native.run_kernel(op, args)
            if got is None:
                continue
            taken += 1
            spec = op.infer(*args)
            assert (tuple(got.shape), got.dtype, got.stride()) == (spec.shape, spec.dtype, spec.strides)
            with np.errstate(all="ignore"):
                want = np.asarray(getattr(np, op.ufunc or name.replace("div_floor", "floor_divide"))(a, b))
            np.testing.assert_array_equal(got.numpy(), want.astype(got.numpy().dtype), str((a, b)))
    assert taken >= 6
    if name in ("floor_divide", "div_floor", "remainder"):
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            op(torch.tensor([1, 2]), torch.tensor([1, 0]))


def test_reductions_of_bools_agree_with_numpy():
    for shape, fill in itertools.product(((3, 4, 5), (700,), (1,), (2, 300)), (None, True, False)):
        x = RNG.random(shape) > 0.1 if fill is None else np.full(shape, fill)
        t = _tensor(x)
        for dims in (tuple(range(x.ndim)), (0,), (x.ndim - 1,), (0, x.ndim - 1)):
            for name, keepdim in itertools.product(("all", "any"), (False, True)):
                want = getattr(np, name)(x, axis=tuple(set(dims)), keepdims=keepdim)
                np.testing.assert_array_equal(getattr(torch, name)(t, dim=tuple(set(dims)), keepdim=keepdim).numpy(), want)


def test_a_generator_gives_out_each_state_once():
    g = torch.Generator().manual_seed(3)
    assert g.take(5) == (3, 0) and g.state(17).tolist() == [3, 16] and g.take(0) == (3, 48) and g.take(1) == (3, 48)
    g._offset = 2**64 - 1
    assert g.take(2) == (3, 2**64 - 1) and g.take(0) == (3, 15)
    with pytest.raises(OverflowError):
        g.take(2**63)
    torch.manual_seed(5)
    first = OPS["rng_state"](4, torch.device("cpu")).tolist()
    assert first == [5, 0] and OPS["rng_state"](1, None).tolist() == [5, 16]


def test_random_integers_follow_the_rule():
    state = torch.tensor([7, 100])
    for low, high, dtype in ((0, 10, torch.int64), (-5, 2**62, torch.int64), (-3, 4, torch.int32), (0, 200, torch.uint8)):
        want = np.empty((3, 90), dtype.numpy)
        OPS["philox_randint"].kernel(np, want, state.numpy(), low, high, (3, 90), dtype)
        np.testing.assert_array_equal(OPS["philox_randint"](state, low, high, (3, 90), dtype).numpy(), want)


def test_casts_to_and_from_16_bits_agree_with_numpy():
    """Covers every float16 and bfloat16, and the float32 numbers at and beside ties and limits."""
    halves = np.arange(2**16, dtype="u2")
    for dtype in (torch.float16, torch.bfloat16):
        small = halves.view(dtype.numpy)
        t = torch.from_numpy(small)
        wide = t.float().numpy()
        np.testing.assert_array_equal(wide, small.astype("f4"))
        near = np.concatenate([(wide.view("u4") + np.uint32(k)).view("f4") for k in (0, 1, 0x0FFF, 0x1000, 0x1001, 0x7FFF, 0x8000, 0x8001)]
                              + [RNG.standard_normal(4096).astype("f4") * np.float32(10.0) ** RNG.integers(-12, 8, 4096)])
        near = np.asarray(near, "f4")
        with np.errstate(all="ignore"):
            want = near.astype(dtype.numpy)
        got = torch.from_numpy(near).to(dtype).view(torch.int16).numpy()
        number = ~np.isnan(near)
        np.testing.assert_array_equal(got[number], want.view("i2")[number])
        assert np.isnan(torch.from_numpy(near[~number]).to(dtype).float().numpy()).all()
    assert torch.arange(256, dtype=torch.uint8).float().tolist() == list(range(256))


def test_a_third_power_is_a_product():
    x = torch.tensor([-1.7, 0.3, float("nan"), float("-inf")])
    np.testing.assert_array_equal((x**3).numpy(), (x * x * x).numpy())
    np.testing.assert_array_equal(x.clone().pow_(3.0).numpy(), (x * x * x).numpy())
