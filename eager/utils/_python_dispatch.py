"""`torch.utils._python_dispatch`: modes that see every op of a block, beneath autograd.

An op is one of this library's table (`eager.optable.table.Op`), not of torch's ATen: it has a `__name__`, and is called with full
positional arguments. What autograd runs in a backward pass is seen too, as ops of its own.
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
    """One entry of a mode: hands ops to its `__torch_dispatch__`, composite ops as the ops that they are made of."""

    def __init__(self, mode: TorchDispatchMode) -> None:
        self._mode = mode

    def dispatch(self, op: Op, args: tuple[Any, ...]) -> Any:
        if op.kernel is None and op.decompose is not None:
            with self:  # the mode is to see what it is made of
                return op.decompose(*args)
        return self._mode.__torch_dispatch__(op, tuple({type(t): None for t in op.tensors(args)}), args, {})


class TorchDispatchMode:
    """Sees every op call of its block, through `__torch_dispatch__(func, types, args, kwargs)`.

    Itself off while it answers: `func(*args, **kwargs)` computes, or goes on to the mode around it. Compiled functions
    run uncompiled in its block.
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
    """The innermost mode of this thread."""
    return _active.modes[-1] if _active.modes else None


def _get_current_dispatch_mode_stack() -> list[TorchDispatchMode]:
    """The modes of this thread, outermost first."""
    return list(_active.modes)


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Whether `t` wraps tensors by `__torch_dispatch__`: no tensor does, for such subclasses are not implemented."""
    return False


__all__ = ["TorchDispatchMode", "is_traceable_wrapper_subclass"]
