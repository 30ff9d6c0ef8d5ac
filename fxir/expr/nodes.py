"""The nodes of integer expressions: interned, ordered, bounded. `fxir.expr.rules` builds and simplifies them.

Owns the classes, their identity (one object per normal form), bounds and structural order. Import from `fxir.expr.rules`, which
exports everything: this module alone has no arithmetic.
"""

from __future__ import annotations

import math
import operator
import threading
from collections.abc import Callable
from functools import cmp_to_key
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias, TypeVar, Union
from weakref import WeakValueDictionary

from fxir.expr.bounds import Bound, add_bounds, floordiv_bounds, max_bounds, min_bounds, mod_bounds, mul_bounds

IntLike: TypeAlias = Union["Expr", int]
E = TypeVar("E", bound="Expr")


class Expr:
    """An integer expression. `lo` and `hi`: inclusive bounds. Build with the operators and functions below."""

    __slots__ = ("__weakref__", "_key", "_multiple", "_symbols", "hi", "lo")

    rank: ClassVar[int] = 0
    lo: Bound
    hi: Bound
    _key: tuple[Any, ...] | None
    _symbols: frozenset[Sym] | None
    _multiple: int

    if TYPE_CHECKING:  # installed by fxir.expr.rules, which owns the arithmetic

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
    def children(self) -> tuple[Expr, ...]:
        return ()

    @property
    def symbols(self) -> frozenset[Sym]:
        """The symbols in the expression."""
        if self._symbols is None:
            self._symbols = frozenset().union(*(c.symbols for c in self.children))
        return self._symbols

    @property
    def key(self) -> tuple[Any, ...]:
        """A structural key: orders expressions the same way in every process."""
        if self._key is None:
            self._key = (self.rank, *self._make_key())
        return self._key

    @property
    def multiple_of(self) -> int:
        """The largest known positive integer that divides every value of the expression (0 for the constant 0)."""
        if self._multiple < 0:
            self._multiple = self._make_multiple()
        return self._multiple

    def _make_key(self) -> tuple[Any, ...]:
        return tuple(c.key for c in self.children)

    def _make_multiple(self) -> int:
        return 1

    def __reduce__(self) -> tuple[Any, ...]:
        # An expression is stored in normal form, so loading it applies no rule again.
        return intern, (type(self), tuple(getattr(self, name) for name in _FIELDS[type(self)]))

    def __copy__(self) -> Expr:
        return self

    def __deepcopy__(self, memo: object) -> Expr:
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.children))})"


class Int(Expr):
    """A constant."""

    __slots__ = ("value",)
    rank = 0
    value: int

    def _make_key(self) -> tuple[Any, ...]:
        return (self.value,)

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
    name: str
    multiple: int
    below: Expr | None

    @property
    def symbols(self) -> frozenset[Sym]:
        return frozenset((self,))

    def _make_key(self) -> tuple[Any, ...]:
        return self.name, self.lo, self.hi, self.multiple, () if self.below is None else self.below.key

    def _make_multiple(self) -> int:
        return self.multiple

    def __repr__(self) -> str:
        return self.name


class Mul(Expr):
    """A product of two or more factors, sorted; no factor is a constant or a sum (products are multiplied out)."""

    __slots__ = ("factors",)
    rank = 2
    factors: tuple[Expr, ...]

    @property
    def children(self) -> tuple[Expr, ...]:
        return self.factors

    def _make_multiple(self) -> int:
        return math.prod(f.multiple_of for f in self.factors)

    def __repr__(self) -> str:
        return "*".join(_atom(f) for f in self.factors)


class FloorDiv(Expr):
    """floor(a / b)."""

    __slots__ = ("a", "b")
    rank = 3
    a: Expr
    b: Expr

    @property
    def children(self) -> tuple[Expr, ...]:
        return self.a, self.b

    def __repr__(self) -> str:
        return f"{_atom(self.a)}//{_atom(self.b)}"


class Mod(Expr):
    """a - b*floor(a / b)."""

    __slots__ = ("a", "b")
    rank = 4
    a: Expr
    b: Expr

    @property
    def children(self) -> tuple[Expr, ...]:
        return self.a, self.b

    def _make_multiple(self) -> int:
        return math.gcd(self.a.multiple_of, self.b.multiple_of)

    def __repr__(self) -> str:
        return f"{_atom(self.a)}%{_atom(self.b)}"


class Extremum(Expr):
    """Base of Min and Max."""

    __slots__ = ("args",)
    args: tuple[Expr, ...]

    @property
    def children(self) -> tuple[Expr, ...]:
        return self.args

    def _make_multiple(self) -> int:
        return math.gcd(*(a.multiple_of for a in self.args))


class Min(Extremum):
    """The least of two or more expressions."""

    __slots__ = ()
    rank = 5


class Max(Extremum):
    """The greatest of two or more expressions."""

    __slots__ = ()
    rank = 6


class Add(Expr):
    """const + sum of coef*term; terms sorted, coefs not 0, no term a constant or a sum. `4*i` alone is an Add too."""

    __slots__ = ("const", "terms")
    rank = 7
    const: int
    terms: tuple[tuple[Expr, int], ...]

    @property
    def children(self) -> tuple[Expr, ...]:
        return tuple(t for t, _ in self.terms)

    def _make_key(self) -> tuple[Any, ...]:
        return tuple((t.key, c) for t, c in self.terms), self.const

    def _make_multiple(self) -> int:
        return math.gcd(self.const, *(c * t.multiple_of for t, c in self.terms))

    def __repr__(self) -> str:
        parts = [_atom(t) if c == 1 else f"{c}*{_atom(t)}" for t, c in self.terms]
        return " + ".join([*parts, str(self.const)] if self.const else parts)


def _atom(e: Expr) -> str:
    return f"({e!r})" if isinstance(e, Add | Mul | FloorDiv | Mod) else repr(e)


# -- interning ---------------------------------------------------------------------------------------------------
_table: WeakValueDictionary[tuple[Any, ...], Expr] = WeakValueDictionary()
_lock = threading.Lock()

_FIELDS: Final[dict[type[Expr], tuple[str, ...]]] = {
    Int: ("value",),
    Sym: ("name", "lo", "hi", "multiple", "below"),
    Mul: ("factors",),
    FloorDiv: ("a", "b"),
    Mod: ("a", "b"),
    Min: ("args",),
    Max: ("args",),
    Add: ("const", "terms"),
}
_BOUNDS: Final[dict[type[Expr], Callable[..., tuple[Bound, Bound]]]] = {
    Int: lambda value: (value, value),
    Sym: lambda _name, lo, hi, _multiple, _below: (lo, hi),
    Mul: mul_bounds,
    FloorDiv: floordiv_bounds,
    Mod: mod_bounds,
    Min: min_bounds,
    Max: max_bounds,
    Add: add_bounds,
}


def intern(cls: type[E], fields: tuple[Any, ...]) -> E:
    """The unique node of class `cls` with these fields, which must be in normal form already."""
    key = (cls, *fields)
    e = _table.get(key)
    if e is None:
        with _lock:
            e = _table.get(key)
            if e is None:
                e = cls.__new__(cls)
                for name, value in zip(_FIELDS[cls], fields, strict=True):
                    setattr(e, name, value)
                e.lo, e.hi = _BOUNDS[cls](*fields)
                e._key = None
                e._symbols = None
                e._multiple = -1
                _table[key] = e
    return e  # type: ignore[return-value]


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


def _compare(x: Expr, y: Expr) -> int:
    if x is y:
        return 0
    if x.rank != y.rank:
        return -1 if x.rank < y.rank else 1
    return -1 if x.key < y.key else 1


by_structure: Final = cmp_to_key(_compare)  # a sort key that is the same in every process
_small: Final[dict[int, Int]] = {}
_small.update({i: integer(i) for i in range(-64, 1025)})
