"""Limits of the element types: `finfo` and `iinfo`. The numbers come from numpy and ml_dtypes."""
from __future__ import annotations

import math

import ml_dtypes
import numpy as np

from eager.base import dtypes
from eager.base.dtypes import Category, dtype


class _TypeInfo:
    """The common part of finfo and iinfo: the dtype, and equality by dtype."""

    __slots__ = ("_dtype",)
    _dtype: dtype

    @property
    def dtype(self) -> str:
        """The type's name, as "float32"."""
        return self._dtype.name

    @property
    def bits(self) -> int:
        """Bits of one number."""
        return self._dtype.itemsize * 8

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._dtype is self._dtype

    def __hash__(self) -> int:
        return hash((type(self), self._dtype))


class finfo(_TypeInfo):  # noqa: N801 - torch's name
    """Limits of a floating type; of a complex one's parts; without argument, of the default dtype.

    eps: distance from 1 to the next number. max, min: largest and smallest (most negative) finite number.
    tiny, smallest_normal: smallest positive number with full precision. resolution: 10 to the power of minus the
    decimal digits that survive. Raises: TypeError for a type that is neither.
    """

    __slots__ = ("_info",)

    def __init__(self, type: dtype | None = None) -> None:  # noqa: A002
        found = dtypes.get_default_dtype() if type is None else type
        if not isinstance(found, dtypes.dtype):
            raise TypeError(f"finfo(): argument 'type' (position 1) must be torch.dtype, not {found.__class__.__name__}")
        if found.is_integral:
            raise TypeError("torch.finfo() requires a floating point input type. Use torch.iinfo to handle 'torch.finfo'")
        self._dtype = found.to_real()
        self._info = ml_dtypes.finfo(self._dtype.numpy)  # type: ignore[no-untyped-call]

    @property
    def eps(self) -> float:
        return float(self._info.eps)

    @property
    def max(self) -> float:
        return float(self._info.max)

    @property
    def min(self) -> float:
        return float(self._info.min)

    @property
    def smallest_normal(self) -> float:
        return float(self._info.smallest_normal)

    tiny = smallest_normal

    @property
    def resolution(self) -> float:
        return 10.0 ** -math.floor(self._info.nmant * math.log10(2.0))

    def __repr__(self) -> str:
        return (f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
                f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})")  # fmt: skip


class iinfo(_TypeInfo):  # noqa: N801 - torch's name
    """Limits of an integer type: min, max, bits. Raises: TypeError for any other type, bool included."""

    __slots__ = ("_info",)

    def __init__(self, type: dtype) -> None:  # noqa: A002
        if not isinstance(type, dtypes.dtype):
            raise TypeError(f"iinfo(): argument 'type' (position 1) must be torch.dtype, not {type.__class__.__name__}")
        if type is dtypes.bool_:
            raise TypeError("torch.bool is not supported by torch.iinfo")
        if type.category is not Category.INT:
            raise TypeError("torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.iinfo'")
        self._dtype = type
        self._info = np.iinfo(type.numpy)

    @property
    def max(self) -> int:
        return int(self._info.max)

    @property
    def min(self) -> int:
        return int(self._info.min)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"
