"""Unbacked symbols: numbers that the program computes from data, `x.nonzero().shape[0]` or `n.item()`.

No guard can check them before a call, so no decision uses their value at capture. A decision over them is proved from known
facts (bounds, assertions of the program with `torch._check`), or raises `GuardOnDataDependentSymNode`. If the decision is the
library's own (a meta rule that checks whether a size is 1), the likely answer is used and recorded as an assumption, which is
checked when the symbols are known: see `fxir.region.data_dependent`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from eager.base.fake import DataDependentError
from fxir.expr.rules import Expr, Sym, evaluate, least, prove, substitute

FEW: Final = 2  # the value of an unbacked symbol for likely answers


class GuardOnDataDependentSymNode(DataDependentError):
    """A decision depends on a number that is known only when the program runs."""


class AssumptionFailed(RuntimeError):
    """An assumption of a compiled program does not hold in this call: the call must run uncompiled."""


@dataclass(slots=True)
class Unbacked:
    """The unbacked symbols of one environment. facts: expressions that are never negative. assumed: relations to check."""

    symbols: set[Sym] = field(default_factory=set)
    facts: list[Expr] = field(default_factory=list)
    assumed: list[Any] = field(default_factory=list)
    _assuming: bool = False
    _alike: bool = False

    def concerns(self, *expressions: Any) -> bool:
        """Whether any of these expressions has an unbacked symbol."""
        return bool(self.symbols) and any(not self.symbols.isdisjoint(e.symbols) for e in expressions if hasattr(e, "symbols"))

    @contextmanager
    def assuming(self, alike: bool = False) -> Iterator[None]:
        """In the block, decisions without a proof use the likely answer. alike: equality of sizes is likely."""
        before = self._assuming, self._alike
        self._assuming, self._alike = True, alike
        try:
            yield
        finally:
            self._assuming, self._alike = before

    def refusal(self, what: str) -> GuardOnDataDependentSymNode:
        """The error for a decision that depends on data, in torch's words."""
        return GuardOnDataDependentSymNode(
            f"Could not guard on data-dependent expression {what} (unhinted: {what}). State a fact about it with torch._check(...)"
        )

    def learn(self, op: str, a: Expr, b: Expr) -> None:
        """Record that `a op b` holds."""
        if op in ("<", "=="):
            self.facts.append(b - a - (op == "<"))
        if op == "<=":
            self.facts.append(b - a)
        if op == "==":
            self.facts.append(a - b)

    def prove(self, op: str, a: Expr, b: Expr) -> bool | None:
        """Whether `a op b` follows from one fact and the bounds of the symbols."""
        if op in ("==", "!="):
            equal = prove("==", a, b)
            if equal is None and (self._never_negative(b - a - 1) or self._never_negative(a - b - 1)):
                equal = False
            if equal is None and self._never_negative(b - a) and self._never_negative(a - b):
                equal = True
            return equal if equal is None or op == "==" else not equal
        d = b - a - (op == "<")
        if self._never_negative(d):
            return True
        return False if self._never_negative(-d - 1) else None

    def _never_negative(self, d: Expr) -> bool:
        return least(d) >= 0 or any(least(d - f) >= 0 for f in self.facts)

    def likely(self, op: str, a: Expr, b: Expr, hints: Mapping[Any, Any]) -> bool | None:
        """The likely truth of `a op b`, or None outside `assuming`. Sizes are likely to differ, and an unbacked number is
        likely small.
        """
        if not self._assuming:
            return None
        if op in ("==", "!="):
            one = (a in self.symbols and b.hi < FEW) or (b in self.symbols and a.hi < FEW)  # whether the comparison is "is this size 1?"
            alike = self._alike and not one
            return alike == (op == "==")
        few = dict.fromkeys(self.symbols, FEW)
        left, right = evaluate(substitute(a, few), hints), evaluate(substitute(b, few), hints)
        return left < right if op == "<" else left <= right
