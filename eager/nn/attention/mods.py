"""Mask and score functions of flex attention, and their combinations.

Users write a mask_mod(b, h, q_idx, kv_idx) for single elements; here each is called once, with index tensors that
broadcast against each other.
"""
from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

from eager._tensor.tensor import Tensor
from eager.base import dtypes
from eager.base.device import CPU
from eager.base.device import device as Device  # noqa: N812 - `device` is an argument here
from eager.optable.table import OPS

MaskMod = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
ScoreMod = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """A mask that hides nothing."""
    return OPS["full"]((), True, dtypes.bool_, batch.device)


def or_masks(*mask_mods: MaskMod) -> MaskMod:
    """A mask that shows the elements that any given mask shows.

    Raises: RuntimeError for an argument that is not callable.
    """
    if not all(callable(m) for m in mask_mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")

    def or_mask(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        result: Any = OPS["full"]((), False, dtypes.bool_, b.device)
        for m in mask_mods:
            result = result | m(b, h, q_idx, kv_idx)
        return result

    return or_mask


def and_masks(*mask_mods: MaskMod) -> MaskMod:
    """A mask that shows the elements that all given masks show.

    Raises: RuntimeError for an argument that is not callable.
    """
    if not all(callable(m) for m in mask_mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")

    def and_mask(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        result: Any = OPS["full"]((), True, dtypes.bool_, b.device)
        for m in mask_mods:
            result = result & m(b, h, q_idx, kv_idx)
        return result

    return and_mask


def is_score_mod(fn: Callable[..., Any]) -> bool:
    """Whether a function takes a score before the indices. Raises: AssertionError unless it takes 4 or 5 arguments."""
    count = sum(1 for p in inspect.signature(fn).parameters.values()
                if p.default is inspect.Parameter.empty and p.kind is not inspect.Parameter.VAR_POSITIONAL)  # fmt: skip
    if count not in (4, 5):
        raise AssertionError(f"a mask_mod takes 4 arguments and a score_mod 5, but {fn!r} takes {count}")
    return count == 5


def indices(sizes: tuple[int, int, int, int], device: Any) -> tuple[Tensor, ...]:
    """One index tensor per size, each along its own dim, so that they broadcast."""
    target = CPU if device is None else Device(device)
    return tuple(OPS["arange"](0, n, 1, dtypes.int64, target).view(*(n if j == i else 1 for j in range(4)))
                 for i, n in enumerate(sizes))  # fmt: skip


def create_mask(mod_fn: Any, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None) -> Tensor:  # noqa: N803 - torch's names
    """bool (b, h, q, kv): the elements that a mask_mod shows, or that a score_mod does not set to -inf."""
    sizes = (B or 1, H or 1, Q_LEN, KV_LEN)
    places = indices(sizes, device)
    if is_score_mod(mod_fn):
        zeros = OPS["full"](sizes, 0.0, dtypes.float32, places[0].device)
        return OPS["expand"](mod_fn(zeros, *places) != -math.inf, sizes).contiguous()
    return OPS["expand"](mod_fn(*places), sizes).contiguous()
