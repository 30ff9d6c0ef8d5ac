"""Contractions as calls of a compiled core, with a function for the loops that run on each finished block.

A core is chosen by `inductor.cpp.gemm`; BLAS computes a product that nothing follows. The function of a block is printed from the
body of the contraction by `inductor.cpp.loops`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from fxir.expr import rules as E
from inductor.base.toolchain import Toolchain
from inductor.cpp import gemm
from inductor.cpp.gemm_problem import GemmCode
from inductor.cpp.kernel import Kernel as Printed
from inductor.cpp.kernel import Place
from inductor.cpp.loops import Function, Pointers
from inductor.cpp.products import Problem
from inductor.cpp.units import NAME
from inductor.cpp.values import TYPE, size_source
from inductor.ir import definitions as ir
from inductor.ir.sizes import product
from inductor.loops.tree import Block, Contract, Kernel, Loop, Role, substitute

FLOP_NS = 0.01  # nanoseconds of a multiplication and addition in a core, on one thread


class Core(NamedTuple):
    """How a product is computed: by `code`, or by BLAS if it is None. packed: the buffer that holds the operand b in panels, or ""."""

    problem: Problem
    code: GemmCode | None
    packed: str = ""


def choose_core(problem: Problem, is_followed: bool, packable: str, tools: Toolchain, has_blas: bool) -> Core:
    """The core for a product. packable: the name for its operand b in panels, if b is the same in every call; else ""."""
    has_blas = has_blas and problem.suits_blas()
    after = f"{NAME}_block" if is_followed else None
    for packed in (True, False) if packable else (False,):
        code = gemm.emit(problem.nominal(), NAME, after, tools, packed=packed, has_blas=has_blas, run_time=problem.run_time())
        if code is not None:
            return Core(problem, code, packable if packed else "")
    return Core(problem, None)


def print_contraction(kernel: Kernel, core: Core, places: Mapping[str, Place], title: str) -> Printed:
    """The functions of a kernel whose body is one contraction, and the call that runs it."""
    (s,) = kernel.body
    assert isinstance(s, Contract) and isinstance(s.a, ir.Load) and isinstance(s.b, ir.Load)
    problem, pointers = core.problem, Pointers(kernel, places, ())
    names = (s.a.buffer, core.packed or s.b.buffer, s.place.name)
    starts = (problem.starts[0], 0 if core.packed else problem.starts[1], problem.starts[2])
    t = TYPE[places[s.place.name].dtype]
    args = [f"({'const ' if k < 2 else ''}{t}*)args[{pointers.number(n) + 1}]" + (f" + {size_source(x)}" if x != 0 else "")
            for k, (n, x) in enumerate(zip(names, starts, strict=True))]  # fmt: skip
    text = _block_function(kernel, s, pointers) if s.body else ""
    if core.code is not None:
        text += core.code.text
        call = f"{NAME}({', '.join(args)}, 0, args, rt);"
    else:
        call = f"{{ GemmCall g = {{{problem.blas_fields()}, {', '.join(args)}}}; rt->gemm(rt, &g, rt->threads); }}"
    flops = product((2, problem.batch, problem.m, problem.n, problem.k))
    ns, ps = (flops * FLOP_NS, 0) if isinstance(flops, int) else (0.0, flops * int(FLOP_NS * 1000))
    return Printed(text, call, pointers.sources(), title, ns, ps)


def _block_function(kernel: Kernel, s: Contract, pointers: Pointers) -> str:
    """`NAME_block(args, batch, r0, r1, c0, c1)`: the body for these rows and columns of one product."""
    body, ranges = _columns(s, *(E.sym(name, 0) for name in ("c0", "c1")))
    moved: dict[E.Expr, E.IntLike] = {}
    row = _counted("row", s.axes.rows, moved)
    _counted("batch", s.axes.batch, moved)
    body = substitute(body, moved)
    if isinstance(row, E.Sym):
        body = (Loop(row, product(n for _, n in s.axes.rows), "serial", body),)
        ranges[row.name] = (E.sym("r0", 0), E.sym("r1", 0))
    head = f"{NAME}_block(char** args, long batch, long r0, long r1, long c0, long c1)"
    return Function(kernel, pointers).function(head, body, ranges, ("batch", "r0", "r1", "c0", "c1"))


def _counted(name: str, axes: Role, moved: dict[E.Expr, E.IntLike]) -> E.Expr:
    """One axis that counts through all values of `axes`, which `moved` then maps to it."""
    sizes = [n for _, n in axes]
    whole = ir.counter(name, product(sizes))
    moved.update({axis: at for (axis, _), at in zip(axes, ir.split_position(whole, sizes), strict=True)})
    return whole


def _columns(s: Contract, first: E.Expr, last: E.Expr) -> tuple[Block, dict[str, tuple[E.Expr, E.Expr]]]:
    """The loops over columns first..last-1, in runs of the innermost column axis, and the range of each loop."""
    if not s.axes.columns:
        return s.body, {}
    *outer, (column, n) = s.axes.columns
    if not outer:
        return (Loop(column, n, "vector", s.body),), {column.name: (first, last)}
    moved: dict[E.Expr, E.IntLike] = {}
    run = _counted("run", tuple(outer), moved)
    assert isinstance(run, E.Sym)
    loop = Loop(run, product(m for _, m in outer), "serial", (Loop(column, n, "vector", substitute(s.body, moved)),))
    inside = (E.maximum(first - run * n, 0), E.minimum(last - run * n, n))
    return (loop,), {run.name: (E.floordiv(first, n), E.ceildiv(last, n)), column.name: inside}
