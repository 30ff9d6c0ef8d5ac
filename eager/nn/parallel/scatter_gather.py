"""Splitting a batch over devices, and joining the results on one device."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eager._tensor.tensor import Tensor
from eager.base.device import device
from eager.functions import FUNCTIONS

__all__ = ["gather", "scatter"]


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> list[Any]:
    """One copy of `inputs` per device: tensors, also inside tuples, lists and dicts, are split along `dim`; other
    values are repeated.
    """
    if isinstance(inputs, Tensor):
        chunks = FUNCTIONS["chunk"](inputs, len(target_gpus), dim) if len(target_gpus) > 1 else (inputs,)
        return [part.to(device(gpu)) for part, gpu in zip(chunks, target_gpus, strict=False)]
    if isinstance(inputs, tuple | list) and inputs:
        kind: Any = (lambda parts: type(inputs)(*parts)) if hasattr(inputs, "_fields") else type(inputs)
        return [kind(parts) for parts in zip(*(scatter(one, target_gpus, dim) for one in inputs), strict=False)]
    if isinstance(inputs, dict) and inputs:
        values = zip(*(scatter(one, target_gpus, dim) for one in inputs.values()), strict=False)
        return [type(inputs)(zip(inputs, parts, strict=True)) for parts in values]
    return [inputs for _ in target_gpus]


def gather(outputs: Sequence[Any], target_device: Any, dim: int = 0) -> Any:
    """The results of several devices on one: tensors are joined along `dim`, also inside tuples, lists and dicts."""
    first = outputs[0]
    if isinstance(first, Tensor):
        return FUNCTIONS["cat"]([one.to(device(target_device)) for one in outputs], dim)
    if isinstance(first, dict):
        return type(first)((key, gather([one[key] for one in outputs], target_device, dim)) for key in first)
    if isinstance(first, tuple | list):
        parts = [gather(each, target_device, dim) for each in zip(*outputs, strict=True)]
        return type(first)(*parts) if hasattr(first, "_fields") else type(first)(parts)
    return first
