"""The loop IR: the representation of a graph between ops and kernels.

Owns the immutable, interned *values* computed at one point of a loop, the *definitions* of buffers in terms of them, and
`Program`, a whole graph in that form. It does not depend on the eager table (except names of ops in externs), on scheduling, or
on a target language. It holds no closures; everything prints, compares and hashes.

Memory is flat. A buffer is dense memory with a `Layout`; a tensor of the graph is a `Ref`: sizes, strides and an offset over a
buffer, so views cost nothing and are never nodes. A `Load` names a buffer and one integer expression (`fxir.expr.rules`), the
element's position in it.

Values (interned: equal values are one object, so `is` compares and dicts give common subexpressions)
    Const(value, dtype)                     a number
    Index(expr)                             an integer expression of the loop variables, as an int64 value
    Load(buffer, index, dtype, mask, indirect)
                                            buffer[index]; not read (unspecified) where mask is False; `indirect`
                                            binds symbols of the index to int64 values (gathers)
    Op(name, args, dtype)                   an operation of `OPS` below: the loop protocol of `eager.optable.loop_api`

Loop variables are symbols: `axis(k, n)` is i<k> in 0..n-1 of a definition's ranges, `reduced_axis(k, n)` is r<k>. (An axis of
size 1 is the constant 0.) Values of half precision are loaded and stored as such; arithmetic on them never occurs, lowering
casts to float32 first.

Definitions (the computation of a buffer's elements)
    Pointwise(ranges, value)                out[i...] = value
    Reduction(ranges, reduced, kind, value) out[i...] = kind over r... of value; kinds: sum mean prod max min any
                                            all (max and min propagate nan)
    Scan(ranges, length, kind, value)       out[i..., j] = kind over r0 <= j of value; ranges are the outer dims,
                                            the scanned dim r0 is the last of the buffer's memory order
    Scatter(ranges, target, index, indirect, value, mode)
                                            takes over the memory of `target`, then out[index] = value, or += it
    Contraction(ranges, reduced, roles, a, b)
                                            out[i...] = sum over r... of a * b: a product; `roles` says which axes are
                                            rows (of a), columns (of b) or batch (of both)
    Attention(result, call, ...)            softmax over keys of score(q k), times v; or its gradients
    Recurrence(length, time, first, rest, ...)
                                            steps in the order of time, each over results of earlier steps
    Extern(op, args, ...)                   the eager kernel of an op, called from Python

Definitions index their buffer by `ranges` in the order of `Buffer.order`, the dims from outermost to innermost in memory, so a
definition's store position is always the row-major position of its ranges.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property, lru_cache
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from eager.base.records import dataclass
from fxir.expr import rules as E
from fxir.symbols.shapes import SymbolSource
from inductor.ir.masks import bounded
from inductor.ir.sizes import Layout as Layout
from inductor.ir.sizes import Ref as Ref
from inductor.ir.sizes import Size, nominal, product
from inductor.ir.sizes import row_major as row_major
from inductor.ir.values import (
    ARITHMETIC as ARITHMETIC,
)
from inductor.ir.values import (
    BITS as BITS,
)
from inductor.ir.values import (
    COMPARISONS as COMPARISONS,
)
from inductor.ir.values import (
    ELEMENTARY as ELEMENTARY,
)
from inductor.ir.values import (
    LOGIC as LOGIC,
)
from inductor.ir.values import (
    OPS as OPS,
)
from inductor.ir.values import (
    ROUNDING as ROUNDING,
)
from inductor.ir.values import (
    SPECIAL as SPECIAL,
)
from inductor.ir.values import (
    Const as Const,
)
from inductor.ir.values import (
    Index as Index,
)
from inductor.ir.values import (
    Load as Load,
)
from inductor.ir.values import (
    Op as Op,
)
from inductor.ir.values import (
    Value as Value,
)
from inductor.ir.values import (
    at_point as at_point,
)
from inductor.ir.values import (
    axis as axis,
)
from inductor.ir.values import (
    both as both,
)
from inductor.ir.values import (
    cast as cast,
)
from inductor.ir.values import (
    const as const,
)
from inductor.ir.values import (
    counter as counter,
)
from inductor.ir.values import (
    divisions as divisions,
)
from inductor.ir.values import (
    expressions_in as expressions_in,
)
from inductor.ir.values import (
    free_axes as free_axes,
)
from inductor.ir.values import (
    index as index,
)
from inductor.ir.values import (
    load as load,
)
from inductor.ir.values import (
    loads_in as loads_in,
)
from inductor.ir.values import (
    make_op as make_op,
)
from inductor.ir.values import (
    reduced_axis as reduced_axis,
)
from inductor.ir.values import (
    replace_loads as replace_loads,
)
from inductor.ir.values import (
    walk as walk,
)
from inductor.ir.values import (
    wrap as wrap,
)

# -- definitions ---------------------------------------------------------------------------------------------------


Role: TypeAlias = Literal["batch", "row", "column"]


class _Definition:
    """The facts of a definition that several stages read, each computed once. Only definitions by loops have `operands`."""

    @cached_property
    def operands(self) -> tuple[Value, ...]:
        """The values at its roots."""
        return ()

    @cached_property
    def values(self) -> tuple[Value, ...]:
        """Every value under `operands` once, operands before users."""
        return tuple(walk(self.operands))

    @cached_property
    def loads(self) -> tuple[Load, ...]:
        """The loads among the values."""
        return tuple(dict.fromkeys([x for v in self.operands for x in v.loads]))

    @cached_property
    def reads(self) -> tuple[str, ...]:
        """Names of the buffers that it reads, each once, in order of first appearance."""
        return tuple(dict.fromkeys([v.buffer for v in self.loads]))

    @cached_property
    def operation_count(self) -> int:
        """Distinct operations and loads in its values."""
        return sum([isinstance(v, Op | Load) for v in self.values])

    @cached_property
    def iterations(self) -> int:
        """The nominal number of times that its value is computed."""
        return nominal(product(self._sizes()))

    def _sizes(self) -> tuple[Size, ...]:
        return ()


@dataclass(frozen=True)
class Pointwise(_Definition):
    """out[i0, i1, ...] = value, for all i in ranges."""

    ranges: tuple[Size, ...]
    value: Value

    @cached_property
    def operands(self) -> tuple[Value, ...]:
        return (self.value,)

    def _sizes(self) -> tuple[Size, ...]:
        return self.ranges


@dataclass(frozen=True)
class Reduction(_Definition):
    """out[i...] = `kind` over all r in `reduced` of value(i..., r...), accumulated in value's dtype (half: float32)."""

    ranges: tuple[Size, ...]
    reduced: tuple[Size, ...]
    kind: str
    value: Value

    @cached_property
    def operands(self) -> tuple[Value, ...]:
        return (self.value,)

    def _sizes(self) -> tuple[Size, ...]:
        return (*self.ranges, *self.reduced)


@dataclass(frozen=True)
class Scan(_Definition):
    """out[i..., j] = `kind` over r0 in 0..j of value(i..., r0), for j < length."""

    ranges: tuple[Size, ...]
    length: Size
    kind: str
    value: Value

    @cached_property
    def operands(self) -> tuple[Value, ...]:
        return (self.value,)

    def _sizes(self) -> tuple[Size, ...]:
        return (*self.ranges, self.length)


@dataclass(frozen=True)
class Scatter(_Definition):
    """Takes over the memory of buffer `target`, then for all i in ranges, in order: out[index] = value or += value.

    `indirect` binds symbols of the index. mode: "set" (the last write wins) or "add".
    """

    ranges: tuple[Size, ...]
    target: str
    index: E.Expr
    indirect: tuple[tuple[E.Sym, Value], ...]
    value: Value
    mode: str

    @cached_property
    def operands(self) -> tuple[Value, ...]:
        return (self.value, *(v for _, v in self.indirect))

    @cached_property
    def reads(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*(v.buffer for v in self.loads), self.target]))

    def _sizes(self) -> tuple[Size, ...]:
        return self.ranges


@dataclass(frozen=True)
class Contraction(_Definition):
    """out[i...] = sum over all r in `reduced` of a * b: a matrix product, or a convolution where `a` reads windows of an image.

    roles: of each axis of `ranges`. A "row" occurs in `a`, a "column" in `b`, and a "batch" axis in both; the reduced axes, the
    depth, occur in both. The sum is in the dtype of the operands, float32 or float64.
    """

    ranges: tuple[Size, ...]
    reduced: tuple[Size, ...]
    roles: tuple[Role, ...]
    a: Value
    b: Value

    @cached_property
    def operands(self) -> tuple[Value, ...]:
        return (self.a, self.b)

    def _sizes(self) -> tuple[Size, ...]:
        return (*self.ranges, *self.reduced)


PRODUCT: Final = "@product"  # in the values of an `Attention`: a load of this name is the current element of q k
WEIGHT: Final = "@weight"  # a load of this name is the current element of the softmax, or its cotangent


@dataclass(frozen=True)
class Attention(_Definition):
    """One result of attention: s = score(q k), p = softmax of s over the keys, y = sum over the keys of weight(p) * v.

    result: "y" (batch..., query, width); "lse" (batch..., query, 1): log of the sum of exp(s); or a gradient "gq" (batch..., query,
    depth), "gk" (batch..., key, depth), "gv" (batch..., key, width). Buffers with equal `call` are results of one computation.
    q, k, v, g are values over the axes of their dims: batch axes first, then `query`, `key`, `depth` and `width` (the properties).
    score: over batch, query, key and a load of `PRODUCT`. weight: over the same axes and a load of `WEIGHT`, in which it is linear.
    seen: a query sees the keys before this expression of its axis, which does not decrease with the query; None: all keys.
    empty: the result of a query all of whose scores are -inf. given: only for gradients.
    Source: Dao et al., "FlashAttention", arXiv:2205.14135.
    """

    result: str
    call: str
    batch: tuple[Size, ...]
    sizes: tuple[Size, Size, Size, Size]  # queries, keys, depth, width
    q: Value
    k: Value
    v: Value
    score: Value
    weight: Value
    seen: E.Expr | None = None
    empty: float = 0.0
    given: Cotangents | None = None

    @property
    def query(self) -> E.Expr:
        return axis(len(self.batch), self.sizes[0])

    @property
    def key(self) -> E.Expr:
        return reduced_axis(0, self.sizes[1])

    @property
    def depth(self) -> E.Expr:
        return reduced_axis(1, self.sizes[2])

    @property
    def width(self) -> E.Expr:
        return axis(len(self.batch) + 1, self.sizes[3])

    @cached_property
    def operands(self) -> tuple[Value, ...]:
        return (self.q, self.k, self.v, self.score, self.weight, *(self.given or ()))

    @cached_property
    def loads(self) -> tuple[Load, ...]:
        return tuple([v for v in self.values if isinstance(v, Load) and v.buffer not in (PRODUCT, WEIGHT)])

    @cached_property
    def rows(self) -> frozenset[str]:
        """The buffers that its products read."""
        products = (self.q, self.k, self.v, *(self.given[:1] if self.given else ()))
        return frozenset([v.buffer for v in walk(products) if isinstance(v, Load)])

    def _sizes(self) -> tuple[Size, ...]:
        return (*self.batch, *self.sizes[:2])

    def over(self, change: Callable[[Value], Value]) -> Attention:
        """The same definition over changed values."""
        given = None if self.given is None else Cotangents(*map(change, self.given))
        q, k, v, score, weight = map(change, (self.q, self.k, self.v, self.score, self.weight))
        return replace(self, q=q, k=k, v=v, score=score, weight=weight, given=given)


class Cotangents(NamedTuple):
    """The inputs of the gradients of attention, values over the axes of their dims.

    g: the cotangent of y. lse: the result of that name. delta: the sum over the width of g * y, for each query. slope: the
    derivative of the score with respect to `PRODUCT`, over the axes of the score.
    """

    g: Value
    lse: Value
    delta: Value
    slope: Value


@dataclass(frozen=True)
class Step:
    """One computation of a time step: the element of `buffer` at `position`, for all axes of the definition."""

    buffer: str
    position: E.Expr
    definition: Pointwise | Contraction


@dataclass(frozen=True)
class Recurrence(_Definition):
    """Steps in the order of time: `first`, then `rest` for `time` = 0..length-2. A step may read what earlier steps have stored.

    call: identifies the recurrence; the buffers that it stores all have it as their definition, and their names are `results`.
    """

    length: Size
    time: E.Expr
    first: tuple[Step, ...]
    rest: tuple[Step, ...]
    call: str
    results: tuple[str, ...]

    @cached_property
    def operands(self) -> tuple[Value, ...]:
        return tuple(v for s in (*self.first, *self.rest) for v in s.definition.operands)

    @cached_property
    def reads(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([v.buffer for v in self.loads if v.buffer not in self.results]))

    def _sizes(self) -> tuple[Size, ...]:
        return (self.length,)


@dataclass(frozen=True)
class Extern(_Definition):
    """Result `output` (of several) of the eager kernel of `op` on `args`: Refs, numbers, None, nested tuples.

    `call` identifies the call: buffers with equal `call` are results of one call, which has `count` results. A result without
    readers has no buffer.
    """

    op: str
    args: tuple[Any, ...]
    call: str
    output: int = 0
    count: int = 1

    @cached_property
    def reads(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([r.buffer for r in refs_of(self.args)]))


def refs_of(args: Any) -> list[Ref]:
    """The Refs in nested arguments."""
    if isinstance(args, Ref):
        return [args]
    return [r for a in args for r in refs_of(a)] if isinstance(args, tuple | list) else []


Definition = Pointwise | Reduction | Scan | Scatter | Contraction | Attention | Recurrence | Extern


@dataclass(frozen=True, slots=True)
class Source:
    """The origin of a buffer, for logs and comments: names of ops, and the number of the graph node of each."""

    ops: tuple[str, ...] = ()
    nodes: tuple[int, ...] = ()

    @property
    def title(self) -> str:
        """The calls in the form of comments in generated code (see `inductor.base.user_lines`)."""
        if len(self.nodes) != len(self.ops):
            return ", ".join(self.ops)
        return ", ".join([f"{op}#{node}" for op, node in zip(self.ops, self.nodes, strict=True)])

    def join(self, other: Source) -> Source:
        """The calls of both, in order."""
        return Source(self.ops + other.ops, self.nodes + other.nodes)


@dataclass(frozen=True)
class Buffer:
    """Dense memory and the definition of its elements. Inputs and constants have no definition."""

    name: str
    layout: Layout
    definition: Definition | None = None
    source: Source = field(default=Source())

    @property
    def ranges(self) -> tuple[Size, ...]:
        """Sizes in memory order: the ranges of the definition."""
        return tuple(self.layout.shape[d] for d in self.layout.order)

    @cached_property
    def reads(self) -> tuple[str, ...]:
        """Names of the buffers that its definition reads."""
        return () if self.definition is None else self.definition.reads

    def ref(self) -> Ref:
        """The whole buffer as a tensor."""
        return Ref(self.name, self.layout)


def titles(buffers: Sequence[Buffer]) -> str:
    """The names of buffers, each with the calls that it comes from."""
    return "; ".join([f"{b.name}: {b.source.title or 'copy'}" for b in buffers])


def pointwise_of(b: Buffer) -> Pointwise:
    """The definition of a buffer that is computed pointwise."""
    assert isinstance(b.definition, Pointwise)
    return b.definition


def linear_position(ranges: Sequence[Size], point: Sequence[E.IntLike]) -> E.Expr:
    """Row-major position of `point` in `ranges`."""
    step: Size = 1
    steps: list[Size] = []
    for n in reversed(ranges):
        steps.append(step)
        step = step * n
    return E.dot(point, steps[::-1])


@lru_cache(maxsize=1024)
def own_position(ranges: tuple[Size, ...]) -> E.Expr:
    """The row-major position of a definition's current element."""
    return linear_position(ranges, [axis(k, n) if n != 1 else 0 for k, n in enumerate(ranges)])


def split_position(position: E.IntLike, ranges: Sequence[Size]) -> tuple[E.Expr, ...]:
    """The point of `ranges` at a row-major position in 0..numel-1."""
    return _split_position(position if isinstance(position, E.Expr) else E.as_expr(position), tuple(ranges))


@lru_cache(maxsize=1024)
def _split_position(position: E.Expr, ranges: tuple[Size, ...]) -> tuple[E.Expr, ...]:
    if position is own_position(ranges):
        return tuple([axis(k, n) for k, n in enumerate(ranges)])
    step: Size = 1
    point: list[E.Expr] = []
    for k in range(len(ranges) - 1, -1, -1):
        n = ranges[k]
        at = E.floordiv(position, step)
        # The outermost index needs no remainder: the position is in range.
        outermost = all(m == 1 for m in ranges[:k])
        point.append(E.as_expr(0) if n == 1 else at if outermost else E.mod(at, n))
        step = step * n
    return tuple(reversed(point))


@dataclass(frozen=True, slots=True)
class Write:
    """A graph input that the graph overwrites with the elements of `value`, after all other reads of the input."""

    input: str
    value: Ref


@dataclass(frozen=True, slots=True)
class Program:
    """A whole graph. buffers: every buffer by name, definitions in an order that can run.

    inputs, constants: names of buffers without definition, in the order of the call; `constants` are named by their key in the
    graph's root. An input that is an int has no buffer. outputs: Refs, expressions, or plain Python values. checks: (builtin
    exception, text, size) for `check_index`; {} in the text is the value, {size} the size. symbols: the symbols of sizes,
    `n<k>` in order, and the input that each is read from. early_checks: buffers that nothing reads, before all others: they are
    defined if they compute every position that the program checks.
    """

    buffers: Mapping[str, Buffer]
    inputs: tuple[str, ...]
    constants: tuple[tuple[str, str], ...]
    outputs: tuple[Ref | E.Expr | bool | int | float | str | None, ...]
    writes: tuple[Write, ...] = ()
    device: str = "cpu"
    checks: tuple[tuple[str, str, Size], ...] = ()
    symbols: tuple[tuple[E.Sym, SymbolSource], ...] = ()
    early_checks: tuple[str, ...] = ()

    @property
    def kinds(self) -> set[type]:
        """The kinds of its definitions: a pass over definitions of a kind that a program lacks is not run."""
        return {type(b.definition) for b in self.buffers.values()}

    def __str__(self) -> str:
        return print_program(self)


def print_definition(b: Buffer) -> str:
    """One line: `buf3: float32[8, 768] = sum r0 < 768: mul(...)`. A recurrence has a line for each step."""
    return f"{b.name}: {b.layout} = {_right(b.definition)}"


def _right(d: Definition | None) -> str:
    match d:
        case None:
            text = "given"
        case Pointwise():
            text = repr(d.value)
        case Reduction():
            text = f"{d.kind} over {', '.join(f'r{k} < {n}' for k, n in enumerate(d.reduced))}: {d.value!r}"
        case Scan():
            text = f"running {d.kind} over r0 < {d.length}: {d.value!r}"
        case Scatter():
            verb = "+=" if d.mode == "add" else "="
            bound = "".join(f", {s}={v}" for s, v in d.indirect)
            text = f"{d.target} with [{d.index}{bound}] {verb} {d.value!r} over {list(d.ranges)}"
        case Contraction():
            axes = ", ".join(f"{role} i{k} < {n}" for k, (n, role) in enumerate(zip(d.ranges, d.roles, strict=True)))
            text = f"contraction of {axes} over {', '.join(f'r{k} < {n}' for k, n in enumerate(d.reduced))}: {d.a!r} * {d.b!r}"
        case Attention():
            names = ("queries", "keys", "depth", "width")
            sizes = ", ".join(f"{name} {n}" for name, n in zip(names, d.sizes, strict=True))
            seen = "" if d.seen is None else f", keys before {d.seen}"
            values = f"q {d.q!r}, k {d.k!r}, v {d.v!r}, score {d.score!r}, weight {d.weight!r}"
            text = f"{d.result} of {d.call}: attention of {list(d.batch)}, {sizes}{seen}: {values}"
        case Recurrence():
            lines = [f"    {s.buffer}[{s.position}] = {_right(s.definition)}" for s in (*d.first, *d.rest)]
            lines.insert(len(d.first), f"    then for {d.time} < {d.length - 1}:")
            text = "\n".join([f"{d.call}, a recurrence of {', '.join(d.results)}", *lines])
        case Extern():
            text = f"extern {d.op}({', '.join(map(str, d.args))})[{d.output}]"
    return text


def print_program(p: Program) -> str:
    """The program as text, one buffer a line."""
    lines = [print_definition(b) for b in p.buffers.values()]
    lines += [f"write {w.input} <- {w.value}" for w in p.writes]
    return "\n".join([*lines, f"return {', '.join(map(str, p.outputs))}"])


def producer_at(definition: Pointwise, at: Load) -> Value:
    """The value of `definition` at the element that `at` reads.

    Where its mask does not hold, the element is unspecified: positions are simplified for the points at which the mask can hold.
    """
    shown = {} if at.mask is None else bounded(at.mask)
    point = split_position(E.substitute(at.index, shown) if shown else at.index, definition.ranges)
    mapping: dict[E.Expr, E.IntLike] = {axis(k, n): p for k, (n, p) in enumerate(zip(definition.ranges, point, strict=True)) if n != 1}
    value = at_point(definition.value, mapping, at.mask, at.indirect)
    return at_point(value, {new: old for old, new in shown.items() if isinstance(new, E.Sym)}) if shown else value


def with_value(definition: Definition, rewrite: Callable[[Value], Value]) -> Definition:
    """The same definition over rewritten values."""
    match definition:
        case Pointwise():
            return Pointwise(definition.ranges, rewrite(definition.value))
        case Reduction():
            return Reduction(definition.ranges, definition.reduced, definition.kind, rewrite(definition.value))
        case Scan():
            return Scan(definition.ranges, definition.length, definition.kind, rewrite(definition.value))
        case Contraction():
            return Contraction(definition.ranges, definition.reduced, definition.roles, rewrite(definition.a), rewrite(definition.b))
        case Attention():
            return definition.over(rewrite)
        case Scatter():
            bound = tuple((s, rewrite(v)) for s, v in definition.indirect)
            return Scatter(definition.ranges, definition.target, definition.index, bound, rewrite(definition.value),
                              definition.mode)  # fmt: skip
    return definition
