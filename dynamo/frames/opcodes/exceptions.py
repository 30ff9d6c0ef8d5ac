"""Raising and handling of exceptions, and the with statement.

There is no block stack: handlers come from the exception table.
"""

from __future__ import annotations

from dynamo.bytecode.decode import Instruction
from dynamo.frames.frame import Frame
from dynamo.frames.handlers import op
from dynamo.report import causes
from dynamo.report.errors import Unsupported
from dynamo.values.base import NONE, Constant
from dynamo.values.objects import ClassValue, ExceptionValue
from dynamo.values.protocols import Raised, Value
from dynamo.values.sequences import TupleValue


@op("RAISE_VARARGS")
def raise_varargs(frame: Frame, ins: Instruction) -> None:
    cap = frame.cap
    if ins.arg == 0:
        current = cap.frames.handled
        if current is None:
            cap.raise_(RuntimeError, "No active exception to reraise")
        raise Raised(current)
    cause = frame.pop() if ins.arg == 2 else None
    exception = cap.exceptions.as_exception(frame.pop(), [])
    if cause is not None and isinstance(exception, ExceptionValue):
        if not (isinstance(cause, Constant) and cause.holds(None)):
            derives = isinstance(cause, ClassValue) and issubclass(cause.cls, BaseException)
            if not derives and not issubclass(cause.python_type(), BaseException):
                cap.raise_(TypeError, "exception causes must derive from BaseException")
            cause = cap.exceptions.as_exception(cause, [])
        exception.setattr(cap, "__cause__", cause)
    cap.exceptions.raise_value(exception)


@op("RERAISE")
def reraise(frame: Frame, ins: Instruction) -> None:
    exception = frame.pop()
    raise Raised(exception)


@op("PUSH_EXC_INFO")
def push_exc_info(frame: Frame, ins: Instruction) -> None:
    exception = frame.pop()
    before = frame.cap.frames.handled
    frame.push(NONE if before is None else before)
    frame.push(exception)
    frame.cap.frames.handled = exception


@op("POP_EXCEPT")
def pop_except(frame: Frame, ins: Instruction) -> None:
    before = frame.pop()
    frame.cap.frames.handled = None if isinstance(before, Constant) else before


@op("CHECK_EXC_MATCH")
def check_exc_match(frame: Frame, ins: Instruction) -> None:
    wanted = frame.pop()
    exception = frame.cap.realize(frame.stack[-1])
    frame.push(Constant(matches(frame, exception, wanted)))


def matches(frame: Frame, exception: Value, wanted: Value) -> bool:
    """Whether an `except` clause with these classes handles the exception."""
    if isinstance(wanted, TupleValue):
        return any(matches(frame, exception, frame.cap.realize(w)) for w in wanted.items)
    if not isinstance(wanted, ClassValue) or not issubclass(wanted.cls, BaseException):
        frame.cap.raise_(TypeError, "catching classes that do not inherit from BaseException is not allowed")
        raise AssertionError
    return wanted.cls in exception.python_type().__mro__  # not issubclass: the interpreter does not call __subclasscheck__


@op("CHECK_EG_MATCH")
def check_eg_match(frame: Frame, ins: Instruction) -> None:
    raise Unsupported(causes.EXCEPTION, "except*")


@op("PREP_RERAISE_STAR")
def prep_reraise_star(frame: Frame, ins: Instruction) -> None:
    raise Unsupported(causes.EXCEPTION, "except*")


# --- with ------------------------------------------------------------------------------------------------------


@op("BEFORE_WITH")
def before_with(frame: Frame, ins: Instruction) -> None:
    cap = frame.cap
    manager = frame.pop()
    kind = manager.python_type()
    for name in ("__enter__", "__exit__"):
        if not cap.classes.has(kind, name):
            hint = " (missed __exit__ method)" if name == "__exit__" else ""
            message = f"'{kind.__name__}' object does not support the context manager protocol{hint}"
            cap.raise_(TypeError, message)
    leave = cap.classes.special_method(manager, "__exit__")
    entered = cap.call(cap.classes.special_method(manager, "__enter__"), [], {})
    frame.push(leave)
    frame.push(entered)


@op("WITH_EXCEPT_START")
def with_except_start(frame: Frame, ins: Instruction) -> None:
    cap = frame.cap
    exception = cap.realize(frame.stack[-1])
    leave = frame.stack[-4]
    cls = cap.world.wrap_static(exception.python_type())
    frame.push(cap.call(leave, [cls, exception, exception.getattr(cap, "__traceback__")], {}))


@op("SETUP_ANNOTATIONS")
def setup_annotations(frame: Frame, ins: Instruction) -> None:
    raise Unsupported(causes.INSTRUCTION, "SETUP_ANNOTATIONS")
