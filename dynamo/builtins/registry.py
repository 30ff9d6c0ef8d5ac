"""Rows of the builtin table: for builtins, and for the C functions of the standard library that captured code may call.

A row is a function of (machine, args, kwargs). The table is `policy.callees.ANSWERS`. A C function without a row breaks
the graph when it is called with captured values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from dynamo.policy.callees import ANSWER_RULES, ANSWERS
from dynamo.report import causes
from dynamo.report.errors import Unsupported
from dynamo.values.base import NONE, Constant
from dynamo.values.builtin_subclasses import value_of_scalar
from dynamo.values.protocols import Machine, NotConstant, Value
from dynamo.values.symbolic import SymbolicValue, SymIntValue
from dynamo.values.tensor import TensorValue
from dynamo.values.trees import to_host

Args: TypeAlias = "list[Value]"
Kwargs: TypeAlias = "dict[str, Value]"

Row: TypeAlias = "Callable[[Machine, Args, Kwargs], Value]"
ZERO: Final = Constant(0)
ONE: Final = Constant(1)


def answers(*targets: Any) -> Callable[[Row], Row]:
    """Register the decorated function as the row of these callees."""

    def register(row: Row) -> Row:
        ANSWERS.update(dict.fromkeys(targets, row))
        return row

    return register


_CONTAINERS: Final = frozenset({list, dict})  # a tuple of constants is a constant itself


def constants(cap: Machine, args: Args, kwargs: Kwargs) -> tuple[list[Any], dict[str, Any]]:
    """Host values of constant arguments, and of lists and dicts of constants. Raises: NotConstant."""

    def leaf(value: Value) -> Any:
        return value_of_scalar(cap, value).as_constant()

    return [to_host(cap, a, _CONTAINERS, leaf) for a in args], {k: to_host(cap, v, _CONTAINERS, leaf) for k, v in kwargs.items()}


def on_constants(fn: Any) -> Row:
    """A row for a pure function: the function runs at capture, on constants."""

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


def process_query(fn: Any) -> Row:
    """The row of a query about the process; a guard repeats the query at each call."""

    def row(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
        answer = cap.host(fn)
        cap.world.guards.add("call_eq", (), fn, answer, origin=cap.origin)
        return cap.world.wrap_new(answer)

    return row


def symbolic(cap: Machine, args: Args) -> SymIntValue | None:
    """The only argument, if it is an int that is known as an expression."""
    first = cap.realize(args[0]) if len(args) == 1 else None
    return SymIntValue(first.symbolic) if isinstance(first, SymIntValue) else None


def of_symbolic(fn: Callable[[Any], Any], plain: Row) -> Row:
    """A row of one argument: `fn` for a symbolic number, `plain` for any other value."""

    def row(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
        first = cap.realize(args[0]) if len(args) == 1 and not kwargs else NONE
        return cap.world.wrap_new(cap.host(fn, first.symbolic)) if isinstance(first, SymbolicValue) else plain(cap, args, kwargs)

    return row


def _subclasses(fn: Any) -> Row | None:
    """The row of cls.__subclasses__, a method that is a new object at each read; None for any other callee."""
    return process_query(fn) if isinstance(getattr(fn, "__self__", None), type) and fn.__name__ == "__subclasses__" else None


ANSWER_RULES.append(_subclasses)
