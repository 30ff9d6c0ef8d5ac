"""Kernels with contractions: calls of compiled cores, with a function for the loops that run on each finished block.

The core of a product is chosen by `inductor.cpp.gemm`; BLAS computes a product that nothing follows. The core of a convolution is
chosen by `inductor.cpp.conv`. The function of a block is printed from the body of the contraction by `inductor.cpp.loops`. So is the
prologue of a product, which computes blocks of an operand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from eager.base.dtypes import dtype
from fxir.expr.printing import to_source
from inductor.base.toolchain import Toolchain
from inductor.cpp import conv, gemm
from inductor.cpp.gemm_problem import CoreCode
from inductor.cpp.loops import Function, Pointers, cost_of
from inductor.cpp.products import Problem, problem_of
from inductor.cpp.units import CALLED, FLOP_NS, RUN, Code, Place, joined, launch
from inductor.cpp.units import Kernel as Printed
from inductor.cpp.values import STYLE, TYPE, size_source
from inductor.cpp.windows import Convolution, convolution_of, weight_gradient_of
from inductor.ir import definitions as ir
from inductor.ir.sizes import Size, plain, product
from inductor.loops.computed import COMPUTED_PARAMETERS, computed_block, computed_name, computed_operand
from inductor.loops.dependence import accesses
from inductor.loops.finished import PARAMETERS, finished_block
from inductor.loops.tree import Block, Contract, Kernel, Loop, Statement, walk


class Core(NamedTuple):
    """How a contraction is computed: by `code`, or by BLAS if it is None. packed: the buffer that holds the operand b in panels, or
    "". is_followed: whether its code runs a function on each finished block. is_near: whether a block of the result is in memory of
    the thread, where this function alone reads it. is_computed: whether a prologue computes the operand a.
    """

    problem: Problem | Convolution
    code: CoreCode | None
    packed: str = ""
    is_followed: bool = False
    is_near: bool = False
    is_computed: bool = False


def choose_core(s: Contract, of: dtype, is_followed: bool, can_pack: bool, tools: Toolchain, has_blas: bool) -> Core | None:
    """The core for a contraction of dtype `of`, or None if no core computes it.

    is_followed: whether loops should run on its finished blocks. can_pack: its operand b is the same in every call.
    """
    is_computed = not isinstance(s.a, ir.Load)
    problem = problem_of(replace(s, a=computed_operand(s)) if is_computed else s, of)
    if is_computed and (problem is None or not gemm.suits_prologue(problem.nominal())):
        return None
    if problem is not None:
        can_pack = can_pack and not s.axes.batch and problem.starts[1] == 0
        return _product_core(problem, is_followed, is_computed, can_pack, tools, has_blas)
    found = convolution_of(s, of)
    if found is not None:
        return Core(found, conv.emit(found, can_pack, tools), "", is_followed)
    found = None if is_followed else weight_gradient_of(s, of)
    return None if found is None else Core(found, conv.emit_weight_gradient(found, tools))


def _product_core(problem: Problem, is_followed: bool, is_computed: bool, can_pack: bool, tools: Toolchain, has_blas: bool) -> Core:
    has_blas = has_blas and problem.suits_blas()
    for packed in (True, False) if can_pack else (False,):
        code = gemm.emit(problem.nominal(), is_followed, tools, packed=packed, has_blas=has_blas, run_time=problem.run_time(),
                         computed=is_computed)  # fmt: skip
        if code is not None:
            return Core(problem, code, "", is_followed, is_computed=is_computed)
    return Core(problem, None)


def is_near(kernel: Kernel, s: Contract, core: Core) -> bool:
    """Whether only the body of a contraction reads its result, so that its blocks need memory of the thread alone."""
    uses = [a for a in accesses(kernel.body) if a.place.name == s.place.name]
    is_own = core.is_followed and core.code is not None and core.problem.starts[2] == 0
    return is_own and s.place.name in kernel.temporary and len(uses) == len([a for a in accesses((s,)) if a.place.name == s.place.name])


def print_steps(kernel: Kernel, cores: Mapping[str, Core], places: Mapping[str, Place], parallel_ns: int, title: str) -> Printed:
    """The functions of a kernel with contractions, and the statements that run them.

    cores: by name of the contraction. Loops around contractions are loops of the statements; functions read their axes from `args`.
    """
    return _Steps(kernel, cores, places, parallel_ns).printed(title)


class _Steps:
    """The functions of a kernel, so far. timed: the axes of the loops around contractions."""

    def __init__(self, kernel: Kernel, cores: Mapping[str, Core], places: Mapping[str, Place], parallel_ns: int) -> None:
        self.kernel, self.cores, self.places, self.parallel_ns = kernel, cores, places, parallel_ns
        self.timed = [s.axis for s in walk(kernel.body) if isinstance(s, Loop) and _holds_contraction(s)]
        memory = {**kernel.dtypes, **{n: p.dtype for n, p in places.items()}}
        memory |= {computed_name(s): s.a.dtype for s in walk(kernel.body) if isinstance(s, Contract)}
        self.pointers = Pointers(kernel.body, memory, (), [axis.name for axis in self.timed])
        self.codes: list[Code] = []
        self.ns: float = 0.0
        self.ps: Size = 0

    def printed(self, title: str) -> Printed:
        calls = " ".join(self.calls(self.kernel.body, 1))
        sources = tuple("0" if n in self.pointers.outer else self.places[n].source for n in self.pointers.names)
        return Printed(joined(self.codes), calls, sources, title, self.ns, self.ps)

    def calls(self, block: Block, times: Size) -> Iterator[str]:
        """The statements that run a block, which runs `times`."""
        for s in block:
            if isinstance(s, Contract):
                yield self.contraction(s, times)
            elif isinstance(s, Loop) and _holds_contraction(s):
                name = self.pointers.axis(s.axis.name)
                inside = " ".join(self.calls(s.body, product((times, s.extent))))
                slot = f"args[{self.pointers.number(s.axis.name) + 1}]"
                yield f"for (i64 {name} = 0; {name} < {size_source(s.extent)}; {name}++) {{ {slot} = (char*){name}; {inside} }}"
            else:
                yield self.loops(s, times)

    def loops(self, s: Statement, times: Size) -> str:
        name = self.function_name()
        self.codes.append(Function(self.pointers).code(name, s))
        count, each = cost_of(s)
        self.add_cost(*each.of(product((count, times))))
        is_parallel = isinstance(s, Loop) and s.kind == "parallel"
        function = f"{CALLED}::{name}"
        return launch(function, "args", count, each, self.parallel_ns) if is_parallel else f"{function}(args, 0, 1);"

    def contraction(self, s: Contract, times: Size) -> str:
        core = self.cores[s.name]
        assert isinstance(s.b, ir.Load)
        problem, name = core.problem, self.function_name()
        a = s.a.buffer if isinstance(s.a, ir.Load) else ""
        t = TYPE[self.pointers.memory[s.place.name]]
        args = [self.pointer(f"const {t}", a, problem.starts[0]),
                self.pointer(f"const {t}", core.packed or s.b.buffer, 0 if core.packed else problem.starts[1]),
                self.pointer(t, "" if core.is_near else s.place.name, problem.starts[2])]  # fmt: skip
        flops = product((2, *(n for _, n in (*s.axes.result, *s.axes.depth)), times))
        self.add_cost(*((flops * FLOP_NS, 0) if isinstance(flops, int) else (0.0, plain(flops * int(FLOP_NS * 1000)))))
        if core.code is None:
            assert isinstance(problem, Problem)
            return f"{{ GemmCall g = {{{problem.blas_fields()}, {', '.join(args)}}}; rt->gemm(rt, &g, rt->threads); }}"
        block, prologue = f"{name}_block" if s.body else "", f"{name}_prologue" if core.is_computed else ""
        if block:
            self.codes.append(_block_function(block, s, self.pointers, core.is_near))
        if prologue:
            self.codes.append(_prologue_function(prologue, s, self.pointers))
        self.codes.append(core.code.function(name, block, prologue))
        return f"{CALLED}::{name}({', '.join(args)}, args, rt);"

    def pointer(self, t: str, buffer: str, start: Size) -> str:
        """The pointer of type `t` to element `start` of a buffer; null for no buffer."""
        if not buffer:
            return f"({t}*)0"
        return f"({t}*)args[{self.pointers.number(buffer) + 1}]" + (f" + {self.start(start)}" if start != 0 else "")

    def function_name(self) -> str:
        """A name for another function. The first has no number."""
        return RUN if not self.codes else f"{RUN}_{len(self.codes)}"

    def start(self, x: Size) -> str:
        """A position over the axes of the loops around a statement."""
        return f"({to_source(x, STYLE.with_names({a.name: self.pointers.axis(a.name) for a in self.timed}))})"

    def add_cost(self, ns: float, ps: Size) -> None:
        self.ns += ns
        self.ps = plain(self.ps + ps)


def _holds_contraction(s: Loop) -> bool:
    return any(isinstance(x, Contract) for x in walk(s.body))


def _block_function(name: str, s: Contract, pointers: Pointers, is_near: bool) -> Code:
    """`name(args, result, batch, r0, r1, c0, c1)`: the body for these rows and columns of one product.

    is_near: whether `result` is the memory of the contraction's elements.
    """
    made = finished_block(s)
    head = f"static void {name}(char** args, void*{' result' * is_near}, long batch, long r0, long r1, long c0, long c1)"
    block = Function(pointers, {s.place.name: "result"} if is_near else {})
    text = block.function(head, made.body, made.ranges, PARAMETERS)
    return Code(text, (), frozenset(block.operations))


def _prologue_function(name: str, s: Contract, pointers: Pointers) -> Code:
    """`name(args, computed, pitch, batch, r0, r1, c0, c1)`: the operand a of these rows and this part of the depth."""
    made = computed_block(s)
    head = f"static void {name}(char** args, void* computed, long pitch, long batch, long r0, long r1, long c0, long c1)"
    block = Function(pointers, {computed_name(s): "computed"})
    text = block.function(head, made.body, made.ranges, COMPUTED_PARAMETERS)
    return Code(text, (), frozenset(block.operations))
