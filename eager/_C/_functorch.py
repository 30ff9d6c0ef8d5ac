"""torch._C._functorch: what a tensor of a transform is, for libraries that ask."""
from __future__ import annotations

from typing import Any

from eager.func import debug_unwrap
from eager.transforms.batching import BatchedTensor
from eager.transforms.level import Wrapped


def is_batchedtensor(tensor: Any) -> bool:
    """Whether `tensor` is one of the rows that `vmap` runs over."""
    return isinstance(tensor, BatchedTensor)


def is_functorch_wrapped_tensor(tensor: Any) -> bool:
    """Whether `tensor` belongs to a transform in progress."""
    return isinstance(tensor, Wrapped)


def get_unwrapped(tensor: Any) -> Any:
    """What a tensor of a transform is one level below."""
    return debug_unwrap(tensor, recurse=False)
