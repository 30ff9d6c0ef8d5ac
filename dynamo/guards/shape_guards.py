"""From a relation between integer or float expressions to the operand of a "shape" guard.

A `ShapeCheck` holds the steps of the native check and the text of the relation; the sources of the guard are the tensors and numbers
that the steps read. `kinds.STEPS` describes the steps.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

from dynamo.guards.sources import GeometrySource, Source
from eager.base.records import dataclass
from fxir.expr.printing import PYTHON, to_source
from fxir.expr.rules import Add, Expr, FloorDiv, Int, Max, Min, Mod, Mul, Sym, as_expr
from fxir.symbols.floats import FloatExpr, FloatRelation, Operand, to_text
from fxir.symbols.shapes import MOST, Relation, ShapeEnv

Steps = tuple[Any, ...]

_RELATIONS: Final = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le"}


@dataclass(frozen=True, slots=True, eq=False)
class ShapeCheck:
    """steps: of `kinds.STEPS`. text: the relation over the names of `terms`. hints: the values of the terms during the capture."""

    steps: Steps
    text: str
    terms: tuple[Source, ...]
    hints: tuple[Any, ...]

    def expected(self) -> str:
        """For reports: the relation, and the values of its terms during the capture."""
        return f"{self.text} (as with {_values(self.terms, self.hints)})"

    def actual(self, slots: tuple[Any, ...]) -> str:
        """For reports: the current values of the terms."""
        return _values(self.terms, [t.read(slots) for t in self.terms])


def _values(terms: Sequence[Source], values: Sequence[Any]) -> str:
    return ", ".join(f"{t.name}={v}" for t, v in zip(terms, values, strict=True))


def base_of(term: Source) -> Source:
    """The object that a guard program fetches to read `term`: a tensor, or the number itself."""
    return term.parent if isinstance(term, GeometrySource) else term


def read_term(term: Source, bases: Sequence[Source]) -> Steps:
    """The step that reads `term` from one of `bases`."""
    k = bases.index(base_of(term))
    if not isinstance(term, GeometrySource):
        return "int", k  # for a float, `check_of_floats` writes the step
    return (term.kind, k) if term.kind == "offset" else (term.kind, k, term.dim)


def equal_terms(a: Source, b: Source, hint: int) -> tuple[tuple[Source, ...], ShapeCheck]:
    """(sources, check) of two terms that share a symbol."""
    bases = tuple(dict.fromkeys((base_of(a), base_of(b))))
    steps = (*read_term(a, bases), *read_term(b, bases), "eq")
    return bases, ShapeCheck(steps, f"{a.name} == {b.name}", (a, b), (hint, hint))


def check_of(r: Relation, env: ShapeEnv) -> tuple[tuple[Source, ...], ShapeCheck]:
    """(sources, check) of a relation over symbols of `env`."""
    symbols = sorted(r.symbols, key=lambda s: s.name)
    terms = tuple(env.symbols[s].source for s in symbols)
    bases = tuple(dict.fromkeys(map(base_of, terms)))
    names = {s: t.name for s, t in zip(symbols, terms, strict=True)}
    style = PYTHON.with_symbols(names.__getitem__)
    read = {s: read_term(t, bases) for s, t in zip(symbols, terms, strict=True)}
    steps = (*_steps(r.left, read), *_steps(r.right, read), _RELATIONS[r.op])
    text = f"{to_source(r.left, style)} {r.op} {to_source(r.right, style)}"
    return bases, ShapeCheck(steps, text, terms, tuple(env.symbols[s].hint for s in symbols))


def _steps(e: Expr, read: dict[Sym, Steps]) -> Steps:
    return _STEPS[type(e)](e, read)


def _fold(op: str, items: Sequence[Steps]) -> Steps:
    out = items[0]
    for item in items[1:]:
        out = (*out, *item, op)
    return out


def _sum(e: Add, read: dict[Sym, Steps]) -> Steps:
    parts = [_steps(t, read) if c == 1 else (*_steps(t, read), "const", c, "mul") for t, c in e.terms]
    return _fold("add", [*parts, ("const", e.const)] if e.const else parts)


def _pair(op: str) -> Callable[[Any, dict[Sym, Steps]], Steps]:
    return lambda e, read: (*_steps(e.a, read), *_steps(e.b, read), op)


def _all(op: str, name: str) -> Callable[[Any, dict[Sym, Steps]], Steps]:
    return lambda e, read: _fold(op, [_steps(x, read) for x in getattr(e, name)])


_STEPS: Final[dict[type[Expr], Callable[[Any, dict[Sym, Steps]], Steps]]] = {
    Int: lambda e, read: ("const", e.value),
    Sym: lambda e, read: read[e],
    Add: _sum,
    Mul: _all("mul", "factors"),
    FloorDiv: _pair("floordiv"),
    Mod: _pair("mod"),
    Min: _all("min", "args"),
    Max: _all("max", "args"),
}


def check_of_floats(r: FloatRelation, env: ShapeEnv) -> tuple[tuple[Source, ...], ShapeCheck]:
    """(sources, check) of a relation between floats over symbols of `env`."""
    symbols = sorted(r.symbols, key=lambda s: s.name)
    terms = tuple(env.symbols[s].source for s in symbols)
    bases = tuple(dict.fromkeys(map(base_of, terms)))
    names = {s: t.name for s, t in zip(symbols, terms, strict=True)}
    hints = tuple(env.symbols[s].hint for s in symbols)
    read: dict[Sym, Steps] = {}
    for s, t, hint in zip(symbols, terms, hints, strict=True):
        read[s] = ("float", bases.index(t)) if isinstance(hint, float) else read_term(t, bases)
    steps = (*_float_steps(r.left, read), *_float_steps(r.right, read), _FLOAT_RELATIONS[r.op, r.truth])
    text = f"{to_text(r.left, names.__getitem__)} {r.op} {to_text(r.right, names.__getitem__)}"
    return bases, ShapeCheck(steps, text if r.truth else f"not {text}", terms, hints)


def _float_steps(e: Operand, read: dict[Sym, Steps]) -> Steps:
    if not isinstance(e, FloatExpr):
        return "const", struct.unpack("q", struct.pack("d", e))[0]
    if e.op == "symbol":
        return read[e.args[0]]
    if e.op == "int":
        return *_steps(e.args[0], read), "to_float"
    parts = [step for a in e.args for step in _float_steps(a, read)]
    return *parts, f"f{e.op}"


_FLOAT_RELATIONS: Final = {
    ("==", True): "feq",
    ("==", False): "fne",
    ("!=", True): "fne",
    ("!=", False): "feq",
    ("<", True): "flt",
    ("<", False): "fnot_lt",
    ("<=", True): "fle",
    ("<=", False): "fnot_le",
}


def bounds_of(s: Sym, source: Source) -> list[Relation]:
    """The relations that the bounds of a symbol state, without the relations that guards of other kinds check: a size is at
    least 2, an int has 62 bits."""
    if not isinstance(source, GeometrySource):
        return []
    checked = 2 if source.kind == "size" else 0
    low = [Relation("<=", as_expr(int(s.lo)), s)] if s.lo > checked else []
    return [*low, Relation("<=", s, as_expr(int(s.hi)))] if s.hi < MOST else low
