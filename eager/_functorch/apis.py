"""`torch._functorch.apis`: vmap and grad under the name of the module that torch defines them in."""
from eager.func import grad, grad_and_value, vmap

__all__ = ["grad", "grad_and_value", "vmap"]
