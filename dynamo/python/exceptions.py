"""Exceptions of the captured program: how they are made and raised, and exceptions of host functions."""

from __future__ import annotations

import itertools
import re
import warnings
from collections.abc import Callable
from typing import Any, Final, NoReturn

from dynamo.report import causes
from dynamo.report.errors import InternalCaptureError, Steering, Unsupported
from dynamo.values.base import NONE, Constant
from dynamo.values.objects import ClassValue, ExceptionValue, Passed, UserObject
from dynamo.values.protocols import Frame, Machine, Raised, Value
from dynamo.values.sequences import TupleValue
from dynamo.world.wrap import is_exception_class
from eager.base.records import dataclass
from eager.base.symfloat import SymFloat
from eager.base.symint import SymInt
from fxir.symbols.shapes import GuardOnDataDependentSymNode

_INTERNAL = (Steering, InternalCaptureError, GuardOnDataDependentSymNode)
# A filter of warnings that concerns calls made by this package alone, in any thread.
_OF_OUR_CALLS: Final = ("error", None, Warning, re.compile(r"dynamo\."), 0)


@dataclass(slots=True, eq=False)
class Exceptions:
    """Makes and raises exceptions of the captured program. The stack of frames holds the handled exception."""

    cap: Machine

    def host(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """fn(*args, **kwargs) on host values; its exception is raised in the captured program.

        A function that warns breaks the graph: it must run in ordinary Python at each call, so that the warning shows
        the user's line.
        """
        filters: Any = warnings.filters
        filters.insert(0, _OF_OUR_CALLS)
        try:
            return fn(*args, **kwargs)
        except _INTERNAL:
            raise
        except Warning as warning:
            raise Unsupported(causes.UNKNOWN_CALL, f"{getattr(fn, '__name__', fn)}(), which warns: {warning}") from None
        except Exception as error:
            if any(isinstance(a, SymInt | SymFloat) for a in args):  # Python's result, or its error message, for the number
                return self.host(fn, *(_number(a) for a in args), **kwargs)
            raise Raised(self.with_context(self.like(error))) from error
        finally:
            if _OF_OUR_CALLS in filters:
                filters.remove(_OF_OUR_CALLS)

    def like(self, error: BaseException) -> ExceptionValue:
        """A captured exception with the class and the arguments of the host's `error`."""
        args = [self.cap.world.wrap_new(a) for a in error.args]
        value = ExceptionValue(type(error), args)
        for name in ("name", "obj", "path"):
            held = getattr(error, name, None)
            if held is not None and isinstance(held, str):
                self.preset(value, name, Constant(held))
        slots = (name for kind in type(error).__mro__ for name in vars(kind).get("__slots__", ()) if hasattr(error, name))
        # Slots and attributes that an __init__ in Python sets.
        for name, held in {**{name: getattr(error, name) for name in slots}, **vars(error)}.items():
            self.preset(value, name, self.cap.world.wrap_new(held))
        return value

    def preset(self, value: Value, name: str, attribute: Value) -> None:
        """Set an attribute that the constructor would have set. It does not count as an effect of the program."""
        self.cap.effects.preset(value, name, attribute)

    def passes(self, value: Value, frame: Frame) -> None:
        """Add an entry to the traceback: an exception was raised in `frame`, or left its callee."""
        if isinstance(value, ExceptionValue):
            callers = tuple(itertools.takewhile(lambda f: f is not frame, self.cap.frames.running))
            value.passed.insert(0, Passed(frame.place(), frame, callers))
            self.cap.frames.passed += (*callers, frame)
            if value.source is not None:
                self.cap.effects.change(value)

    def with_context(self, value: Value) -> Value:
        """Set the handled exception as the context of a new exception."""
        handled = self.cap.frames.handled
        if handled is None and isinstance(value, ExceptionValue) and value.source is None:
            value.raised_bare = value.context is NONE
        if handled is None or handled is value:
            return value
        if not isinstance(value, ExceptionValue) or value.source is not None:
            raise Unsupported(causes.EXCEPTION, "an exception from outside, raised while a different exception is handled")
        link: Value = handled  # the chain must not lead back to the value; it may already be a cycle
        seen: set[int] = set()
        while isinstance(link, ExceptionValue) and link.source is None and id(link) not in seen:
            seen.add(id(link))
            if link.context is value:
                link.context = NONE
                break
            link = link.context
        value.context = handled
        return value

    def new(self, cls: type, args: list[Value]) -> ExceptionValue:
        return ExceptionValue(cls, args)

    def raise_(self, cls: type, *args: Any) -> NoReturn:
        """Raise cls(*args) in the captured program; args are host constants."""
        raise Raised(self.with_context(ExceptionValue(cls, [self.cap.world.wrap_new(a) for a in args])))

    def raise_name_error(self, name: str) -> NoReturn:
        """Raise the NameError of a missing global."""
        value = ExceptionValue(NameError, [Constant(f"name '{name}' is not defined")])
        self.preset(value, "name", Constant(name))
        raise Raised(self.with_context(value))

    def raise_values(self, cls: type, args: list[Value]) -> NoReturn:
        """Raise cls(*args); args are captured values."""
        raise Raised(self.with_context(ExceptionValue(cls, args)))

    def raise_value(self, exception: Value) -> NoReturn:
        """`raise exception`"""
        raise Raised(self.with_context(exception))

    def raise_from(self, cls: type, message: str, cause: Value) -> NoReturn:
        """`raise cls(message) from cause`"""
        value = ExceptionValue(cls, [Constant(message)])
        value.cause, value.context, value.suppress = cause, cause, True
        raise Raised(value)

    def is_instance_of(self, value: Value, cls: type) -> bool:
        """isinstance() for captured exceptions."""
        return issubclass(value.python_type(), cls)

    def as_exception(self, value: Value, args: list[Value]) -> Value:
        """The exception of `raise value`: value, or an instance if value is a class."""
        if isinstance(value, ClassValue) and issubclass(value.cls, BaseException):
            return self.cap.call(value, args, {})
        if isinstance(value, ExceptionValue):
            return value
        if isinstance(value, UserObject) and issubclass(value.cls, BaseException):
            return value
        if not issubclass(value.python_type(), BaseException):
            self.raise_(TypeError, "exceptions must derive from BaseException")
        raise Unsupported(causes.EXCEPTION, f"raise {value.describe()}")

    def exception_thrown(self, args: list[Value]) -> Value:
        """The exception of `generator.throw(*args)`: an instance, or a class with a value (and a traceback)."""
        kind = self.cap.realize(args[0])
        given = self.cap.realize(args[1]) if len(args) > 1 else NONE
        if isinstance(kind, ClassValue) and given is not NONE and not (isinstance(given, Constant) and given.holds(None)):
            if issubclass(given.python_type(), kind.cls):
                return given
            return self.as_exception(kind, given.items if isinstance(given, TupleValue) else [given])
        if len(args) > 1 and not isinstance(kind, ClassValue):
            raise Unsupported(causes.GENERATOR, "throw() of an instance with a value")
        return self.as_exception(kind, [])

    def make(self, cls: type, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """cls(*args, **kwargs) for an exception class, by its __new__ and __init__."""
        if not is_exception_class(cls):
            raise Unsupported(causes.EXCEPTION, f"{cls.__name__}()")
        if issubclass(cls, OSError) and len(args) > 1:
            raise Unsupported(causes.EXCEPTION, f"{cls.__name__}(), whose class depends on the error's number")
        value = ExceptionValue(cls, list(args))
        value.initialized = False
        init = self.cap.classes.lookup(cls, "__init__")
        if hasattr(init, "__code__"):
            self.cap.call(self.cap.classes.wrap(cls, "__init__", init), [value, *args], kwargs)
            return value
        value.initialized = True
        if kwargs:
            known = {AttributeError: {"name", "obj"}, NameError: {"name"}, ImportError: {"name", "path"}}
            if not any(issubclass(cls, base) and names >= set(kwargs) for base, names in known.items()):
                raise Unsupported(causes.EXCEPTION, f"{cls.__name__}() with keyword arguments that it does not take")
            for name, attribute in kwargs.items():
                self.preset(value, name, attribute)
        return value


def _number(x: Any) -> Any:
    """The argument of a call with a symbolic number fixed to its present value."""
    return int(x) if isinstance(x, SymInt) else float(x) if isinstance(x, SymFloat) else x
