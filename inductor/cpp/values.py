"""The C++ form of numbers, index expressions and every operation of `inductor.ir.definitions.OPS`."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from eager.base import dtypes
from eager.base.dtypes import Category, dtype
from fxir.expr import printing
from fxir.expr import rules as E
from inductor.ir import definitions as ir

TYPE: Final[dict[dtype, str]] = {
    dtypes.bool_: "b8", dtypes.uint8: "u8", dtypes.int8: "i8", dtypes.int16: "i16", dtypes.int32: "i32",
    dtypes.int64: "i64", dtypes.float16: "f16", dtypes.bfloat16: "bf16", dtypes.float32: "f32", dtypes.float64: "f64",
    dtypes.uint16: "u16", dtypes.uint32: "u32", dtypes.uint64: "u64",
}  # fmt: skip
# dtypes that convert through int64; the others convert through int32
_THROUGH: Final = {dtypes.int64: "i64", dtypes.uint32: "i64", dtypes.uint64: "u64"}
_HALF: Final = (dtypes.float16, dtypes.bfloat16)
_COMPARE: Final = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_ARITHMETIC: Final = {"add": "+", "sub": "-", "mul": "*"}
_BITS: Final = {"bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^"}


# Literals are ints, loop variables are not: both are converted to one type, which selects the function.
STYLE: Final = replace(
    printing.C, floordiv="fj_floordiv((i64)({a}), (i64)({b}))", mod="fj_floormod((i64)({a}), (i64)({b}))"
)


def literal(value: float, of: dtype) -> str:
    """A number as C++ source of type `of`."""
    if of is dtypes.bool_:
        return f"(b8){int(bool(value))}"
    if of.is_integral:
        if value == -(1 << 63):
            return "(-9223372036854775807LL - 1)"
        return f"{int(value)}LL" if of is dtypes.int64 else f"({TYPE[of]}){int(value)}{'ULL' if of is dtypes.uint64 else ''}"
    suffix = "" if of is dtypes.float64 else "f"
    if math.isnan(value):
        text = f'__builtin_nan{suffix}("")'
    elif math.isinf(value):
        text = ("-" if value < 0 else "") + f"__builtin_inf{suffix}()"
    else:
        text = f"{float(value)!r}{suffix}"
    if of in _HALF:
        return f"fj_to_{TYPE[of]}({text})"
    return f"({text})" if text.startswith("-") else text


def size_source(n: E.IntLike) -> str:
    """A size as C++ source; symbols are written by name (see `units.declared`)."""
    return str(n) if isinstance(n, int) else f"({printing.to_source(n, STYLE)})"


def index_source(e: E.IntLike, names: dict[str, str]) -> str:
    """An index expression over loop variables; bound symbols are written as `names` says."""
    return printing.to_source(e, STYLE.with_names(names) if names else STYLE)


def called(v: ir.Op) -> str:
    """The operation of the prelude, `fj_<name>`, that computes one operation if no C++ operator does."""
    if v.name != "philox":
        return v.name
    word, words = v.args[4:]
    assert isinstance(word, ir.Const) and isinstance(words, ir.Const)
    return f"philox_{words.value}_{word.value}"


def operation(v: ir.Op, args: list[str]) -> str:
    """C++ source of one operation on named operands."""
    name, of = v.name, v.args[0].dtype
    if name == "cast":
        return cast(args[0], of, v.dtype)
    if name == "where":
        return f"{args[0]} ? {args[1]} : {args[2]}"
    if name in _COMPARE:
        return f"{args[0]} {_COMPARE[name]} {args[1]}"
    if name in ("logical_and", "logical_or", "logical_xor"):
        sign = {"logical_and": "&", "logical_or": "|", "logical_xor": "^"}[name]
        return sign.join(a if x.dtype is dtypes.bool_ else f"({a} != 0)" for a, x in zip(args, v.args, strict=True))
    if name == "logical_not":
        return f"{args[0]} == 0"
    if name in _ARITHMETIC:
        sign = _ARITHMETIC[name]
        if of.category is Category.INT:  # signed overflow wraps, so it is computed unsigned
            return f"({TYPE[of]})((u64){args[0]} {sign} (u64){args[1]})"
        if of is dtypes.bool_:
            return f"{args[0]} {'|' if name == 'add' else '&'} {args[1]}"
        return f"{args[0]} {sign} {args[1]}"
    if name == "div":
        return f"{args[0]} / {args[1]}"
    if name in _BITS:
        return f"({TYPE[v.dtype]})({args[0]} {_BITS[name]} {args[1]})"
    if name == "bitwise_not":
        return f"(b8)!{args[0]}" if of is dtypes.bool_ else f"({TYPE[of]})~{args[0]}"
    if name in ("check_index", "wrap_index"):
        return f"fj_{name}({', '.join(args)}, FJ_CHECKS)"
    if name == "philox":
        return f"fj_{called(v)}({', '.join(args[:4])})"
    if name in ("isnan", "isinf", "isfinite") and of.is_integral:
        return "(b8)1" if name == "isfinite" else "(b8)0"
    return f"fj_{name}({', '.join(args)})"


def cast(x: str, source: dtype, target: dtype) -> str:
    """Conversion as torch's: floats towards zero, integers modulo their width, nonzero to true. A float outside the range is
    converted to int32 (for integers of 8, 16 and 32 bits) or to int64 first, then taken modulo the width.
    """
    if source is target:
        return x
    if source in _HALF:
        x, source = f"fj_from_{TYPE[source]}({x})", dtypes.float32
        if target is dtypes.float32:
            return x
    if target in _HALF:
        return f"fj_to_{TYPE[target]}((f32){x})"
    if target is dtypes.bool_:
        return f"{x} != 0"
    if source.is_floating_point and target.is_integral:
        return f"({TYPE[target]})fj_to_{_THROUGH.get(target, 'i32')}({x})"
    return f"({TYPE[target]}){x}"
