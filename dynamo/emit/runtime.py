"""Helpers that generated code calls. `HELPERS` lists them by name."""

from __future__ import annotations

import contextlib
import itertools
import random
import sys
from collections import OrderedDict, deque
from types import FunctionType, MethodType, SimpleNamespace, WrapperDescriptorType
from typing import Any, Final

from dynamo import _native
from dynamo.builtins.lru_cache import repeat_cached_call
from dynamo.bytecode.tracebacks import Owner, adopt, caught, tidy_traceback, traceback_of, with_tracebacks
from dynamo.guards.sources import content_item, type_attribute
from dynamo.report.causes import forbid
from dynamo.values.set_order import built
from dynamo.world.array_memory import numpy_scalar, read_only
from eager import _native as eager_native
from eager.base import thread_state
from eager.optable.out import become
from eager.random import go_back, places
from eager.tape.inplace import BeforeWrites, take_geometry


def advanced(iterator: Any, n: int) -> Any:
    """A list, tuple or range iterator after n steps."""
    iterator.__setstate__(n)
    return iterator


def skipped(iterator: Any, n: int) -> Any:
    """An iterator after n steps, none of which runs user code."""
    for _ in range(n):
        next(iterator)
    return iterator


def stepped(iterator: Any, n: int) -> None:
    """Take at most n items from an iterator that runs no user code."""
    for _ in itertools.islice(iterator, n):
        pass


def exhausted(iterator: Any) -> None:
    """Move an iterator over a list, a tuple or a str to its end."""
    iterator.__setstate__(sys.maxsize)
    next(iterator, None)


def delete_attribute(target: Any, name: str) -> None:
    """Delete an attribute if `target` has it. A program may set and delete an attribute that never existed outside."""
    with contextlib.suppress(AttributeError):
        object.__delattr__(target, name)


def dict_class(target: dict[Any, Any]) -> type[dict[Any, Any]]:
    """The built-in class that stores the entries of `target`. An OrderedDict keeps the order in a separate list."""
    return OrderedDict if isinstance(target, OrderedDict) else dict


def dict_setitem(target: dict[Any, Any], key: Any, value: Any) -> None:
    """`target[key] = value` by the built-in class; an override in a subclass does not run."""
    dict_class(target).__setitem__(target, key, value)


def dict_replace(target: dict[Any, Any], items: list[tuple[Any, Any]]) -> None:
    """Give `target` exactly these items in this order.

    Entries of a common prefix stay in place, because an iterator of the program may be iterating over them. The others are removed
    and added again at the end.
    """
    kind = dict_class(target)
    old = list(kind.items(target))
    stays = 0  # length of the prefix of `items` that `target` has in this order
    for key, value in old:
        if stays < len(items) and items[stays][0] is key:
            if items[stays][1] is not value:
                kind.__setitem__(target, key, items[stays][1])
            stays += 1
        else:
            kind.__delitem__(target, key)
    for key, value in items[stays:]:
        kind.__setitem__(target, key, value)


def list_replace(target: list[Any], items: list[Any]) -> None:
    """Give `target` exactly these items; an override in a subclass does not run."""
    list.__setitem__(target, slice(None), items)


def deque_replace(target: deque[Any], items: list[Any]) -> None:
    """Assign the items of a deque one by one. items: as many as `target` has."""
    for i, item in enumerate(items):
        target[i] = item


def clear_cell(cell: Any) -> None:
    """Make a cell empty."""
    del cell.cell_contents


def object_new(cls: type) -> Any:
    """An instance without attributes."""
    return (SimpleNamespace if issubclass(cls, SimpleNamespace) else object).__new__(cls)


def exception_new(cls: type, args: tuple[Any, ...], initialized: bool) -> BaseException:
    """An exception with these args, without a call of a Python __init__. initialized: call the __init__ of its C base class."""
    made: BaseException = cls.__new__(cls, *args)
    if initialized:
        base = next(b for b in cls.__mro__ if isinstance(b.__dict__.get("__init__"), WrapperDescriptorType))
        base.__dict__["__init__"](made, *args)
    made.args = args
    return made


def exception_link(made: BaseException, cause: Any, context: Any, suppress: bool, traceback: Any) -> None:
    """Set the attributes that a raise statement sets."""
    made.__cause__ = cause
    made.__context__ = context
    made.__suppress_context__ = suppress
    made.__traceback__ = traceback


def set_annotations(fn: Any, annotations: Any) -> None:
    """Set annotations as MAKE_FUNCTION does. annotations: a tuple of alternating names and values, or a dict."""
    if isinstance(annotations, tuple):
        annotations = dict(zip(annotations[::2], annotations[1::2], strict=True))
    fn.__annotations__ = annotations


def enter_context(manager: Any) -> tuple[Any, Any]:
    """BEFORE_WITH: (bound __exit__, result of __enter__)."""
    kind = type(manager)
    try:
        enter = type_attribute(kind, "__enter__")
    except AttributeError:
        raise TypeError(f"'{kind.__name__}' object does not support the context manager protocol") from None
    try:
        leave = type_attribute(kind, "__exit__")
    except AttributeError:
        message = f"'{kind.__name__}' object does not support the context manager protocol (missed __exit__ method)"
        raise TypeError(message) from None
    leave = leave.__get__(manager, kind) if hasattr(type(leave), "__get__") else leave
    return leave, (enter.__get__(manager, kind) if hasattr(type(enter), "__get__") else enter)()


def import_module(name: str, namespace: dict[str, Any], fromlist: Any, level: int) -> Any:
    """IMPORT_NAME, with the __import__ of the namespace."""
    builtins = namespace.get("__builtins__", __builtins__)
    found = builtins["__import__"] if isinstance(builtins, dict) else builtins.__import__
    return found(name, namespace, None, fromlist, level)


def dict_update(target: dict[Any, Any], other: Any) -> None:
    """DICT_UPDATE"""
    if not hasattr(other, "keys"):
        raise TypeError(f"'{type(other).__name__}' object is not a mapping")
    target.update(other)


def take_view(t: Any, name: str, *args: Any, **kwargs: Any) -> None:
    """Give `t` the geometry of its view t.name(...) in place. The change does not count as a write: the graph may have saved `t` for
    backward after the program changed it."""
    take_geometry(t, getattr(t, name)(*args, **kwargs), become, written=False)


ENDED: Final = object()

HELPERS: Final[dict[str, Any]] = {
    "ENDED": ENDED,
    "FunctionType": FunctionType,
    "MethodType": MethodType,
    "NULL": _native.NULL,
    "advanced": advanced,
    "repeat_cached_call": repeat_cached_call,
    "before_writes": BeforeWrites,
    "built": built,
    "caught": caught,
    "call_in_region": _native.call_in_region,
    "clear_cell": clear_cell,
    "content_item": content_item,
    "dict_getitem": dict.__getitem__,
    "dict_replace": dict_replace,
    "dict_setitem": dict_setitem,
    "delete_attribute": delete_attribute,
    "deque_replace": deque_replace,
    "dict_update": dict_update,
    "drive": _native.drive,
    "enter_context": enter_context,
    "exhausted": exhausted,
    "exc_info": sys.exc_info,
    "exception_link": exception_link,
    "exception_new": exception_new,
    "forbid": forbid,
    "generators_at": places,
    "generators_back": go_back,
    "import_module": import_module,
    "iterator_owner": _native.iterator_owner,
    "list_replace": list_replace,
    "numpy_scalar": numpy_scalar,
    "make_cell": _native.make_cell,
    "object_new": object_new,
    "object_setattr": object.__setattr__,
    "owner": Owner,
    "random_state": random.getstate,
    "read_only": read_only,
    "resume": _native.resume,
    "set_annotations": set_annotations,
    "set_grad_enabled": eager_native.set_grad_enabled,
    "set_inference_mode": eager_native.set_inference_mode,
    "set_random_state": random.setstate,
    "skipped": skipped,
    "stepped": stepped,
    "switch_autocast": thread_state.switch_autocast,
    "tail": _native.tail,
    "take_view": take_view,
    "tensor_from_array": eager_native.tensor_from_array,
    "traceback_of": traceback_of,
    "tuple_new": tuple.__new__,
    "type_attribute": type_attribute,
    "with_tracebacks": with_tracebacks,
}

_native.set_error_callback(tidy_traceback)
_native.set_adopt_callback(adopt)
