"""The state of the process during a compilation and the import of a compiler: the frame that the log names, the garbage collector."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from eager.base.logs import FRAME, FrameId

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
def compiling(frame_id: FrameId | None) -> Iterator[None]:
    """In the block, lines of the log carry `[frame/recompile]`, and no collection of the oldest generation starts automatically.

    frame_id: None keeps the present one. A compilation creates hundreds of thousands of objects, most of which live until its end. A
    full collection during it visits every object of every imported module, frees almost nothing, and would take a fifth of the
    compilation's time.
    """
    before = gc.get_threshold()
    here = (*before[:2], _NEVER)
    gc.set_threshold(*here)
    outer = FRAME.set(frame_id or FRAME.get())
    try:
        yield
    finally:
        FRAME.reset(outer)
        if gc.get_threshold() == here:  # otherwise a block of another thread, entered earlier, has already restored the threshold
            gc.set_threshold(*before)
