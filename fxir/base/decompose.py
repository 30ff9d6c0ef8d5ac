"""Which ops a traced graph may hold, and the function that replaces each other op.

Owns only the choice: `fxir.trace.trace` applies it while ops are called, so that the calls inside a decomposition are traced
(and decomposed) in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from eager.optable.registry import Kind
from eager.optable.table import Op


@dataclass(frozen=True, slots=True)
class Decompositions:
    """Composite ops are replaced by their own decomposition, except those in `keep`.

    keep: names of ops that a backend compiles without decomposing them. rules: decompositions by op name, which precede an op's
    own (also for ops that are not composites).
    """

    keep: frozenset[str] = frozenset()
    rules: Mapping[str, Callable[..., Any]] = field(default_factory=lambda: MappingProxyType({}))

    def rule(self, op: Op) -> Callable[..., Any] | None:
        """The function to call instead of `op`, or None to record the op itself."""
        if op.name in self.rules:
            return self.rules[op.name]
        if op.kind is Kind.COMPOSITE and op.name not in self.keep:
            return op.decompose
        return None


DEFAULT: Final = Decompositions()
