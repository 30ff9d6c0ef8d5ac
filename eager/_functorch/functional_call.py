"""`torch._functorch.functional_call`: functional_call, under the module in which torch defines it."""
from eager.func import functional_call, stack_module_state

__all__ = ["functional_call", "stack_module_state"]
