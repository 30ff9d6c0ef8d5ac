"""Kernels with contractions: calls of compiled cores, with a function for the loops that run on each finished block.

The core of a product is chosen by `inductor.cpp.gemm`; BLAS computes a product that nothing follows. The core of a convolution is
chosen by `inductor.cpp.conv`. The function of a block is printed from the body of the contraction by `inductor.cpp.loops`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from eager.base.dtypes import dtype
from fxir.expr.printing import to_source
from inductor.base.toolchain import Toolchain
from inductor.cpp import conv, gemm
from inductor.cpp.conv import ConvCode
from inductor.cpp.gemm_problem import GemmCode
from inductor.cpp.loops import Function, Pointers, cost_of
from inductor.cpp.products import Problem, problem_of
from inductor.cpp.units import FLOP_NS, NAME, Code, Place, joined, launch
from inductor.cpp.units import Kernel as Printed
from inductor.cpp.values import STYLE, TYPE, size_source
from inductor.cpp.windows import Convolution, convolution_of, weight_gradient_of
from inductor.ir import definitions as ir
from inductor.ir.sizes import Size, plain, product
from inductor.loops.dependence import accesses
from inductor.loops.finished import PARAMETERS, finished_block
from inductor.loops.tree import Block, Contract, Kernel, Loop, Statement, walk


class Core(NamedTuple):
    """How a contraction is computed: by `code`, or by BLAS if it is None. packed: the buffer that holds the operand b in panels, or
    "". is_followed: whether its code runs a function on each finished block. is_near: whether a block of the result is in memory of
    the thread, where this function alone reads it.
    """

    problem: Problem | Convolution
    code: GemmCode | ConvCode | None
    packed: str = ""
    is_followed: bool = False
    is_near: bool = False


def choose_core(s: Contract, of: dtype, is_followed: bool, can_pack: bool, tools: Toolchain, has_blas: bool) -> Core | None:
    """The core for a contraction of dtype `of`, or None if no core computes it.

    is_followed: whether loops should run on its finished blocks. can_pack: its operand b is the same in every call.
    """
    problem = problem_of(s, of)
    if problem is not None:
        return _product_core(problem, is_followed, can_pack and not s.axes.batch and problem.starts[1] == 0, tools, has_blas)
    found = convolution_of(s, of)
    if found is not None:
        return Core(found, conv.emit(found, is_followed, can_pack, tools), "", is_followed)
    found = weight_gradient_of(s, of)
    return None if found is None else Core(found, conv.emit_weight_gradient(found, tools))


def _product_core(problem: Problem, is_followed: bool, can_pack: bool, tools: Toolchain, has_blas: bool) -> Core:
    has_blas = has_blas and problem.suits_blas()
    after = f"{NAME}_block" if is_followed else None
    for packed in (True, False) if can_pack else (False,):
        code = gemm.emit(problem.nominal(), NAME, after, tools, packed=packed, has_blas=has_blas, run_time=problem.run_time())
        if code is not None:
            return Core(problem, code, "", is_followed)
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
        return launch(name, "args", count, each, self.parallel_ns) if is_parallel else f"{name}(args, 0, 1);"

    def contraction(self, s: Contract, times: Size) -> str:
        core = self.cores[s.name]
        assert isinstance(s.a, ir.Load) and isinstance(s.b, ir.Load)
        problem, name = core.problem, self.function_name()
        names = (s.a.buffer, core.packed or s.b.buffer, s.place.name)
        starts = (problem.starts[0], 0 if core.packed else problem.starts[1], problem.starts[2])
        t = TYPE[self.pointers.memory[s.place.name]]
        args = [f"({'const ' if k < 2 else ''}{t}*)args[{self.pointers.number(n) + 1}]" + (f" + {self.start(x)}" if x != 0 else "")
                for k, (n, x) in enumerate(zip(names[: 2 if core.is_near else 3], starts, strict=False))]  # fmt: skip
        args += [f"({t}*)0"] if core.is_near else []
        flops = product((2, *(n for _, n in (*s.axes.result, *s.axes.depth)), times))
        self.add_cost(*((flops * FLOP_NS, 0) if isinstance(flops, int) else (0.0, plain(flops * int(FLOP_NS * 1000)))))
        if core.code is None:
            assert isinstance(problem, Problem)
            return f"{{ GemmCall g = {{{problem.blas_fields()}, {', '.join(args)}}}; rt->gemm(rt, &g, rt->threads); }}"
        self.codes += [x.named(name) for x in (_block_function(s, self.pointers, core.is_near), Code(core.code.text, (core.code.head,)))]
        return f"{name}({', '.join(args)}, 0, args, rt);"

    def function_name(self) -> str:
        """A name for another function. The first has the name of the kernel, so that a kernel of one function has no number."""
        return NAME if not self.codes else f"{NAME}_{len(self.codes)}"

    def start(self, x: Size) -> str:
        """A position over the axes of the loops around a statement."""
        return f"({to_source(x, STYLE.with_names({a.name: self.pointers.axis(a.name) for a in self.timed}))})"

    def add_cost(self, ns: float, ps: Size) -> None:
        self.ns += ns
        self.ps = plain(self.ps + ps)


def _holds_contraction(s: Loop) -> bool:
    return any(isinstance(x, Contract) for x in walk(s.body))


def _block_function(s: Contract, pointers: Pointers, is_near: bool) -> Code:
    """`NAME_block(args, result, batch, r0, r1, c0, c1)`: the body for these rows and columns of one product. Empty without a body.

    is_near: whether `result` is the memory of the contraction's elements.
    """
    if not s.body:
        return Code("")
    made = finished_block(s)
    head = f"{NAME}_block(char** args, void*{' result' * is_near}, long batch, long r0, long r1, long c0, long c1)"
    block = Function(pointers, {s.place.name: "result"} if is_near else {})
    text = block.function(f"static void {head}", made.body, made.ranges, PARAMETERS)
    return Code(text, (), frozenset(block.operations))
