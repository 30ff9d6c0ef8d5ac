"""torch._C._functorch: queries about the tensors of function transforms."""
from __future__ import annotations

from typing import Any

from eager.func import debug_unwrap
from eager.transforms.batching import BatchedTensor
from eager.transforms.level import Wrapped


def is_batchedtensor(tensor: Any) -> bool:
    """Whether `tensor` represents the rows over which `vmap` runs."""
    return isinstance(tensor, BatchedTensor)


def is_functorch_wrapped_tensor(tensor: Any) -> bool:
    """Whether `tensor` belongs to an active transform."""
    return isinstance(tensor, Wrapped)


def get_unwrapped(tensor: Any) -> Any:
    """The value of a transform's tensor, one level below."""
    return debug_unwrap(tensor, recurse=False)
