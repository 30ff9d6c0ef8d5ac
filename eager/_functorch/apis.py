"""`torch._functorch.apis`: vmap and grad, under the module in which torch defines them."""
from eager.func import grad, grad_and_value, vmap

__all__ = ["grad", "grad_and_value", "vmap"]
