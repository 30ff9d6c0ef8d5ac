"""The loop protocol over interned values: an op's scalar rule runs with it and produces loop IR.

`Loop` has the functions of `eager.optable.loop_api`, `Scalar` wraps a value with Python's operators. A number takes the dtype
of the other operand. Small identities are applied as values are made.
"""

from __future__ import annotations

from typing import Any, Final

from eager.base import dtypes
from eager.base.dtypes import Category, dtype, promote_types
from eager.base.symint import SymInt
from fxir.expr import rules as E
from inductor.ir import definitions as ir

_BOOL: Final = dtypes.bool_
Number = bool | int | float | E.Expr | SymInt


class Scalar:
    """A loop value under Python's operators."""

    __slots__ = ("value",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: ir.Value) -> None:
        self.value = value

    @property
    def dtype(self) -> dtype:
        return self.value.dtype

    def __add__(self, other: Any) -> Scalar:
        return binary("add", self, other)

    def __radd__(self, other: Any) -> Scalar:
        return binary("add", other, self)

    def __sub__(self, other: Any) -> Scalar:
        return binary("sub", self, other)

    def __rsub__(self, other: Any) -> Scalar:
        return binary("sub", other, self)

    def __mul__(self, other: Any) -> Scalar:
        return binary("mul", self, other)

    def __rmul__(self, other: Any) -> Scalar:
        return binary("mul", other, self)

    def __truediv__(self, other: Any) -> Scalar:
        return binary("div", self, other)

    def __rtruediv__(self, other: Any) -> Scalar:
        return binary("div", other, self)

    def __pow__(self, other: Any) -> Scalar:
        return binary("pow", self, other)

    def __neg__(self) -> Scalar:
        return Scalar(ir.make_op("neg", (self.value,), self.dtype))

    def __eq__(self, other: object) -> Scalar:  # type: ignore[override]
        return compare("eq", self, other)

    def __ne__(self, other: object) -> Scalar:  # type: ignore[override]
        return compare("ne", self, other)

    def __lt__(self, other: Any) -> Scalar:
        return compare("lt", self, other)

    def __le__(self, other: Any) -> Scalar:
        return compare("le", self, other)

    def __gt__(self, other: Any) -> Scalar:
        return compare("gt", self, other)

    def __ge__(self, other: Any) -> Scalar:
        return compare("ge", self, other)

    def __and__(self, other: Any) -> Scalar:
        return binary("bitwise_and", self, other)

    def __or__(self, other: Any) -> Scalar:
        return binary("bitwise_or", self, other)

    def __xor__(self, other: Any) -> Scalar:
        return binary("bitwise_xor", self, other)

    def __invert__(self) -> Scalar:
        return Scalar(ir.make_op("bitwise_not", (self.value,), self.dtype))


def as_value(x: Any, of: dtype) -> ir.Value:
    """A loop value of dtype `of` from a Scalar or a number."""
    if isinstance(x, Scalar):
        return x.value if x.value.dtype is of else ir.cast(x.value, of)
    return number(x, of)


def number(x: Number, of: dtype) -> ir.Value:
    """A number, or an int that is an expression, as a loop value of dtype `of`."""
    x = x.expr if isinstance(x, SymInt) else x
    return ir.cast(ir.index(x), of) if isinstance(x, E.Expr) else ir.const(x, of)


def _common(a: Any, b: Any) -> dtype:
    if isinstance(a, Scalar) and isinstance(b, Scalar):
        return a.dtype if a.dtype is b.dtype else promote_types(a.dtype, b.dtype)
    held = a if isinstance(a, Scalar) else b
    number = b if held is a else a
    d: dtype = held.dtype
    if isinstance(number, float) and d.is_integral:
        return dtypes.get_default_dtype()
    if d is _BOOL and not isinstance(number, bool):
        return dtypes.int64
    return d


def binary(name: str, a: Any, b: Any) -> Scalar:
    d = _common(a, b)
    x, y = as_value(a, d), as_value(b, d)
    simple = _identity(name, x, y)
    return Scalar(simple if simple is not None else ir.make_op(name, (x, y), d))


def _identity(name: str, x: ir.Value, y: ir.Value) -> ir.Value | None:
    """x * 1, 1 * x, x / 1; for integers also x + 0. (Floats: -0.0 + 0 is 0, so a sum with zero stays.)"""
    if name in ("mul", "div") and isinstance(y, ir.Const) and y.value == 1:
        return x
    if name == "mul" and isinstance(x, ir.Const) and x.value == 1:
        return y
    if name in ("add", "sub") and isinstance(y, ir.Const) and y.value == 0 and y.dtype.category is Category.INT:
        return x
    if name == "sub" and isinstance(y, ir.Const) and y.value == 0:
        return x
    return None


def compare(name: str, a: Any, b: Any) -> Scalar:
    d = _common(a, b)
    return Scalar(ir.make_op(name, (as_value(a, d), as_value(b, d)), _BOOL))


class Loop:
    """The object `k` that scalar rules receive."""

    def where(self, condition: Any, a: Any, b: Any) -> Any:
        if not isinstance(condition, Scalar):
            return a if condition else b
        c = condition.value if condition.dtype is _BOOL else ir.cast(condition.value, _BOOL)
        if isinstance(a, Scalar) or isinstance(b, Scalar):
            d = _common(a, b)
        else:
            d = promote_types(*(dtypes.int64 if isinstance(x, E.Expr | SymInt) else dtypes.of_scalar(x) for x in (a, b)))
        return Scalar(ir.make_op("where", (c, as_value(a, d), as_value(b, d)), d))

    def cast(self, x: Any, to: dtype) -> Scalar:
        return Scalar(as_value(x, to))

    def const(self, value: Number, of: dtype) -> Scalar:
        return Scalar(number(value, of))

    def pow(self, a: Any, b: Any) -> Scalar:
        return binary("pow", a, b)


def _unary_method(name: str) -> Any:
    def method(self: Loop, x: Scalar) -> Scalar:
        return Scalar(ir.make_op(name, (x.value,), x.dtype))

    return method


def _predicate(name: str) -> Any:
    def method(self: Loop, *xs: Any) -> Scalar:
        values = tuple(x.value if isinstance(x, Scalar) else ir.const(x, _BOOL) for x in xs)
        return Scalar(ir.make_op(name, values, _BOOL))

    return method


def _binary_method(name: str) -> Any:
    def method(self: Loop, a: Any, b: Any) -> Scalar:
        return binary(name, a, b)

    return method


_PREDICATES: Final = "isnan isinf isfinite signbit logical_not logical_and logical_or logical_xor".split()
_BINARY: Final = (
    "maximum minimum fmod remainder floordiv truncdiv atan2 hypot copysign bitwise_and bitwise_or bitwise_xor left_shift right_shift"
).split()
_UNARY: Final = (
    "exp exp2 expm1 log log2 log10 log1p sqrt rsqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc erfinv "
    "lgamma digamma floor ceil round trunc abs sign bitwise_not"
).split()
for _name in _PREDICATES:
    setattr(Loop, _name, _predicate(_name))
for _name in _BINARY:
    setattr(Loop, _name, _binary_method(_name))
for _name in _UNARY:
    setattr(Loop, _name, _unary_method(_name))

LOOP: Final = Loop()
