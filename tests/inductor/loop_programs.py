"""Random definitions and random schedules, for the law that a legal schedule changes no result.

Inputs hold small whole numbers, so sums and products of floats are exact in every order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

import numpy as np
from hypothesis import strategies as st

from eager.base import dtypes
from eager.base.dtypes import dtype
from fxir.expr import rules as E
from inductor.ir import definitions as ir
from inductor.ir.definitions import with_value
from inductor.ir.sizes import Size, plain
from inductor.ir.values import both, replace_loads
from inductor.loops.apply import Refusal, apply
from inductor.loops.build import build
from inductor.loops.steps import (
    Blocks,
    CacheRead,
    CacheWrite,
    Columns,
    Distribute,
    Expand,
    Follow,
    FuseAxes,
    Interleave,
    Join,
    Lanes,
    Localise,
    Mark,
    Partials,
    Parts,
    Persistent,
    Reorder,
    ScanStages,
    Share,
    Split,
    Stages,
    Step,
    Unmask,
)
from inductor.loops.tree import (
    Accumulate,
    Allocate,
    Block,
    Contract,
    Guard,
    Kernel,
    Loop,
    body_of,
    loops_of,
    values_of,
    walk,
)
from inductor.loops.unmask import masks_of

F32, F64, I64, I32, U8 = dtypes.float32, dtypes.float64, dtypes.int64, dtypes.int32, dtypes.uint8
BF16, F16, BOOL = dtypes.bfloat16, dtypes.float16, dtypes.bool_
OF_INPUTS: Final = (*[F32] * 7, F64, BF16, F16, I64, I32, U8, BOOL)
COMPUTED_IN: Final = (*[F32] * 7, F64, I64, I32)
STORED_AS: Final[dict[dtype, tuple[dtype, ...]]] = {
    F32: (F32, F32, F32, BF16, F16), F64: (F64, F64, F32), I64: (I64, I64, I32, U8), I32: (I32, I64, BOOL), U8: (U8, F32),
}  # fmt: skip
EXACT: Final = 1 << 24  # below this, float32 has every whole number
MOST_INPUT: Final = 3  # absolute value of an input
UNBOUNDED: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class Program:
    """Buffers to compute, element counts of all memory by name, values of symbolic sizes, and buffers that nothing else reads.

    inputs: dtypes of the inputs that are not float32. Inputs `k...` are positions.
    """

    buffers: tuple[ir.Buffer, ...]
    sizes: dict[str, int]
    symbols: dict[E.Sym, int]
    temporary: frozenset[str]
    inputs: Mapping[str, dtype] = field(default_factory=dict)

    def dtypes(self) -> dict[str, dtype]:
        """The dtypes of all memory."""
        made = {b.name: b.layout.dtype for b in self.buffers}
        return {n: made.get(n, I64 if n.startswith("k") else self.inputs.get(n, F32)) for n in self.sizes}

    def kernel(self) -> Kernel:
        """The plain loops."""
        made = {b.name for b in self.buffers}
        return build(self.buffers, {n: t for n, t in self.dtypes().items() if n not in made}, self.temporary)

    def memory(self, seed: int) -> dict[str, np.ndarray]:
        """Memory with random inputs. Buffers that the loops write begin as -77, or as 77 without a sign."""
        random = np.random.default_rng(seed)
        made = {b.name: b for b in self.buffers}
        out = {}
        for name, of in self.dtypes().items():
            size = self.sizes[name]
            if name in made and not isinstance(made[name].definition, ir.Scatter):
                out[name] = np.full(size, -77 if of.is_signed else 77).astype(of.numpy)
            elif name.startswith("k"):
                out[name] = random.integers(0, 5, size)
            else:
                low = -MOST_INPUT if of.is_signed else 0
                out[name] = random.integers(low, MOST_INPUT + 1, size).astype(of.numpy)
        return out


class Source(NamedTuple):
    """Elements that definitions read. most: a bound of their absolute values."""

    ref: ir.Ref
    most: int


class Bounded(NamedTuple):
    """A value, and a bound of its absolute values."""

    value: ir.Value
    most: int


@st.composite
def programs(draw: st.DrawFn, has_masks: bool = False) -> Program:
    """One to three definitions. Each reads inputs and earlier results at positions linear in its axes, or gathered.

    Inputs are dense, strided, transposed, broadcast or offset in their memory, of any dtype, and may be empty. has_masks: in half of the
    programs, loads of pointwise values and of reductions are under conditions.
    """
    symbols: dict[E.Sym, int] = {}
    sizes: dict[str, int] = {"k0": 12, "t": 5}
    sources: list[Source] = []
    is_masked = has_masks and draw(st.booleans())
    shape = _shape(draw, symbols)
    inputs: dict[str, dtype] = {}
    for k in range(draw(st.integers(1, 2))):
        source, sizes[f"x{k}"] = _input(draw, f"x{k}", shape, symbols)
        inputs[f"x{k}"] = source.ref.dtype
        sources.append(source)
    buffers: list[ir.Buffer] = []
    for k in range(draw(st.integers(1, 3))):
        b, most = _buffer(draw, f"b{k}", sources, sizes)
        b = _masked(draw, b) if is_masked else b
        buffers.append(b)
        sizes[b.name] = _count(b.layout.shape, symbols)
        if not isinstance(b.definition, ir.Scatter) and most < UNBOUNDED and b.layout.dtype is not F16:  # float16 may be infinite
            sources.append(Source(ir.Ref(b.name, b.layout), most))
    # A scatter adds to memory that exists before the loops: it is not temporary.
    temporary = {b.name for b in buffers[:-1] if not isinstance(b.definition, ir.Scatter) and draw(st.booleans())}
    return Program(tuple(buffers), sizes, symbols, frozenset(temporary), inputs)


def _shape(draw: st.DrawFn, symbols: dict[E.Sym, int]) -> tuple[Size, ...]:
    shape: list[Size] = []
    for k in range(draw(st.integers(1, 3))):
        n = 0 if draw(st.integers(0, 39)) == 39 else draw(st.integers(1, 6))
        if n > 1 and draw(st.integers(0, 4)) == 0:
            s = E.sym(f"n{k}", 2, 1 << 30)
            assert isinstance(s, E.Sym)
            symbols[s] = n
            shape.append(s)
        else:
            shape.append(n)
    return tuple(shape)


def _input(draw: st.DrawFn, name: str, shape: Sequence[Size], symbols: dict[E.Sym, int]) -> tuple[Source, int]:
    """An input in some layout of its memory, and the number of elements there."""
    of = draw(st.sampled_from(OF_INPUTS))
    if draw(st.booleans()):
        return Source(ir.Ref(name, ir.row_major(shape, of)), MOST_INPUT), _count(shape, symbols)
    strides: list[Size] = [0] * len(shape)
    step: Size = draw(st.sampled_from((1, 1, 1, 2)))
    for d in draw(st.permutations(range(len(shape)))):
        if draw(st.integers(0, 5)) == 5:  # broadcast
            continue
        strides[d] = step
        step = plain(step * (max(shape[d], 1) if isinstance(shape[d], int) else shape[d]))
    offset = draw(st.sampled_from((0, 0, 1, 3)))
    return Source(ir.Ref(name, ir.Layout(tuple(shape), tuple(strides), of), offset), MOST_INPUT), offset + _count((step,), symbols)


def _count(shape: Sequence[Size], symbols: dict[E.Sym, int]) -> int:
    return int(np.prod([n if isinstance(n, int) else E.evaluate(n, symbols) for n in shape], dtype=int)) if shape else 1


def _longest(shape: Sequence[Size]) -> int:
    """A bound of the number of elements."""
    return math.prod(n if isinstance(n, int) else 6 for n in shape)


def _buffer(draw: st.DrawFn, name: str, sources: Sequence[Source], sizes: dict[str, int]) -> tuple[ir.Buffer, int]:
    """A buffer, and a bound of its absolute values."""
    shape = draw(st.sampled_from(sources)).ref.shape
    axes = [ir.axis(k, n) for k, n in enumerate(shape)]
    kind = draw(st.sampled_from(["pointwise", "pointwise", "reduction", "reduction", "scan", "scatter", "contraction"]))
    if kind == "pointwise" or not shape:
        order = draw(st.permutations(range(len(shape))))
        made = tuple(shape[d] for d in order)
        point = [ir.axis(order.index(d), n) for d, n in enumerate(shape)]
        value, most = _value(draw, shape, point, sources, draw(st.sampled_from((*COMPUTED_IN, U8))))
        of = draw(st.sampled_from(STORED_AS[value.dtype]))
        return ir.Buffer(name, ir.row_major(made, of), ir.Pointwise(made, ir.cast(value, of))), most
    if kind == "scatter":
        return _scatter(draw, name, shape, axes, sources), UNBOUNDED
    if kind == "scan":
        ranges, length = shape[:-1], shape[-1]
        point = [*axes[:-1], ir.reduced_axis(0, length)]
        value, most = _value(draw, shape, point, sources, draw(st.sampled_from(COMPUTED_IN)))
        kind, most = _kind(draw, ("sum", "max"), most, _longest((length,)))
        of = draw(st.sampled_from(STORED_AS[value.dtype]))
        return ir.Buffer(name, ir.row_major(shape, of), ir.Scan(ranges, length, kind, value)), most
    if kind == "contraction":
        return _contraction(draw, name, shape, sources)
    return _reduction(draw, name, shape, sources)


def _kind(draw: st.DrawFn, kinds: Sequence[str], most: int, count: int) -> tuple[str, int]:
    """A kind of reduction of `count` elements, exact in every order, and a bound of its result."""
    kind = draw(st.sampled_from(kinds))
    if kind == "sum" and most * count >= EXACT:
        kind = "max"
    if kind == "sum":
        return kind, most * count
    if kind in ("max", "min"):
        return kind, most if count else UNBOUNDED  # without elements: infinite
    return kind, count if kind.startswith("arg") and count else 1 if kind in ("any", "all") else UNBOUNDED


def _contraction(draw: st.DrawFn, name: str, shape: tuple[Size, ...], sources: Sequence[Source]) -> tuple[ir.Buffer, int]:
    """Sums of products, whose operands read the sources at the axes that their roles allow."""
    roles = [draw(st.sampled_from(["batch", "row", "column", "depth"])) for _ in shape]
    counts = {"result": 0, "depth": 0}
    point = []
    for n, role in zip(shape, roles, strict=True):
        which = "depth" if role == "depth" else "result"
        point.append((ir.reduced_axis if role == "depth" else ir.axis)(counts[which], n))
        counts[which] += 1
    a, b = ([E.as_expr(0) if role == other else e for e, role in zip(point, roles, strict=True)] for other in ("column", "row"))
    kept = tuple(n for n, role in zip(shape, roles, strict=True) if role != "depth")
    depth = tuple(n for n, role in zip(shape, roles, strict=True) if role == "depth")
    names = tuple(role for role in roles if role != "depth")
    of = draw(st.sampled_from((F32, F32, F32, F64)))
    left = _load(draw, shape, a, sources, of)
    right = _load(draw, shape, b, sources, of)
    count = _longest(depth)
    if left.most * right.most * count >= EXACT:
        right = _load(draw, shape, b, [s for s in sources if s.most <= MOST_INPUT], of)
    if left.most * right.most * count >= EXACT:
        left = _load(draw, shape, a, [s for s in sources if s.most <= MOST_INPUT], of)
    d = ir.Contraction(kept, depth, names, left.value, right.value)
    return ir.Buffer(name, ir.row_major(kept, of), d), left.most * right.most * count


def _reduction(draw: st.DrawFn, name: str, shape: tuple[Size, ...], sources: Sequence[Source]) -> tuple[ir.Buffer, int]:
    is_reduced = [draw(st.booleans()) for _ in shape]
    kept, reduced = ([n for n, r in zip(shape, is_reduced, strict=True) if r is which] for which in (False, True))
    counts = [0, 0]
    point = []
    for n, r in zip(shape, is_reduced, strict=True):
        point.append((ir.reduced_axis if r else ir.axis)(counts[r], n))
        counts[r] += 1
    value, most = _value(draw, shape, point, sources, draw(st.sampled_from(COMPUTED_IN)))
    kind, most = _kind(draw, ("sum", "sum", "max", "min", "argmax", "argmin", "any", "all"), most, _longest(reduced))
    d = ir.Reduction(tuple(kept), tuple(reduced), kind, value)
    of = I64 if kind.startswith("arg") else BOOL if kind in ("any", "all") else draw(st.sampled_from(STORED_AS[value.dtype]))
    return ir.Buffer(name, ir.row_major(tuple(kept), of), d), most


@st.composite
def products(draw: st.DrawFn) -> tuple[Program, tuple[Step, ...]]:
    """A contraction and pointwise loops that read each of its elements once, in any order; and the steps that fuse them."""
    symbols: dict[E.Sym, int] = {}
    shape = _shape(draw, symbols)
    x, n = _input(draw, "x0", shape, symbols)
    sizes = {"k0": 12, "t": 5, "x0": n}
    first, _ = _contraction(draw, "b0", shape, [x])
    made, of = first.layout.shape, first.layout.dtype
    sizes["b0"] = _count(made, symbols)
    order = draw(st.permutations(range(len(made))))
    ranges = tuple(made[d] for d in order)
    point = [ir.axis(order.index(d), n) for d, n in enumerate(made)]
    read = ir.load("b0", ir.linear_position(made, point), of)
    other = _load(draw, made, point, [x], of).value
    value = ir.make_op(draw(st.sampled_from(["add", "sub", "mul", "maximum"])), (read, draw(st.sampled_from([other, read]))), of)
    second = ir.Buffer("b1", ir.row_major(ranges, of), ir.Pointwise(ranges, value))
    sizes["b1"] = sizes["b0"]
    program = Program((first, second), sizes, symbols, frozenset({"b0"} if draw(st.booleans()) else ()), {"x0": x.ref.dtype})
    loops = [s for s in program.kernel().body if isinstance(s, Loop)]
    steps = (*(Follow("b0", x.axis.name) for x in loops), *((Share("b0", "b1"),) if draw(st.booleans()) else ()))
    return program, steps


def _scatter(draw: st.DrawFn, name: str, shape: tuple[Size, ...], axes: list[E.Expr], sources: Sequence[Source]) -> ir.Buffer:
    """Writes by data ("set": the last write wins), over a target of 5 elements."""
    s = E.sym(f"g_{name}", 0, 4)
    assert isinstance(s, E.Sym)
    at = ir.load("k0", E.mod(ir.linear_position(shape, axes), 12), I64)
    value, most = _value(draw, shape, axes, sources, draw(st.sampled_from(COMPUTED_IN)))
    mode = draw(st.sampled_from(["set", "add"])) if most * _longest(shape) < EXACT else "set"
    return ir.Buffer(name, ir.row_major((5,), value.dtype), ir.Scatter(shape, "t", s, ((s, at),), value, mode))


def _value(draw: st.DrawFn, shape: Sequence[Size], point: Sequence[E.Expr], sources: Sequence[Source], of: dtype) -> Bounded:
    """A value of dtype `of`. The products of floats are exact."""
    values = [_load(draw, shape, point, sources, of) for _ in range(draw(st.integers(1, 2)))]
    if len(values) == 1:
        return values[0]
    a, b = values
    name = draw(st.sampled_from(["add", "sub", "mul", "maximum"]))
    if name == "mul" and a.most * b.most >= EXACT:
        name = "maximum"
    made = ir.make_op(name, (a.value, b.value), of)
    return Bounded(made, a.most * b.most if name == "mul" else max(a.most, b.most) if name == "maximum" else a.most + b.most)


def _masked(draw: st.DrawFn, b: ir.Buffer) -> ir.Buffer:
    """The buffer with loads that read only where one or two conditions on its axes hold, and are 0 elsewhere."""
    d = b.definition
    if not isinstance(d, ir.Pointwise | ir.Reduction) or not d.ranges:
        return b

    def under_conditions(read: ir.Load) -> ir.Value:
        mask: ir.Value | None = None
        for _ in range(draw(st.integers(0, 2))):
            name, k = draw(st.sampled_from(["lt", "ge"])), draw(st.integers(0, len(d.ranges) - 1))
            condition = (ir.index(ir.axis(k, d.ranges[k])), ir.const(draw(st.integers(0, 4)), I64))
            mask = both(mask, ir.make_op(name, condition, dtypes.bool_))
        return ir.load(read.buffer, read.index, read.dtype, mask)

    return replace(b, definition=with_value(d, lambda v: replace_loads(v, under_conditions)))


def _load(draw: st.DrawFn, shape: Sequence[Size], point: Sequence[E.Expr], sources: Sequence[Source], of: dtype) -> Bounded:
    """A source at the point as dtype `of`, where the shapes meet from the right; dims may be read backwards, and others at a fixed index.

    Where the drawn source has no element at a fixed index: 1.
    """
    ref, most = draw(st.sampled_from(sources))
    at: list[E.IntLike] = []
    for k, n in enumerate(ref.shape):
        d = k + len(shape) - len(ref.shape)
        if d < 0 or shape[d] != n or (n != 1 and isinstance(point[d], E.Int)):
            if n == 0:
                return Bounded(ir.const(1, of), 1)
            at.append(0)
        elif draw(st.integers(0, 5)) == 0:
            at.append(plain(n - 1 - point[d]))
        else:
            at.append(point[d])
    value: ir.Value = ir.load(ref.buffer, ref.at(at), ref.dtype)
    if ref.dtype.is_floating_point and of.is_integral:
        value = ir.cast(value, I64)  # numbers outside of a smaller type wrap
    return Bounded(ir.cast(value, of), min(most, 255) if of is U8 else most)


@st.composite
def scheduled(draw: st.DrawFn, kernel: Kernel, steps: int = 6, first: Sequence[Step] = ()) -> tuple[Kernel, tuple[Step, ...], int]:
    """A kernel after the steps `first` and up to `steps` random ones: the kernel, the steps that were legal, and how many were refused."""
    done: list[Step] = []
    refused = 0
    for k in range(draw(st.integers(1, steps)) + len(first)):
        candidates = [*fitting_steps(kernel.body), *_localisations(kernel), *_cached_reads(kernel), *_steps_of_contractions(kernel)]
        if not candidates:
            break
        step = first[k] if k < len(first) else draw(st.sampled_from(candidates))
        found = apply(kernel, (step,))
        if isinstance(found, Refusal):
            refused += 1
            continue
        kernel = found
        done.append(step)
    return kernel, tuple(done), refused


def _localisations(kernel: Kernel) -> Iterator[Step]:
    for name in sorted(kernel.temporary):
        yield from (Localise((name,), axis) for axis in loops_of(kernel.body))


def _cached_reads(kernel: Kernel) -> Iterator[Step]:
    for axis, loop in loops_of(kernel.body).items():
        names = {x.buffer: None for s in walk(loop.body) for v in values_of(s) for x in ir.loads_in(v)}
        yield from (CacheRead(name, axis) for name in names)


def _steps_of_contractions(kernel: Kernel) -> Iterator[Step]:
    for k, s in enumerate(kernel.body):
        if isinstance(s, Contract):
            yield Expand(s.name)
            yield from (Blocks(s.name, 2, 4, 2), Blocks(s.name, 4, 1, 4))
            yield from [Share(s.name, name) for name in kernel.dtypes] * 2
            yield from [Follow(s.name, x.axis.name) for x in kernel.body[k + 1 :] if isinstance(x, Loop)] * 8
        else:
            inside = [x for x in walk((s,)) if isinstance(x, Contract)]
            yield from [Persistent(x.name, programs) for x in inside for programs in (1, 2, 5)]


def without_contractions(kernel: Kernel) -> Kernel:
    """The kernel with its contractions as plain loops."""
    for s in walk(kernel.body):
        if isinstance(s, Contract):
            made = apply(kernel, (Expand(s.name),))
            assert not isinstance(made, Refusal)
            return without_contractions(made)
    return kernel


def fitting_steps(block: Block) -> Iterator[Step]:
    """Steps whose form fits the loops; a dependence may still forbid them."""
    for k, s in enumerate(block):
        following = block[k + 1] if k + 1 < len(block) else None
        if isinstance(s, Loop):
            yield from _steps_of(s)
            if isinstance(following, Loop):
                yield from [Join(s.axis.name, following.axis.name)] * 4
        yield from fitting_steps(body_of(s))


def _steps_of(loop: Loop) -> Iterator[Step]:
    name = loop.axis.name
    yield from (Split(name, 2), Split(name, 3), Split(name, 2, "peel"), Split(name, 3, "peel"))
    yield from (Mark(name, "parallel"), Mark(name, "vector"), Mark(name, "unrolled"))
    yield from (Mark(name, "grid"), Mark(name, "lanes"), Mark(name, "scan"), Mark(name, "streamed"))
    yield from [CacheWrite(name)] * (4 if loop.kind == "vector" else 0)
    if masks_of(loop):
        yield from [Unmask(name)] * 4
    first = loop.body[0]
    inner = first.body[0] if isinstance(first, Guard) else first
    if len(loop.body) > 1 and isinstance(first, Accumulate):
        yield from [ScanStages(name, 2), ScanStages(name, 3)] * 4
    if len(loop.body) > 1 or isinstance(first, Allocate):
        yield from [Interleave(name, 2)] * 2
        around: list[Step] = [Distribute(name), Columns(name, 2, 1), Columns(name, 3, 100)]
        yield from around * 2
    elif isinstance(inner, Loop):
        both: list[Step] = [Reorder(name, inner.axis.name), FuseAxes(name, inner.axis.name)]
        yield from both * 2
    elif isinstance(first, Accumulate):
        lanes: list[Step] = [Lanes(name, 2, 2), Lanes(name, 3, 1), Lanes(name, 2, 100), Stages(name, 2), Stages(name, 3), Partials(name, 2),
                             Partials(name, 4), Parts(name, 2), Parts(name, 3)]  # fmt: skip
        yield from lanes * 3
