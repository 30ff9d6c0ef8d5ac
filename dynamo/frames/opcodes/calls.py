"""Calls and returns."""

from __future__ import annotations

from dynamo.bytecode.decode import VERSION, Instruction
from dynamo.frames.frame import Frame
from dynamo.frames.handlers import Return, op
from dynamo.python.finalizers import return_is_visible
from dynamo.report import causes
from dynamo.report.errors import Unsupported
from dynamo.values.base import NULL
from dynamo.values.mappings import DictValue
from dynamo.values.protocols import Value
from dynamo.values.tensor import TensorValue


@op("KW_NAMES")
def kw_names(frame: Frame, ins: Instruction) -> None:
    frame.kw_names = frame.code.co_consts[ins.arg]


def take_callable(frame: Frame, args: list[Value]) -> tuple[Value, list[Value]]:
    """Pop the two items under the arguments: the callable, and its first argument if the method was loaded in two
    parts.
    """
    top, below = frame.pop_raw(), frame.pop_raw()
    if VERSION.callable_first:
        return below, args if top is NULL else [top, *args]
    return (top, args) if below is NULL else (below, [top, *args])


def split_names(args: list[Value], names: tuple[str, ...]) -> tuple[list[Value], dict[str, Value]]:
    """Positional and keyword arguments of a call whose last arguments are named."""
    n = len(args) - len(names)
    return args[:n], dict(zip(names, args[n:], strict=True))


@op("CALL")
def call(frame: Frame, ins: Instruction) -> None:
    names, frame.kw_names = frame.kw_names, ()
    args = frame.pop_many(ins.arg)
    fn, args = take_callable(frame, args)
    _call(frame, fn, *split_names(args, names))


@op("CALL_KW")
def call_kw(frame: Frame, ins: Instruction) -> None:
    names = frame.pop().as_constant()
    args = frame.pop_many(ins.arg)
    fn, args = take_callable(frame, args)
    _call(frame, fn, *split_names(args, names))


def _call(frame: Frame, fn: Value, args: list[Value], kwargs: dict[str, Value]) -> None:
    frame.cap.check_forced()
    frame.push(frame.cap.call(fn, args, kwargs, chain=True))


@op("CALL_FUNCTION_EX")
def call_function_ex(frame: Frame, ins: Instruction) -> None:
    cap = frame.cap
    kwargs: dict[str, Value] = {}
    if ins.arg & 1:
        mapping = frame.pop()
        if not isinstance(mapping, DictValue):
            raise Unsupported(causes.OPAQUE_OBJECT, f"a call with ** of {mapping.describe()}")
        for key, value in mapping.entries.values():
            name = cap.realize(key).as_constant()
            if not isinstance(name, str):
                cap.raise_(TypeError, "keywords must be strings")
            kwargs[name] = value
    starred = frame.pop()
    if VERSION.callable_first:
        frame.pop_raw()
        fn = frame.pop()
    else:
        fn = frame.pop()
        frame.pop_raw()
    if isinstance(starred, TensorValue) and starred.fake.ndim == 0:
        raise Unsupported(causes.OPAQUE_ITERATOR, "a call with * of a 0-d tensor")
    _call(frame, fn, cap.iteration.unpack(starred), kwargs)


@op("RETURN_VALUE")
def return_value(frame: Frame, ins: Instruction) -> Return:
    return _return(frame, frame.pop_raw())


@op("RETURN_CONST")
def return_const(frame: Frame, ins: Instruction) -> Return:
    return _return(frame, frame.constant(frame.code.co_consts[ins.arg]))


def _return(frame: Frame, value: Value) -> Return:
    if len(frame.cap.frames.running) > 1 and return_is_visible(frame, value):
        raise Unsupported(causes.GENERATOR, f"{frame.code.co_qualname} returns and drops what runs code when it ends")
    return Return(value)


@op("CALL_INTRINSIC_2")
def call_intrinsic_2(frame: Frame, ins: Instruction) -> None:
    raise Unsupported(causes.INSTRUCTION, f"CALL_INTRINSIC_2 {ins.arg}")
