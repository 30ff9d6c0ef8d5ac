"""SymFloat: a Python float that is not one number but an expression, with the number it was when it was captured.

A float argument that changes from call to call is one, and so is what is computed from it or from symbolic sizes
(`1 / (1 - p)`, `n / 2`). Rules and decompositions written in Python run on it as on a float; who needs the number
itself asks for `float(x)`, which is recorded, as the outcomes of comparisons are. eager knows nothing of what
expressions are; `fxir.symbols.floats` does. See `eager.base.symint` for ints.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, Protocol

from eager.base.symint import SymInt


class FloatEnvironment(Protocol):
    """Who answers for symbolic floats. Operands are SymFloats, SymInts and numbers."""

    def compute(self, op: str, *operands: Any) -> Any: ...
    def decide(self, op: str, left: Any, right: Any) -> bool: ...
    def specialise(self, x: SymFloat) -> float: ...


_EXACT: Final = 1 << 53  # ints up to here are floats of the same value


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

    def __eq__(self, other: object) -> bool:
        return self._compare("==", other)

    def __ne__(self, other: object) -> bool:
        return self._compare("!=", other)

    def __lt__(self, other: Any) -> bool:
        return self._compare("<", other)

    def __le__(self, other: Any) -> bool:
        return self._compare("<=", other)

    def __gt__(self, other: Any) -> bool:
        return self._compare(">", other)

    def __ge__(self, other: Any) -> bool:
        return self._compare(">=", other)

    def _compare(self, op: str, other: Any) -> bool:
        return self.env.decide(op, self, other) if _is_operand(other) else NotImplemented

    # ---- arithmetic ----

    def __add__(self, other: Any) -> Any:
        return self._arithmetic("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return self._arithmetic("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return self._arithmetic("sub", self, other)

    def __rsub__(self, other: Any) -> Any:
        return self._arithmetic("sub", other, self)

    def __mul__(self, other: Any) -> Any:
        return self._arithmetic("mul", self, other)

    def __rmul__(self, other: Any) -> Any:
        return self._arithmetic("mul", other, self)

    def __truediv__(self, other: Any) -> Any:
        return self._arithmetic("div", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._arithmetic("div", other, self)

    def __pow__(self, other: Any) -> Any:
        return self._arithmetic("pow", self, other)

    def __rpow__(self, other: Any) -> Any:
        return self._arithmetic("pow", other, self)

    def __floordiv__(self, other: Any) -> Any:
        return self._plainly(other, lambda a, b: a // b)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._plainly(other, lambda a, b: b // a)

    def __mod__(self, other: Any) -> Any:
        return self._plainly(other, lambda a, b: a % b)

    def __rmod__(self, other: Any) -> Any:
        return self._plainly(other, lambda a, b: b % a)

    def __divmod__(self, other: Any) -> Any:
        return self._plainly(other, divmod)

    def __rdivmod__(self, other: Any) -> Any:
        return self._plainly(other, lambda a, b: divmod(b, a))

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

    def _arithmetic(self, op: str, left: Any, right: Any) -> Any:
        if _is_operand(left) and _is_operand(right):
            return self.env.compute(op, left, right)
        return self._plainly(right if left is self else left, lambda a, b: _PYTHON[op](*((a, b) if left is self else (b, a))))

    def _plainly(self, other: Any, op: Callable[[Any, Any], Any]) -> Any:
        """What expressions cannot say: computed with the value itself, if the other operand is a number at all."""
        if isinstance(other, SymFloat):
            return op(float(self), float(other))
        return op(float(self), int(other) if isinstance(other, SymInt) else other) if _is_number(other) else NotImplemented


_PYTHON: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "pow": lambda a, b: a**b,
}


def _is_number(x: Any) -> bool:
    return isinstance(x, int | float | complex | SymInt | SymFloat)


def _is_operand(x: Any) -> bool:
    """What computes and compares as a float of the same value."""
    return isinstance(x, float | SymFloat | SymInt) or (isinstance(x, int) and -_EXACT <= x <= _EXACT)


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
