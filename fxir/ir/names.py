"""Names of nodes: valid Python identifiers, unique in their graph.

Owns `NodeNames` and `name_hint`.
"""

from __future__ import annotations

import builtins
import keyword
import re
from typing import Any

# Names that the printed source uses itself: Python's own names, and names that its header binds.
_RESERVED = frozenset([*keyword.kwlist, *keyword.softkwlist, *dir(builtins), "self", "OPS", "eager"])
_NOT_IDENTIFIER = re.compile(r"\W+", re.ASCII)
_TRAILING_NUMBER = re.compile(r"_\d+$")


def name_hint(target: Any) -> str:
    """A name for a call of `target`: a str itself, else the callable's name; dots become underscores."""
    if isinstance(target, str):
        return target.replace(".", "_")
    names = (getattr(target, "name", None), getattr(target, "__name__", None), type(target).__name__)
    return next(name for name in names if isinstance(name, str)).replace(".", "_")


class NodeNames:
    """The names in use in one graph."""

    __slots__ = ("_counters", "_used")

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._counters: dict[str, int] = {}

    def take(self, hint: str) -> str:
        """Reserve a free name: `hint` as an identifier, with a number behind it if that name is taken."""
        base = _NOT_IDENTIFIER.sub("_", hint.strip("_") if hint.startswith("__") else hint).rstrip("_") or "value"
        if base[0].isdigit():
            base = f"_{base}"
        name = base
        if name in _RESERVED or name in self._used:
            stem = _TRAILING_NUMBER.sub("", base) or base
            count = self._counters.get(stem, 0)
            while True:
                count += 1
                name = f"{stem}_{count}"
                if name not in self._used:
                    break
            self._counters[stem] = count
        self._used.add(name)
        return name

    def release(self, name: str) -> None:
        """Make `name` free again."""
        self._used.discard(name)
