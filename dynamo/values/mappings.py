"""Dicts (OrderedDict, defaultdict and Counter too), their views, and sets.

Keys are compared by Python's rules without running user code: constants by value, tuples of keys by items, all other
objects by identity. A key whose class defines __eq__ or __hash__ breaks the graph.
"""

from __future__ import annotations

import collections
import operator
import types
from collections.abc import Iterable
from itertools import starmap
from typing import Any, Final, TypeGuard

from dynamo.guards.sources import Source
from dynamo.report import causes
from dynamo.report.errors import Unsupported
from dynamo.values.base import NONE, Constant, Lazy
from dynamo.values.protocols import Machine, Value
from dynamo.values.set_order import History, dict_keys
from dynamo.values.writer import Writer

DICT_TYPES: Final = frozenset({dict, collections.OrderedDict, collections.defaultdict, collections.Counter})


class DictValue(Value):
    """entries: hash key -> (key, value), in insertion order. factory: of a defaultdict."""

    def __init__(self, cls: type = dict, source: Source | None = None, factory: Value | None = None) -> None:
        self.cls = cls
        self.source = source
        self.factory = factory
        self.entries: dict[Any, tuple[Value, Value]] = {}
        self.mutated = False
        self.owner: Value | None = None  # the instance of a subclass that has these contents

    def python_type(self) -> type:
        return self.cls

    def __repr__(self) -> str:
        return f"DictValue({list(self.entries.values())})"

    def truth(self, cap: Machine) -> bool:
        return bool(self.entries)

    def changed(self, cap: Machine) -> None:
        cap.effects.change(self)
        self.mutated = True

    # -- items -------------------------------------------------------------------------------------------------
    def get(self, cap: Machine, key: Value) -> Value | None:
        entry = self.entries.get(cap.operators.hash_key(key))
        return None if entry is None else entry[1]

    def set(self, cap: Machine, key: Value, value: Value) -> None:
        hashed = cap.operators.hash_key(key)
        self.changed(cap)
        old = self.entries.get(hashed)
        self.entries[hashed] = (key if old is None else old[0], value)

    def keys(self) -> list[Value]:
        return [k for k, _ in self.entries.values()]

    def values(self) -> list[Value]:
        return [v for _, v in self.entries.values()]

    def update(self, cap: Machine, pairs: Iterable[tuple[Value, Value]]) -> None:
        for key, value in pairs:
            self.set(cap, key, value)

    def getitem(self, cap: Machine, key: Value) -> Value:
        found = self.get(cap, key)
        if found is not None:
            return found
        if self.cls is collections.defaultdict and self.factory is not None and self.factory is not NONE:
            value = cap.call(self.factory, [], {})
            self.set(cap, key, value)
            return value
        if self.cls is collections.Counter:
            return Constant(0)
        return cap.exceptions.raise_values(KeyError, [key])

    # -- protocol ----------------------------------------------------------------------------------------------
    def iterate(self, cap: Machine) -> Value:
        return cap.iteration.dict_iterator(self, "keys")

    def unpack(self, cap: Machine) -> list[Value]:
        return self.keys()

    def getattr(self, cap: Machine, name: str) -> Value:
        if name == "default_factory" and self.cls is collections.defaultdict:
            return self.factory or NONE
        return cap.attributes.builtin_method(self, name)

    def call_method(self, cap: Machine, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        handler = _DICT_METHODS.get(name)
        if handler is None:
            raise Unsupported(causes.OPAQUE_OBJECT, f"{self.describe()}.{name}()")
        return handler(self, cap, args, kwargs)

    def view(self, cg: Writer, what: str) -> str:
        """An expression of keys(), values() or items() that ignores methods of a subclass."""
        if self.owner is not None:
            return f"{cg.bind(self.cls, self.cls.__name__)}.{what}({cg.filled(self.owner)})"
        return f"{cg.filled(self)}.{what}()"

    def reconstruct(self, cg: Writer) -> str:
        if self.owner is not None:
            return cg.value(self.owner)
        if self.source is not None:
            return cg.source(self.source)
        if self.cls is dict:
            make = "dict()"
        elif self.cls is collections.defaultdict:
            make = f"{cg.bind(self.cls, 'defaultdict')}({cg.value(self.factory or NONE)})"
        else:
            make = f"{cg.bind(self.cls, self.cls.__name__)}()"
        return cg.container(self, make, lambda var: self.fill(cg, var), self._literal if self.cls is dict else None)

    def _literal(self, cg: Writer) -> str:
        return "{" + ", ".join(f"{cg.value(k)}: {cg.value(v)}" for k, v in self.entries.values()) + "}"

    def fill(self, cg: Writer, var: str) -> None:
        """Emit the stores of all entries into `var`."""
        for key, value in self.entries.values():
            cg.statement(f"{cg.helper('dict_setitem')}({var}, {cg.value(key)}, {cg.value(value)})")


def _get(d: DictValue, cap: Machine, args: list[Value], kwargs: dict[str, Value]) -> Value:
    found = d.get(cap, args[0])
    return found if found is not None else (args[1] if len(args) > 1 else NONE)


def _pop(d: DictValue, cap: Machine, args: list[Value], kwargs: dict[str, Value]) -> Value:
    hashed = cap.operators.hash_key(args[0])
    if hashed not in d.entries:
        default = args[1] if len(args) > 1 else kwargs.get("default")
        return default if default is not None else cap.exceptions.raise_values(KeyError, [args[0]])
    d.changed(cap)
    return d.entries.pop(hashed)[1]


def _popitem(d: DictValue, cap: Machine, args: list[Value], kwargs: dict[str, Value]) -> Value:
    if not d.entries:
        name = "dictionary" if d.cls is collections.OrderedDict else "popitem(): dictionary"
        return cap.raise_(KeyError, f"{name} is empty")
    last = args[0].truth(cap) if args else kwargs["last"].truth(cap) if "last" in kwargs else True
    d.changed(cap)
    hashed = list(d.entries)[-1 if last else 0]
    return cap.iteration.make_tuple(list(d.entries.pop(hashed)))


def _setdefault(d: DictValue, cap: Machine, args: list[Value], kwargs: dict[str, Value]) -> Value:
    found = d.get(cap, args[0])
    if found is None:
        found = args[1] if len(args) > 1 else kwargs.get("default", NONE)
        d.set(cap, args[0], found)
    return found


def _update(d: DictValue, cap: Machine, args: list[Value], kwargs: dict[str, Value]) -> Value:
    if d.cls is collections.Counter:
        raise Unsupported(causes.OPAQUE_OBJECT, "Counter.update()")
    for other in args:
        d.update(cap, pairs_of(cap, other))
    d.update(cap, ((Constant(k), v) for k, v in kwargs.items()))
    return NONE


def pairs_of(cap: Machine, other: Value) -> list[tuple[Value, Value]]:
    """The (key, value) pairs that dict(other) would copy."""
    other = cap.realize(other)
    if isinstance(other, DictValue):
        return list(other.entries.values())
    contents: Any = getattr(other, "contents", None)  # an instance of a subclass holds the contents
    if getattr(other, "base", None) is dict and cap.classes.lookup(other.python_type(), "__iter__") is dict.__iter__:
        return pairs_of(cap, contents(cap))
    if cap.attributes.has(other, "keys"):
        keys = cap.iteration.unpack(cap.call_method(other, "keys", [], {}))
        return [(k, cap.operators.getitem(other, k)) for k in keys]
    pairs = []
    for i, item in enumerate(cap.iteration.unpack(other)):
        both = cap.iteration.unpack(item)
        if len(both) != 2:
            cap.raise_(ValueError, f"dictionary update sequence element #{i} has length {len(both)}; 2 is required")
        pairs.append((both[0], both[1]))
    return pairs


def _setitem(d: DictValue, cap: Machine, args: list[Value], kwargs: dict[str, Value]) -> Value:
    d.set(cap, args[0], args[1])
    return NONE


def _delitem(d: DictValue, cap: Machine, args: list[Value], kwargs: dict[str, Value]) -> Value:
    hashed = cap.operators.hash_key(args[0])
    if hashed not in d.entries:
        return NONE if d.cls is collections.Counter else cap.exceptions.raise_values(KeyError, [args[0]])
    d.changed(cap)
    del d.entries[hashed]
    return NONE


def _clear(d: DictValue, cap: Machine, args: list[Value], kwargs: dict[str, Value]) -> Value:
    d.changed(cap)
    d.entries.clear()
    return NONE


def _copy(d: DictValue, cap: Machine, args: list[Value], kwargs: dict[str, Value]) -> Value:
    new = DictValue(d.cls, None, d.factory)
    new.entries = dict(d.entries)
    return new


def _or(d: DictValue, cap: Machine, args: list[Value], kwargs: dict[str, Value]) -> Value:
    other = cap.realize(args[0])
    if not issubclass(other.python_type(), dict):
        return Constant(NotImplemented)
    if not isinstance(other, DictValue):
        raise Unsupported(causes.OPAQUE_OBJECT, f"{d.describe()} | {other.describe()}")
    return united(cap, d, other, d)


def united(cap: Machine, a: DictValue, b: DictValue, kind: DictValue | None = None) -> DictValue:
    """a | b. kind: the class of the result; the class of b if b is an instance of a subclass, unless given."""
    if collections.Counter in (a.cls, b.cls):
        raise Unsupported(causes.OPAQUE_OBJECT, f"{a.describe()} | {b.describe()}")
    if kind is None:
        kind = b if b.cls is not a.cls and issubclass(b.cls, a.cls) else a
    new = DictValue(kind.cls, None, kind.factory)
    new.entries = dict(a.entries)
    new.update(cap, b.entries.values())
    return new


def _eq(d: DictValue, cap: Machine, args: list[Value], kwargs: dict[str, Value]) -> Value:
    other = cap.realize(args[0])
    kind = collections.Counter if d.cls is collections.Counter else dict
    return Constant(cap.operators.equal(d, other) if issubclass(other.python_type(), kind) else NotImplemented)


def _ne(d: DictValue, cap: Machine, args: list[Value], kwargs: dict[str, Value]) -> Value:
    same = _eq(d, cap, args, kwargs).as_constant()
    return Constant(same if same is NotImplemented else not same)


def _ior(d: DictValue, cap: Machine, args: list[Value], kwargs: dict[str, Value]) -> Value:
    if d.cls is collections.Counter:
        raise Unsupported(causes.OPAQUE_OBJECT, "Counter |= ...")
    d.update(cap, pairs_of(cap, args[0]))
    return d


def _move_to_end(d: DictValue, cap: Machine, args: list[Value], kwargs: dict[str, Value]) -> Value:
    hashed = cap.operators.hash_key(args[0])
    if hashed not in d.entries:
        return cap.exceptions.raise_values(KeyError, [args[0]])
    last = args[1] if len(args) > 1 else kwargs.get("last")
    d.changed(cap)
    entry = d.entries.pop(hashed)
    if last is None or last.truth(cap):
        d.entries[hashed] = entry
    else:
        rest = dict(d.entries)
        d.entries.clear()
        d.entries.update({hashed: entry, **rest})
    return NONE


_DICT_METHODS: Final[dict[str, Any]] = {
    "get": _get,
    "pop": _pop,
    "popitem": _popitem,
    "setdefault": _setdefault,
    "update": _update,
    "clear": _clear,
    "copy": _copy,
    "move_to_end": _move_to_end,
    "keys": lambda d, cap, a, k: DictView(d, "keys"),
    "values": lambda d, cap, a, k: DictView(d, "values"),
    "items": lambda d, cap, a, k: DictView(d, "items"),
    "__getitem__": lambda d, cap, a, k: d.getitem(cap, a[0]),
    "__setitem__": _setitem,
    "__delitem__": _delitem,
    "__contains__": lambda d, cap, a, k: Constant(d.get(cap, a[0]) is not None),
    "__len__": lambda d, cap, a, k: Constant(len(d.entries)),
    "__iter__": lambda d, cap, a, k: d.iterate(cap),
    "__reversed__": lambda d, cap, a, k: cap.iteration.dict_iterator(d, "keys", True),
    "__or__": _or,
    "__ior__": _ior,
    "__eq__": _eq,
    "__ne__": _ne,
}


_COMPARISONS: Final = frozenset("__eq__ __ne__ __le__ __lt__ __ge__ __gt__".split())


def is_like_a_set(value: Value) -> TypeGuard[SetValue | DictView]:
    """Whether a set or a view of a dict compares and combines with the value."""
    return isinstance(value, SetValue) or (isinstance(value, DictView) and value.kind != "values")


class DictView(Value):
    """dict.keys(), .values() or .items() of a dict: always shows the current dict."""

    def __init__(self, owner: DictValue, kind: str, source: Source | None = None) -> None:
        self.owner = owner
        self.kind = kind
        self.source = source

    def python_type(self) -> type:
        return type(getattr({}, self.kind)())

    def contents(self, cap: Machine) -> list[Value]:
        if self.kind == "keys":
            return self.owner.keys()
        if self.kind == "values":
            return self.owner.values()
        return [cap.iteration.make_tuple([k, v]) for k, v in self.owner.entries.values()]

    def truth(self, cap: Machine) -> bool:
        return bool(self.owner.entries)

    def iterate(self, cap: Machine) -> Value:
        return cap.iteration.dict_iterator(self.owner, self.kind)

    def unpack(self, cap: Machine) -> list[Value]:
        return self.contents(cap)

    def getattr(self, cap: Machine, name: str) -> Value:
        return cap.attributes.builtin_method(self, name)

    def call_method(self, cap: Machine, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if name == "__len__":
            return Constant(len(self.owner.entries))
        if name == "__iter__":
            return self.iterate(cap)
        if name == "__contains__":
            if self.kind == "keys":
                return Constant(self.owner.get(cap, args[0]) is not None)
            return Constant(any(cap.operators.equal(v, args[0]) for v in self.contents(cap)))
        if name == "__reversed__":
            return cap.iteration.dict_iterator(self.owner, self.kind, True)
        if self.kind != "values" and name in SetValue.OPERATORS:
            if name in _COMPARISONS and not is_like_a_set(cap.realize(args[0])):
                return Constant(NotImplemented)
            return self.operate(cap, name, args)
        raise Unsupported(causes.OPAQUE_OBJECT, f"dict view .{name}()")

    def operate(self, cap: Machine, name: str, args: list[Value]) -> Value:
        """A method or an operator of sets."""
        if self.kind == "items" and name in _COMPARISONS:
            raise Unsupported(causes.OPAQUE_OBJECT, "a comparison of items of dicts, which compares the values")
        mine = cap.iteration.set_of(self.contents(cap))
        mine.made, mine.methods = history_of(cap, self), type({}.keys())
        return mine.operate(cap, name, args)

    def reconstruct(self, cg: Writer) -> str:
        return self.owner.view(cg, self.kind) if self.source is None else cg.source(self.source)


class ProxyValue(Value):
    """types.MappingProxyType over a dict: reads of the proxy read the dict."""

    READERS: Final = frozenset("get keys values items copy __getitem__ __contains__ __len__ __iter__ __reversed__".split())

    def __init__(self, inner: Value, source: Source | None) -> None:
        self.inner = inner
        self.source = source

    def python_type(self) -> type:
        return types.MappingProxyType

    def truth(self, cap: Machine) -> bool:
        return cap.truth(self.inner)

    def iterate(self, cap: Machine) -> Value:
        return cap.iteration.iter(self.inner)

    def getattr(self, cap: Machine, name: str) -> Value:
        return cap.attributes.builtin_method(self, name)

    def call_method(self, cap: Machine, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if name not in self.READERS:
            raise Unsupported(causes.OPAQUE_OBJECT, f"{self.describe()}.{name}()")
        return cap.call_method(self.inner, name, args, kwargs)

    def reconstruct(self, cg: Writer) -> str:
        if self.source is not None:
            return cg.source(self.source)
        return f"{cg.bind(types.MappingProxyType, 'mappingproxy')}({cg.value(self.inner)})"


class _Element:
    """An element of a host set."""

    __slots__ = ("key", "value")

    def __init__(self, key: Any, value: Value) -> None:
        self.key = key
        self.value = value

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Element) and self.key == other.key


class SetValue(Value):
    """set or frozenset. entries: hash key -> value, in insertion order.

    made: the calls that made the set; they determine the order of its elements. None for an existing set, and for a set
    of elements that are not all constants. calls: the calls that changed the set since; generated code replays the
    calls of an existing set. in_order: whether the elements were added one after another, in the order of `entries`:
    adding them again gives the same set.
    """

    OPERATORS: Final = frozenset(
        "__or__ __and__ __sub__ __xor__ __le__ __lt__ __ge__ __gt__ __eq__ __ne__ union intersection difference "
        "symmetric_difference issubset issuperset isdisjoint copy".split()
    )
    MUTATORS: Final = frozenset(
        "add discard remove pop clear update difference_update intersection_update symmetric_difference_update "
        "__ior__ __iand__ __isub__ __ixor__".split()
    )

    def __init__(self, cls: type = set, source: Source | None = None) -> None:
        self.cls = cls
        self.source = source
        self.entries: dict[Any, Value] = {}
        self.mutated = False
        self.made: History | None = None
        self.methods: type = cls  # the class whose operators apply
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self.in_order = True

    @property
    def history(self) -> History | None:
        """All calls that made the set; None if unknown."""
        return self.made and History(self.made.make, self.made.args, tuple(self.calls))

    def python_type(self) -> type:
        return self.cls

    def as_constant(self) -> Any:
        if self.cls is not frozenset:
            return super().as_constant()
        return self.history.build() if self.history else frozenset(v.as_constant() for v in self.entries.values())

    def truth(self, cap: Machine) -> bool:
        return bool(self.entries)

    def changed(self, cap: Machine) -> None:
        cap.effects.change(self)
        self.mutated = True

    def ordered(self) -> list[Value]:
        """Elements in the order of iteration. Breaks the graph if the order is not known."""
        if len(self.entries) < 2:
            return list(self.entries.values())
        if self.history is None:
            raise Unsupported(causes.OPAQUE_OBJECT, "the iteration order of a set")
        by_value = {v.as_constant(): v for v in self.entries.values()}
        return [by_value[value] for value in self.history.build()]

    def iterate(self, cap: Machine) -> Value:
        return cap.iteration.sequence_iterator(self.ordered(), self)

    def unpack(self, cap: Machine) -> list[Value]:
        return self.ordered()

    def getattr(self, cap: Machine, name: str) -> Value:
        return cap.attributes.builtin_method(self, name)

    def _other(self, cap: Machine, arg: Value) -> tuple[set[_Element] | list[_Element], Any]:
        """(the operand as a host set or iterable; its history, None if unknown)"""
        value = cap.realize(arg)
        if isinstance(value, SetValue):
            return set(starmap(_Element, value.entries.items())), value.history
        items = [cap.realize(v) for v in cap.iteration.unpack(value)]
        known = history_of(cap, value) if isinstance(value, DictView | DictValue) else constants_of(cap, items)
        return [_Element(cap.operators.hash_key(v), v) for v in items], known

    def call_method(self, cap: Machine, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if name == "__len__":
            return Constant(len(self.entries))
        if name == "__contains__":
            return Constant(cap.operators.hash_key(args[0]) in self.entries)
        if name == "__iter__":
            return self.iterate(cap)
        if name == "copy" and self.cls is frozenset:
            return self
        if name.startswith("__") and (name in self.OPERATORS or name in self.MUTATORS):
            other = cap.realize(args[0])
            if not issubclass(other.python_type(), (set, frozenset)):
                return Constant(NotImplemented)
            if not isinstance(other, SetValue):
                raise Unsupported(causes.OPAQUE_OBJECT, f"{self.describe()}.{name}() with {other.describe()}")
        if name in self.OPERATORS:
            return self.operate(cap, name, args)
        if name in self.MUTATORS and self.cls is set:
            return self._mutate(cap, name, args)
        raise Unsupported(causes.OPAQUE_OBJECT, f"{self.describe()}.{name}()")

    def operate(self, cap: Machine, name: str, args: list[Value]) -> Value:
        """A method or an operator of sets.

        The other operand may be a view of a dict: the result of an operator is then a plain set.
        """
        others, known = self._others(cap, args)
        found = self._elements(name, others)
        if isinstance(found, bool):
            return Constant(found)
        new = SetValue(set if name.startswith("__") and isinstance(cap.realize(args[0]), DictView) else self.cls)
        new.entries, new.born, new.in_order = found, cap.steps, False
        if self.history is not None and None not in known:
            # the function of operator tries both operands: a set returns NotImplemented for a view of a dict
            make = getattr(operator, name) if name.startswith("__") else getattr(self.methods, name)
            new.made = History(make, (self.history, *known))
        return new

    def _others(self, cap: Machine, args: list[Value]) -> tuple[list[Any], list[Any]]:
        pairs = [self._other(cap, a) for a in args]
        return [elements for elements, _ in pairs], [known for _, known in pairs]

    def _elements(self, name: str, others: list[Any]) -> dict[Any, Value] | bool:
        # The host's set decides which of two equal elements the result contains.
        mine = list(starmap(_Element, self.entries.items()))
        found = getattr(set(mine), name)(*(set(o) if name.startswith("__") else o for o in others))
        if not isinstance(found, set):
            return bool(found)
        order = {e.key: i for i, e in enumerate((*mine, *(e for o in others for e in o)))}
        return {e.key: e.value for e in sorted(found, key=lambda e: order[e.key])}

    def _change(self, cap: Machine, method: str, others: list[Any], known: list[Any]) -> None:
        """Record a call that is about to change the set. known: the histories of the operands, None for unknown."""
        for elements, history in zip(others, known, strict=True):
            if self.source is not None and history is None and constants_of(cap, [e.value for e in elements]) is not None:
                raise Unsupported(causes.MUTATION, "a change of an existing set by a set whose order is not known")
        if self.source is None and None in known:
            self.made = None
        args = ([e.value for e in o] if k is None else k for o, k in zip(others, known, strict=True))
        self.calls.append((method, tuple(args)))
        self.changed(cap)

    def _mutate(self, cap: Machine, name: str, args: list[Value]) -> Value:
        if name in ("add", "discard", "remove"):
            element = cap.realize(args[0])
            hashed = cap.operators.hash_key(element)
            if (hashed in self.entries) == (name == "add"):
                return NONE if name != "remove" else cap.exceptions.raise_values(KeyError, [args[0]])
            method = "update" if name == "add" else "difference_update"
            self._change(cap, method, [[_Element(hashed, element)]], [constants_of(cap, [element])])
            if name == "add":
                self.entries[hashed] = element
            else:
                del self.entries[hashed]
                self.in_order = False
            return NONE
        if name in ("clear", "pop"):
            if name == "pop" and not self.entries:
                return cap.raise_(KeyError, "pop from an empty set")
            if name == "pop" and len(self.entries) > 1:
                raise Unsupported(causes.OPAQUE_OBJECT, "the element that set.pop() removes")
            self._change(cap, name, [], [])
            popped = next(iter(self.entries.values()), NONE)
            self.entries = {}
            return popped if name == "pop" else NONE
        pure = {"update": "union", "__ior__": "__or__", "__iand__": "__and__", "__isub__": "__sub__", "__ixor__": "__xor__"}
        others, known = self._others(cap, args)
        found = self._elements(pure.get(name, name.removesuffix("_update")), others)
        assert isinstance(found, dict)
        self.in_order = self.in_order and name == "update" and not any(isinstance(o, set) for o in others)
        self._change(cap, name, others, known)
        self.entries = found
        return self if name.startswith("__") else NONE

    def replay(self, cg: Writer) -> None:
        """Repeat the changes of an existing set."""
        for method, args in self.calls:
            texts = [f"({''.join(cg.value(v) + ', ' for v in a)})" if isinstance(a, list) else _made_again(cg, a) for a in args]
            cg.statement(f"{cg.source_of(self)}.{method}({', '.join(texts)})")

    def reconstruct(self, cg: Writer) -> str:
        if self.source is not None:
            return cg.source(self.source)
        if self.history is not None:
            return _made_again(cg, self.history)
        if len(self.entries) > 1 and (not self.in_order or all(map(_is_known, self.entries.values()))):
            cg.impossible(self, "a set made from a set whose order is not known")
        return f"{self.cls.__name__}(({''.join(cg.value(v) + ', ' for v in self.entries.values())}))"


def _is_known(value: Value) -> bool:
    """Whether the value is a constant."""
    return isinstance(value.realize(value.cap) if isinstance(value, Lazy) else value, Constant)


def constants_of(cap: Machine, values: Iterable[Value]) -> tuple[Any, ...] | None:
    """The constants of the values; None if a value is not a constant."""
    found = [cap.realize(v) for v in values]
    return tuple(v.as_constant() for v in found) if all(isinstance(v, Constant) for v in found) else None


def history_of(cap: Machine, value: DictValue | DictView) -> Any:
    """The history of a dict of constant keys, or of a view of such a dict, for a set made from it; None if unknown."""
    owner = value.owner if isinstance(value, DictView) else value
    kind = value.kind if isinstance(value, DictView) else "dict"
    keys = constants_of(cap, (k for k, _ in owner.entries.values())) if kind in ("keys", "dict") else None
    if keys is not None and kind == "keys":  # the views of all kinds of dicts behave like the views of a dict
        return History(dict_keys, (keys,))
    return History(dict.fromkeys, (keys,)) if keys is not None and owner.cls is dict else keys


def _made_again(cg: Writer, known: Any) -> str:
    return f"{cg.helper('built')}({cg.bind(known, 'history')})" if isinstance(known, History) else cg.bind(known, "elements")
