"""Random tensors for tests."""
from __future__ import annotations

import math
from typing import Any

from eager._tensor.tensor import Tensor
from eager.base import dtypes
from eager.base.dtypes import dtype
from eager.base.limits import finfo, iinfo
from eager.functions import random
from eager.optable.table import OPS

__all__ = ["make_tensor"]


def make_tensor(*shape: Any, dtype: dtype, device: Any = "cpu", low: float | None = None, high: float | None = None,
                requires_grad: bool = False, noncontiguous: bool = False, exclude_zero: bool = False,
                memory_format: Any = None) -> Tensor:  # fmt: skip
    """A tensor of `shape` with values uniform in [low, high): by default [-9, 9), integers [-9, 10), unsigned ones [0, 10).

    low, high: clamped to the range of the dtype. noncontiguous: strides with gaps, if there are at least two elements.
    exclude_zero: replace zeros by the smallest positive number (1 for integers). memory_format: for at least 4 dims.
    Raises: ValueError for bounds that are NaN or enclose no value, for bools outside 0 and 2, and for
    noncontiguous with memory_format.
    """
    size = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else tuple(shape)
    if noncontiguous and memory_format is not None:
        raise ValueError(f"The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got {noncontiguous} "
                         f"and memory_format={memory_format}")  # fmt: skip
    if not isinstance(requires_grad, bool):
        raise RuntimeError("requires_grad must be a bool")
    bottom, top = _bounds(dtype, low, high)
    wide = (*size[:-1], 2 * size[-1]) if noncontiguous and size and math.prod(size) > 1 else size
    values = _draw(wide, dtype, device, bottom, top)
    if wide is not size:
        values = values[..., ::2]
    if exclude_zero:
        values[values == 0] = finfo(dtype).tiny if dtype.is_floating_point or dtype.is_complex else 1
    if memory_format is not None:
        values = values.clone(memory_format=memory_format)
    return values.requires_grad_() if requires_grad else values


def _bounds(d: dtype, low: float | None, high: float | None) -> tuple[float, float]:
    if d is dtypes.bool_:
        smallest, largest, default = 0.0, 2.0, (0.0, 2.0)
    elif d.is_integral:
        info = iinfo(d)
        smallest, largest = info.min, info.max + (1 if info.max < 2**53 else 0)
        default = (-9, 10) if d.is_signed else (0, 10)
    else:
        limits = finfo(d)
        smallest, largest, default = limits.min, limits.max, (-9.0, 9.0)
    bottom, top = default[0] if low is None else low, default[1] if high is None else high
    if any(isinstance(v, float) and math.isnan(v) for v in (bottom, top)):
        raise ValueError(f"`low` and `high` cannot be NaN, but got low={low} and high={high}")
    if bottom > top or (bottom == top and d.is_integral):
        raise ValueError(f"make_tensor: low={bottom} and high={top} for {d}; `low` must be below `high`")
    if (low is not None and low >= largest and d.is_integral) or (high is not None and high <= smallest):
        raise ValueError(f"make_tensor: low={low} and high={high} lie outside what {d} holds, {smallest} to {largest}")
    return max(bottom, smallest), min(top, largest)


def _draw(size: tuple[int, ...], d: dtype, device: Any, low: float, high: float) -> Tensor:
    if d.is_complex:
        parts = (*size, 2)
        return OPS["view_as_complex"](_draw(parts, d.to_real(), device, low, high))
    if d.is_integral:
        return random.randint(math.floor(low), math.ceil(high), size, dtype=dtypes.int64, device=device).to(d)
    wide = dtypes.float64 if d is dtypes.float64 else dtypes.float32
    unit = random.rand(size, dtype=wide, device=device)
    return (unit * (high / 2 - low / 2) * 2 + low).clamp(low, high).to(d)  # computed in halves, because high - low may overflow
