"""Symbolic shapes: symbols with their values at capture, and the decisions made about them.

Owns `ShapeEnv` (one per capture; the `env` of every `eager.SymInt` in it), `Relation` (the record of a decision, with the
user's line), `SymbolSource` (the input that a graph's symbol is read from), and `NeedsStatic` (raised by a stage that needs
plain ints). `dynamo` turns relations into guards.

Unbacked symbols (`Unbacked`) are numbers that the program computes from data, `x.nonzero().shape[0]` or `n.item()`. No guard can check
them before a call, so no decision uses their value at capture. A decision over them is proved from known facts (bounds, assertions of
the program with `torch._check`), or raises `GuardOnDataDependentSymNode`. If the decision is the library's own (a meta rule that checks
whether a size is 1), the likely answer is used and recorded as an assumption, which is checked when the symbols are known: see
`fxir.region.data_dependent`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from math import gcd
from typing import Any, Final, Literal

from eager.base.device import device
from eager.base.dtypes import dtype
from eager.base.records import dataclass
from eager.base.spec import DataDependentError, TensorSpec
from eager.base.symfloat import SymFloat
from eager.base.symint import SymInt
from fxir.base.origin import Origin
from fxir.expr.printing import to_python
from fxir.expr.rules import Expr, Int, IntLike, Sym, as_expr, evaluate, least, linear, prove, substitute, sym, terms_of
from fxir.symbols.floats import FloatExpr, Floats, bound_float

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


MOST: Final = 1 << 62  # upper bound of a symbol unless the user gave one


class NeedsStatic(Exception):
    """A stage cannot compile these symbols; it can compile their captured values as plain ints."""

    def __init__(self, symbols: Iterable[Sym], why: str) -> None:
        self.symbols = frozenset(symbols)
        self.why = why
        super().__init__(f"{why} (symbols: {', '.join(sorted(s.name for s in self.symbols)) or 'none'})")


@dataclass(frozen=True, slots=True)
class SymbolSource:
    """The place in a graph's inputs that holds a symbol: a size, stride or the storage offset of placeholder `input`, or its
    value.

    dim: of a size or stride; otherwise unused.
    """

    kind: Literal["size", "stride", "offset", "int", "float"]
    input: int
    dim: int = 0

    @property
    def is_number(self) -> bool:
        """Whether the placeholder itself is a number, not a tensor."""
        return self.kind in ("int", "float")

    def read(self, inputs: Any) -> Any:
        """The value in these graph inputs (tensors; numbers for kinds "int" and "float")."""
        x = inputs[self.input]
        if self.kind == "size":
            return x.shape[self.dim]
        if self.kind == "stride":
            return x.stride()[self.dim]
        return x.storage_offset() if self.kind == "offset" else x

    def text(self, name: str) -> str:
        """Python source that reads the value; `name` is the placeholder's."""
        if self.kind == "size":
            return f"{name}.shape[{self.dim}]"
        if self.kind == "stride":
            return f"{name}.stride()[{self.dim}]"
        return f"{name}.storage_offset()" if self.kind == "offset" else name


@dataclass(frozen=True, slots=True)
class Relation:
    """A fact that the program relies on: `left op right`, op one of == != < <=. origin: the line that made the decision."""

    op: str
    left: Expr
    right: Expr
    origin: Origin | None = None

    def __str__(self) -> str:
        return f"{to_python(self.left)} {self.op} {to_python(self.right)}"

    @property
    def symbols(self) -> frozenset[Sym]:
        return self.left.symbols | self.right.symbols

    def holds(self, values: Mapping[Any, int]) -> bool:
        """Whether the relation holds for these values of the symbols."""
        return bool(_TRUTH[self.op](evaluate(self.left, values), evaluate(self.right, values)))


_TRUTH: Final[dict[str, Callable[[int, int], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
}
_NOT: Final = {"==": "!=", "!=": "=="}


@dataclass(frozen=True, slots=True)
class Symbol:
    """The record of one symbol: its value at capture, and its source, by which dynamo guards it."""

    hint: int | float
    source: Any
    origin: Origin | None


class LateDecision(RuntimeError):
    """A decision about a symbol is needed after the guards of its capture were made."""


@dataclass(slots=True)
class ShapeEnv:
    """The symbols of one capture and the decisions made about them.

    origin: returns the user's line at the time of a decision. relations: the decisions in order, without repeats.
    closed: True once the guards are made; from then on a decision that cannot be proved raises LateDecision.
    """

    origin: Callable[[], Origin | None] = lambda: None
    symbols: dict[Sym, Symbol] = field(default_factory=dict)
    relations: list[Relation] = field(default_factory=list)
    closed: bool = False
    hints: dict[Any, Any] = field(default_factory=dict)  # symbol -> value at capture
    _values: dict[Expr, int] = field(default_factory=dict)  # values of expressions for `hints`, which never change
    _known: dict[tuple[str, Expr], bool] = field(default_factory=dict)
    _proved: dict[tuple[str, Expr, Expr], bool | None] = field(default_factory=dict)  # proofs that use no decision
    _equal: dict[Sym, Expr] = field(default_factory=dict)
    unbacked: Unbacked = field(default_factory=Unbacked)
    _floats: Floats | None = None
    version: int = 0  # grows when a symbol is found to equal an expression: normal forms made earlier may differ from later ones

    # -- making ------------------------------------------------------------------------------------------------
    def create(self, hint: int, source: Any, lo: int = 2, hi: int = MOST) -> SymInt:
        """A new symbol in lo..hi (lo < hi) with the current value `hint`."""
        s = sym(f"s{len(self.symbols)}", lo, hi)
        assert isinstance(s, Sym)
        self.symbols[s] = Symbol(hint, source, self.origin())
        self.hints[s] = hint
        return SymInt(s, hint, self)

    def create_float(self, hint: float, source: Any) -> SymFloat:
        """A new symbol for a float argument with the current value `hint`."""
        s = sym(f"f{len(self.symbols)}")
        assert isinstance(s, Sym)
        self.symbols[s] = Symbol(hint, source, self.origin())
        self.hints[s] = hint
        return self.floats.symbol(s, hint)

    def create_unbacked(self, hint: int | float, lo: int = -MOST, hi: int = MOST) -> SymInt | SymFloat:
        """A new symbol for a number that the program computes from data: its value changes, and no guard can check it. See
        `fxir.symbols.shapes`.
        """
        s = sym(f"u{len(self.symbols)}", lo, hi)
        assert isinstance(s, Sym)
        self.symbols[s] = Symbol(hint, None, self.origin())
        self.hints[s] = hint
        self.unbacked.symbols.add(s)
        return self.argument(s)

    def argument(self, s: Sym) -> SymInt | SymFloat:
        """The symbol `s` as a SymInt or SymFloat."""
        hint = self.hints[s]
        return self.floats.symbol(s, hint) if isinstance(hint, float) else SymInt(s, hint, self)

    @property
    def floats(self) -> Floats:
        """The symbolic floats of this capture."""
        if self._floats is None:
            self._floats = Floats(self)
        return self._floats

    def wrap(self, expr: IntLike) -> int | SymInt:
        """The value of an expression: an int if it is constant, else a SymInt."""
        e = self.simplify(as_expr(expr))
        if isinstance(e, Int):
            return e.value
        value = self._values.get(e)
        if value is None:
            value = self._values[e] = evaluate(e, self.hints)
        return SymInt(e, value, self)

    def simplify(self, expr: Expr) -> Expr:
        """`expr` with each symbol that is known to equal an expression replaced by that expression."""
        if self._equal and not self._equal.keys().isdisjoint(expr.symbols):
            return substitute(expr, self._equal)
        return expr

    # -- deciding ----------------------------------------------------------------------------------------------
    def decide(self, op: str, left: IntLike, right: IntLike) -> bool:
        """Whether `left op right` (== != < <=) holds: proved if possible, else decided by the hints and recorded."""
        a, b = self.simplify(as_expr(left)), self.simplify(as_expr(right))
        asked = (op, a, b)
        proved = self._proved[asked] if asked in self._proved else self._proved.setdefault(asked, prove(op, a, b))
        if proved is not None:
            return proved
        key = (op, a - b)
        found = self._known.get(key)
        if found is None and self.unbacked.concerns(a, b):
            return self._decide_data(op, a, b)
        if found is None:
            found = _TRUTH[op](evaluate(a, self.hints), evaluate(b, self.hints))
            self._note(Relation(op, a, b) if found else _negated(op, a, b))
            self._known[key] = found
        return found

    def specialise(self, expr: IntLike) -> int:
        """The current value of `expr`, which becomes a constant of the capture."""
        e = self.simplify(as_expr(expr))
        value = evaluate(e, self.hints)
        if not isinstance(e, Int):
            if self.unbacked.concerns(e):
                raise self.unbacked.refusal(f"the value of {to_python(e)}")
            self.decide("==", e, value)
        return value

    def _decide_data(self, op: str, a: Expr, b: Expr) -> bool:
        """`decide` over unbacked symbols: proved from known facts, else the likely answer if the caller allows it.

        Raises: GuardOnDataDependentSymNode if there is no proof and no likely answer is allowed.
        """
        proved = self.unbacked.prove(op, a, b)
        if proved is not None:
            return proved
        found = self.unbacked.likely(op, a, b, self.hints)
        r = Relation(op, a, b)
        if found is None:
            raise self.unbacked.refusal(str(r))
        self.assume(r if found else _negated(op, a, b))
        return found

    def assume(self, r: Relation) -> None:
        """Assume that `r`, over unbacked symbols, holds. It is checked in each call, when the values are known."""
        self.refuse_late(str(r))
        self.unbacked.assumed.append(Relation(r.op, r.left, r.right, self.origin()))
        self.unbacked.learn(r.op, r.left, r.right)
        for s, value in ((r.left, r.right), (r.right, r.left)):
            if r.op == "==" and s in self.unbacked.symbols and s not in value.symbols:
                assert isinstance(s, Sym)
                self._equal = {k: substitute(v, {s: value}) for k, v in self._equal.items()} | {s: value}
                self.version += 1
                self._known.clear()
                break

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """If an exception leaves the block, discard the assumptions made in it."""
        unbacked, equal = self.unbacked, self._equal
        counts = len(unbacked.assumed), len(unbacked.facts)
        try:
            yield
        except BaseException:
            del unbacked.assumed[counts[0] :], unbacked.facts[counts[1] :]
            if self._equal is not equal and unbacked.symbols:
                self._equal = {s: e for s, e in self._equal.items() if s in equal or s not in unbacked.symbols}
                self._known.clear()
            raise

    def _note(self, r: Relation) -> None:
        self.refuse_late(str(r))
        self.relations.append(Relation(r.op, r.left, r.right, self.origin()))
        if r.op == "==":
            solved = _solve(r.left - r.right)
            if solved is not None:
                s, value = solved
                self._equal = {k: substitute(v, {s: value}) for k, v in self._equal.items()} | {s: value}
                self.version += 1
                self._known.clear()  # its keys use the symbol that was replaced

    def refuse_late(self, what: str) -> None:
        """Raises LateDecision if the guards are already made."""
        if self.closed:
            raise LateDecision(f"shapes: {what} was decided after the guards were made")

    # -- queries -----------------------------------------------------------------------------------------------
    def hint(self, expr: IntLike) -> int:
        """The value of `expr` at capture, without a guard: for messages and heuristics only."""
        return evaluate(expr, self.hints)


def _negated(op: str, a: Expr, b: Expr) -> Relation:
    if op in _NOT:
        return Relation(_NOT[op], a, b)
    return Relation("<=" if op == "<" else "<", b, a)


def _solve(d: Expr) -> tuple[Sym, Expr] | None:
    """(s, value) such that d == 0 if and only if s == value; s is the youngest symbol for which a value without s exists."""
    const, terms = terms_of(d)
    shared = gcd(const, *(c for _, c in terms))
    if shared > 1:
        d = linear(const // shared, [(t, c // shared) for t, c in terms])
        const, terms = terms_of(d)
    found: tuple[Sym, Expr] | None = None
    for t, c in terms:
        if not isinstance(t, Sym) or abs(c) != 1 or any(t in u.symbols for u, _ in terms if u is not t):
            continue
        if found is None or _age(t) > _age(found[0]):
            found = t, (t - d if c == 1 else t + d)
    if found is None and len(terms) == 1 and isinstance(terms[0][0], Sym):
        ((t, c),) = terms
        assert isinstance(t, Sym)
        return (t, as_expr(-const // c)) if const % c == 0 else None
    return found


def _age(s: Sym) -> int:
    return int(s.name[1:])


# -- values with symbols in them ---------------------------------------------------------------------------------
def plain(x: Any) -> Any:
    """`x` with every SymInt in it (in containers, in specs) as its simplified expression; never a constant Expr."""
    if isinstance(x, SymInt):
        e = x.env.simplify(x.expr)
        return e.value if isinstance(e, Int) else e
    if isinstance(x, SymFloat):
        assert isinstance(x.env, Floats)
        return x.env.simplify(x.expr)
    return map_ints(x, plain)


def lifted(x: Any, env: ShapeEnv | None) -> Any:
    """`x` with every Expr in it as a SymInt of `env` (or an int), so that meta rules can compute with it."""
    if env is None:
        return x
    if isinstance(x, FloatExpr):
        return env.floats.wrap(x)
    return env.wrap(x) if isinstance(x, Expr) else map_ints(x, lambda i: lifted(i, env))


def simplified(x: Any, env: ShapeEnv) -> Any:
    """`x` with every Expr in it simplified by the equalities in `env`; never a constant Expr."""
    if isinstance(x, Expr):
        e = env.simplify(x)
        return e.value if isinstance(e, Int) else e
    if isinstance(x, FloatExpr):
        return env.floats.simplify(x)
    return map_ints(x, lambda i: simplified(i, env))


def bound(x: Any, values: Mapping[Sym, Any]) -> Any:
    """`x` with every Expr in it computed from `values` of the symbols: ints, or SymInts of one environment."""
    if isinstance(x, FloatExpr):
        return bound_float(x, values)
    if not isinstance(x, Expr):
        return map_ints(x, lambda i: bound(i, values))
    env = next((v.env for s in x.symbols if isinstance(v := values[s], SymInt)), None)
    if env is None:
        return evaluate(x, values)
    return env.wrap(substitute(x, {s: v.expr if isinstance(v := values[s], SymInt) else v for s in x.symbols}))


def symbols_in(x: Any) -> frozenset[Sym]:
    """The symbols of every Expr in `x`."""
    found: set[Sym] = set()

    def look(i: Any) -> Any:
        if isinstance(i, (Expr, FloatExpr)):
            found.update(i.symbols)
            return i
        return map_ints(i, look)

    look(x)
    return frozenset(found)


def environment_of(x: Any) -> ShapeEnv | None:
    """The environment of the first SymInt in `x`."""
    if isinstance(x, SymInt):
        assert isinstance(x.env, ShapeEnv)
        return x.env
    if isinstance(x, SymFloat):
        assert isinstance(x.env, Floats) and isinstance(x.env.shapes, ShapeEnv)
        return x.env.shapes
    found: list[ShapeEnv] = []

    def look(i: Any) -> Any:
        if not found and (env := environment_of(i)) is not None:
            found.append(env)
        return i

    map_ints(x, look)
    return found[0] if found else None


_LEAVES: Final = frozenset((int, bool, float, str, type(None), dtype, device))  # the most frequent types, checked first


def map_ints(x: Any, fn: Callable[[Any], Any]) -> Any:
    """Rebuild the containers and specs in `x` with `fn` applied to their items; any other `x` is returned unchanged."""
    if type(x) in _LEAVES:
        return x
    if isinstance(x, TensorSpec):
        return TensorSpec(fn(x.shape), x.dtype, fn(x.strides), x.device)
    if isinstance(x, tuple):
        items: list[Any] = [i if type(i) is int else fn(i) for i in x]
        return type(x)(*items) if hasattr(x, "_fields") else tuple(items)
    if isinstance(x, list):
        return [fn(i) for i in x]
    if isinstance(x, dict):
        return {k: fn(v) for k, v in x.items()}
    if isinstance(x, slice):
        return slice(fn(x.start), fn(x.stop), fn(x.step))
    return x
