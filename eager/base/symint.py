"""SymInt: a symbolic size: an expression over symbols, with its value at capture.

Fakes may have SymInts as sizes, strides and offset. Meta rules and decompositions written in Python run on them as on ints. Code
that needs the value reads it from the environment (`env`), which records that the program depends on it: `__index__` fixes the
expression to its value, a comparison fixes its outcome. So no value is read without a record. The form of expressions is
private to `fxir.symbols.shapes`.
"""
from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final, Protocol


class ShapeEnvironment(Protocol):
    """The owner of symbols and of the facts about them."""

    def wrap(self, expr: Any) -> int | SymInt: ...
    def simplify(self, expr: Any) -> Any: ...
    def decide(self, op: str, left: Any, right: Any) -> bool: ...
    def specialise(self, expr: Any) -> int: ...
    @property
    def floats(self) -> Any: ...  # a `symfloat.FloatEnvironment`, or None where ints that became floats are numbers


_Python = Callable[[Any, Any], Any]  # an operator as a function of two numbers


def _reflected(op: _Python) -> _Python:
    return lambda a, b: op(b, a)


def _operand(x: object) -> Any:
    """`x` as an operand of expressions: an expression or a plain int; None for an `x` that is not an integer."""
    if isinstance(x, SymInt):
        return x.expr
    if isinstance(x, int):
        return int(x)
    return operator.index(x) if hasattr(x, "__index__") and not hasattr(x, "shape") else None  # type: ignore[arg-type]


def _binary(step: Callable[[SymInt, Any, _Python], Any], op: _Python) -> Callable[[SymInt, Any], Any]:
    """An operator method of SymInt: `step` computes `op` of the SymInt and the other operand."""
    return lambda self, other: step(self, other, op)


def _comparison(relation: str, op: _Python, is_swapped: bool = False) -> Callable[[SymInt, Any], bool]:
    """A comparison method of SymInt. relation: for `decide`, of the operands in reverse order if `is_swapped`."""

    def compare(self: SymInt, other: Any) -> bool:
        e = _operand(other)
        if e is None:
            return self._float_outcome(_FLOAT_RELATIONS[op], other, op) if isinstance(other, float) else NotImplemented
        return self.env.decide(relation, e, self.expr) if is_swapped else self.env.decide(relation, self.expr, e)

    return compare


_FLOAT_RELATIONS: Final = {operator.lt: "<", operator.le: "<=", operator.gt: ">", operator.ge: ">="}


def _arithmetic(x: SymInt, other: Any, op: _Python) -> Any:
    e = _operand(other)
    return _with_float(x, other, op) if e is None else x.env.wrap(op(x.expr, e))


def _with_float(x: SymInt, other: Any, op: _Python) -> Any:
    if not isinstance(other, float | complex):
        return NotImplemented
    floats = x.env.floats
    known = floats is not None and isinstance(other, float)
    return op(floats.compute("float", x) if known else int(x), other)


def _as_floats(x: SymInt, name: str, other: Any, op: _Python, operands: tuple[Any, Any]) -> Any:
    """An operation with a float result: an expression if the environment has symbolic floats."""
    floats = x.env.floats
    if floats is not None and isinstance(other, SymInt | float | int) and (not isinstance(other, int) or abs(other) <= 1 << 53):
        return floats.compute(name, *operands)
    return _with_number(x, other, op)


def _with_number(x: SymInt, other: Any, op: _Python) -> Any:
    """An operation without an expression: fixes `x` to its value, if the other operand is a number."""
    if isinstance(other, SymInt):
        return op(int(x), int(other))
    return op(int(x), other) if isinstance(other, int | float | complex) else NotImplemented


def _divide(x: SymInt, other: Any, op: _Python) -> Any:
    if isinstance(other, SymInt):
        if other == 0:
            raise ZeroDivisionError("integer division or modulo by zero")
    elif other.__class__ is int and other == 0:
        raise ZeroDivisionError("integer division or modulo by zero")
    return _arithmetic(x, other, op)


def _divided(x: SymInt, other: Any, op: _Python) -> Any:
    if not x:
        raise ZeroDivisionError("integer division or modulo by zero")
    return _arithmetic(x, other, _reflected(op))


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

    __lt__ = _comparison("<", operator.lt)
    __le__ = _comparison("<=", operator.le)
    __gt__ = _comparison("<", operator.gt, is_swapped=True)
    __ge__ = _comparison("<=", operator.ge, is_swapped=True)

    def _float_outcome(self, op: str, other: float, python: Callable[[Any, Any], Any]) -> bool:
        floats = self.env.floats
        return python(int(self), other) if floats is None else floats.decide(op, self, other)

    # ---- arithmetic ----

    __add__ = __radd__ = _binary(_arithmetic, operator.add)
    __sub__ = _binary(_arithmetic, operator.sub)
    __rsub__ = _binary(_arithmetic, _reflected(operator.sub))
    __floordiv__ = _binary(_divide, operator.floordiv)
    __rfloordiv__ = _binary(_divided, operator.floordiv)
    __mod__ = _binary(_divide, operator.mod)
    __rmod__ = _binary(_divided, operator.mod)
    __and__ = _binary(_with_number, operator.and_)
    __rand__ = _binary(_with_number, _reflected(operator.and_))
    __or__ = _binary(_with_number, operator.or_)
    __ror__ = _binary(_with_number, _reflected(operator.or_))
    __xor__ = _binary(_with_number, operator.xor)
    __rxor__ = _binary(_with_number, _reflected(operator.xor))
    __rpow__ = _binary(_with_number, _reflected(operator.pow))
    __rlshift__ = _binary(_with_number, _reflected(operator.lshift))
    __rrshift__ = _binary(_with_number, _reflected(operator.rshift))

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, str | bytes | tuple | list):
            return int(self) * other
        return _arithmetic(self, other, operator.mul)

    __rmul__ = __mul__

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __truediv__(self, other: Any) -> Any:
        return _as_floats(self, "div", other, operator.truediv, (self, other))

    def __rtruediv__(self, other: Any) -> Any:
        return _as_floats(self, "div", other, _reflected(operator.truediv), (other, self))

    def __pow__(self, other: Any, modulo: Any = None) -> Any:
        if modulo is not None:
            return pow(int(self), int(other), int(modulo))
        if type(other) is not int or not 0 <= other <= 8:
            floating = isinstance(other, float)
            return _as_floats(self, "pow", other, operator.pow, (self, other)) if floating else _with_number(self, other, operator.pow)
        e: Any = 1
        for _ in range(other):
            e = self.expr * e
        return self.env.wrap(e)

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

    def __lshift__(self, other: Any) -> Any:
        return self * (1 << other) if type(other) is int and 0 <= other < 32 else _with_number(self, other, operator.lshift)

    def __rshift__(self, other: Any) -> Any:
        return self // (1 << other) if type(other) is int and 0 <= other < 32 else _with_number(self, other, operator.rshift)

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


def hint_of(x: int | SymInt) -> int:
    """The value at capture, without a record: for uses that decide nothing (sizes of memory of fakes, messages)."""
    return x.hint if isinstance(x, SymInt) else x


def as_int(x: Any) -> Any:
    """`x` as an int; a SymInt unchanged. Raises: TypeError unless `x` is an integer (as `operator.index`)."""
    return x if x.__class__ is SymInt else operator.index(x)


def as_count(x: Any) -> Any:
    """As `as_int`, raising TypeError for bools too, as torch does where it expects one int."""
    if x.__class__ is bool:
        raise TypeError("must be int, not bool")
    return as_int(x)


def times_ratio(t: Any, n: Any, d: Any) -> Any:
    """t * (n / d) of a tensor. A symbolic n or d stays symbolic: n / d as a number would fix it."""
    return t * (n / d) if n.__class__ is not SymInt and d.__class__ is not SymInt else t * n / d
