"""Products of matrices of 8-bit floats: operands of 8 bits, sums in float32."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from eager.base import dtypes
from eager.base.spec import SpecLike, TensorSpec, common_device
from eager.optable.products import matmul
from eager.optable.registry import Kind
from eager.optable.table import declare

MULTIPLIED = (dtypes.float8_e4m3fn, dtypes.float8_e5m2)


def _meta(x: SpecLike, other: SpecLike) -> TensorSpec:
    for name, t in (("mat1", x), ("mat2", other)):
        if t.ndim != 2:
            raise RuntimeError(f"{name} must be a matrix")
        if t.dtype not in MULTIPLIED:
            allowed = " or ".join(d.name for d in MULTIPLIED)
            raise RuntimeError(f"float8_mm: {name} is {t.dtype.name}; allowed: {allowed}")
    if x.shape[1] != other.shape[0]:
        raise RuntimeError("mat_a and mat_b shapes cannot be multiplied "
                           f"({x.shape[0]}x{x.shape[1]} and {other.shape[0]}x{other.shape[1]})")  # fmt: skip
    common_device("float8_mm", [x, other])
    return TensorSpec.contiguous((x.shape[0], other.shape[1]), dtypes.float32, x.device)


def _kernel(xp: Any, out: Any, x: Any, other: Any) -> None:
    matmul(xp, x.astype("f4"), other.astype("f4"), out)


def _samples(make: Any) -> Iterator[tuple[Any, ...]]:
    yield make(3, 4).to(dtypes.float8_e4m3fn), make(4, 5).to(dtypes.float8_e4m3fn)
    yield make(4, 3).to(dtypes.float8_e5m2).t(), make(5, 4).to(dtypes.float8_e4m3fn).t()
    yield make(0, 4).to(dtypes.float8_e4m3fn), make(4, 2).to(dtypes.float8_e4m3fn)
    yield make(2, 0).to(dtypes.float8_e4m3fn), make(0, 3).to(dtypes.float8_e4m3fn)


FLOAT8_MM = declare("float8_mm(Tensor x, Tensor other) -> Tensor", Kind.OPAQUE, meta=_meta, kernel=_kernel, float8=True, underived=True,
                    samples=_samples, batch="float8_mm")  # fmt: skip
