"""Contractions in blocks: `tl.dot` over blocks of the depth, in a loop whose loads run ahead.

Owns the sums of a block of rows and columns. The statements on a finished block are the caller's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

from eager.base import dtypes
from fxir.expr import rules as E
from inductor.ir import definitions as ir
from inductor.ir.sizes import Size
from inductor.ir.values import at_point
from inductor.loops.narrow import rewrite as narrowed
from inductor.loops.tree import Contract, Loop, Role
from inductor.triton.emitter import Emitter, Scope
from inductor.triton.tiles import Known, Mask, Shape, spread
from inductor.triton.values import Unprintable, type_of

UNROLLED: Final = 32  # most iterations of a loop over products that the compiler might unroll
Finish: TypeAlias = Callable[[Contract, Known], None]  # prints the statements on a finished block and its sums
_Masks: TypeAlias = tuple[tuple[Mask, ...], tuple[Mask, ...]]  # of the left operand, and of the right one


class _Descriptor(NamedTuple):
    """The descriptor of a matrix. at: where the block of a step begins. is_transposed: whether its rows are the operand's columns."""

    name: str
    at: tuple[E.Expr, E.Expr]
    is_transposed: bool


class _Operands(NamedTuple):
    """The operands of one step over the depth. deep: elements of the step. descriptors: of both, where blocks are copied."""

    left: ir.Value
    right: ir.Value
    deep: int
    descriptors: tuple[_Descriptor, ...] = ()


class Products:
    """Prints contractions. are_printed: whether there was one. n_descriptors: of matrices whose blocks are copied.

    precision: of products of float32, as in `inductor.triton.kernel.Options`.
    """

    def __init__(self, out: Emitter, precision: str) -> None:
        self.out, self.precision, self.are_printed, self.n_descriptors = out, precision, False, 0

    def block(self, s: Contract, finish: Finish) -> None:
        """One block. A last block of the depth that is not whole follows the loop over the others: only it has masks."""
        axes = self._tile_loops(s)
        outer = self.out.scope.masks
        masks: list[tuple[Mask, ...]] = []
        for dim, axis in enumerate(axes):
            around = self.out.scope.masks
            self.out.open_axis(axis, dim)
            masks.append((*outer, *self.out.scope.masks[len(around) :]))
        total = self._zeros(s)
        for operands, loops in _parts(s):
            self._sum(total, self._read(s, operands, s.axes.depth[-1]), loops, (masks[0], masks[1]))
        finish(s, total)
        for _ in axes:
            self.out.leave()

    def blocks(self, around: Loop, s: Contract, finish: Finish) -> None:
        """The blocks of a loop, one after another, in a single loop over all steps of their depths.

        The compiler then loads the operands of the next block before a finished block is stored.
        """
        axes = self._tile_loops(s)
        for dim, axis in enumerate(axes):
            self.out.enter(axis, self.out.scope.lines, dim)
            self.out.count_along(axis, dim)
        total = self._zeros(s)
        (step, steps), depth = s.axes.depth
        operands = self._read(s, _operands(s), depth)
        counter = self.out.name("i")
        for x in (around.axis, step):
            self.out.axes[x.name], self.out.shape_of[x] = self.out.name("i"), ()
        with self.out.iterations(around) as lines:
            self.out.scope_of[step] = len(self.out.scopes) - 1
            number = counter if self.out.is_narrow else f"tl.full([], {counter}, tl.int64)"
            self.out.line(f"{self.out.axes[around.axis.name]} = {number} // ({self.out.index(steps)})")
            self.out.line(f"{self.out.axes[step.name]} = {number} % ({self.out.index(steps)})")
            outer = self.out.scope.masks
            self.out.mask_along(axes[0])
            rows = self.out.scope.masks
            self.out.mask_along(axes[1])
            self._multiply(total, operands, (rows, (*outer, *self.out.scope.masks[len(rows) :])))
            self._after_last_step(around, s, total, finish)
        self._loop(counter, (around.extent, steps), lines)
        for _ in axes:
            self.out.leave()

    def _after_last_step(self, around: Loop, s: Contract, total: Known, finish: Finish) -> None:
        """The statements on a block, where its sums are complete. Their values are not computed in other steps."""
        step, steps = s.axes.depth[0]
        condition = f"{self.out.axes[step.name]} == ({self.out.index(steps)}) - 1"
        lines: list[str] = []
        self.out.enter(Loop(around.axis, around.extent, around.kind, s.body), lines)
        for axis, _ in (*s.axes.rows, *s.axes.columns):
            self.out.scope_of[axis] = len(self.out.scopes) - 1
        finish(s, total)
        self.out.line(f"{total.name} = {_zero_tile(s, total.shape)}")
        self.out.leave()
        self.out.line(f"if {condition}:")
        for text in lines:
            self.out.line(f"    {text}")

    def _tile_loops(self, s: Contract) -> list[Loop]:
        """The rows and the columns of a block as loops over axes of a tile."""
        if s.axes.batch or len(s.axes.rows) > 1 or len(s.axes.columns) > 1 or not 1 <= len(s.axes.depth) <= 2:
            raise Unprintable(f"triton: the contraction {s.place} is not in blocks")
        if any(x.dim >= 0 for x in self.out.scopes):
            raise Unprintable(f"triton: the contraction {s.place} is inside of a tile")
        if not s.axes.rows or not s.axes.columns:
            raise Unprintable(f"triton: the contraction {s.place} has one row or column")
        return [Loop(*role[0], "lanes", s.body) for role in (s.axes.rows, s.axes.columns)]

    def _zeros(self, s: Contract) -> Known:
        """A tile for the sums of a block."""
        shape = self.out.full_shape()
        self.are_printed = True
        return Known(self.out.hold(_zero_tile(s, shape)), shape, len(self.out.scopes) - 1)

    def _sum(self, total: Known, operands: _Operands, loops: Role, masks: _Masks) -> None:
        """Adds the products of blocks of the operands to a tile, in a loop for each of `loops`."""
        lines: list[str] = []
        self.out.scopes.append(Scope(lines, frozenset(), ()))
        for axis, _ in loops:
            self.out.axes[axis.name] = self.out.name("i")
            self.out.shape_of[axis], self.out.scope_of[axis] = (), len(self.out.scopes) - 1
        self._multiply(total, operands, masks)
        self.out.leave()
        if loops:
            ((axis, count),) = loops
            self._loop(self.out.axes[axis.name], (count,), lines)
        else:
            self.out.scope.lines.extend(lines)

    def _read(self, s: Contract, operands: Sequence[ir.Value], depth: tuple[E.Sym, Size]) -> _Operands:
        """The operands of a step over the depth, which runs along the columns of the left one and the rows of the right one."""
        (left, right), (inner, size) = operands, depth
        assert isinstance(size, int)
        if s.described:
            rows, columns, whole = s.described
            ((row, _),), ((column, _),) = s.axes.rows, s.axes.columns
            return _Operands(left, right, size, (self._descriptor(left, (row, inner), (rows, whole), (self._tile(row), size)),
                                                 self._descriptor(right, (inner, column), (whole, columns), (size, self._tile(column)))))
        other = E.sym(f"{inner.name}_b", 0, size - 1)
        assert isinstance(other, E.Sym)
        self.out.counter(inner, size, 1)
        self.out.counter(other, size, 0)
        return _Operands(left, at_point(right, {inner: other}), size)

    def _tile(self, axis: E.Sym) -> int:
        """Elements along an axis of the tile of results."""
        return math.prod(self.out.shape_of[axis])

    def _descriptor(self, v: ir.Value, axes: tuple[E.Sym, E.Sym], sizes: tuple[int, int], tile: tuple[int, int]) -> _Descriptor:
        """Makes the descriptor of an operand. axes, sizes and tile: of its rows and columns."""
        load = _stripped(v)
        found = E.strides_of(load.index, axes) if isinstance(load, ir.Load) else None
        if found is None or not isinstance(load, ir.Load) or not self.out.is_narrow:
            raise Unprintable(f"triton: {v} is not one matrix with positions of 32 bits")
        is_transposed = found[0][axes[1]] is not E.as_expr(1)
        pitch = found[0][axes[1 if is_transposed else 0]]
        if is_transposed:
            sizes, tile = (sizes[1], sizes[0]), (tile[1], tile[0])
        if not isinstance(pitch, E.Int):
            raise Unprintable(f"triton: the rows of {v} are {pitch} elements apart, which is not constant")
        if load.buffer in self.out.scopes[0].written:
            raise Unprintable(f"triton: {load.buffer} is written and copied by descriptors in one kernel")
        start, terms = E.terms_of(found[1])
        parts = [(t, divmod(c, pitch.value)) for t, c in terms]
        at = E.linear(0, [(t, q) for t, (q, _) in parts]), E.linear(0, [(t, r) for t, (_, r) in parts])
        if at[1].lo < 0 or at[1].hi >= sizes[1] or at[0].lo < 0:
            raise Unprintable(f"triton: a block of {v} begins at {at[0]}, {at[1]}, which may be outside of {sizes[0]} x {sizes[1]}")
        pointer = self.out.pointers.setdefault(load.buffer, f"p{len(self.out.pointers)}")
        name = self.out.name("d")
        address = f"{pointer} + {start}" if start else pointer
        self.out.scopes[0].lines.append(f"{name} = tl.make_tensor_descriptor({address}, {list(sizes)}, [{pitch}, 1], {list(tile)})")
        self.n_descriptors += 1
        self.out.use(math.prod(tile))
        return _Descriptor(name, at, is_transposed)

    def _multiply(self, total: Known, operands: _Operands, masks: _Masks) -> None:
        """Loads a block of each operand and adds their product to a tile."""
        left, right, deep, descriptors = operands
        rows, columns = total.shape
        if descriptors:
            names = [self._copied(d) for d in descriptors]
        else:
            tiles = (left, masks[0], (rows, deep)), (right, masks[1], (deep, columns))
            names = [self._loaded(*of) for of in tiles]
        precision = f", input_precision='{self.precision}'" if left.dtype.itemsize > 2 else ""
        if left.dtype.is_float8:  # the unit would add up with fewer bits than float32 has: a separate addition for each block
            self.out.line(f"{total.name} += tl.dot({names[0]}, {names[1]})")
        else:
            self.out.line(f"{total.name} = tl.dot({names[0]}, {names[1]}, {total.name}{precision})")

    def _loaded(self, v: ir.Value, masks: tuple[Mask, ...], tile: Shape) -> str:
        around = self.out.scope.masks
        self.out.scope.masks = masks
        self.out.use(math.prod(tile))
        name = self.out.hold(spread(self.out.value(v), tile, v.dtype))
        self.out.scope.masks = around
        return name

    def _copied(self, d: _Descriptor) -> str:
        at = ", ".join(map(self.out.index, d.at))
        return self.out.hold(f"{d.name}.load([{at}]){'.T' if d.is_transposed else ''}")

    def _loop(self, counter: str, counts: Sequence[Size], lines: Sequence[str]) -> None:
        """A loop over as many iterations as the product of `counts`."""
        text = " * ".join(f"({self.out.index(n)})" if len(counts) > 1 else self.out.index(n) for n in counts)
        is_short = all(isinstance(n, int) for n in counts) and math.prod(n for n in counts if isinstance(n, int)) <= UNROLLED
        # Triton's compiler unrolls a short loop of a known length, and spills: the other axes of the grid have one program
        self.out.line(f"for {counter} in range(0, {text}{' * tl.num_programs(1)' if is_short else ''}):")
        for line in lines:
            self.out.line(f"    {line}")


def _zero_tile(s: Contract, shape: Shape) -> str:
    return f"tl.zeros({list(shape)}, {type_of(s.a.dtype)})"


def _parts(s: Contract) -> list[tuple[Sequence[ir.Value], Role]]:
    """The operands of parts of the depth, and the loop over the blocks of a part."""
    a, b = _operands(s)
    *blocks, _ = s.axes.depth
    if blocks and not s.described and isinstance(count := blocks[0][1], int) and count > 1:
        axis = blocks[0][0]
        fewer = E.sym(axis.name, 0, count - 2)
        whole = narrowed((a, b), {axis: fewer})
        if isinstance(fewer, E.Sym) and whole != tuple(at_point(v, {axis: fewer}) for v in (a, b)):
            return [(whole, ((fewer, count - 1),)), (narrowed((a, b), {axis: count - 1}), ())]
    return [((a, b), tuple(blocks))]


def _stripped(v: ir.Value) -> ir.Value:
    """The load of an operand, which is 0 beyond the end of the depth."""
    return v.args[1] if isinstance(v, ir.Op) and v.name == "where" else v


def _operands(s: Contract) -> tuple[ir.Value, ir.Value]:
    """The operands of a contraction: of one dtype of 16 bits, or of 8 bits, where both are converted from it alone.

    A product of two such numbers is exact in float32, in which the matrix unit adds.
    """
    halves = [_half(v) for v in (s.a, s.b)]
    a, b = halves
    if a is not None and b is not None and (a.dtype is b.dtype or (a.dtype.is_float8 and b.dtype.is_float8)):
        return a, b
    if s.a.dtype is not dtypes.float32:
        raise Unprintable(f"triton: there is no product of tiles of {s.a.dtype.name}")
    return s.a, s.b


def _half(v: ir.Value) -> ir.Value | None:
    """The value of 16 or 8 bits that `v` is converted from, or None."""
    if isinstance(v, ir.Op) and v.name == "where" and isinstance(v.args[2], ir.Const) and v.args[2].value == 0:
        inner = _half(v.args[1])
        return None if inner is None else ir.make_op("where", (v.args[0], inner, ir.const(0, inner.dtype)), inner.dtype)
    if isinstance(v, ir.Op) and v.name == "cast" and v.dtype is dtypes.float32 and v.args[0].dtype.itemsize <= 2:
        return v.args[0] if v.args[0].dtype.is_floating_point else None
    return None


__all__ = ["Products"]
