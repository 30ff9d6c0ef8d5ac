"""The flags of `torch.backends.cudnn`, which the CUDA backend reads, and the dtypes that cuDNN takes."""

from __future__ import annotations

from typing import Final

from eager.base.records import dataclass

__all__ = ["TYPES", "CudnnFlags", "flags"]

TYPES: Final = {"float16": "HALF", "bfloat16": "BFLOAT16", "float32": "FLOAT"}  # cuDNN's names of the dtypes of convolutions


@dataclass(slots=True)
class CudnnFlags:
    """enabled: whether eager convolutions may use cuDNN. deterministic: only by algorithms that give the same bits in every run.

    allow_tf32: whether operands of float32 may lose mantissa bits where `set_float32_matmul_precision` allows it too. benchmark and
    benchmark_limit have no effect: cuDNN's heuristic chooses the algorithm.
    """

    enabled: bool = True
    benchmark: bool = False
    benchmark_limit: int | None = 10
    deterministic: bool = False
    allow_tf32: bool = True


flags = CudnnFlags()
