"""Activation functions as layers, and multi-head attention. Every activation keeps the shape of its input."""
from __future__ import annotations

from typing import Any

from eager._tensor.tensor import Tensor
from eager.nn import init
from eager.nn.functional import activation as functions
from eager.nn.functional import attention
from eager.nn.module import Module
from eager.nn.modules.linear import NonDynamicallyQuantizableLinear
from eager.nn.modules.utils import parameter
from eager.optable.table import OPS


def _plain(name: str, function: Any, doc: str) -> type[Module]:
    """A layer class without settings that applies one function."""

    def forward(self: Module, input: Tensor) -> Tensor:
        return function(input)

    return type(name, (Module,), {"forward": forward, "__doc__": doc, "__module__": __name__, "__qualname__": name})


Sigmoid = _plain("Sigmoid", functions.sigmoid, "1 / (1 + exp(-x)).")
Tanh = _plain("Tanh", functions.tanh, "Hyperbolic tangent.")
LogSigmoid = _plain("LogSigmoid", functions.logsigmoid, "log(sigmoid(x)).")
Softsign = _plain("Softsign", functions.softsign, "x / (1 + |x|).")
Tanhshrink = _plain("Tanhshrink", functions.tanhshrink, "x - tanh(x).")


class _Inplace(Module):
    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class ReLU(_Inplace):
    """max(x, 0)."""

    def forward(self, input: Tensor) -> Tensor:
        return functions.relu(input, self.inplace)


class SELU(_Inplace):
    """Self-normalising ELU."""

    def forward(self, input: Tensor) -> Tensor:
        return functions.selu(input, self.inplace)


class SiLU(_Inplace):
    """x * sigmoid(x)."""

    def forward(self, input: Tensor) -> Tensor:
        return functions.silu(input, self.inplace)


class Mish(_Inplace):
    """x * tanh(softplus(x))."""

    def forward(self, input: Tensor) -> Tensor:
        return functions.mish(input, self.inplace)


class Hardsigmoid(_Inplace):
    """clamp(x + 3, 0, 6) / 6."""

    def forward(self, input: Tensor) -> Tensor:
        return functions.hardsigmoid(input, self.inplace)

    def extra_repr(self) -> str:
        return ""


class Hardswish(_Inplace):
    """x * clamp(x + 3, 0, 6) / 6."""

    def forward(self, input: Tensor) -> Tensor:
        return functions.hardswish(input, self.inplace)

    def extra_repr(self) -> str:
        return ""


class Hardtanh(Module):
    """x clamped to [min_val, max_val]."""

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False,
                 min_value: float | None = None, max_value: float | None = None) -> None:  # fmt: skip
        super().__init__()
        self.min_val = min_val if min_value is None else min_value
        self.max_val = max_val if max_value is None else max_value
        self.inplace = inplace
        if self.max_val <= self.min_val:
            raise AssertionError(f"max_val ({self.max_val}) must be greater than min_val ({self.min_val})")

    def forward(self, input: Tensor) -> Tensor:
        return functions.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}" + (", inplace=True" if self.inplace else "")


class ReLU6(Hardtanh):
    """min(max(x, 0), 6)."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class LeakyReLU(Module):
    """x if x > 0, else negative_slope * x."""

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return functions.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}" + (", inplace=True" if self.inplace else "")


class ELU(Module):
    """x if x > 0, else alpha * (exp(x) - 1)."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return functions.elu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class CELU(Module):
    """max(0, x) + min(0, alpha * (exp(x / alpha) - 1))."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return functions.celu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class GELU(Module):
    """x * Phi(x), Phi being the normal distribution function; approximate="tanh" uses the tanh formula."""

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return functions.gelu(input, self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class GLU(Module):
    """First half of the input along `dim` times the sigmoid of the second half. (*, 2 n, *) -> (*, n, *)."""

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return functions.glu(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class RReLU(Module):
    """Leaky ReLU whose slope is drawn from [lower, upper) in training, and is their mean in evaluation."""

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return functions.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}" + (", inplace=True" if self.inplace else "")


class Threshold(Module):
    """x if x > threshold, else value."""

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return functions.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        return f"threshold={self.threshold}, value={self.value}" + (", inplace=True" if self.inplace else "")


class Softplus(Module):
    """log(1 + exp(beta * x)) / beta; x itself if beta * x > threshold."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        return functions.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class Softshrink(Module):
    """Moves x towards zero by lambd; 0 if |x| <= lambd."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return functions.softshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return str(self.lambd)


class Hardshrink(Module):
    """x if |x| > lambd, else 0."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return functions.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return str(self.lambd)


class PReLU(Module):
    """x if x > 0, else a learnt slope times x.

    num_parameters: 1, or the number of channels (dim 1). weight: (num_parameters,).
    """

    weight: Tensor

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = parameter((num_parameters,), device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Fill the weight with the initial slope."""
        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        return functions.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class _AlongDim(Module):
    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax(_AlongDim):
    """Normalised exponentials along dim. Keeps the shape of its input."""

    def forward(self, input: Tensor) -> Tensor:
        return functions.softmax(input, self.dim)


class LogSoftmax(_AlongDim):
    """Logarithm of softmax along dim."""

    def forward(self, input: Tensor) -> Tensor:
        return functions.log_softmax(input, self.dim)


class Softmin(_AlongDim):
    """softmax(-x) along dim."""

    def forward(self, input: Tensor) -> Tensor:
        return functions.softmin(input, self.dim)


class Softmax2d(Module):
    """Softmax over the channels of (n, c, h, w) or (c, h, w). Raises: ValueError for other ranks."""

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.ndim}D instead")
        return functions.softmax(input, -3)


class MultiheadAttention(Module):
    """Multi-head attention with input projections and an output projection.

    query: (t, n, embed_dim), key: (s, n, kdim), value: (s, n, vdim); with batch_first the batch comes first; unbatched
    inputs lack the n. Returns: the output in query's layout, and the weights (n, t, s), (n, heads, t, s) or None.
    Raises: ValueError for sizes that are not positive; AssertionError if num_heads does not divide embed_dim.
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
        # The parameters are registered in torch's order, because optimizer states number them.
        separate = [("q_proj_weight", embed_dim), ("k_proj_weight", self.kdim), ("v_proj_weight", self.vdim)]
        if self._qkv_same_embed_dim:
            self.register_parameter("in_proj_weight", parameter((3 * embed_dim, embed_dim), device, dtype))
            for name, _ in separate:
                self.register_parameter(name, None)
        else:
            for name, columns in separate:
                self.register_parameter(name, parameter((embed_dim, columns), device, dtype))
            self.register_parameter("in_proj_weight", None)
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
        """Attend from `query` to `key` and `value`.

        key_padding_mask: (n, s); attn_mask: (t, s) or (n * heads, t, s). A bool mask hides True positions; a floating
        mask is added to the scores. need_weights: also return the weights, averaged over heads if average_attn_weights.
        """
        swap = self.batch_first and query.ndim == 3
        if swap:
            if query is key and key is value:
                query = key = value = OPS["permute"](query, (1, 0, 2))
            else:
                query, key, value = (OPS["permute"](x, (1, 0, 2)) for x in (query, key, value))
        y, weights = attention.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k,
            self.bias_v, self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias, self.training,
            key_padding_mask, need_weights, attn_mask, not self._qkv_same_embed_dim, self.q_proj_weight,
            self.k_proj_weight, self.v_proj_weight, average_attn_weights=average_attn_weights, is_causal=is_causal)  # fmt: skip
        return (OPS["permute"](y, (1, 0, 2)) if swap else y), weights
