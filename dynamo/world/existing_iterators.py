"""Iterators that were already advanced when a capture begins: in a loop that a graph break cut, or in a variable.

Decides which of them can be followed: CPython's iterators over lists, tuples, text, ranges and dicts, and enumerate and
zip over such iterators. Their position is guarded; generated code advances the real iterators by the steps of the
captured program (`values.iterators`). An iterator with another position at each compilation is left to the interpreter.
"""

from __future__ import annotations

from typing import Any, Final

from dynamo import _native
from dynamo.guards.sources import ConstSource, ItemSource, IteratorOwnerSource, Source
from dynamo.values.base import Constant, Opaque
from dynamo.values.iterators import DictIterator, EnumerateIterator, RangeIterator, SequenceIterator, ZipIterator
from dynamo.values.mappings import DICT_TYPES, DictValue
from dynamo.values.protocols import Machine, Value
from dynamo.values.sequences import ListValue, TupleValue
from eager.nn._base import Registry

_OVER_SEQUENCE: Final[dict[type, type]] = {type(iter([])): list, type(iter(())): tuple}
_OVER_TEXT: Final = frozenset((type(iter("a")), type(iter("\u00e9")), type(iter(b""))))
_OVER_RANGE: Final = type(iter(range(0)))
_OVER_DICT: Final[dict[type, str]] = {
    type(iter({}.keys())): "keys", type(iter({}.values())): "values", type(iter({}.items())): "items",
}  # fmt: skip
EXISTING_TYPES: Final[frozenset[type]] = frozenset((*_OVER_SEQUENCE, *_OVER_TEXT, _OVER_RANGE, *_OVER_DICT, enumerate, zip))


def wrap_iterator(cap: Machine, real: Any, source: Source) -> Value:
    """The value of an iterator of EXISTING_TYPES. An iterator that cannot be followed is opaque."""
    position = _position(real)
    if position is None or not cap.symbols.dynamic.stays(source.name, position):
        return Opaque(real, source)
    return _follow(cap, real, source)


def _position(real: Any) -> tuple[Any, ...] | None:
    """The position of an iterator and of its inner iterators; None if it cannot be followed."""
    kind = type(real)
    if kind not in EXISTING_TYPES:
        return None
    try:
        state = _native.iterator_state(real)
    except RuntimeError:  # the dict has changed
        return None
    owner = _native.iterator_owner(real)
    if kind in _OVER_SEQUENCE:
        return (state,) if type(owner) is _OVER_SEQUENCE[kind] else None
    if kind is _OVER_RANGE:
        rest = _rest(state)
        return rest.start, rest.step
    if kind in _OVER_TEXT:
        return None if state is None else (state[1],)
    if kind in _OVER_DICT:
        plain = type(owner) is Registry or (type(owner) in DICT_TYPES and "__builtins__" not in owner)
        return (len(owner) - state,) if plain else None
    if kind is zip and state:
        return None  # a strict zip raises at its end
    inner = [_position(i) for i in ((owner,) if kind is enumerate else owner)]
    return None if None in inner else (state, *inner)


def _rest(state: tuple[range, int | None]) -> range:
    """The remaining range."""
    return state[0][state[1] or 0 :]


def _follow(cap: Machine, real: Any, source: Source) -> Value:
    kind, state, over = type(real), _native.iterator_state(real), IteratorOwnerSource(source, "")
    owner = _native.iterator_owner(real)
    cap.world.guard("type", source, kind)
    cap.world.guard("iterator_state", source, state)
    if kind is _OVER_RANGE:
        return RangeIterator(_rest(state), source)
    if kind in _OVER_TEXT:
        text = state[0]
        return SequenceIterator([Constant(c) for c in text], Constant(text), source, state[1], len(text) - state[1])
    if kind is enumerate:
        return EnumerateIterator(_inner(cap, owner, over), state, source)
    if kind is zip:
        cap.world.guard("len", over, len(owner))
        return ZipIterator([_inner(cap, i, ItemSource(over, n)) for n, i in enumerate(owner)], state, source)
    if type(owner) is Registry and not source.is_constant_rooted:
        cap.world.guard("is", over, owner)
        container = cap.world.wrap(owner, ConstSource(owner, over.name))
    else:
        container = cap.world.wrap(owner, over)
    if kind in _OVER_DICT:
        assert isinstance(container, DictValue)
        if list(container.entries) != [cap.operators.hash_key(cap.world.wrap_static(k)) for k in owner]:
            return Opaque(real, source)  # the captured program has changed the object: a count does not give the position
        return DictIterator(container, _OVER_DICT[kind], source, len(container.entries) - state)
    assert isinstance(container, ListValue | TupleValue)
    return SequenceIterator(container.items, container, source, state, len(owner) - state)


def _inner(cap: Machine, real: Any, source: Source) -> Value:
    """As `Capture.wrap`, for an iterator inside enumerate or zip: its position is part of their position."""
    known = cap.world.by_id.get(id(real))
    if known is not None:
        return cap.world.wrap(real, source)
    made = cap.world.by_id[id(real)] = _follow(cap, real, source)
    cap.world.keep.append(real)
    return made
