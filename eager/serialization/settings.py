"""Defaults of `save` and `load`: allowed names, byte order, and the mapping of files."""
from __future__ import annotations

import contextlib
import mmap
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any, TypeAlias

from eager.base.device import device
from eager.serialization.names import written_name

MAP_LOCATION: TypeAlias = Callable[[Any, str], Any] | device | str | dict[str, str] | None  # the type of `load`'s map_location
MAP_SHARED, MAP_PRIVATE = mmap.MAP_SHARED, mmap.MAP_PRIVATE


class LoadEndianness(Enum):
    """The byte order of files that do not record it."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


class _Settings:
    def __init__(self) -> None:
        self.trusted: dict[tuple[str, str], Any] = {}
        self.order: LoadEndianness | None = None
        self.mapping = MAP_PRIVATE


current = _Settings()


def _by_name(objects: list[Callable[..., Any] | tuple[Callable[..., Any], str]]) -> dict[tuple[str, str], Any]:
    names = {}
    for entry in objects:
        if isinstance(entry, tuple):
            if len(entry) != 2 or not isinstance(entry[1], str):
                raise ValueError(f"Expected tuple of (global, str of callable full path), but got {entry}")
            obj, full = entry
        else:
            obj, full = entry, f"{entry.__module__}.{entry.__qualname__}"
            theirs = written_name(entry)
            if theirs is not None:
                names[theirs] = obj
        module, _, qualname = full.rpartition(".")
        names[module, qualname] = obj
    return names


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Allow these classes and functions in files loaded with weights_only; a pair (object, "full.name") gives another name."""
    current.trusted.update(_by_name(safe_globals))


def get_safe_globals() -> list[Any]:
    """The objects that `add_safe_globals` allowed."""
    return list(dict.fromkeys(current.trusted.values()))


def clear_safe_globals() -> None:
    """Revoke all permissions of `add_safe_globals`."""
    current.trusted.clear()


@contextlib.contextmanager
def safe_globals(safe_globals: list[Any]) -> Iterator[None]:
    """Allow these classes and functions within the block."""
    before = dict(current.trusted)
    add_safe_globals(safe_globals)
    try:
        yield
    finally:
        current.trusted = before


def get_default_load_endianness() -> LoadEndianness | None:
    """The byte order assumed for files that do not record it; None means this machine's."""
    return current.order


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Set the byte order assumed for files that do not record it. Raises: TypeError for another type."""
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    current.order = endianness


def get_default_mmap_options() -> int:
    """How `load(mmap=True)` maps files: MAP_PRIVATE or MAP_SHARED."""
    return current.mapping


class set_default_mmap_options:  # noqa: N801 - torch's name
    """Set how `load(mmap=True)` maps files, permanently or, as a context manager, within a block.

    Writes through MAP_SHARED change the file but not its checksums: later loads must use mmap too.
    Raises: ValueError for flags other than MAP_PRIVATE and MAP_SHARED.
    """

    def __init__(self, flags: int) -> None:
        if flags not in (MAP_PRIVATE, MAP_SHARED):
            raise ValueError("Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE or "
                             f"mmap.MAP_SHARED, but got {flags}")  # fmt: skip
        self.before, current.mapping = current.mapping, flags

    def __enter__(self) -> None:
        """Does nothing: the constructor has set the option."""

    def __exit__(self, *exc: object) -> None:
        current.mapping = self.before
