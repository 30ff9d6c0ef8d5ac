"""How many arguments the builtins in the answer table take, as data. A call outside these bounds is left to Python."""

from __future__ import annotations

import collections
import functools
import inspect
import operator
import types
from typing import Any, Final

from dynamo.guards.sources import type_attribute

MANY: Final = 1 << 30
ANY_NAME: Final = frozenset({"*"})
Arity = tuple[int, int, frozenset[str]]  # fewest and most positional arguments, names of keyword ones


def _arity(fewest: int, most: int, *names: str) -> Arity:
    return fewest, most, frozenset(names)


FUNCTIONS: Final[dict[Any, Arity]] = {
    **dict.fromkeys((len, callable, repr, all, any, id, hash, reversed, operator.not_, operator.truth), _arity(1, 1)),
    **dict.fromkeys((isinstance, issubclass, hasattr, delattr, operator.getitem, operator.is_, operator.is_not,
                     operator.contains, filter), _arity(2, 2)),
    **dict.fromkeys((list, tuple, set, frozenset, bool), _arity(0, 1)),
    **dict.fromkeys((type, types.MappingProxyType), _arity(1, 1)),
    **dict.fromkeys((iter, next, format), _arity(1, 2)),
    **dict.fromkeys((setattr, operator.setitem), _arity(3, 3)),
    **dict.fromkeys((range, slice), _arity(1, 3)),
    **dict.fromkeys((dict, collections.OrderedDict, collections.Counter), (0, 1, ANY_NAME)),
    collections.defaultdict: (0, 2, ANY_NAME),
    collections.deque: _arity(0, 2, "iterable", "maxlen"),
    dict.fromkeys: _arity(1, 2),
    enumerate: _arity(1, 2, "start"),
    functools.partial: (1, MANY, ANY_NAME),
    functools.reduce: _arity(2, 3),
    getattr: _arity(2, 3),
    map: _arity(2, MANY),
    max: _arity(1, MANY, "key", "default"),
    min: _arity(1, MANY, "key", "default"),
    object: _arity(0, 0),
    sorted: _arity(1, 1, "key", "reverse"),
    sum: _arity(1, 2, "start"),
    super: _arity(0, 2),
    zip: _arity(0, MANY, "strict"),
}  # fmt: skip

# Methods of containers and iterators without a signature, on one version of CPython or another.
UNSIGNED: Final[dict[type, dict[str, Arity]]] = {
    dict: {
        **dict.fromkeys(("clear", "copy", "keys", "values", "items", "__reversed__"), _arity(0, 0)),
        "__getitem__": _arity(1, 1), "pop": _arity(1, 2), "update": (0, 1, ANY_NAME),
    },
    collections.OrderedDict: {"pop": _arity(1, 2, "default"), "update": (0, 1, ANY_NAME)},
    list: {"__getitem__": _arity(1, 1)},
    collections.deque: {
        **dict.fromkeys(("append", "appendleft", "count", "extend", "extendleft", "remove"), _arity(1, 1)),
        **dict.fromkeys(("clear", "copy", "pop", "popleft", "reverse", "__copy__", "__reversed__"), _arity(0, 0)),
        "index": _arity(1, 3), "insert": _arity(2, 2), "rotate": _arity(0, 1),
    },
    set: {
        **dict.fromkeys(("add", "discard", "remove", "issubset", "issuperset", "isdisjoint", "symmetric_difference",
                         "symmetric_difference_update", "__contains__"), _arity(1, 1)),
        **dict.fromkeys(("clear", "copy", "pop"), _arity(0, 0)),
        **dict.fromkeys(("union", "intersection", "difference", "update", "intersection_update", "difference_update"),
                        _arity(0, MANY)),
    },
    range: {**dict.fromkeys(("count", "index"), _arity(1, 1)), "__reversed__": _arity(0, 0)},
    slice: {"indices": _arity(1, 1)},
    type({}.keys()): {"isdisjoint": _arity(1, 1), "__reversed__": _arity(0, 0)},
    type({}.items()): {"isdisjoint": _arity(1, 1), "__reversed__": _arity(0, 0)},
    type({}.values()): {"__reversed__": _arity(0, 0)},
}  # fmt: skip


def fits(arity: Arity | None, n: int, names: dict[str, Any]) -> bool:
    """Whether n positional arguments and these keyword arguments are within the bounds; None has no bounds."""
    if arity is None:
        return True
    fewest, most, known = arity
    return fewest <= n <= most and (known is ANY_NAME or known.issuperset(names))


def method_takes(cls: type, name: str, n: int, names: dict[str, Any]) -> bool:
    """Whether a method of a container or an iterator accepts n positional arguments and these keyword arguments."""
    for base in cls.__mro__:
        found = UNSIGNED.get(base if base is not frozenset else set, {}).get(name)
        if found is not None:
            return fits(found, n, names)
    return takes(type_attribute(cls, name, None), n + 1, names)


def takes(fn: Any, n: int, names: dict[str, Any]) -> bool:
    """Whether the signature of a callable accepts the arguments; True for a callable without a signature."""
    return _binds(fn, n, frozenset(names))


@functools.cache
def _binds(fn: Any, n: int, names: frozenset[str]) -> bool:
    """Whether the signature of a function accepts n positional arguments and these keyword arguments; True without a
    signature.
    """
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):
        return True
    try:
        signature.bind(*(None,) * n, **dict.fromkeys(names))
    except TypeError:
        return False
    return True
