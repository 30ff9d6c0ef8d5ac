"""Visible finalizers: objects whose end runs code (a generator suspended in a try block, a `__del__`) or clears a weak
reference.

Decides whether the end of a value is visible, and whether a frame drops the last reference to it. A capture keeps the
value of a variable for as long as eager does, and breaks the graph before it drops a last reference. Must not know how
a break is written.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any, Final
from weakref import ProxyTypes, ReferenceType, getweakrefcount

from dynamo.guards.sources import CellContentsSource, DictItemSource, ItemSource, SlotSource, is_a
from dynamo.python.attributes import namespace_held
from dynamo.values.base import Constant, Lazy, Opaque
from dynamo.values.functions import CellValue, GeneratorValue
from dynamo.values.objects import ExceptionValue, TracebackValue
from dynamo.values.protocols import Frame, Value
from dynamo.values.tensor import TensorValue
from eager import Tensor
from eager.nn import Module

_DEPTH: Final = 3
_QUALNAME: Final = vars(type)["__qualname__"].__get__  # without the metaclass
_WIDTH: Final = 64
_QUIET: Final = (int, float, complex, str, bytes, bytearray, type(None), ModuleType, Tensor, slice, range)
_CONTAINERS: Final[tuple[Any, ...]] = (list, tuple, set, frozenset, deque)
# Objects of these types hold nothing whose end runs code.
_ITERABLES: Final[tuple[Any, ...]] = ((), [], "", b"", range(0), {}, {}.items(), {}.values(), set())
_PASSIVE_ITERATORS: Final = frozenset(type(iter(v)) for v in _ITERABLES)


def end_is_visible(real: Any, depth: int = _DEPTH) -> bool:
    """Whether the end of an existing object, or of an object that it holds, may run code or be visible."""
    kind = type(real)
    # By the class: isinstance would read the object, and a weak proxy would read its referent, which may not exist.
    if issubclass(kind, type):
        return _is_of_a_call(real)
    if issubclass(kind, _QUIET) or kind in _PASSIVE_ITERATORS:
        return False
    if kind in ProxyTypes or issubclass(kind, ReferenceType):
        return kind in ProxyTypes or real.__callback__ is not None  # without the proxy, no callback runs at the end of the referent
    if hasattr(kind, "__next__") or hasattr(kind, "__del__") or (getweakrefcount(real) and not issubclass(kind, Module)):
        return True
    return depth > 0 and any(end_is_visible(part, depth - 1) for part in _parts(real))


def _is_of_a_call(cls: type) -> bool:
    """Whether a class statement in a function made the class: classes of modules do not end."""
    return "<locals>" in _QUALNAME(cls)


def _parts(real: Any) -> Iterable[Any]:
    base = next((base for base in _CONTAINERS if is_a(real, base)), None)
    if base is not None:  # its own __iter__ would run code of the program
        return list(islice(base.__iter__(real), _WIDTH))
    if is_a(real, dict):
        return list(islice(dict.values(real), _WIDTH))
    if is_a(real, CellType):
        return _contents(real)
    if is_a(real, FunctionType):
        return [part for cell in real.__closure__ or () for part in _contents(cell)]
    if is_a(real, MethodType):
        return (real.__self__,)
    if is_a(real, partial):
        return (real.func, *real.args, *real.keywords.values())
    return list((namespace_held(real) or {}).values())[:_WIDTH]


def _contents(cell: CellType) -> tuple[Any, ...]:
    try:
        return (cell.cell_contents,)
    except ValueError:  # the cell is empty
        return ()


def value_end_is_visible(value: Value, frame: Frame, depth: int = _DEPTH, owned: bool = False) -> bool:
    """Whether the end of a captured value may run code.

    An object with another holder, such as an attribute, does not end with the value.

    owned: whether the value is part of an existing object that may end.
    """
    if isinstance(value, Constant | TensorValue) or not (owned or value.source is None or _may_end(value, frame)):
        return False
    if isinstance(value, Lazy):
        return _unused_end_is_visible(value, frame, depth) if value.seen is None else value_end_is_visible(value.seen, frame, depth, owned)
    if isinstance(value, GeneratorValue):  # visible once it has begun; the instruction of a break may begin it
        return not value.finished and any(v is value for v in frame.stack)
    if depth == 0:
        return False
    parts = _captured_parts(value, frame)
    if isinstance(value, CellValue) and (value.contents is not None or value.written):
        parts = [value.contents] if value.contents is not None else []
    elif value.source is not None and end_is_visible(getattr(value, "real", None), depth):
        return True
    return any(value_end_is_visible(part, frame, depth - 1, value.source is not None) for part in parts)


def leads_to(value: Value, *frames: Frame) -> bool:
    """Whether the value holds an exception of the captured program whose traceback holds one of the frames."""
    if not frames[0].cap.frames.passed:
        return False
    todo, seen = [value], set[int]()
    while todo:
        held = todo.pop()
        if isinstance(held, Constant | TensorValue) or id(held) in seen:
            continue
        seen.add(id(held))
        if isinstance(held, ExceptionValue | TracebackValue) and any(p.leads_to(f) for p in held.passed for f in frames):
            return True
        todo.extend(_captured_parts(held, frames[0]))
    return False


def _unused_end_is_visible(value: Lazy, frame: Frame, depth: int) -> bool:
    """Whether the end of an unused lazy value is visible. A negative answer holds for calls with a value of its type.

    Unused arguments are not guarded: the caller holds them.
    """
    if end_is_visible(value.real, depth):
        return True
    if isinstance(value.source, ItemSource | DictItemSource) and not value.source.is_constant_rooted:  # else the entry holds the object
        frame.cap.world.guards.add("type", value.source, type(value.real), origin=frame.origin())
    return False


def _may_end(value: Value, frame: Frame) -> bool:
    """Whether the captured program may hold the last reference to an existing value: the value came in a variable, or
    from a container that the program has changed.
    """
    source = value.source
    if isinstance(source, ItemSource | DictItemSource):
        return any(v.source == source.parent for v in frame.cap.effects.written())
    return isinstance(source, SlotSource | CellContentsSource)


def may_be_watched(
    value: Value, frame: Frame, is_made: Callable[[Value], bool], depth: int = _DEPTH, owned: bool = False
) -> bool:
    """Whether plain code may make a weak reference to `value` or to a part of it, while only unread variables hold the
    object.

    This holds for an existing object that came in a variable, and for a new object that the plain code receives.
    Tensors are excluded: the frame releases them, because their memory is needed.

    is_made: whether a new value becomes an object. owned: whether the value is part of an object that came in a
    variable.
    """
    known = value.seen if isinstance(value, Lazy) and value.seen is not None else value
    if isinstance(known, Constant | TensorValue):
        return False
    if known.source is None:
        if known.python_type().__weakrefoffset__ and is_made(known):
            return True
    elif not (owned or _may_end(known, frame) or _may_end(value, frame)):
        return False
    elif (real := getattr(known, "real", None)) is not None:
        return _is_referable(real, depth)
    owned = known.source is not None
    return depth > 0 and any(may_be_watched(part, frame, is_made, depth - 1, owned) for part in _captured_parts(known, frame))


def _is_referable(real: Any, depth: int) -> bool:
    """Whether weak references to an existing object or to a part of it can exist, or whether it is a weak reference
    itself: weak references can be counted.
    """
    kind = type(real)
    if issubclass(kind, type):
        return _is_of_a_call(real)
    if issubclass(kind, (ModuleType, Tensor, Module)):
        return False
    if kind in ProxyTypes or issubclass(kind, ReferenceType) or kind.__weakrefoffset__:
        return True
    return depth > 0 and any(_is_referable(part, depth - 1) for part in _parts(real))


def _captured_parts(value: Value, frame: Frame) -> Iterable[Value]:
    for held in vars(value).values():
        if is_a(held, Value):  # the attribute may be an existing object of any class
            yield held
        elif type(held) in (list, tuple):
            yield from (v for v in held[:_WIDTH] if is_a(v, Value))
        elif type(held) is dict:
            for item in list(held.values())[:_WIDTH]:
                if type(item) is tuple and item:
                    item = item[-1]
                if is_a(item, Value):
                    yield item
    for pending in frame.cap.effects.attributes_of(value).values():
        if isinstance(pending, Value):
            yield pending


def drop_is_visible(frame: Frame, value: Value | None) -> bool:
    """Whether code may run after `frame` has dropped a value from a variable or from its stack."""
    return value is not None and value_end_is_visible(value, frame) and not _is_held(value, frame.cap.frames.running)


def cell_drop_is_visible(frame: Frame, cell: CellValue) -> bool:
    """Whether code may run when `frame` empties a cell, or replaces its contents."""
    if cell.contents is None and not cell.written:  # cells from outside: their contents were not read
        return end_is_visible(getattr(cell, "real", None))
    return drop_is_visible(frame, cell.contents)


def return_is_visible(frame: Frame, returned: Value) -> bool:
    """Whether code may run when an inlined frame drops its variables: it returns, or an exception leaves it."""
    *callers, innermost = frame.cap.frames.running
    if not callers or innermost is not frame:
        return False
    dropped = (v for v in frame.locals if v is not None and v is not returned and not isinstance(v, Constant | TensorValue))
    return any(not _is_held(v, callers) and value_end_is_visible(v, frame) for v in dropped)


def _is_held(value: Value, frames: list[Frame]) -> bool:
    held = value.seen if isinstance(value, Lazy) and value.seen is not None else value
    for f in frames:  # most often the very value is an argument that the caller holds
        if any(other is held for other in f.locals):
            return True
    return any(_same(held, other) for f in frames for other in (*f.locals, *f.stack) if other is not None)


def _same(a: Value, b: Value) -> bool:
    if isinstance(b, Lazy) and b.seen is not None:
        b = b.seen
    return a is b or (a.source is not None and b.source is not None and getattr(a, "real", None) is getattr(b, "real", b))


def drops_iterator(frame: Frame, value: Value) -> bool:
    """Whether `value`, which `frame` has dropped from its stack, is an existing iterator whose end may run code."""
    real = getattr(value, "real", None)
    if not isinstance(value, Lazy | Opaque) or not hasattr(type(real), "__next__") or type(real) in _PASSIVE_ITERATORS:
        return False
    return isinstance(frame.cap.realize(value), Opaque)
