"""Visible finalizers: objects whose end runs code (a generator suspended in a try block, a `__del__`) or clears a weak reference.

Owns the questions whether the end of a value is visible, and whether a frame drops the last reference to it. A capture keeps the
value of a variable for as long as eager does, and breaks the graph where the last reference goes. Must not know how a break is
written.
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
from dynamo.values.base import Lazy, Opaque
from dynamo.values.constant import Constant
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
# They hold nothing that runs when they are dropped.
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
    """Whether a class was made by a class statement in a function: classes of modules do not end."""
    return "<locals>" in _QUALNAME(cls)


def _parts(real: Any) -> Iterable[Any]:
    base = next((base for base in _CONTAINERS if is_a(real, base)), None)
    if base is not None:  # not by its own __iter__, which is the program's to call
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
    except ValueError:  # it is empty
        return ()


def value_end_is_visible(value: Value, frame: Frame, depth: int = _DEPTH, owned: bool = False) -> bool:
    """Whether the end of a captured value may run code. An object that is also held elsewhere, as in an attribute, does not end with it.

    owned: whether the value is part of an existing object that may end.
    """
    if isinstance(value, Constant | TensorValue) or not (owned or value.source is None or _may_end(value, frame)):
        return False
    if isinstance(value, Lazy):
        return _unused_end_is_visible(value, frame, depth) if value.seen is None else value_end_is_visible(value.seen, frame, depth, owned)
    if isinstance(value, GeneratorValue):  # it does once it has begun, which the instruction of a break may do
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
    if not frames[0].cap.exceptions.passed_frames:
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
    if isinstance(value.source, ItemSource | DictItemSource) and not value.source.is_constant_rooted:  # the entry holds those
        frame.cap.world.guards.add("type", value.source, type(value.real), origin=frame.origin())
    return False


def _may_end(value: Value, frame: Frame) -> bool:
    """Whether an existing value came in a variable, which may be all that holds it, or out of a container that the captured
    program has changed."""
    source = value.source
    if isinstance(source, ItemSource | DictItemSource):
        return any(v.source == source.parent for v in frame.cap.effects.written())
    return isinstance(source, SlotSource | CellContentsSource)


def may_be_watched(
    value: Value, frame: Frame, is_made: Callable[[Value], bool], depth: int = _DEPTH, owned: bool = False
) -> bool:
    """Whether code that is not captured may make a weak reference to `value` or to a part of it, all of whose holders could be
    variables that nothing reads: it came in one, or it is new and handed out. Tensors are let go of: their memory is needed.

    is_made: whether a new value becomes an object. owned: whether the value is part of an object that came in a variable.
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
    """Whether there can be weak references to an existing object or to a part of it, or it is one, which can be counted."""
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
        if is_a(held, Value):  # it may be an existing object, of any class
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
    """Whether code may run now that `frame` has dropped a value that it held in a variable or on its stack."""
    return value is not None and value_end_is_visible(value, frame) and not _is_held(value, frame.cap.frames.running)


def cell_drop_is_visible(frame: Frame, cell: CellValue) -> bool:
    """Whether code may run now that `frame` empties a cell, or gives it other contents."""
    if cell.contents is None and not cell.written:  # those from outside are not looked at
        return end_is_visible(getattr(cell, "real", None))
    return drop_is_visible(frame, cell.contents)


def return_is_visible(frame: Frame, returned: Value) -> bool:
    """Whether code may run when an inlined frame returns, or an exception leaves it, which drops its variables."""
    *callers, innermost = frame.cap.frames.running
    if not callers or innermost is not frame:
        return False
    dropped = (v for v in frame.locals if v is not None and v is not returned)
    return any(value_end_is_visible(v, frame) and not _is_held(v, callers) for v in dropped)


def _is_held(value: Value, frames: list[Frame]) -> bool:
    held = value.seen if isinstance(value, Lazy) and value.seen is not None else value
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
