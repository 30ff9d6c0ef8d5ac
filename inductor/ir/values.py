"""Values: the computation at one point of a loop, interned and without closures, and the walks that rewrite them.

`inductor.ir.definitions` describes the kinds of values and exports this module's names; import from there. Loop variables are symbols:
`axis(k, n)` is i<k> in 0..n-1 of a definition's ranges, `reduced_axis(k, n)` is r<k>. An axis of size 1 is the constant 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final, TypeVar
from weakref import WeakValueDictionary

import numpy as np

from eager.base import dtypes, float8
from eager.base.dtypes import dtype
from eager.base.locks import new_lock
from fxir.expr import rules as E
from inductor.ir.sizes import Size

# -- the operations of values --------------------------------------------------------------------------------------

ARITHMETIC: Final = frozenset("add sub mul div neg maximum minimum abs sign floordiv truncdiv remainder fmod pow".split())
COMPARISONS: Final = frozenset("eq ne lt le gt ge".split())
LOGIC: Final = frozenset("logical_and logical_or logical_not logical_xor isnan isinf isfinite signbit".split())
BITS: Final = frozenset("bitwise_and bitwise_or bitwise_xor bitwise_not left_shift right_shift".split())
ROUNDING: Final = frozenset("floor ceil round trunc".split())
ELEMENTARY: Final = frozenset(
    "exp exp2 expm1 log log2 log10 log1p sqrt rsqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh atan2 hypot "
    "erf erfc erfinv lgamma digamma copysign".split()
)
# where(c, a, b); cast(x) to the dtype of the node; check_index(i, n, c): i if 0 <= i < n, else 0, and check c of the program
# fails with i; wrap_index(i, n, c): the same with -n <= i < 0 counted from the end; philox(k0, k1, offset, i, w, n): word w of the n
# words of element i of a draw (see `eager.optable.random`) whose seed has the uint32 halves (k0, k1). offset, i: int64; w, n: Const.
SPECIAL: Final = frozenset("where cast check_index wrap_index philox".split())
OPS: Final = ARITHMETIC | COMPARISONS | LOGIC | BITS | ROUNDING | ELEMENTARY | SPECIAL
# operations that take much longer than an addition
EXPENSIVE: Final = frozenset(
    "exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh atan2 hypot erf erfc erfinv "
    "lgamma digamma pow philox div sqrt rsqrt fmod remainder floordiv".split()
)


class Value:
    """The computation at one point of a loop. Build with the functions below.

    dtype: its element type. children: the values that it is computed from. loads: the loads under it, each once, operands before
    users. symbols: the symbols of all index expressions under it, bound ones included.
    """

    __slots__ = ("__weakref__", "children", "dtype", "loads", "symbols")

    dtype: dtype
    children: tuple[Value, ...]
    loads: tuple[Load, ...]
    symbols: frozenset[E.Sym]

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError(f"{type(self).__name__}: loop values are not pickled; keep the graph instead")


class Const(Value):
    """A number of its dtype."""

    __slots__ = ("value",)
    value: bool | int | float

    def __repr__(self) -> str:
        return f"{self.value}" if self.dtype in (dtypes.int64, dtypes.float32) else f"{self.value}:{self.dtype.name}"


class Index(Value):
    """An integer expression of loop variables, as an int64 value."""

    __slots__ = ("expr",)
    expr: E.Expr

    def __repr__(self) -> str:
        return f"[{self.expr}]"


class Load(Value):
    """buffer[index], if mask (a bool value) is True or None; otherwise unspecified and not read."""

    __slots__ = ("buffer", "index", "indirect", "mask")
    buffer: str
    index: E.Expr
    mask: Value | None
    indirect: tuple[tuple[E.Sym, Value], ...]

    def __repr__(self) -> str:
        more = "".join(f", {s}={v}" for s, v in self.indirect)
        more += "" if self.mask is None else f" if {self.mask}"
        return f"{self.buffer}[{self.index}{more}]"


class Op(Value):
    """name(*args), one of `OPS`; `dtype` is the result's."""

    __slots__ = ("args", "name")
    name: str
    args: tuple[Value, ...]

    def __repr__(self) -> str:
        name = f"cast<{self.dtype.name}>" if self.name == "cast" else self.name
        return f"{name}({', '.join(map(repr, self.args))})"


V = TypeVar("V", bound=Value)
_table: WeakValueDictionary[tuple[Any, ...], Any] = WeakValueDictionary()
_lock = new_lock()
_FIELDS: Final[dict[type[Value], tuple[str, ...]]] = {
    Const: ("value", "dtype"),
    Index: ("expr", "dtype"),
    Load: ("buffer", "index", "dtype", "mask", "indirect"),
    Op: ("name", "args", "dtype"),
}


def _intern(cls: type[V], key: tuple[Any, ...], fields: tuple[Any, ...], children: tuple[Value, ...] = ()) -> V:
    v: V | None = _table.get(key)
    if v is None:
        with _lock:
            v = _table.get(key)
            if v is None:
                v = object.__new__(cls)
                for name, x in zip(_FIELDS[cls], fields, strict=True):
                    setattr(v, name, x)
                v.children = children
                _note_facts(v)
                v = _table.setdefault(key, v)  # a finalizer that ran during the construction may have built the same value
    return v


def _note_facts(v: Value) -> None:
    """Fill `loads` and `symbols` from the children, whose tuples and sets are shared where nothing is added."""
    loads: tuple[Load, ...] = ()
    symbols: frozenset[E.Sym] = v.index.symbols if isinstance(v, Load) else v.expr.symbols if isinstance(v, Index) else frozenset()
    for c in v.children:
        if c.loads is not loads and c.loads:
            loads = tuple(dict.fromkeys(loads + c.loads)) if loads else c.loads
        if not c.symbols <= symbols:
            symbols = symbols | c.symbols if symbols else c.symbols
    v.loads = (*loads, v) if isinstance(v, Load) else loads
    v.symbols = symbols


# (value) -> its `loads`.
loads_in: Final[Callable[[Value], tuple[Load, ...]]] = attrgetter("loads")


def const(value: Any, of: dtype) -> Const:
    """The number `value` converted to `of`, a float as a cast converts it."""
    v: Any
    if isinstance(value, complex) and not value.imag and not of.is_complex:
        value = value.real
    if of is dtypes.bool_:
        v = bool(value)
    elif of.is_integral:
        v = wrap(_whole(value, of) if isinstance(value, float) else int(value), of)
    else:
        v = float(value)
    # repr distinguishes 0.0 from -0.0 and 1 from True, and gives one text for all nans.
    return _intern(Const, (Const, repr(v), of.code), (v, of))


def _whole(value: float, of: dtype) -> int:
    """A float rounded towards zero. A value outside the range gives the lowest int32 or int64 (see `inductor.cpp.values.cast`)."""
    if of is dtypes.uint64 and value >= 2.0**63:
        return _whole(value - 2.0**63, dtypes.int64) + (1 << 63)
    limit = 2.0 ** (63 if of.itemsize == 8 or of is dtypes.uint32 else 31)
    return math.trunc(value) if math.isfinite(value) and -limit <= math.trunc(value) < limit else -int(limit)


def wrap(value: int, of: dtype) -> int:
    """`value` in two's complement of an integer dtype."""
    bits = of.itemsize * 8
    value &= (1 << bits) - 1
    return value - (1 << bits) if of.is_signed and value >> (bits - 1) else value


def index(e: E.IntLike) -> Value:
    """An integer expression as a value: a Const where it is constant."""
    e = E.as_expr(e)
    if isinstance(e, E.Int):
        return const(e.value, dtypes.int64)
    return _intern(Index, (Index, e), (e, dtypes.int64))


_FIRST: Final = E.integer(0)  # the position of the first element


def load(buffer: str, at: E.IntLike, of: dtype, mask: Value | None = None,
         indirect: Sequence[tuple[E.Sym, Value]] = ()) -> Load:  # fmt: skip
    """buffer[at]. `indirect` binds symbols in `at`; bindings of other symbols are dropped."""
    if not isinstance(at, E.Expr):
        at = _FIRST if at == 0 else E.as_expr(at)
    bound = tuple([(s, v) for s, v in indirect if s in at.symbols]) if indirect else ()
    if isinstance(mask, Const):
        if not mask.value:
            raise ValueError(f"load: the mask of {buffer}[{at}] is constantly False; use the other value instead")
        mask = None
    children = tuple([v for _, v in bound]) if bound else ()
    if mask is not None:
        children = (mask, *children)
    return _intern(Load, (Load, buffer, at, of.code, mask, bound), (buffer, at, of, mask, bound), children)


def make_op(name: str, args: tuple[Value, ...], of: dtype) -> Op:
    """The node name(*args), not simplified. Raises: ValueError for an unknown name."""
    if name not in OPS:
        raise ValueError(f"ir: {name!r} is not an operation of loop values; allowed: {', '.join(sorted(OPS))}")
    return _intern(Op, (Op, name, args, of.code), (name, args, of), args)


@lru_cache(maxsize=4096)
def counter(name: str, size: Size) -> E.Expr:
    """A symbol `name` in 0..size-1 (0 alone if size is less)."""
    if isinstance(size, int):
        return E.sym(name, 0, max(size, 1) - 1)
    return E.sym(name, 0, max(size.hi, 1) - 1, below=size)


@lru_cache(maxsize=1024)
def axis(k: int, size: Size) -> E.Expr:
    """Loop variable k of a definition with `size` iterations."""
    return counter(f"i{k}", size)


@lru_cache(maxsize=1024)
def reduced_axis(k: int, size: Size) -> E.Expr:
    """Reduced loop variable k of a definition with `size` iterations."""
    return counter(f"r{k}", size)


def walk(roots: Iterable[Value]) -> list[Value]:
    """Every value under `roots` once, operands before users. The walk is iterative: chains may be thousands deep."""
    found: dict[Value, None] = {}
    opened: set[Value] = set()
    stack = list(roots)[::-1]
    while stack:
        v = stack[-1]
        if v in opened:
            stack.pop()
            found[v] = None  # a second root, or a second operand, that is the same value changes nothing
        else:
            opened.add(v)
            for c in reversed(v.children):
                if c not in opened:
                    stack.append(c)
    return list(found)


def cast(value: Value, to: dtype) -> Value:
    """The value converted to a dtype, without a node if it has the dtype. A constant is converted at once."""
    if value.dtype is to:
        return value
    return const(_held(value), to) if isinstance(value, Const) else make_op("cast", (value,), to)


def _held(c: Const) -> Any:
    """The number that memory of a constant's dtype holds: a float is rounded."""
    if not c.dtype.is_floating_point or c.dtype.itemsize == 8:
        return c.value
    with np.errstate(over="ignore"):
        return float(float8.cast(np.asarray(c.value), c.dtype.numpy))


def expressions_in(values: Iterable[Value]) -> list[E.Expr]:
    """The index expressions under values."""
    return [v.index if isinstance(v, Load) else v.expr for v in walk(values) if isinstance(v, Load | Index)]


def divisions(expressions: Iterable[E.Expr]) -> int:
    """The number of divisions and remainders in index expressions."""
    count, stack = 0, list(expressions)
    while stack:
        e = stack.pop()
        count += isinstance(e, E.FloorDiv | E.Mod)
        stack.extend(e.children)
    return count


# -- rewriting -----------------------------------------------------------------------------------------------------

Indirect = tuple[tuple[E.Sym, Value], ...]


def at_point(value: Value, mapping: Mapping[E.Expr, E.IntLike], mask: Value | None = None,
             indirect: Indirect = ()) -> Value:  # fmt: skip
    """`value` with its axes replaced. Its loads are read only where `mask` also holds.

    indirect: bindings of symbols in the new expressions. Only loads can carry them. Raises: ValueError for a value with an
    `Index` over such a symbol.
    """
    if mask is None and not indirect:
        for e in mapping:
            if not value.symbols.isdisjoint(e.symbols):
                break
        else:
            return value
    bound = {s for s, _ in indirect}
    order = walk([value])
    old = [v.index if isinstance(v, Load) else v.expr for v in order if isinstance(v, Load | Index)]
    new = dict(zip(old, E.substitute_all(old, mapping), strict=True))
    done: dict[Value, Value] = {}
    for v in order:
        done[v] = _rebuild(v, done, new, mask, indirect, bound)
    return done[value]


def _rebuild(v: Value, done: dict[Value, Value], new: Mapping[E.Expr, E.Expr], mask: Value | None,
             indirect: Indirect, bound: set[E.Sym]) -> Value:  # fmt: skip
    """`v` over the values in `done` and the expressions in `new`."""
    if isinstance(v, Index):
        e = new[v.expr]
        if bound & e.symbols:
            raise ValueError(f"substitute: {v} would depend on a gathered index")
        return index(e)
    if isinstance(v, Load):
        own = tuple([(s, done[x]) for s, x in v.indirect]) if v.indirect else ()
        inner = None if v.mask is None else done[v.mask]
        held = mask if inner is None else inner if mask is None else both(inner, mask)
        return load(v.buffer, new[v.index], v.dtype, held, (*own, *indirect))
    if isinstance(v, Op):
        args = tuple([done[a] for a in v.args])
        return v if args == v.args else make_op(v.name, args, v.dtype)
    return v


def both(a: Value | None, b: Value | None) -> Value | None:
    """The conjunction of two masks; None is a mask that always holds."""
    if a is None or b is None:
        return a or b
    return a if a is b else make_op("logical_and", (a, b), dtypes.bool_)


def replace_loads(value: Value, replace: Callable[[Load], Value | None]) -> Value:
    """`value` with some loads replaced: `replace` gives the new value, or None to keep the load."""
    done: dict[Value, Value] = {}
    for v in walk([value]):
        new: Value | None = None
        if isinstance(v, Load):
            own = tuple((s, done[x]) for s, x in v.indirect)
            inner = None if v.mask is None else done[v.mask]
            kept = load(v.buffer, v.index, v.dtype, inner, own)
            new = replace(kept)
            done[v] = kept if new is None else new
        elif isinstance(v, Op):
            args = tuple(done[a] for a in v.args)
            done[v] = v if args == v.args else make_op(v.name, args, v.dtype)
        else:
            done[v] = v
    return done[value]


def replace_values(value: Value, new: Mapping[Value, Value]) -> Value:
    """`value` with the values in `new` replaced."""
    done = dict(new)
    order = walk([value])
    kept = {e: e for e in (v.index if isinstance(v, Load) else v.expr for v in order if isinstance(v, Load | Index))}
    for v in order:
        if v not in done:
            done[v] = _rebuild(v, done, kept, None, (), set())
    return done[value]


class Renaming:
    """Names of one form for values that differ in names alone: buffers `m0`, `m1`, ... and symbols that gathers bind, `s0`, `s1`, ...

    In the order of first use. buffers, symbols: new names by old names; the caller may name a buffer before its first use.
    """

    def __init__(self) -> None:
        self.buffers: dict[str, str] = {}
        self.symbols: dict[E.Expr, E.IntLike] = {}
        self._reads = 0
        self._done: dict[Value, Value] = {}

    def buffer(self, old: str) -> str:
        """The name of a buffer."""
        found = self.buffers.get(old)
        if found is None:
            found = self.buffers[old] = f"m{self._reads}"
            self._reads += 1
        return found

    def symbol(self, s: E.Sym) -> E.Sym:
        """The symbol in place of a symbol that a gather binds."""
        found = self.symbols.get(s)
        if found is None:
            found = self.symbols[s] = E.sym(f"s{len(self.symbols)}", s.lo, s.hi, s.multiple, s.below)
        assert isinstance(found, E.Sym)
        return found

    def value(self, root: Value) -> Value:
        """`root` with the new names."""
        done = self._done
        for v in walk([root]):
            if v in done:
                continue
            if isinstance(v, Load):
                bound = tuple([(self.symbol(s), done[x]) for s, x in v.indirect])
                at = E.substitute(v.index, self.symbols) if bound else v.index
                done[v] = load(self.buffer(v.buffer), at, v.dtype, None if v.mask is None else done[v.mask], bound)
            elif isinstance(v, Op):
                done[v] = make_op(v.name, tuple([done[a] for a in v.args]), v.dtype)
            else:
                done[v] = v
        return done[root]


def free_axes(value: Value) -> frozenset[E.Sym]:
    """The loop variables that a value depends on (symbols bound by indirect loads are not free)."""
    free: set[E.Sym] = set()
    for v in walk([value]):
        if isinstance(v, Index):
            free |= v.expr.symbols
        elif isinstance(v, Load):
            free |= v.index.symbols - {s for s, _ in v.indirect}
    return frozenset(free)
