"""When the objects of the captured program die, where that shows: a generator that is left in a try block goes on then, a
`__del__` runs, a weak reference tells.

Owns the question whether the end of a value runs code, and whether a frame lets go of it. Machine keeps what a variable
holds for as long as eager does, and breaks the graph where the last hold goes. Must not know how a break is written.
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
_QUALNAME: Final = vars(type)["__qualname__"].__get__  # whatever a metaclass says
_WIDTH: Final = 64
_QUIET: Final = (int, float, complex, str, bytes, bytearray, type(None), ModuleType, Tensor, slice, range)
_CONTAINERS: Final[tuple[Any, ...]] = (list, tuple, set, frozenset, deque)
# They hold nothing that goes on when it is dropped.
_ITERABLES: Final[tuple[Any, ...]] = ((), [], "", b"", range(0), {}, {}.items(), {}.values(), set())
_PASSIVE_ITERATORS: Final = frozenset(type(iter(v)) for v in _ITERABLES)


def ends_aloud(real: Any, depth: int = _DEPTH) -> bool:
    """Whether the end of an existing object may run code or be seen: its own, or that of something it holds."""
    kind = type(real)
    # Asked of the class: isinstance would ask the object, which a weak proxy passes on to one that may be gone.
    if issubclass(kind, type):
        return _is_of_a_call(real)
    if issubclass(kind, _QUIET) or kind in _PASSIVE_ITERATORS:
        return False
    if kind in ProxyTypes or issubclass(kind, ReferenceType):
        return kind in ProxyTypes or real.__callback__ is not None  # nobody is told any more when what it refers to dies
    if hasattr(kind, "__next__") or hasattr(kind, "__del__") or (getweakrefcount(real) and not issubclass(kind, Module)):
        return True
    return depth > 0 and any(ends_aloud(part, depth - 1) for part in _parts(real))


def _is_of_a_call(cls: type) -> bool:
    """Whether a class was made by a class statement in a function: those of modules do not end."""
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


def holds_aloud(value: Value, frame: Frame, depth: int = _DEPTH, owned: bool = False) -> bool:
    """Whether the end of a captured value may run code. What is held elsewhere, in an attribute, say, does not end with it.

    owned: whether the value is part of an existing object that may end.
    """
    if isinstance(value, Constant | TensorValue) or not (owned or value.source is None or _may_end(value, frame)):
        return False
    if isinstance(value, Lazy):
        return _ends_unseen(value, frame, depth) if value.seen is None else holds_aloud(value.seen, frame, depth, owned)
    if isinstance(value, GeneratorValue):  # it does once it has begun, which the instruction of a break may do
        return not value.finished and any(v is value for v in frame.stack)
    if depth == 0:
        return False
    parts = _captured_parts(value, frame)
    if isinstance(value, CellValue) and (value.contents is not None or value.written):
        parts = [value.contents] if value.contents is not None else []
    elif value.source is not None and ends_aloud(getattr(value, "real", None), depth):
        return True
    return any(holds_aloud(part, frame, depth - 1, value.source is not None) for part in parts)


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


def _ends_unseen(value: Lazy, frame: Frame, depth: int) -> bool:
    """ends_aloud() of what nobody has looked at. That its end is quiet holds for calls with a value of its type.

    Arguments that nobody looks at are not guarded: the caller holds them.
    """
    if ends_aloud(value.real, depth):
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

    is_made: whether a new value becomes an object at all. owned: whether the value is part of one that came in a variable.
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


def lets_go(frame: Frame, value: Value | None) -> bool:
    """Whether code may run now that `frame` has dropped a value that it held in a variable or on its stack."""
    return value is not None and holds_aloud(value, frame) and not _is_held(value, frame.cap.frames.running)


def lets_go_of_contents(frame: Frame, cell: CellValue) -> bool:
    """Whether code may run now that `frame` empties a cell, or gives it other contents."""
    if cell.contents is None and not cell.written:  # those from outside are not looked at
        return ends_aloud(getattr(cell, "real", None))
    return lets_go(frame, cell.contents)


def leaves_aloud(frame: Frame, returned: Value) -> bool:
    """Whether code may run when an inlined frame returns, or an exception leaves it, which drops its variables."""
    *callers, innermost = frame.cap.frames.running
    if not callers or innermost is not frame:
        return False
    dropped = (v for v in frame.locals if v is not None and v is not returned)
    return any(holds_aloud(v, frame) and not _is_held(v, callers) for v in dropped)


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
