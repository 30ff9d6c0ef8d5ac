"""Captured values that every layer knows: NULL, lazy values and opaque objects.

A value is either *new* (the captured program makes it; `source` is None) or *existing* (it exists outside; `source` is
its place). The kind decides how generated code obtains the object, and whether changes of it must be replayed.
"""

from __future__ import annotations

import collections
import functools
import types
from typing import Any, Final

from dynamo.guards.sources import Source
from dynamo.values.protocols import Machine, Value
from dynamo.values.writer import Writer


class Null(Value):
    """The NULL that calls push next to a plain callable."""

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
    """An existing value that the program has not used yet: it has no guards."""

    def __init__(self, cap: Machine, real: Any, source: Source) -> None:
        self.cap = cap
        self.real = real
        self.source: Source = source
        self._seen: Value | None = None

    def as_constant(self) -> Any:
        return self.realize(self.cap).as_constant()

    def realize(self, cap: Machine) -> Value:
        """Wrap and guard the object: the capture depends on it from then on."""
        if self._seen is None:
            self._seen = cap.world.wrap(self.real, self.source)
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
    """An existing object that captured code can only pass on."""

    def __init__(self, real: Any, source: Source) -> None:
        self.real = real
        self.source: Source = source

    def python_type(self) -> type:
        return type(self.real)

    def reconstruct(self, cg: Writer) -> str:
        return cg.source(self.source)

    def iterate(self, cap: Machine) -> Value:
        if hasattr(type(self.real), "__next__"):
            return self
        return super().iterate(cap)


_FULL_NAMES: Final = frozenset(
    (collections.deque, collections.defaultdict, collections.OrderedDict, functools.partial, types.SimpleNamespace)
)


def type_name(cls: type) -> str:
    """The name of a class in messages of C code: the full name of a class made in C outside builtins."""
    return f"{cls.__module__}.{cls.__qualname__}" if cls in _FULL_NAMES or cls.__module__ == "numpy" else cls.__name__
