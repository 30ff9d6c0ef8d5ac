"""DistributedDataParallel: a name for imports and `isinstance` checks. There is a single process."""
from __future__ import annotations

from typing import Any

from eager.nn.module import Module

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """Training over several processes. The constructor raises torch's ValueError for a missing process group."""

    def __init__(self, module: Module, *args: Any, **options: Any) -> None:
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group. "
                         "(framejit runs in one process: use the module itself.)")  # fmt: skip
