"""Contractions that a library of matrix products can compute, and the loops that follow such a product.

Owns the recognition. It does not depend on a library: which products a device's library has is known only on the device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from eager.base import dtypes
from eager.base.dtypes import dtype
from eager.base.records import dataclass
from fxir.expr import rules as E
from inductor.ir import definitions as ir
from inductor.ir.sizes import nominal, product
from inductor.ir.values import replace_loads
from inductor.loops.matrices import blas_layout, matrix_of, unit_strides
from inductor.loops.tree import (
    HOLDERS,
    Accumulate,
    Allocate,
    Block,
    Contract,
    Guard,
    Kernel,
    Loop,
    Place,
    Role,
    Statement,
    Store,
    places_of,
    repeat,
    rewrite,
    values_of,
    walk,
    with_values,
)

__all__ = ["WORKSPACE_ALIGNMENT", "LibraryCall", "LibraryProduct", "Operand", "library_products"]

WORKSPACE_ALIGNMENT: Final = 256  # bytes. Source: cuBLAS documentation, cublasLtMatmul.
_HALVES: Final = (dtypes.bfloat16, dtypes.float16)
_FLOATS: Final = (*_HALVES, dtypes.float32, dtypes.float64)


class Operand(NamedTuple):
    """A batch of matrices in memory, in elements of their dtype.

    start: the first element in the buffer. pitch: from a row to the next; from a column to the next if `is_transposed`. step: from a
    matrix to the next.
    """

    buffer: str
    start: int
    is_transposed: bool
    pitch: int
    step: int

    def __str__(self) -> str:
        return f"{self.buffer}{f'+{self.start}' if self.start else ''}{'.T' if self.is_transposed else ''}"


@dataclass(frozen=True, slots=True)
class LibraryProduct:
    """result[i] = a[i] @ b[i] + bias, for each i of the batch. Sums are of float32, or of float64 for operands of float64.

    multiplied: the dtype of the operands. sizes: batch, rows, columns and depth. result: never transposed, of dtype `stored`. bias: a
    row of dtype `stored`, without a step; None for no bias. is_temporary: whether the result is in memory that only `after` reads.
    after: the loops that follow; its body may be empty.
    """

    multiplied: dtype
    sizes: tuple[int, int, int, int]
    a: Operand
    b: Operand
    result: Operand
    stored: dtype
    bias: Operand | None
    is_temporary: bool
    after: Kernel

    @property
    def buffers(self) -> dict[str, dtype]:
        """Its buffers by name."""
        found = {self.a.buffer: self.multiplied, self.b.buffer: self.multiplied, self.result.buffer: self.stored}
        return found | ({self.bias.buffer: self.stored} if self.bias else {})

    def renamed(self, name: Callable[[str], str]) -> LibraryProduct:
        """The product over the buffers that `name` gives for its own."""
        a, b, result = (m._replace(buffer=name(m.buffer)) for m in (self.a, self.b, self.result))
        return replace(self, a=a, b=b, result=result, bias=self.bias and self.bias._replace(buffer=name(self.bias.buffer)))


class LibraryCall(NamedTuple):
    """A product with an algorithm of the library.

    way: the number of the product among `library_products`. number: of the algorithm among the library's suggestions. algorithm: the
    library's record, which other versions of the library may not know. is_tf32: whether operands of float32 may lose mantissa bits.
    workspace: the memory that the algorithm needs; "" if it needs none.
    """

    product: LibraryProduct
    way: int
    number: int
    algorithm: bytes
    workspace_bytes: int
    version: int
    is_tf32: bool
    workspace: str = ""

    @property
    def buffers(self) -> dict[str, dtype]:
        """The buffers of the product, and the workspace."""
        return self.product.buffers | ({self.workspace: dtypes.uint8} if self.workspace else {})

    def __str__(self) -> str:
        p = self.product
        bias = f" + {p.bias}" if p.bias else ""
        return f"{p.result} = {p.a} @ {p.b}{bias}, {'x'.join(map(str, p.sizes))}, cuBLASLt algorithm {self.number}"


def library_products(kernel: Kernel) -> tuple[LibraryProduct, ...]:
    """Ways to compute a kernel with one product of a library, the one with the fewest loops after it first. () if there is no way.

    The kernel must be one contraction of known sizes, over whole matrices in memory.
    """
    s = kernel.body[0] if len(kernel.body) == 1 else None
    if not isinstance(s, Contract) or not all(isinstance(x, Store | Accumulate | Allocate | Guard | Loop) for x in walk(s.body)):
        return ()
    a, b = _loaded(s.a), _loaded(s.b)
    sizes = [product(n for _, n in role) for role in (s.axes.batch, s.axes.rows, s.axes.columns, s.axes.depth)]
    batch, rows, columns, depth = (n if isinstance(n, int) else 0 for n in sizes)
    if a is None or b is None or a.dtype is not b.dtype or a.dtype not in _FLOATS or 0 in (batch, rows, columns, depth):
        return ()
    left = _operand(a, (s.axes.batch, s.axes.rows, s.axes.depth), rows, depth)
    right = _operand(b, (s.axes.batch, s.axes.depth, s.axes.columns), depth, columns)
    if left is None or right is None:
        return ()
    found = _Found(kernel, s, a.dtype, (batch, rows, columns, depth), left, right)
    return tuple(p for p in (found.biased(), found.stored(), found.followed()) if p is not None)


# --------------------------------------------------------------------------- operands


def _loaded(v: ir.Value) -> ir.Load | None:
    """The load of an operand: of halves as float32, of other floats without a conversion."""
    if isinstance(v, ir.Op) and v.name == "cast" and v.dtype is dtypes.float32 and v.children[0].dtype in _HALVES:
        v = v.children[0]
    return v if isinstance(v, ir.Load) else None


def _operand(v: ir.Load, roles: Sequence[Role], rows: int, columns: int) -> Operand | None:
    """The matrices that a load reads over the roles batch, rows and columns; None if a library cannot express them."""
    m = matrix_of(v, v.dtype, *roles)
    layout = None if m is None else blas_layout(unit_strides((m.row, m.column), (rows, columns)), rows, columns)
    if m is None or layout is None:
        return None
    start, pitch, step = m.start, layout[1], m.step if roles[0] else 0
    if not isinstance(start, int) or not isinstance(pitch, int) or not isinstance(step, int) or min(start, step) < 0:
        return None
    return Operand(v.buffer, start, bool(layout[0]), pitch, step)


def _transposed(m: Operand) -> Operand:
    return m._replace(is_transposed=not m.is_transposed)


# --------------------------------------------------------------------------- results


class _Found(NamedTuple):
    """A contraction that is a product of matrices: `s`, which is the whole of `kernel`. See `LibraryProduct` for the others."""

    kernel: Kernel
    s: Contract
    multiplied: dtype
    sizes: tuple[int, int, int, int]
    a: Operand
    b: Operand

    def stored(self) -> LibraryProduct | None:
        """A product whose result is stored unchanged, or converted to the dtype of its operands."""
        if not self.s.body:
            return self._made(self.s.place, self.kernel.dtypes[self.s.place.name])
        store = self._only_store()
        return self._made(store.place, store.value.dtype) if store and self._is_result(store.value, store.value.dtype) else None

    def biased(self) -> LibraryProduct | None:
        """A product to which a row is added. It is added to the sum, before the conversion of the result."""
        store = self._only_store()
        total = _unconverted(store.value) if store else None
        if store is None or not isinstance(total, ir.Op) or total.name != "add":
            return None
        axes, stored = self.s.axes, store.value.dtype
        above = {x for x, _ in (*axes.batch, *axes.rows)}
        for x, y in (total.children, total.children[::-1]):
            row = _unconverted(y)
            if not isinstance(row, ir.Load) or row.buffer == self.s.place.name or not row.symbols.isdisjoint(above):
                continue
            if not self._is_result(_unconverted(x), stored):
                continue
            m = matrix_of(row, stored, axes.batch, axes.rows, axes.columns)
            if m is not None and m.column == 1 and isinstance(m.start, int):
                return self._made(store.place, stored, bias=Operand(row.buffer, m.start, False, 0, 0))
        return None

    def followed(self) -> LibraryProduct | None:
        """A product that is stored, and the rest as loops over its elements."""
        s, name = self.s, self.s.place.name
        if not s.body:
            return None
        if name not in self.kernel.temporary:
            return self._made(s.place, self.kernel.dtypes[name], after=self._over_elements(s.body))
        if any(p.name == name for x in walk(s.body) for p in places_of(x)):
            return None
        stored = self.multiplied if self.multiplied in _HALVES and self._is_read_as(self.multiplied) else self.kernel.dtypes[name]
        ranges, point = [n for _, n in s.axes.result], [x for x, _ in s.axes.result]
        place = Place(f"{name}_product", ir.linear_position(ranges, point))

        def read(x: ir.Load) -> ir.Value | None:
            return ir.cast(ir.load(place.name, place.index, stored), x.dtype) if x.buffer == name else None

        def changed(x: Statement) -> Block | None:
            return None if isinstance(x, HOLDERS) else (with_values(x, lambda v: replace_loads(v, read)),)

        return self._made(place, stored, after=self._over_elements(rewrite(s.body, changed)))

    def _made(self, place: Place, stored: dtype, bias: Operand | None = None, after: Block = ()) -> LibraryProduct | None:
        """The product with its result at `place`, of dtype `stored`; None if a library cannot store it there."""
        axes, (batch, rows, columns, depth) = self.s.axes, self.sizes
        if place.indirect or (stored is not self.multiplied and not (stored is dtypes.float32 and self.multiplied in _HALVES)):
            return None
        result = _operand(ir.load(place.name, place.index, stored), (axes.batch, axes.rows, axes.columns), rows, columns)
        if result is None or (result.is_transposed and bias is not None):
            return None
        sizes, a, b = self.sizes, self.a, self.b
        if result.is_transposed:
            sizes, a, b, result = (batch, columns, rows, depth), _transposed(b), _transposed(a), _transposed(result)
        names = {**self.kernel.dtypes, place.name: stored}
        touched = {p.name for x in walk(after) for p in places_of(x)} | {x.buffer for x in _loads(after)}
        rest = Kernel(after, {n: d for n, d in names.items() if n in touched}, self.kernel.temporary & touched)
        return LibraryProduct(self.multiplied, sizes, a, b, result, stored, bias, place.name not in self.kernel.dtypes, rest)

    def _over_elements(self, body: Block) -> Block:
        """The body for each element of the result, in the order in which its first store goes through memory."""
        axes = dict(self.s.axes.result)
        first = next((x.place.index for x in walk(body) if isinstance(x, Store)), None)
        strides = None if first is None else E.strides_of(first, list(axes))
        inwards = sorted(axes, key=lambda x: nominal(strides[0][x])) if strides else list(reversed(axes))
        for axis in inwards:
            body = repeat(axis, axes[axis], "serial", body)
        return body

    def _only_store(self) -> Store | None:
        """The statement that follows, if it is all that uses the sums."""
        store = self.s.body[0] if len(self.s.body) == 1 else None
        if not isinstance(store, Store):
            return None
        return store if self.s.place.name in self.kernel.temporary or store.place == self.s.place else None

    def _is_result(self, v: ir.Value, stored: dtype) -> bool:
        """Whether a value is the sum of its element, or the sum as `stored`."""
        if isinstance(v, ir.Op) and v.name == "cast" and v.dtype is stored:
            v = v.children[0]
        place = self.s.place
        return isinstance(v, ir.Load) and (v.buffer, v.index, v.mask, v.indirect) == (place.name, place.index, None, ())

    def _is_read_as(self, of: dtype) -> bool:
        """Whether every use of a sum converts it to `of`."""
        roots = [v for x in walk(self.s.body) for v in values_of(x)]
        uses = [v.dtype if isinstance(v, ir.Op) and v.name == "cast" else None
                for v in ir.walk(roots) for x in v.children if isinstance(x, ir.Load) and x.buffer == self.s.place.name]  # fmt: skip
        is_bare = any(isinstance(v, ir.Load) and v.buffer == self.s.place.name for v in roots)
        return not is_bare and all(to is of for to in uses)


def _unconverted(v: ir.Value) -> ir.Value:
    """The value under a conversion between float32 and a half."""
    is_conversion = isinstance(v, ir.Op) and v.name == "cast" and {v.dtype, v.children[0].dtype} <= {dtypes.float32, *_HALVES}
    return v.children[0] if is_conversion else v


def _loads(body: Block) -> Iterator[ir.Load]:
    for s in walk(body):
        for v in values_of(s):
            yield from v.loads
