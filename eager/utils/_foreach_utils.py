"""Device support of ops over lists of tensors (`torch._foreach_*`), and the grouping of their arguments."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eager._tensor.tensor import Tensor
from eager.base.device import device as Device  # noqa: N812
from eager.base.dtypes import bfloat16, dtype, float32, float64

Group = tuple[list[list[Any]], list[int]]
_CPU = Device("cpu")


def _get_foreach_kernels_supported_devices() -> list[str]:
    """Device types, besides the CPU, on which the ops over lists run."""
    return ["cuda"]


def _get_fused_kernels_supported_devices() -> list[str]:
    """Device types on which optimizers accept `fused=True`."""
    return ["cpu", "cuda"]


def _device_has_foreach_support(device: Device) -> bool:
    return device.type in ("cpu", *_get_foreach_kernels_supported_devices())


def _has_foreach_support(tensors: Sequence[Tensor | None], device: Device) -> bool:
    """Whether every tensor is None or exactly a Tensor, and `device` supports the ops over lists."""
    return _device_has_foreach_support(device) and all(t is None or type(t) is Tensor for t in tensors)


def _group_tensors_by_device_and_dtype(
    tensorlistlist: Sequence[Sequence[Tensor | None]], with_indices: bool = False
) -> dict[tuple[Device, dtype], Group]:
    """Split parallel lists by device and dtype of the first list's tensors.

    Returns, for each (device, dtype) in order of first occurrence, the corresponding part of every list, and the
    positions of its elements ([] unless `with_indices`).
    Raises: RuntimeError for no list, None in the first list, lists of different lengths (empty lists are allowed), or a
    tensor whose device or dtype differs from the first list's; float32 and float64 tensors (step counts) may also be on
    the CPU, and other states may be bfloat16.
    """
    if not tensorlistlist:
        raise RuntimeError("_group_tensors_by_device_and_dtype: got no list of tensors; allowed: at least 1")
    first, *others = tensorlistlist
    groups: dict[tuple[Device, dtype], Group] = {}
    for i, t in enumerate(first):
        if t is None:
            raise RuntimeError(f"Tensors of the first list of nested Tensor lists are supposed to be defined but the {i}-th Tensor is not.")
        lists, indices = groups.setdefault((t.device, t.dtype), ([[] for _ in tensorlistlist], []))
        lists[0].append(t)
        for group_list, given in zip(lists[1:], others, strict=True):
            if given:
                group_list.append(_matching(given, i, t, len(first)))
        if with_indices:
            indices.append(i)
    return groups


def _matching(given: Sequence[Tensor | None], i: int, t: Tensor, n: int) -> Tensor | None:
    if len(given) != n:
        raise RuntimeError(f"Tensorlists[0] has {n} tensors, another has {len(given)}; allowed: as many, or none")
    other = given[i]
    if other is not None and not (
        (other.device == t.device and other.dtype in (t.dtype, bfloat16))
        or (other.device in (t.device, _CPU) and other.dtype in (float32, float64))
    ):
        raise RuntimeError("Tensors of the same index must be on the same device and the same dtype except `step` tensors that can be CPU "
                           "and float32/64, and optimizer states that can be bfloat16 for mixed-precision training; got "
                           f"{t.dtype} on {t.device} and {other.dtype} on {other.device}")  # fmt: skip
    return other
