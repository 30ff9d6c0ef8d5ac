"""Memory that arrays and tensors share: functions that guards and generated code call at run time."""

from __future__ import annotations

from typing import Any

import numpy as np

from eager import Tensor
from eager.base import dtypes


def is_known(dtype: np.dtype[Any]) -> bool:
    """Whether tensors have elements of this dtype."""
    try:
        dtypes.from_numpy(dtype)
    except (TypeError, ValueError):
        return False
    return True


def share_memory(a: Tensor, b: Tensor) -> bool:
    """Whether the memory of two tensors overlaps. Each numpy array has a separate storage."""
    one, other = a.untyped_storage().root, b.untyped_storage().root
    if one is other:
        return True
    return one.data_ptr() < other.data_ptr() + other.nbytes() and other.data_ptr() < one.data_ptr() + one.nbytes()


def numpy_scalar(t: Tensor) -> Any:
    """The number in a tensor without dims, as a numpy scalar."""
    return t.numpy()[()]


def read_only(t: Tensor) -> Any:
    """A read-only array over the memory of the tensor."""
    array = t.numpy().view()
    array.flags.writeable = False
    return array
