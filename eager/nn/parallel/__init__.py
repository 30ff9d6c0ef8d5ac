"""Modules that spread their work: over no or one device here, and over one process."""
from eager.nn.parallel.data_parallel import DataParallel
from eager.nn.parallel.distributed import DistributedDataParallel

__all__ = ["DataParallel", "DistributedDataParallel"]
