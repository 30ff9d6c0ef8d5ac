"""How a set came about: the calls that made it, of constants, to be made again.

The order of a set depends on more than its elements: on collisions, on removed elements, on the size of its table.
A set that is made by the same calls has the same order. It must not know captured values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """make(*args), then the methods of `calls` on the result. Arguments are constants or histories."""

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
    """An argument as a host object: a history is built again."""
    return arg.build() if isinstance(arg, History) else arg


def dict_keys(keys: tuple[Any, ...]) -> Any:
    """A view of the keys of a dict that has these."""
    return dict.fromkeys(keys).keys()
