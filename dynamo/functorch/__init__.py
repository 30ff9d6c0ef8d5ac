"""`functorch`: the predecessor of `torch.func`, with modules as functions and the compiler's entry points."""

from __future__ import annotations

from eager._functorch.make_functional import (
    FunctionalModule,
    FunctionalModuleWithBuffers,
    combine_state_for_ensemble,
    make_functional,
    make_functional_with_buffers,
)
from eager.func import functionalize, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, vjp, vmap
from eager.version import __version__
from fxir.torchfx.experimental.proxy_tensor import make_fx

__all__ = ["FunctionalModule", "FunctionalModuleWithBuffers", "__version__", "combine_state_for_ensemble", "functionalize", "grad",
           "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "make_functional", "make_functional_with_buffers", "make_fx",
           "vjp", "vmap"]  # fmt: skip
