"""SymInt: a size that is not one number but an expression over symbols, with the number it was when it was captured.

Fakes may have SymInts for sizes, strides and offset; meta rules and decompositions written in Python then run on them
as they do on ints. Whatever needs the number itself asks the environment (`env`), which notes that the program relies
on it: `__index__` fixes the expression to its value, a comparison fixes its own outcome. So an expression is never
lost without a record. eager knows nothing of what expressions are; `fxir.symbols.shapes` does.
"""
from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Protocol


class ShapeEnvironment(Protocol):
    """Who answers for symbols."""

    def wrap(self, expr: Any) -> int | SymInt: ...
    def simplify(self, expr: Any) -> Any: ...
    def decide(self, op: str, left: Any, right: Any) -> bool: ...
    def specialise(self, expr: Any) -> int: ...
    @property
    def floats(self) -> Any: ...  # a `symfloat.FloatEnvironment`, or None where ints that became floats are numbers


class SymInt:
    """An integer known as an expression. Results of arithmetic are SymInts, or ints where they are constant.

    expr: opaque here; supports + - * // % and unary minus. hint: its value at capture. env: see `ShapeEnvironment`.
    """

    __slots__ = ("env", "expr", "hint")

    def __init__(self, expr: Any, hint: int, env: ShapeEnvironment) -> None:
        self.expr = expr
        self.hint = hint
        self.env = env

    # ---- what fixes the value ----

    def __index__(self) -> int:
        return self.env.specialise(self.expr)

    __int__ = __index__

    def __float__(self) -> float:
        return float(self.env.specialise(self.expr))

    def __complex__(self) -> complex:
        return complex(self.env.specialise(self.expr))

    def __hash__(self) -> int:
        return hash(self.env.specialise(self.expr))

    def __str__(self) -> str:
        return str(self.env.specialise(self.expr))

    def __format__(self, spec: str) -> str:
        return format(self.env.specialise(self.expr), spec)

    def __reduce__(self) -> Any:
        return int, (self.env.specialise(self.expr),)

    def __repr__(self) -> str:
        return repr(self.expr)

    # ---- what fixes an outcome ----

    def __bool__(self) -> bool:
        return self.env.decide("!=", self.expr, 0)

    def __eq__(self, other: object) -> bool:
        e = _operand(other)
        if e is None:
            return NotImplemented if not isinstance(other, float) else self._float_outcome("==", other, operator.eq)
        return self.expr is e or self.env.decide("==", self.expr, e)

    def __ne__(self, other: object) -> bool:
        found = self.__eq__(other)
        return found if found is NotImplemented else not found

    def __lt__(self, other: Any) -> bool:
        return self._compare("<", other, operator.lt)

    def __le__(self, other: Any) -> bool:
        return self._compare("<=", other, operator.le)

    def __gt__(self, other: Any) -> bool:
        e = _operand(other)
        return self._compare_floats(">", other, operator.gt) if e is None else self.env.decide("<", e, self.expr)

    def __ge__(self, other: Any) -> bool:
        e = _operand(other)
        return self._compare_floats(">=", other, operator.ge) if e is None else self.env.decide("<=", e, self.expr)

    def _compare(self, op: str, other: Any, python: Callable[[Any, Any], Any]) -> bool:
        e = _operand(other)
        return self._compare_floats(op, other, python) if e is None else self.env.decide(op, self.expr, e)

    def _compare_floats(self, op: str, other: Any, python: Callable[[Any, Any], Any]) -> bool:
        return self._float_outcome(op, other, python) if isinstance(other, float) else NotImplemented

    def _float_outcome(self, op: str, other: float, python: Callable[[Any, Any], Any]) -> bool:
        floats = self.env.floats
        return python(int(self), other) if floats is None else floats.decide(op, self, other)

    # ---- arithmetic ----

    def __add__(self, other: Any) -> Any:
        return self._arithmetic(other, operator.add)

    def __radd__(self, other: Any) -> Any:
        return self._arithmetic(other, operator.add)

    def __sub__(self, other: Any) -> Any:
        return self._arithmetic(other, operator.sub)

    def __rsub__(self, other: Any) -> Any:
        return self._arithmetic(other, _reflected(operator.sub))

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, str | bytes | tuple | list):
            return int(self) * other
        return self._arithmetic(other, operator.mul)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        return self._divide(other, operator.floordiv)

    def __mod__(self, other: Any) -> Any:
        return self._divide(other, operator.mod)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rfloordiv__(self, other: Any) -> Any:
        return self._divided(other, operator.floordiv)

    def __rmod__(self, other: Any) -> Any:
        return self._divided(other, operator.mod)

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __truediv__(self, other: Any) -> Any:
        return self._as_floats("div", other, operator.truediv, (self, other))

    def __rtruediv__(self, other: Any) -> Any:
        return self._as_floats("div", other, _reflected(operator.truediv), (other, self))

    def __pow__(self, other: Any, modulo: Any = None) -> Any:
        if modulo is not None:
            return pow(int(self), int(other), int(modulo))
        if type(other) is not int or not 0 <= other <= 8:
            floating = isinstance(other, float)
            return self._as_floats("pow", other, operator.pow, (self, other)) if floating else self._with_number(other, operator.pow)
        e: Any = 1
        for _ in range(other):
            e = self.expr * e
        return self.env.wrap(e)

    def __rpow__(self, other: Any) -> Any:
        return self._with_number(other, _reflected(operator.pow))

    def __neg__(self) -> Any:
        return self.env.wrap(-self.expr)

    def __pos__(self) -> SymInt:
        return self

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def __invert__(self) -> Any:
        return self.env.wrap(-self.expr - 1)

    def __trunc__(self) -> SymInt:
        return self

    __floor__ = __ceil__ = __trunc__

    def __round__(self, digits: int | None = None) -> Any:
        return self if digits is None or digits >= 0 else round(int(self), digits)

    def __and__(self, other: Any) -> Any:
        return self._with_number(other, operator.and_)

    def __or__(self, other: Any) -> Any:
        return self._with_number(other, operator.or_)

    def __xor__(self, other: Any) -> Any:
        return self._with_number(other, operator.xor)

    def __lshift__(self, other: Any) -> Any:
        return self * (1 << other) if type(other) is int and 0 <= other < 32 else self._with_number(other, operator.lshift)

    def __rshift__(self, other: Any) -> Any:
        return self // (1 << other) if type(other) is int and 0 <= other < 32 else self._with_number(other, operator.rshift)

    def __rand__(self, other: Any) -> Any:
        return self._with_number(other, _reflected(operator.and_))

    def __ror__(self, other: Any) -> Any:
        return self._with_number(other, _reflected(operator.or_))

    def __rxor__(self, other: Any) -> Any:
        return self._with_number(other, _reflected(operator.xor))

    def __rlshift__(self, other: Any) -> Any:
        return self._with_number(other, _reflected(operator.lshift))

    def __rrshift__(self, other: Any) -> Any:
        return self._with_number(other, _reflected(operator.rshift))

    def bit_length(self) -> int:
        return int(self).bit_length()

    @property
    def real(self) -> SymInt:
        return self

    @property
    def imag(self) -> int:
        return 0

    @property
    def numerator(self) -> SymInt:
        return self

    @property
    def denominator(self) -> int:
        return 1

    def _arithmetic(self, other: Any, op: Callable[[Any, Any], Any]) -> Any:
        e = _operand(other)
        if e is None:
            return self._with_float(other, op)
        return self.env.wrap(op(self.expr, e))

    def _with_float(self, other: Any, op: Callable[[Any, Any], Any]) -> Any:
        if not isinstance(other, float | complex):
            return NotImplemented
        floats = self.env.floats
        known = floats is not None and isinstance(other, float)
        return op(floats.compute("float", self) if known else int(self), other)

    def _as_floats(self, name: str, other: Any, op: Callable[[Any, Any], Any], operands: tuple[Any, Any]) -> Any:
        """An operation whose result is a float: an expression where there can be one."""
        floats = self.env.floats
        if floats is not None and isinstance(other, SymInt | float | int) and (not isinstance(other, int) or abs(other) <= 1 << 53):
            return floats.compute(name, *operands)
        return self._with_number(other, op)

    def _with_number(self, other: Any, op: Callable[[Any, Any], Any]) -> Any:
        """What expressions cannot say: computed with the value itself, if the other operand is a number at all."""
        if isinstance(other, SymInt):
            return op(int(self), int(other))
        return op(int(self), other) if isinstance(other, int | float | complex) else NotImplemented

    def _divide(self, other: Any, op: Callable[[Any, Any], Any]) -> Any:
        if isinstance(other, SymInt):
            if other == 0:
                raise ZeroDivisionError("integer division or modulo by zero")
        elif other.__class__ is int and other == 0:
            raise ZeroDivisionError("integer division or modulo by zero")
        return self._arithmetic(other, op)

    def _divided(self, other: Any, op: Callable[[Any, Any], Any]) -> Any:
        if not self:
            raise ZeroDivisionError("integer division or modulo by zero")
        return self._arithmetic(other, _reflected(op))


def _reflected(op: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda a, b: op(b, a)


def _operand(x: object) -> Any:
    """What expressions compute with: an expression, or a plain int; None for anything else."""
    if isinstance(x, SymInt):
        return x.expr
    if isinstance(x, int):
        return int(x)
    return operator.index(x) if hasattr(x, "__index__") and not hasattr(x, "shape") else None  # type: ignore[arg-type]


def hint_of(x: int | SymInt) -> int:
    """The number itself, with no record: for what decides nothing (sizes of memory that is never there, messages)."""
    return x.hint if isinstance(x, SymInt) else x


def as_int(x: Any) -> Any:
    """`x` as an int, a SymInt as it is. Raises: TypeError for what is no integer number (as `operator.index`)."""
    return x if x.__class__ is SymInt else operator.index(x)


def as_count(x: Any) -> Any:
    """As `as_int`, raising TypeError for bools too, as torch does where it expects one int."""
    if x.__class__ is bool:
        raise TypeError("must be int, not bool")
    return as_int(x)


def times_ratio(t: Any, n: Any, d: Any) -> Any:
    """t * (n / d) of a tensor; symbolic n or d stay symbols, which as a number they could not."""
    return t * (n / d) if n.__class__ is not SymInt and d.__class__ is not SymInt else t * n / d


def is_symbolic(sizes: Any) -> bool:
    """Whether any of `sizes` is a SymInt."""
    for s in sizes:  # noqa: SIM110 - a loop, not any(): this runs for every fake
        if s.__class__ is SymInt:
            return True
    return False
