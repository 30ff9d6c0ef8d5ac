"""The state of autograd beside the graph: hooks on saved tensors, anomaly mode, the running node.

This module depends on neither tensors nor nodes, so that every other module of autograd may import it.
"""
from __future__ import annotations

import threading
import traceback
from collections.abc import Callable
from operator import attrgetter
from typing import Any

from eager import _native
from eager.startup.places import EAGER_DIR

PackHooks = tuple[Callable[[Any], Any], Callable[[Any], Any]]


class _PerThread(threading.local):
    """State of one thread."""

    def __init__(self) -> None:
        self._saved_hooks: list[PackHooks] = []
        self.saved_hooks_forbidden: str | None = None  # the message to raise with
        self.running: Any = None  # the node whose backward is being applied
        self.roots: Any = ()  # the nodes that the running backward pass started from
        self.collecting = False  # whether that pass collects gradients (`grad`, `inputs`) rather than adding them into leaves
        self.callbacks: list[Callable[[], None]] | None = None  # to call when the running backward pass ends

    def _set_saved_hooks(self, hooks: list[PackHooks]) -> None:
        self._saved_hooks = hooks
        _native.set_python_recording(None, bool(hooks))

    saved_hooks = property(attrgetter("_saved_hooks"), _set_saved_hooks)


class saved_hooks_off:  # noqa: N801 - used like a function
    """A block whose saved tensors no hook receives: for graphs outside the program, such as the traces of a compiler."""

    def __enter__(self) -> None:
        self._before = per_thread.saved_hooks
        per_thread.saved_hooks = []

    def __exit__(self, *exc: object) -> None:
        per_thread.saved_hooks = self._before


class _Anomaly:
    """Anomaly mode, one for the process."""

    def __init__(self) -> None:
        self._enabled = False
        self.check_nan = True

    @property
    def enabled(self) -> bool:
        return self._enabled

    @enabled.setter
    def enabled(self, on: bool) -> None:
        self._enabled = on
        _native.set_python_recording(on, None)

    def note(self) -> dict[str, Any]:
        """Metadata of a node made now: where in the forward, and by which node's backward if by one."""
        # The last frames are ours: the first that is not is the user's line.
        stack = traceback.format_list([f for f in traceback.extract_stack() if not f.filename.startswith(EAGER_DIR)])
        found: dict[str, Any] = {"traceback_": stack}
        if per_thread.running is not None:
            found["parent_"] = per_thread.running
        return found


per_thread = _PerThread()
anomaly = _Anomaly()
