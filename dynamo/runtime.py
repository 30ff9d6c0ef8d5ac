"""What generated code calls: small helpers, and the record of a continuation to go on with."""

from __future__ import annotations

import itertools
import os
from types import FunctionType, MethodType, TracebackType
from typing import Any, Final

from dynamo import _native
from dynamo.sources import type_attribute
from eager import _native as eager_native

GENERATED: Final = "__framejit_generated__"  # a global of every generated function
_OWN_DIR: Final = os.path.dirname(os.path.abspath(__file__)) + os.sep


class Tail:
    """What a continuation returns to go on with another one without growing the stack."""

    __slots__ = ("args", "target")

    def __init__(self, target: Any, *args: Any) -> None:
        self.target = target
        self.args = args


def drive(target: Any, *args: Any) -> Any:
    """Call a continuation, and those it goes on with, to the end."""
    result = target(*args)
    while type(result) is Tail:
        result = result.target(*result.args)
    return result


def advanced(iterator: Any, n: int) -> Any:
    """A list, tuple or range iterator after n steps."""
    iterator.__setstate__(n)
    return iterator


def skipped(iterator: Any, n: int) -> Any:
    """An iterator after n steps that are known to run no user code."""
    for _ in range(n):
        next(iterator)
    return iterator


def dict_replace(target: dict[Any, Any], items: list[tuple[Any, Any]]) -> None:
    """Give `target` exactly these items in this order. Entries that need not move are left alone."""
    at = 0
    for (old_key, old_value), (key, value) in zip(dict.items(target), items, strict=False):
        if old_key is not key or old_value is not value:
            break
        at += 1
    if at != len(target) or at != len(items):
        dict.clear(target)
        for key, value in items:
            dict.__setitem__(target, key, value)


def clear_cell(cell: Any) -> None:
    """Make a cell empty."""
    del cell.cell_contents


def object_new(cls: type) -> Any:
    """An instance with nothing set."""
    return object.__new__(cls)


def exception_new(cls: type, args: tuple[Any, ...], cause: Any, context: Any, suppress: bool) -> BaseException:
    """An exception as if it had been raised: its args, cause and context, but no __init__ run."""
    made: BaseException = cls.__new__(cls, *args)
    made.args = args
    made.__cause__ = cause
    made.__context__ = context
    made.__suppress_context__ = suppress
    if isinstance(made, StopIteration):
        made.value = args[0] if args else None
    return made


def give_traceback(exception: BaseException) -> None:
    """Raise and catch `exception`: the interpreter takes for granted that one being handled has a traceback."""
    context, cause, suppress = exception.__context__, exception.__cause__, exception.__suppress_context__
    try:
        raise exception
    except BaseException:  # noqa: BLE001 - exactly the one raised
        exception.__context__, exception.__cause__, exception.__suppress_context__ = context, cause, suppress


def tidy_traceback(error: BaseException) -> None:
    """Take frames that the user did not write out of a traceback.

    Generated code shows the user's file and function. Where it handed over to a continuation, or to the original frame
    re-entered, that one shows the function again, at the line that counts: then the generated frame goes.
    """
    entries: list[TracebackType] = []
    entry = error.__traceback__
    while entry is not None:
        entries.append(entry)
        entry = entry.tb_next
    ours = [e.tb_frame.f_code.co_filename.startswith(_OWN_DIR) for e in entries]
    if not any(ours) or ours[-1]:
        return  # nothing to hide, or an error of the compiler itself
    kept = [
        e for i, e in enumerate(entries) if not ours[i] and not (GENERATED in e.tb_frame.f_globals and ours[i + 1 : i + 2] == [True])
    ]
    for before, after in itertools.pairwise(kept):
        before.tb_next = after
    error.__traceback__ = kept[0]


def set_annotations(fn: Any, annotations: Any) -> None:
    """What MAKE_FUNCTION does with annotations: a tuple of names and values alternating, or a dict."""
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
    """IMPORT_NAME by the namespace's own __import__."""
    builtins = namespace.get("__builtins__", __builtins__)
    found = builtins["__import__"] if isinstance(builtins, dict) else builtins.__import__
    return found(name, namespace, None, fromlist, level)


def dict_update(target: dict[Any, Any], other: Any) -> None:
    """DICT_UPDATE"""
    if not hasattr(other, "keys"):
        raise TypeError(f"'{type(other).__name__}' object is not a mapping")
    target.update(other)


ENDED: Final = object()

HELPERS: Final[dict[str, Any]] = {
    "ENDED": ENDED,
    "FunctionType": FunctionType,
    "MethodType": MethodType,
    "NULL": _native.NULL,
    "Tail": Tail,
    "advanced": advanced,
    "call_in_region": _native.call_in_region,
    "clear_cell": clear_cell,
    "dict_getitem": dict.__getitem__,
    "dict_replace": dict_replace,
    "dict_setitem": dict.__setitem__,
    "dict_update": dict_update,
    "drive": drive,
    "enter_context": enter_context,
    "exception_new": exception_new,
    "import_module": import_module,
    "make_cell": _native.make_cell,
    "object_delattr": object.__delattr__,
    "object_new": object_new,
    "object_setattr": object.__setattr__,
    "resume": _native.resume,
    "set_annotations": set_annotations,
    "set_grad_enabled": eager_native.set_grad_enabled,
    "skipped": skipped,
    "tuple_new": tuple.__new__,
    "type_attribute": type_attribute,
}

_native.set_error_callback(tidy_traceback)
