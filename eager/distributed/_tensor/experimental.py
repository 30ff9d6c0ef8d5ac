"""The former name of `torch.distributed.tensor.experimental`."""
from eager.distributed.tensor.experimental import implicit_replication

__all__ = ["implicit_replication"]
