"""Integer expressions as source text: Python, C and Triton.

C and Triton round quotients towards zero, so plain `/` and `%` are printed only if both operands are provably not negative.
Otherwise the text calls the style's `floordiv` and `mod`, which the emitted prelude must define (`C_HELPERS` is such a
definition).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Final

from eager.base.records import dataclass
from fxir.expr.rules import Add, Expr, FloorDiv, Int, IntLike, Max, Min, Mod, Mul, Sym, as_expr

_SUM, _PRODUCT, _ATOM = 1, 2, 3


@dataclass(frozen=True, slots=True)
class Style:
    """The syntax of expressions in one language. Templates take {a} and {b}; an empty template means the infix form."""

    div: str = "//"
    floordiv: str = ""
    mod: str = ""
    minimum: str = "min({a}, {b})"
    maximum: str = "max({a}, {b})"
    suffix: str = ""  # of integer literals beyond 31 bits
    symbol: Callable[[Sym], str] | None = None  # writes a symbol; by default as `names` says, or as its name
    names: Mapping[str, str] = field(default_factory=dict)

    def with_symbols(self, symbol: Callable[[Sym], str]) -> Style:
        """The same style with symbols written by `symbol`."""
        return replace(self, symbol=symbol)

    def with_names(self, names: Mapping[str, str]) -> Style:
        """The same style with symbols written as `names` says, or as their own names."""
        return replace(self, names=names)


PYTHON: Final = Style()
C: Final = Style(
    div="/",
    floordiv="fj_floordiv({a}, {b})",
    mod="fj_floormod({a}, {b})",
    minimum="fj_min({a}, {b})",
    maximum="fj_max({a}, {b})",
    suffix="LL",
)
TRITON: Final = Style(
    floordiv="fj_floordiv({a}, {b})",
    mod="fj_floormod({a}, {b})",
    minimum="tl.minimum({a}, {b})",
    maximum="tl.maximum({a}, {b})",
)

C_HELPERS: Final = """\
static inline long long fj_floordiv(long long a, long long b) {
  return a / b - ((a % b != 0) & ((a < 0) != (b < 0)));
}
static inline long long fj_floormod(long long a, long long b) {
  long long r = a % b;
  return r + ((r != 0) & ((r < 0) != (b < 0))) * b;
}
static inline long long fj_min(long long a, long long b) { return a < b ? a : b; }
static inline long long fj_max(long long a, long long b) { return a > b ? a : b; }
"""


def to_python(e: IntLike) -> str:
    """Python source of `e`, with symbols written by name."""
    return to_source(e, PYTHON)


def to_c(e: IntLike, symbol: Callable[[Sym], str] | None = None) -> str:
    """C source of `e` over `long long` symbols, which `symbol` writes (by default their names)."""
    return to_source(e, C if symbol is None else C.with_symbols(symbol))


def to_source(e: IntLike, style: Style) -> str:
    """Source of `e` in `style`."""
    return _write(e if isinstance(e, Expr) else as_expr(e), style, _SUM)


def _write(e: Expr, style: Style, level: int) -> str:
    text, own = _WRITERS[type(e)](e, style)
    return text if own >= level else f"({text})"


def _literal(value: int, style: Style) -> str:
    if style.suffix and abs(value) >= 1 << 63:
        raise OverflowError(f"to_source: {value} does not fit into 64 bits")
    return f"{value}{style.suffix}" if abs(value) >= 1 << 31 else str(value)


def _int(e: Int, style: Style) -> tuple[str, int]:
    return _literal(e.value, style), _ATOM if e.value >= 0 else _SUM


def _sym(e: Sym, style: Style) -> tuple[str, int]:
    return style.names.get(e.name, e.name) if style.symbol is None else style.symbol(e), _ATOM


def _mul(e: Mul, style: Style) -> tuple[str, int]:
    return "*".join(_write(f, style, _ATOM) for f in e.factors), _PRODUCT


def _scaled(term: Expr, coef: int, style: Style) -> str:
    if coef == 1:
        return _write(term, style, _PRODUCT)
    return f"{_literal(coef, style)}*{_write(term, style, _ATOM if not isinstance(term, Mul) else _PRODUCT)}"


def _add(e: Add, style: Style) -> tuple[str, int]:
    if e.const == 0 and len(e.terms) == 1 and e.terms[0][1] > 0:
        return _scaled(*e.terms[0], style), _PRODUCT
    positive = [(t, c) for t, c in e.terms if c > 0]
    negative = [(t, -c) for t, c in e.terms if c < 0]
    text = " + ".join(_scaled(t, c, style) for t, c in positive)
    if e.const > 0 or not text:
        text = f"{text} + {_literal(e.const, style)}" if text else _literal(e.const, style)
    elif e.const < 0:
        text += f" - {_literal(-e.const, style)}"
    return text + "".join(f" - {_scaled(t, c, style)}" for t, c in negative), _SUM


def _division(e: FloorDiv | Mod, style: Style) -> tuple[str, int]:
    template, sign = (style.floordiv, style.div) if isinstance(e, FloorDiv) else (style.mod, "%")
    if template and (e.a.lo < 0 or e.b.lo < 1):
        return template.format(a=_write(e.a, style, _SUM), b=_write(e.b, style, _SUM)), _ATOM
    # The level of a division is below the level of a factor, so that `a*(b//c)` keeps its parentheses.
    return f"{_write(e.a, style, _ATOM)} {sign} {_write(e.b, style, _ATOM)}", _PRODUCT


def _extremum(e: Min | Max, style: Style) -> tuple[str, int]:
    template = style.minimum if isinstance(e, Min) else style.maximum
    text = _write(e.args[0], style, _SUM)
    for arg in e.args[1:]:
        text = template.format(a=text, b=_write(arg, style, _SUM))
    return text, _ATOM


_WRITERS: Final[dict[type[Expr], Callable[..., tuple[str, int]]]] = {
    Int: _int,
    Sym: _sym,
    Mul: _mul,
    Add: _add,
    FloorDiv: _division,
    Mod: _division,
    Min: _extremum,
    Max: _extremum,
}
