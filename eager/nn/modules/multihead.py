"""MultiheadAttention."""
from __future__ import annotations

from typing import Any

from eager.nn import init
from eager.nn.functional import attention as functions
from eager.nn.module import Module
from eager.nn.modules.linear import NonDynamicallyQuantizableLinear
from eager.nn.modules.utils import parameter
from eager.ops.table import OPS
from eager.tensor import Tensor


class MultiheadAttention(Module):
    """Attention of num_heads heads between projections of query, key and value and one of the result.

    query: (t, n, embed_dim), key: (s, n, kdim), value: (s, n, vdim); the batch first with batch_first; or all
    without the batch dim. Returns the output in query's layout and the weights (or None).
    """

    in_proj_weight: Tensor | None
    in_proj_bias: Tensor | None
    q_proj_weight: Tensor | None
    k_proj_weight: Tensor | None
    v_proj_weight: Tensor | None
    bias_k: Tensor | None
    bias_v: Tensor | None

    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, add_bias_kv: bool = False,
                 add_zero_attn: bool = False, kdim: int | None = None, vdim: int | None = None, batch_first: bool = False,
                 device: Any = None, dtype: Any = None) -> None:  # fmt: skip
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and "
                             f"num_heads={num_heads} instead")  # fmt: skip
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")
        same = self._qkv_same_embed_dim
        for name, columns in (("q_proj_weight", embed_dim), ("k_proj_weight", self.kdim), ("v_proj_weight", self.vdim)):
            self.register_parameter(name, None if same else parameter((embed_dim, columns), device, dtype))
        self.register_parameter("in_proj_weight", parameter((3 * embed_dim, embed_dim), device, dtype) if same else None)
        self.register_parameter("in_proj_bias", parameter((3 * embed_dim,), device, dtype) if bias else None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        for name in ("bias_k", "bias_v"):
            extra = parameter((1, 1, embed_dim), device, dtype) if add_bias_kv else None
            if extra is None:
                setattr(self, name, None)
            else:
                self.register_parameter(name, extra)
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None,
                need_weights: bool = True, attn_mask: Tensor | None = None, average_attn_weights: bool = True,
                is_causal: bool = False) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        """key_padding_mask: (n, s) and attn_mask: (t, s) or (n * heads, t, s); bool (True = hidden) or added."""
        swap = self.batch_first and query.ndim == 3
        if swap:
            if query is key and key is value:
                query = key = value = OPS["permute"](query, (1, 0, 2))
            else:
                query, key, value = (OPS["permute"](x, (1, 0, 2)) for x in (query, key, value))
        y, weights = functions.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k,
            self.bias_v, self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias, self.training,
            key_padding_mask, need_weights, attn_mask, not self._qkv_same_embed_dim, self.q_proj_weight,
            self.k_proj_weight, self.v_proj_weight, average_attn_weights=average_attn_weights, is_causal=is_causal)  # fmt: skip
        return (OPS["permute"](y, (1, 0, 2)) if swap else y), weights
