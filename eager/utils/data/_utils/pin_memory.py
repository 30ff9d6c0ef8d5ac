"""pin_memory: copies a batch's tensors to page-locked memory, from which a GPU copies asynchronously."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from eager._tensor.tensor import Tensor
from eager.utils.data._utils.collate import _is_namedtuple, _mapping_like, _sequence_like


def pin_memory(data: Any, device: Any = None) -> Any:
    """`data` with each tensor pinned; an object with a `pin_memory` method is pinned by that method."""
    if isinstance(data, Tensor):
        return data.pin_memory()
    if isinstance(data, (str, bytes)):
        return data
    if isinstance(data, Mapping):
        return _mapping_like(data, {key: pin_memory(value, device) for key, value in data.items()})
    if _is_namedtuple(data):
        return type(data)(*(pin_memory(value, device) for value in data))
    if isinstance(data, tuple):
        return [pin_memory(value, device) for value in data]
    if isinstance(data, Sequence):
        return _sequence_like(data, [pin_memory(value, device) for value in data])
    return data.pin_memory() if hasattr(data, "pin_memory") else data
