"""The former name of `torch.distributed.tensor`."""
from eager.distributed.tensor import DTensor, distribute_module, distribute_tensor

__all__ = ["DTensor", "distribute_module", "distribute_tensor"]
