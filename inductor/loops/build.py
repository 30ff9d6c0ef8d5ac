"""The plain loops of definitions: one serial loop for every axis, in the order of the definition.

These loops say what a kernel computes and in which order; a schedule changes how. Axes are named `<buffer>_i<k>` and
`<buffer>_r<k>`, running results `<buffer>_acc<k>`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from eager.base import dtypes
from eager.base.dtypes import dtype
from fxir.expr import rules as E
from inductor.ir import definitions as ir
from inductor.ir.sizes import Size, plain, product
from inductor.ir.values import at_point
from inductor.loops.reductions import COMBINES, lift
from inductor.loops.tree import (
    Accumulate,
    Allocate,
    Axes,
    Block,
    Contract,
    Kernel,
    Local,
    Place,
    Statement,
    Store,
    places_of,
    raised,
    rename_memory,
    repeat,
    values_of,
    walk,
)


def build(buffers: Sequence[ir.Buffer], memory: Mapping[str, dtype], temporary: Iterable[str] = (), rows: Sequence[Size] = (),
          same: Mapping[str, str] | None = None) -> Kernel:  # fmt: skip
    """The loops that compute `buffers` one after another.

    memory: dtypes of the other buffers that they read. temporary: names of buffers that nothing else reads. rows: leading axes that
    all buffers have; one loop `i<k>` for each holds the loops of all buffers. A buffer may then be read only in the row of its element.
    same: other names of memory: a read of a key reads the buffer that is its value.
    Raises: TypeError for a definition that has no loops (an extern call).
    """
    inside = [s for b in buffers for s in _loops(b, len(rows))]
    body = _nest([ir.axis(k, n) for k, n in enumerate(rows)], rows, raised(tuple(inside)) if rows else tuple(inside))
    if same:
        body = rename_memory(body, {name: (buffer, E.as_expr(0)) for name, buffer in same.items()})
    made = {**memory, **{b.name: b.layout.dtype for b in buffers}}
    return Kernel(body, {name: made[name] for name in _touched(body, buffers)}, frozenset(temporary))


def copy(target: ir.Buffer, source: ir.Ref) -> Kernel:
    """The loops that store the elements of `source` into `target`, whose layout may be any; the axes run in its memory order."""
    order = target.layout.order
    sizes = [target.layout.shape[d] for d in order]
    axes, _ = _axes(target.name, "i", sizes)
    point: list[E.IntLike] = [0] * len(order)
    for d, axis in zip(order, axes, strict=True):
        point[d] = axis
    value = ir.load(source.buffer, source.at(point), source.dtype)
    body = _nest(axes, sizes, (Store(Place(target.name, target.layout.position(point)), value),))
    return Kernel(body, {target.name: target.layout.dtype, source.buffer: source.dtype})


def _touched(body: Block, buffers: Iterable[ir.Buffer]) -> list[str]:
    locals_ = {s.local.name for s in walk(body) if isinstance(s, Allocate)}
    names = {b.name: None for b in buffers}
    for s in walk(body):
        names |= {p.name: None for p in places_of(s) if p.name not in locals_}
        for v in values_of(s):
            for x in v.loads:
                if x.buffer not in locals_:
                    names[x.buffer] = None
    return list(names)


def _loops(b: ir.Buffer, rows: int) -> Block:
    """The loops of a buffer inside of its first `rows` axes."""
    d = b.definition
    match d:
        case ir.Pointwise():
            return _pointwise(b.name, Place(b.name, ir.own_position(d.ranges)), d, rows)
        case ir.Reduction():
            return _reduction(b, d, rows)
        case ir.Scan():
            return _scan(b, d)
        case ir.Scatter():
            return _scatter(b, d)
        case ir.Contraction():
            return _contraction(b.name, Place(b.name, ir.own_position(d.ranges)), d)
        case ir.Recurrence():
            return _recurrence(d)
    raise TypeError(f"build: {b.name} is {type(d).__name__}; allowed: Pointwise, Reduction, Scan, Scatter, Contraction, Recurrence")


def _axes(name: str, letter: str, sizes: Sequence[Size], rows: int = 0) -> tuple[list[E.Expr], dict[E.Expr, E.IntLike]]:
    """Axes of one definition under unique names, and the renaming of the definition's loop variables to them.

    The first `rows` axes keep their names.
    """
    axes: list[E.Expr] = []
    rename: dict[E.Expr, E.IntLike] = {}
    old = ir.axis if letter == "i" else ir.reduced_axis
    for k, n in enumerate(sizes):
        if k < rows or n == 1:
            axes.append(old(k, n))
        else:
            axes.append(ir.counter(f"{name}_{letter}{k}", n))
            rename[old(k, n)] = axes[-1]
    return axes, rename


def _nest(axes: Sequence[E.Expr], sizes: Sequence[Size], body: Block) -> Block:
    """`body` inside serial loops, the first axis outermost. Axes of one iteration have no loop; where an axis is empty, nothing is left."""
    for axis, n in reversed(list(zip(axes, sizes, strict=True))):
        body = repeat(axis, n, "serial", body) if body else ()
    return body


def _state(name: str, combine: str, of: dtype) -> tuple[list[Local], tuple[Place, ...], Block]:
    """Locals for the state of a reduction, their places, and the stores that begin it."""
    c = COMBINES[combine]
    locals_ = [Local(f"{name}_acc{k}", 1, t) for k, t in enumerate(c.components(of))]
    places = tuple(Place(x.name, E.as_expr(0)) for x in locals_)
    return locals_, places, tuple(Store(p, v) for p, v in zip(places, c.identity(of), strict=True))


def _within(locals_: Iterable[Local], body: Block) -> Block:
    for x in reversed(list(locals_)):
        body = (Allocate(x, body),)
    return body


def _reduction(b: ir.Buffer, d: ir.Reduction, rows: int) -> Block:
    axes, rename = _axes(b.name, "i", d.ranges, rows)
    inner, rename_inner = _axes(b.name, "r", d.reduced)
    combine = _combine(d.kind, d.value.dtype)
    value = ir.cast(at_point(d.value, rename | rename_inner), _element(d))
    locals_, places, begin = _state(b.name, combine, value.dtype)
    states = lift(combine, value, ir.index(ir.linear_position(d.reduced, inner))) if combine.startswith("arg") else (value,)
    loop = _nest(inner, d.reduced, (Accumulate(places, combine, states),))
    result: ir.Value = ir.load(locals_[-1].name if combine.startswith("arg") else locals_[0].name, 0, locals_[0].dtype)
    if combine.startswith("arg"):
        result = ir.load(locals_[1].name, 0, locals_[1].dtype)
    if d.kind == "mean":
        result = _mean(result, product(d.reduced), d.value.dtype)
    end = Store(Place(b.name, ir.linear_position(d.ranges, axes)), ir.cast(result, b.layout.dtype))
    return _nest(axes[rows:], d.ranges[rows:], _within(locals_, (*begin, *loop, end)))


def _combine(kind: str, of: dtype) -> str:
    """The combine of a reduction or scan over values of dtype `of`. The sum of a mean is divided where the result is stored."""
    if kind == "mean":
        kind = "sum"
    return "wide_sum" if kind == "sum" and of is dtypes.float32 else kind


def _element(d: ir.Reduction | ir.Scan) -> dtype:
    """The dtype in which values are accumulated, apart from wide sums."""
    if d.kind in ("any", "all"):
        return dtypes.bool_
    return dtypes.float64 if d.kind == "prod" and d.value.dtype is dtypes.float32 else d.value.dtype


def _mean(total: ir.Value, count: Size, of: dtype) -> ir.Value:
    """A sum divided by the number of elements: multiplied by the inverse, where the result has fewer bits than the sum."""
    n = ir.const(count, total.dtype) if isinstance(count, int) else ir.cast(ir.index(count), total.dtype)
    if of is total.dtype or count == 0:
        return ir.make_op("div", (total, n), total.dtype)
    one = ir.const(1, total.dtype)
    inverse = ir.const(1 / count, total.dtype) if isinstance(count, int) else ir.make_op("div", (one, n), total.dtype)
    return ir.make_op("mul", (total, inverse), total.dtype)


def _scan(b: ir.Buffer, d: ir.Scan) -> Block:
    axes, rename = _axes(b.name, "i", d.ranges)
    along, rename_along = _axes(b.name, "r", (d.length,))
    combine = _combine(d.kind, d.value.dtype)
    value = ir.cast(at_point(d.value, rename | rename_along), _element(d))
    locals_, places, begin = _state(b.name, combine, value.dtype)
    states = lift(combine, value, ir.index(along[0]))
    at = ir.linear_position((*d.ranges, d.length), (*axes, *along))
    result = ir.cast(ir.load(locals_[0].name, 0, locals_[0].dtype), b.layout.dtype)
    step: tuple[Statement, ...] = (Accumulate(places, combine, states), Store(Place(b.name, at), result))
    return _nest(axes, d.ranges, _within(locals_, (*begin, *_nest(along, (d.length,), step))))


def _pointwise(name: str, place: Place, d: ir.Pointwise, rows: int = 0) -> Block:
    """Loops with axes `<name>_i<k>`. place: of the element, over the axes of the definition."""
    axes, rename = _axes(name, "i", d.ranges, rows)
    store = Store(Place(place.name, E.substitute(place.index, rename)), at_point(d.value, rename))
    return _nest(axes[rows:], d.ranges[rows:], (store,))


def _recurrence(d: ir.Recurrence) -> Block:
    def steps(of: Sequence[ir.Step], when: str) -> Block:
        found: list[Statement] = []
        for k, s in enumerate(of):
            name, place = f"{d.call}_{when}{k}", Place(s.buffer, s.position)
            if isinstance(s.definition, ir.Pointwise):
                found += _pointwise(name, place, s.definition)
            else:
                found += _contraction(name, place, s.definition)
        return tuple(found)

    return (*steps(d.first, "first"), *repeat(d.time, plain(d.length - 1), "serial", steps(d.rest, "step")))


def _contraction(name: str, place: Place, d: ir.Contraction) -> Block:
    """A contraction with axes `<name>_i<k>` and `<name>_r<k>`. place: of the element, over the axes of the definition.

    A result without elements has no loops. The sum of no products is 0, as one product of zeros.
    """
    if 0 in d.ranges:
        return ()
    axes, rename = _axes(name, "i", d.ranges)
    depth, rename_depth = _axes(name, "r", d.reduced)
    by_role: dict[str, list[tuple[E.Sym, Size]]] = {"batch": [], "row": [], "column": [], "depth": []}
    roles = (*d.roles, *("depth" for _ in d.reduced))
    for axis, n, role in zip((*axes, *depth), (*d.ranges, *d.reduced), roles, strict=True):
        if isinstance(axis, E.Sym):
            by_role[role].append((axis, n))
    a, b = (ir.const(0, v.dtype) if 0 in d.reduced else at_point(v, rename | rename_depth) for v in (d.a, d.b))
    place = Place(place.name, E.substitute(place.index, rename))
    return (Contract(name, place, Axes(*map(tuple, by_role.values())), a, b),)


def expanded(s: Contract) -> Block:
    """The contraction as plain loops over its axes, with a sum for each element."""
    name, of = s.name, s.a.dtype
    locals_, places, begin = _state(name, _combine("sum", of), of)
    loop = _nest(*_split(s.axes.depth), (Accumulate(places, _combine("sum", of), (ir.make_op("mul", (s.a, s.b), of),)),))
    total = ir.cast(ir.load(locals_[0].name, 0, locals_[0].dtype), of)
    return _nest(*_split(s.axes.result), _within(locals_, (*begin, *loop, Store(s.place, total), *s.body)))


def _split(axes: Sequence[tuple[E.Sym, Size]]) -> tuple[list[E.Expr], list[Size]]:
    return [a for a, _ in axes], [n for _, n in axes]


def _scatter(b: ir.Buffer, d: ir.Scatter) -> Block:
    """The writes of a scatter. `b` uses the memory of the target, which the caller has filled."""
    axes, rename = _axes(b.name, "i", d.ranges)
    place = Place(b.name, E.substitute(d.index, rename), tuple((s, at_point(v, rename)) for s, v in d.indirect))
    value = ir.cast(at_point(d.value, rename), b.layout.dtype)
    write: Statement = Store(place, value) if d.mode == "set" else Accumulate((place,), "sum", (value,))
    return _nest(axes, d.ranges, (write,))


