"""`torch.distributed.fsdp`: parameters sharded over processes. Its names serve imports and `isinstance` checks only."""
from __future__ import annotations

from typing import Any, NoReturn

from eager.base.dtypes import dtype
from eager.base.records import dataclass
from eager.nn.module import Module
from eager.startup.absent_names import missing

__all__ = ["CPUOffload", "CPUOffloadPolicy", "FSDPModule", "FullyShardedDataParallel", "MixedPrecision", "MixedPrecisionPolicy",
           "OffloadPolicy", "fully_shard"]  # fmt: skip


class FullyShardedDataParallel(Module):
    """A module whose parameters are sharded over processes. The constructor raises NotImplementedError."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        missing("torch.distributed.fsdp.FullyShardedDataParallel")


class FSDPModule:
    """The class of modules that `fully_shard` returns. It has no instances."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        missing("torch.distributed.fsdp.FSDPModule")


def fully_shard(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises NotImplementedError: there is a single process."""
    missing("torch.distributed.fsdp.fully_shard")


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes of computation, reduction and output of `fully_shard`."""

    param_dtype: dtype | None = None
    reduce_dtype: dtype | None = None
    output_dtype: dtype | None = None
    cast_forward_inputs: bool = True


@dataclass
class MixedPrecision:
    """The dtypes of computation and reduction of `FullyShardedDataParallel`."""

    param_dtype: dtype | None = None
    reduce_dtype: dtype | None = None
    buffer_dtype: dtype | None = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True


@dataclass(frozen=True)
class OffloadPolicy:
    """Parameters remain on their device."""


@dataclass(frozen=True)
class CPUOffloadPolicy(OffloadPolicy):
    """Parameters are kept in host memory."""

    pin_memory: bool = True


@dataclass
class CPUOffload:
    """Whether parameters are kept in host memory."""

    offload_params: bool = False
