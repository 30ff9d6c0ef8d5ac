"""Transformer encoder and decoder layers. Source: Vaswani et al., "Attention Is All You Need", 2017."""
from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from eager._tensor.tensor import Tensor
from eager.amp.autocast_mode import is_autocast_enabled
from eager.autograd.grad_mode import is_grad_enabled
from eager.backends import mha
from eager.base import dtypes
from eager.base.device import default_device, device
from eager.base.warn import warn
from eager.compiler import is_compiling
from eager.nn import init
from eager.nn.functional import activation as functions
from eager.nn.module import Module
from eager.nn.modules.activation import GELU, MultiheadAttention, ReLU
from eager.nn.modules.container import ModuleList
from eager.nn.modules.dropout import Dropout
from eager.nn.modules.linear import Linear
from eager.nn.modules.normalization import LayerNorm
from eager.optable.table import OPS


def _get_activation_fn(activation: str) -> Callable[[Tensor], Tensor]:
    if activation == "relu":
        return functions.relu
    if activation == "gelu":
        return functions.gelu
    raise RuntimeError(f"activation should be relu/gelu, not {activation}")


def _activation_code(activation: Any) -> int:
    if activation is functions.relu or isinstance(activation, ReLU):
        return 1
    return 2 if activation is functions.gelu or isinstance(activation, GELU) else 0


def _get_clones(module: Module, n: int) -> ModuleList:
    return ModuleList([copy.deepcopy(module) for _ in range(n)])


def _subsequent(size: int, where: Any = None, dtype: Any = None) -> Tensor:
    """The causal mask (size, size): 0 where column <= row, else -inf. where: by default the default device."""
    on = default_device() if where is None else device(where)
    full = OPS["full"]((size, size), float("-inf"), dtype or dtypes.get_default_dtype(), on)
    return OPS["triu"](full, 1)


def _is_causal(mask: Tensor | None, is_causal: bool | None, size: int | None = None) -> bool:
    if is_causal is not None:
        return is_causal
    if mask is None or mask.ndim != 2 or mask.shape[0] != mask.shape[1] or mask.is_fake or mask.dtype is dtypes.bool_:
        return False
    return bool(OPS["eq"](mask, _subsequent(mask.shape[0], mask.device, mask.dtype)).all())


class TransformerEncoderLayer(Module):
    """Self-attention and a feed-forward network, each with dropout, a residual connection and a norm."""

    def __init__(self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
                 activation: str | Callable[[Tensor], Tensor] = functions.relu, layer_norm_eps: float = 1e-5,
                 batch_first: bool = False, norm_first: bool = False, bias: bool = True, device: Any = None,
                 dtype: Any = None) -> None:  # fmt: skip
        super().__init__()
        factory = {"device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, **factory)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **factory)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **factory)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **factory)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **factory)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.activation = _get_activation_fn(activation) if isinstance(activation, str) else activation
        # torch reads this attribute when it runs a layer saved here.
        self.activation_relu_or_gelu = _activation_code(self.activation)

    def forward(self, src: Tensor, src_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
                is_causal: bool = False) -> Tensor:  # fmt: skip
        """Encode src: (s, n, d), (n, s, d) with batch_first, or (s, d).

        Result: the shape of src. Masks as MultiheadAttention.
        """
        x = src
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), src_mask, src_key_padding_mask, is_causal)
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(x + self._sa_block(x, src_mask, src_key_padding_mask, is_causal))
        return self.norm2(x + self._ff_block(x))

    def _sa_block(self, x: Tensor, mask: Tensor | None, padding: Tensor | None, is_causal: bool) -> Tensor:
        y = self.self_attn(x, x, x, attn_mask=mask, key_padding_mask=padding, need_weights=False, is_causal=is_causal)[0]
        return self.dropout1(y)

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerEncoder(Module):
    """A stack of num_layers copies of an encoder layer, and an optional final norm."""

    def __init__(self, encoder_layer: Module, num_layers: int, norm: Module | None = None, enable_nested_tensor: bool = True,
                 mask_check: bool = True) -> None:  # fmt: skip
        super().__init__()
        self.layers = _get_clones(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        why = _why_padding_is_kept(encoder_layer)
        if enable_nested_tensor and why:
            warn(f"enable_nested_tensor is True, but self.use_nested_tensor is False because {why}")
        self.use_nested_tensor = enable_nested_tensor and not why
        self.mask_check = mask_check

    def forward(self, src: Tensor, mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
                is_causal: bool | None = None) -> Tensor:  # fmt: skip
        causal = _is_causal(mask, is_causal)
        y = src
        for layer in self.layers:
            y = layer(y, src_mask=mask, is_causal=causal, src_key_padding_mask=src_key_padding_mask)
        if mask is None and src_key_padding_mask is not None and self._drops_padding(src, src_key_padding_mask):
            hidden = OPS["ne"](src_key_padding_mask, 0)
            y = OPS["masked_fill"](y, hidden.unsqueeze(-1), 0.0)
        return y if self.norm is None else self.norm(y)

    def _drops_padding(self, src: Tensor, padding: Tensor) -> bool:
        """Whether torch would skip the padded positions of src, which makes them zero in the result.

        torch skips them in inference if padding comes last in each sequence. The other positions have the same values.
        """
        if not self.use_nested_tensor or self.layers[0].training or src.ndim != 3 or not mha._fastpath:
            return False
        if is_autocast_enabled() or (is_grad_enabled() and any(t.requires_grad for t in (src, *self.layers[0].parameters()))):
            return False
        if not self.mask_check:
            return True
        if is_compiling() or padding.is_fake:
            return False
        seen = (padding == 0).cpu()
        return bool((seen[:, :-1] | ~seen[:, 1:]).all())


def _why_padding_is_kept(layer: Any) -> str:
    """Why a stack of this layer computes padded positions too; "" if it skips them."""
    if not isinstance(layer, TransformerEncoderLayer):
        return "encoder_layer was not TransformerEncoderLayer"
    attention = layer.self_attn
    found = (
        (layer.norm_first, "norm_first was True"),
        (not attention.batch_first, "self_attn.batch_first was not True(use batch_first for better inference performance)"),
        (not attention._qkv_same_embed_dim, "self_attn._qkv_same_embed_dim was not True"),
        (attention.in_proj_bias is None, "self_attn was passed bias=False"),
        (not layer.activation_relu_or_gelu, "activation_relu_or_gelu was not True"),
        (layer.norm1.eps != layer.norm2.eps, "norm1.eps was not equal to encoder_layer.norm2.eps"),
        (attention.num_heads % 2 == 1, "self_attn.num_heads is odd"),
    )
    return next((f"encoder_layer.{why}" for holds, why in found if holds), "")


class TransformerDecoderLayer(Module):
    """Self-attention, attention to the encoder's output (`memory`) and a feed-forward network."""

    def __init__(self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
                 activation: str | Callable[[Tensor], Tensor] = functions.relu, layer_norm_eps: float = 1e-5,
                 batch_first: bool = False, norm_first: bool = False, bias: bool = True, device: Any = None,
                 dtype: Any = None) -> None:  # fmt: skip
        super().__init__()
        factory = {"device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(d_model, nhead, dropout=dropout, batch_first=batch_first, bias=bias, **factory)
        self.multihead_attn = MultiheadAttention(d_model, nhead, dropout=dropout, batch_first=batch_first, bias=bias, **factory)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **factory)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **factory)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **factory)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **factory)
        self.norm3 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **factory)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.dropout3 = Dropout(dropout)
        self.activation = _get_activation_fn(activation) if isinstance(activation, str) else activation

    def forward(self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
                tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
                tgt_is_causal: bool = False, memory_is_causal: bool = False) -> Tensor:  # fmt: skip
        x = tgt
        self_masks = (tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        memory_masks = (memory_mask, memory_key_padding_mask, memory_is_causal)
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), *self_masks)
            x = x + self._mha_block(self.norm2(x), memory, *memory_masks)
            return x + self._ff_block(self.norm3(x))
        x = self.norm1(x + self._sa_block(x, *self_masks))
        x = self.norm2(x + self._mha_block(x, memory, *memory_masks))
        return self.norm3(x + self._ff_block(x))

    def _sa_block(self, x: Tensor, mask: Tensor | None, padding: Tensor | None, is_causal: bool) -> Tensor:
        y = self.self_attn(x, x, x, attn_mask=mask, key_padding_mask=padding, is_causal=is_causal, need_weights=False)[0]
        return self.dropout1(y)

    def _mha_block(self, x: Tensor, mem: Tensor, mask: Tensor | None, padding: Tensor | None, is_causal: bool) -> Tensor:
        y = self.multihead_attn(x, mem, mem, attn_mask=mask, key_padding_mask=padding, is_causal=is_causal,
                                need_weights=False)[0]  # fmt: skip
        return self.dropout2(y)

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout3(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerDecoder(Module):
    """A stack of num_layers copies of a decoder layer, and an optional final norm."""

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _get_clones(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
                tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
                tgt_is_causal: bool | None = None, memory_is_causal: bool = False) -> Tensor:  # fmt: skip
        causal = _is_causal(tgt_mask, tgt_is_causal)
        y = tgt
        for layer in self.layers:
            y = layer(y, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                      memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=causal,
                      memory_is_causal=memory_is_causal)  # fmt: skip
        return y if self.norm is None else self.norm(y)


class Transformer(Module):
    """Encoder and decoder. src: (s, n, d_model), tgt: (t, n, d_model); with batch_first the batch comes first.

    Result: the shape of tgt. Raises: RuntimeError for batch or feature sizes that differ.
    """

    def __init__(self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6,
                 dim_feedforward: int = 2048, dropout: float = 0.1,
                 activation: str | Callable[[Tensor], Tensor] = functions.relu, custom_encoder: Any = None,
                 custom_decoder: Any = None, layer_norm_eps: float = 1e-5, batch_first: bool = False,
                 norm_first: bool = False, bias: bool = True, device: Any = None, dtype: Any = None) -> None:  # fmt: skip
        super().__init__()
        settings = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias,
                    device, dtype)  # fmt: skip

        def norm() -> LayerNorm:
            return LayerNorm(d_model, eps=layer_norm_eps, bias=bias, device=device, dtype=dtype)

        self.encoder = custom_encoder if custom_encoder is not None else TransformerEncoder(
            TransformerEncoderLayer(*settings), num_encoder_layers, norm())  # fmt: skip
        self.decoder = custom_decoder if custom_decoder is not None else TransformerDecoder(
            TransformerDecoderLayer(*settings), num_decoder_layers, norm())  # fmt: skip
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def forward(self, src: Tensor, tgt: Tensor, src_mask: Tensor | None = None, tgt_mask: Tensor | None = None,
                memory_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
                tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
                src_is_causal: bool | None = None, tgt_is_causal: bool | None = None,
                memory_is_causal: bool = False) -> Tensor:  # fmt: skip
        batched = src.ndim == 3
        batch_dim = 0 if self.batch_first else 1
        if batched and src.shape[batch_dim] != tgt.shape[batch_dim]:
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal,
                            memory_is_causal=memory_is_causal)  # fmt: skip

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """The causal mask (sz, sz): 0 where column <= row, else -inf."""
        return _subsequent(sz, device, dtype)

    def _reset_parameters(self) -> None:
        for p in self.parameters():
            if p.ndim > 1:
                init.xavier_uniform_(p)
