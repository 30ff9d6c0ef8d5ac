"""Attention with user-defined functions on scores and masks. Source: Dong et al., 2024 (arXiv:2412.05496).

This module computes the whole matrix of scores, as torch's eager path does. The blocks of a BlockMask let a fused
kernel skip work; only its mask_mod changes the result.
"""
from __future__ import annotations

import math
import warnings
from typing import Any, NamedTuple

from eager._tensor.tensor import Tensor
from eager.base import dtypes
from eager.nn.attention.block_mask import DEFAULT_BLOCK_SIZE, BlockMask, dense_to_ordered
from eager.nn.attention.mods import MaskMod as _mask_mod_signature
from eager.nn.attention.mods import ScoreMod as _score_mod_signature
from eager.nn.attention.mods import and_masks, create_mask, indices, is_score_mod, noop_mask, or_masks
from eager.nn.functional.attention import _spread_heads
from eager.optable.declaration import cast_to
from eager.optable.matmul import transpose_last
from eager.optable.table import OPS

_DEFAULT_SPARSE_BLOCK_SIZE = DEFAULT_BLOCK_SIZE


class AuxRequest(NamedTuple):
    """Names the values that `flex_attention` returns besides the output."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """lse: (b, h, t) logarithms of the sums of exponentials. max_scores: (b, h, t) largest scores."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def create_block_mask(mask_mod: Any, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None,  # noqa: N803 - torch's names
                      BLOCK_SIZE: int | tuple[int, int] = DEFAULT_BLOCK_SIZE, _compile: bool = False,  # noqa: N803
                      separate_full_blocks: bool = True) -> BlockMask:  # fmt: skip
    """The BlockMask of (b, h, q, kv) for `mask_mod`. B or H of None: one mask for all batches or heads.

    Raises: AssertionError for a function that does not take four indices.
    """
    if is_score_mod(mask_mod):
        raise AssertionError(f"create-block_mask requires a mask_mod function! Got {mask_mod}")
    rows, columns = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    padded = OPS["constant_pad_nd"](mask, (0, -KV_LEN % columns, 0, -Q_LEN % rows), 0)
    b, h, q, kv = padded.shape
    seen = padded.view(b, h, q // rows, rows, kv // columns, columns).permute(0, 1, 2, 4, 3, 5).to(dtypes.int64).sum((-2, -1))
    full = seen == rows * columns
    if not separate_full_blocks:
        partial = dense_to_ordered(seen > 0)
        return BlockMask.from_kv_blocks(*partial, BLOCK_SIZE=(rows, columns), mask_mod=mask_mod, seq_lengths=(Q_LEN, KV_LEN))
    partial = dense_to_ordered((seen > 0) & OPS["logical_not"](full))
    return BlockMask.from_kv_blocks(*partial, *dense_to_ordered(full), BLOCK_SIZE=(rows, columns), mask_mod=mask_mod,
                                    seq_lengths=(Q_LEN, KV_LEN))  # fmt: skip


def flex_attention(query: Tensor, key: Tensor, value: Tensor, score_mod: Any = None, block_mask: BlockMask | None = None,
                   scale: float | None = None, enable_gqa: bool = False, return_lse: bool = False,
                   kernel_options: Any = None, *, return_aux: AuxRequest | None = None) -> Any:  # fmt: skip
    """softmax(score_mod(q k^T * scale)) v, without the elements that block_mask hides.

    query: (b, h, t, d), key: (b, h, s, d), value: (b, h, s, e). enable_gqa: key and value may have fewer heads; a block
    mask allows them a batch of 1. Result: (b, h, t, e); with return_aux, a pair of it and an AuxOutput.
    kernel_options: settings of torch's fused kernels; ignored.
    Raises: NotImplementedError for other ranks; ValueError for shapes or masks that do not fit.
    """
    _check(query, key, value, block_mask, enable_gqa)
    if return_lse and return_aux is not None:
        raise ValueError("Cannot specify both return_lse and return_aux. return_lse is deprecated, please use "
                         "return_aux=AuxRequest(lse=True) instead.")  # fmt: skip
    if return_lse:
        warnings.warn("return_lse is deprecated and will be removed in v2.10. Please use return_aux=AuxRequest(lse=True) instead.",
                      FutureWarning, stacklevel=2)  # fmt: skip
    if enable_gqa:
        key, value = _spread_heads(query, key), _spread_heads(query, value)
    scale = 1.0 / math.sqrt(query.shape[-1]) if scale is None else scale
    wide = dtypes.float64 if query.dtype is dtypes.float64 else dtypes.float32
    scores = OPS["matmul"](cast_to(query, wide), transpose_last(cast_to(key, wide))) * scale
    places = indices(tuple(scores.shape), scores.device)
    if score_mod is not None:
        scores = cast_to(score_mod(scores, *places), wide)
    if block_mask is not None:
        scores = OPS["where"](block_mask.mask_mod(*places), scores, -math.inf)
    lse = OPS["logsumexp"](scores, (3,), False)
    blind = OPS["amax"](scores.detach(), (3,), True) == -math.inf
    weights = OPS["where"](blind, 0.0, OPS["softmax"](OPS["where"](blind, 0.0, scores), 3))
    out = OPS["matmul"](cast_to(weights, query.dtype), value)
    if return_lse:
        return out, lse
    if return_aux is None:
        return out
    largest = OPS["amax"](scores, (3,), False) if return_aux.max_scores else None
    return out, AuxOutput(lse if return_aux.lse else None, largest)


def _check(query: Tensor, key: Tensor, value: Tensor, mask: BlockMask | None, enable_gqa: bool) -> None:
    if query.ndim != 4 or key.ndim != 4 or value.ndim != 4:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    heads, kv_heads = query.shape[1], key.shape[1]
    if not enable_gqa and heads != kv_heads:
        raise ValueError(f"Expect query and key/value to have the same number of heads but got Hq={heads} and Hkv={kv_heads}. Try setting "
                         "enable_gqa=True for GQA.")  # fmt: skip
    if enable_gqa and heads % kv_heads:
        raise ValueError("Expect number of query heads to be a multiple of kv heads for GQA but got "
                         f"Hq={heads} and Hkv={kv_heads}.")  # fmt: skip
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(f"Expect query and key/value to have the same embedding dimension but got E={query.shape[-1]} and "
                         f"E={key.shape[-1]}.")  # fmt: skip
    if query.shape[0] != key.shape[0] and (mask is None or mask.kv_num_blocks.shape[0] != query.shape[0]):
        raise ValueError(f"Expect query and key/value to have the same batch size, or a block mask of the query's, but got "
                         f"Bq={query.shape[0]} and Bkv={key.shape[0]}.")  # fmt: skip
    if mask is None:
        return
    for name, length, had in zip(("q", "kv"), (query.shape[-2], key.shape[-2]), mask.seq_lengths, strict=True):
        if length > had:
            raise ValueError(f"block_mask was created for block_mask.shape={mask.shape} but got q_len={query.shape[-2]} and "
                             f"kv_len={key.shape[-2]}. As the block mask was created for a smaller length than you're using it "
                             "for, you likely need to create a new block mask.")  # fmt: skip
        if length < had:
            raise ValueError(f"block_mask was created for block_mask.shape={mask.shape} but got {name}_len={length}. Call "
                             "_adjust(q_len, kv_len) on the mask for shorter sequences.")  # fmt: skip


__all__ = [
    "_DEFAULT_SPARSE_BLOCK_SIZE", "AuxOutput", "AuxRequest", "BlockMask", "_mask_mod_signature", "_score_mod_signature", "and_masks",
    "create_block_mask", "create_mask", "flex_attention", "noop_mask", "or_masks",
]  # fmt: skip
