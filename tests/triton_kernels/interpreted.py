"""Checks that run in Triton's interpreter, as a separate program: TRITON_INTERPRET=1 must be set before triton is imported.

    TRITON_INTERPRET=1 python -m tests.triton_kernels.interpreted law|contractions|ops|symbolic|graphs|attention [cases]

Prints one JSON line: for each check its failures as texts, and counts.
"""
from __future__ import annotations

import json
import math
import os
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from typing import Any
from unittest.mock import patch

import numpy as np
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import eager as torch
from benchmarks.plans import tensors_in, with_tensors
from eager.base import dtypes
from eager.base.dtypes import dtype
from eager.base.spec import DataDependentError
from eager.optable.registry import Kind
from eager.optable.samples import samples_of
from eager.optable.table import OPS
from fxir.expr import rules as E
from fxir.expr.printing import to_python
from fxir.symbols.shapes import NeedsStatic
from fxir.trace.trace import trace
from inductor.base.target import Target
from inductor.driver.backend import KEPT
from inductor.driver.cuda import Call, lower_to_cuda
from inductor.driver.gpu_candidates import Candidate, default_candidate
from inductor.ir import definitions as ir
from inductor.ir.sizes import Size
from inductor.loops.apply import Refusal, apply
from inductor.loops.interpret import interpret, operate
from inductor.loops.steps import Blocks, Follow, Persistent, Share, to_text
from inductor.loops.tree import Kernel, Loop, walk
from inductor.plan.gpu_schedule import Choice, schedule_gpu
from inductor.triton.kernel import Options
from inductor.triton.loops import print_kernel
from tests.inductor.helpers_symbolic import with_symbols
from tests.inductor.loop_programs import F32, Program, programs
from tests.ops.conftest import TOLERANCE
from tests.triton_kernels import interpreter, run_plan
from tests.triton_kernels.attention_cases import CASES, Case, function_of, inputs_of, kernels_of, tilings_of
from tests.triton_kernels.graphs import GRAPHS, all_on_cuda, on_cuda

IS_SEARCH = "FRAMEJIT_TEST_LOOP_CASES" in os.environ  # new cases in every run; else the same cases


def sum_beside_running_sums() -> Program:
    """The sum of a matrix and the running sums of its columns: one program holds several columns."""
    shape, memory = (40, 4), (4, 40)
    row, column = (ir.reduced_axis(k, n) for k, n in enumerate(shape))
    total = ir.Reduction((), shape, "sum", ir.load("x0", ir.linear_position(memory, (column, row)), F32))
    value = ir.load("x0", ir.linear_position(memory, (ir.reduced_axis(0, 4), ir.axis(0, 40))), F32)
    buffers = (ir.Buffer("b0", ir.row_major((), F32), total), ir.Buffer("b1", ir.row_major(shape, F32), ir.Scan((40,), 4, "sum", value)))
    return Program(buffers, {"x0": 160, "b0": 1, "b1": 160}, {}, frozenset())


def truth_of_a_sum() -> Program:
    """A comparison of a tile of one element, which is spread over the elements of another tile."""
    copy = ir.Pointwise((2,), ir.load("x0", ir.axis(0, 2), F32))
    total = ir.Reduction((), (2,), "sum", ir.load("x0", ir.reduced_axis(0, 2), F32))
    read = ir.load("b1", 0, F32)
    truth = ir.Reduction((), (2,), "any", ir.make_op("add", (read, read), F32))
    made = (("b0", (2,), F32, copy), ("b1", (), F32, total), ("b2", (), dtypes.bool_, truth))
    buffers = tuple(ir.Buffer(name, ir.row_major(shape, of), d) for name, shape, of, d in made)
    return Program(buffers, {"x0": 2, "b0": 2, "b1": 1, "b2": 1}, {}, frozenset())


def sum_added_by_index() -> Program:
    """One element of a tile that is added to several elements of memory."""
    n, s = E.sym("n0", 2, 1 << 30), E.sym("g_b2", 0, 4)
    assert isinstance(n, E.Sym) and isinstance(s, E.Sym)
    total = ir.Reduction((), (n,), "sum", ir.load("x0", ir.reduced_axis(0, n), F32))
    copy = ir.Pointwise((n,), ir.load("x0", ir.axis(0, n), F32))
    at = ir.load("k0", E.mod(ir.axis(0, n), 12), dtypes.int64)
    added = ir.Scatter((n,), "t", s, ((s, at),), ir.load("b0", 0, F32), "add")
    made: tuple[tuple[str, tuple[Size, ...], Any], ...] = (("b0", (), total), ("b1", (n,), copy), ("b2", (5,), added))
    buffers = tuple(ir.Buffer(name, ir.row_major(shape, F32), d) for name, shape, d in made)
    return Program(buffers, {"k0": 12, "t": 5, "x0": 6, "b0": 1, "b1": 6, "b2": 5}, {n: 6}, frozenset())


def law(cases: int) -> dict[str, Any]:
    """Printed kernels of random programs give what the loop interpreter gives."""
    counts: Counter[str] = Counter()

    @given(program=programs(has_masks=True), seed=st.integers(0, 1 << 16))
    @example(program=sum_beside_running_sums(), seed=0)
    @example(program=truth_of_a_sum(), seed=0)
    @example(program=sum_added_by_index(), seed=2)
    @settings(max_examples=cases, deadline=None, derandomize=not IS_SEARCH, suppress_health_check=list(HealthCheck), database=None)
    def agree(program: Program, seed: int) -> None:
        counts["cases"] += 1
        plain = program.kernel()
        kernel, steps = schedule_gpu(plain)
        printed = print_kernel(kernel, "kernel")
        expected, scheduled, found = (program.memory(seed) for _ in range(3))
        interpret(plain, expected, program.symbols)
        interpret(kernel, scheduled, program.symbols, seed)
        interpreter.run(printed, found, program.symbols)
        source = "\n".join(k.source for k in printed.kernels)
        for name in expected.keys() - program.temporary:
            assert np.array_equal(expected[name], scheduled[name]), f"{name} differs after {to_text(steps)}\n{plain}\n\n{kernel}"
            assert np.array_equal(expected[name], found[name]), f"{name} differs as printed\n{kernel}\n{source}"

    return {"failures": _caught(agree), **counts}


@st.composite
def tile_products(draw: st.DrawFn) -> tuple[Program, Kernel]:
    """A product of matrices in some order of their axes, and loops that follow it; and its loops in blocks."""
    symbols: dict[E.Sym, int] = {}
    sizes: list[Size] = [draw(st.integers(1, 2)), *(draw(st.integers(2, 40)) for _ in range(3)), draw(st.integers(1, 3))]
    for k in (1, 2, 3):
        if draw(st.integers(0, 4)) == 0:
            n, symbols[n] = E.sym(f"n{k}", 2, 1 << 20), sizes[k]
            sizes[k] = n
    groups, m, n, k, taps = sizes
    axes = {"z": ir.axis(0, groups), "m": ir.axis(1, m), "n": ir.axis(2, n), "k": ir.reduced_axis(0, k), "t": ir.reduced_axis(1, taps)}
    extent = dict(zip("zmnkt", (groups, m, n, k, taps), strict=True))

    def operand(name: str, letters: str) -> tuple[ir.Value, int]:
        order = draw(st.permutations(letters))
        shape = [extent[x] for x in order]
        read = ir.load(name, ir.linear_position(shape, [axes[x] for x in order]), F32)
        value = ir.make_op("add", (read, read), F32) if draw(st.integers(0, 3)) == 0 else read
        return value, _count(shape, symbols)

    (left, n_left), (right, n_right) = operand("x0", "zmkt"), operand("x1", "zkt" + "n" if draw(st.booleans()) else "nkt")
    shape = (groups, m, n)
    first = ir.Buffer("b0", ir.row_major(shape, F32), ir.Contraction(shape, (k, taps), ("batch", "row", "column"), left, right))
    point = [ir.axis(d, size) for d, size in enumerate(shape)]
    read, bias = ir.load("b0", ir.linear_position(shape, point), F32), ir.load("x2", point[2], F32)
    value = ir.make_op(draw(st.sampled_from(["add", "maximum", "mul"])), (read, bias), F32)
    second = ir.Buffer("b1", ir.row_major(shape, F32), ir.Pointwise(shape, value))
    counts = {"x0": n_left, "x1": n_right, "x2": _count((n,), symbols), "b0": _count(shape, symbols), "b1": _count(shape, symbols)}
    program = Program((first, second), counts, symbols, frozenset({"b0"} if draw(st.booleans()) else ()))
    kernel = program.kernel()
    block = tuple(draw(st.sampled_from((16, 32))) for _ in range(3))
    outermost = next((x.axis.name for x in kernel.body if isinstance(x, Loop)), "")
    steps = [Follow("b0", outermost), Share("b0", "b1"), *(Blocks(name, *block) for name in ("b0", "b1"))]
    if draw(st.booleans()):
        count = draw(st.integers(1, 3))
        steps += [Persistent(name, count) for name in ("b0", "b1")]
    for step in steps:
        found = apply(kernel, (step,))
        kernel = kernel if isinstance(found, Refusal) else found
    return program, kernel


def _count(shape: Sequence[Size], symbols: dict[E.Sym, int]) -> int:
    return math.prod(n if isinstance(n, int) else E.evaluate(n, symbols) for n in shape)


def contractions(cases: int) -> dict[str, Any]:
    """Products of tiles, with the loops that follow them, give what the plain loops give."""
    counts: Counter[str] = Counter()

    @given(made=tile_products(), seed=st.integers(0, 1 << 16))
    @settings(max_examples=cases, deadline=None, derandomize=not IS_SEARCH, suppress_health_check=list(HealthCheck), database=None)
    def agree(made: tuple[Program, Kernel], seed: int) -> None:
        program, kernel = made
        printed = print_kernel(kernel, "kernel")
        source = "\n".join(k.source for k in printed.kernels)
        assert "tl.dot" in source
        expected, found = program.memory(seed), program.memory(seed)
        _by_numpy(program, expected)
        interpreter.run(printed, found, program.symbols)
        counts["cases"] += 1
        counts["persistent"] += any(isinstance(s, Loop) and s.kind == "turns" for s in walk(kernel.body))
        for name in expected.keys() - program.temporary:
            assert np.array_equal(expected[name], found[name]), f"{name} differs as printed\n{kernel}\n{source}"

    return {"failures": _caught(agree), **counts}


def _by_numpy(program: Program, memory: dict[str, np.ndarray]) -> None:
    """The product and its follower, from the definitions: every value at every point at once."""
    first, second = program.buffers
    d = first.definition
    assert isinstance(d, ir.Contraction) and isinstance(second.definition, ir.Pointwise)
    sizes = [n if isinstance(n, int) else E.evaluate(n, program.symbols) for n in (*d.ranges, *d.reduced)]
    grids = np.meshgrid(*map(np.arange, sizes), indexing="ij")
    names = [*(f"i{k}" for k in range(3)), *(f"r{k}" for k in range(2))]
    at = {**{s.name: v for s, v in program.symbols.items()}, **dict(zip(names, grids, strict=True))}
    memory["b0"][:] = (_array(d.a, memory, at) * _array(d.b, memory, at)).sum((3, 4)).ravel()
    point = {**at, **{f"i{k}": grids[k][:, :, :, 0, 0] for k in range(3)}}
    memory["b1"][:] = _array(second.definition.value, memory, point).ravel()


def _array(v: ir.Value, memory: dict[str, np.ndarray], at: dict[str, Any]) -> Any:
    if isinstance(v, ir.Load):
        return memory[v.buffer][eval(to_python(v.index), {"min": min}, at)]
    assert isinstance(v, ir.Op)
    return operate(v.name, [_array(a, memory, at) for a in v.args], v.dtype)


def symbolic(cases: int) -> dict[str, Any]:
    """As `ops`, from plans whose sizes are symbols: equal sizes of a call's tensors are one symbol."""
    found = ops(cases, partial(with_symbols, where=torch.device("cuda")))
    return {**found, "failures": [*_caught(_flip_padded_rows), *found["failures"]]}


def _flip_padded_rows() -> None:
    """The positions are quotients and remainders of numbers below 0."""
    def fn(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor]:
        return (torch.flip(torch.nn.functional.pad(x, (0, 1)) * y, [1]),)

    inputs = [torch.randn(3, 7), torch.randn(3, 1)]
    plan = lower_to_cuda(trace(fn, with_symbols(inputs, torch.device("cuda"))))
    assert any("fj_floormod" in k.source for k in plan.kernels)
    (found,) = run_plan.run(plan, inputs)
    _assert_close(found, *fn(*inputs), torch.float32)


def ops(cases: int, fakes: Callable[[Sequence[torch.Tensor]], list[torch.Tensor]] = all_on_cuda) -> dict[str, Any]:
    """Every op with loops gives what its eager kernel gives. cases: samples of each op and dtype. fakes: for the tensors of a call."""
    failures, counts = [], Counter()
    dtypes_ = (torch.float32, torch.float64, torch.bfloat16) if cases > 1 else (torch.float32,)
    for name, op in OPS.items():
        if op.is_custom or op.mutates or op.samples is None or op.kind is Kind.EFFECT or name == "empty":
            continue
        for of in dtypes_:
            for number, args in enumerate(_samples(name, of, cases)):
                counts[_one(op, args, of, f"{name}-{number} {of.name}", failures, fakes)] += 1
    return {"failures": failures, **counts}


def _samples(name: str, of: dtype, cases: int) -> list[tuple[Any, ...]]:
    try:
        return list(islice(samples_of(name, of), cases))
    except RuntimeError:  # the samples of some ops exist in some dtypes only
        return []


def _one(op: Any, args: tuple[Any, ...], of: dtype, title: str, failures: list[str], fakes: Any) -> str:
    """Compares one call; what became of it."""
    tensors = [t for t in tensors_in(args) if not t.dtype.is_complex]
    if len(tensors) != len(list(tensors_in(args))):
        return "complex"
    try:
        expected = op(*args)
        graph = trace(lambda *xs: op(*with_tensors(args, iter(xs))), fakes(tensors))
    except (NotImplementedError, RuntimeError, ValueError, IndexError, TypeError, DataDependentError):
        return "not traced"
    expected = [t for t in (expected if isinstance(expected, tuple | list) else [expected]) if isinstance(t, torch.Tensor)]
    try:
        plan = lower_to_cuda(graph)
        if any(isinstance(step, Call) for step in plan.steps):
            return "calls of eager kernels"
        found = [x for x in run_plan.run(plan, tensors) if isinstance(x, np.ndarray)]
        for a, e in zip(found[-len(expected) :], expected, strict=True):
            _assert_close(a, e, torch.float32 if op.kind is Kind.RANDOM else of)  # random numbers are float32 first
    except NeedsStatic:
        return "needs a size"
    except Exception:  # the failure of one op must not hide the others
        failures.append(f"{title}: {traceback.format_exc()[-1500:]}")
        return "failed"
    return "agree"


def _assert_close(found: np.ndarray, expected: torch.Tensor, of: dtype) -> None:
    rtol, atol = TOLERANCE[of.name]
    e = expected.detach()._array
    wide = [x.astype(np.float64) if x.dtype.kind not in "iub" else x for x in (found, e)]
    np.testing.assert_allclose(*wide, rtol=rtol, atol=atol, equal_nan=True)


def graphs(cases: int) -> dict[str, Any]:
    """Typical graphs give what eager code gives, also by persistent programs; a lookup outside of its range fails its check."""
    failures, counts = [], Counter(cases=len(GRAPHS))
    for name, (fn, small, _) in GRAPHS.items():
        inputs = list(small())
        tolerance = torch.bfloat16 if "half" in name else torch.float32
        try:
            for choose in (default_candidate, partial(_in_turns, counts)):
                plan = lower_to_cuda(trace(fn, [on_cuda(t) for t in inputs]), choose=choose)
                for a, e in zip(run_plan.run(plan, inputs), fn(*inputs), strict=True):
                    _assert_close(a, e, tolerance)
        except Exception:
            failures.append(f"{name}: {traceback.format_exc()[-3000:]}")
    failures += _failing_check()
    return {"failures": failures, **counts}


def _in_turns(counts: Counter[str], loops: Kernel, target: Target, options: Options) -> Candidate:
    """A kernel whose products are computed by two persistent programs, if they have more blocks."""
    choice = Choice(product=(16, 16, 32), resident=1)
    kernel, steps = schedule_gpu(loops, target._replace(cores=2), choice)
    counts["persistent"] += any(isinstance(x, Persistent) for x in steps)
    return Candidate(kernel, steps, options, choice)


def attention(cases: int) -> dict[str, Any]:
    """Attention in small blocks: printed kernels give what the loops give; plans give what eager code gives, and its gradients."""
    failures, counts = [], Counter()
    for name, case in CASES.items():
        for of in (torch.float32, torch.bfloat16):
            try:
                _attend(case, of)
                counts["cases"] += 1
                if of is torch.float32 and (name in ("one block", "causal, more keys than queries") or cases > 1):
                    _attend_by_loops(case)
                    counts["by loops"] += 1
            except Exception:
                failures.append(f"{name}, {of.name}: {traceback.format_exc()[-3000:]}")
    return {"failures": failures, **counts}


def _attend(case: Case, of: dtype) -> None:
    """A plan of attention and its gradients against eager code in float32. Rounding may double its errors of 16 bits, not more."""
    inputs, fn = inputs_of(case, of, True), function_of(case, True)
    with patch("inductor.plan.gpu_attention.tilings_of", lambda d, target: tilings_of(case)):
        plan = lower_to_cuda(trace(fn, [on_cuda(t) for t in inputs], KEPT))
    assert not any(isinstance(step, Call) for step in plan.steps)
    exact = fn(*(t.float() if t.dtype.is_floating_point else t for t in inputs))
    for a, e, r in zip(run_plan.run(plan, inputs), fn(*inputs), exact, strict=True):
        wanted, own = r.numpy(), np.abs(e.float().numpy() - r.numpy()).max()
        error = np.abs(np.asarray(a, np.float32) - wanted).max()
        assert error <= (1e-5 if of is torch.float32 else 4 * own + 1e-3), f"error {error}; of eager code {own}"


def _attend_by_loops(case: Case) -> None:
    """Every kernel of attention and its gradients on random memory."""
    for kernel, sizes in kernels_of(case, inputs_of(case, torch.float32, True), True):
        rng = np.random.default_rng(5)
        expected = {n: rng.standard_normal(sizes[n]).astype(of.numpy) for n, of in kernel.dtypes.items()}
        found = {n: a.copy() for n, a in expected.items()}
        interpret(kernel, expected, {}, 0)
        interpreter.run(print_kernel(kernel, "kernel"), found, {})
        for n, a in expected.items():
            assert np.allclose(a, found[n], 1e-4, 1e-4 * np.abs(a).max()), f"{n} differs as printed\n{kernel}"


def _failing_check() -> list[str]:
    fn, table = GRAPHS["gather"][0], torch.zeros(7, 3)
    plan = lower_to_cuda(trace(fn, [on_cuda(table), on_cuda(torch.tensor([2, 9]))]))
    try:
        run_plan.run(plan, [table, torch.tensor([2, 9])])
    except run_plan.CheckFailed as error:
        return [] if "at 9" in str(error) else [f"the check names another position: {error}"]
    return ["a lookup outside of its range passed"]


def _caught(check: Any) -> list[str]:
    try:
        check()
    except Exception:
        return [traceback.format_exc()[-6000:]]
    return []


def main() -> None:
    checks = {"law": law, "contractions": contractions, "ops": ops, "symbolic": symbolic, "graphs": graphs, "attention": attention}
    check = checks[sys.argv[1]]
    print(json.dumps(check(int(sys.argv[2]) if len(sys.argv) > 2 else 1)))


if __name__ == "__main__":
    main()
