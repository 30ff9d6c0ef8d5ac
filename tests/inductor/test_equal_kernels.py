"""Kernels that differ only in names are scheduled and printed once, and a scheduled kernel computes its definitions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import eager as torch
from eager.base import dtypes
from eager.base.spec import fake_like
from eager.nn import functional as F
from fxir.expr import rules as E
from fxir.trace.trace import trace
from inductor.cpp.loops import print_kernel
from inductor.cpp.units import Place
from inductor.ir import definitions as ir
from inductor.loops.interpret import interpret
from inductor.lowering import lower
from inductor.plan.kernels import (
    Scheduled,
    copy_kernel,
    expanded_kernel,
    nest_kernel,
    product_kernel,
    scan_kernel,
    scatter_kernel,
)
from inductor.plan.schedule import Nest, schedule
from tests.inductor.loop_programs import F32, Program, programs


def _kernel(b: ir.Buffer, prefix: str, program: Program) -> Scheduled:
    """The kernel of one definition, with `prefix` before the name of every buffer."""
    b = _renamed(b, prefix)
    memory = {prefix + n: of for n, of in program.dtypes().items()}
    if isinstance(b.definition, ir.Scan):
        return scan_kernel(b, memory, 2)
    if isinstance(b.definition, ir.Scatter):
        return scatter_kernel(b, memory)
    if isinstance(b.definition, ir.Contraction):
        made = product_kernel(b, (), memory, (b.name,))
        assert isinstance(made, Scheduled)
        return expanded_kernel(made, "b0")
    assert isinstance(b.definition, ir.Pointwise | ir.Reduction)
    return nest_kernel(Nest(b.definition.ranges, [b]), memory, [b.name], {})


def _renamed(b: ir.Buffer, prefix: str) -> ir.Buffer:
    def load(x: ir.Load) -> ir.Value:
        """The load of the renamed buffer; gathered positions have other symbols too."""
        symbols = {s: E.sym(f"{s.name}{prefix}", s.lo, s.hi, s.multiple, s.below) for s, _ in x.indirect}
        bound = [(other, v) for s, v in x.indirect if isinstance(other := symbols[s], E.Sym)]
        return ir.load(prefix + x.buffer, E.substitute(x.index, symbols), x.dtype, x.mask, bound)

    assert b.definition is not None
    d = ir.with_value(b.definition, lambda v: ir.replace_loads(v, load))
    if isinstance(d, ir.Scatter):
        d = replace(d, target=prefix + d.target)
    return replace(b, name=prefix + b.name, definition=d)


@given(program=programs(), seed=st.integers(0, 1 << 16))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_the_default_schedule_computes_the_definition_under_any_names(program: Program, seed: int) -> None:
    b = program.buffers[0]
    assume(program.sizes[b.name] > 0)
    made, other = (_kernel(b, prefix, program) for prefix in ("", "z_"))
    assert made.kernel is other.kernel and made.steps == other.steps
    assert {f"z_{name}" for name in made.names.values()} == set(other.names.values())
    expected = program.memory(seed)
    found = {canonical: program.memory(seed)[name] for canonical, name in made.names.items()}
    interpret(replace(program, buffers=(b,), temporary=frozenset()).kernel(), expected, program.symbols)
    interpret(made.kernel, found, program.symbols, seed)
    for canonical, name in made.names.items():
        assert np.array_equal(found[canonical], expected[name]), f"{name} differs\n{made.legend}\n{made.kernel}"


@given(program=programs())
@settings(max_examples=50, deadline=None, derandomize=True)
def test_equal_kernels_have_one_text_and_their_own_pointers(program: Program) -> None:
    b = program.buffers[0]
    assume(program.sizes[b.name] > 0)
    made = _kernel(b, "", program)
    assume(made.kernel.body)
    first, second = ({n: Place(at + k, 64 * at, made.kernel.dtypes.get(n, F32)) for k, n in enumerate(made.names)} for at in (1, 9))
    texts = [print_kernel(made.kernel, places, 0, "") for places in (first, second)]
    assert texts[0].code is texts[1].code and texts[0].call == texts[1].call
    for text, places in zip(texts, (first, second), strict=True):
        assert {p for p in text.pointers if p.startswith("bufs")} <= {p.source for p in places.values()}


def test_a_copy_is_remembered_by_its_layouts() -> None:
    def made(name: str, strides: tuple[int, ...]) -> Scheduled:
        target = ir.Buffer(name, ir.row_major((6, 8), dtypes.float32))
        return copy_kernel(target, ir.Ref(f"{name}_source", ir.Layout((6, 8), strides, dtypes.float32), 2))

    assert made("a", (1, 6)).kernel is made("b", (1, 6)).kernel
    assert made("a", (8, 1)).kernel is not made("a", (1, 6)).kernel


def test_layers_that_repeat_are_scheduled_once() -> None:
    def layers(x: torch.Tensor, n: int) -> tuple[torch.Tensor]:
        for _ in range(n):
            x = F.layer_norm(torch.softmax(x @ x, -1) + x, (24,))
        return (x,)

    def kernels(n: int) -> set[int]:
        made = schedule(lower(trace(lambda x: layers(x, n), [fake_like(torch.zeros(24, 24))])))
        dtype_of = {name: b.layout.dtype for name, b in made.program.buffers.items()}
        steps = [s for s in made.steps if isinstance(s, Nest)]
        assert len(steps) == n
        return {id(nest_kernel(s, dtype_of, [s.members[-1].name], {}).kernel) for s in steps}

    assert len(kernels(6)) == len(kernels(2))
