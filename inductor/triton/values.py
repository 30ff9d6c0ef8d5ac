"""Operations on values as Triton expressions: the table from `inductor.ir.definitions.OPS` to source.

Owns types, numbers and operations. It does not depend on loops, tiles or masks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from eager.base import dtypes
from eager.base.dtypes import dtype
from fxir.expr import printing
from fxir.expr import rules as E
from inductor.ir import definitions as ir
from inductor.triton.helpers import Helpers

TYPE: Final[dict[dtype, str]] = {
    dtypes.bool_: "tl.int1", dtypes.uint8: "tl.uint8", dtypes.int8: "tl.int8", dtypes.int16: "tl.int16",
    dtypes.int32: "tl.int32", dtypes.int64: "tl.int64", dtypes.float16: "tl.float16", dtypes.bfloat16: "tl.bfloat16",
    dtypes.float32: "tl.float32", dtypes.float64: "tl.float64", dtypes.uint16: "tl.uint16", dtypes.uint32: "tl.uint32",
    dtypes.uint64: "tl.uint64", dtypes.float8_e4m3fn: "tl.float8e4nv", dtypes.float8_e5m2: "tl.float8e5",
}  # fmt: skip
SIGNATURE: Final[dict[dtype, str]] = {
    dtypes.bool_: "*i1", dtypes.uint8: "*u8", dtypes.int8: "*i8", dtypes.int16: "*i16", dtypes.int32: "*i32",
    dtypes.int64: "*i64", dtypes.float16: "*fp16", dtypes.bfloat16: "*bf16", dtypes.float32: "*fp32",
    dtypes.float64: "*fp64", dtypes.uint16: "*u16", dtypes.uint32: "*u32", dtypes.uint64: "*u64",
    dtypes.float8_e4m3fn: "*fp8e4nv", dtypes.float8_e5m2: "*fp8e5",
}  # fmt: skip
CHECKS: Final = frozenset({"check_index", "wrap_index"})  # `inductor.triton.loops` prints them: they depend on masks

COMPARE: Final = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_BITS: Final = {"bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^"}
_LOGIC: Final = {"logical_and": "&", "logical_or": "|", "logical_xor": "^"}
_ARITHMETIC: Final = {"add": "+", "sub": "-", "mul": "*"}
_INFIX: Final = frozenset({*COMPARE, *_BITS, *_ARITHMETIC, "where"})  # their operands may be plain numbers
_HALF: Final = (dtypes.float16, dtypes.bfloat16)
# dtypes to which floats convert through int64; to the other integers through int32 (see `inductor.cpp.values`)
_THROUGH: Final = {dtypes.int64: "to_i64", dtypes.uint32: "to_i64", dtypes.uint64: "to_u64"}

# {0} and {1} are operands, {T} is the type of the result, {f[name]} calls a helper
_FLOATING: Final = {
    "floor": "tl.floor({0})", "ceil": "tl.ceil({0})", "abs": "tl.abs({0})", "neg": "({0} * -1.0)", "round": "libdevice.rint({0})",
    "sign": "{f[sign_f]}({0})", "truncdiv": "libdevice.trunc({0} / {1})", "floordiv": "{f[floordiv_f]}({0}, {1})",
    "remainder": "{f[remainder_f]}({0}, {1})", "maximum": "tl.maximum({0}, {1}, propagate_nan=tl.PropagateNan.ALL)",
    "minimum": "tl.minimum({0}, {1}, propagate_nan=tl.PropagateNan.ALL)", "pow": "{f[pow_f]}({0}, {1})", "digamma": "{f[digamma]}({0})",
    "isnan": "({0} != {0})", "isinf": "(tl.abs({0}) == float('inf'))", "isfinite": "(tl.abs({0}) < float('inf'))",
    "div": "{0} / {1}", "sqrt": "tl.sqrt({0})",
}  # fmt: skip
_FLOAT32: Final = {  # the plain forms round less well; libdevice's tanh and erf take the registers of large tiles
    "tanh": "{f[tanh]}({0})", "erf": "{f[erf]}({0})", "exp2": "tl.exp2({0})",
    "div": "tl.div_rn({0}, {1})", "sqrt": "tl.sqrt_rn({0})", "truncdiv": "libdevice.trunc(tl.div_rn({0}, {1}))",
    "floordiv": "{f[floordiv_f32]}({0}, {1})", "signbit": "({0}.to(tl.int32, bitcast=True) < 0)",
}  # fmt: skip
_FLOAT64: Final = {
    "maximum": "{f[maximum_f]}({0}, {1})", "minimum": "{f[minimum_f]}({0}, {1})", "signbit": "({0}.to(tl.int64, bitcast=True) < 0)",
}  # fmt: skip
_LIBDEVICE: Final = frozenset(
    "exp exp2 expm1 log log2 log10 log1p rsqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh atan2 hypot erf erfc "
    "erfinv lgamma trunc fmod copysign".split()
)
_SIGNED: Final = {
    "floordiv": "{f[floordiv]}({0}, {1})", "truncdiv": "{f[truncdiv]}({0}, {1})", "remainder": "{f[floormod]}({0}, {1})",
    "fmod": "{f[fmod]}({0}, {1})", "left_shift": "{f[left_shift]}({0}, {1})", "right_shift": "{f[right_shift]}({0}, {1})",
    "pow": "{f[pow]}({0}, {1})", "abs": "tl.abs({0})", "signbit": "({0} < 0)",
}  # fmt: skip
_UNSIGNED: Final = {
    "floordiv": "{f[truncdiv_u]}({0}, {1})", "truncdiv": "{f[truncdiv_u]}({0}, {1})", "remainder": "{f[fmod_u]}({0}, {1})",
    "fmod": "{f[fmod_u]}({0}, {1})", "left_shift": "{f[left_shift_u]}({0}, {1})", "right_shift": "{f[right_shift_u]}({0}, {1})",
    "pow": "{f[power]}({0}, {1})", "abs": "{0}", "signbit": "({0} != {0})",
}  # fmt: skip
_INTEGER: Final = {
    "neg": "(0 - {0})", "sign": "{f[sign]}({0})", "maximum": "tl.maximum({0}, {1})", "minimum": "tl.minimum({0}, {1})",
    "bitwise_not": "(~{0})", "isnan": "({0} != {0})", "isinf": "({0} != {0})", "isfinite": "({0} == {0})",
    "floor": "{0}", "ceil": "{0}", "round": "{0}", "trunc": "{0}",
}  # fmt: skip
_BOOL: Final = {
    "add": "({0} | {1})", "mul": "({0} & {1})", "maximum": "({0} | {1})", "minimum": "({0} & {1})", "bitwise_not": "({0} == 0)",
    "abs": "{0}", "sign": "{0}", "neg": "{0}", "signbit": "({0} != {0})",
}  # fmt: skip


class Unprintable(NotImplementedError):
    """A kernel, or a part of it, that has no form in Triton; the message says why."""


def type_of(of: dtype) -> str:
    """The Triton type of a dtype. Raises: Unprintable."""
    if of not in TYPE:
        raise Unprintable(f"triton: there is no type for {of.name}; allowed: {', '.join(t.name for t in TYPE)}")
    return TYPE[of]


def literal(value: bool | int | float, of: dtype) -> str:
    """A number as a Triton scalar of type `of`."""
    if of in _HALF:  # the interpreter has no numbers of half precision
        return f"tl.full([], {number(value, of)}, tl.float32).to({type_of(of)})"
    return f"tl.full([], {number(value, of)}, {type_of(of)})"


def number(value: bool | int | float, of: dtype) -> str:
    """A number as plain source."""
    if of is dtypes.bool_ or of.is_integral:
        return str(int(value))
    if math.isnan(value):
        return "float('nan')"
    if math.isinf(value):
        return "float('inf')" if value > 0 else "float('-inf')"
    return repr(float(value))


def index_source(e: E.IntLike, names: dict[str, str], helpers: Helpers) -> str:
    """An index expression over loop variables and sizes, which are written as `names` says. helpers: of the kernel."""
    text = printing.to_source(e, printing.TRITON.with_names(names))
    for name in ("floordiv", "floormod"):  # of operands that may be negative
        if f"fj_{name}(" in text:
            helpers[name]
    return text


def _operand(a: ir.Value, name: str, is_plain: bool) -> str:
    """A constant operand: a plain number where another operand gives it its type."""
    if isinstance(a, ir.Const) and is_plain and a.dtype is not dtypes.bool_ and a.dtype not in _HALF:
        text = number(a.value, a.dtype)
        return f"({text})" if text.startswith("-") else text
    return name


def operation(v: ir.Op, names: Sequence[str], helpers: Helpers) -> str:
    """Source of one operation on named operands. helpers: of the kernel. Raises: Unprintable."""
    of = v.args[0].dtype
    values = v.args[1:] if v.name == "where" else v.args
    has_type = v.name in _INFIX and any(not isinstance(a, ir.Const) for a in values)
    args = [_operand(a, n, has_type) for a, n in zip(v.args, names, strict=True)]
    if v.name == "cast":
        return cast(args[0], of, v.dtype, helpers)
    if v.name == "where":
        return f"tl.where({', '.join([names[0], *args[1:]])})"
    if v.name == "philox":
        return f"{helpers['philox']}({', '.join(args)})"
    if v.name in COMPARE and of is dtypes.bool_:  # Triton orders one bit as a signed number
        return f"{names[0]}.to(tl.int32) {COMPARE[v.name]} {names[1]}.to(tl.int32)"
    if v.name in COMPARE:
        return f"{args[0]} {COMPARE[v.name]} {args[1]}"
    if v.name in _LOGIC or v.name == "logical_not":
        truths = [a if x.dtype is dtypes.bool_ else f"({a} != 0)" for a, x in zip(args, v.args, strict=True)]
        return f"({truths[0]} == 0)" if v.name == "logical_not" else f" {_LOGIC[v.name]} ".join(truths)
    if v.name == "div" and of is dtypes.float32 and _is_one_and_exponential(v.args[1]):
        return f"{args[0]} / {args[1]}"
    for table in _tables(of):
        if v.name in table:
            return table[v.name].format(*args, T=TYPE[v.dtype], f=helpers)
    if v.name in _BITS and of.is_integral:
        return f"{args[0]} {_BITS[v.name]} {args[1]}"
    if v.name in _ARITHMETIC and of not in _HALF:
        return f"{args[0]} {_ARITHMETIC[v.name]} {args[1]}"
    if v.name in _LIBDEVICE and of in (dtypes.float32, dtypes.float64):
        return f"libdevice.{v.name}({', '.join(args)})"
    raise Unprintable(f"triton: there is no form of {v.name} for {of.name}")


def product_operand(v: ir.Op) -> int:
    """The number of the operand of a sum or difference of float32 or float64 that is a product and is not rounded; -1 if none is.

    A GPU multiplies and adds in one instruction. Its compiler would choose the product by the number of its readers, so that kernels which
    compute one value would differ, and an element would not be equal to the maximum of its row. The printed kernel names the product.
    """
    if v.name not in ("add", "sub") or v.dtype not in (dtypes.float32, dtypes.float64):
        return -1
    return next((k for k, x in enumerate(v.args) if isinstance(x, ir.Op) and x.name == "mul"), -1)


def fused(v: ir.Op, number: int, factors: Sequence[str], other: str) -> str:
    """Source of a sum or difference whose operand `number` is the product of `factors`, in one instruction. other: the other operand."""
    a, b = factors
    if v.name == "sub" and number == 0:
        return f"tl.fma({a}, {b}, {other} * -1.0)"
    return f"tl.fma({a}{' * -1.0' if v.name == 'sub' else ''}, {b}, {other})"


def _is_one_and_exponential(v: ir.Value) -> bool:
    """Whether a value is 1 + exp(x), at least 1: the quotient needs no branch for small divisors, and is two units off at most."""
    return isinstance(v, ir.Op) and v.name == "add" and any(isinstance(a, ir.Const) and a.value == 1 for a in v.args) and any(
        isinstance(a, ir.Op) and a.name == "exp" for a in v.args
    )  # fmt: skip


def _tables(of: dtype) -> tuple[dict[str, str], ...]:
    """The forms of operations on operands of a dtype, the first that has one counts."""
    if of is dtypes.bool_:
        return (_BOOL, _INTEGER)
    if of.is_integral:
        return (_SIGNED if of.is_signed else _UNSIGNED, _INTEGER)
    if of in (dtypes.float32, dtypes.float64):
        return (_FLOAT32 if of is dtypes.float32 else _FLOAT64, _FLOATING)
    return ()


def cast(x: str, source: dtype, target: dtype, helpers: Helpers) -> str:
    """Conversion as torch's: floats towards zero, integers modulo their width, nonzero to true. A float outside the range gives
    the lowest int32 (for integers of 8, 16 and 32 bits) or int64, taken modulo the width.
    """
    to = type_of(target)
    if source is target:
        return x
    if target is dtypes.bool_:
        return f"({x} != 0)"
    if source in _HALF and target is not dtypes.float32:
        x, source = f"{x}.to(tl.float32)", dtypes.float32
    if source.is_floating_point and target.is_integral:
        return f"{helpers[_THROUGH.get(target, 'to_i32')]}({x}).to({to})"
    if target in _HALF and source is not dtypes.float32:
        return f"{x}.to(tl.float32).to({to})"
    return f"{x}.to({to})"
