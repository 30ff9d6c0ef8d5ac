"""`torch.distributed.nn`: differentiable collectives. Each raises the error for a missing process group."""
from __future__ import annotations

from typing import Any, NoReturn

from eager.startup.absent_names import missing

__all__ = ["all_gather", "all_reduce", "all_to_all", "all_to_all_single", "broadcast", "gather", "reduce", "reduce_scatter", "scatter"]


def _collective(name: str) -> Any:
    def collective(*args: Any, **kwargs: Any) -> NoReturn:
        missing(f"torch.distributed.nn.{name}")

    collective.__name__ = collective.__qualname__ = name
    return collective


all_gather, all_reduce, all_to_all, all_to_all_single, broadcast, gather, reduce, reduce_scatter, scatter = map(_collective, __all__)
