"""torch.func: the function transforms of `eager.transforms`, and calls of modules as functions of their parameters."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eager.func.modules import functional_call, replace_all_batch_norm_modules_, stack_module_state
from eager.transforms.jacobians import hessian, jacfwd, jacrev
from eager.transforms.level import Wrapped, raw_value
from eager.transforms.mapping import vmap
from eager.transforms.push import jvp
from eager.transforms.reverse import grad, grad_and_value, linearize, vjp


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """Raises: NotImplementedError. `fxir.trace.functionalize` removes mutation from captured graphs, not from running functions."""
    raise NotImplementedError("functionalize: taking mutation out of a running function is not implemented; eager.compile does "
                              "it for the graphs it captures")  # fmt: skip


def debug_unwrap(tensor: Any, *, recurse: bool = True) -> Any:
    """The tensor that a transform's tensor wraps, for inspection; any other argument is returned unchanged.

    recurse: remove the wrappers of all transforms, not only of the innermost.
    """
    if not isinstance(tensor, Wrapped):
        return tensor
    return raw_value(tensor) if recurse else tensor._value


__all__ = ["debug_unwrap", "functional_call", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp",
           "linearize", "replace_all_batch_norm_modules_", "stack_module_state", "vjp", "vmap"]  # fmt: skip
