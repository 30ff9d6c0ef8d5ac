"""torch._C: those names of torch's native module that libraries call in the code of their models."""
from __future__ import annotations

from typing import Any

from eager._C.dispatch_keys import DispatchKey, DispatchKeySet, _ExcludeDispatchKeyGuard
from eager._tensor.tensor import Tensor
from eager._tensor.torch_function import _disabled_torch_function_impl
from eager.autograd import no_grad, set_grad_enabled
from eager.base.device import device
from eager.base.dtypes import dtype
from eager.dispatch.calls import active_level
from eager.functions.convert import parse_to
from eager.nn import functional
from eager.overrides import DisableTorchFunction, DisableTorchFunctionSubclass
from eager.serialization import PyTorchFileReader

_TensorMeta = type(Tensor)
_AutoDispatchBelowAutograd = no_grad  # code below autograd records no history

__all__ = [
    "DisableTorchFunction", "DisableTorchFunctionSubclass", "DispatchKey", "DispatchKeySet", "Graph", "Node", "PyTorchFileReader",
    "Value", "_AutoDispatchBelowAutograd", "_ExcludeDispatchKeyGuard", "_TensorMeta", "_are_functorch_transforms_active",
    "_disabled_torch_function_impl", "_get_tracing_state", "_log_api_usage_once", "_nn", "_set_grad_enabled",
]  # fmt: skip


class _Functional:
    """`torch._C._nn`: functions of `nn.functional`, and the parser of the arguments of `Module.to`."""

    def __getattr__(self, name: str) -> Any:
        try:
            return getattr(functional, name)
        except AttributeError:
            raise AttributeError(f"module 'torch._C._nn' has no attribute '{name}'") from None

    @staticmethod
    def _parse_to(*args: Any, **kwargs: Any) -> tuple[device | None, dtype | None, bool, Any]:
        """(device, dtype, non_blocking, memory_format).

        Raises: RuntimeError for copy=; TypeError for an argument of another kind.
        """
        if "copy" in kwargs:
            raise RuntimeError(".to() does not accept copy argument")
        where, kind, _, memory_format, non_blocking = parse_to(args, kwargs)
        return where, kind, non_blocking, memory_format


_nn = _Functional()


class _OfTorchScript:
    """A class of TorchScript programs that code uses in annotations; it has no instances."""

    def __init__(self, *args: Any) -> None:
        raise NotImplementedError(f"torch._C.{type(self).__name__}: there is no TorchScript in framejit")


class Graph(_OfTorchScript):
    """A TorchScript program."""


class Node(_OfTorchScript):
    """A step of a TorchScript program."""


class Value(_OfTorchScript):
    """The result of a step of a TorchScript program."""


def _log_api_usage_once(event: str) -> None:
    """Does nothing: reports the use of an API to a registered handler, and no handler can be registered here."""


def _get_tracing_state() -> None:
    """The state of the trace that `jit.trace` makes: always None."""


def _are_functorch_transforms_active() -> bool:
    """Whether the caller runs inside vmap, grad, jvp or another transform of `func`."""
    return active_level() is not None


def _set_grad_enabled(enabled: bool) -> None:
    """Switch the recording of gradients in this thread on or off."""
    set_grad_enabled(enabled)
