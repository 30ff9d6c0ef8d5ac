"""Known facts about the symbols of a graph during lowering, for view rules and other shape arithmetic.

Owns `Facts`, an environment of `eager.SymInt`s that decides only by proof: from the symbols' bounds, or from the relations of
the capture, which are guarded. Any other decision would need a new guard, and a graph found in the cache is not lowered again
to create it; such a decision raises `NeedsStatic`. Facts are independent of the IR.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from eager.base.symint import SymInt
from fxir.expr import rules as E
from fxir.expr.rules import least, prove
from fxir.symbols.shapes import NeedsStatic, Relation, map_ints
from inductor.ir.sizes import nominal, plain

__all__ = ["Facts"]

_ONLY_INTS: Final = frozenset((int,))


class Facts:
    """relations: true of every call. what: the subject of lowering, for error messages."""

    def __init__(self, relations: Iterable[Relation] = ()) -> None:
        self.what = "the graph"
        self._unequal: list[E.Expr] = []  # expressions that are not 0
        self._at_most_0: dict[E.Expr, None] = {}  # an ordered set: loops over sizes decide the same relations repeatedly
        self._proved: dict[E.Expr, bool] = {}  # memoised results of `_never_positive`
        for r in relations:
            d = r.left - r.right
            if r.op == "!=":
                self._unequal.append(d)
            else:
                self._at_most_0[d + 1 if r.op == "<" else d] = None
                if r.op == "==":
                    self._at_most_0[-d] = None

    # -- in and out --------------------------------------------------------------------------------------------
    def lift(self, x: Any) -> Any:
        """`x` with every expression in it as a SymInt of this environment."""
        if type(x) is int or (type(x) is tuple and _ONLY_INTS.issuperset(map(type, x))):
            return x
        return self.wrap(x) if isinstance(x, E.Expr) else map_ints(x, self.lift)

    def lower(self, x: Any) -> Any:
        """`x` with every SymInt in it as its expression, or an int if it is constant."""
        return plain(x.expr) if isinstance(x, SymInt) else map_ints(x, self.lower)

    # -- as the environment of SymInts -------------------------------------------------------------------------
    def wrap(self, expr: E.IntLike) -> int | SymInt:
        n = plain(E.as_expr(expr))
        return n if isinstance(n, int) else SymInt(n, nominal(n), self)

    def simplify(self, expr: E.Expr) -> E.Expr:
        return expr

    def decide(self, op: str, left: E.IntLike, right: E.IntLike) -> bool:
        a, b = E.as_expr(left), E.as_expr(right)
        proved = prove(op, a, b)
        if proved is None:
            proved = self._follows(op, a - b)
        if proved is None:
            raise self._refusal(a, b, f"{a!r} {op} {b!r}")
        return proved

    floats = None  # floats are tensors in a graph

    def specialise(self, expr: E.IntLike) -> int:
        e = E.as_expr(expr)
        if isinstance(e, E.Int):
            return e.value
        raise self._refusal(e, e, f"the value of {e!r}")

    def stretches(self, n: E.IntLike, m: E.IntLike | None) -> bool:
        """Whether a size `n` that broadcasts to `m` (None: unknown) is 1. An expression is not the constant 1, but its value may be 1."""
        if not isinstance(n, E.Expr) or n is m:
            return n == 1
        return self.decide("==", n, 1)

    # -- reasoning ---------------------------------------------------------------------------------------------
    def _follows(self, op: str, d: E.Expr) -> bool | None:
        """Whether `d op 0` follows from the relations."""
        if op in ("<", "<="):
            low = d + 1 if op == "<" else d
            return True if self._never_positive(low) else False if self._never_positive(1 - low) else None
        if self._never_positive(d) and self._never_positive(-d):
            return op == "=="
        differs = any(u is d or u is -d for u in self._unequal) or self._never_positive(d + 1) or self._never_positive(1 - d)
        return (op == "!=") if differs else None

    def _never_positive(self, d: E.Expr) -> bool:
        """Whether some known expression is at most 0 and at least `d`. An expression that shares no symbol with `d` implies nothing."""
        found = self._proved.get(d)
        if found is None:
            found = any(least(known - d) >= 0 for known in self._at_most_0 if not known.symbols.isdisjoint(d.symbols))
            self._proved[d] = found
        return found

    def _refusal(self, a: E.Expr, b: E.Expr, asked: str) -> NeedsStatic:
        return NeedsStatic(_symbols((a, b)), f"{self.what} depends on {asked}")


def _symbols(expressions: Sequence[E.Expr]) -> frozenset[E.Sym]:
    return frozenset().union(*(e.symbols for e in expressions))
