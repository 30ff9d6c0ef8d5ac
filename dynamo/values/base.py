"""The base of captured values: what every kind can be asked, and what is not yet looked at.

A value is either *new* (made by the captured program, `source` None) or *existing* (it lives outside, `source` says
where). The difference decides how it is reconstructed and whether its mutation must be replayed.
"""

from __future__ import annotations

import collections
import functools
import itertools
import types
from typing import TYPE_CHECKING, Any, Final, Self

from dynamo.guards.sources import Source
from dynamo.report import causes
from dynamo.report.errors import Unsupported

if TYPE_CHECKING:
    from dynamo.frames.capture import Capture
    from dynamo.values.writer import Writer


_serials = itertools.count()
next_serial: Final = _serials.__next__


class NotConstant(Exception):
    """The value is not known as a Python constant."""


class Value:
    """One value of the captured program.

    source: where it lives, if it exists outside. born: number of the executed instruction that made it, for values
    that cannot be reconstructed (the graph then breaks there instead).
    """

    source: Source | None = None
    born: int = -1
    serial: int  # in the order in which values are made

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        self = object.__new__(cls)
        self.serial = next_serial()
        return self

    # -- asking ------------------------------------------------------------------------------------------------
    def python_type(self) -> type:
        """The class that `type(value)` gives in the user's program."""
        raise NotImplementedError(type(self).__name__)

    def as_constant(self) -> Any:
        """The Python value itself. Raises: NotConstant."""
        raise NotConstant(self)

    @property
    def is_constant(self) -> bool:
        try:
            self.as_constant()
        except NotConstant:
            return False
        return True

    def describe(self) -> str:
        """For messages: kind and where it comes from."""
        where = f" {self.source.name}" if self.source is not None else ""
        return f"{self.python_type().__qualname__}{where}"

    # -- doing -------------------------------------------------------------------------------------------------
    def truth(self, cap: Capture) -> bool:
        """bool(value)."""
        raise Unsupported(causes.OPAQUE_OBJECT, f"truth of {self.describe()}")

    def getattr(self, cap: Capture, name: str) -> Value:
        """value.name"""
        raise Unsupported(causes.ATTRIBUTE, f"{self.describe()}.{name}")

    def setattr(self, cap: Capture, name: str, value: Value) -> None:
        """value.name = value"""
        raise Unsupported(causes.ATTRIBUTE, f"{self.describe()}.{name} = ...")

    def delattr(self, cap: Capture, name: str) -> None:
        """del value.name"""
        raise Unsupported(causes.ATTRIBUTE, f"del {self.describe()}.{name}")

    def call(self, cap: Capture, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """value(*args, **kwargs)"""
        raise Unsupported(causes.UNKNOWN_CALL, f"{self.describe()}(...)")

    def call_method(self, cap: Capture, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """value.name(*args, **kwargs)"""
        return cap.call(self.getattr(cap, name), args, kwargs)

    def iterate(self, cap: Capture) -> Value:
        """iter(value)"""
        raise Unsupported(causes.OPAQUE_ITERATOR, f"iteration over {self.describe()}")

    def next(self, cap: Capture) -> Value | None:
        """next(value), or None when it is exhausted."""
        raise Unsupported(causes.OPAQUE_ITERATOR, f"next() of {self.describe()}")

    def unpack(self, cap: Capture) -> list[Value]:
        """list(value)"""
        return cap.exhaust(self.iterate(cap))

    def same_object(self, cap: Capture, other: Value) -> bool:
        """value is other"""
        if self is other:
            return True
        if self.source is not None and other.source is not None:
            return cap.existing_same(self, other)
        return False

    def reconstruct(self, cg: Writer) -> str:
        """Emit what makes this value in generated code; returns an expression. Called once per value."""
        raise NotImplementedError(type(self).__name__)


class Null(Value):
    """The NULL that calls push beside a plain callable."""

    def python_type(self) -> type:
        return type(None)

    def describe(self) -> str:
        return "NULL"

    def __repr__(self) -> str:
        return "NULL"

    def reconstruct(self, cg: Writer) -> str:
        return cg.helper("NULL")


NULL: Final = Null()


class Lazy(Value):
    """An existing value nobody has looked at yet: nothing about it is guarded."""

    def __init__(self, cap: Capture, real: Any, source: Source) -> None:
        self.cap = cap
        self.real = real
        self.source: Source = source
        self._seen: Value | None = None

    def as_constant(self) -> Any:
        return self.realize(self.cap).as_constant()

    def realize(self, cap: Capture) -> Value:
        """Look at it: from here on the capture depends on it."""
        if self._seen is None:
            self._seen = cap.wrap(self.real, self.source)
        return self._seen

    @property
    def seen(self) -> Value | None:
        return self._seen

    def python_type(self) -> type:
        return type(self.real)

    def reconstruct(self, cg: Writer) -> str:
        if self._seen is not None:
            return cg.value(self._seen)
        return cg.source(self.source)


class Opaque(Value):
    """An existing object that can only be passed along."""

    def __init__(self, real: Any, source: Source) -> None:
        self.real = real
        self.source: Source = source

    def python_type(self) -> type:
        return type(self.real)

    def reconstruct(self, cg: Writer) -> str:
        return cg.source(self.source)

    def iterate(self, cap: Capture) -> Value:
        if hasattr(type(self.real), "__next__"):
            return self
        return super().iterate(cap)


_FULL_NAMES: Final = frozenset(
    (collections.deque, collections.defaultdict, collections.OrderedDict, functools.partial, types.SimpleNamespace)
)


def type_name(cls: type) -> str:
    """What C code calls a class in messages: those made in C outside builtins go by their full names."""
    return f"{cls.__module__}.{cls.__qualname__}" if cls in _FULL_NAMES or cls.__module__ == "numpy" else cls.__name__
