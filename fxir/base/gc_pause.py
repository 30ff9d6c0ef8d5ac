"""Python's garbage collector during a compilation and the import of a compiler."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_NEVER: Final = (1 << 31) - 1


@contextmanager
def no_collections() -> Iterator[None]:
    """In the block, no collection starts automatically. For an import: the objects that it makes stay alive."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@contextmanager
def full_collections_postponed() -> Iterator[None]:
    """In the block, no collection of the oldest generation starts automatically.

    A compilation creates hundreds of thousands of objects, most of which live until its end. A full collection during it visits
    every object of every imported module, frees almost nothing, and would take a fifth of the compilation's time.
    """
    before = gc.get_threshold()
    here = (*before[:2], _NEVER)
    gc.set_threshold(*here)
    try:
        yield
    finally:
        if gc.get_threshold() == here:  # otherwise a block of another thread, entered earlier, has already restored the threshold
            gc.set_threshold(*before)
