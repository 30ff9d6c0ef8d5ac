"""`torch._functorch.functional_call`: functional_call under the name of the module that torch defines it in."""
from eager.func import functional_call, stack_module_state

__all__ = ["functional_call", "stack_module_state"]
