"""Loops that follow a matrix product run on its blocks: values, when they may, and why not."""

import pytest

import eager as torch
from eager.base.spec import fake_like
from eager.nn import functional as F
from fxir.base.options import CompileOptions, GraphKind
from fxir.trace.trace import trace
from inductor.cpp import gemm
from inductor.driver.backend import compile_graph

X, W, B = torch.randn(70, 96), torch.randn(96, 160), torch.randn(160)


def _run(fn, *inputs):
    """(compiled outputs, eager outputs, kernels), the products on the template wherever it can."""
    graph = trace(fn, [fake_like(x) for x in inputs])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gemm, "_blas_is_better", lambda request: False)
        patch.setattr(gemm, "_TINY_FLOPS", 0)
        run = compile_graph(graph, GraphKind.INFERENCE, CompileOptions(options={"test": 1}))
    text = "".join(t for t in run.artifact.entry.sources().values())
    return run(*inputs), fn(*inputs), text


CASES = {
    "bias": (lambda x, w, b: (x @ w + b,), (X, W, B), True),
    "bias and gelu": (lambda x, w, b: (F.gelu(x @ w + b),), (X, W, B), True),
    "before and after": (lambda x, w, b: ((y := x @ w + b), F.relu(y)), (X, W, B), True),
    "residual": (lambda x, w: (torch.tanh(x @ w) + x,), (torch.randn(70, 64), torch.randn(64, 64)), True),
    "heads": (lambda x, w, b: ((x @ w + b).reshape(7, 10, 5, 32).transpose(1, 2).contiguous(),), (X, W, B), True),
    "transposed": (lambda x, w, b: ((x @ w + b).t().contiguous(),), (X, W, B), True),
    "channels first": (lambda x, w, b: (F.gelu(x @ w + b).reshape(2, 35, 160).transpose(1, 2).contiguous(),), (X, W, B), True),
    "channels first, few columns": (lambda x, w, b: ((x @ w[:, :11] + b[:11]).reshape(2, 35, 11).transpose(1, 2).contiguous(),),
                                    (X, W, B), True),
    "channels first, with a residual": (
        lambda x, w, y: ((x @ w).reshape(2, 35, 160).transpose(1, 2).contiguous() + y,), (X, W, torch.randn(2, 160, 35)), True),
    "channels first, float64": (
        lambda x, w: ((x @ w).reshape(2, 35, 160).transpose(1, 2).contiguous() * 2,), (X.double(), W.double()), True),
    "batched": (lambda x, y: (torch.exp(x @ y * 0.1),), (torch.randn(6, 33, 20), torch.randn(6, 20, 48)), True),
    "batched into rows": (lambda x, y: ((x @ y).reshape(2, 3, 33, 48).transpose(1, 2).reshape(66, 144),),
                          (torch.randn(6, 33, 20), torch.randn(6, 20, 48)), True),
    "float64": (lambda x, w: (F.relu(x @ w),), (X.double(), W.double()), True),
    "read whole as well": (lambda x, w, b: ((x @ w).sum(), F.relu(x @ w + b)), (X, W, B), None),
    "its addend comes later": (lambda x, w, b: (F.relu(x @ w) + (x @ w).sum(),), (X, W, B), None),
    "softmax": (lambda x, w, b: (F.softmax(x @ w + b, -1),), (X, W, B), False),
    "flipped": (lambda x, w, b: ((x @ w).flip(1) + b,), (X, W, B), False),
    "part of it": (lambda x, w, b: ((x @ w)[:, ::2] * 2,), (X, W, B), False),
    "a result without the product comes first": (
        lambda g, w, h: (p := g @ w, y := F.gelu(h), (p * (h * h)) @ w.t(), y.t() @ g)[2:], (X, W, torch.randn(70, 160)), True),
    "chain": (lambda x, w: (F.relu(F.relu(x @ w) @ w) @ w + 1,), (torch.randn(65, 64), torch.randn(64, 64) / 8), True),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_values_and_fusion(name):
    fn, inputs, fused = CASES[name]
    got, want, text = _run(fn, *inputs)
    for a, b in zip(got, want, strict=True):
        assert a.shape == b.shape and a.stride() == b.stride()
        assert torch.allclose(a, b, rtol=1e-4, atol=2e-4)
    assert "gemm" in text
    if fused is not None:
        assert ("_block(" in text) is fused


def test_a_product_lies_where_its_result_goes():
    fn, inputs, _ = CASES["chain"]
    graph = trace(fn, [fake_like(x) for x in inputs])
    run = compile_graph(graph, GraphKind.INFERENCE, CompileOptions())
    if "_block(" in "".join(run.artifact.entry.sources().values()):
        assert run.arena_bytes <= 2 * 65 * 64 * 4 + 256


def test_a_product_that_only_its_loops_read_takes_no_memory_of_the_graph():
    fn, inputs, _ = CASES["channels first"]
    graph = trace(fn, [fake_like(x) for x in inputs])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gemm, "_blas_is_better", lambda request: False)
        run = compile_graph(graph, GraphKind.INFERENCE, CompileOptions(options={"test": 1}))
    assert "_block(" in "".join(run.artifact.entry.sources().values())
    assert run.arena_bytes < 70 * 160 * 4


def test_refusals_say_why():
    fn, inputs, _ = CASES["softmax"]
    graph = trace(fn, [fake_like(x) for x in inputs])
    run = compile_graph(graph, GraphKind.INFERENCE, CompileOptions())
    assert any("follow a product" in note for note in run.artifact.entry.notes())


def test_equal_layers_share_their_kernels():
    w = torch.randn(64, 64) / 8

    def layers(n):
        def fn(x, w):
            for _ in range(n):
                x = F.layer_norm(F.relu(x @ w + 1), (64,))
            return (x,)

        graph = trace(fn, [fake_like(torch.randn(65, 64)), fake_like(w)])
        run = compile_graph(graph, GraphKind.INFERENCE, CompileOptions())
        x = torch.randn(65, 64)
        assert torch.allclose(run(x, w)[0], fn(x, w)[0], rtol=1e-4, atol=1e-4)
        return "".join(run.artifact.entry.sources().values()).count("FJ_LOCAL void k")

    assert layers(6) <= layers(2) + 1
