"""Function transforms: grad, vjp, jvp, jacobians, vmap, composing in any order (torch.func's names)."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eager.func import custom as _custom  # noqa: F401 - registers custom functions under vmap
from eager.func.jacobians import hessian, jacfwd, jacrev
from eager.func.level import Wrapped, raw_value
from eager.func.mapping import vmap
from eager.func.modules import functional_call, replace_all_batch_norm_modules_, stack_module_state
from eager.func.push import jvp
from eager.func.reverse import grad, grad_and_value, linearize, vjp


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """Not available: mutation is taken out of captured graphs (`fxir.trace.functionalize`), not of running functions."""
    raise NotImplementedError("functionalize: taking mutation out of a running function is not implemented; eager.compile does "
                              "it for the graphs it captures")  # fmt: skip


def debug_unwrap(tensor: Any, *, recurse: bool = True) -> Any:
    """What a tensor of a transform is below it (below all, with `recurse`), to look at; others are returned as they are."""
    if not isinstance(tensor, Wrapped):
        return tensor
    return raw_value(tensor) if recurse else tensor._value


__all__ = ["debug_unwrap", "functional_call", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp",
           "linearize", "replace_all_batch_norm_modules_", "stack_module_state", "vjp", "vmap"]  # fmt: skip
