"""Integer expressions: interned nodes with bounds, and the functions that build, rewrite and evaluate them.

Owns the classes, their identity (one object for each normal form), the bounds of each class, their structural order, sums, products,
divisions, substitution and evaluation. The laws of division, and of sums that contain divisions, are in `fxir.expr.rules`, which
registers them here (`RULES`, `SUM_RULES`) and exports everything: import from there.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias, TypeVar, Union
from weakref import WeakValueDictionary

from eager.base.locks import new_lock
from eager.base.records import dataclass

IntLike: TypeAlias = Union["Expr", int]
Bound: TypeAlias = int | float  # a float is always +-inf
E = TypeVar("E", bound="Expr")


class Expr:
    """An integer expression. Build with the operators and the functions of `fxir.expr.rules`, which keep one object for each normal form.

    lo, hi: inclusive bounds. children: the expressions that it is computed from. symbols: the symbols in it. key: orders expressions
    the same way in every process. fields: the names of the attributes that identify a node of the class, in the order of `__init__`.
    """

    __slots__ = ("__weakref__", "_multiple", "children", "hi", "key", "lo", "symbols")

    rank: ClassVar[int] = 0
    fields: ClassVar[tuple[str, ...]] = ()
    lo: Bound
    hi: Bound
    children: tuple[Expr, ...]
    symbols: frozenset[Sym]
    key: tuple[Any, ...]
    _multiple: int

    def __init__(self, children: tuple[Expr, ...], bounds: tuple[Bound, Bound], key: tuple[Any, ...]) -> None:
        self.children = children
        self.lo, self.hi = bounds
        self.key = key
        self.symbols = _union(children)
        self._multiple = -1

    if TYPE_CHECKING:  # installed by fxir.expr.arithmetic, where the functions exist

        def __add__(self, other: IntLike) -> Expr: ...
        def __radd__(self, other: IntLike) -> Expr: ...
        def __sub__(self, other: IntLike) -> Expr: ...
        def __rsub__(self, other: IntLike) -> Expr: ...
        def __neg__(self) -> Expr: ...
        def __mul__(self, other: IntLike) -> Expr: ...
        def __rmul__(self, other: IntLike) -> Expr: ...
        def __floordiv__(self, other: IntLike) -> Expr: ...
        def __rfloordiv__(self, other: IntLike) -> Expr: ...
        def __mod__(self, other: IntLike) -> Expr: ...
        def __rmod__(self, other: IntLike) -> Expr: ...

    # -- facts -------------------------------------------------------------------------------------------------
    @property
    def multiple_of(self) -> int:
        """The largest known positive integer that divides every value of the expression (0 for the constant 0)."""
        if self._multiple < 0:
            self._multiple = self._make_multiple()
        return self._multiple

    def _make_multiple(self) -> int:
        return 1

    def __copy__(self) -> Expr:
        return self

    def __deepcopy__(self, memo: object) -> Expr:
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.children))})"


def _union(parts: tuple[Expr, ...]) -> frozenset[Sym]:
    """The symbols of all parts: the set of the first part if it has them all."""
    found: frozenset[Sym] = frozenset()
    for p in parts:
        if not p.symbols <= found:
            found = found | p.symbols if found else p.symbols
    return found


class Int(Expr):
    """A constant."""

    __slots__ = ("value",)
    rank = 0
    fields = ("value",)
    value: int

    def __init__(self, value: int) -> None:
        self.value = value
        super().__init__((), (value, value), (0, value))

    def _make_multiple(self) -> int:
        return abs(self.value)

    def __int__(self) -> int:
        return self.value

    __index__ = __int__

    def __repr__(self) -> str:
        return str(self.value)


class Sym(Expr):
    """A symbol with inclusive bounds. It is known to be a multiple of `multiple`, and less than `below` if that is given (a
    loop variable, whose range is itself an expression). All these attributes make up its identity.
    """

    __slots__ = ("below", "multiple", "name")
    rank = 1
    fields = ("name", "lo", "hi", "multiple", "below")
    name: str
    multiple: int
    below: Expr | None

    def __init__(self, name: str, lo: Bound, hi: Bound, multiple: int, below: Expr | None) -> None:
        self.name, self.multiple, self.below = name, multiple, below
        super().__init__((), (lo, hi), (1, name, lo, hi, multiple, () if below is None else below.key))
        self.symbols = frozenset((self,))

    def _make_multiple(self) -> int:
        return self.multiple

    def __repr__(self) -> str:
        return self.name


class Mul(Expr):
    """A product of two or more factors, sorted; no factor is a constant or a sum (products are multiplied out)."""

    __slots__ = ("factors",)
    rank = 2
    fields = ("factors",)
    factors: tuple[Expr, ...]

    def __init__(self, factors: tuple[Expr, ...]) -> None:
        self.factors = factors
        super().__init__(factors, mul_bounds(factors), (2, *map(_KEY, factors)))

    def _make_multiple(self) -> int:
        return math.prod(f.multiple_of for f in self.factors)

    def __repr__(self) -> str:
        return "*".join(_atom(f) for f in self.factors)


class FloorDiv(Expr):
    """floor(a / b)."""

    __slots__ = ("a", "b")
    rank = 3
    fields = ("a", "b")
    a: Expr
    b: Expr

    def __init__(self, a: Expr, b: Expr) -> None:
        self.a, self.b = a, b
        super().__init__((a, b), floordiv_bounds(a, b), (3, a.key, b.key))

    def __repr__(self) -> str:
        return f"{_atom(self.a)}//{_atom(self.b)}"


class Mod(Expr):
    """a - b*floor(a / b)."""

    __slots__ = ("a", "b")
    rank = 4
    fields = ("a", "b")
    a: Expr
    b: Expr

    def __init__(self, a: Expr, b: Expr) -> None:
        self.a, self.b = a, b
        super().__init__((a, b), mod_bounds(a, b), (4, a.key, b.key))

    def _make_multiple(self) -> int:
        return math.gcd(self.a.multiple_of, self.b.multiple_of)

    def __repr__(self) -> str:
        return f"{_atom(self.a)}%{_atom(self.b)}"


class Extremum(Expr):
    """Base of Min and Max."""

    __slots__ = ("args",)
    fields = ("args",)
    args: tuple[Expr, ...]

    def _make_multiple(self) -> int:
        return math.gcd(*(a.multiple_of for a in self.args))


class Min(Extremum):
    """The least of two or more expressions."""

    __slots__ = ()
    rank = 5

    def __init__(self, args: tuple[Expr, ...]) -> None:
        self.args = args
        super().__init__(args, (min(a.lo for a in args), min(a.hi for a in args)), (5, *map(_KEY, args)))


class Max(Extremum):
    """The greatest of two or more expressions."""

    __slots__ = ()
    rank = 6

    def __init__(self, args: tuple[Expr, ...]) -> None:
        self.args = args
        super().__init__(args, (max(a.lo for a in args), max(a.hi for a in args)), (6, *map(_KEY, args)))


class Add(Expr):
    """const + sum of coef*term; terms sorted, coefs not 0, no term a constant or a sum. `4*i` alone is an Add too."""

    __slots__ = ("const", "terms")
    rank = 7
    fields = ("const", "terms")
    const: int
    terms: tuple[tuple[Expr, int], ...]

    def __init__(self, const: int, terms: tuple[tuple[Expr, int], ...]) -> None:
        self.const, self.terms = const, terms
        children = tuple([t for t, _ in terms])
        super().__init__(children, add_bounds(const, terms), (7, tuple([(t.key, c) for t, c in terms]), const))

    def _make_multiple(self) -> int:
        return math.gcd(self.const, *(c * t.multiple_of for t, c in self.terms))

    def __repr__(self) -> str:
        parts = [_atom(t) if c == 1 else f"{c}*{_atom(t)}" for t, c in self.terms]
        return " + ".join([*parts, str(self.const)] if self.const else parts)


_KEY: Final = operator.attrgetter("key")


def _atom(e: Expr) -> str:
    return f"({e!r})" if isinstance(e, Add | Mul | FloorDiv | Mod) else repr(e)


# -- bounds: inclusive; plus or minus infinity means "not known" -------------------------------------------------
def _times(x: Bound, y: Bound) -> Bound:
    return 0 if x == 0 or y == 0 else x * y


def mul_bounds(factors: Sequence[Expr]) -> tuple[Bound, Bound]:
    """Bounds of a product (of a square if both factors are the same object)."""
    lo: Bound = 1
    hi: Bound = 1
    for f in factors:
        corners = (_times(lo, f.lo), _times(lo, f.hi), _times(hi, f.lo), _times(hi, f.hi))
        lo, hi = min(corners), max(corners)
    if len(factors) == 2 and factors[0] is factors[1]:
        lo = max(lo, 0)
    return lo, hi


def add_bounds(const: int, terms: Sequence[tuple[Expr, int]]) -> tuple[Bound, Bound]:
    """Bounds of const + sum of coef*term."""
    lo: Bound = const
    hi: Bound = const
    for t, c in terms:
        if c > 0:
            lo += c * t.lo
            hi += c * t.hi
        else:
            lo += c * t.hi
            hi += c * t.lo
    return lo, hi


def _floor_bound(x: Bound, d: Bound) -> Bound:
    """Limit of floor(x/d) for d > 0, either of them possibly infinite."""
    if d == inf:
        return (0 if x >= 0 else -1) if abs(x) != inf else x
    return x // d if abs(x) != inf else x


def floordiv_bounds(a: Expr, b: Expr) -> tuple[Bound, Bound]:
    """Bounds of floor(a/b); not known if b may be 0 or negative."""
    if b.lo < 1:
        return -inf, inf
    corners = [_floor_bound(x, d) for x in (a.lo, a.hi) for d in (b.lo, b.hi)]
    return min(corners), max(corners)


def mod_bounds(a: Expr, b: Expr) -> tuple[Bound, Bound]:
    """Bounds of a modulo b."""
    if b.lo >= 1:
        top = b.hi - 1
        return 0, min(top, a.hi) if a.lo >= 0 else top
    if b.hi <= -1:
        return b.lo + 1, 0
    return -inf, inf


# -- interning ---------------------------------------------------------------------------------------------------
_table: WeakValueDictionary[tuple[Any, ...], Expr] = WeakValueDictionary()
_lock = new_lock()


def intern(cls: type[E], fields: tuple[Any, ...]) -> E:
    """The unique node of class `cls` with these fields, which must be in normal form already."""
    key = (cls, *fields)
    e: Any = _table.get(key)  # its fields depend on the class
    if e is None:
        with _lock:
            e = _table.get(key)
            if e is None:  # a finalizer that runs during the construction may build the same node: the first in the table stays
                e = _table.setdefault(key, cls(*fields))
    found: E = e
    return found


def integer(value: int) -> Int:
    """The constant `value`."""
    e = _small.get(value)
    return e if e is not None else intern(Int, (int(value),))


def sym(name: str, lo: Bound = -inf, hi: Bound = inf, multiple: int = 1, below: Expr | None = None) -> Expr:
    """A symbol in lo..hi (inclusive), a multiple of `multiple`, less than `below`. With one possible value: that constant.

    Raises: ValueError for empty bounds or multiple < 1.
    """
    if lo > hi or multiple < 1:
        raise ValueError(f"sym {name!r}: bounds {lo}..{hi}, multiple {multiple}; allowed: lo <= hi, multiple >= 1")
    return integer(int(lo)) if lo == hi else intern(Sym, (name, lo, hi, multiple, below))


def as_expr(x: IntLike) -> Expr:
    """An expression from an expression or an int. Raises: TypeError for anything else."""
    if isinstance(x, Expr):
        return x
    if type(x) is int:
        return integer(x)
    if hasattr(x, "__index__"):  # numpy integers, bools
        return integer(operator.index(x))
    raise TypeError(f"expr: {x!r} is a {type(x).__name__}; allowed: Expr or int")


def terms_of(e: Expr) -> tuple[int, tuple[tuple[Expr, int], ...]]:
    """(const, ((term, coef), ...)) of any expression."""
    if isinstance(e, Add):
        return e.const, e.terms
    if isinstance(e, Int):
        return e.value, ()
    return 0, ((e, 1),)


def factors_of(term: Expr) -> tuple[Expr, ...]:
    """The factors of a product, or the term itself."""
    return term.factors if isinstance(term, Mul) else (term,)


by_structure: Final = operator.attrgetter("key")  # a sort key that is the same in every process
_small: Final[dict[int, Int]] = {}
_small.update({i: integer(i) for i in range(-64, 1025)})

# -- laws, registered by fxir.expr.rules ---------------------------------------------------------------------------------
Changed: TypeAlias = "tuple[int, dict[Expr, int]] | None"  # (constant to add, the new coefficients)


@dataclass(frozen=True, slots=True)
class Rule:
    """A law of division: `apply(a, b)` returns the value of `a op b` (see `statement`), or None if the law does not apply."""

    statement: str
    apply: Callable[[Expr, Expr], Expr | None]


RULES: Final[dict[type[Expr], tuple[Rule, ...]]] = {}  # tried in order; the first rule that applies gives the result
SUM_RULES: Final[list[Callable[[dict[Expr, int]], Changed]]] = []

_MEMO_LIMIT: Final = 1 << 17
_memo: dict[tuple[Any, ...], Expr] = {}


def clear_memo() -> None:
    """Forget memoised results (they keep expressions alive). Values and identities do not change."""
    _memo.clear()


def _remember(key: tuple[Any, ...], e: Expr) -> Expr:
    if len(_memo) >= _MEMO_LIMIT:
        _memo.clear()
    _memo[key] = e
    return e


# -- constructors ------------------------------------------------------------------------------------------------


def linear(const: int, terms: Iterable[tuple[Expr, int]]) -> Expr:
    """const + sum of coef*term, normalised. Terms may repeat and be any expressions."""
    total = const
    sums: dict[Expr, int] = {}
    for term, coef in terms:
        if isinstance(term, Add | Int):
            inner_const, inner = terms_of(term)
            total += coef * inner_const
            for t, c in inner:
                sums[t] = sums.get(t, 0) + coef * c
        else:
            sums[term] = sums.get(term, 0) + coef
    return _linear(total, sums)


def _linear(const: int, sums: dict[Expr, int]) -> Expr:
    live = {t: c for t, c in sums.items() if c} if 0 in sums.values() else sums
    if len(live) > 1:
        for t in live:
            if t.rank in _DIVISION_RANKS or (t.rank == Mul.rank and any(f.rank in _DIVISION_RANKS for f in factors_of(t))):
                const, live = _apply_sum_rules(const, live)
                break
    if not live:
        return integer(const)
    if len(live) == 1:
        ((term, coef),) = live.items()
        return term if coef == 1 and const == 0 else intern(Add, (const, ((term, coef),)))
    return intern(Add, (const, tuple([(t, live[t]) for t in sorted(live, key=by_structure)])))


_DIVISION_RANKS: Final = frozenset((FloorDiv.rank, Mod.rank))


def _apply_sum_rules(const: int, live: dict[Expr, int]) -> tuple[int, dict[Expr, int]]:
    for rule in SUM_RULES:
        while (changed := rule(live)) is not None:
            more, live = changed
            const += more
    return const, live


def add(a: IntLike, b: IntLike) -> Expr:
    """a + b."""
    if type(a) is int:
        a, b = b, a
    key = (Add, a, b)
    found = _memo.get(key)
    if found is not None:
        return found
    x, y = as_expr(a), as_expr(b)
    if isinstance(y, Int):
        # Adding a constant keeps the terms in normal form: no law of sums reads the constant.
        const, terms = terms_of(x)
        return _remember((Add, x, y.value), sum_of(const + y.value, terms))
    return _remember((Add, x, y), linear(0, ((x, 1), (y, 1))))


def sum_of(const: int, terms: tuple[tuple[Expr, int], ...]) -> Expr:
    """const + sum of coef*term, which are in normal form already."""
    if not terms:
        return integer(const)
    return terms[0][0] if const == 0 and len(terms) == 1 and terms[0][1] == 1 else intern(Add, (const, terms))


def total(items: Iterable[IntLike]) -> Expr:
    """The sum of all items, normalised once."""
    return linear(0, ((as_expr(i), 1) for i in items))


def dot(xs: Iterable[IntLike], ys: Iterable[IntLike]) -> Expr:
    """The sum of the products x*y of pairs, normalised once."""
    return linear(0, [(as_expr(x), y) if type(y) is int else (mul(x, y), 1) for x, y in zip(xs, ys, strict=True)])


def mul(a: IntLike, b: IntLike) -> Expr:
    """a * b. Sums are multiplied out."""
    x, y = as_expr(a), as_expr(b)
    if isinstance(x, Int):
        x, y = y, x
    if isinstance(y, Int):
        return _scale(x, y.value)
    key = (Mul, x, y)
    found = _memo.get(key)
    if found is not None:
        return found
    cx, tx = terms_of(x)
    cy, ty = terms_of(y)
    sums: dict[Expr, int] = {}
    for t, c in tx:
        for u, d in ty:
            m = _monomial((*factors_of(t), *factors_of(u)))
            sums[m] = sums.get(m, 0) + c * d
        if cy:
            sums[t] = sums.get(t, 0) + c * cy
    if cx:
        for u, d in ty:
            sums[u] = sums.get(u, 0) + cx * d
    return _remember(key, _linear(cx * cy, sums))


def _scale(e: Expr, k: int) -> Expr:
    if k == 1:
        return e
    key = (Mul, e, k)
    found = _memo.get(key)
    if found is not None:
        return found
    # The laws of sums compare ratios of coefficients, so a multiple of a normal form is a normal form.
    const, terms = terms_of(e)
    return _remember(key, sum_of(const * k, tuple((t, c * k) for t, c in terms) if k else ()))


def _monomial(factors: tuple[Expr, ...]) -> Expr:
    if len(factors) == 1:
        return factors[0]
    return intern(Mul, (tuple(sorted(factors, key=by_structure)),))


def product(items: Iterable[IntLike]) -> Expr:
    """The product of all items (1 for none)."""
    e: Expr = integer(1)
    for i in items:
        e = mul(e, i)
    return e


def floordiv(a: IntLike, b: IntLike) -> Expr:
    """floor(a / b). Raises: ZeroDivisionError for a constant 0 divisor."""
    return _divide(FloorDiv, as_expr(a), as_expr(b))


def mod(a: IntLike, b: IntLike) -> Expr:
    """a modulo b, with b's sign. Raises: ZeroDivisionError for a constant 0 divisor."""
    return _divide(Mod, as_expr(a), as_expr(b))


def _divide(cls: type[Expr], a: Expr, b: Expr) -> Expr:
    key = (cls, a, b)
    found = _memo.get(key)
    if found is not None:
        return found
    if isinstance(b, Int) and (b.value == 0 or isinstance(a, Int)):
        op = operator.floordiv if cls is FloorDiv else operator.mod
        return integer(op(a.value if isinstance(a, Int) else 1, b.value))
    if isinstance(a, Int) and a.value == 0:
        return a  # the remainder by any divisor except 0; no size or step is 0
    for rule in RULES[cls]:
        e = rule.apply(a, b)
        if e is not None:
            return _remember(key, e)
    return _remember(key, intern(cls, (a, b)))


def ceildiv(a: IntLike, b: IntLike) -> Expr:
    """ceil(a / b)."""
    return -floordiv(-as_expr(a), b)


# -- use ---------------------------------------------------------------------------------------------------------
def substitute(e: IntLike, values: Mapping[Any, IntLike]) -> Expr:
    """`e` with every sub-expression that is a key of `values` replaced by its value, simplified again."""
    return substitute_all((e,), values)[0]


def substitute_all(expressions: Iterable[IntLike], values: Mapping[Any, IntLike]) -> list[Expr]:
    """`substitute` for several expressions."""
    table: dict[Expr, Expr] = {}
    touched: frozenset[Sym] = frozenset()
    for key, value in values.items():
        k = key if isinstance(key, Expr) else as_expr(key)
        table[k] = value if isinstance(value, Expr) else as_expr(value)
        touched = touched | k.symbols if touched else k.symbols
    return [_substitute(e if isinstance(e, Expr) else as_expr(e), table, touched) for e in expressions]


def _substitute(e: Expr, table: dict[Expr, Expr], touched: frozenset[Sym]) -> Expr:
    """The value of `e`, which `table` remembers."""
    found = table.get(e)
    if found is None:
        if not e.children or touched.isdisjoint(e.symbols):
            return e
        inner = [table.get(c) or (c if touched.isdisjoint(c.symbols) else _substitute(c, table, touched)) for c in e.children]
        found = table[e] = REBUILD[type(e)](e, inner)
    return found


REBUILD: Final[dict[type[Expr], Callable[[Any, list[Expr]], Expr]]] = {  # `fxir.expr.rules` adds the extrema
    Add: lambda e, inner: linear(e.const, [(x, c) for x, (_, c) in zip(inner, e.terms, strict=True)]),
    Mul: lambda e, inner: product(inner),
    FloorDiv: lambda e, inner: floordiv(*inner),
    Mod: lambda e, inner: mod(*inner),
}


def evaluate(e: IntLike, values: Mapping[Any, int]) -> int:
    """The value of `e`; `values` maps symbols, or their names, to ints. Raises: KeyError for a symbol without a value."""
    x = e if isinstance(e, Expr) else as_expr(e)
    if isinstance(x, Int):
        return x.value
    if isinstance(x, Sym):
        return values[x] if x in values else values[x.name]
    inner = [evaluate(c, values) for c in x.children]
    if isinstance(x, Add):
        return x.const + sum(v * c for v, (_, c) in zip(inner, x.terms, strict=True))
    return _EVALUATE[type(x)](inner)


_EVALUATE: Final[dict[type[Expr], Callable[[list[int]], int]]] = {
    Mul: math.prod,
    FloorDiv: lambda v: v[0] // v[1],
    Mod: lambda v: v[0] % v[1],
    Min: min,
    Max: max,
}


def strides_of(e: IntLike, symbols: Iterable[Expr]) -> tuple[dict[Expr, Expr], Expr] | None:
    """Write `e` as rest + sum of stride*symbol: ({symbol: stride}, rest), strides and rest free of `symbols`.

    Symbols that do not occur get stride 0. Result: None if `e` is not linear in them.
    """
    wanted = list(symbols)
    zero = integer(0)
    strides: dict[Expr, Expr] = dict.fromkeys(wanted, zero)
    inside = frozenset(wanted)
    rest: list[tuple[Expr, int]] = []
    const, terms = terms_of(as_expr(e))
    for term, coef in terms:
        if inside.isdisjoint(term.symbols):
            rest.append((term, coef))
            continue
        others: list[Expr] = []
        hit: Expr | None = None
        for f in term.factors if isinstance(term, Mul) else (term,):
            if inside.isdisjoint(f.symbols):
                others.append(f)
            elif hit is not None or f not in inside:
                return None
            else:
                hit = f
        assert hit is not None
        stride = mul(product(others), coef) if others else integer(coef)
        strides[hit] = stride if strides[hit] is zero else strides[hit] + stride
    return strides, linear(const, rest)


# -- operators ---------------------------------------------------------------------------------------------------
def _reversed(op: Callable[[Expr, Expr], Expr]) -> Callable[[Expr, IntLike], Expr]:
    return lambda self, other: op(as_expr(other), self)


for _name, _op in {
    "__add__": add,
    "__radd__": add,
    "__sub__": lambda self, other: add(self, mul(other, -1)),
    "__rsub__": lambda self, other: add(mul(self, -1), other),
    "__neg__": lambda self: mul(self, -1),
    "__mul__": mul,
    "__rmul__": mul,
    "__floordiv__": floordiv,
    "__rfloordiv__": _reversed(floordiv),
    "__mod__": mod,
    "__rmod__": _reversed(mod),
    # An expression is stored in normal form, so loading it applies no rule again.
    "__reduce__": lambda self: (intern, (type(self), tuple(getattr(self, name) for name in self.fields))),
}.items():
    setattr(Expr, _name, _op)
