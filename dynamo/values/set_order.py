"""Histories of sets: the calls on constants that made a set, so that it can be made again.

The order of a set depends on more than its elements: on collisions, on removed elements, on the size of its table. A
set that the same calls make has the same order. This module must not know captured values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eager.base.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """A history: make(*args), then the methods of `calls` on the result. Arguments are constants or histories."""

    make: Callable[..., Any]
    args: tuple[Any, ...] = ()
    calls: tuple[tuple[str, tuple[Any, ...]], ...] = ()

    def build(self) -> Any:
        """A new object with this history."""
        made = self.make(*map(built, self.args))
        for method, args in self.calls:
            getattr(made, method)(*map(built, args))
        return made


def built(arg: Any) -> Any:
    """An argument as a host object: a history is built."""
    return arg.build() if isinstance(arg, History) else arg


def dict_keys(keys: tuple[Any, ...]) -> Any:
    """A view of the keys of a new dict with these keys."""
    return dict.fromkeys(keys).keys()
