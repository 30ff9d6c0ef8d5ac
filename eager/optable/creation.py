"""Tensors from numbers alone."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from eager.base import dtypes, float8
from eager.base.device import device, memory_device
from eager.base.dtypes import dtype
from eager.base.scalars import check_element
from eager.base.spec import TensorSpec
from eager.base.symint import SymInt
from eager.optable.registry import Kind
from eager.optable.table import declare


def _full_meta(size: Sequence[int], value: Any, dtype: dtype | None, device: device | None) -> TensorSpec:
    for n in size:
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {list(size)}")
    if dtype is not None:
        check_element(value, dtype)
    return TensorSpec.contiguous(size, dtype or dtypes.of_scalar(value), memory_device(device))


FULL = declare("full(int[] size, Scalar value, dtype? dtype=None, device? device=None) -> Tensor", Kind.CREATION,
               meta=_full_meta, kernel=lambda xp, out, size, value, dtype, device: float8.fill(out, value), nondifferentiable=True,
               float8=True,
               samples=lambda make: iter([((3, 4), 1.5, None, None), ((0, 2), 1, None, None),
                                          ((), True, None, None)]))  # fmt: skip


def _empty_meta(size: Sequence[int], dtype: dtype | None, device: device | None) -> TensorSpec:
    return _full_meta(size, 0.0, dtype or dtypes.get_default_dtype(), device)


# Contents undefined; deterministic zeros under no promise.
EMPTY = declare("empty(int[] size, dtype? dtype=None, device? device=None) -> Tensor", Kind.CREATION, meta=_empty_meta,
                kernel=lambda xp, out, size, dtype, device: None, nondifferentiable=True, float8=True,
                samples=lambda make: iter([((0, 4), None, None)]))  # fmt: skip


def arange_length(start: Any, end: Any, step: Any) -> int:
    """Number of values in [start, end) by `step`. Raises RuntimeError for a step that leads away."""
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if _whole(start, end, step):
        if (end - start) * step < 0:
            raise RuntimeError("upper bound and lower bound inconsistent with step sign")
        length, by = (end - start, step) if step > 0 else (start - end, -step)
        return (length + by - 1) // by  # type: ignore[no-any-return]
    if (end - start) / step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    return math.ceil((end - start) / step)


def in_dtype(number: Any, dtype: dtype | None) -> Any:
    """The start or step of an arange: an integer dtype truncates a fraction."""
    return int(number) if dtype is not None and dtype.is_integral and isinstance(number, float) else number


def _length(start: Any, end: Any, step: Any, dtype: dtype | None) -> int:
    """Number of values. int64 truncates all three numbers first, the other integers count with the fractions."""
    if dtype is not dtypes.int64 or _whole(start, end, step):
        return arange_length(start, end, step)
    start, end, step = (in_dtype(n, dtype) for n in (start, end, step))
    if step == 0:
        raise ValueError("step must be nonzero")
    return arange_length(start, end, step)


def _whole(*numbers: Any) -> bool:
    return all(isinstance(n, int | SymInt) for n in numbers)


def _arange_meta(start: Any, end: Any, step: Any, dtype: dtype | None, device: device | None) -> TensorSpec:
    if dtype is None:
        dtype = dtypes.int64 if _whole(start, end, step) else dtypes.get_default_dtype()
    return TensorSpec.contiguous((_length(start, end, step, dtype),), dtype, memory_device(device))


def _arange(xp: Any, out: Any, start: Any, end: Any, step: Any, dtype: Any, device: Any) -> None:
    start, step = in_dtype(start, dtype), in_dtype(step, dtype)
    i = xp.arange(out.shape[0])
    wide = i if isinstance(start, int) and isinstance(step, int) else i.astype("f8")
    xp.copyto(out, start + wide * step, casting="unsafe")


ARANGE = declare("arange(Scalar start, Scalar end, Scalar step=1, dtype? dtype=None, device? device=None) -> Tensor",
                 Kind.CREATION, meta=_arange_meta, kernel=_arange, nondifferentiable=True,
                 samples=lambda make: iter([(0, 5, 1, None, None), (1.0, 2.0, 0.25, None, None),
                                            (5, 0, -2, None, None)]))  # fmt: skip
