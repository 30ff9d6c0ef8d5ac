"""Loop trees as C++: one function a kernel, a C loop for every loop.

Owns statements; `inductor.cpp.values` owns the C++ form of operations. Values are computed where they are used, one constant
for every distinct value of a statement. A parallel loop at the root becomes a separate function over begin..end, which `LAUNCH`
starts; inside of other loops it runs on one thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from fxir.expr import rules as E
from inductor.cpp.values import TYPE, index_source, literal, operation, size_source
from inductor.ir import definitions as ir
from inductor.loops.combine import COMBINES
from inductor.loops.tree import (
    Accumulate,
    Allocate,
    Block,
    Guard,
    Kernel,
    Local,
    Loop,
    Place,
    Statement,
    Store,
    places_of,
    values_of,
    walk,
)

LAUNCH: Final = "FJ_LAUNCH"  # LAUNCH(function, bufs, count): runs function(bufs, begin, end) over parts of 0..count
_SIZES: Final = "FJ_SIZES"  # the values of the graph's symbols


def print_function(kernel: Kernel, name: str, order: Sequence[str], symbols: Sequence[E.Sym] = ()) -> str:
    """The kernel as `void name(char** bufs)`, after the functions of its parallel loops.

    order: the names of the buffers as they lie in `bufs`. symbols: the sizes that the kernel may name, as they lie in
    `FJ_SIZES`.
    """
    numbers = {buffer: k for k, buffer in enumerate(order)}
    parts: list[str] = []
    calls: list[str] = []
    for k, s in enumerate(kernel.body):
        if isinstance(s, Loop) and s.kind == "parallel":
            part = f"{name}_{k}"
            parts.append(_Printer(kernel, numbers, symbols).function(part, s))
            calls.append(f"  {LAUNCH}({part}, bufs, {size_source(s.extent)});\n")
        else:
            calls.append(_Printer(kernel, numbers, symbols).block_text((s,)))
    sizes = "".join(f"  const i64 {s.name} = {_SIZES}[{k}];\n" for k, s in enumerate(symbols))
    return "".join(parts) + f"static void {name}(char** bufs) {{\n{sizes}{''.join(calls)}}}\n"


class _Printer:
    """Prints statements. locals: memory on the stack by name; counter: of the constants that hold values."""

    def __init__(self, kernel: Kernel, numbers: Mapping[str, int], symbols: Sequence[E.Sym]) -> None:
        self.dtypes, self.numbers, self.symbols = kernel.dtypes, numbers, symbols
        self.locals: dict[str, Local] = {}
        self.counter = 0

    def function(self, name: str, loop: Loop) -> str:
        """A parallel loop as a function over a part of its iterations."""
        sizes = "".join(f"  const i64 {s.name} = {_SIZES}[{k}];\n" for k, s in enumerate(self.symbols))
        axis = loop.axis.name
        body = "".join(f"{line}\n" for line in self.block(loop.body, 2))
        return (
            f"static void {name}(char** bufs, long begin, long end) {{\n{sizes}{self._pointers(loop.body)}"
            f"  for (i64 {axis} = begin; {axis} < end; {axis}++) {{\n{body}  }}\n}}\n"
        )

    def block_text(self, block: Block) -> str:
        """A block at the root, in braces with the pointers that it uses."""
        lines = "".join(f"{line}\n" for line in self.block(block, 2))
        return f"  {{\n{self._pointers(block, 2)}{lines}  }}\n"

    def _pointers(self, block: Block, depth: int = 1) -> str:
        """Declarations of pointers to the buffers that a block touches. Buffers do not overlap."""
        names: dict[str, bool] = {}
        for s in walk(block):
            for p in places_of(s):
                names[p.name] = True
            for v in ir.walk(values_of(s)):
                if isinstance(v, ir.Load):
                    names.setdefault(v.buffer, False)
        pad = "  " * depth
        out = []
        for name, is_written in names.items():
            if name in self.numbers:
                pointer = f"{TYPE[self.dtypes[name]]}*"
                out.append(f"{pad}{'' if is_written else 'const '}{pointer} __restrict__ {name} = ({pointer})bufs[{self.numbers[name]}];\n")
        return "".join(out)

    def block(self, block: Block, depth: int) -> Iterator[str]:
        for s in block:
            yield from self.statement(s, depth)

    def statement(self, s: Statement, depth: int) -> Iterator[str]:
        pad = "  " * depth
        match s:
            case Loop():
                yield from self.loop(s, depth)
            case Guard():
                lines, (condition,) = self.values((s.condition,), pad)
                yield from lines
                yield f"{pad}if ({condition}) {{"
                yield from self.block(s.body, depth + 1)
                yield f"{pad}}}"
            case Allocate():
                self.locals[s.local.name] = s.local
                size = f"[{s.local.size}]" if s.local.size > 1 else ""
                yield f"{pad}{TYPE[s.local.dtype]} {s.local.name}{size};"
                yield from self.block(s.body, depth)
            case Store():
                yield from self.store((s.place,), (s.value,), pad)
            case Accumulate():
                old = tuple(ir.load(p.name, p.index, v.dtype, None, p.indirect) for p, v in zip(s.places, s.values, strict=True))
                yield from self.store(s.places, COMBINES[s.combine].merge(old, s.values), pad)

    def loop(self, s: Loop, depth: int) -> Iterator[str]:
        pad, axis = "  " * depth, s.axis.name
        if s.kind == "vector":
            yield f"{pad}#pragma omp simd"
        elif s.kind == "unrolled":
            yield f"{pad}#pragma GCC unroll {s.extent}"
        yield f"{pad}for (i64 {axis} = 0; {axis} < {size_source(s.extent)}; {axis}++) {{"
        yield from self.block(s.body, depth + 1)
        yield f"{pad}}}"

    def store(self, places: Sequence[Place], values: Sequence[ir.Value], pad: str) -> Iterator[str]:
        """All values are computed before the first is stored: a state may read its own components."""
        gathered = [v for p in places for _, v in p.indirect]
        lines, names = self.values((*values, *gathered), pad)
        yield from lines
        indices = iter(names[len(values) :])
        for place, name in zip(places, names, strict=False):
            bound = {s.name: next(indices) for s, _ in place.indirect}
            yield f"{pad}{self.element(place.name, place.index, bound)} = {name};"

    def element(self, name: str, index: E.Expr, bound: dict[str, str]) -> str:
        """One element of a buffer or a local as an lvalue."""
        if name in self.locals and self.locals[name].size == 1:
            return name
        return f"{name}[{index_source(index, bound)}]"

    def values(self, roots: Sequence[ir.Value], pad: str) -> tuple[list[str], list[str]]:
        """Lines that compute `roots`, and the name or literal of each."""
        lines: list[str] = []
        names: dict[ir.Value, str] = {}
        for v in ir.walk(roots):
            if isinstance(v, ir.Const):
                names[v] = literal(v.value, v.dtype)
                continue
            names[v] = f"t{self.counter}"
            self.counter += 1
            lines.append(f"{pad}const {TYPE[v.dtype]} {names[v]} = {self.source(v, names)};")
        return lines, [names[v] for v in roots]

    def source(self, v: ir.Value, names: Mapping[ir.Value, str]) -> str:
        """The expression of one value over the names of its operands."""
        match v:
            case ir.Index():
                return index_source(v.expr, {})
            case ir.Load():
                text = self.element(v.buffer, v.index, {s.name: names[x] for s, x in v.indirect})
                return text if v.mask is None else f"{names[v.mask]} ? {text} : {literal(0, v.dtype)}"
            case ir.Op():
                return operation(v, [names[a] for a in v.args])
        raise TypeError(f"{type(v).__name__} is not a value of loops")
