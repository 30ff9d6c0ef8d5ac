"""pin_memory: the same batch with its tensors in page-locked memory, which a GPU copies from by itself."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from eager._tensor.tensor import Tensor
from eager.utils.data._utils.collate import _is_namedtuple, _mapping_like, _sequence_like


def pin_memory(data: Any, device: Any = None) -> Any:
    """`data` with each tensor in it pinned; an object with a `pin_memory` method is asked to do it itself."""
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
