"""`torch.distributed.tensor.experimental`: names of it that libraries import."""
from __future__ import annotations

from typing import NoReturn

from eager.startup.absent_names import missing

__all__ = ["implicit_replication"]


def implicit_replication() -> NoReturn:
    """Not available. Raises: NotImplementedError."""
    missing("torch.distributed.tensor.experimental.implicit_replication")
