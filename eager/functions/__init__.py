"""The public functions by family; importing this package makes them methods of Tensor.

A family lists `FUNCTIONS` (names in the `eager` namespace) and `METHODS` (names on Tensor).
"""
from typing import Any

from eager.casting import listed
from eager.functions import (
    complex_numbers,
    convert,
    convolution,
    creation,
    indexing,
    joining,
    linalg,
    matmul,
    pointwise,
    pooling,
    random,
    reductions,
    resampling,
    shape,
    sorting,
    special,
    views,
)
from eager.functions.keywords import accept_numpy_names
from eager.tensor import attach

FAMILIES = (pointwise, reductions, views, convert, creation, random, matmul, indexing, joining, shape, sorting,
            convolution, pooling, resampling, linalg,
            complex_numbers, special)  # fmt: skip
FUNCTIONS: dict[str, Any] = {}
for _family in FAMILIES:
    accept_numpy_names(_family.FUNCTIONS)
    accept_numpy_names(_family.METHODS)
    FUNCTIONS.update(listed(_family.FUNCTIONS))
    attach(listed(_family.METHODS))
for _name, _fn in FUNCTIONS.items():
    if callable(_fn) and getattr(_fn, "__name__", None) in ("make", "<lambda>"):
        _fn.__name__ = _fn.__qualname__ = _name

__all__ = ["FUNCTIONS"]
