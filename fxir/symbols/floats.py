"""Symbolic floats: expressions over float arguments and symbolic sizes, and the decisions made about them.

Owns `FloatExpr` (computed with Python's own arithmetic at every call, so that results equal eager's bit by bit), `Floats` (one
per capture, beside its `ShapeEnv`; the `env` of every `eager.base.symfloat.SymFloat` in it), and `FloatRelation`, the record of
a decision. If Python would raise for some values (a division by 0), the case is decided before the expression is built, so that
an expression never raises. `dynamo` turns decisions into guards.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, Final, Protocol, TypeAlias

from eager.base.records import dataclass
from eager.base.symfloat import SymFloat
from eager.base.symint import SymInt
from fxir.base.origin import Origin
from fxir.expr.printing import PYTHON, to_source
from fxir.expr.rules import Expr, IntLike, Sym, evaluate, substitute

Operand: TypeAlias = "FloatExpr | float"


@dataclass(frozen=True, slots=True)
class FloatExpr:
    """One operation. op: a key of OPERATIONS; "symbol" for a float argument; or "int" for a symbolic int in the place of a
    float.

    args: the operands; for "symbol" the symbol, for "int" the integer expression.
    """

    op: str
    args: tuple[Any, ...]

    @property
    def symbols(self) -> frozenset[Sym]:
        return frozenset().union(*(a.symbols for a in self.args if isinstance(a, FloatExpr | Expr)))

    def __repr__(self) -> str:
        return to_text(self)


@dataclass(frozen=True, slots=True)
class Operation:
    """run: Python's function. text: its source. checked: whether the native guards can compute it too."""

    run: Callable[..., Any]
    text: str
    checked: bool = False


OPERATIONS: Final = {
    "add": Operation(operator.add, "({} + {})", checked=True),
    "sub": Operation(operator.sub, "({} - {})", checked=True),
    "mul": Operation(operator.mul, "({} * {})", checked=True),
    "div": Operation(operator.truediv, "({} / {})", checked=True),
    "neg": Operation(operator.neg, "(-{})", checked=True),
    "abs": Operation(abs, "abs({})"),
    "pow": Operation(operator.pow, "({} ** {})"),
    "sqrt": Operation(math.sqrt, "math.sqrt({})"),
}
TRUTH: Final[dict[str, Callable[[float, float], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
}
_SWAPPED: Final = {">": "<", ">=": "<="}
_POWERS: Final = 4.0  # powers up to this exponent, of bases in 1/_BASES .. _BASES, neither overflow nor raise
_BASES: Final = 1e60


@dataclass(frozen=True, slots=True)
class FloatRelation:
    """The decision that `left op right` (== != < <=) is `truth`. For a nan, neither a comparison nor its opposite holds."""

    op: str
    left: Operand
    right: Operand
    truth: bool
    origin: Origin | None = None

    def __str__(self) -> str:
        return f"{'' if self.truth else 'not '}{to_text(self.left)} {self.op} {to_text(self.right)}"

    @property
    def symbols(self) -> frozenset[Sym]:
        return frozenset().union(*(e.symbols for e in (self.left, self.right) if isinstance(e, FloatExpr)))

    def holds(self, values: Mapping[Any, Any]) -> bool:
        """Whether the decision is the same for these values of the symbols."""
        return TRUTH[self.op](compute(self.left, values), compute(self.right, values)) is self.truth


def compute(e: Operand, values: Mapping[Any, Any]) -> float:
    """The value of `e` for these values of the symbols."""
    if not isinstance(e, FloatExpr):
        return e
    if e.op == "symbol":
        value: float = values[e.args[0]]
        return value
    if e.op == "int":
        return evaluate(e.args[0], values)  # Python's operators convert the int, and exactly
    result: float = OPERATIONS[e.op].run(*(compute(a, values) for a in e.args))
    return result


def map_leaves(e: Operand, at_leaf: Callable[[FloatExpr], Operand]) -> Operand:
    """`e` with its leaves replaced; parts without symbols are computed."""
    if not isinstance(e, FloatExpr):
        return e
    if e.op in ("symbol", "int"):
        return at_leaf(e)
    args = tuple(map_leaves(a, at_leaf) for a in e.args)
    if any(isinstance(a, FloatExpr) for a in args):
        return FloatExpr(e.op, args)
    result: float = OPERATIONS[e.op].run(*args)
    return result


def to_text(e: Operand, name: Callable[[Sym], str] = lambda s: s.name) -> str:
    """Python source of `e`, for a namespace that has `math`."""
    if not isinstance(e, FloatExpr):
        return (f"({e!r})" if math.copysign(1, e) < 0 else repr(e)) if math.isfinite(e) else f"float({str(e)!r})"
    if e.op == "symbol":
        return name(e.args[0])
    if e.op == "int":
        text = to_source(e.args[0], PYTHON.with_symbols(name))
        return text if isinstance(e.args[0], Sym) else f"({text})"
    return OPERATIONS[e.op].text.format(*(to_text(a, name) for a in e.args))


def is_checked(e: Operand) -> bool:
    """Whether the native guards can compute `e`."""
    if not isinstance(e, FloatExpr) or e.op in ("symbol", "int"):
        return True
    return OPERATIONS[e.op].checked and all(map(is_checked, e.args))


class UnbackedFacts(Protocol):
    """The part of `fxir.symbols.shapes.Unbacked` that `Floats` uses: numbers that depend on data, and assumptions about them."""

    assumed: list[Any]

    def concerns(self, *expressions: Any) -> bool: ...
    def refusal(self, what: str) -> Exception: ...


class IntegerFacts(Protocol):
    """The part of `fxir.symbols.shapes.ShapeEnv` that `Floats` uses: hints of symbols and decisions about integers."""

    hints: dict[Any, Any]

    @property
    def unbacked(self) -> UnbackedFacts: ...
    @property
    def origin(self) -> Callable[[], Origin | None]: ...
    def simplify(self, expr: Expr) -> Expr: ...
    def specialise(self, expr: IntLike) -> int: ...
    def refuse_late(self, what: str) -> None: ...


@dataclass(slots=True)
class Floats:
    """The symbolic floats of one capture. relations: decisions, in order. fixed: float arguments that became constants."""

    shapes: IntegerFacts
    relations: list[FloatRelation] = field(default_factory=list)
    fixed: dict[Sym, Origin | None] = field(default_factory=dict)
    _known: dict[tuple[str, Operand, Operand], bool] = field(default_factory=dict)

    # -- making ------------------------------------------------------------------------------------------------
    def symbol(self, s: Sym, hint: float) -> SymFloat:
        """The float argument that the symbol `s` stands for."""
        return SymFloat(FloatExpr("symbol", (s,)), hint, self)

    def wrap(self, e: Operand) -> float | SymFloat:
        """The value of an expression: a float if it is constant, else a SymFloat."""
        e = self.simplify(e)
        return SymFloat(e, compute(e, self.shapes.hints), self) if isinstance(e, FloatExpr) else e

    def simplify(self, e: Operand) -> Operand:
        """`e` with the values of the arguments that became constants."""

        def leaf(x: FloatExpr) -> Operand:
            if x.op == "symbol":
                return self.shapes.hints[x.args[0]] if x.args[0] in self.fixed else x
            i = self.shapes.simplify(x.args[0])
            return FloatExpr("int", (i,)) if i.symbols else evaluate(i, {})

        return map_leaves(e, leaf)

    def compute(self, op: str, *operands: Any) -> Any:
        """The result of Python's operator: an expression if the operator cannot raise."""
        args = [self._operand(x) for x in operands]
        if op == "float":
            return self._as_float(args[0])
        if op == "div" and not self._is_nonzero(operands[1]):
            return operands[0] / 0  # raises Python's own ZeroDivisionError
        if (op == "sqrt" and not self.decide("<=", 0.0, operands[0])) or (op == "pow" and not self._power_is_real(*operands)):
            return OPERATIONS[op].run(*(self._number(x) for x in operands))
        return self.wrap(FloatExpr(op, tuple(args)))

    def _is_nonzero(self, x: Any) -> bool:
        """Whether `x` is not 0. For an unbacked number the answer is assumed to be yes."""
        e = self._operand(x)
        if not self.shapes.unbacked.concerns(e):
            return self.decide("!=", x, 0)
        if is_checked(e):
            self.shapes.refuse_late(f"{to_text(e)} != 0")
            self.shapes.unbacked.assumed.append(FloatRelation("!=", e, 0, True, self.shapes.origin()))
            return True
        raise self.shapes.unbacked.refusal(f"{to_text(e)} != 0")

    def _as_float(self, e: Operand) -> Any:
        if isinstance(e, FloatExpr) and e.op == "int":
            e = FloatExpr("mul", (e, 1.0))  # so that code that prints or compares it gets a float
        return self.wrap(e) if isinstance(e, FloatExpr) else float(e)

    def _power_is_real(self, base: Any, power: Any) -> bool:
        """Whether base ** power is a real float for all values that pass the guards."""
        if not isinstance(power, int | float) or not -_POWERS <= power <= _POWERS:
            return False
        return self.decide("<", 1 / _BASES, base) and self.decide("<", base, _BASES)

    def _operand(self, x: Any) -> Operand:
        if isinstance(x, SymFloat):
            return self.simplify(x.expr)
        if isinstance(x, SymInt):
            e = self.shapes.simplify(x.expr)
            return FloatExpr("int", (e,)) if e.symbols else evaluate(e, {})
        number: float = x
        return number

    def _number(self, x: Any) -> Any:
        return float(x) if isinstance(x, SymFloat) else int(x) if isinstance(x, SymInt) else x

    # -- deciding ----------------------------------------------------------------------------------------------
    def decide(self, op: str, left: Any, right: Any) -> bool:
        """Whether `left op right` holds, for any comparison of Python. The answer for the hints is recorded as a decision."""
        if op in _SWAPPED:
            op, left, right = _SWAPPED[op], right, left
        a, b = self._operand(left), self._operand(right)
        if not (is_checked(a) and is_checked(b)):
            a, b = self._fixed(a), self._fixed(b)
        hints = self.shapes.hints
        if not isinstance(a, FloatExpr) and not isinstance(b, FloatExpr):
            return TRUTH[op](a, b)
        if self.shapes.unbacked.concerns(a, b):
            raise self.shapes.unbacked.refusal(f"{to_text(a)} {op} {to_text(b)}")
        key = (op, a, b)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = TRUTH[op](compute(a, hints), compute(b, hints))
            self.shapes.refuse_late(f"{to_text(a)} {op} {to_text(b)}")
            self.relations.append(FloatRelation(op, a, b, found, self.shapes.origin()))
        return found

    def specialise(self, x: SymFloat) -> float:
        """The current value of `x`, which becomes a constant of the capture."""
        value = self._fixed(x.expr)
        assert not isinstance(value, FloatExpr)
        return float(value)

    def _fixed(self, e: Operand) -> Operand:
        if self.shapes.unbacked.concerns(e):
            raise self.shapes.unbacked.refusal(f"the value of {to_text(e)}")
        for s in e.symbols if isinstance(e, FloatExpr) else ():
            if not isinstance(self.shapes.hints[s], float):
                self.shapes.specialise(s)
            elif s not in self.fixed:
                self.shapes.refuse_late(f"the value of {s.name}")
                self.fixed[s] = self.shapes.origin()
        return self.simplify(e)


def bound_float(e: FloatExpr, values: Mapping[Sym, Any]) -> Any:
    """The value of `e` for `values` of its symbols: numbers, or SymInts and SymFloats of one environment."""
    env = next((v.env for s in e.symbols if isinstance(v := values[s], SymFloat)), None)
    if env is None:
        env = next((v.env.floats for s in e.symbols if isinstance(v := values[s], SymInt)), None)
    if env is None:
        return compute(e, values)
    assert isinstance(env, Floats)

    def leaf(x: FloatExpr) -> Operand:
        if x.op == "symbol":
            v = values[x.args[0]]
            operand: Operand = v.expr if isinstance(v, SymFloat) else v
            return operand
        i = substitute(x.args[0], {s: v.expr if isinstance(v := values[s], SymInt) else v for s in x.symbols})
        return FloatExpr("int", (i,)) if i.symbols else evaluate(i, {})

    return env.wrap(map_leaves(e, leaf))
