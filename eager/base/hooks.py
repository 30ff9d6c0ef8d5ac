"""Handles that remove hooks: one class for the hooks of tensors, nodes, modules and optimizers."""
from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from typing import Any


class RemovableHandle:
    """The entry of one hook in a dict of hooks. `handle.remove()`, or the end of a block `with handle:`, removes the hook.

    hooks_dict: hooks by id; the id of the new hook is `handle.id`. extra_dict: one or more dicts with other data of the hooks,
    by id. The dicts are held weakly if their class allows it, so that a handle does not keep a module alive.
    """

    _ids = itertools.count()

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = ()) -> None:
        self.id = next(RemovableHandle._ids)
        self._hooks = _weak(hooks_dict)
        self._extra = tuple(_weak(e) for e in (extra_dict if isinstance(extra_dict, (list, tuple)) else [extra_dict]))

    def remove(self) -> None:
        """Take the hook out; does nothing the second time."""
        for reference in (self._hooks, *self._extra):
            hooks = reference()
            if hooks is not None and self.id in hooks:
                del hooks[self.id]

    def __getstate__(self) -> tuple[Any, ...]:
        return self.id, self._hooks(), tuple(e() for e in self._extra)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        """Over the copies of its dicts; the id is theirs, so that later ones must be above it."""
        self.id, hooks, extra = state
        self._hooks, self._extra = _weak(hooks if hooks is not None else {}), tuple(_weak(e) for e in extra if e is not None)
        RemovableHandle._ids = itertools.count(max(next(RemovableHandle._ids), self.id + 1))

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


def _weak(hooks: Any) -> Callable[[], Any]:
    try:
        return weakref.ref(hooks)
    except TypeError:  # a plain dict cannot be referenced weakly
        return lambda: hooks


def add_hook(hooks: dict[int, Callable[..., Any]], hook: Callable[..., Any]) -> RemovableHandle:
    """Put `hook` last among `hooks`."""
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


__all__ = ["RemovableHandle", "add_hook"]
