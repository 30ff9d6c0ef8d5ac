"""Random words that are drawn before the loop that uses them: legal schedules, their C++, and the kernels that have them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eager as torch
from eager.base import dtypes
from eager.nn import functional as F
from fxir.base.options import CompileOptions, GraphKind
from fxir.expr import rules as E
from fxir.trace.trace import trace
from inductor.driver.backend import compile_graph
from inductor.ir import definitions as ir
from inductor.ir.sizes import Size
from inductor.loops.apply import Refusal, apply
from inductor.loops.build import build
from inductor.loops.interpret import interpret
from inductor.loops.steps import FuseAxes, Lanes, Mark, Split, StageDraws, Step, from_text, to_text
from inductor.loops.tree import Kernel, Loop, body_of, loops_of, walk
from tests.inductor.loop_programs import Program
from tests.inductor.test_loops_cpp import compiled, run

CASES = int(os.environ.get("FRAMEJIT_TEST_LOOP_CASES", "60"))
IS_SEARCH = "FRAMEJIT_TEST_LOOP_CASES" in os.environ  # new cases in every run; else the same cases
BATCH = 12  # kernels that one run of the compiler takes
F32, I64, U32 = dtypes.float32, dtypes.int64, dtypes.uint32
Tensor = torch.Tensor


def _small(position: E.IntLike, word: int, words: int, state: str = "s") -> ir.Value:
    """Three bits of a random word as a float, so that sums are exact."""
    seed, offset = (ir.load(state, k, I64) for k in range(2))
    halves = [ir.cast(x, U32) for x in (seed, ir.make_op("right_shift", (seed, ir.const(32, I64)), I64))]
    of = (ir.const(word, I64), ir.const(words, I64))
    drawn = ir.make_op("philox", (*halves, offset, ir.index(position), *of), U32)
    return ir.cast(ir.cast(ir.make_op("right_shift", (drawn, ir.const(29, U32)), U32), dtypes.int32), F32)


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """A result of one or two draws, whose positions may begin anywhere and have steps: a tensor, or sums or maxima of its rows."""
    symbols: dict[E.Sym, int] = {}
    shape: list[Size] = [draw(st.sampled_from([1, 2, 3])), draw(st.sampled_from([1, 16, 37, 64, 96, 128, 130]))]
    if draw(st.integers(0, 4)) == 0:
        symbol = E.sym("n1", 2, 1 << 30)
        assert isinstance(symbol, E.Sym)
        symbols[symbol], shape[1] = draw(st.sampled_from([2, 64, 100])), symbol
    is_reduced = draw(st.booleans())
    point = [ir.axis(0, shape[0]), ir.reduced_axis(0, shape[1]) if is_reduced else ir.axis(1, shape[1])]
    value: ir.Value = ir.load("x", ir.linear_position(shape, point), F32)
    for _ in range(draw(st.integers(1, 2))):
        words = draw(st.sampled_from([1, 1, 2]))
        step = draw(st.sampled_from([1, 1, 1, 1, 2]))
        position = E.add(E.mul(ir.linear_position(shape, point), step), draw(st.sampled_from([0, 0, 0, 16, 5, 64])))
        for word in range(words):
            value = ir.make_op("add", (value, _small(position, word, words)), F32)
    count = 1
    for n in shape:
        count *= n if isinstance(n, int) else symbols[next(iter(symbols))]
    if is_reduced:
        d: ir.Definition = ir.Reduction((shape[0],), (shape[1],), draw(st.sampled_from(["sum", "max"])), value)
        b = ir.Buffer("b", ir.row_major((shape[0],), F32), d)
    else:
        b = ir.Buffer("b", ir.row_major(tuple(shape), F32), ir.Pointwise(tuple(shape), value))
    sizes = {"s": 2, "x": count, "b": shape[0] if is_reduced and isinstance(shape[0], int) else count}
    return Program((b,), sizes, symbols, frozenset(), {"s": I64})


def _candidates(kernel: Kernel) -> Iterator[Step]:
    for name, loop in loops_of(kernel.body).items():
        yield from [StageDraws(name)] * 4
        yield from (Split(name, 64), Split(name, 16), Split(name, 32, "peel"), Lanes(name, 16, 4))
        yield from (Mark(name, "vector"), Mark(name, "parallel"))
        inner = body_of(loop)[0]
        if isinstance(inner, Loop):
            yield FuseAxes(name, inner.axis.name)


@st.composite
def scheduled(draw: st.DrawFn) -> tuple[Program, Kernel, tuple[Step, ...]]:
    """A program, its loops after random legal steps, and the steps."""
    program = draw(programs())
    kernel, done = program.kernel(), list[Step]()
    for _ in range(draw(st.integers(1, 5))):
        candidates = [*_candidates(kernel)]
        step = draw(st.sampled_from(candidates)) if candidates else None
        found = apply(kernel, (step,)) if step is not None else None
        if step is not None and isinstance(found, Kernel):
            kernel = found
            done.append(step)
    return program, kernel, tuple(done)


@given(case=scheduled(), seed=st.integers(0, 1 << 16))
@settings(max_examples=CASES, deadline=None, derandomize=not IS_SEARCH)
def test_words_that_are_drawn_before_a_loop_change_no_result(case: tuple[Program, Kernel, tuple[Step, ...]], seed: int) -> None:
    program, kernel, steps = case
    expected, found = program.memory(seed), program.memory(seed)
    interpret(program.kernel(), expected, program.symbols)
    interpret(kernel, found, program.symbols, seed)
    assert np.array_equal(expected["b"], found["b"]), f"b differs after {to_text(steps)}\n{kernel}"
    assert from_text(to_text(steps)) == steps


@given(cases=st.lists(scheduled(), min_size=BATCH, max_size=BATCH), seed=st.integers(0, 1 << 16))
@settings(max_examples=max(CASES // 30, 1), deadline=None, derandomize=not IS_SEARCH)
def test_printed_code_draws_the_words_of_the_loops(cases: list[tuple[Program, Kernel, tuple[Step, ...]]], seed: int) -> None:
    kernels = [(program, kernel, to_text(steps)) for program, kernel, steps in cases]
    library = compiled(kernels)
    for k, (program, kernel, text) in enumerate(kernels):
        expected, found = program.memory(seed), program.memory(seed)
        interpret(program.kernel(), expected, program.symbols)
        run(library, k, program, found)
        assert np.array_equal(expected["b"], found["b"]), f"b differs after {text}\n{kernel}"


def _rows(position: Callable[[list[E.Expr]], E.IntLike], state: str = "s") -> Kernel:
    """3 rows of 128 elements, each of one word."""
    point = [ir.axis(0, 3), ir.axis(1, 128)]
    b = ir.Buffer("b", ir.row_major((3, 128), F32), ir.Pointwise((3, 128), _small(position(point), 0, 1, state)))
    return build((b,), {"s": I64}, frozenset())


def test_a_draw_in_another_order_is_refused() -> None:
    for position in (lambda p: p[0] + 3 * p[1], lambda p: 200 - p[1], lambda p: E.floordiv(p[1], 2)):
        made = apply(_rows(position), (StageDraws("b_i1"),))
        assert isinstance(made, Refusal) and "in the order of its elements" in str(made)


def test_a_parallel_loop_and_a_long_loop_are_refused() -> None:
    kernel = _rows(lambda p: 128 * p[0] + p[1])
    assert "is parallel, or" in str(apply(kernel, (Mark("b_i0", "parallel"), StageDraws("b_i0"))))
    long = ir.Buffer("b", ir.row_major((5000,), F32), ir.Pointwise((5000,), _small(ir.axis(0, 5000), 0, 1)))
    assert "5000 iterations" in str(apply(build((long,), {"s": I64}, frozenset()), (StageDraws("b_i0"),)))


def _words_drawn(kernel: Kernel | Refusal) -> list[int]:
    assert isinstance(kernel, Kernel), kernel
    return [x.extent for x in walk(kernel.body) if isinstance(x, Loop) and "draw" in x.axis.name and isinstance(x.extent, int)]


def test_a_loop_that_begins_within_a_chunk_draws_one_chunk_more() -> None:
    assert _words_drawn(apply(_rows(lambda p: 128 * p[0] + p[1]), (StageDraws("b_i1"),))) == [128]
    assert _words_drawn(apply(_rows(lambda p: 128 * p[0] + p[1] + 64), (StageDraws("b_i1"),))) == [128]
    assert _words_drawn(apply(_rows(lambda p: 129 * p[0] + p[1]), (StageDraws("b_i1"),))) == [192]


def _source(fn: Callable[..., tuple[Tensor, ...]], *inputs: Tensor) -> str:
    made = compile_graph(trace(fn, list(inputs)), GraphKind.INFERENCE, CompileOptions())
    texts = [x for x in made.artifact.entry.sources().values() if "\nnamespace " in x]
    return "".join(x[x.index("\nnamespace ") :].partition("#define FJ_BITS")[0] for x in texts)


@pytest.mark.parametrize(
    ("fn", "shapes"),
    [
        (lambda x: (F.dropout(x, 0.1),), [(8, 64, 128)]),
        (lambda x: (F.dropout(x, 0.1),), [(1013,)]),
        (lambda x: (F.dropout(x, 0.1),), [(50,)]),
        (lambda x, b: (F.dropout(x + b, 0.1),), [(64, 768), (768,)]),
        (lambda x, b: (F.dropout(x + b, 0.1),), [(64, 100), (100,)]),
        (lambda x, y, w: (F.layer_norm(x + F.dropout(y, 0.1), (768,), w),), [(64, 768), (64, 768), (768,)]),
        (lambda x: (F.dropout(torch.softmax(x, -1), 0.1),), [(64, 320)]),
        (lambda x: ((torch.rand(64, 1024) * x).sum(1),), [(64, 1024)]),
        (lambda x: (torch.rand(4096, dtype=torch.float64) * x,), [(4096,)]),
    ],
)
def test_kernels_draw_whole_chunks(fn: Callable[..., tuple[Tensor, ...]], shapes: list[tuple[int, ...]]) -> None:
    text = _source(fn, *(torch.empty(shape) for shape in shapes))
    assert "fj_philox_fill_" in text and "fj_philox_1_0(" not in text and "fj_philox_2_0(" not in text


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(1,), (31,), (64,), (1013,), (100_000,), (37, 50), (5, 100), (3, 768), (7, 1001), (2, 3, 65)])
def test_compiled_draws_have_the_bits_of_eager_draws(shape: tuple[int, ...], dtype: torch.dtype, threads: int) -> None:
    """Alone, in rows with a bias, and in sums of rows of numbers whose sums are exact."""

    def draw(bias: Tensor) -> tuple[Tensor, ...]:
        u = torch.rand(shape, dtype=dtype)
        return torch.rand(shape, dtype=dtype), u + bias, torch.rand(shape, dtype=dtype).mul(256).floor().sum(-1)

    bias, before = torch.zeros(shape[-1], dtype=dtype), torch.get_num_threads()
    try:
        torch.set_num_threads(threads)
        torch.manual_seed(11)
        expected = draw(bias)
        torch.manual_seed(11)
        found = torch.compile(draw)(bias)
    finally:
        torch.set_num_threads(before)
    for a, b in zip(expected, found, strict=True):
        assert torch.equal(a, b)


def test_draws_of_any_size_have_the_bits_of_eager_draws() -> None:
    draw = torch.compile(lambda x: (F.dropout(x, 0.5), F.dropout(x + x[0], 0.5)), dynamic=True)
    for shape in ((3, 40), (3, 64), (5, 300), (2, 1024)):
        x = torch.ones(shape)
        torch.manual_seed(3)
        expected = F.dropout(x, 0.5), F.dropout(x + x[0], 0.5)
        torch.manual_seed(3)
        assert all(torch.equal(a, b) for a, b in zip(expected, draw(x), strict=True))


@pytest.mark.parametrize("columns", [50, 130, 768, 1001])
def test_blocks_of_a_product_draw_whole_chunks(columns: int) -> None:
    """Dropout of a linear layer runs on finished blocks, which begin at any column."""

    def fn(x: Tensor, w: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        return (y + F.dropout(F.linear(x, w), 0.5),)

    x, w, y = torch.randn(150, 48), torch.randn(columns, 48), torch.zeros(150, columns)
    text = _source(fn, x, w, y)
    assert "fj_philox_fill_1(" in text and "fj_philox_1_0(" not in text
    torch.manual_seed(2)
    (expected,) = fn(x, w, y)
    torch.manual_seed(2)
    (found,) = torch.compile(fn)(x, w, y)
    assert torch.allclose(found, expected, atol=1e-4) and torch.equal(found == 0, expected == 0)
