"""`torch.utils._python_dispatch`: modes that intercept every op of a block, below autograd.

An op is an entry of this library's table (`eager.optable.table.Op`), not of torch's ATen: it has a `__name__`, and
takes all arguments by position. Ops that autograd runs in a backward pass are intercepted too.
"""
from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

from eager import _native
from eager.base import thread_state
from eager.dispatch import calls
from eager.optable.table import Op

TensorBase = _native.TensorBase


class _Active(threading.local):
    def __init__(self) -> None:
        self.modes: list[TorchDispatchMode] = []


_active = _Active()


class _Seen(calls.Mode):
    """One activation of a mode: passes ops to its `__torch_dispatch__`, and composite ops as their component ops."""

    def __init__(self, mode: TorchDispatchMode) -> None:
        self._mode = mode

    def dispatch(self, op: Op, args: tuple[Any, ...]) -> Any:
        if op.kernel is None and op.decompose is not None:
            with self:  # the mode intercepts the component ops
                return op.decompose(*args)
        return self._mode.__torch_dispatch__(op, tuple({type(t): None for t in op.tensors(args)}), args, {})


class TorchDispatchMode:
    """Intercepts every op call of its block, through `__torch_dispatch__(func, types, args, kwargs)`.

    The mode is off inside `__torch_dispatch__`: `func(*args, **kwargs)` computes, or calls the enclosing mode. Compiled
    functions run uncompiled in its block.
    """

    def __torch_dispatch__(self, func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...] = (),
                           kwargs: dict[str, Any] | None = None) -> Any:  # fmt: skip
        raise NotImplementedError(f"{type(self).__name__}.__torch_dispatch__")

    def __enter__(self) -> Any:
        entered = self.__dict__.setdefault("_entered", [])
        entered.append(_Seen(self))
        entered[-1].__enter__()
        _active.modes.append(self)
        thread_state.count_interceptors(1)
        return self

    def __exit__(self, *exc: object) -> None:
        thread_state.count_interceptors(-1)
        _active.modes.pop()
        self.__dict__["_entered"].pop().__exit__(*exc)


def _get_current_dispatch_mode() -> TorchDispatchMode | None:
    """The innermost active mode of this thread, or None."""
    return _active.modes[-1] if _active.modes else None


def _get_current_dispatch_mode_stack() -> list[TorchDispatchMode]:
    """The active modes of this thread, outermost first."""
    return list(_active.modes)


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Whether `t` wraps tensors by `__torch_dispatch__`: always False, because such subclasses are not implemented."""
    return False


__all__ = ["TorchDispatchMode", "is_traceable_wrapper_subclass"]
