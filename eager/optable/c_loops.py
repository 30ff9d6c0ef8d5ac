"""The scalar rules of the pointwise ops, printed as C loops: the native kernels of eager come from the op table too.

`python -m eager.optable.c_loops` writes `pointwise_loops.h` (float32, float64) and `integer_loops.h` (bool, int32, int64) in
`eager/native/kernels`; a test holds the files against the table. An op whose rule calls a function that `vector_math.h` lacks
has no float loop, and runs on arrays. Integer loops are printed for the ops that `native_kernels.INTEGER_LOOPS` lists.
"""
from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from eager.base.dtypes import Category
from eager.base.records import dataclass
from eager.optable.native_kernels import INTEGER_LOOPS
from eager.optable.registry import Kind
from eager.optable.table import OPS, Op
from eager.startup.places import EAGER_DIR

PATH = Path(EAGER_DIR) / "native" / "kernels" / "pointwise_loops.h"
INTEGER_PATH = PATH.with_name("integer_loops.h")
_FUNCTIONS = frozenset("exp log expm1 tanh log1p erf sqrt rsqrt abs floor ceil trunc round copysign minimum maximum sign "
                       "isnan isinf isfinite signbit".split())  # fmt: skip
_TRUTHS = frozenset("isnan isinf isfinite signbit".split())
_INTEGER_FUNCTIONS = frozenset("floordiv remainder minimum maximum".split())
_TYPES = {"f32": "float", "f64": "double", "bool": "uint8_t", "i32": "int32_t", "i64": "int64_t"}
_FLOATS, _INTEGERS = ("f32", "f64"), ("bool", "i32", "i64")
_BITWISE = {"bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^"}
_LOGICAL = {"logical_and": "&", "logical_or": "|", "logical_xor": "^"}
# Numpy's own loops for these divide integers, check for zeros or are as fast.
_ON_ARRAYS = frozenset("floor_divide div_floor trunc_divide remainder fmod pow".split())


class _NoLoop(Exception):
    """The rule has something that no loop can be printed for."""


class _Lines:
    """Statements of one loop body; equal expressions are computed once."""

    def __init__(self, suffix: str) -> None:
        self.suffix = suffix
        self.type = _TYPES[suffix]
        self.of_integers = suffix in _INTEGERS
        self.names: dict[str, str] = {}
        self.text: list[str] = []

    def bind(self, expression: str, truth: bool) -> _C:
        name = self.names.get(expression)
        if name is None:
            name = self.names[expression] = f"t{len(self.names)}"
            self.text.append(f"const {'int' if truth else self.type} {name} = {expression};")
        return _C(self, name, truth)

    def literal(self, value: Any) -> str:
        if self.of_integers:
            raise _NoLoop("a number in a rule over integers")
        value = float(value)
        if math.isnan(value):
            return "NAN"
        if math.isinf(value):
            return "INFINITY" if value > 0 else "(-INFINITY)"
        text = repr(value) + ("f" if self.suffix == "f32" else "")
        return text if value >= 0 and math.copysign(1, value) > 0 else f"({text})"

    def source(self, value: Any) -> str:
        return value.name if isinstance(value, _C) else self.literal(value)


def _arithmetic(symbol: str, reflected: bool = False) -> Any:
    def method(self: _C, other: Any) -> _C:
        left, right = self.lines.source(self), self.lines.source(other)
        if reflected:
            left, right = right, left
        if self.lines.of_integers:
            return self.lines.bind(_wrapping(self.lines, left, symbol, right), False)
        return self.lines.bind(f"{left} {symbol} {right}", False)

    return method


def _wrapping(lines: _Lines, left: str, symbol: str, right: str) -> str:
    """Integer arithmetic that wraps, as the machine's does: C leaves the overflow of signed integers undefined."""
    if lines.suffix == "bool" or symbol == "/":
        raise _NoLoop("arithmetic of bools, or a true division")
    return f"({lines.type})((u{lines.type}){left} {symbol} (u{lines.type}){right})"


def _comparison(symbol: str) -> Any:
    def method(self: _C, other: Any) -> _C:
        return self.lines.bind(f"{self.lines.source(self)} {symbol} {self.lines.source(other)}", True)

    return method


class _C:
    """A loop value: the name of a C variable."""

    def __init__(self, lines: _Lines, name: str, truth: bool = False) -> None:
        self.lines, self.name, self.truth = lines, name, truth

    __add__, __radd__ = _arithmetic("+"), _arithmetic("+", True)
    __sub__, __rsub__ = _arithmetic("-"), _arithmetic("-", True)
    __mul__, __rmul__ = _arithmetic("*"), _arithmetic("*", True)
    __truediv__, __rtruediv__ = _arithmetic("/"), _arithmetic("/", True)
    __lt__, __le__, __gt__, __ge__ = _comparison("<"), _comparison("<="), _comparison(">"), _comparison(">=")
    __eq__, __ne__ = _comparison("=="), _comparison("!=")  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]

    def __neg__(self) -> _C:
        return self.lines.bind(f"-{self.name}", False)

    def __and__(self, other: _C) -> _C:
        return self._both("&", other)

    def __or__(self, other: _C) -> _C:
        return self._both("|", other)

    def _both(self, symbol: str, other: _C) -> _C:
        if not (self.truth and isinstance(other, _C) and other.truth):
            raise _NoLoop("bits of numbers")
        return self.lines.bind(f"{self.name} {symbol} {other.name}", True)

    def __bool__(self) -> bool:
        raise _NoLoop("a branch on a value")


class _Functions:
    """The loop protocol over C expressions."""

    def __init__(self, lines: _Lines) -> None:
        self.lines = lines

    def __getattr__(self, name: str) -> Any:
        if name not in _FUNCTIONS:
            raise _NoLoop(name)

        def call(*args: Any) -> _C:
            text = ", ".join(self.lines.source(a) for a in args)
            return self.lines.bind(f"{name}_{self.lines.suffix}({text})", name in _TRUTHS)

        return call

    def where(self, condition: _C, a: Any, b: Any) -> _C:
        return self.lines.bind(f"{condition.name} ? {self.lines.source(a)} : {self.lines.source(b)}", False)

    def logical_not(self, x: Any) -> _C:
        return self.lines.bind(f"!{x.name}" if x.truth else f"{x.name} == 0", True)


class _IntegerFunctions:
    """The loop protocol over C expressions of integers and bools. A bool is 0 or 1."""

    def __init__(self, lines: _Lines) -> None:
        self.lines = lines

    def __getattr__(self, name: str) -> Any:
        if name in _BITWISE:
            return lambda x, y: self.lines.bind(f"{x.name} {_BITWISE[name]} {y.name}", False)
        if name in _LOGICAL:
            return lambda x, y: self.lines.bind(f"({x.name} != 0) {_LOGICAL[name]} ({y.name} != 0)", True)
        if name not in _INTEGER_FUNCTIONS or (self.lines.suffix == "bool" and name in ("floordiv", "remainder")):
            raise _NoLoop(name)
        return lambda x, y: self.lines.bind(f"{name}_{self.lines.suffix}({x.name}, {y.name})", False)

    def bitwise_not(self, x: _C) -> _C:
        return self.lines.bind(f"!{x.name}" if self.lines.suffix == "bool" else f"~{x.name}", False)

    def logical_not(self, x: _C) -> _C:
        return self.lines.bind(f"{x.name} == 0", True)


@dataclass(frozen=True)
class Loop:
    """One loop: `given` says for each parameter whether it is a tensor ("v") or a number ("s")."""

    op: Op
    given: str
    suffix: str
    body: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.op.name}_{self.given}_{self.suffix}"

    def text(self) -> str:
        t, result = _TYPES[self.suffix], "uint8_t" if self.op.promotion == "bool" else _TYPES[self.suffix]
        lines, reads = [f"    {result} *out = ctx->out;"], []
        numbers = "number" if self.suffix in _FLOATS else "integer"
        for i, kind in enumerate(self.given):
            if not re.search(rf"\bx{i}\b", " ".join(self.body)):
                continue
            if kind == "s":
                lines.append(f"    const {t} x{i} = ({t})ctx->{numbers}[{i}];")
            else:
                lines.append(f"    const {t} *p{i} = ctx->in[{i}];")
                reads.append(f"const {t} x{i} = p{i}[i]{' != 0' if self.suffix == 'bool' else ''};")
        loop = "\n".join(f"        {line}" for line in (*reads, *self.body))
        return (f"CLONES static void {self.name}(const Pointwise *ctx, long begin, long end)\n{{\n" + "\n".join(lines)
                + f"\n    LOOP_APART\n    for (long i = begin; i < end; i++) {{\n{loop}\n    }}\n}}\n")  # fmt: skip


def _given(op: Op) -> Iterator[str]:
    """The ways to call an op: each tensor parameter a tensor or a number, at least one a tensor."""
    choices = ["vs" if p.is_tensor else "s" for p in op.schema.params]
    for way in itertools.product(*choices):
        if "v" in way:
            yield "".join(way)


def _printable(op: Op) -> bool:
    types = {p.type for p in op.schema.params}
    of_floats = op.kind is Kind.POINTWISE and Category.FLOAT in op.accepts
    return (of_floats and op.scalar is not None and op.meta is None and op.name not in _ON_ARRAYS
            and op.promotion in ("default", "float", "real", "bool") and types <= {"Tensor", "Scalar", "float"}
            and sum(p.is_tensor for p in op.schema.params) <= 2)  # fmt: skip


def _print(op: Op, given: str, suffix: str) -> Loop:
    """One loop. Raises: _NoLoop, AttributeError, TypeError where the rule has no C form."""
    lines = _Lines(suffix)
    functions = _IntegerFunctions(lines) if lines.of_integers else _Functions(lines)
    result = op.scalar(functions, *(_C(lines, f"x{i}") for i in range(len(given))))  # type: ignore[misc]
    if not isinstance(result, _C) or (result.truth is not (op.promotion == "bool")):
        raise _NoLoop("a result of another type")
    return Loop(op, given, suffix, (*lines.text, f"out[i] = {result.name};"))


def loops() -> list[Loop]:
    """All float loops that can be printed, in order of the table."""
    found = []
    for op in OPS.values():
        if not _printable(op):
            continue
        for given, suffix in itertools.product(_given(op), _FLOATS):
            try:
                found.append(_print(op, given, suffix))
            except (_NoLoop, AttributeError, TypeError):
                break
    return found


def integer_loops() -> list[Loop]:
    """The loops over bools, int32 and int64, in order of `INTEGER_LOOPS`. Bools have no arithmetic loops."""
    found = []
    for name in INTEGER_LOOPS:
        for given, suffix in itertools.product(_given(OPS[name]), _INTEGERS):
            try:
                found.append(_print(OPS[name], given, suffix))
            except _NoLoop:
                continue
    return found


def _by_op(made: list[Loop]) -> dict[str, list[Loop]]:
    rows: dict[str, list[Loop]] = {}
    for loop in made:
        rows.setdefault(loop.op.name, []).append(loop)
    return rows


def _by_mask(variants: list[Loop], suffixes: tuple[str, ...]) -> str:
    """The initialiser of `loops[mask][dtype]`: the mask has a bit for each argument that is a tensor."""
    return ", ".join(f"[{sum(1 << i for i, g in enumerate(v.given) if g == 'v')}][{suffixes.index(v.suffix)}] = {v.name}"
                     for v in variants)  # fmt: skip


_HEADING = "/* Made by `python -m eager.optable.c_loops` from the scalar rules of the op table. */\n\n"


def source() -> str:
    """The text of pointwise_loops.h."""
    made = loops()
    table = [f'    {{"{name}", {len(variants[0].given)}, {int(variants[0].op.promotion == "bool")}, {{{_by_mask(variants, _FLOATS)}}}}},'
             for name, variants in _by_op(made).items()]  # fmt: skip
    return (_HEADING + "\n".join(loop.text() for loop in made)
            + "\nstatic const PointwiseOp pointwise_ops[] = {\n" + "\n".join(table) + "\n};\n")  # fmt: skip


def integer_source() -> str:
    """The text of integer_loops.h."""
    made = integer_loops()
    rows = _by_op(made)
    table = [f'    {{{len(variants[0].given)}, {int(variants[0].op.promotion == "bool")}, {int(variants[0].op.fallible)}, '
             f'{{{_by_mask(variants, _INTEGERS)}}}}},' for variants in rows.values()]  # fmt: skip
    kernels = " ".join(f"KERNEL({name}, {i})" for i, name in enumerate(rows))
    return (_HEADING + "\n".join(loop.text() for loop in made)
            + "\nstatic const IntegerOp integer_ops[] = {\n" + "\n".join(table) + "\n};\n\n"
            + f"/* The op and its place in the table. */\n#define INTEGER_KERNELS {kernels}\n")  # fmt: skip


if __name__ == "__main__":
    PATH.write_text(source())
    INTEGER_PATH.write_text(integer_source())
