"""The rows of `python -m benchmarks gpu`: programs on a CUDA device, in torch's names.

Owns the programs and their sizes. `eager` is torch in a peer's process. The order of the rows is the order of measurements: the most
informative first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import eager as torch
from benchmarks import nets
from eager import nn
from eager.nn import functional as F

__all__ = ["ROWS", "GpuRow", "Program"]

Program = Callable[[], Any]
Make = Callable[[int, Callable[[Any], Any]], Program]


@dataclass(frozen=True, slots=True)
class GpuRow:
    """One program. make(scale, compile): its run at a size of 1 / scale. modes: of `compile` that are measured.

    nbytes: read and written, for rows that memory limits. flops: of a run. Both at scale 1. inner: runs of one timing.
    """

    name: str
    group: str
    make: Make
    modes: tuple[str, ...] = ("default",)
    nbytes: int = 0
    flops: int = 0
    inner: int = 1


def _normal(*shape: int, dtype: Any = torch.float32, grad: bool = False) -> torch.Tensor:
    x: torch.Tensor = torch.randn(*shape, device="cuda", dtype=torch.float32).to(dtype)
    return x.requires_grad_() if grad else x


def _forward(fn: Callable[..., Any], *shapes: tuple[int, ...], dtype: Any = torch.float32) -> Make:
    """A program of one function of random tensors. Its first sizes are divided by the scale."""

    def make(scale: int, compile: Callable[[Any], Any]) -> Program:
        given = [_normal(max(s[0] // scale, 1), *s[1:], dtype=dtype) for s in shapes]
        compiled = compile(fn)

        def run() -> Any:
            with torch.no_grad():
                return compiled(*given)

        return run

    return make


# --------------------------------------------------------------------------- limited by memory

_ROWS: Final = 65536
_COLUMNS: Final = 4096
_ARRAY: Final = 4 * _ROWS * _COLUMNS


def _memory(name: str, fn: Callable[..., Any], arrays: int, inputs: int = 1) -> GpuRow:
    """arrays: how many arrays of `_ARRAY` bytes are read and written."""
    return GpuRow(name, "memory", _forward(fn, *[(_ROWS, _COLUMNS)] * inputs), nbytes=arrays * _ARRAY)


def _copy(scale: int, compile: Callable[[Any], Any]) -> Program:
    x, y = _normal(_ROWS // scale, _COLUMNS), _normal(_ROWS // scale, _COLUMNS)
    return lambda: y.copy_(x)


def _cross_entropy(scale: int, compile: Callable[[Any], Any]) -> Program:
    x = _normal(8192 // scale, 50257, dtype=torch.bfloat16, grad=True)
    y = torch.arange(8192 // scale, device="cuda")
    loss = compile(lambda x: F.cross_entropy(x.float(), y))

    def run() -> None:
        x.grad = None
        loss(x).backward()

    return run


def _norm_training(scale: int, compile: Callable[[Any], Any]) -> Program:
    x, g = _normal(16384 // scale, 4096, dtype=torch.bfloat16, grad=True), _normal(16384 // scale, 4096, dtype=torch.bfloat16)
    w, b = _normal(4096, dtype=torch.bfloat16, grad=True), _normal(4096, dtype=torch.bfloat16, grad=True)
    fn = compile(lambda x: F.layer_norm(x, (4096,), w, b))

    def run() -> None:
        x.grad = w.grad = b.grad = None
        fn(x).backward(g)

    return run


_MEMORY: Final = (
    GpuRow("copy", "memory", _copy, ("eager",), nbytes=2 * _ARRAY),
    _memory("x * 2 + 1", lambda x: x * 2 + 1, 2),
    _memory("gelu", lambda x: F.gelu(x), 2),
    _memory("x + y * 0.5", lambda x, y: x + y * 0.5, 3, 2),
    _memory("softmax", lambda x: torch.softmax(x, -1), 2),
    _memory("layer norm", lambda x: F.layer_norm(x, (_COLUMNS,)), 2),
    _memory("sum of rows", lambda x: x.sum(-1), 1),
    _memory("sum of columns", lambda x: x.sum(0), 1),
    _memory("sum of all", lambda x: x.sum(), 1),
    _memory("dropout", lambda x: F.dropout(x, 0.1), 2),
    _memory("running sum", lambda x: x.cumsum(-1), 2),
    GpuRow("x.t() + y", "memory", _forward(lambda x, y: x.t() + y, (8192, 8192), (8192, 8192)), nbytes=3 * 4 * 8192 * 8192),
    GpuRow("cross entropy, training", "memory", _cross_entropy, nbytes=2 * 3 * 8192 * 50257),
    GpuRow("layer norm, training", "memory", _norm_training, nbytes=2 * 5 * 16384 * 4096),
)


# --------------------------------------------------------------------------- products, convolution, attention


def _product(n: int, dtype: Any = torch.bfloat16) -> GpuRow:
    def make(scale: int, compile: Callable[[Any], Any]) -> Program:
        m = n // scale
        a, b, c = _normal(m, m, dtype=dtype), _normal(m, m, dtype=dtype), _normal(m, dtype=dtype)
        fn = compile(lambda a, b: F.gelu(a @ b + c, approximate="tanh"))
        return lambda: fn(a, b)

    kind = "bf16" if dtype is torch.bfloat16 else "float32"
    modes = "default", "max-autotune-no-cudagraphs", "max-autotune-tma"
    return GpuRow(f"product and gelu, {n}, {kind}", "product", make, modes, flops=2 * n**3)


def _attention(t: int, causal: bool, training: bool) -> GpuRow:
    def make(scale: int, compile: Callable[[Any], Any]) -> Program:
        q, k, v, g = (_normal(8, 16, t // scale, 64, dtype=torch.bfloat16, grad=training) for _ in range(4))
        fn = compile(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=causal))

        def run() -> Any:
            if not training:
                return fn(q, k, v)
            q.grad = k.grad = v.grad = None
            return fn(q, k, v).backward(g.detach())

        return run

    name = f"attention, {t}" + ", causal" * causal + ", training" * training
    return GpuRow(name, "attention", make, flops=4 * 8 * 16 * t * t * 64 * (7 if training else 2) // (4 if causal else 2))


def _convolution(channels: int, side: int, kernel: int) -> GpuRow:
    def make(scale: int, compile: Callable[[Any], Any]) -> Program:
        x = _normal(max(32 // scale, 1), channels, side, side, dtype=torch.bfloat16).to(memory_format=torch.channels_last)
        w = _normal(channels, channels, kernel, kernel, dtype=torch.bfloat16).to(memory_format=torch.channels_last)
        fn = compile(lambda x: F.relu(F.conv2d(x, w, padding=kernel // 2)))
        return lambda: fn(x)

    return GpuRow(f"convolution {kernel} x {kernel}, {channels} channels, {side} x {side}", "convolution", make,
                  flops=2 * 32 * side * side * channels * channels * kernel * kernel)  # fmt: skip


# --------------------------------------------------------------------------- networks


def _inference(model: Callable[[], nn.Module], inputs: Callable[[int], torch.Tensor]) -> Make:
    def make(scale: int, compile: Callable[[Any], Any]) -> Program:
        net = model().eval().to("cuda", torch.bfloat16)
        x = inputs(scale)
        compiled = compile(net)

        def run() -> Any:
            with torch.no_grad():
                return compiled(x)

        return run

    return make


def _training(
    model: Callable[[], nn.Module], inputs: Callable[[int], torch.Tensor], targets: Callable[[int], torch.Tensor]
) -> Make:
    def make(scale: int, compile: Callable[[Any], Any]) -> Program:
        net = nets.Loss(model()).train().to("cuda", torch.bfloat16)
        x, y = inputs(scale), targets(scale)
        loss = compile(net)
        optimizer = torch.optim.SGD(net.parameters(), 1e-3, momentum=0.9)
        update = compile(optimizer.step)

        def run() -> None:
            optimizer.zero_grad(set_to_none=True)
            loss(x, y).backward()
            update()

        return run

    return make


def _tokens(vocabulary: int, batch: int, length: int) -> Callable[[int], torch.Tensor]:
    def make(scale: int) -> torch.Tensor:
        b = max(batch // scale, 1)
        return (torch.arange(b * length, device="cuda") * 7919 % vocabulary).view(b, length)

    return make


def _images(batch: int) -> Callable[[int], torch.Tensor]:
    return lambda scale: _normal(max(batch // scale, 1), 3, 224, 224, dtype=torch.bfloat16)


def _classes(batch: int) -> Callable[[int], torch.Tensor]:
    return lambda scale: torch.arange(max(batch // scale, 1), device="cuda") * 31 % 1000


_MODES: Final = ("default", "reduce-overhead")
_GPT2: Final = _inference(nets.GPT2, _tokens(50257, 8, 512))
_GPT2_TRAINING: Final = _training(nets.GPT2, _tokens(50257, 4, 512), _tokens(50257, 4, 512))
_NETWORKS: Final = (
    GpuRow("ResNet-50, 32", "network", _inference(nets.ResNet50, _images(32)), _MODES, inner=5),
    GpuRow("ViT-B/16, 32", "network", _inference(nets.ViT, _images(32)), _MODES, inner=5),
    GpuRow("GPT-2 124M, 8 x 512", "network", _GPT2, _MODES, inner=5),
    GpuRow("BERT-base, 1 x 128", "network", _inference(nets.Bert, _tokens(30522, 1, 128)), _MODES, inner=10),
    GpuRow("MLP-Mixer S/16, 32, training", "network", _training(nets.Mixer, _images(32), _classes(32)), inner=5),
    GpuRow("GPT-2 124M, 4 x 512, training", "network", _GPT2_TRAINING, inner=5),
)

ROWS: Final = (
    *_MEMORY[:3],
    *(_product(n) for n in (4096, 8192, 2048, 1024)),
    _attention(2048, causal=True, training=False),
    _attention(2048, causal=False, training=True),
    _convolution(256, 56, 3),
    *_MEMORY[-2:],
    *_NETWORKS,
    *_MEMORY[3:-2],
    _product(4096, torch.float32),
)
