"""CUDA's flags: the precision of matrix products, and the allowed implementations of attention."""
from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from eager import cuda
from eager.base import precision
from eager.base.attention_backends import SDPBackend, allowed, sdpa_kernel, set_allowed
from eager.base.records import dataclass

__all__ = [
    "SDPAParams", "SDPBackend", "can_use_cudnn_attention", "can_use_efficient_attention", "can_use_flash_attention",
    "cudnn_sdp_enabled", "enable_cudnn_sdp", "enable_flash_sdp", "enable_math_sdp", "enable_mem_efficient_sdp",
    "flash_sdp_enabled", "is_built", "is_flash_attention_available", "math_sdp_enabled", "matmul", "mem_efficient_sdp_enabled",
    "preferred_blas_library", "preferred_linalg_library", "sdp_kernel",
]  # fmt: skip


def is_built() -> bool:
    """Whether this installation can use a GPU: CuPy is installed and finds one."""
    return cuda.is_available()


class _Matmul:
    """`backends.cuda.matmul`: flags that allow less exact matrix products.

    They have no effect: all products are exact.
    """

    allow_fp16_reduced_precision_reduction = True
    allow_bf16_reduced_precision_reduction = True
    allow_fp16_accumulation = False

    @property
    def allow_tf32(self) -> bool:
        """The same setting as `set_float32_matmul_precision`: True means "high"."""
        return precision.get_float32_matmul_precision() != "highest"

    @allow_tf32.setter
    def allow_tf32(self, value: bool) -> None:
        precision.set_float32_matmul_precision("high" if value else "highest")

    @property
    def fp32_precision(self) -> str:
        return "tf32" if self.allow_tf32 else "ieee"

    @fp32_precision.setter
    def fp32_precision(self, value: str) -> None:
        if value not in ("tf32", "ieee", "none"):
            raise RuntimeError(f"Unknown precision: {value}; allowed: tf32, ieee, none")
        self.allow_tf32 = value == "tf32"


matmul = _Matmul()


def _switch(backend: SDPBackend, on: bool) -> None:
    rest = [b for b in allowed() if b is not backend]
    set_allowed([*rest, backend] if on else rest)


def _is_on(backend: SDPBackend) -> bool:
    return backend in allowed()


def flash_sdp_enabled() -> bool:
    """Whether the flash implementation is allowed."""
    return _is_on(SDPBackend.FLASH_ATTENTION)


def enable_flash_sdp(enabled: bool) -> None:
    """Allow or forbid an implementation of attention. A single implementation serves all of their names."""
    _switch(SDPBackend.FLASH_ATTENTION, enabled)


def mem_efficient_sdp_enabled() -> bool:
    """Whether the memory-efficient implementation is allowed."""
    return _is_on(SDPBackend.EFFICIENT_ATTENTION)


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """See `enable_flash_sdp`."""
    _switch(SDPBackend.EFFICIENT_ATTENTION, enabled)


def math_sdp_enabled() -> bool:
    """Whether the unfused implementation is allowed."""
    return _is_on(SDPBackend.MATH)


def enable_math_sdp(enabled: bool) -> None:
    """See `enable_flash_sdp`."""
    _switch(SDPBackend.MATH, enabled)


def cudnn_sdp_enabled() -> bool:
    """Whether the cuDNN implementation is allowed."""
    return _is_on(SDPBackend.CUDNN_ATTENTION)


def enable_cudnn_sdp(enabled: bool) -> None:
    """See `enable_flash_sdp`."""
    _switch(SDPBackend.CUDNN_ATTENTION, enabled)


def allow_fp16_bf16_reduction_math_sdp(enabled: bool) -> None:
    """Set a flag without effect: half-precision attention accumulates in float32."""
    global _fp16_bf16_reduction
    _fp16_bf16_reduction = bool(enabled)


def fp16_bf16_reduction_math_sdp_allowed() -> bool:
    """The flag set by `allow_fp16_bf16_reduction_math_sdp`."""
    return _fp16_bf16_reduction


_fp16_bf16_reduction = False


@contextlib.contextmanager
def sdp_kernel(enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True,
               enable_cudnn: bool = True) -> Iterator[None]:  # fmt: skip
    """Allow only these implementations within the block (the older form of `nn.attention.sdpa_kernel`)."""
    flags = {SDPBackend.FLASH_ATTENTION: enable_flash, SDPBackend.MATH: enable_math,
              SDPBackend.EFFICIENT_ATTENTION: enable_mem_efficient, SDPBackend.CUDNN_ATTENTION: enable_cudnn}  # fmt: skip
    with sdpa_kernel([b for b, on in flags.items() if on]):
        yield


@dataclass(frozen=True)
class SDPAParams:
    """The arguments of an attention call, for queries about implementations."""

    query: Any
    key: Any
    value: Any
    attn_mask: Any
    dropout: float
    is_causal: bool
    enable_gqa: bool = False


def is_flash_attention_available() -> bool:
    """Whether torch's flash kernels exist: always False, attention kernels are generated."""
    return False


def can_use_flash_attention(params: SDPAParams, debug: bool = False) -> bool:
    """Whether torch's flash kernel supports a call: always False, this library does not contain it."""
    return False


def can_use_efficient_attention(params: SDPAParams, debug: bool = False) -> bool:
    """As `can_use_flash_attention`."""
    return False


def can_use_cudnn_attention(params: SDPAParams, debug: bool = False) -> bool:
    """As `can_use_flash_attention`."""
    return False


def _preferred(name: str, backend: str | None, allowed: tuple[str, ...]) -> str:
    if backend is not None and backend not in allowed:
        raise RuntimeError(f"{name}: unknown input value {backend!r}; allowed: {', '.join(allowed)}")
    return "default"


def preferred_linalg_library(backend: str | None = None) -> str:
    """The preferred library of CUDA linalg: always the default, CuPy's choice. The argument is checked and ignored."""
    return _preferred("preferred_linalg_library", backend, ("default", "cusolver", "magma"))


def preferred_blas_library(backend: str | None = None) -> str:
    """As `preferred_linalg_library`, for matrix products."""
    return _preferred("preferred_blas_library", backend, ("default", "cublas", "cublaslt", "hipblaslt", "ck"))
