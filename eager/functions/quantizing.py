"""Fake quantisation: values as a quantised tensor would hold them, in floats, with gradients that pass straight through."""
from __future__ import annotations

from typing import Any

from eager import _native
from eager.base import dtypes
from eager.base.spec import normalize_dim
from eager.optable.table import OPS

TensorBase = _native.TensorBase


def fake_quantize_per_tensor_affine(input: Any, scale: Any, zero_point: Any, quant_min: int, quant_max: int) -> Any:  # noqa: A002
    """(clamp(round(input / scale) + zero_point, quant_min, quant_max) - zero_point) * scale.

    scale: a number or a tensor of one element, zero_point: likewise, an integer. The gradient passes where nothing was
    clamped. Source: Jacob et al., "Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only
    Inference", 2018. Raises: RuntimeError for limits that do not fit.
    """
    if not isinstance(zero_point, TensorBase):
        if not isinstance(zero_point, int):
            raise TypeError("fake_quantize_per_tensor_affine(): argument 'zero_point' (position 3) must be int or Tensor, not "
                            f"{type(zero_point).__name__}")  # fmt: skip
        _check_limits(quant_min, quant_max, zero_point)
    return _fake_quantized(input, scale, zero_point, quant_min, quant_max)


def fake_quantize_per_channel_affine(input: Any, scale: Any, zero_point: Any, axis: int, quant_min: int, quant_max: int) -> Any:  # noqa: A002
    """The same with a scale and a zero point, both (input.shape[axis],), for every slice of a dim."""
    if zero_point.dtype not in (dtypes.int32, dtypes.float32, dtypes.float16):
        raise RuntimeError(f"Zero-point must be Int32, Float or Half, found {dtypes.scalar_name(zero_point.dtype)}")
    if scale.ndim != 1 or zero_point.ndim != 1:
        raise RuntimeError("scale and zero point should be 1-D tensors")
    if scale.shape != zero_point.shape:
        raise RuntimeError("scale and zero-point need to have the same dimensions")
    dim = normalize_dim(axis, input.ndim)
    if scale.shape[0] != input.shape[dim]:
        raise RuntimeError("dimensions of scale and zero-point are not consistent with input tensor")
    _check_limits(quant_min, quant_max, quant_min)
    shape = [1] * input.ndim
    shape[dim] = input.shape[dim]
    return _fake_quantized(input, scale.view(shape), zero_point.view(shape), quant_min, quant_max)


def _check_limits(quant_min: int, quant_max: int, zero_point: int) -> None:
    if quant_min > quant_max:
        raise RuntimeError(f"`quant_min` ({quant_min}) should be less than or equal to `quant_max` ({quant_max}).")
    if not quant_min <= zero_point <= quant_max:
        raise RuntimeError(f"`zero_point` ({zero_point}) must be between `quant_min` ({quant_min}) and `quant_max` ({quant_max}).")


def _fake_quantized(x: Any, scale: Any, zero_point: Any, low: int, high: int) -> Any:
    if not x.is_floating_point():
        raise NotImplementedError(f'"fake_quantize_tensor_cachemask_kernel_type_handling" not implemented for '
                                  f"'{dtypes.scalar_name(x.dtype)}'")  # fmt: skip
    plain = x.detach()
    wide = plain if x.dtype in (dtypes.float32, dtypes.float64) else plain.to(dtypes.float32)
    if not isinstance(scale, TensorBase):
        scale = OPS["full"]((), scale, dtypes.float32, x.device)
    scale = scale.detach().to(dtypes.float32)
    steps = OPS["round"](wide * (1 / scale)) + zero_point
    inside = (steps >= low) & (steps <= high)  # NaN is not, and counts as below
    kept = OPS["where"](inside, steps, OPS["where"](steps > high, float(high), float(low)))
    values = ((kept - zero_point) * scale).to(x.dtype)
    through = OPS["where"](inside, x, 0.0)  # finite, so that its difference to itself is zero and has its gradient
    return values + (through - through.detach())


FUNCTIONS: dict[str, Any] = {
    "fake_quantize_per_tensor_affine": fake_quantize_per_tensor_affine,
    "fake_quantize_per_channel_affine": fake_quantize_per_channel_affine,
}
METHODS: dict[str, Any] = {}
