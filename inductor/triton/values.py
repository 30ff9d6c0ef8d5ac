"""Loop values as Triton expressions: one assignment per distinct value.

Owns the table from `inductor.ir.definitions.OPS` to Triton source. It does not depend on kernels, blocks or masks, except the
two strings that it receives for a load.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final

from eager.base import dtypes
from eager.base.dtypes import dtype
from fxir.expr import printing
from fxir.expr import rules as E
from inductor.ir import definitions as ir

TYPE: Final[dict[dtype, str]] = {
    dtypes.bool_: "tl.int1", dtypes.uint8: "tl.uint8", dtypes.int8: "tl.int8", dtypes.int16: "tl.int16",
    dtypes.int32: "tl.int32", dtypes.int64: "tl.int64", dtypes.float16: "tl.float16", dtypes.bfloat16: "tl.bfloat16",
    dtypes.float32: "tl.float32", dtypes.float64: "tl.float64", dtypes.uint16: "tl.uint16", dtypes.uint32: "tl.uint32",
    dtypes.uint64: "tl.uint64",
}  # fmt: skip
SIGNATURE: Final[dict[dtype, str]] = {
    dtypes.bool_: "*i1", dtypes.uint8: "*u8", dtypes.int8: "*i8", dtypes.int16: "*i16", dtypes.int32: "*i32",
    dtypes.int64: "*i64", dtypes.float16: "*fp16", dtypes.bfloat16: "*bf16", dtypes.float32: "*fp32",
    dtypes.float64: "*fp64", dtypes.uint16: "*u16", dtypes.uint32: "*u32", dtypes.uint64: "*u64",
}  # fmt: skip

_INFIX: Final = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "logical_and": "&", "logical_or": "|", "logical_xor": "^", "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^",
    "left_shift": "<<", "right_shift": ">>",
}  # fmt: skip
_CALLS: Final = {
    "exp": "tl.exp({0})", "exp2": "tl.exp2({0})", "log": "tl.log({0})", "log2": "tl.log2({0})", "sqrt": "tl.sqrt_rn({0})",
    "rsqrt": "tl.rsqrt({0})", "sin": "tl.sin({0})", "cos": "tl.cos({0})", "floor": "tl.floor({0})", "ceil": "tl.ceil({0})",
    "abs": "tl.abs({0})", "neg": "-{0}", "bitwise_not": "~{0}", "logical_not": "({0} == 0)",
    "maximum": "tl.maximum({0}, {1}, propagate_nan=tl.PropagateNan.ALL)",
    "minimum": "tl.minimum({0}, {1}, propagate_nan=tl.PropagateNan.ALL)",
    "where": "tl.where({0}, {1}, {2})", "isnan": "({0} != {0})", "isinf": "(tl.abs({0}) == float('inf'))",
    "isfinite": "(tl.abs({0}) < float('inf'))", "sign": "(tl.where({0} > 0, 1, 0) - tl.where({0} < 0, 1, 0)).to({T})",
    "round": "libdevice.rint({0})", "copysign": "libdevice.copysign({0}, {1})",
}  # fmt: skip
CHECKS: Final = frozenset({"check_index", "wrap_index"})
CHECKS_POINTER: Final = "checks_ptr"
_LIBDEVICE: Final = frozenset(
    "expm1 log10 log1p tan asin acos atan sinh cosh tanh asinh acosh atanh atan2 erf erfc erfinv lgamma digamma trunc fmod "
    "pow hypot signbit".split()
)
_INTEGER: Final = {  # Triton divides towards zero
    "floordiv": "({0} // {1} - tl.where(({0} % {1} != 0) & (({0} < 0) != ({1} < 0)), 1, 0))",
    "remainder": "(({0} % {1}) + tl.where(({0} % {1} != 0) & (({0} < 0) != ({1} < 0)), {1}, 0))",
    "truncdiv": "({0} // {1})",
    "fmod": "({0} % {1})",
    "maximum": "tl.maximum({0}, {1})",
    "minimum": "tl.minimum({0}, {1})",
}
_FLOATING: Final = {
    "floordiv": "tl.floor({0} / {1})",
    "remainder": "fj_remainder({0}, {1})",
    "truncdiv": "libdevice.trunc({0} / {1})",
}


def literal(value: float | bool, of: dtype) -> str:
    """A number as Triton source, with the dtype `of` if Triton would infer another dtype."""
    if of is dtypes.bool_:
        return f"tl.full([1], {int(bool(value))}, tl.int1)"
    if of.is_integral:
        return f"tl.full([1], {int(value)}, {TYPE[of]})"
    if math.isnan(value):
        text = "float('nan')"
    elif math.isinf(value):
        text = "float('inf')" if value > 0 else "float('-inf')"
    else:
        text = repr(float(value))
    return text if of is dtypes.float32 else f"tl.full([1], {text}, {TYPE[of]})"


def index_source(e: E.IntLike, names: Mapping[str, str]) -> str:
    """An index expression over loop variables, named by `names`."""
    return printing.to_source(e, printing.TRITON.with_symbols(lambda s: names.get(s.name, s.name)))


class ValuePrinter:
    """Prints values into `lines`, each distinct value once, and returns the names that hold them.

    load: (buffer, index source, mask value name or None) -> source of the load; names: loop variables by symbol.
    mask: the variable that is true for the elements of the block that exist; only their index checks can fail.
    """

    def __init__(self, lines: list[str], names: Mapping[str, str], load: Callable[[ir.Load, str, str | None], str],
                 mask: str, prefix: str = "tmp") -> None:  # fmt: skip
        self.lines, self.names, self.load, self.mask, self.prefix = lines, dict(names), load, mask, prefix
        self.known: dict[ir.Value, str] = {}

    def print(self, root: ir.Value) -> str:
        """The name (or literal) that holds `root`; new lines are appended as needed."""
        for v in ir.walk([root]):
            if v not in self.known:
                self.known[v] = self._hold(self._source(v), v)
        return self.known[root]

    def _hold(self, source: str, v: ir.Value) -> str:
        if isinstance(v, ir.Const):
            return source
        name = f"{self.prefix}{len(self.lines)}"
        self.lines.append(f"{name} = {source}")
        return name

    def _source(self, v: ir.Value) -> str:
        if isinstance(v, ir.Const):
            return literal(v.value, v.dtype)
        if isinstance(v, ir.Index):
            return f"({index_source(v.expr, self.names)}).to(tl.int64)"
        if isinstance(v, ir.Load):
            names = {**self.names, **{s.name: self.known[x] for s, x in v.indirect}}
            return self.load(v, index_source(v.index, names), None if v.mask is None else self.known[v.mask])
        if isinstance(v, ir.Op):
            return self._operation(v)
        raise TypeError(f"triton: no form for a {type(v).__name__}")

    def _operation(self, v: ir.Op) -> str:
        args = [self.known[a] for a in v.args]
        if v.name == "cast":
            return _cast(args[0], v.args[0].dtype, v.dtype)
        if v.name == "philox":
            seed, low, high, _lane = args
            words = f"tl.philox({seed}.to(tl.uint64), {low}.to(tl.uint32), {high}.to(tl.uint32), 0, 0)"
            which = v.args[3]
            if not isinstance(which, ir.Const):
                raise NotImplementedError("triton: philox with a lane that is not constant")
            return f"{words}[{int(which.value)}]"
        if v.name in CHECKS:
            return self._checked(v.name, args[0], args[1], v.args[2])
        operand = v.args[0].dtype
        table = _INTEGER if operand.is_integral else _FLOATING
        if v.name in table:
            return table[v.name].format(*args)
        if v.name in _INFIX:
            return f"{args[0]} {_INFIX[v.name]} {args[1]}"
        if v.name in _CALLS:
            return _CALLS[v.name].format(*args, T=TYPE[v.dtype])
        if v.name in _LIBDEVICE:
            text = f"libdevice.{v.name}({', '.join(args)})"
            return f"({text} != 0)" if v.dtype is dtypes.bool_ else text
        raise NotImplementedError(f"triton: no form for {v.name} on {operand}")

    def _checked(self, name: str, position: str, size: str, check: ir.Value) -> str:
        """A position if it is in 0..size-1, else 0; then the check fails: its slot gets (1, the given position)."""
        if not isinstance(check, ir.Const):
            raise NotImplementedError("triton: the number of an index check is not constant")
        slot, at = 2 * int(check.value), len(self.lines)
        wrapped = position
        if name == "wrap_index":
            wrapped = f"wrapped{at}"
            self.lines.append(f"{wrapped} = tl.where({position} < 0, {position} + {size}, {position})")
        self.lines += [
            f"outside{at} = ({wrapped} < 0) | ({wrapped} >= {size})",
            f"failed{at} = {self.mask} & outside{at}",
            f"tl.store({CHECKS_POINTER} + tl.where(failed{at}, {slot}, {slot}), tl.where(failed{at}, 1, 0).to(tl.int64), failed{at})",
            f"tl.store({CHECKS_POINTER} + tl.where(failed{at}, {slot + 1}, {slot + 1}), tl.where(failed{at}, {position}, 0), failed{at})",
        ]
        return f"tl.where(outside{at}, 0, {wrapped})"


def _cast(x: str, source: dtype, target: dtype) -> str:
    if target is dtypes.bool_:
        return f"({x} != 0)"
    if x.startswith("float(") or _is_number(x):
        return f"tl.full([1], {x}, {TYPE[target]})"
    return f"{x}.to({TYPE[target]})"


def _is_number(x: str) -> bool:
    try:
        float(x)
    except ValueError:
        return False
    return True
