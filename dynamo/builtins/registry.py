"""Builtins, and the C functions of the standard library that captured code may call, as a table by identity.

A row is a function of (machine, args, kwargs). What is not here ends the graph when it is called with captured values.
`Builtins` looks rows up.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from dynamo.python.calls import Row
from dynamo.report import causes
from dynamo.report.errors import Unsupported
from dynamo.values.builtin_subclasses import value_of_scalar
from dynamo.values.constant import NONE, Constant
from dynamo.values.mappings import DictValue
from dynamo.values.protocols import Machine, NotConstant, Value
from dynamo.values.sequences import ListValue
from dynamo.values.symbolic import SymbolicValue, SymIntValue
from dynamo.values.tensor import TensorValue

Args: TypeAlias = "list[Value]"
Kwargs: TypeAlias = "dict[str, Value]"

FUNCTIONS: Final[dict[Any, Row]] = {}
CLASSES: Final[dict[type, Row]] = {}
ZERO: Final = Constant(0)
ONE: Final = Constant(1)
SPECIAL: Final[dict[Any, Row]] = {}  # Python functions that are answered rather than followed
# What makes the row of a Python function with a code object, or of a callable of a class.
BY_CODE: Final[dict[types.CodeType, Callable[[Any], Row]]] = {}
BY_TYPE: Final[dict[type, Callable[[Any], Row]]] = {}


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
    """Looks rows up."""

    def function(self, fn: Any) -> Row | None:
        """The row of a function of C."""
        if isinstance(getattr(fn, "__self__", None), type) and fn.__name__ == "__subclasses__":
            return asked(fn)  # another object each time
        try:
            return FUNCTIONS.get(fn)
        except TypeError:  # not hashable: not in the table
            return None

    def made(self, kind: type) -> Row | None:
        """The row of a class that is called."""
        return CLASSES.get(kind)

    def special(self, fn: Any) -> Row | None:
        """The row of a Python function that is not followed."""
        return SPECIAL.get(fn)

    def of_code(self, fn: types.FunctionType) -> Row | None:
        """The row of a Python function that is known by its code."""
        make = BY_CODE.get(fn.__code__)
        return None if make is None else make(fn)

    def of_type(self, fn: Any) -> Row | None:
        """The row of a callable that is known by its class."""
        make = BY_TYPE.get(type(fn))
        return None if make is None else make(fn)


def constants(cap: Machine, args: Args, kwargs: Kwargs) -> tuple[list[Any], dict[str, Any]]:
    """Host values of constant arguments, lists of constants too. Raises: NotConstant."""
    return [_constant(cap, a) for a in args], {k: _constant(cap, v) for k, v in kwargs.items()}


def _constant(cap: Machine, value: Value) -> Any:
    value = value_of_scalar(cap, value)
    if isinstance(value, ListValue) and value.cls is list and value.owner is None:
        return [_constant(cap, item) for item in value.items]
    if isinstance(value, DictValue) and value.cls is dict and value.owner is None:
        return {_constant(cap, k): _constant(cap, v) for k, v in value.entries.values()}
    return value.as_constant()


def on_constants(fn: Any) -> Row:
    """A row for a pure function: it runs on constants at capture."""

    def row(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
        try:
            given, keywords = constants(cap, args, kwargs)
        except NotConstant:
            for arg in args:
                if isinstance(cap.realize(arg), TensorValue):
                    raise Unsupported(causes.DATA_DEPENDENT_VALUE, f"{getattr(fn, '__name__', fn)}() of {arg.describe()}") from None
            raise Unsupported(causes.UNKNOWN_CALL, f"{getattr(fn, '__name__', fn)}() of values that are not constant") from None
        return cap.world.wrap_new(cap.host(fn, *given, **keywords))

    return row


def asked(fn: Any) -> Row:
    """A question about the process, which is asked again at each call."""

    def row(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
        answer = cap.host(fn)
        cap.world.guards.add("call_eq", (), fn, answer, origin=cap.origin)
        return cap.world.wrap_new(answer)

    return row


def named(fn: Any, cause: causes.Cause) -> Row:
    """A row that ends the graph for `cause`."""

    def row(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
        raise Unsupported(cause, f"builtin {fn.__name__}()")

    return row


def symbolic(cap: Machine, args: Args) -> SymIntValue | None:
    """The only argument, if it is an int known as an expression."""
    first = cap.realize(args[0]) if len(args) == 1 else None
    return SymIntValue(first.symbolic) if isinstance(first, SymIntValue) else None


def of_symbolic(fn: Callable[[Any], Any], plain: Row) -> Row:
    """A row of one argument: `fn` where that is a symbolic number."""

    def row(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
        first = cap.realize(args[0]) if len(args) == 1 and not kwargs else NONE
        return cap.world.wrap_new(cap.host(fn, first.symbolic)) if isinstance(first, SymbolicValue) else plain(cap, args, kwargs)

    return row
