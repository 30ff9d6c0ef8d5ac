"""`torch.cuda.amp`: deprecated names for a fixed device type."""
from __future__ import annotations

import warnings
from typing import Any

from eager.amp import autocast_mode, grad_scaler
from eager.base import dtypes
from eager.base.dtypes import dtype

__all__ = ["GradScaler", "autocast"]


def _deprecated(name: str) -> None:
    warnings.warn(f"`torch.cuda.amp.{name}(args...)` is deprecated. Please use `torch.amp.{name}('cuda', args...)` instead.",
                  FutureWarning, stacklevel=3)  # fmt: skip


class autocast(autocast_mode.autocast):  # noqa: N801 - torch's name
    """`amp.autocast("cuda", ...)`. Deprecated, as in torch."""

    def __init__(self, enabled: bool = True, dtype: dtype = dtypes.float16, cache_enabled: bool = True) -> None:
        _deprecated("autocast")
        super().__init__("cuda", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


class GradScaler(grad_scaler.GradScaler):
    """`amp.GradScaler("cuda", ...)`. Deprecated, as in torch."""

    def __init__(self, init_scale: float = 2.0**16, growth_factor: float = 2.0, backoff_factor: float = 0.5,
                 growth_interval: int = 2000, enabled: bool = True) -> None:  # fmt: skip
        _deprecated("GradScaler")
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


def custom_fwd(fwd: Any = None, *, cast_inputs: dtype | None = None) -> Any:
    """`amp.custom_fwd(device_type="cuda", ...)`. Deprecated, as in torch."""
    _deprecated("custom_fwd")
    return autocast_mode.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Any = None) -> Any:
    """`amp.custom_bwd(device_type="cuda")`. Deprecated, as in torch."""
    _deprecated("custom_bwd")
    return autocast_mode.custom_bwd(bwd, device_type="cuda")
