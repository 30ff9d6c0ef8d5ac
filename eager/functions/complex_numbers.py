"""Public functions of complex numbers."""
from __future__ import annotations

import math
from typing import Any

from eager.base import dtypes
from eager.base.dtypes import scalar_name
from eager.optable.precision import FLOAT32_ON_CPU
from eager.optable.shape import in_layout_of
from eager.optable.table import OPS
from eager.public.record import Out, public, variant


def real(input: Any) -> Any:  # noqa: A002
    """A view of the real parts; a real tensor itself."""
    return OPS["real"](input) if input.dtype.is_complex else input


def imag(input: Any) -> Any:  # noqa: A002
    """A view of the imaginary parts. Raises RuntimeError for a real tensor."""
    return OPS["imag"](input)


def conj(input: Any) -> Any:  # noqa: A002
    """The conjugate; a real tensor itself."""
    return OPS["conj"](input) if input.dtype.is_complex else input


def resolve_conj(input: Any) -> Any:  # noqa: A002
    """The tensor: conjugates are made at once here."""
    return input


@public(out=Out(not_over_itself=True, not_over_inputs=True))
def angle(input: Any) -> Any:  # noqa: A002
    """The argument in radians, of the shape of input. For real numbers: 0, pi if negative, nan for nan. Integers give the default dtype."""
    if input.dtype.is_complex:
        return OPS["atan2"](OPS["imag"](input), OPS["real"](input))
    x = input if input.dtype.is_floating_point else OPS["to_dtype"](input, dtypes.get_default_dtype())
    half_turn, none = (OPS["full"]((), v, x.dtype, x.device) for v in (math.pi, 0.0))
    return OPS["where"](OPS["isnan"](x), x * 0, OPS["where"](x < 0, half_turn, none))


@public(out=Out())
def complex_(real: Any, imag: Any) -> Any:
    """A complex tensor of the broadcast shape. real, imag: one dtype of float32 or float64. Raises: RuntimeError for other dtypes."""
    return OPS["complex"](real, imag)


@public(out=Out(), autocast=FLOAT32_ON_CPU)
def polar(abs: Any, angle: Any) -> Any:  # noqa: A002
    """A complex tensor of magnitudes and angles that broadcast. Raises: RuntimeError unless both are of one dtype, float32 or float64."""
    floats = (dtypes.float16, dtypes.float32, dtypes.float64)
    if abs.dtype not in floats or angle.dtype not in floats:
        raise RuntimeError("Expected both inputs to be Half, Float or Double tensors but got "
                           f"{scalar_name(abs.dtype)} and {scalar_name(angle.dtype)}")  # fmt: skip
    if abs.dtype is not angle.dtype:
        raise RuntimeError(f"Expected object of scalar type {scalar_name(abs.dtype)} but got scalar type {scalar_name(angle.dtype)} for "
                           "second argument")  # fmt: skip
    if abs.dtype is dtypes.float16:
        raise dtypes.no_kernel("polar_cpu", abs.dtype)
    return OPS["complex"](abs * OPS["cos"](angle), abs * OPS["sin"](angle))


def view_as_real(input: Any) -> Any:  # noqa: A002
    """Complex numbers as pairs in a new last dim, over the same memory."""
    return OPS["view_as_real"](input)


@public(autocast=FLOAT32_ON_CPU)
def view_as_complex(input: Any) -> Any:  # noqa: A002
    """(*, 2) floating -> (*) complex, over the same memory. Raises: RuntimeError for other sizes, strides or dtypes."""
    return OPS["view_as_complex"](input)


def isreal(input: Any) -> Any:  # noqa: A002
    """Whether each element has no imaginary part."""
    if input.dtype.is_complex:
        return OPS["eq"](OPS["imag"](input), 0)
    return in_layout_of(OPS["eq"](input, input) | OPS["isnan"](input), input)


def is_complex(input: Any) -> bool:  # noqa: A002
    """Whether the dtype is complex."""
    return bool(input.dtype.is_complex)


def adjoint(input: Any) -> Any:  # noqa: A002
    """Matrices transposed and conjugated; a tensor of no dims conjugated."""
    if input.ndim == 1:
        raise RuntimeError("tensor.mH is only supported on matrices or batches of matrices. Got 1-D tensor.")
    return conj(input.transpose(-2, -1) if input.ndim else input)


FUNCTIONS: dict[str, Any] = {
    "real": real, "imag": imag, "conj": conj,
    "conj_physical": variant(conj, name="conj_physical", out=Out(not_over_itself=True, not_over_inputs=True, differentiable=False)),
    "resolve_conj": resolve_conj, "angle": angle,
    "complex": complex_, "polar": polar, "view_as_real": view_as_real, "view_as_complex": view_as_complex, "isreal": isreal,
    "sgn": OPS["sgn"], "is_complex": is_complex, "adjoint": adjoint,
}  # fmt: skip
METHODS: dict[str, Any] = {
    "sgn_": OPS["sgn_"], "conj_physical_": lambda self: self.copy_(conj(self)),
    **{name: fn for name, fn in FUNCTIONS.items() if name not in ("complex", "polar", "view_as_real", "view_as_complex", "is_complex",
                                                                  "real", "imag")},
    "real": property(real), "imag": property(imag), "mH": property(adjoint), "H": property(adjoint),
}  # fmt: skip
