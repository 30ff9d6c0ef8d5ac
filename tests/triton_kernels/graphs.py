"""Typical graphs on CUDA tensors, each small for the interpreter and large for the compiler."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

import eager as torch
from eager.base.spec import fake, spec_of
from eager.nn import functional as F
from fxir.trace.trace import trace
from inductor.base.target import SM_90, Target
from inductor.driver.cuda import CudaPlan, lower_to_cuda

Inputs = tuple[torch.Tensor, ...]
I64 = torch.int64


def _normal(*shape: int) -> torch.Tensor:
    return torch.randn(*shape)


def _whole(*shape: int) -> torch.Tensor:
    """Small whole numbers: their sums are exact in any order."""
    return torch.randint(-4, 5, shape).float()


def _scaled_inputs(rows: int, columns: int, depth: int, second: torch.dtype) -> Inputs:
    """Operands of `_scaled_mm`: x, the transposed weight of dtype `second`, scales of rows and of columns, and a bias."""
    x, w = _whole(rows, depth).to(torch.float8_e4m3fn), _whole(columns, depth).to(second)
    return x, w.t(), torch.rand(rows, 1), torch.rand(1, columns), _whole(columns).bfloat16()


def _positions(n: int, below: int) -> torch.Tensor:
    return torch.arange(n) * 7 % below


def _added(g: torch.Tensor, i: torch.Tensor) -> tuple[torch.Tensor]:
    return (torch.zeros(50, g.shape[1], device=g.device, dtype=g.dtype).index_add(0, i, g),)


def _filter_gradient(x: torch.Tensor, w: torch.Tensor, g: torch.Tensor, stride: int = 1, padding: int = 1) -> tuple[torch.Tensor, ...]:
    w = w.detach().requires_grad_()
    return tuple(torch.autograd.grad(F.conv2d(x, w, None, stride, padding), [w], g))


def _convolutions(x: torch.Tensor, first: torch.Tensor, second: torch.Tensor, *statistics: torch.Tensor) -> tuple[torch.Tensor]:
    """Two convolutions, each with a scale of its channels that is computed from a variance."""
    scales = [(v.float() + 1e-5).rsqrt().view(1, -1, 1, 1) for v in statistics]
    x = F.relu((F.conv2d(x, first, None, 2, 3).float() * scales[0]).bfloat16())
    return ((F.conv2d(x, second, None, 1, 1).float() * scales[1]).bfloat16(),)


def _convolution_inputs(n: int, side: int, channels: int) -> Inputs:
    shapes = (n, 3, side, side + 1), (channels, 3, 7, 7), (channels + 4, channels, 3, 3)
    return (*(_whole(*s).bfloat16() for s in shapes), *(torch.full((c,), 0.25).bfloat16() for c in (channels, channels + 4)))


def _norm_weights(g: torch.Tensor, x: torch.Tensor, mean: torch.Tensor, scale: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Gradients of the weight and of the bias of a norm over rows."""
    return (g.float() * ((x.float() - mean) * scale)).sum(0).bfloat16(), g.float().sum(0).bfloat16()


def _joined_heads(*heads: torch.Tensor) -> tuple[torch.Tensor]:
    """Gradients (b, h, t, d) of queries, keys and values as one (b, t, 3 * h * d), a sum of arrays with zeros elsewhere."""
    b, h, t, d = heads[0].shape
    total = torch.zeros(b, t, 3 * h * d, device=heads[0].device, dtype=heads[0].dtype)
    for k, g in enumerate(heads):
        flat = g.transpose(1, 2).reshape(b, t, h * d)
        total = total + torch.slice_scatter(torch.zeros_like(total), flat, 2, k * h * d, (k + 1) * h * d)
    return (total,)


def _heads(*shape: int) -> Inputs:
    return tuple(_whole(*shape).bfloat16() for _ in range(3))


def _updates(scale: torch.Tensor, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Parameters after a step against their gradients."""
    pairs = zip(tensors[::2], tensors[1::2], strict=True)
    return tuple(p - g * scale for p, g in pairs)


def _update_inputs(*sizes: int) -> Inputs:
    return (_whole(1), *(_whole(n) for n in sizes for _ in range(2)))


def _softmax_of_product(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, ...]:
    y = x @ w
    return torch.softmax(y.float(), 1), y


def _norm_inputs(rows: int, columns: int) -> Inputs:
    return _whole(rows, columns).bfloat16(), _whole(rows, columns).bfloat16(), _whole(rows, 1), _whole(rows, 1)


# name -> (the graph, inputs for the interpreter, inputs for the compiler); the same inputs twice where one size is enough
GRAPHS: Final[dict[str, tuple[Callable[..., object], Callable[[], Inputs], Callable[[], Inputs]]]] = {
    "pointwise": (lambda x, y: (torch.relu(x * 2 + y),), lambda: (_normal(7, 13), _normal(7, 13)),
                  lambda: (_normal(512, 1024), _normal(512, 1024))),
    "bias and gelu": (lambda x, b: (F.gelu(x + b, approximate="tanh"),), lambda: (_normal(33, 70), _normal(70)),
                      lambda: (_normal(512, 768), _normal(768))),
    "half precision": (lambda x, b: (F.silu(x + b),), lambda: (_normal(9, 20).bfloat16(), _normal(20).bfloat16()),
                       lambda: (_normal(512, 768).bfloat16(), _normal(768).bfloat16())),
    "transposed operand": (lambda x, z: (x + z.t(),), lambda: (_normal(40, 70), _normal(70, 40)),
                           lambda: (_normal(512, 768), _normal(768, 512))),
    "softmax": (lambda x: (torch.softmax(x, -1),), lambda: (_normal(5, 37),), lambda: (_normal(512, 1000),)),
    "softmax of long rows": (lambda x: (torch.softmax(x, -1),), lambda: (_normal(2, 5000),), lambda: (_normal(64, 50257),)),
    "layer norm": (lambda x, b: (F.layer_norm(x, (x.shape[1],), b, b),), lambda: (_normal(4, 384), _normal(384)),
                   lambda: (_normal(512, 768), _normal(768))),
    "layer norm of long rows": (lambda x, b: (F.layer_norm(x, (x.shape[1],), b, b),), lambda: (_normal(2, 9000), _normal(9000)),
                                lambda: (_normal(64, 9000), _normal(9000))),
    "sum of columns": (lambda x: (x.sum(0),), lambda: (_normal(3000, 41),), lambda: (_normal(4096, 768),)),
    "gradients of norm weights": (_norm_weights, lambda: _norm_inputs(300, 41), lambda: _norm_inputs(16384, 4096)),
    "sum of one element of each row": (lambda x, i: (x.gather(1, i).sum(),), lambda: (_whole(200, 9), _positions(200, 9)[:, None]),
                                       lambda: (_normal(8192, 50), _positions(8192, 50)[:, None])),
    "heads joined": (_joined_heads, lambda: _heads(2, 3, 5, 16), lambda: _heads(4, 12, 512, 64)),
    "heads exchanged with positions": (lambda x: (x.transpose(1, 2).contiguous(),), lambda: (_normal(2, 9, 3, 32).bfloat16(),),
                                       lambda: (_normal(4, 512, 12, 64).bfloat16(),)),
    "channels last": (lambda x: (x.permute(0, 2, 3, 1).contiguous(),), lambda: (_normal(2, 3, 10, 14),),
                      lambda: (_normal(32, 3, 224, 224),)),
    "rows of a transposed image": (lambda x: (x.transpose(1, 2).contiguous(),), lambda: (_normal(2, 20, 40),),
                                   lambda: (_normal(32, 196, 512),)),
    "updates of many parameters": (_updates, lambda: _update_inputs(40, 30, 40, 40, 30), lambda: _update_inputs(*(768, 3072) * 40)),
    "softmax of a product": (_softmax_of_product,
                             lambda: (_whole(20, 16).bfloat16(), _whole(16, 40).bfloat16()),
                             lambda: (_normal(2048, 768).bfloat16(), _normal(768, 5000).bfloat16())),
    "sum of one long row": (lambda x: (x.sum(1), x.argmax(1)), lambda: (_normal(2, 20000),), lambda: (_normal(4, 200000),)),
    "sum of everything": (lambda x: (x.square().sum(),), lambda: (_normal(200, 201),), lambda: (_normal(2048, 1024),)),
    "batch statistics": (lambda x: (x.mean((0, 2, 3)), x.var((0, 2, 3))), lambda: (_normal(3, 4, 5, 6),),
                         lambda: (_normal(16, 64, 28, 28),)),
    "cat": (lambda x, y: (torch.cat([x, y], 1) * 2,), lambda: (_normal(6, 10), _normal(6, 7)),
            lambda: (_normal(256, 768), _normal(256, 512))),
    "first greatest element": (lambda x: (x.argmax(1),), lambda: (_normal(5, 37),), lambda: (_normal(512, 1000),)),
    "first greatest of long rows": (lambda x: (x.argmax(1),), lambda: (_normal(2, 9000),), lambda: (_normal(64, 9000),)),
    "gather": (lambda x, i: (x[i] + 1,), lambda: (_normal(20, 9), _positions(12, 20)), lambda: (_normal(2000, 768), _positions(512, 2000))),
    "running sum": (lambda x: (x.cumsum(1),), lambda: (_normal(3, 2500),), lambda: (_normal(256, 4000),)),
    "added by index": (_added, lambda: (_normal(30, 12), _positions(30, 50)), lambda: (_normal(700, 64), _positions(700, 50))),
    "halves added by index": (_added, lambda: (_normal(30, 12).bfloat16(), _positions(30, 50)),
                              lambda: (_normal(700, 64).bfloat16(), _positions(700, 50))),
    "other elements": (lambda x: (x.exp().flip(1) / x.exp().sum(1, keepdim=True),), lambda: (_normal(4, 30),),
                       lambda: (_normal(64, 9000),)),
    "linear and gelu": (lambda x, w, b: (F.gelu(F.linear(x, w, b)),), lambda: (_normal(40, 50), _normal(33, 50), _normal(33)),
                        lambda: (_normal(512, 1024), _normal(768, 1024), _normal(768))),
    "8-bit product": (lambda x, w, s, t, b: (F.relu(torch._scaled_mm(x, w, s, t, b, out_dtype=torch.bfloat16)),),
                      lambda: _scaled_inputs(40, 33, 50, torch.float8_e4m3fn),
                      lambda: _scaled_inputs(2048, 1024, 512, torch.float8_e4m3fn)),
    "8-bit product of two dtypes": (lambda x, w, s, t, b: (torch._scaled_mm(x, w, s, t, b, out_dtype=torch.float32),),
                                    lambda: _scaled_inputs(37, 33, 80, torch.float8_e5m2),
                                    lambda: _scaled_inputs(1024, 512, 768, torch.float8_e5m2)),
    "half precision linear": (lambda x, w, b: (F.relu(F.linear(x, w, b)),),
                              lambda: (_normal(40, 50).bfloat16(), _normal(33, 50).bfloat16(), _normal(33).bfloat16()),
                              lambda: (_normal(2048, 1024).bfloat16(), _normal(4096, 1024).bfloat16(), _normal(4096).bfloat16())),
    "batched product": (lambda x, y: (x @ y * 0.5,), lambda: (_normal(3, 20, 17), _normal(3, 17, 30)),
                        lambda: (_normal(12, 256, 64), _normal(12, 64, 256))),
    "deep product": (lambda x, y: (x.t() @ y * 2,), lambda: (_whole(2048, 33), _whole(2048, 20)),
                     lambda: (_normal(32768, 256).bfloat16(), _normal(32768, 256).bfloat16())),
    "gradient of a filter": (_filter_gradient, lambda: (_whole(1, 16, 34, 34), _whole(20, 16, 3, 3), _whole(1, 20, 34, 34)),
                             lambda: (_normal(32, 64, 28, 28).bfloat16(), _normal(64, 64, 3, 3).bfloat16(),
                                      _normal(32, 64, 28, 28).bfloat16())),
    "gradient of a filter of few channels": (lambda x, w, g: _filter_gradient(x, w, g, 16, 0),
                                             lambda: (_whole(2, 3, 48, 48), _whole(20, 3, 16, 16), _whole(2, 20, 3, 3)),
                                             lambda: (_normal(32, 3, 224, 224).bfloat16(), _normal(512, 3, 16, 16).bfloat16(),
                                                      _normal(32, 512, 14, 14).bfloat16())),
    "convolution": (lambda x, w: (F.conv2d(x.permute(0, 3, 1, 2), w.permute(0, 3, 1, 2), None, 2, 1),),
                    lambda: (_whole(1, 9, 9, 16).bfloat16(), _whole(16, 3, 3, 16).bfloat16()),
                    lambda: (_whole(16, 56, 56, 128).bfloat16(), _whole(128, 3, 3, 128).bfloat16())),
    "convolutions, channels first": (_convolutions, lambda: _convolution_inputs(1, 13, 16), lambda: _convolution_inputs(16, 56, 128)),
    "products of unaligned rows": (lambda g, w, x: (g @ w, g.t() @ x),
                                   lambda: (_whole(18, 301).bfloat16(), _whole(301, 256).bfloat16(), _whole(18, 256).bfloat16()),
                                   lambda: (_normal(2048, 5001).bfloat16(), _normal(5001, 768).bfloat16(), _normal(2048, 768).bfloat16())),
    "product into unaligned rows": (lambda x, w: (x @ w.t(),), lambda: (_whole(20, 32).bfloat16(), _whole(37, 32).bfloat16()),
                                    lambda: (_normal(4096, 768).bfloat16(), _normal(50257, 768).bfloat16())),
    "product with one row": (lambda x, w: (x @ w,), lambda: (_normal(1, 40), _normal(40, 50)),
                             lambda: (_normal(1, 1024), _normal(1024, 4096))),
    "integers": (lambda x: (x // 3, x % -7, x << 3), lambda: (_positions(100, 64) - 30,), lambda: (_positions(4096, 64),)),
}  # fmt: skip


def on_cuda(t: torch.Tensor) -> torch.Tensor:
    """A fake CUDA tensor with the metadata of `t`."""
    made: torch.Tensor = fake(replace(spec_of(t), device=torch.device("cuda")))
    return made


def all_on_cuda(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Fake CUDA tensors with the metadata of `tensors`."""
    return [on_cuda(t) for t in tensors]


def plan_of(fn: Callable[..., object], inputs: Inputs, target: Target = SM_90) -> CudaPlan:
    """The plan of a function of CUDA tensors like `inputs`."""
    return lower_to_cuda(trace(fn, all_on_cuda(inputs)), target)
