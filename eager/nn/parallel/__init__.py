"""Data-parallel modules. At most one device and one process are supported."""
from eager.nn.parallel.data_parallel import DataParallel
from eager.nn.parallel.distributed import DistributedDataParallel

__all__ = ["DataParallel", "DistributedDataParallel"]
