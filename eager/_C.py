"""torch._C: of the names of torch's native module, those that libraries call in the code of their models."""
from __future__ import annotations

from eager.autograd import set_grad_enabled
from eager.dispatch import active_level
from eager.interception import _disabled_torch_function_impl
from eager.overrides import DisableTorchFunction, DisableTorchFunctionSubclass
from eager.serialization import PyTorchFileReader
from eager.tensor import Tensor

_TensorMeta = type(Tensor)

__all__ = [
    "DisableTorchFunction", "DisableTorchFunctionSubclass", "PyTorchFileReader", "_TensorMeta",
    "_are_functorch_transforms_active", "_disabled_torch_function_impl", "_get_tracing_state", "_log_api_usage_once", "_set_grad_enabled",
]  # fmt: skip


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
