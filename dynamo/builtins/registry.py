"""Builtins, and the C functions of the standard library that captured code may call, as a table by identity.

A row is a function of (capture, args, kwargs). What is not here ends the graph when it is called with captured values.
Part of Capture: `Builtins` looks rows up.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from dynamo.report import causes
from dynamo.report.errors import Unsupported
from dynamo.values.base import NotConstant, Value
from dynamo.values.builtin_subclasses import value_of_scalar
from dynamo.values.constant import NONE, TRUE, Constant
from dynamo.values.mappings import DictValue
from dynamo.values.objects import ExceptionValue, UserObject
from dynamo.values.sequences import ListValue
from dynamo.values.symbolic import SymbolicValue, SymIntValue
from dynamo.values.tensor import TensorValue
from eager.nn import Module
from eager.nn._hooks import GLOBAL_CALL_HOOKS

if TYPE_CHECKING:
    from dynamo.frames.capture import Capture

Args: TypeAlias = "list[Value]"
Kwargs: TypeAlias = "dict[str, Value]"
Row: TypeAlias = "Callable[[Capture, Args, Kwargs], Value]"

FUNCTIONS: Final[dict[Any, Row]] = {}
CLASSES: Final[dict[type, Row]] = {}
ZERO: Final = Constant(0)
ONE: Final = Constant(1)
SPECIAL: Final[dict[Any, Row]] = {}  # Python functions that are answered rather than followed


def function(*fns: Any) -> Callable[[Row], Row]:
    """Register the row of C functions."""

    def register(row: Row) -> Row:
        for fn in fns:
            FUNCTIONS[fn] = row
        return row

    return register


def cls(kind: type) -> Callable[[Row], Row]:
    """Register what calling a class does."""

    def register(row: Row) -> Row:
        CLASSES[kind] = row
        return row

    return register


class Builtins:
    """Part of Capture: the look-up."""

    def builtin_function(self, fn: Any) -> Row | None:
        if isinstance(getattr(fn, "__self__", None), type) and fn.__name__ == "__subclasses__":
            return asked(fn)  # another object each time
        try:
            return FUNCTIONS.get(fn)
        except TypeError:  # not hashable: not in the table
            return None

    def builtin_class(self, kind: type) -> Row | None:
        return CLASSES.get(kind)

    def special_function(self, fn: Any) -> Row | None:
        return SPECIAL.get(fn)

    def object_method(self, owner: UserObject, name: str, args: Args, kwargs: Kwargs) -> Value:
        """object.<name>(owner, ...): what super() and explicit base calls reach."""
        cap: Capture = self  # type: ignore[assignment]
        if name == "__setattr__" and not isinstance(owner.real, Module):
            cap.generic_set(owner, attribute_name(cap, args[0]), args[1])
            return NONE
        if name == "__getattribute__":
            return cap.generic_attribute(owner, owner.cls, attribute_name(cap, args[0]))
        if name == "__delattr__" and not isinstance(owner.real, Module):
            cap.generic_delete(owner, attribute_name(cap, args[0]))
            return NONE
        if issubclass(owner.cls, types.SimpleNamespace) and name in ("__init__", "__eq__", "__ne__"):
            return self._namespace_method(owner, name, args, kwargs)
        if name == "__init__":
            if isinstance(owner, ExceptionValue):
                if owner.initialized or owner.source is not None:
                    raise Unsupported(causes.EXCEPTION, f"{owner.describe()}.__init__() a second time")
                cap.mutating(owner)
                owner.args = list(args)
                owner.initialized = True
            return NONE
        if name == "__eq__":
            return TRUE if cap.same_object(owner, args[0]) else Constant(NotImplemented)
        if name == "__ne__":
            equal = cap.realize(cap.call_method(owner, "__eq__", args, {}))
            return equal if isinstance(equal, Constant) and equal.holds(NotImplemented) else Constant(not cap.truth(equal))
        if name == "__init_subclass__":
            return NONE
        raise Unsupported(causes.OPAQUE_OBJECT, f"object.{name} of {owner.describe()}")

    def _namespace_method(self, owner: UserObject, name: str, args: Args, kwargs: Kwargs) -> Value:
        """SimpleNamespace.<name>(owner, ...)"""
        if name != "__init__" or args:
            raise Unsupported(causes.OPAQUE_OBJECT, f"{name} of {owner.describe()}")
        for attribute, item in kwargs.items():
            self.generic_set(owner, attribute, item)  # type: ignore[attr-defined]
        return NONE

    def module_has_hooks(self, obj: UserObject) -> bool:
        """Whether the call of a module runs hooks: its own, or those of every module. Guarded."""
        cap: Capture = self  # type: ignore[assignment]
        found = any(self.has_hooks(registry) for registry in GLOBAL_CALL_HOOKS)
        for name in ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks"):
            hooks = cap.realize(obj.getattr(cap, name))
            found = found or hooks.truth(cap)
        return found

    def has_hooks(self, registry: Any) -> bool:
        """Whether a process-wide registry of hooks has entries. Guarded."""
        cap: Capture = self  # type: ignore[assignment]
        return cap.wrap_static(registry, "global module hooks").truth(cap)


def constants(cap: Capture, args: Args, kwargs: Kwargs) -> tuple[list[Any], dict[str, Any]]:
    """Host values of constant arguments, lists of constants too. Raises: NotConstant."""
    return [_constant(cap, a) for a in args], {k: _constant(cap, v) for k, v in kwargs.items()}


def _constant(cap: Capture, value: Value) -> Any:
    value = value_of_scalar(cap, value)
    if isinstance(value, ListValue) and value.cls is list and value.owner is None:
        return [_constant(cap, item) for item in value.items]
    if isinstance(value, DictValue) and value.cls is dict and value.owner is None:
        return {_constant(cap, k): _constant(cap, v) for k, v in value.entries.values()}
    return value.as_constant()


def on_constants(fn: Any) -> Row:
    """A row for a pure function: it runs on constants at capture."""

    def row(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
        try:
            given, keywords = constants(cap, args, kwargs)
        except NotConstant:
            for arg in args:
                if isinstance(cap.realize(arg), TensorValue):
                    raise Unsupported(causes.DATA_DEPENDENT_VALUE, f"{getattr(fn, '__name__', fn)}() of {arg.describe()}") from None
            raise Unsupported(causes.UNKNOWN_CALL, f"{getattr(fn, '__name__', fn)}() of values that are not constant") from None
        return cap.wrap_new(cap.host(fn, *given, **keywords))

    return row


def attribute_name(cap: Capture, value: Value) -> str:
    """The name of an attribute, as it was given. What is no text is left to Python, which refuses it."""
    name = cap.realize(value).as_constant()
    if not isinstance(name, str):
        raise Unsupported(causes.ATTRIBUTE, f"an attribute whose name is {name!r}")
    return name


def asked(fn: Any) -> Row:
    """A question about the process, which is asked again at each call."""

    def row(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
        answer = cap.host(fn)
        cap.guards.add("call_eq", (), fn, answer, origin=cap.origin)
        return cap.wrap_new(answer)

    return row


def named(fn: Any, cause: causes.Cause) -> Row:
    """A row that ends the graph for `cause`."""

    def row(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
        raise Unsupported(cause, f"builtin {fn.__name__}()")

    return row


def symbolic(cap: Capture, args: Args) -> SymIntValue | None:
    """The only argument, if it is an int known as an expression."""
    first = cap.realize(args[0]) if len(args) == 1 else None
    return SymIntValue(first.symbolic) if isinstance(first, SymIntValue) else None


def of_symbolic(fn: Callable[[Any], Any], plain: Row) -> Row:
    """A row of one argument: `fn` where that is a symbolic number."""

    def row(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
        first = cap.realize(args[0]) if len(args) == 1 and not kwargs else NONE
        return cap.wrap_new(cap.host(fn, first.symbolic)) if isinstance(first, SymbolicValue) else plain(cap, args, kwargs)

    return row


def is_none(value: Value) -> bool:
    """Whether value is None."""
    return isinstance(value, Constant) and value.holds(None)
