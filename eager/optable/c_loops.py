"""The scalar rules of the pointwise ops, printed as C loops: the native kernels of eager come from the op table too.

`python -m eager.optable.c_loops` writes `eager/native/kernels/pointwise_loops.h`; a test holds the file against the table. An op
whose rule calls a function that `vector_math.h` lacks has no loop, and runs on arrays.
"""
from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eager.base.dtypes import Category
from eager.optable.table import OPS, Kind, Op
from eager.startup.places import EAGER_DIR

PATH = Path(EAGER_DIR) / "native" / "kernels" / "pointwise_loops.h"
_FUNCTIONS = frozenset("exp log expm1 tanh log1p erf sqrt rsqrt abs floor ceil trunc round copysign minimum maximum sign "
                       "isnan isinf isfinite signbit".split())  # fmt: skip
_TRUTHS = frozenset("isnan isinf isfinite signbit".split())
# Numpy's own loops for these divide integers, check for zeros or are as fast.
_ON_ARRAYS = frozenset("floor_divide div_floor trunc_divide remainder fmod pow".split())


class _NoLoop(Exception):
    """The rule has something that no loop can be printed for."""


class _Lines:
    """Statements of one loop body; equal expressions are computed once."""

    def __init__(self, suffix: str) -> None:
        self.suffix = suffix
        self.type = {"f32": "float", "f64": "double"}[suffix]
        self.names: dict[str, str] = {}
        self.text: list[str] = []

    def bind(self, expression: str, truth: bool) -> _C:
        name = self.names.get(expression)
        if name is None:
            name = self.names[expression] = f"t{len(self.names)}"
            self.text.append(f"const {'int' if truth else self.type} {name} = {expression};")
        return _C(self, name, truth)

    def literal(self, value: Any) -> str:
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
        return self.lines.bind(f"{right} {symbol} {left}" if reflected else f"{left} {symbol} {right}", False)

    return method


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
        t, truth = {"f32": "float", "f64": "double"}[self.suffix], self.op.promotion == "bool"
        lines = [f"    {'unsigned char' if truth else t} *out = ctx->out;"]
        used = [i for i in range(len(self.given)) if re.search(rf"\bx{i}\b", " ".join(self.body))]
        for i, kind in ((i, self.given[i]) for i in used):
            lines.append(f"    const {t} *p{i} = ctx->in[{i}];" if kind == "v" else
                         f"    const {t} x{i} = ({t})ctx->number[{i}];")  # fmt: skip
        reads = [f"const {t} x{i} = p{i}[i];" for i in used if self.given[i] == "v"]
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


def loops() -> list[Loop]:
    """All loops that can be printed, in order of the table."""
    found = []
    for op in OPS.values():
        if not _printable(op):
            continue
        for given, suffix in itertools.product(_given(op), ("f32", "f64")):
            lines = _Lines(suffix)
            try:
                result = op.scalar(_Functions(lines), *(_C(lines, f"x{i}") for i in range(len(given))))  # type: ignore[misc]
            except (_NoLoop, AttributeError, TypeError):
                break
            if not isinstance(result, _C) or result.truth is not (op.promotion == "bool"):
                break
            found.append(Loop(op, given, suffix, (*lines.text, f"out[i] = {result.name};")))
    return found


def source() -> str:
    """The text of the header."""
    made = loops()
    rows: dict[str, list[Loop]] = {}
    for loop in made:
        rows.setdefault(loop.op.name, []).append(loop)
    table = []
    for name, variants in rows.items():
        truth = int(variants[0].op.promotion == "bool")
        by_mask = ", ".join(f"[{sum(1 << i for i, g in enumerate(v.given) if g == 'v')}][{int(v.suffix == 'f64')}] = {v.name}"
                            for v in variants)  # fmt: skip
        table.append(f'    {{"{name}", {len(variants[0].given)}, {truth}, {{{by_mask}}}}},')
    return ("/* Made by `python -m eager.optable.c_loops` from the scalar rules of the op table. */\n\n"
            + "\n".join(loop.text() for loop in made)
            + "\nstatic const PointwiseOp pointwise_ops[] = {\n" + "\n".join(table) + "\n};\n")  # fmt: skip


if __name__ == "__main__":
    PATH.write_text(source())
