"""Trees: nested containers of captured values, and of host objects.

Owns the conversion of captured values to host objects, and the map of trees. A tree of host objects consists of tuples, lists, dicts
(their values) and slices; all other objects are its leaves. `fxir.ir.node.walk_tree` walks it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, Final

from dynamo.values.mappings import DictValue
from dynamo.values.protocols import Machine, Value
from dynamo.values.sequences import ListValue, SliceValue, TupleValue

PLAIN: Final = frozenset({list, tuple, dict, slice})


def to_host(
    cap: Machine, value: Value, containers: frozenset[type] = PLAIN, leaf: Callable[[Value], Any] = lambda value: value.as_constant()
) -> Any:
    """The host object for a captured value.

    containers: classes of the containers that are rebuilt. leaf: returns the host object of any other value, realized.
    Raises: NotConstant if there is no such object, and the errors of `leaf`.
    """
    value = cap.realize(value)
    if isinstance(value, ListValue | TupleValue) and value.cls in containers and value.owner is None:
        return value.cls(to_host(cap, v, containers, leaf) for v in value.items)
    if isinstance(value, DictValue) and value.cls in containers and value.owner is None:
        entries = {to_host(cap, k, containers, leaf): to_host(cap, v, containers, leaf) for k, v in value.entries.values()}
        if value.cls is defaultdict:
            return defaultdict(None if value.factory is None else to_host(cap, value.factory, containers, leaf), entries)
        return value.cls(entries)
    if isinstance(value, SliceValue) and slice in containers:
        return slice(*(to_host(cap, p, containers, leaf) for p in value.parts))
    return leaf(value)


def host_arguments(cap: Machine, args: list[Value], kwargs: dict[str, Value]) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a call as host objects. Raises: NotConstant."""
    return [cap.realize(a).as_constant() for a in args], {k: cap.realize(v).as_constant() for k, v in kwargs.items()}


def walk_values(cap: Machine, value: Value) -> Iterator[Value]:
    """The leaves of a tree of captured values, in order, realized."""
    value = cap.realize(value)
    if isinstance(value, ListValue | TupleValue):
        for item in value.items:
            yield from walk_values(cap, item)
    elif isinstance(value, SliceValue):
        for part in value.parts:
            yield from walk_values(cap, part)
    elif isinstance(value, DictValue):
        for _, item in value.entries.values():
            yield from walk_values(cap, item)
    else:
        yield value


def map_tree(tree: Any, kind: Any, fn: Callable[[Any], Any]) -> Any:
    """The tree with fn(leaf) instead of each leaf that is an instance of `kind`."""
    if isinstance(tree, kind):
        return fn(tree)
    if isinstance(tree, tuple | list):
        items = [map_tree(item, kind, fn) for item in tree]
        return type(tree)(*items) if hasattr(tree, "_fields") else type(tree)(items)
    if isinstance(tree, dict):
        return {key: map_tree(item, kind, fn) for key, item in tree.items()}
    if isinstance(tree, slice):
        return slice(*(map_tree(part, kind, fn) for part in (tree.start, tree.stop, tree.step)))
    return tree
