"""Graphs on CUDA tensors that `python -m benchmarks triton` compiles: pointwise code, reductions, products, networks, training.

Owns the programs and the sizes of their inputs. The inputs are fake tensors: nothing is allocated or computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import eager as torch
from benchmarks import nets
from eager import nn
from eager.base.spec import TensorSpec, fake
from eager.nn import functional as F
from fxir.ir.graph import Graph
from fxir.trace.trace import trace
from inductor.driver.backend import KEPT

__all__ = ["PROGRAMS", "Program"]

_BF16, _F16, _F32, _I64 = torch.bfloat16, torch.float16, torch.float32, torch.int64


@dataclass(frozen=True, slots=True)
class Program:
    """A function and its inputs. group: its lines in the table. of: (shape, dtype) of each input; `wrt` says which have a gradient.

    A program with `wrt` also computes the gradients of the result, whose cotangent is one more input.
    """

    group: str
    name: str
    fn: Callable[..., Any]
    of: tuple[tuple[tuple[int, ...], Any], ...]
    wrt: tuple[int, ...] = ()

    def graph(self) -> Graph:
        """The functional graph on CUDA tensors."""
        inputs = [_cuda(shape, of) for shape, of in self.of]
        if not self.wrt:
            return trace(lambda *xs: _tuple(self.fn(*xs)), inputs, KEPT)
        y = self.fn(*(fake(TensorSpec.contiguous(shape, of)) for shape, of in self.of))
        return trace(self._with_gradients, [*inputs, _cuda(tuple(y.shape), y.dtype)], KEPT)

    def _with_gradients(self, *given: Any) -> tuple[Any, ...]:
        *xs, g = given
        xs = [x.detach().requires_grad_() if k in self.wrt else x for k, x in enumerate(xs)]
        y = self.fn(*xs)
        return (y.detach(), *torch.autograd.grad(y, [xs[k] for k in self.wrt], g))


def _cuda(shape: tuple[int, ...], of: Any) -> Any:
    return fake(TensorSpec.contiguous(shape, of, torch.device("cuda")))


def _tuple(y: Any) -> tuple[Any, ...]:
    return tuple(y) if isinstance(y, tuple | list) else (y,)


def _network(group: str, name: str, make: Callable[[], nn.Module], *inputs: tuple[tuple[int, ...], Any], of: Any = _F32,
             training: bool = False) -> Program:  # fmt: skip
    """A module, whose parameters and buffers are inputs after the inputs of the call."""
    module = make().train(training)
    state = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    names = list(state)
    types = [of if t.is_floating_point() else t.dtype for t in state.values()]

    def run(*given: Any) -> Any:
        xs, weights = given[: len(inputs)], given[len(inputs) :]
        return nn.utils.stateless.functional_call(module, dict(zip(names, weights, strict=True)), xs)

    weights = [(tuple(t.shape), d) for t, d in zip(state.values(), types, strict=True)]
    wrt = tuple(len(inputs) + k for k, n in enumerate(names) if isinstance(state[n], nn.Parameter)) if training else ()
    return Program(group, name, run, (*inputs, *weights), wrt)


def _x(*shape: int, of: Any = _F32) -> tuple[tuple[int, ...], Any]:
    return shape, of


def _pointwise() -> list[Program]:
    size = (8192, 4096)
    return [
        Program("pointwise", "relu(x * 2 + y), float32", lambda x, y: torch.relu(x * 2 + y), (_x(*size), _x(*size))),
        Program("pointwise", "gelu(x + bias), bfloat16", lambda x, b: F.gelu(x + b, approximate="tanh"),
                (_x(*size, of=_BF16), _x(4096, of=_BF16))),
        Program("pointwise", "silu(x) * y, float16", lambda x, y: F.silu(x) * y, (_x(*size, of=_F16), _x(*size, of=_F16))),
        Program("pointwise", "float32 to bfloat16", lambda x: x.to(_BF16), (_x(*size),)),
        Program("pointwise", "gelu, backward", lambda x: F.gelu(x), (_x(*size, of=_BF16),), (0,)),
        Program("pointwise", "x + y.t()", lambda x, y: x + y.t(), (_x(4096, 4096), _x(4096, 4096))),
        Program("pointwise", "transpose of heads", lambda x: x.transpose(1, 2).contiguous(), (_x(16, 1024, 12, 64, of=_BF16),)),
        Program("pointwise", "dropout", lambda x: F.dropout(x, 0.1, True), (_x(*size, of=_BF16),)),
    ]  # fmt: skip


def _norm(x: Any, w: Any, b: Any) -> Any:
    return F.layer_norm(x, (x.shape[-1],), w, b)


def _reductions() -> list[Program]:
    made = []
    for of in (_F32, _BF16):
        rows = _x(8192, 4096, of=of)
        made += [
            Program("rows", f"softmax, {of.name}", lambda x: torch.softmax(x, -1), (rows,), (0,)),
            Program("rows", f"layer norm, {of.name}", _norm, (rows, _x(4096, of=of), _x(4096, of=of)), (0, 1, 2)),
            Program("rows", f"rms norm, {of.name}", lambda x, w: F.rms_norm(x, (4096,), w), (rows, _x(4096, of=of)), (0, 1)),
        ]
    return [
        *made,
        Program("rows", "softmax of short rows", lambda x: torch.softmax(x, -1), (_x(65536, 128),)),
        Program("rows", "softmax of long rows", lambda x: torch.softmax(x, -1), (_x(2048, 50257),)),
        Program("rows", "cross entropy", F.cross_entropy, (_x(4096, 50257, of=_BF16), _x(4096, of=_I64)), (0,)),
        Program("rows", "sum of rows", lambda x: x.sum(1), (_x(8192, 4096),)),
        Program("rows", "sum of columns", lambda x: x.sum(0), (_x(8192, 4096),)),
        Program("rows", "sum of everything", lambda x: x.sum(), (_x(8192, 4096),)),
        Program("rows", "argmax of rows", lambda x: x.argmax(1), (_x(8192, 4096),)),
        Program("rows", "running sum", lambda x: x.cumsum(1), (_x(4096, 4096),)),
        Program("rows", "batch statistics", lambda x: (x.mean((0, 2, 3)), x.var((0, 2, 3))), (_x(64, 64, 56, 56),)),
        Program("rows", "embedding", lambda i, w: F.embedding(i, w), (_x(8, 1024, of=_I64), _x(50257, 768)), (1,)),
    ]


def _linear(x: Any, w: Any, b: Any) -> Any:
    return F.gelu(F.linear(x, w, b), approximate="tanh")


def _products() -> list[Program]:
    made = []
    for of in (_BF16, _F16, _F32):
        for n in (1024, 4096, 8192):
            square = _x(n, n, of=of)
            made.append(Program("products", f"{n} x {n} x {n}, {of.name}", lambda x, y: x @ y, (square, square)))
        made.append(Program("products", f"gelu(linear), {of.name}", _linear,
                            (_x(8192, 1024, of=of), _x(4096, 1024, of=of), _x(4096, of=of))))  # fmt: skip
    half = {"of": _BF16}
    return [
        *made,
        Program("products", "batched", lambda x, y: x @ y, (_x(96, 512, 64, **half), _x(96, 64, 512, **half))),
        Program("products", "few rows", F.linear, (_x(16, 4096, **half), _x(4096, 4096, **half))),
        Program("products", "one row", F.linear, (_x(1, 4096, **half), _x(4096, 4096, **half))),
        Program("products", "deep", lambda x, y: x @ y, (_x(256, 65536, **half), _x(65536, 256, **half))),
        Program("products", "linear, gradients", F.linear, (_x(8192, 1024, **half), _x(4096, 1024, **half), _x(4096, **half)), (0, 1, 2)),
    ]


def _convolution(channels: int, width: int, size: int, kernel: int, stride: int = 1, gradients: bool = True) -> Program:
    def fn(x: Any, w: Any) -> Any:
        return F.conv2d(x.permute(0, 3, 1, 2), w.permute(0, 3, 1, 2), None, stride, kernel // 2)

    of = (_x(64, size, size, channels, of=_BF16), _x(width, kernel, kernel, channels, of=_BF16))
    name = f"{kernel} x {kernel}, {channels} to {width} channels, stride {stride}"
    return Program("convolutions", name, fn, of, (0, 1) if gradients else ())


def _attention(t: int, is_causal: bool, heads: int = 12) -> Program:
    def fn(q: Any, k: Any, v: Any) -> Any:
        return F.scaled_dot_product_attention(q, k, v, is_causal=is_causal, enable_gqa=heads != 12)

    one, few = _x(8, 12, t, 64, of=_BF16), _x(8, heads, t, 64, of=_BF16)
    kind = ", causal" if is_causal else ""
    return Program("attention", f"{t} keys{kind}, {heads} heads of keys", fn, (one, few, few), (0, 1, 2))


def _networks() -> list[Program]:
    tokens = _x(8, 1024, 768, of=_BF16)

    def gpt() -> nn.Module:
        return nets._Block(768, 12, pre=True, causal=True, gelu="tanh")

    def bert() -> nn.Module:
        return nets._Block(768, 12, pre=False, joint=False)

    def resnet() -> nn.Module:
        return nets._Bottleneck(256, 64, 1)

    images = _x(32, 256, 56, 56, of=_BF16)
    made = []
    for training in (False, True):
        kind = ", training" if training else ""
        made += [
            _network("networks", f"GPT-2 block{kind}", gpt, tokens, of=_BF16, training=training),
            _network("networks", f"BERT block{kind}", bert, tokens, of=_BF16, training=training),
            _network("networks", f"ResNet bottleneck{kind}", resnet, images, of=_BF16, training=training),
        ]
    return made


PROGRAMS: Final[Sequence[Program]] = (
    *_pointwise(),
    *_reductions(),
    *_products(),
    _convolution(64, 64, 56, 3),
    _convolution(256, 64, 56, 1),
    _convolution(128, 128, 56, 3, 2),
    _attention(1024, True),
    _attention(1024, False),
    _attention(1024, True, 4),
    *_networks(),
)
