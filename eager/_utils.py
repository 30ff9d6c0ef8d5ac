"""torch._utils: an exception that crosses processes, flat buffers of several tensors, and the functions that
pickles of torch's tensors name (pickles written by `pickle`, without `torch.save`).
"""
from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from types import ModuleType, TracebackType
from typing import Any, NoReturn

from eager import _native, cpu, cuda
from eager._tensor.tensor import Tensor
from eager.base import dtypes
from eager.functions.joining import cat
from eager.serialization.rebuild import rebuild_meta_tensor as _rebuild_meta_tensor_no_storage  # noqa: F401
from eager.serialization.rebuild import rebuild_parameter as _rebuild_parameter  # noqa: F401
from eager.serialization.rebuild import rebuild_parameter_with_state as _rebuild_parameter_with_state  # noqa: F401
from eager.serialization.rebuild import rebuild_sparse_tensor as _rebuild_sparse_tensor  # noqa: F401
from eager.serialization.rebuild import rebuild_tensor as _rebuild_tensor  # noqa: F401
from eager.serialization.rebuild import rebuild_tensor as _rebuild_tensor_v2  # noqa: F401
from eager.serialization.rebuild import rebuild_tensor_v3 as _rebuild_tensor_v3  # noqa: F401

ExceptionInfo = tuple[type[BaseException] | None, BaseException | None, TracebackType | None]


class _MessageOfLines(str):
    """A string whose repr is itself: a KeyError prints the repr of its message, which would escape line breaks."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class ExceptionWrapper:
    """An exception as its class and the text of its traceback, which can be sent to another process.

    exc_info: as from `sys.exc_info()`; by default of the exception being handled.
    where: the text after "Caught ValueError", such as "in DataLoader worker process 0".
    """

    def __init__(self, exc_info: ExceptionInfo | None = None, where: str = "in background") -> None:
        kind, value, trace = sys.exc_info() if exc_info is None else exc_info
        if kind is None:
            raise ValueError("ExceptionWrapper: no exception is being handled; pass exc_info")
        self.exc_type = kind
        if value is not None and value.__traceback__ is trace:
            _native.drop_library_frames(value)
            trace = value.__traceback__
        self.exc_msg = "".join(traceback.format_exception(kind, value, trace))
        self.where = where

    def reraise(self) -> NoReturn:
        """Raise an exception of the original class whose message ends with the original traceback.

        Raises RuntimeError if the class cannot be constructed from a message alone.
        """
        # The exception gets no local name: its traceback refers to this frame, which would refer to it in turn and keep
        # everything reachable alive until the garbage collector runs.
        raise self._remade(f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}") from None

    def _remade(self, text: str) -> BaseException:
        try:
            if self.exc_type is KeyError:
                return self.exc_type(_MessageOfLines(text))
            if getattr(self.exc_type, "message", None):
                make: Callable[..., BaseException] = self.exc_type
                return make(message=text)
            return self.exc_type(text)
        except Exception:  # noqa: BLE001 - the user's class may raise anything
            return RuntimeError(text)


def _flatten_dense_tensors(tensors: Iterable[Tensor]) -> Tensor:
    """The elements of all tensors in one 1-d tensor; all have one dtype."""
    return cat([t.contiguous().view(-1) for t in tensors])


def _unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Views of `flat` with the shapes of `tensors`: the inverse of `_flatten_dense_tensors`."""
    views, start = [], 0
    for t in tensors:
        views.append(flat.narrow(0, start, t.numel()).view(tuple(t.shape)))
        start += t.numel()
    return tuple(views)


class classproperty:  # noqa: N801 - torch's name
    """A property that is read on the class or on its instances."""

    def __init__(self, func: Callable[[Any], Any]) -> None:
        self.fget = func

    def __get__(self, obj: object, owner: type | None = None) -> Any:
        return self.fget(type(obj) if owner is None else owner)


def _element_size(dtype: Any) -> int:
    """The size of an element of `dtype` in bytes. Raises: RuntimeError unless it is a dtype."""
    if not isinstance(dtype, dtypes.dtype):
        raise RuntimeError(f"expected torch.dtype, but got {type(dtype)}")
    return dtype.itemsize


def _get_available_device_type() -> str | None:
    """The device type of the accelerator, or None."""
    return "cuda" if cuda.is_available() else None


def _get_device_module(device_type: str) -> ModuleType:
    """`torch.cuda` or `torch.cpu`. Raises: RuntimeError for another device type."""
    modules = {"cpu": cpu, "cuda": cuda}
    if device_type not in modules:
        raise RuntimeError(f"Device '{device_type}' does not have a corresponding module registered as 'torch.{device_type}'.")
    return modules[device_type]


KeyErrorMessage = _MessageOfLines
__all__ = ["ExceptionWrapper"]
