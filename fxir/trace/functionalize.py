"""Functionalisation: which node holds the current value of which tensor, after each write.

A `Memory` follows the fake storages of a traced program. Every storage is a buffer with a base (the tensor it was created with)
and a generation that grows with each write. A tensor is identified by its geometry over its storage, so that two tensor objects
over the same elements are one value. A write through a view inserts the new part into the base (`slice_scatter` and similar
ops); other views are recomputed from the base at their next read. `fxir.trace.trace` calls this module, which does not depend
on modes or autograd.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any, Final, TypeAlias

from eager._tensor.tensor import Tensor
from eager.base import dtypes
from eager.base.records import dataclass
from eager.optable.table import OPS, Op
from fxir.base.origin import Origin
from fxir.ir.graph import Graph, emit, emit_layout, emit_reshape, physical_root, spec
from fxir.ir.node import Node
from fxir.symbols.shapes import lifted, plain, simplified

# dtype code, sizes, strides, offset; symbolic values as expressions, which compare by their normal form
Geometry: TypeAlias = tuple[int, tuple[int, ...], tuple[int, ...], int]


def geometry(t: Tensor) -> Geometry:
    """The place and dtype of the elements of `t` in its storage."""
    return t.dtype.code, tuple(t.shape), tuple(t.stride()), t.storage_offset()


@dataclass(slots=True, eq=False)
class View:
    """One view of a buffer: `op` of the parent view, or the base itself (op None)."""

    geometry: Geometry
    parent: View | None
    op: Op | None
    args: tuple[Any, ...]
    node: Node | None
    generation: int


@dataclass(slots=True, eq=False)
class Buffer:
    """One storage. The reference `storage` keeps its id unique."""

    storage: object
    base: Tensor
    root: View
    views: dict[Geometry, View]
    placed: bool = False  # counted from the start of the storage
    generation: int = 0
    settled: int = 0  # version of the symbols' environment in which the geometries are written


@dataclass(slots=True)
class Derivation:
    """The origin of a view object: `op(parent, *args)`. The references keep ids unique."""

    tensor: Tensor
    parent: Tensor
    op: Op
    args: tuple[Any, ...]


@dataclass(slots=True)
class Memory:
    """Values of the tensors of one traced program, as nodes of `graph`. buffers: every known storage, by its id."""

    graph: Graph
    origin: Origin | None = None
    buffers: dict[int, Buffer] = field(default_factory=dict)
    _derivations: dict[int, Derivation] = field(default_factory=dict)

    # -- queries -----------------------------------------------------------------------------------------------
    def buffer(self, t: Tensor) -> Buffer | None:
        """The buffer of `t`, or None if this memory has not seen the storage of `t`."""
        return self.buffers.get(id(t.untyped_storage().root))

    def value(self, t: Tensor) -> Node:
        """The node that holds the current elements of `t`. Raises: KeyError for an unknown storage."""
        buffer = self.buffer(t)
        if buffer is None:
            raise KeyError(f"fxir: a tensor of {list(t.shape)} over a storage from outside the program")
        return self._read(buffer, self._find(buffer, t))

    def is_placed(self, t: Tensor) -> bool:
        """Whether the program counted elements of `t` from the start of its storage (absolute as_strided)."""
        buffer = self.buffer(t)
        return buffer is not None and buffer.placed

    def writes(self, t: Tensor) -> int:
        """The number of writes to the storage of `t`."""
        buffer = self.buffer(t)
        return 0 if buffer is None else buffer.generation

    def derivation(self, t: Tensor) -> tuple[Tensor, list[Derivation]]:
        """(a tensor that is not a view, the view ops from it to `t`)."""
        steps: list[Derivation] = []
        while id(t) in self._derivations:
            step = self._derivations[id(t)]
            steps.append(step)
            t = step.parent
        return t, steps[::-1]

    # -- records -----------------------------------------------------------------------------------------------
    def define(self, t: Tensor, node: Node) -> None:
        """Record `t`, a new tensor over a new storage, with the value `node`."""
        storage = t.untyped_storage().root
        root = View(self._geometry(t), None, None, (), node, 0)
        self.buffers[id(storage)] = Buffer(storage, t, root, {root.geometry: root})

    def view(self, result: Tensor, parent: Tensor, op: Op, args: tuple[Any, ...]) -> None:
        """Record that `result` is the view `op(parent, *args)`."""
        buffer = self.buffer(parent)
        assert buffer is not None
        if op is OPS["as_strided"] and args[2] is not None:
            buffer.placed = True
        self._derivations[id(result)] = Derivation(result, parent, op, args)
        source = self._find(buffer, parent)
        at = self._geometry(result)
        if at not in buffer.views:
            buffer.views[at] = View(at, source, op, args, None, -1)

    def write(self, t: Tensor, node: Node) -> None:
        """Set the elements of `t`, and of all tensors that share them, to `node` (of t's shape and dtype)."""
        buffer = self.buffer(t)
        assert buffer is not None
        view: View = self._find(buffer, t)
        chain = [(view, node)]  # from t to the base, with the new values
        while (parent := view.parent) is not None and view.op is not None:
            inverse = _INVERSE.get(view.op.name) if _all_invert(parent) else None
            if inverse is None:
                view, node = buffer.root, self._write_strided(buffer, view, node)
            else:
                view, node = parent, inverse(self, buffer, view, node)
            chain.append((view, node))
        buffer.generation += 1
        for v, value in chain:
            v.node, v.generation = value, buffer.generation

    # -- inside ------------------------------------------------------------------------------------------------
    def emit(self, op: Op, *args: Any) -> Node:
        return emit(self.graph, op, *args, origin=self.origin)

    def _settle(self, buffer: Buffer) -> None:
        """Rewrite the geometries after symbols were found to equal expressions."""
        shapes = self.graph.shapes
        if shapes is None or buffer.settled == shapes.version:
            return
        buffer.settled = shapes.version
        for view in buffer.views.values():
            view.geometry = simplified(view.geometry, shapes)
        views: dict[Geometry, View] = {}
        for view in buffer.views.values():  # of two geometries that become equal, the entry with a value
            known = views.setdefault(view.geometry, view)
            if known is not view and known is not buffer.root and (known.generation, view is buffer.root) < (view.generation, True):
                views[view.geometry] = view
        buffer.views = views

    def _geometry(self, t: Tensor) -> Geometry:
        at: Geometry = geometry(t)
        if self.graph.shapes is None:
            return at
        settled: Geometry = plain(at)
        return settled

    def _find(self, buffer: Buffer, t: Tensor) -> View:
        self._settle(buffer)
        at = self._geometry(t)
        found = buffer.views.get(at)
        if found is None:
            found = buffer.views[at] = self._strided(buffer, at)
        return found

    def _strided(self, buffer: Buffer, at: Geometry) -> View:
        """A view with a known geometry but no recorded view op."""
        code, sizes, strides, offset = at
        if code != buffer.root.geometry[0]:
            raise NotImplementedError("fxir: a view with another dtype and no recorded view op")
        return View(at, buffer.root, OPS["as_strided"], (sizes, strides, offset), None, -1)

    def _read(self, buffer: Buffer, view: View) -> Node:
        if view.node is not None and view.generation == buffer.generation:
            return view.node
        assert view.op is not None and view.parent is not None
        if view.op is OPS["as_strided"]:
            node = self._read_strided(buffer, view)
        else:
            x = self._read(buffer, view.parent)
            if view.op is OPS["view"]:
                node = emit_reshape(self.graph, x, view.geometry[1])
            else:
                node = self.emit(view.op, x, *view.args)
        view.node, view.generation = node, buffer.generation
        return node

    def _read_strided(self, buffer: Buffer, view: View) -> Node:
        """A view by strides over memory. The value it reads must lie in memory as it does in the program."""
        _, sizes, strides, offset = view.geometry
        parent = view.parent
        assert parent is not None
        if parent.geometry[3] == offset:  # it begins where its parent does, wherever that is
            x = self._read(buffer, parent)
            if spec(x).strides == parent.geometry[2]:
                return self.emit(OPS["as_strided"], x, sizes, strides, None)
        x = self._in_layout(buffer, self._read(buffer, buffer.root))
        relative = self._relative(buffer, offset)
        if relative and physical_root(x).op in ("placeholder", "get_attr"):
            # The op counts from the start of the storage. An input may begin later; a copy of it does not.
            x = self._in_layout(buffer, self.emit(OPS["clone"], x, None))
        return self.emit(OPS["as_strided"], x, sizes, strides, relative or None)

    def _relative(self, buffer: Buffer, offset: int) -> int:
        found = offset - buffer.root.geometry[3]
        if lifted(found, self.graph.shapes) < 0:
            raise NotImplementedError("fxir: as_strided reads elements before the tensor that its storage was traced with")
        return found

    def _in_layout(self, buffer: Buffer, base_value: Node) -> Node:
        """The base's value in the base's layout, so that offsets into its memory are correct."""
        return emit_layout(self.graph, base_value, buffer.root.geometry[2])

    def _write_strided(self, buffer: Buffer, view: View, node: Node) -> Node:
        code, sizes, strides, offset = view.geometry
        if code != buffer.root.geometry[0]:
            raise NotImplementedError(f"fxir: a write through a view with another dtype ({view.op})")
        base = self._in_layout(buffer, self._read(buffer, buffer.root))
        return self.emit(OPS["as_strided_scatter"], base, node, sizes, strides, self._relative(buffer, offset))


def _reshape_back(memory: Memory, buffer: Buffer, view: View, new: Node) -> Node:
    assert view.parent is not None
    return emit_reshape(memory.graph, new, view.parent.geometry[1])


def _read_back(memory: Memory, buffer: Buffer, view: View, new: Node) -> Node:
    assert view.parent is not None
    of = dtypes.ALL[view.parent.geometry[0]]
    if of.itemsize != spec(new).dtype.itemsize:  # then only neighbours in memory are one element
        new = emit_layout(memory.graph, new, view.geometry[2])
    return memory.emit(OPS["view_dtype"], new, of)


def _permute_back(memory: Memory, buffer: Buffer, view: View, new: Node) -> Node:
    n = len(view.geometry[1])
    dims = [d % n for d in view.args[0]]
    return memory.emit(OPS["permute"], new, tuple(dims.index(d) for d in range(n)))


def _scatter(name: str) -> Callable[[Memory, Buffer, View, Node], Node]:
    def put(memory: Memory, buffer: Buffer, view: View, new: Node) -> Node:
        assert view.parent is not None
        return memory.emit(OPS[name], memory._read(buffer, view.parent), new, *view.args)

    return put


def _all_invert(view: View | None) -> bool:
    """Whether every step from the base to `view` can be inverted. A step whose result has several elements at one place
    (`expand`, `unfold`) cannot: if some of them are written, the others still hold the place's former value.
    """
    while view is not None and view.op is not None:
        if view.op.name not in _INVERSE:
            return False
        view = view.parent
    return True


# The parent's new value from the view's new value. A view op that is not listed is written as strides over the base.
_INVERSE: Final[dict[str, Callable[[Memory, Buffer, View, Node], Node]]] = {
    "view": _reshape_back,
    "unsqueeze": _reshape_back,
    "squeeze": _reshape_back,
    "permute": _permute_back,
    "view_dtype": _read_back,
    "slice": _scatter("slice_scatter"),
    "select": _scatter("select_scatter"),
    "diagonal": _scatter("diagonal_scatter"),
}
