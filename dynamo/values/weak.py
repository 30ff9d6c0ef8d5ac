"""Plain weak references from outside: a call returns the object while it lives."""

from __future__ import annotations

import weakref
from typing import Any

from dynamo.guards.sources import Source, WeakSource
from dynamo.values.base import NONE
from dynamo.values.protocols import Machine, Value
from dynamo.values.writer import Writer


class WeakReference(Value):
    """A weak reference that the entry holds. Each call looks the referent up; the entry does not keep it alive."""

    def __init__(self, real: weakref.ref[Any], source: Source) -> None:
        self.real = real
        self.source: Source = source

    def python_type(self) -> type:
        return weakref.ref

    def truth(self, cap: Machine) -> bool:
        return True

    def call(self, cap: Machine, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """reference()"""
        if args or kwargs:
            return super().call(cap, args, kwargs)
        found = self.real()  # a dead reference stays dead
        return NONE if found is None else cap.world.wrap(found, WeakSource(self.real, f"{self.source.name}()"))

    def reconstruct(self, cg: Writer) -> str:
        return cg.source(self.source)
