"""The sizes of a call: values of a graph's symbols, and values that its plan and kernels compute from them.

Owns their numbering and the function that computes them, once per call.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from fxir.expr import rules as E
from inductor.artifact.format import ArtifactPlan
from inductor.cpp.functions import SIZES, declared
from inductor.cpp.values import index_source

__all__ = ["Sizes"]


class Sizes:
    """Numbers of expressions, the symbols first."""

    def __init__(self, symbols: Sequence[E.Sym]) -> None:
        self._first = len(symbols)
        self._numbers: dict[E.Expr, int] = {s: i for i, s in enumerate(symbols)}

    def number(self, e: E.Expr) -> int:
        """The index of its value in the sizes of a call."""
        return self._numbers.setdefault(e, len(self._numbers))

    def derived(self, plan: ArtifactPlan) -> tuple[E.Expr, ...]:
        """All expressions beyond the symbols: the numbered expressions, and the expressions in `plan`."""
        for e in _expressions(plan):
            self.number(e)
        return tuple(self._numbers)[self._first :]

    def function(self, derived: Sequence[E.Expr]) -> str:
        """`fj_sizes`, which computes the derived sizes from the symbols."""
        values = [index_source(e, {}) for e in derived]
        lines = [line.replace(SIZES, "sizes") for line in declared(values)]
        lines += [f"sizes[{self._first + i}] = {value};" for i, value in enumerate(values)]
        body = "".join(f"  {line}\n" for line in lines)
        return f'extern "C" __attribute__((visibility("default"))) void fj_sizes(i64* sizes) {{\n{body}}}\n'


def _expressions(x: Any) -> Iterator[E.Expr]:
    if isinstance(x, E.Expr):
        yield x
    elif isinstance(x, tuple):
        for item in x:
            yield from _expressions(item)
    elif is_dataclass(x):
        for f in fields(x):
            yield from _expressions(getattr(x, f.name))
