"""Reductions of every length around the number of running results, against numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import eager as torch
from eager.base.spec import fake_like
from eager.nn import functional as F
from fxir.trace.trace import trace
from inductor.base.choice import DEFAULT, Choice
from inductor.cpp.loops import print_kernel
from inductor.cpp.units import Place
from inductor.driver import backend
from inductor.ir import definitions as ir
from inductor.loops.build import build
from inductor.loops.steps import Interleave, Mark
from inductor.loops.tree import Kernel, Loop, walk
from inductor.lowering import lower
from inductor.plan import kernels
from inductor.plan.heuristics import schedule_rows, schedule_step
from inductor.plan.schedule import Nest, schedule

LENGTHS = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 100, 129, 4097)
KINDS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "sum": (lambda x: x.sum(-1), lambda x: x.sum(-1)),
    "prod": (lambda x: x.prod(-1), lambda x: x.prod(-1)),
    "amax": (lambda x: x.amax(-1), lambda x: x.max(-1)),
    "amin": (lambda x: x.amin(-1), lambda x: x.min(-1)),
    "any": (lambda x: (x == 1).any(-1), lambda x: (x == 1).any(-1)),
    "all": (lambda x: (x != 2).all(-1), lambda x: (x != 2).all(-1)),
}


def _kernel(fn: Callable[..., Any], *inputs: torch.Tensor, choice: Choice = DEFAULT) -> Kernel:
    """The scheduled loops of a graph that is one kernel."""
    made = schedule(lower(trace(fn, [fake_like(x) for x in inputs])))
    (step,) = made.steps
    assert isinstance(step, Nest)
    results = {r.buffer for r in made.program.outputs if isinstance(r, ir.Ref)}
    return schedule_step(step, {n: b.layout.dtype for n, b in made.program.buffers.items()}, results, None, choice)[0]


def _text(kernel: Kernel) -> str:
    places = {n: Place(k, 0, of) for k, (n, of) in enumerate(kernel.dtypes.items())}
    return print_kernel(kernel, places, 0, "").code.text


def _inputs(of: Any) -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(1)
    if np.dtype(of).kind == "i":
        return [rng.integers(-3, 4, (6, n)).astype(of) for n in LENGTHS]
    return [rng.choice([-1.25, -1.0, 0.75, 1.0, 1.25, 2.0], (6, n)).astype(of) for n in LENGTHS]


@pytest.mark.parametrize("of", ["float32", "float64", "int64", "int32", "uint8"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_reduction_of_any_length(kind: str, of: str) -> None:
    reduce, reference = KINDS[kind]
    arrays = [a.astype(of) for a in _inputs("int64" if of == "uint8" else of)]
    got = torch.compile(lambda xs: [reduce(x) for x in xs], fullgraph=True)([torch.from_numpy(a) for a in arrays])
    for a, y in zip(arrays, got, strict=True):
        want = reference(a if a.dtype.kind == "f" or kind not in ("sum", "prod") else a.astype("int64"))
        np.testing.assert_allclose(y.numpy(), want, rtol=1e-5 if of == "float32" else 1e-12)


def test_nan_reaches_the_result_from_every_position() -> None:
    x = np.ones((40, 37), "float32")
    for i in range(37):
        x[i, i] = np.nan
    high, low = torch.compile(lambda x: (x.amax(-1), x.amin(-1)), fullgraph=True)(torch.from_numpy(x))
    for y in (high, low):
        np.testing.assert_array_equal(np.isnan(y.numpy()), np.arange(40) < 37)


def test_sums_of_long_rows_stay_accurate() -> None:
    x = torch.full((2, 1 << 20), 0.1)
    y = torch.compile(lambda x: x.sum(-1), fullgraph=True)(x)
    np.testing.assert_allclose(y.numpy(), (1 << 20) * float(np.float32(0.1)), rtol=1e-5)  # adding one by one is off by 1e-2


def test_reductions_of_two_types_in_one_loop() -> None:
    x = torch.from_numpy(np.random.default_rng(2).standard_normal((5, 77)).astype("float32"))
    total, wide, some = torch.compile(lambda x: (x.sum(-1), x.double().sum(-1), (x > 1).any(-1)), fullgraph=True)(x)
    np.testing.assert_allclose(total.numpy(), x.numpy().sum(-1), rtol=1e-5)
    np.testing.assert_allclose(wide.numpy(), x.numpy().astype("float64").sum(-1), rtol=1e-12)
    np.testing.assert_array_equal(some.numpy(), (x.numpy() > 1).any(-1))


@pytest.mark.parametrize("shape", [(1, 16), (700, 3), (3000, 40), (70_001, 2), (600, 2049), (41, 300), (9, 7, 700), (2, 5000, 7)])
@pytest.mark.parametrize("of", ["float32", "float64", "int64"])
def test_columns_of_any_shape(shape: tuple[int, ...], of: str) -> None:
    """Sums, maxima and means over an outer dim, in blocks of rows if the columns are few."""
    x = np.random.default_rng(3).integers(-9, 10, shape).astype(of)
    fns: list[Callable[[Any], Any]] = [lambda x: x.sum(-2), lambda x: x.amax(-2), lambda x: (x * 2).sum(tuple(range(x.ndim - 1)))]
    got = torch.compile(lambda x: [f(x) for f in fns], fullgraph=True, dynamic=False)(torch.from_numpy(x))
    for y, want in zip(got, (x.sum(-2), x.max(-2), (x * 2).sum(tuple(range(x.ndim - 1)))), strict=True):
        np.testing.assert_array_equal(y.numpy(), want)


@pytest.mark.parametrize("rows, columns", [(1 << 19, 3), (5003, 300)])
def test_sums_of_long_columns_stay_accurate(rows: int, columns: int) -> None:
    x = torch.full((rows, columns), 0.1)
    y = torch.compile(lambda x: x.sum(0), fullgraph=True)(x)
    np.testing.assert_allclose(y.numpy(), rows * float(np.float32(0.1)), rtol=1e-6)


def test_rows_are_added_side_by_side_in_registers() -> None:
    """As many rows at once as have pointers: fewer where each element of the sum reads two arrays."""
    fns: list[tuple[Callable[..., Any], int]] = [(lambda x, y: (x.sum(0),), 8), (lambda x, y: ((x * y).sum(0),), 4)]
    fns.append((lambda x, y: ((x * y).sum(0), x.sum(0), y.amax(0)), 4))  # one pass for all columns of these rows
    for fn, unrolled in fns:
        kernel = _kernel(fn, torch.zeros(64, 512), torch.zeros(64, 512))
        assert [x.extent for x in walk(kernel.body) if isinstance(x, Loop) and x.kind == "unrolled"] == [unrolled]


def test_limits_of_numbers_keep_nan() -> None:
    x = torch.tensor([np.nan, -0.0, 0.0, 2.0, -2.0, np.inf, -np.inf] * 5)
    fns: list[Callable[[Any], Any]] = [lambda x: x.clamp(-1, 1), lambda x: x.clamp(min=0), lambda x: x.clamp(max=-0.5), torch.relu]
    fns.append(lambda x: torch.maximum(x, torch.full_like(x, np.nan)))
    for fn in fns:
        compiled: Callable[[Any], Any] = torch.compile(fn, fullgraph=True)
        np.testing.assert_array_equal(compiled(x).numpy(), fn(x).numpy())


@pytest.mark.parametrize("shape", [(1 << 16,), (70_001,), (2, 100_000), (3, 65_537)])
@pytest.mark.parametrize("of", ["float32", "float64", "int64"])
def test_scans_of_long_rows(shape: tuple[int, ...], of: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a row run in parallel; each begins with the result before it."""
    monkeypatch.setattr(backend.host, "threads", lambda: 2)
    x = np.random.default_rng(4).integers(-9, 10, shape).astype(of)
    y = torch.compile(lambda x: x.cumsum(-1), fullgraph=True, dynamic=False)(torch.from_numpy(x))
    np.testing.assert_array_equal(y.numpy(), x.cumsum(-1))


@pytest.mark.parametrize("shape, dim, pairs", [((40, 100), 1, True), ((41, 100), 1, False), ((3, 14, 9), 1, False), ((2, 100), 1, False)])
def test_scans_of_many_rows_run_in_pairs(shape: tuple[int, ...], dim: int, pairs: bool) -> None:
    x = torch.from_numpy(np.random.default_rng(5).integers(-2, 3, shape).astype("float32"))
    fns = [lambda x: x.cumsum(dim), lambda x: x.cummax(dim)[0], lambda x: x.cummax(dim)[1], lambda x: x.cumprod(dim)]
    for found, fn in zip(torch.compile(lambda x: [f(x) for f in fns], fullgraph=True, dynamic=False)(x), fns, strict=True):
        assert torch.equal(found, fn(x))
    made = schedule(lower(trace(lambda x: (x.cumsum(dim),), [fake_like(x)])))
    kernel = build(made.steps[0].members, {n: b.layout.dtype for n, b in made.program.buffers.items()})
    steps = schedule_rows(kernel, 2)[1]
    assert any(isinstance(s, Interleave) for s in steps) == pairs
    assert any(isinstance(s, Mark) and s.kind == "parallel" for s in steps)


@pytest.mark.parametrize("of, columns", [(torch.float32, 1024), (torch.float32, 2064), (torch.bfloat16, 1040), (torch.float64, 1000)])
def test_rows_larger_than_the_caches_are_stored_past_them(of: torch.dtype, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In blocks, also where the rows of the result begin between two cache lines; not where no block ends with a line."""
    choice = DEFAULT._replace(streamed=9 * columns * of.itemsize)
    monkeypatch.setattr(kernels, "DEFAULT", choice)
    x = torch.randn(9, columns, dtype=of)
    wanted = [F.softmax(x, -1), F.layer_norm(x, (columns,))]
    found = torch.compile(lambda x: (F.softmax(x, -1), F.layer_norm(x, (columns,))), fullgraph=True, dynamic=False)(x)
    for y, want in zip(found, wanted, strict=True):
        torch.testing.assert_close(y, want)
    for rows, is_streamed in ((9, columns % 16 == 0), (8, False)):
        kernel = _kernel(lambda x: (F.softmax(x, -1),), torch.zeros(rows, columns, dtype=of), choice=choice)
        assert any(isinstance(loop, Loop) and loop.kind == "streamed" for loop in walk(kernel.body)) == is_streamed


@pytest.mark.parametrize("fn, columns, fetches", [
    (lambda x: (F.softmax(x, -1),), 4096, 1), (lambda x: (F.layer_norm(x, (4096,)),), 4096, 1), (lambda x: (x.var(1),), 4096, 0),
    (lambda x: (x.argmax(1),), 4096, 1), (lambda x: (F.softmax(x, -1),), 64, 0),
    (lambda x: (F.softmax(x, -1),), 1 << 17, 0),
])  # fmt: skip
def test_the_next_row_is_fetched_while_a_row_is_computed(fn: Callable[[Any], Any], columns: int, fetches: int) -> None:
    """Where it is long and stays in the second cache, and where the loops after the first take long enough."""
    assert _text(_kernel(fn, torch.zeros(64, columns))).count("__builtin_prefetch") == fetches


@pytest.mark.parametrize("columns, fetches", [(64, 1), (63, 0)])
def test_the_next_row_of_a_table_is_fetched_while_a_row_is_copied(columns: int, fetches: int) -> None:
    """Its first lines, where it has as many. The row after the last is the last, which is in range."""
    at, table = torch.tensor([5, -1, 0, 8, 3] * 9), torch.randn(9, columns)
    fn: Callable[[Any, Any], Any] = lambda i, x: (x[i] + 1,)
    assert _text(_kernel(fn, at, table)).count("__builtin_prefetch") == fetches
    assert torch.equal(torch.compile(fn, fullgraph=True)(at, table)[0], table[at] + 1)
    with pytest.raises(IndexError, match="index 9 is out of bounds"):
        torch.compile(fn, fullgraph=True)(torch.tensor([5, 8, 9]), table)


def test_no_row_is_fetched_where_each_element_is_looked_up_in_another() -> None:
    at, table = torch.randint(0, 9, (45, 64)), torch.randn(9, 64)
    fn: Callable[[Any, Any], Any] = lambda i, x: (x.gather(0, i) + 1,)
    assert "__builtin_prefetch" not in _text(_kernel(fn, at, table))
    assert torch.equal(torch.compile(fn, fullgraph=True)(at, table)[0], table.gather(0, at) + 1)


def test_maxima_of_long_rows_have_two_chains() -> None:
    for columns, lanes in ((4096, 32), (128, 16)):
        kernel = _kernel(lambda x: (x.amax(-1),), torch.zeros(4, columns))
        assert {x.extent for x in walk(kernel.body) if isinstance(x, Loop) and x.kind == "vector"} == {lanes}
