"""Fake tensors: metadata, storage identity, versions and autograd history, but no data.

Ops on fakes run meta rules only, so a whole model can run for its shapes. Views of a fake share its storage object, which
identifies aliases.
"""
from __future__ import annotations

from typing import Any

from eager import _native
from eager.base.spec import SpecLike, TensorSpec, spec_of
from eager.base.symint import SymInt, hint_of

FAKE_FLAG = 1 << 33


class DataDependentError(RuntimeError):
    """Code read the data of a fake tensor, or the result shape of an op depends on data."""


def fake(spec: TensorSpec, requires_grad: bool = False) -> Any:
    """A fake tensor with this metadata, over a new storage. Sizes and strides may be SymInts."""
    d = spec.device
    # Nothing reads the length of memory that is not there, so symbolic sizes need not be decided about for it.
    shape, strides = spec.shape, spec.strides
    if SymInt in map(type, shape) or SymInt in map(type, strides):
        shape, strides = tuple(map(hint_of, shape)), tuple(map(hint_of, strides))
    span = 0 if 0 in shape else 1 + sum([(n - 1) * s for n, s in zip(shape, strides, strict=True)])
    storage = _native.storage_fake(span * spec.dtype.itemsize, d.code, d.index or 0)
    t = _native.new_tensor(None, storage, spec.dtype.code, spec.shape, spec.strides, 0, FAKE_FLAG)
    if requires_grad:
        t._requires_grad = True
    return t


def fake_like(t: SpecLike, requires_grad: bool | None = None) -> Any:
    """A fake leaf with the metadata of `t` (storage offset dropped)."""
    return fake(spec_of(t), getattr(t, "_requires_grad", False) if requires_grad is None else requires_grad)


def refuse_data(t: Any, what: str) -> None:
    """Raise for a tensor without data: RuntimeError or NotImplementedError on the meta device, else DataDependentError."""
    if t.device.type == "meta":
        if what == "item()":
            raise RuntimeError("Tensor.item() cannot be called on meta tensors")
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    if t.is_fake:
        raise DataDependentError(f"{what}: reads the value of a fake tensor, which has only metadata")
