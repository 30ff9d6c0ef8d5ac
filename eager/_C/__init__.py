"""torch._C: of the names of torch's native module, those that libraries call in the code of their models."""
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
_AutoDispatchBelowAutograd = no_grad  # what runs below autograd records nothing

__all__ = [
    "DisableTorchFunction", "DisableTorchFunctionSubclass", "DispatchKey", "DispatchKeySet", "Graph", "Node", "PyTorchFileReader",
    "Value", "_AutoDispatchBelowAutograd", "_ExcludeDispatchKeyGuard", "_TensorMeta", "_are_functorch_transforms_active",
    "_disabled_torch_function_impl", "_get_tracing_state", "_log_api_usage_once", "_nn", "_set_grad_enabled",
]  # fmt: skip


class _Functional:
    """`torch._C._nn`: functions of `nn.functional`, and how the arguments of `Module.to` are read."""

    def __getattr__(self, name: str) -> Any:
        try:
            return getattr(functional, name)
        except AttributeError:
            raise AttributeError(f"module 'torch._C._nn' has no attribute '{name}'") from None

    @staticmethod
    def _parse_to(*args: Any, **kwargs: Any) -> tuple[device | None, dtype | None, bool, Any]:
        """(device, dtype, non_blocking, memory_format). Raises: RuntimeError for copy=, TypeError for what is none of them."""
        if "copy" in kwargs:
            raise RuntimeError(".to() does not accept copy argument")
        non_blocking = kwargs.get("non_blocking", next((a for a in args if isinstance(a, bool)), False))
        where, kind, _, memory_format = parse_to(args, kwargs)
        return where, kind, bool(non_blocking), memory_format


_nn = _Functional()


class _OfTorchScript:
    """A class of TorchScript's programs, which code names in annotations; there are none."""

    def __init__(self, *args: Any) -> None:
        raise NotImplementedError(f"torch._C.{type(self).__name__}: there is no TorchScript in framejit")


class Graph(_OfTorchScript):
    """A program."""


class Node(_OfTorchScript):
    """A step of a program."""


class Value(_OfTorchScript):
    """What a step gives."""


def _log_api_usage_once(event: str) -> None:
    """Tell whoever has asked to hear of the use of an API: nobody can ask here, as nobody does in torch unless told to."""


def _get_tracing_state() -> None:
    """The state of the trace that `jit.trace` makes, which there never is."""


def _are_functorch_transforms_active() -> bool:
    """Whether this runs inside vmap, grad, jvp or another transform of `func`."""
    return active_level() is not None


def _set_grad_enabled(enabled: bool) -> None:
    """Record gradients in this thread from here on, or no longer."""
    set_grad_enabled(enabled)
