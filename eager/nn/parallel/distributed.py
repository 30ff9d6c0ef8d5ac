"""DistributedDataParallel: a name to import and to ask `isinstance` for. There is one process."""
from __future__ import annotations

from typing import Any

from eager.nn.module import Module

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """Training over several processes, of which there is one. Making one raises what torch raises without a process group."""

    def __init__(self, module: Module, *args: Any, **options: Any) -> None:
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group. "
                         "(framejit runs in one process: use the module itself.)")  # fmt: skip
