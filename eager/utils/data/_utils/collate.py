"""default_collate and default_convert: batches from samples, and tensors from arrays, in any nesting."""
from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import numpy as np

from eager._tensor.tensor import Tensor
from eager.base import dtypes
from eager.functions.creation import as_tensor, tensor
from eager.functions.joining import stack

CollateMap = dict[type | tuple[type, ...], Callable[..., Any]]

_NOT_NUMBERS = "SaUO"  # numpy's kind codes of arrays of text or objects
np_str_obj_array_pattern = re.compile(f"[{_NOT_NUMBERS}]")  # torch's name: libraries import it
_REFUSAL = "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"


def default_convert(data: Any) -> Any:
    """`data` with every numpy array and number converted to a tensor; containers keep their types (a tuple becomes a list)."""
    if isinstance(data, Tensor):
        return data
    if isinstance(data, (np.ndarray, np.generic)):
        return data if data.dtype.kind in _NOT_NUMBERS else as_tensor(data)
    if isinstance(data, Mapping):
        return _mapping_like(data, {key: default_convert(value) for key, value in data.items()})
    if _is_namedtuple(data):
        return type(data)(*(default_convert(value) for value in data))
    if isinstance(data, tuple):
        return [default_convert(value) for value in data]
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _sequence_like(data, [default_convert(value) for value in data])
    return data


def collate(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """One batch from a list of samples with the same structure.

    collate_fn_map: maps a type (or a tuple of types) to `fn(batch, *, collate_fn_map)`. The exact type of the
    first sample has priority, then the first type of the map that it is an instance of. Mappings,
    namedtuples and sequences are then collated element by element.
    Raises: RuntimeError for sequences of different lengths; TypeError for a sample of any other type.
    """
    first = batch[0]
    if collate_fn_map is not None:
        fn = collate_fn_map.get(type(first))
        if fn is None:
            fn = next((f for kind, f in collate_fn_map.items() if isinstance(first, kind)), None)
        if fn is not None:
            return fn(batch, collate_fn_map=collate_fn_map)
    if isinstance(first, Mapping):
        joined = {key: collate([d[key] for d in batch], collate_fn_map=collate_fn_map) for key in first}
        return _mapping_like(first, joined)
    if _is_namedtuple(first):
        return type(first)(*(collate(column, collate_fn_map=collate_fn_map) for column in zip(*batch, strict=True)))
    if isinstance(first, Sequence):
        return _collate_sequences(batch, collate_fn_map)
    raise TypeError(_REFUSAL.format(type(first)))


def _collate_sequences(batch: Any, collate_fn_map: CollateMap | None) -> Any:
    first = batch[0]
    if any(len(sample) != len(first) for sample in batch):
        raise RuntimeError("each element in list of batch should be of equal size")
    columns = [collate(column, collate_fn_map=collate_fn_map) for column in zip(*batch, strict=True)]
    return columns if isinstance(first, tuple) else _sequence_like(first, columns)


def _is_namedtuple(x: Any) -> bool:
    return isinstance(x, tuple) and hasattr(x, "_fields")


def _mapping_like(original: Any, values: dict[Any, Any]) -> Any:
    """`values` in a mapping of the original's type, with its other attributes; a plain dict if that fails."""
    try:
        if isinstance(original, MutableMapping):
            clone = copy.copy(original)
            clone.update(values)
            return clone
        return type(original)(values)
    except TypeError:
        return values


def _sequence_like(original: Any, values: list[Any]) -> Any:
    """`values` in a sequence of the original's type; a plain list if that fails."""
    try:
        if isinstance(original, MutableSequence):
            clone: Any = copy.copy(original)
            for i, value in enumerate(values):
                clone[i] = value
            return clone
        return type(original)(values)
    except TypeError:
        return values


def collate_tensor_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Tensor:
    """Stack tensors of one shape along a new first dim: n of (*) -> (n, *)."""
    return stack(list(batch), 0)


def collate_numpy_array_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """Convert arrays to tensors and collate them. Raises: TypeError for arrays of text or objects."""
    if batch[0].dtype.kind in _NOT_NUMBERS:
        raise TypeError(_REFUSAL.format(batch[0].dtype))
    return collate([as_tensor(a) for a in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Tensor:
    """A tensor (n,) of numpy scalars, in their dtype."""
    return as_tensor(np.array(batch))


def collate_float_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Tensor:
    """A float64 tensor (n,) of Python floats, regardless of the default dtype."""
    return tensor(batch, dtype=dtypes.float64)


def collate_int_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Tensor:
    """An int64 tensor (n,) of Python ints."""
    return tensor(batch)


def collate_str_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """The list of strings unchanged."""
    return batch


default_collate_fn_map: CollateMap = {
    Tensor: collate_tensor_fn,
    np.ndarray: collate_numpy_array_fn,
    (np.bool_, np.number, np.object_): collate_numpy_scalar_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def default_collate(batch: Any) -> Any:
    """One batch from a list of samples; DataLoader's default.

    Tensors and arrays are stacked; ints become an int64 tensor, floats a float64 tensor; strings and bytes stay a
    list; mappings, namedtuples and sequences keep their structure, with a batch at each leaf (a tuple becomes a
    list). Raises: TypeError for other samples; RuntimeError for sequences of different lengths.
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)
