"""Lists, tuples (named tuples and Size too), deques, ranges and slices.

List methods run on the host list of values, so index arithmetic and errors are Python's; only methods that compare
elements (index, count, remove, sort, in) are implemented here.
"""

from __future__ import annotations

import collections
import functools
import itertools
import operator
from collections.abc import Iterable, Iterator
from typing import Any, Final

from dynamo.guards.sources import ConstSource, Source
from dynamo.report import causes
from dynamo.report.errors import Unsupported
from dynamo.values.base import CONSTANT_TYPES, NONE, Constant, type_name
from dynamo.values.protocols import Machine, NotConstant, Value
from dynamo.values.writer import Writer
from eager import Size

_MUTATORS: Final = frozenset("append appendleft insert pop popleft clear reverse rotate".split())
_ITEM_MUTATORS: Final = frozenset("__setitem__ __delitem__".split())


class Sequence(Value):
    """The common base of lists and tuples. items: the elements; lazy values in a sequence from outside."""

    cls: type

    def __init__(self, items: list[Value], source: Source | None = None, cls: type | None = None) -> None:
        self.items = items
        self.owner: Value | None = None  # the instance of a subclass that has these contents
        self.source = source
        if cls is not None:
            self.cls = cls

    def python_type(self) -> type:
        return self.cls

    @property
    def family(self) -> type:
        """list, deque or tuple: only sequences of one family compare and add."""
        return tuple if issubclass(self.cls, tuple) else self.cls

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.items})"

    def truth(self, cap: Machine) -> bool:
        return bool(self.items)

    def iterate(self, cap: Machine) -> Value:
        return cap.iteration.sequence_iterator(self.items, self)

    def unpack(self, cap: Machine) -> list[Value]:
        return list(self.items)

    def getattr(self, cap: Machine, name: str) -> Value:
        return cap.attributes.builtin_method(self, name)

    def getitem(self, cap: Machine, index: Value) -> Value:
        """self[index], slices included."""
        key = cap.operators.index_constant(index)
        found = cap.host(operator.getitem, self.items if self.cls is list else self.family(self.items), key)
        if isinstance(key, slice):
            return self.like(found)
        return found

    def like(self, items: list[Value]) -> Value:
        """A new sequence of the kind that slicing and concatenation return."""
        raise NotImplementedError

    def iterator(self, cg: Writer) -> str:
        """An expression of iter(self) that ignores methods of a subclass."""
        if self.owner is not None:
            return f"{self.cls.__name__}.__iter__({cg.filled(self.owner)})"
        return f"iter({cg.filled(self)})"

    def call_method(self, cap: Machine, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if name == "__getitem__" and len(args) == 1:
            return self.getitem(cap, args[0])
        if name == "__len__":
            return Constant(len(self.items))
        if name == "__iter__":
            return self.iterate(cap)
        if name == "__contains__":
            return Constant(any(self._compared(cap, args[0])))
        if name == "count" and len(args) == 1:
            return Constant(sum(self._compared(cap, args[0])))
        if name == "index" and args:
            return self._index(cap, args)
        if name in ("__add__", "__mul__", "__rmul__"):
            return cap.operators.binary({"__add__": operator.add}.get(name, operator.mul), self, args[0])
        if name in ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"):
            other = cap.realize(args[0])
            if not issubclass(other.python_type(), self.family):
                return Constant(NotImplemented)
            return cap.operators.compare(getattr(operator, name), self, other)
        raise Unsupported(causes.OPAQUE_OBJECT, f"{self.describe()}.{name}()")

    def _compared(self, cap: Machine, other: Value, places: Iterable[int] | None = None) -> Iterator[bool]:
        """Whether the items equal `other`, compared in order.

        An __eq__ may change the sequence meanwhile; a deque then raises.
        """
        version = getattr(self, "version", 0)
        for i in itertools.count() if places is None else places:
            if i >= len(self.items):
                return
            yield cap.operators.equal(self.items[i], other)
            if issubclass(self.cls, collections.deque) and getattr(self, "version", 0) != version:
                cap.raise_(RuntimeError, "deque mutated during iteration")

    def _index(self, cap: Machine, args: list[Value]) -> Value:
        bounds = [cap.operators.index_constant(a) for a in args[1:]]
        if not all(hasattr(type(b), "__index__") for b in bounds):
            cap.raise_(TypeError, "slice indices must be integers or have an __index__ method")
        start, stop = (*bounds, None, None)[:2]
        places = range(*slice(start, stop).indices(len(self.items)))
        for i, found in zip(places, self._compared(cap, args[0], places), strict=False):
            if found:
                return Constant(i)
        if issubclass(self.cls, tuple):
            return cap.raise_(ValueError, "tuple.index(x): x not in tuple")
        needle = cap.formatting.text(args[0], repr).as_constant()
        return cap.raise_(ValueError, f"{needle} is not in {self.cls.__name__}")


class TupleValue(Sequence):
    """tuple, Size or a named tuple (cls)."""

    cls = tuple

    def as_constant(self) -> Any:
        if isinstance(self.source, ConstSource) and _is_plain(self.source.value):
            return self.source.value
        values = [v.as_constant() for v in self.items]
        return self.cls(*values) if hasattr(self.cls, "_fields") else self.cls(values)

    def like(self, items: list[Value]) -> Value:
        return TupleValue(list(items), None, Size if self.cls is Size else tuple)

    def getattr(self, cap: Machine, name: str) -> Value:
        fields = getattr(self.cls, "_fields", ())
        if name in fields:
            return self.items[fields.index(name)]
        if self.cls is not tuple and self.cls is not Size:
            return cap.attributes.instance_attribute(self, self.cls, name)
        return super().getattr(cap, name)

    def call_method(self, cap: Machine, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if name == "numel" and self.cls is Size:
            one: Value = Constant(1)
            return functools.reduce(lambda a, b: cap.operators.binary(operator.mul, a, b), self.items, one)
        if name == "__hash__":
            return Constant(cap.host(hash, self.as_constant())) if self.is_constant else super().call_method(cap, name, args, kwargs)
        return super().call_method(cap, name, args, kwargs)

    def reconstruct(self, cg: Writer) -> str:
        if self.owner is not None:
            return cg.value(self.owner)
        if self.source is not None:
            return cg.source(self.source)
        items = [cg.value(v) for v in self.items]
        if self.cls is tuple:
            return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
        if hasattr(self.cls, "_fields"):
            return f"{cg.helper('tuple_new')}({cg.bind(self.cls, self.cls.__name__)}, ({''.join(i + ', ' for i in items)}))"
        return f"{cg.bind(self.cls, self.cls.__name__)}(({''.join(i + ', ' for i in items)}))"


def _is_plain(value: Any) -> bool:
    """Whether a constant contains only constants, at every depth."""
    return all(map(_is_plain, value)) if type(value) is tuple else type(value) in CONSTANT_TYPES


class ListValue(Sequence):
    """list or deque. mutated: whether generated code must update an existing list."""

    cls = list

    def __init__(self, items: list[Value], source: Source | None = None, cls: type | None = None, maxlen: int | None = None) -> None:
        super().__init__(items, source, cls)
        self.maxlen = maxlen
        self.mutated = False
        self.version = 0  # counts mutations: a deque's iterators detect them

    def like(self, items: list[Value]) -> Value:
        made = ListValue(list(items), None, self.cls, self.maxlen)
        made.trim(False)
        return made

    def getattr(self, cap: Machine, name: str) -> Value:
        if name == "maxlen" and self.cls is not list:
            return Constant(self.maxlen)
        return super().getattr(cap, name)

    def changed(self, cap: Machine) -> None:
        """Record a mutation that is about to happen."""
        cap.effects.change(self)
        self.mutated = True
        self.version += 1

    def trim(self, left: bool) -> None:
        if self.maxlen is not None and len(self.items) > self.maxlen:
            surplus = len(self.items) - self.maxlen
            if left:
                del self.items[-surplus:]
            else:
                del self.items[:surplus]

    def call_method(self, cap: Machine, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if name == "__reversed__" and self.cls is list:
            return cap.iteration.reversed_iterator(self)
        if name in _MUTATORS and not kwargs:
            return self._mutate(cap, name, args)
        if name in ("extend", "extendleft", "__iadd__"):
            self.extend(cap, args[0], name == "extendleft")
            return self if name == "__iadd__" else NONE
        if name in _ITEM_MUTATORS:
            return self._set_items(cap, name, args)
        if name == "copy" and not args:
            return ListValue(list(self.items), None, self.cls, self.maxlen)
        if name == "remove" and len(args) == 1:
            return self._remove(cap, args[0])
        if name == "sort" and not args:
            return self._sort(cap, kwargs)
        if name == "__imul__":
            self.changed(cap)
            self.items[:] = cap.host(operator.mul, list(self.items), cap.operators.index_constant(args[0]))
            return self
        return super().call_method(cap, name, args, kwargs)

    def _mutate(self, cap: Machine, name: str, args: list[Value]) -> Value:
        host: Any = self.items if self.cls is list else collections.deque(self.items, self.maxlen)
        if not hasattr(host, name):
            return cap.raise_(AttributeError, f"'{type_name(self.cls)}' object has no attribute '{name}'")
        if name in ("append", "appendleft"):
            given: list[Any] = list(args)
        elif name == "insert" and len(args) == 2:
            given = [cap.operators.index_constant(args[0]), args[1]]
        else:
            given = [cap.operators.index_constant(a) for a in args]
        found = cap.host(getattr(host, name), *given)
        self.changed(cap)
        if host is not self.items:
            self.items[:] = host
        self.trim(name == "appendleft")
        return NONE if found is None else found

    def extend(self, cap: Machine, other: Value, left: bool = False) -> None:
        """Append the items of `other`, one by one, as Python does."""
        other = cap.realize(other)
        iterator = cap.iteration.iter(other)
        if not isinstance(other, Sequence) and any(cap.classes.has(other.python_type(), n) for n in ("__len__", "__length_hint__")):
            cap.operators.length_hint(other)
        if other is self:
            new = list(self.items)
            self.changed(cap)
            self.items[:] = [*reversed(new), *new] if left else [*new, *new]
            self.trim(left)
            return
        while (item := cap.iteration.next(iterator)) is not None:
            self.changed(cap)
            self.items.insert(0, item) if left else self.items.append(item)
            self.trim(left)

    def _set_items(self, cap: Machine, name: str, args: list[Value]) -> Value:
        key = cap.operators.index_constant(args[0])
        if self.cls is not list:
            cap.host(operator.setitem, collections.deque(self.items), key, None)  # raises the errors of the call
        if name == "__delitem__":
            cap.host(operator.delitem, self.items, key)
        elif isinstance(key, slice):
            new = self.items if args[1] is self else cap.iteration.unpack(args[1])
            cap.host(operator.setitem, self.items, key, list(new))
        else:
            cap.host(operator.setitem, self.items, key, args[1])
            if self.cls is not list:
                self.version -= 1  # a replaced item does not invalidate a deque's iterators
        self.changed(cap)
        return NONE

    def _remove(self, cap: Machine, item: Value) -> Value:
        for i, candidate in enumerate(self.items):
            if cap.operators.equal(candidate, item):
                self.changed(cap)
                del self.items[i]
                return NONE
        text = "list.remove(x): x not in list"
        missing = text if self.cls is list else f"{cap.formatting.text(item, repr).as_constant()} is not in deque"
        return cap.raise_(ValueError, missing)

    def _sort(self, cap: Machine, kwargs: dict[str, Value]) -> Value:
        items = cap.iteration.sorted(list(self.items), kwargs)
        self.changed(cap)
        self.items[:] = items
        return NONE

    def reconstruct(self, cg: Writer) -> str:
        if self.owner is not None:
            return cg.value(self.owner)
        if self.source is not None:
            return cg.source(self.source)
        make = "list()" if self.cls is list else f"{cg.bind(self.cls, 'deque')}(maxlen={self.maxlen})"
        return cg.container(self, make, lambda var: self._fill(cg, var), self._literal)

    def _literal(self, cg: Writer) -> str:
        inner = f"[{', '.join(cg.value(v) for v in self.items)}]"
        return inner if self.cls is list else f"{cg.bind(self.cls, 'deque')}({inner}, {self.maxlen})"

    def _fill(self, cg: Writer, var: str) -> None:
        for item in self.items:
            cg.statement(f"{var}.append({cg.value(item)})")


class RangeValue(Value):
    """A range: a constant, except for loops over it."""

    def __init__(self, value: range, source: Source | None = None) -> None:
        self.value = value
        self.source = source

    def python_type(self) -> type:
        return range

    def as_constant(self) -> Any:
        return self.value

    def truth(self, cap: Machine) -> bool:
        return bool(self.value)

    def iterate(self, cap: Machine) -> Value:
        return cap.iteration.range_iterator(self.value)

    def unpack(self, cap: Machine) -> list[Value]:
        return [Constant(i) for i in self.value]

    def getattr(self, cap: Machine, name: str) -> Value:
        if name in ("start", "stop", "step"):
            return Constant(getattr(self.value, name))
        return cap.attributes.builtin_method(self, name)

    def call_method(self, cap: Machine, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if name == "__iter__":
            return self.iterate(cap)
        if not hasattr(range, name):
            raise Unsupported(causes.OPAQUE_OBJECT, f"range.{name}()")
        try:
            given = [a.as_constant() for a in args]
        except NotConstant:
            raise Unsupported(causes.OPAQUE_OBJECT, f"range.{name}()") from None
        return cap.world.wrap_new(cap.host(getattr(self.value, name), *given))

    def reconstruct(self, cg: Writer) -> str:
        if self.source is not None:
            return cg.source(self.source)
        return repr(self.value)


class SliceValue(Value):
    """slice(start, stop, step)"""

    def __init__(self, start: Value, stop: Value, step: Value, source: Source | None = None) -> None:
        self.parts = (start, stop, step)
        self.source = source

    def python_type(self) -> type:
        return slice

    def as_constant(self) -> Any:
        return slice(*(p.as_constant() for p in self.parts))

    def truth(self, cap: Machine) -> bool:
        return True

    def getattr(self, cap: Machine, name: str) -> Value:
        if name in ("start", "stop", "step"):
            return self.parts[("start", "stop", "step").index(name)]
        return cap.attributes.builtin_method(self, name)

    def call_method(self, cap: Machine, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if name == "indices":
            return cap.world.wrap_new(cap.host(self.as_constant().indices, args[0].as_constant()))
        return super().call_method(cap, name, args, kwargs)

    def reconstruct(self, cg: Writer) -> str:
        if self.source is not None:
            return cg.source(self.source)
        return f"slice({', '.join(cg.value(p) for p in self.parts)})"
