"""The rows of `python -m benchmarks kernels`: one graph of a few ops each.

Owns the programs and their sizes. Arrays of memory-bound rows are 64 MiB, larger than the caches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import eager as torch
from benchmarks.rows import Case, Row, draw, drawn, integers
from eager import nn
from eager.nn import functional as F

__all__ = ["REQUIRED", "ROWS"]

# The least speed, as a multiple of torch.compile's, by group.
REQUIRED: Final = {
    **dict.fromkeys("pointwise reduction norm layout loss lookup product optimizer recurrence".split(), 1.5),
    "convolution": 1.2,
    "attention": 1.2,
}
_SIDE: Final = 4096
_ARRAY: Final = 4 * _SIDE * _SIDE  # bytes of a square float32 array


def _square(seed: int = 0) -> torch.Tensor:
    return draw(_SIDE, _SIDE, seed=seed)


def _of(fn: Callable[..., Any], count: int = 1) -> Callable[[], Case]:
    return lambda: Case(fn, tuple(_square(i) for i in range(count)))


# --------------------------------------------------------------------------- memory-bound


def _five(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x * y + 0.5).abs() - y


def _norm(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(x, (_SIDE,), w, b)


def _norm_dropout_relu(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return F.relu(F.dropout(_norm(x, w, b), 0.1, training=True))


def _rms_norm(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * w


def _norm_case(fn: Callable[..., Any], random: bool = False) -> Callable[[], Case]:
    weights = 1 if fn is _rms_norm else 2
    return lambda: Case(fn, (_square(), *(draw(_SIDE, seed=i) for i in range(weights))), update=random)


def _norm_training() -> Case:
    inputs = (draw(2048, _SIDE, grad=True), draw(_SIDE, seed=1, grad=True), draw(_SIDE, seed=2, grad=True))
    return Case(_norm, inputs, wrt=inputs)


def _softmax_training() -> Case:
    x = draw(2048, _SIDE, grad=True)
    return Case(lambda x: torch.softmax(x, -1), (x,), wrt=(x,))


def _cross_entropy(rows: int, classes: int, training: bool) -> Callable[[], Case]:
    def make() -> Case:
        x = draw(rows, classes, grad=training)
        return Case(F.cross_entropy, (x, integers(classes, rows)), wrt=(x,) if training else ())

    return make


def _embedding(training: bool) -> Callable[[], Case]:
    def make() -> Case:
        weight = draw(32000, 512, grad=training)
        return Case(F.embedding, (integers(32000, 8192), weight), wrt=(weight,) if training else ())

    return make


def _adam() -> Case:
    weights = [draw(1024, 1024, seed=i, grad=True) for i in range(4)]
    for i, weight in enumerate(weights):
        weight.grad = draw(1024, 1024, scale=0.01, seed=i)
    return Case(torch.optim.AdamW(weights).step, (), update=True)


_LOOKED_UP: Final = 8192 * 512 * 4
_MEMORY: Final = (
    Row("chain of five, two inputs", "pointwise", _of(_five, 2), 3 * _ARRAY),
    Row("gelu", "pointwise", _of(F.gelu), 2 * _ARRAY),
    Row("gelu of tanh", "pointwise", _of(lambda x: F.gelu(x, approximate="tanh")), 2 * _ARRAY),
    Row("bias + relu", "pointwise", lambda: Case(lambda x, b: F.relu(x + b), (_square(), draw(_SIDE))), 2 * _ARRAY),
    Row("exp in bfloat16", "pointwise", lambda: Case(torch.exp, (_square().to(torch.bfloat16),)), _ARRAY),
    Row("sum of all", "reduction", _of(torch.sum), _ARRAY),
    Row("sum over columns", "reduction", _of(lambda x: x.sum(1)), _ARRAY),
    Row("sum over rows", "reduction", _of(lambda x: x.sum(0)), _ARRAY),
    Row("sum over rows, 32 wide", "reduction", lambda: Case(lambda x: x.sum(0), (draw(1 << 19, 32),)), _ARRAY),
    Row("sum of squares", "reduction", _of(lambda x: (x * x).sum()), _ARRAY),
    Row("variance of columns", "reduction", _of(lambda x: x.var(1)), _ARRAY),
    Row("argmax of columns", "reduction", _of(lambda x: x.argmax(1)), _ARRAY),
    Row("cumulative sum", "reduction", _of(lambda x: x.cumsum(1)), 2 * _ARRAY),
    Row("softmax", "norm", _of(lambda x: torch.softmax(x, -1)), 2 * _ARRAY),
    Row("softmax, training", "norm", _softmax_training, 2 * _ARRAY),
    Row("log softmax", "norm", _of(lambda x: torch.log_softmax(x, -1)), 2 * _ARRAY),
    Row("layer norm", "norm", _norm_case(_norm), 2 * _ARRAY),
    Row("layer norm, training", "norm", _norm_training, 2 * _ARRAY),
    Row("rms norm", "norm", _norm_case(_rms_norm), 2 * _ARRAY),
    Row("layer norm + dropout + relu", "norm", _norm_case(_norm_dropout_relu, random=True), 2 * _ARRAY),
    Row("transpose + add", "layout", _of(lambda x, y: x.t() + y, 2), 3 * _ARRAY),
    Row("transposing copy", "layout", _of(lambda x: x.t().contiguous()), 2 * _ARRAY),
    Row("concatenate", "layout", _of(lambda x, y: torch.cat([x[:2048] * 2, y[:2048] + 1], 1), 2), 2 * _ARRAY),
    Row("cross entropy", "loss", _cross_entropy(1024, 32768, False), 4 * 1024 * 32768),
    Row("cross entropy, training", "loss", _cross_entropy(1024, 32768, True), 3 * 4 * 1024 * 32768),
    Row("embedding", "lookup", _embedding(False), 2 * _LOOKED_UP),
    Row("embedding, training", "lookup", _embedding(True), 3 * _LOOKED_UP + 4 * 32000 * 512),
    Row("AdamW step, 4M parameters", "optimizer", _adam, 7 * 4 * (1 << 22)),
)


# --------------------------------------------------------------------------- products


def _product(a: tuple[int, ...], b: tuple[int, ...], transposed: str = "") -> Callable[[], Case]:
    """a @ b; operands named in `transposed` are stored transposed."""

    def stored(shape: tuple[int, ...], name: str, seed: int) -> torch.Tensor:
        if name not in transposed:
            return draw(*shape, seed=seed)
        return draw(*shape[:-2], shape[-1], shape[-2], seed=seed).transpose(-1, -2)

    return lambda: Case(torch.matmul, (stored(a, "a", 0), stored(b, "b", 1)))


def _linear(activation: Callable[[Any], Any], training: bool = False) -> Callable[[], Case]:
    def make() -> Case:
        layer = drawn(nn.Linear(768, 3072))
        x = draw(1024, 768, grad=training)
        return Case(lambda x: activation(layer(x)), (x,), wrt=(x, *layer.parameters()) if training else ())

    return make


def _qkv() -> Case:
    layers = [drawn(nn.Linear(768, 768), seed=i) for i in range(3)]
    return Case(lambda x: torch.cat([layer(x) for layer in layers], -1), (draw(512, 768),))


_LINEAR: Final = 2 * 1024 * 768 * 3072
_PRODUCTS: Final = (
    *(Row(f"product 1024^3{f', {t} transposed' if t else ''}", "product", _product((1024, 1024), (1024, 1024), t), flops=2 << 30)
      for t in ("", "a", "b", "ab")),
    Row("product 8 x 4096 x 4096", "product", _product((8, 4096), (4096, 4096)), flops=2 * 8 * 4096 * 4096),
    Row("product 1 x 4096 x 4096, b transposed", "product", _product((1, 4096), (4096, 4096), "b"), 4 << 24),
    Row("product 64 x 64 x 65536, b transposed", "product", _product((64, 65536), (65536, 64), "b"), flops=2 << 28),
    Row("product 96 x 128 x 64 x 128", "product", _product((96, 128, 64), (96, 64, 128)), flops=2 * 96 * 128 * 64 * 128),
    Row("product 96 x 128 x 64 x 128, b transposed", "product", _product((96, 128, 64), (96, 64, 128), "b"),
        flops=2 * 96 * 128 * 64 * 128),
    Row("linear", "product", _linear(lambda y: y), flops=_LINEAR),
    Row("linear + gelu", "product", _linear(F.gelu), flops=_LINEAR),
    Row("linear + gelu, training", "product", _linear(F.gelu, training=True), flops=3 * _LINEAR),
    Row("three linears of one input", "product", _qkv, flops=6 * 512 * 768 * 768),
)  # fmt: skip


# --------------------------------------------------------------------------- convolutions


class _Residual(nn.Module):
    """relu(norm(convolution(x)) + x). (b, c, h, w) -> (b, c, h, w)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.norm(self.convolution(x)) + x)


def _convolution(
    make: Callable[[], nn.Module], shape: tuple[int, ...], last: bool, training: bool = False, relu: bool = False
) -> Callable[[], Case]:
    def case() -> Case:
        module = drawn(make()).train(training)
        x = draw(*shape)
        if last:
            module, x = module.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
        x.requires_grad_(training)
        fn = (lambda x: F.relu(module(x))) if relu else module
        return Case(fn, (x,), wrt=(x, *module.parameters()) if training else ())

    return case


def _both_layouts(
    name: str, make: Callable[[], nn.Module], shape: tuple[int, ...], flops: int, **options: bool
) -> tuple[Row, Row]:
    plain = Row(name, "convolution", _convolution(make, shape, last=False, **options), flops=flops)
    return plain, Row(f"{name}, NHWC", "convolution", _convolution(make, shape, last=True, **options), flops=flops)


_MAP: Final = (8, 64, 56, 56)
_3x3: Final = 2 * 8 * 64 * 64 * 9 * 56 * 56
_CONVOLUTIONS: Final = (
    *_both_layouts("conv 1x1, 64 -> 256", lambda: nn.Conv2d(64, 256, 1), _MAP, 2 * 8 * 64 * 256 * 56 * 56),
    *_both_layouts("conv 3x3, 64", lambda: nn.Conv2d(64, 64, 3, padding=1), _MAP, _3x3),
    *_both_layouts("conv 3x3 + relu", lambda: nn.Conv2d(64, 64, 3, padding=1), _MAP, _3x3, relu=True),
    *_both_layouts("conv 3x3 + norm + residual + relu", lambda: _Residual(64), _MAP, _3x3),
    *_both_layouts("conv 3x3 + relu, training", lambda: nn.Conv2d(64, 64, 3, padding=1), _MAP, 3 * _3x3,
                   relu=True, training=True),
    *_both_layouts("conv 3x3 stride 2, 64 -> 128", lambda: nn.Conv2d(64, 128, 3, 2, 1), _MAP, _3x3 // 2),
    *_both_layouts("conv 7x7 stride 2, 3 -> 64", lambda: nn.Conv2d(3, 64, 7, 2, 3), (4, 3, 224, 224), 2 * 4 * 3 * 64 * 49 * 112 * 112),
    *_both_layouts("conv 3x3 depthwise, 128", lambda: nn.Conv2d(128, 128, 3, padding=1, groups=128), (8, 128, 56, 56),
                   2 * 8 * 128 * 9 * 56 * 56),
    *_both_layouts("conv 3x3 in 8 groups, 128", lambda: nn.Conv2d(128, 128, 3, padding=1, groups=8), (8, 128, 28, 28),
                   2 * 8 * 128 * 16 * 9 * 28 * 28),
    *_both_layouts("conv 2x2 transposed, 128 -> 64", lambda: nn.ConvTranspose2d(128, 64, 2, 2), (8, 128, 28, 28),
                   2 * 8 * 128 * 64 * 4 * 28 * 28),
)  # fmt: skip


# --------------------------------------------------------------------------- attention, recurrence


def _attention(heads: int, kv: int, length: int, *, causal: bool = False, mask: bool = False, training: bool = False) -> Callable[[], Case]:
    def make() -> Case:
        q = draw(4, heads, length, 64, grad=training)
        k, v = (draw(4, kv, length, 64, seed=i, grad=training) for i in (1, 2))
        added = draw(1, 1, length, length, seed=3) if mask else None

        def fn(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            return F.scaled_dot_product_attention(q, k, v, added, is_causal=causal, enable_gqa=kv != heads)

        return Case(fn, (q, k, v), wrt=(q, k, v) if training else ())

    return make


def _lstm(training: bool) -> Callable[[], Case]:
    def make() -> Case:
        module = drawn(nn.LSTM(256, 256, batch_first=True))
        x = draw(16, 32, 256, grad=training)
        return Case(lambda x: module(x)[0], (x,), wrt=(x, *module.parameters()) if training else ())

    return make


_SCORES: Final = 4 * 4 * 8 * 1024 * 1024 * 64  # two products of every query with every key
_STEPS: Final = 2 * 16 * 32 * 4 * 256 * 512
_LAYERS: Final = (
    Row("attention", "attention", _attention(8, 8, 1024), flops=_SCORES),
    Row("attention, training", "attention", _attention(8, 8, 1024, training=True), flops=3 * _SCORES),
    Row("causal attention", "attention", _attention(8, 8, 1024, causal=True), flops=_SCORES // 2),
    Row("causal attention, training", "attention", _attention(8, 8, 1024, causal=True, training=True), flops=3 * _SCORES // 2),
    Row("causal attention, 8 heads over 2", "attention", _attention(8, 2, 1024, causal=True), flops=_SCORES // 2),
    Row("attention with a mask", "attention", _attention(8, 8, 1024, mask=True), flops=_SCORES),
    Row("attention, short: 12 heads of 128", "attention", _attention(12, 12, 128), flops=4 * 4 * 12 * 128 * 128 * 64),
    Row("LSTM, 32 steps of 256", "recurrence", _lstm(False), flops=_STEPS),
    Row("LSTM, training", "recurrence", _lstm(True), flops=3 * _STEPS),
)

ROWS: Final[tuple[Row, ...]] = (*_MEMORY, *_PRODUCTS, *_CONVOLUTIONS, *_LAYERS)
