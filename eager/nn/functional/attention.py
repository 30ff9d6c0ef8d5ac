"""Scaled dot-product attention, and multi-head attention over it."""
from __future__ import annotations

import math
from typing import Any

from eager.base import dtypes
from eager.base.warn import warn
from eager.nn.functional.dropouts import dropout
from eager.nn.functional.linears import linear
from eager.optable.attention import weights_shape
from eager.optable.declaration import cast_to
from eager.optable.matmul import transpose_last
from eager.optable.precision import LOWER
from eager.optable.table import OPS
from eager.public.record import public
from eager.random import state_for

Tensor = Any


@public(autocast=LOWER, parsed=True)
def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None,
                                 dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None,
                                 enable_gqa: bool = False) -> Tensor:  # fmt: skip
    """softmax(q k^T * scale + mask) v.

    query: (*, t, d), key: (*, s, d), value: (*, s, e); result (*, t, e). attn_mask: bool (True = visible) or
    added to the scores; it broadcasts to (*, t, s). is_causal: row i sees columns j <= i. scale: 1 / sqrt(d) by default.
    enable_gqa: key and value may have fewer heads (dim -3), each shared by a group of query heads. dropout_p: the probability with
    which a weight becomes 0; the others are multiplied by 1 / (1 - dropout_p). Raises: RuntimeError for a mask together with
    is_causal, for dropout_p outside [0, 1], and for shapes that do not fit.
    """
    if attn_mask is not None and is_causal:
        raise RuntimeError("_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")
    if attn_mask is not None and attn_mask.dtype is not dtypes.bool_ and attn_mask.dtype is not query.dtype:
        raise RuntimeError("Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: "
                           f"{attn_mask.dtype} and  query.dtype: {query.dtype} instead.")  # fmt: skip
    if not 0.0 <= dropout_p <= 1.0:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {dropout_p}")
    if enable_gqa:
        key, value = _spread_heads(query, key), _spread_heads(query, value)
    if scale is None:
        scale = 1.0 / math.sqrt(query.shape[-1]) if query.shape[-1] else 1.0
    if dropout_p > 0.0:
        return _with_dropout(query, key, value, attn_mask, dropout_p, is_causal, scale)
    y = OPS["attention"](query, key, value, attn_mask, is_causal, scale, None, 0.0)[0]
    # torch computes the gradient of a mask by its math kernel, whose result is in row-major memory.
    return y.contiguous() if attn_mask is not None and attn_mask.requires_grad else y


def _spread_heads(query: Tensor, t: Tensor) -> Tensor:
    heads, kv_heads = query.shape[-3], t.shape[-3]
    if heads == kv_heads:
        return t
    if heads % kv_heads:
        raise RuntimeError("Number of heads in key and value must divide the number of heads in query: "
                           f"got {kv_heads} and {heads}")  # fmt: skip
    return OPS["repeat_each"](t, heads // kv_heads, t.ndim - 3)


def _with_dropout(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, p: float, is_causal: bool,
                  scale: float) -> Tensor:  # fmt: skip
    """Attention with dropout of its weights, in row-major memory, as torch's result of its math kernel is."""
    if p == 1.0:
        return OPS["attention"](query, key, value, mask, is_causal, scale, None, 0.0)[0] * 0.0
    shape = weights_shape(*(x.shape for x in (query, key, mask) if x is not None))
    state = state_for(math.prod(shape), None, query.device)
    return OPS["attention"](query, key, value, mask, is_causal, scale, state, p)[0]


def attention_weights(query: Tensor, key: Tensor, mask: Tensor | None, is_causal: bool, scale: float) -> Tensor:
    """The attention weights (*, t, s); a row that sees no column is zero."""
    scores = OPS["matmul"](query * scale, transpose_last(key))
    if is_causal:
        t, s = scores.shape[-2:]
        rows = OPS["arange"](0, t, 1, dtypes.int64, query.device).view(-1, 1)
        mask = OPS["arange"](0, s, 1, dtypes.int64, query.device) <= rows
    if mask is None:
        return OPS["softmax"](scores, -1)
    if mask.dtype is dtypes.bool_:
        scores = OPS["where"](mask, scores, -math.inf)
    else:
        scores = scores + mask
    blind = OPS["amax"](scores.detach(), (scores.ndim - 1,), True) == -math.inf
    return OPS["where"](blind, 0.0, OPS["softmax"](OPS["where"](blind, 0.0, scores), -1))


def _canonical_mask(mask: Tensor | None, name: str, other_dtype: Any, other_name: str, target: Any,
                    check_other: bool = True) -> Tensor | None:  # fmt: skip
    """A bool mask (True = hidden) as numbers to add to the scores; a floating mask unchanged."""
    if mask is None:
        return None
    if mask.dtype is not dtypes.bool_ and not mask.dtype.is_floating_point:
        raise AssertionError(f"only bool and floating types of {name} are supported")
    if check_other and other_dtype not in (None, mask.dtype):
        warn(f"Support for mismatched {name} and {other_name} is deprecated. Use same type for both instead.")
    if mask.dtype is dtypes.bool_:
        zero = OPS["full"](tuple(mask.shape), 0.0, target, mask.device)
        return OPS["masked_fill"](zero, mask, -math.inf)
    return mask


@public(lenient=("training",))
def multi_head_attention_forward(
    query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int, in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None, bias_k: Tensor | None, bias_v: Tensor | None, add_zero_attn: bool, dropout_p: float,
    out_proj_weight: Tensor, out_proj_bias: Tensor | None, training: bool = True, key_padding_mask: Tensor | None = None,
    need_weights: bool = True, attn_mask: Tensor | None = None, use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None, k_proj_weight: Tensor | None = None, v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None, static_v: Tensor | None = None, average_attn_weights: bool = True,
    is_causal: bool = False) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """Multi-head attention with input and output projections. Sequence first, as in torch.

    query: (t, n, e) or (t, e), key and value: (s, n, *) or (s, *). Returns: the output in query's layout, and the
    weights (n, t, s) averaged over heads, (n, h, t, s), or None. Raises: AssertionError, RuntimeError for other shapes.
    """
    batched = query.ndim == 3
    _check_ranks(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    t, n, e = query.shape
    if e != embed_dim_to_check:
        raise AssertionError(f"was expecting embedding dimension of {embed_dim_to_check}, but got {e}")
    if e % num_heads:
        raise AssertionError(f"embed_dim {e} not divisible by num_heads {num_heads}")
    if is_causal and attn_mask is None:
        raise RuntimeError("Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
                           "`generate_square_subsequent_mask` to create this mask.")  # fmt: skip
    if not use_separate_proj_weight and key.shape != value.shape:
        raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
    other = None if attn_mask is None else attn_mask.dtype
    padding = _canonical_mask(key_padding_mask, "key_padding_mask", other, "attn_mask", query.dtype)
    mask = _canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, check_other=False)
    if use_separate_proj_weight:
        biases = (None,) * 3 if in_proj_bias is None else in_proj_bias.chunk(3)
        weights = (q_proj_weight, k_proj_weight, v_proj_weight)
        q, k, v = (linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases, strict=True))
    else:
        q, k, v = _project(query, key, value, in_proj_weight, in_proj_bias)
    mask = None if mask is None else _mask_of_heads(mask, n, num_heads, t, key.shape[0])
    q, k, v = (x.reshape(x.shape[0], n, num_heads, x.shape[2] // num_heads).permute(1, 2, 0, 3) for x in (q, k, v))  # (n, h, length, d)
    k, v, mask, padding = _extended(k, v, mask, padding, bias_k, bias_v, add_zero_attn, static_k, static_v)
    if padding is not None:
        padding = padding.view(n, 1, 1, padding.shape[-1])
        mask = padding if mask is None else mask + padding
    p = dropout_p if training else 0.0
    scale = 1.0 / math.sqrt(e // num_heads)
    weights_out = None
    if need_weights:
        weights_out = attention_weights(q, k, mask, False, scale)
        dropped = dropout(weights_out, p) if p > 0.0 else weights_out
        y = OPS["matmul"](dropped, v)
        if average_attn_weights:
            weights_out = weights_out.mean(1)
    else:
        y = scaled_dot_product_attention(q, k, v, mask, p, False, scale)
    y = linear(y.permute(2, 0, 1, 3).reshape(t, n, e), out_proj_weight, out_proj_bias)
    if not batched:
        y = y.squeeze(1)
        weights_out = None if weights_out is None else weights_out.squeeze(0)
    return y, weights_out


def _check_ranks(query: Tensor, key: Tensor, value: Tensor, padding: Tensor | None, mask: Tensor | None, heads: int) -> None:
    if query.ndim not in (2, 3):
        raise AssertionError(f"query should be unbatched 2D or batched 3D tensor but received {query.ndim}-D query tensor")
    kind = "batched (3-D)" if query.ndim == 3 else "unbatched (2-D)"
    if key.ndim != query.ndim or value.ndim != query.ndim:
        raise AssertionError(f"For {kind} `query`, expected `key` and `value` to be {query.ndim}-D but found {key.ndim}-D and "
                             f"{value.ndim}-D tensors respectively")  # fmt: skip
    if padding is not None and padding.ndim != query.ndim - 1:
        raise AssertionError(f"For {kind} `query`, expected `key_padding_mask` to be `None` or {query.ndim - 1}-D but found "
                             f"{padding.ndim}-D tensor instead")  # fmt: skip
    if mask is not None and mask.ndim not in (2, 3):
        raise AssertionError(f"For {kind} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found {mask.ndim}-D tensor "
                             "instead")  # fmt: skip


def _mask_of_heads(mask: Tensor, n: int, heads: int, t: int, s: int) -> Tensor:
    """A mask (t, s) or (n * heads, t, s) as (1, 1, t, s) or (n, heads, t, s). Raises: RuntimeError for any other shape."""
    stacked = mask.unsqueeze(0) if mask.ndim == 2 else mask
    if tuple(stacked.shape) not in {(1, t, s), (n * heads, t, s)}:
        allowed = (t, s) if mask.ndim == 2 else (n * heads, t, s)
        raise RuntimeError(f"The shape of the {mask.ndim}D attn_mask is {mask.shape}, but should be {allowed}.")
    return stacked.view(n, heads, t, s) if stacked.shape[0] != 1 else stacked.unsqueeze(0)


def _project(query: Tensor, key: Tensor, value: Tensor, weight: Tensor, bias: Tensor | None) -> tuple[Tensor, ...]:
    """Apply one stacked projection matrix to all three inputs; a single product if they are the same tensor."""
    e = query.shape[-1]
    if query is key and key is value:
        return tuple(linear(query, weight, bias).chunk(3, -1))
    ws = [weight[i * e : (i + 1) * e] for i in range(3)]
    bs = [None] * 3 if bias is None else [bias[i * e : (i + 1) * e] for i in range(3)]
    return tuple(linear(x, w, b) for x, w, b in zip((query, key, value), ws, bs, strict=True))


def _extended(k: Tensor, v: Tensor, mask: Any, padding: Any, bias_k: Any, bias_v: Any, add_zero: bool, static_k: Any,
              static_v: Any) -> tuple[Any, Any, Any, Any]:  # fmt: skip
    """Keys and values with the learnt and the zero position appended, and masks that make these positions visible."""
    n, h, _, d = k.shape
    if static_k is not None:
        k = static_k.view(n, h, -1, d)
    if static_v is not None:
        v = static_v.view(n, h, -1, d)
    extra = []
    if bias_k is not None and bias_v is not None:
        extra.append(tuple(b.view(1, h, 1, d).expand(n, h, 1, d) for b in (bias_k, bias_v)))
    if add_zero:
        extra.append((k.new_zeros((n, h, 1, d)), v.new_zeros((n, h, 1, d))))
    for more_k, more_v in extra:
        k, v = OPS["cat"]([k, cast_to(more_k, k.dtype)], 2), OPS["cat"]([v, cast_to(more_v, v.dtype)], 2)
        mask = None if mask is None else OPS["constant_pad_nd"](mask, (0, 1), 0)
        padding = None if padding is None else OPS["constant_pad_nd"](padding, (0, 1), 0)
    return k, v, mask, padding
