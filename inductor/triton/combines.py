"""Merges of states of reductions, printed from the same data as every target's (`inductor.loops.reductions`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from eager.base.dtypes import dtype
from inductor.ir import definitions as ir
from inductor.loops.reductions import COMBINES
from inductor.triton.helpers import Helpers
from inductor.triton.values import literal, operation


class Combines:
    """Prints reductions of one kernel. functions: the source of each Triton function that merges two states, by name.

    name: a new name. line: adds a line to the kernel. helpers: of the kernel.
    """

    def __init__(self, name: Callable[[], str], line: Callable[[str], None], helpers: Helpers) -> None:
        self.name, self.line, self.helpers = name, line, helpers
        self.functions: dict[str, str] = {}

    def reduce(self, combine: str, components: Sequence[dtype], names: Sequence[str], dim: int) -> list[str]:
        """The names of the results of a reduction along one axis, which keeps size 1."""
        results = [self.name() for _ in names]
        if combine in ("sum", "wide_sum") and components[0].itemsize >= 4:
            self.line(f"{results[0]} = tl.sum({names[0]}, {dim}, keep_dims=True)")
            return results
        fn = self.function(combine, components)
        self.line(f"{', '.join(results)} = tl.reduce({_together(names)}, {dim}, {fn}, keep_dims=True)")
        return results

    def scan(self, combine: str, components: Sequence[dtype], names: Sequence[str], dim: int) -> list[str]:
        """The names of the running results along one axis."""
        results = [self.name() for _ in names]
        self.line(f"{', '.join(results)} = tl.associative_scan({_together(names)}, {dim}, {self.function(combine, components)})")
        return results

    def function(self, combine: str, components: Sequence[dtype]) -> str:
        """The name of the Triton function that merges two states."""
        fn = f"combine_{combine}_{'_'.join(t.name for t in components)}"
        if fn not in self.functions:
            self.functions[fn] = _merging(fn, combine, components, self.helpers)
        return fn

    def merged(self, combine: str, components: Sequence[dtype], a: Sequence[str], b: Sequence[str]) -> list[str]:
        """The names of the merge of two states."""

        def hold(text: str) -> str:
            name = self.name()
            self.line(f"{name} = {text}")
            return name

        return _merge(combine, components, [*a, *b], hold, self.helpers)


def _together(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


def _merge(
    combine: str, components: Sequence[dtype], names: Sequence[str], hold: Callable[[str], str], helpers: Helpers
) -> list[str]:
    """The names of the merge of two states, whose components have names. hold: gives an expression a name."""
    a, b = (tuple(ir.load(f"{side}{k}", 0, t) for k, t in enumerate(components)) for side in "ab")
    known: dict[ir.Value, str] = dict(zip([*a, *b], names, strict=True))
    results = COMBINES[combine].merge(a, b)
    for v in ir.walk(results):
        if isinstance(v, ir.Const):
            known[v] = literal(v.value, v.dtype)
        elif isinstance(v, ir.Op):
            known[v] = hold(operation(v, [known[x] for x in v.args], helpers))
    return [known[v] for v in results]


def _merging(fn: str, combine: str, components: Sequence[dtype], helpers: Helpers) -> str:
    """A Triton function that merges two states of a reduction."""
    lines: list[str] = []

    def hold(text: str) -> str:
        lines.append(f"    t{len(lines)} = {text}\n")
        return f"t{len(lines) - 1}"

    names = [f"{side}{k}" for side in "ab" for k in range(len(components))]
    results = _merge(combine, components, names, hold, helpers)
    return f"@triton.jit\ndef {fn}({', '.join(names)}):\n{''.join(lines)}    return {', '.join(results)}\n"
