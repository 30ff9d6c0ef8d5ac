"""Writes of the captured program to objects that outlive it, until generated code replays them.

Owns the pending writes: attributes (of existing and of new objects), globals, cells, contents of existing containers.
No other code can observe the objects while the captured part runs. So a replay of their final state, in order of first
write, is indistinguishable from the individual writes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from dynamo.values.functions import CellValue
from dynamo.values.iterators import Iterator
from dynamo.values.mappings import DictValue, SetValue
from dynamo.values.objects import DELETED, ExceptionValue, UserObject
from dynamo.values.protocols import Machine, Value
from dynamo.values.sequences import ListValue
from dynamo.values.writer import Writer
from eager.base.records import dataclass
from eager.nn import Module

_NOTHING: Final[dict[str, Any]] = {}


@dataclass(slots=True, eq=False)
class CachedCall:
    """One call of a function behind functools.lru_cache. ahead: the capture made the call of the first run."""

    fn: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    ahead: bool = True


class Effects:
    """Owns the pending writes, which reads of the captured program see, and counts changes.

    mutations: changes so far. outside: changes among them to objects that the captured program did not make.
    """

    def __init__(self, cap: Machine) -> None:
        self.cap = cap
        self.mutations = 0
        self.outside = 0
        self._attributes: dict[int, tuple[Value, dict[str, Any]]] = {}
        self._globals: dict[int, tuple[dict[str, Any], dict[str, Any]]] = {}
        self._order: dict[int, Value] = {}  # existing things written, by first write
        self._cached_calls: list[CachedCall] = []
        self._set_again: set[tuple[int, str]] = set()  # attributes that were deleted and then set: they move to the end

    def release(self) -> None:
        """Drop the pending writes."""
        self._attributes.clear()
        self._globals.clear()
        self._order.clear()
        self._cached_calls.clear()

    # -- recording ---------------------------------------------------------------------------------------------
    def change(self, value: Value | None) -> None:
        """Record that `value`, or state without a value (None), is about to change.

        An instruction that fails after the change cannot be undone.

        Raises: Unsupported if the code that is followed runs at another time and must not change the value.
        """
        self.mutations += 1
        if value is None:
            self.outside += 1
            return
        self.cap.graphs.check_change(value)
        if value.source is not None:
            self.outside += 1
            self._order.setdefault(id(value), value)

    def attributes_of(self, obj: Value) -> dict[str, Any]:
        """Pending attributes by name; DELETED marks a deletion."""
        found = self._attributes.get(id(obj))
        return _NOTHING if found is None else found[1]

    def preset(self, obj: Value, name: str, value: Value) -> None:
        """An attribute that a new object has from the beginning."""
        self._attributes.setdefault(id(obj), (obj, {}))[1][name] = value

    def set_attribute(self, obj: Value, name: str, value: Value) -> None:
        self._change_attributes(obj)
        pending = self._attributes.setdefault(id(obj), (obj, {}))[1]
        if pending.get(name) is DELETED:
            del pending[name]
            self._set_again.add((id(obj), name))
        pending[name] = value

    def _change_attributes(self, obj: Value) -> None:
        """Record that an attribute of `obj` is about to change, and with it the dict of its attributes."""
        if obj.source is not None and getattr(obj, "real", None) is not None:
            self.cap.attributes.meet_namespace(obj)
        self.change(obj)

    def delete_attribute(self, obj: Value, name: str) -> None:
        self._change_attributes(obj)
        pending = self._attributes.setdefault(id(obj), (obj, {}))[1]
        if obj.source is None:
            pending.pop(name, None)
        else:
            pending[name] = DELETED

    def global_write(self, namespace: dict[str, Any], name: str) -> Any:
        """The pending value of a global, DELETED, or None."""
        found = self._globals.get(id(namespace))
        return None if found is None else found[1].get(name)

    def set_global(self, namespace: dict[str, Any], name: str, value: Any) -> None:
        """value: a Value or DELETED."""
        self._globals.setdefault(id(namespace), (namespace, {}))[1][name] = value

    def repeat_cached_call(self, call: CachedCall) -> None:
        """Record a call of a cached function, which every run of the compiled code repeats."""
        self._cached_calls.append(call)

    def any(self) -> bool:
        """Whether a write is pending."""
        return bool(self._order or self._globals)

    def written(self) -> list[Value]:
        """Existing values with pending writes, in order of first write."""
        return list(self._order.values())

    # -- replaying ---------------------------------------------------------------------------------------------
    def replay(self, cg: Writer) -> None:
        """Emit every pending write to existing objects: first the steps of iterators, before their containers change."""
        moved = [v for v in self.written() if isinstance(v, Iterator)]
        for iterator in sorted(moved, key=lambda v: -v.depth):
            iterator.replay(cg)
        for call in self._cached_calls:
            cg.statement(f"{cg.helper('repeat_cached_call')}({cg.bind(call, call.fn.__name__)})")
        for value in self.written():
            if isinstance(value, ListValue) and value.mutated:
                cg.statement(_list(cg, value) if value.cls is list else _deque(cg, value))
            elif isinstance(value, DictValue) and value.mutated:
                _dict(cg, value)
            elif isinstance(value, SetValue) and value.mutated:
                value.replay(cg)
            elif isinstance(value, CellValue) and value.written:
                _cell(cg, value)
            elif isinstance(value, ExceptionValue) and value.passed:
                target = cg.source_of(value)
                cg.statement(f"{target}.__traceback__ = {cg.traceback(value, target + '.__traceback__')}")
            for name, pending in self.attributes_of(value).items():
                if (id(value), name) in self._set_again:
                    _attribute(cg, value, name, DELETED)
                _attribute(cg, value, name, pending)
        for namespace, pending_globals in self._globals.values():
            where = cg.bind(namespace, "globals")
            for name, pending in pending_globals.items():
                if pending is DELETED:
                    cg.statement(f"{where}.pop({name!r}, None)")
                else:
                    cg.statement(f"{where}[{name!r}] = {cg.value(pending)}")

    def fill_new(self, cg: Writer, obj: Value, var: str) -> None:
        """Emit the attributes of an object that the captured program made."""
        for name, pending in self.attributes_of(obj).items():
            cg.statement(f"{cg.helper('object_setattr')}({var}, {name!r}, {cg.value(pending)})")


def _list(cg: Writer, value: ListValue) -> str:
    new = f"[{', '.join(cg.value(v) for v in value.items)}]"
    if value.owner is not None:
        return f"{cg.helper('list_replace')}({cg.source_of(value)}, {new})"
    return f"{cg.source_of(value)}[:] = {new}"


def _deque(cg: Writer, value: ListValue) -> str:
    new = cg.assign(f"[{', '.join(cg.value(v) for v in value.items)}]")
    if value.version == 0:  # items were replaced: the deque's iterators stay valid
        return f"{cg.helper('deque_replace')}({cg.source_of(value)}, {new})"
    cg.statement(f"{cg.source_of(value)}.clear()")
    return f"{cg.source_of(value)}.extend({new})"


def _dict(cg: Writer, value: DictValue) -> None:
    """Keep the dict and replace its contents. The new values are computed first: they may be read from the dict."""
    pairs = [(cg.value(k), cg.value(v)) for k, v in value.entries.values()]
    new = cg.assign(f"[{', '.join(f'({k}, {v})' for k, v in pairs)}]")
    cg.statement(f"{cg.helper('dict_replace')}({cg.source_of(value)}, {new})")


def _cell(cg: Writer, value: CellValue) -> None:
    if value.contents is None:
        cg.statement(f"{cg.helper('clear_cell')}({cg.source_of(value)})")
    else:
        cg.statement(f"{cg.source_of(value)}.cell_contents = {cg.value(value.contents)}")


def _attribute(cg: Writer, value: Value, name: str, pending: Any) -> None:
    target = cg.source_of(value)
    if pending is DELETED:
        cg.statement(f"{cg.helper('delete_attribute')}({target}, {name!r})")
    elif isinstance(value, UserObject) and isinstance(value.real, Module):
        cg.statement(f"setattr({target}, {name!r}, {cg.value(pending)})")
    else:
        cg.statement(f"{cg.helper('object_setattr')}({target}, {name!r}, {cg.value(pending)})")
