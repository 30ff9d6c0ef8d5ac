"""SymFloat: a symbolic Python float: an expression, with its value at capture.

A float argument that changes from call to call becomes a SymFloat, as does a result computed from it or from symbolic sizes
(`1 / (1 - p)`, `n / 2`). Rules and decompositions written in Python run on it as on a float. `float(x)` returns the value and
records that the program depends on it; a comparison records its outcome. The form of expressions is private to
`fxir.symbols.floats`. See `eager.base.symint` for ints.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, Final, Protocol

from eager.base.symint import SymInt


class FloatEnvironment(Protocol):
    """The owner of symbolic floats. Operands are SymFloats, SymInts and numbers."""

    def compute(self, op: str, *operands: Any) -> Any: ...
    def decide(self, op: str, left: Any, right: Any) -> bool: ...
    def specialise(self, x: SymFloat) -> float: ...


_EXACT: Final = 1 << 53  # ints up to here are floats of the same value


def _is_number(x: Any) -> bool:
    return isinstance(x, int | float | complex | SymInt | SymFloat)


def _is_operand(x: Any) -> bool:
    """Whether `x` computes and compares as a float of the same value."""
    return isinstance(x, float | SymFloat | SymInt) or (isinstance(x, int) and -_EXACT <= x <= _EXACT)


_Python = Callable[[Any, Any], Any]  # an operator as a function of two numbers
_Method = Callable[["SymFloat", Any], Any]


def _comparison(relation: str) -> Callable[[SymFloat, Any], bool]:
    return lambda self, other: self.env.decide(relation, self, other) if _is_operand(other) else NotImplemented


def _arithmetic(name: str, op: _Python) -> tuple[_Method, _Method]:
    """The method of an operator and its reflected method. name: of the operation in `FloatEnvironment.compute`."""
    numbers, reflected_numbers = _on_numbers(op)

    def method(self: SymFloat, other: Any) -> Any:
        return self.env.compute(name, self, other) if _is_operand(other) else numbers(self, other)

    def reflected(self: SymFloat, other: Any) -> Any:
        return self.env.compute(name, other, self) if _is_operand(other) else reflected_numbers(self, other)

    return method, reflected


def _on_numbers(op: _Python) -> tuple[_Method, _Method]:
    """The methods of an operator without an expression: they fix the value, if the other operand is a number."""
    return (lambda self, other: _with_number(self, other, op)), (lambda self, other: _with_number(self, other, lambda a, b: op(b, a)))


def _with_number(x: SymFloat, other: Any, op: _Python) -> Any:
    if isinstance(other, SymFloat):
        return op(float(x), float(other))
    return op(float(x), int(other) if isinstance(other, SymInt) else other) if _is_number(other) else NotImplemented


class SymFloat:
    """A float known as an expression. expr: opaque here. hint: its value at capture. env: see `FloatEnvironment`."""

    __slots__ = ("env", "expr", "hint")

    def __init__(self, expr: Any, hint: float, env: FloatEnvironment) -> None:
        self.expr = expr
        self.hint = hint
        self.env = env

    # ---- what fixes the value ----

    def __float__(self) -> float:
        return self.env.specialise(self)

    def __int__(self) -> int:
        return int(float(self))

    def __complex__(self) -> complex:
        return complex(float(self))

    def __trunc__(self) -> int:
        return math.trunc(float(self))

    def __floor__(self) -> int:
        return math.floor(float(self))

    def __ceil__(self) -> int:
        return math.ceil(float(self))

    def __round__(self, digits: int | None = None) -> Any:
        return round(float(self), digits)

    def __hash__(self) -> int:
        return hash(float(self))

    def __str__(self) -> str:
        return str(float(self))

    def __format__(self, spec: str) -> str:
        return format(float(self), spec)

    def __reduce__(self) -> Any:
        return float, (float(self),)

    def __repr__(self) -> str:
        return repr(self.expr)

    def is_integer(self) -> bool:
        return float(self).is_integer()

    # ---- what fixes an outcome ----

    def __bool__(self) -> bool:
        return self.env.decide("!=", self, 0.0)

    __eq__ = _comparison("==")  # type: ignore[assignment]
    __ne__ = _comparison("!=")  # type: ignore[assignment]
    __lt__ = _comparison("<")
    __le__ = _comparison("<=")
    __gt__ = _comparison(">")
    __ge__ = _comparison(">=")

    # ---- arithmetic ----

    __add__, __radd__ = _arithmetic("add", operator.add)
    __sub__, __rsub__ = _arithmetic("sub", operator.sub)
    __mul__, __rmul__ = _arithmetic("mul", operator.mul)
    __truediv__, __rtruediv__ = _arithmetic("div", operator.truediv)
    __pow__, __rpow__ = _arithmetic("pow", operator.pow)
    __floordiv__, __rfloordiv__ = _on_numbers(operator.floordiv)
    __mod__, __rmod__ = _on_numbers(operator.mod)
    __divmod__, __rdivmod__ = _on_numbers(divmod)

    def __neg__(self) -> Any:
        return self.env.compute("neg", self)

    def __pos__(self) -> SymFloat:
        return self

    def __abs__(self) -> Any:
        return self.env.compute("abs", self)

    @property
    def real(self) -> SymFloat:
        return self

    @property
    def imag(self) -> float:
        return 0.0

    def conjugate(self) -> SymFloat:
        return self


def square_root(x: Any) -> Any:
    """math.sqrt of a number, a SymInt or a SymFloat, the last two as an expression. Raises: ValueError below 0."""
    if isinstance(x, SymFloat):
        return x.env.compute("sqrt", x)
    if isinstance(x, SymInt) and x.env.floats is not None:
        return x.env.floats.compute("sqrt", x)
    return math.sqrt(x)


def as_float(x: Any) -> Any:
    """float(x), a SymFloat or SymInt as a SymFloat."""
    if isinstance(x, SymFloat):
        return x
    if isinstance(x, SymInt) and x.env.floats is not None:
        return x.env.floats.compute("float", x)
    return float(x)
