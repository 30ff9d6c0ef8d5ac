"""`torch.distributed.tensor.experimental`: the names that libraries import from it."""
from __future__ import annotations

from typing import NoReturn

from eager.startup.absent_names import missing

__all__ = ["implicit_replication"]


def implicit_replication() -> NoReturn:
    """Raises NotImplementedError: there is a single process."""
    missing("torch.distributed.tensor.experimental.implicit_replication")
