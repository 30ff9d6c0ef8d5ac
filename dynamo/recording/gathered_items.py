"""x[i] and x[i] = v for an integer tensor `i` without dims: the data decides which item `x[i]` is.

Eager reads the number and returns a view. The graph gathers the item, which is a copy; when the item leaves the graph,
one more subscript makes the view. So while a gathered item exists, a write to the item or to its tensor breaks the
graph.
"""

from __future__ import annotations

import operator
from dataclasses import field
from typing import Final

import eager
from dynamo.report import causes
from dynamo.report.errors import Unsupported
from dynamo.values.base import NONE, Constant
from dynamo.values.protocols import Machine, Value
from dynamo.values.sequences import SliceValue, TupleValue
from dynamo.values.symbolic import SymIntValue
from dynamo.values.tensor import TensorValue
from dynamo.values.writer import Writer
from eager import Tensor
from eager.base.dtypes import Category
from eager.base.records import dataclass

_WHOLE: Final = SliceValue(NONE, NONE, NONE)
_KNOWN: Final = (Constant, SliceValue)


@dataclass(frozen=True, slots=True)
class Place:
    """The place of one item of a tensor: apply `before`, then take item `at` (a tensor of no dims) of dim `dim`."""

    before: Value | None
    at: TensorValue
    dim: int


class ItemValue(TensorValue):
    """owner[key], as a gathered copy."""

    owner: TensorValue
    key: Value

    def reconstruct(self, cg: Writer) -> str:
        if not cg.is_in_main_graph(self.node):
            return super().reconstruct(cg)
        return f"{cg.value(self.owner)}[{cg.value(self.key)}]"


@dataclass(eq=False)
class GatheredItems:
    """Owns the gathered items. pairs: for each item, the fakes of its tensor and of the copy."""

    cap: Machine
    pairs: list[tuple[Tensor, ...]] = field(default_factory=list)

    def get(self, x: TensorValue, key: Value) -> Value:
        """x[key]"""
        place = self._place(x, key)
        if place is None:
            return self.cap.recorder.call(operator.getitem, [x, key], {})
        part = self._within(x, place)
        rows = self.cap.recorder.method("index_select", [part, Constant(place.dim), self._positive(part, place)], {})
        copy = self.cap.recorder.method("squeeze", [rows, Constant(place.dim)], {})
        assert isinstance(copy, TensorValue)
        item = ItemValue(copy.node, copy.fake)
        item.owner, item.key, item.born = x, key, copy.born
        self.pairs.append((x.fake, copy.fake))
        self.cap.recorder.fakes[id(copy.fake)] = item
        return item

    def set(self, x: TensorValue, key: Value, value: Value) -> None:
        """x[key] = value"""
        place = self._place(x, key)
        if place is None:
            self.cap.recorder.call(operator.setitem, [x, key, value], {})
            return
        part, value = self._within(x, place), self.cap.realize(value)
        if isinstance(value, TensorValue) and value.fake.ndim:
            sizes = [n for d, n in enumerate(part.fake.shape) if d != place.dim]
            lead = value.fake.ndim - len(sizes)
            if lead > 0:
                raise Unsupported(causes.DATA_DEPENDENT_VALUE, f"{value.describe()} set as an item of fewer dims")
            shape = TupleValue([Constant(n) if type(n) is int else SymIntValue(n) for n in sizes])
            value = self.cap.recorder.method("unsqueeze", [self.cap.recorder.method("expand", [value, shape], {}), Constant(place.dim)], {})
        rows = self.cap.recorder.method("reshape", [place.at, Constant(1)], {})
        index = TupleValue([*[_WHOLE] * place.dim, rows])
        self.cap.recorder.call(operator.setitem, [part, index, value], {})

    def _within(self, x: TensorValue, place: Place) -> TensorValue:
        part = x if place.before is None else self.cap.recorder.call(operator.getitem, [x, place.before], {})
        assert isinstance(part, TensorValue)
        return part

    def _positive(self, part: TensorValue, place: Place) -> Value:
        """The index of `place` as a vector; negative indices count from the end."""
        rows = self.cap.recorder.method("reshape", [place.at, Constant(1)], {})
        length = part.fake.shape[place.dim]
        size = Constant(length) if type(length) is int else SymIntValue(length)
        below = self.cap.recorder.call(operator.lt, [rows, Constant(0)], {})
        return self.cap.recorder.call(eager.where, [below, self.cap.recorder.call(operator.add, [rows, size], {}), rows], {})

    def _place(self, x: TensorValue, key: Value) -> Place | None:
        """The place of an item with a data-dependent index; None for all other keys."""
        if self.cap.recorder.transforming:
            return None
        key = self.cap.realize(key)
        parts = [self.cap.realize(p) for p in key.items] if isinstance(key, TupleValue) else [key]
        where = [i for i, p in enumerate(parts) if isinstance(p, TensorValue)]
        if len(where) != 1 or not _is_number(parts[where[0]]):
            return None
        dim = dims = 0  # for the parts before the tensor: dims of the result, dims of x
        for part in parts[: where[0]]:
            if isinstance(part, Constant) and type(part.value) is int:
                dims += 1
            elif isinstance(part, SliceValue):
                dim, dims = dim + 1, dims + 1
            elif isinstance(part, Constant) and part.holds(None):
                dim += 1
            elif isinstance(part, Constant) and part.holds(...):
                after = sum(not (isinstance(p, Constant) and p.holds(None)) for p in parts[where[0] :])
                dim, dims = dim + x.fake.ndim - dims - after, x.fake.ndim - after
            else:
                return None
        at = parts[where[0]]
        others = [p for p in parts if p is not at]
        if dims >= x.fake.ndim or any(not isinstance(p, _KNOWN) or isinstance(getattr(p, "value", 0), bool) for p in others):
            return None
        assert isinstance(at, TensorValue)
        parts[where[0]] = _WHOLE
        return Place(TupleValue(parts) if len(parts) > 1 else None, at, dim)

    def refuse_write(self, written: list[Tensor]) -> None:
        """Break the graph before a write that the view x[i], or x through the view, would show."""
        storages = {id(t.untyped_storage()) for t in written}
        if any(id(t.untyped_storage()) in storages for pair in self.pairs for t in pair):
            raise Unsupported(causes.DATA_DEPENDENT_VALUE, "a write to x or to its view x[i], whose place depends on data")


def _is_number(value: Value) -> bool:
    return isinstance(value, TensorValue) and value.fake.ndim == 0 and value.fake.dtype.category is Category.INT
