"""`torch._functorch.vmap`: vmap under a module name of torch's."""
from eager.func import vmap

__all__ = ["vmap"]
