"""`torch._functorch.vmap`: vmap, under torch's module name."""
from eager.func import vmap

__all__ = ["vmap"]
