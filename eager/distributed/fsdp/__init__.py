"""`torch.distributed.fsdp`: parameters spread over processes. There is one process: the names can be imported and asked for."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from eager.base.dtypes import dtype
from eager.nn.module import Module
from eager.startup.absent_names import missing

__all__ = ["CPUOffload", "CPUOffloadPolicy", "FSDPModule", "FullyShardedDataParallel", "MixedPrecision", "MixedPrecisionPolicy",
           "OffloadPolicy", "fully_shard"]  # fmt: skip


class FullyShardedDataParallel(Module):
    """A module whose parameters are spread over processes. There are none. Raises: NotImplementedError."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        missing("torch.distributed.fsdp.FullyShardedDataParallel")


class FSDPModule:
    """What `fully_shard` makes of a module. There are none."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        missing("torch.distributed.fsdp.FSDPModule")


def fully_shard(*args: Any, **kwargs: Any) -> NoReturn:
    """Not available. Raises: NotImplementedError."""
    missing("torch.distributed.fsdp.fully_shard")


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes that `fully_shard` computes, reduces and gives back in."""

    param_dtype: dtype | None = None
    reduce_dtype: dtype | None = None
    output_dtype: dtype | None = None
    cast_forward_inputs: bool = True


@dataclass
class MixedPrecision:
    """The dtypes that `FullyShardedDataParallel` computes and reduces in."""

    param_dtype: dtype | None = None
    reduce_dtype: dtype | None = None
    buffer_dtype: dtype | None = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True


@dataclass(frozen=True)
class OffloadPolicy:
    """Parameters stay where they are."""


@dataclass(frozen=True)
class CPUOffloadPolicy(OffloadPolicy):
    """Parameters wait in host memory."""

    pin_memory: bool = True


@dataclass
class CPUOffload:
    """Whether parameters wait in host memory."""

    offload_params: bool = False
