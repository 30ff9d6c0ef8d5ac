"""Conversion between parameters and one flat vector."""
from __future__ import annotations

import math
from collections.abc import Iterable

from eager._tensor.tensor import Tensor
from eager.nn._base import typename
from eager.optable.table import OPS


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All parameters, flattened and joined into one vector. Raises: TypeError if they are on different devices."""
    given = list(parameters)
    if len({p.device for p in given}) > 1:
        raise TypeError("Found two parameters on different devices, this is currently not supported.")
    return OPS["cat"]([p.reshape(-1) for p in given], 0)


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Set each parameter's data to a view of its slice of `vec`. Raises: TypeError if vec is not a tensor."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {typename(vec)}")
    offset = 0
    for p in parameters:
        n = math.prod(p.shape)
        p.data = OPS["slice"](vec, 0, offset, offset + n, 1).view(tuple(p.shape)).data
        offset += n
