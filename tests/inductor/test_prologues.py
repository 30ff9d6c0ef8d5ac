"""Products that compute an operand themselves: values, when they do, and memory that they save."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import eager as torch
from eager.nn import functional as F
from fxir.base.options import CompileOptions, GraphKind
from fxir.expr import rules as E
from fxir.trace.trace import trace
from inductor.driver.backend import compile_graph
from inductor.ir import definitions as ir
from inductor.loops.computed import computed_block, computed_name
from inductor.loops.interpret import interpret
from inductor.loops.tree import Axes, Contract, Kernel, Place

X, W, B = torch.randn(600, 96), torch.randn(96, 64), torch.randn(64)
ROWS = torch.randint(0, 600, (700,))

CASES: dict[str, tuple[Any, tuple[torch.Tensor, ...], bool]] = {
    "relu": (lambda x, w: (F.relu(x) @ w,), (X, W), True),
    "with an epilogue": (lambda x, w, b: (F.relu((x + 1) @ w + b),), (X, W, B), True),
    "two sources": (lambda x, y, w: ((x * y) @ w,), (X, torch.randn(600, 1), W), True),
    "rows of two axes": (lambda x, y, w: ((x.view(20, 30, 96) * y) @ w,), (X, torch.randn(30, 1), W), True),
    "a source that divides the depth": (
        lambda x, y, w: ((x.view(600, 8, 12) * y).reshape(600, 96) @ w,), (X, torch.randn(8, 1), W), False),
    "batched": (lambda x, w: (F.relu(x) @ w,), (torch.randn(2, 515, 40), torch.randn(2, 40, 24)), True),
    "float64": (lambda x, w: (F.relu(x) @ w,), (X.double(), W.double()), True),
    "converted": (lambda x, w: (x.float() @ w,), (X.bfloat16(), W), True),
    "gathered rows": (lambda x, i, w: ((x[i] * 2) @ w,), (X, ROWS, W), True),
    "a product before": (lambda x, w: ((F.relu(x) @ w * 2) @ w.t()[:, :48],), (X, W), True),
    "no columns": (lambda x, w: (F.relu(x) @ w[:, :0],), (X, W), False),
    "no rows": (lambda x, w: (F.relu(x) @ w,), (X[:0], W), False),
    "no depth": (lambda x, w: (F.relu(x) @ w,), (X[:, :0], W[:0]), False),
    "few rows": (lambda x, w: (F.relu(x) @ w,), (X[:100], W), False),
    "many columns": (lambda x, w: (F.relu(x) @ w,), (X, torch.randn(96, 700)), False),
    "expensive": (lambda x, w: (torch.exp(x) @ w,), (X, W), False),
    "read twice": (lambda x, w: ((y := F.relu(x)) @ w, y), (X, W), False),
    "transposed": (lambda x, w: (F.relu(x).t() @ w,), (torch.randn(96, 600), W), False),
    "read across the depth": (lambda x, w: (F.relu(x.t()) @ w,), (torch.randn(96, 600), W), False),
    "squared": (lambda x: ((y := F.relu(x)) @ y,), (torch.randn(512, 512),), False),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_values_and_fusion(name: str) -> None:
    fn, inputs, is_fused = CASES[name]
    run = compile_graph(trace(fn, inputs), GraphKind.INFERENCE, CompileOptions())
    for got, want in zip(run(*inputs), fn(*inputs), strict=True):
        assert got.stride() == want.stride() and torch.allclose(got, want, rtol=1e-4, atol=2e-4)
    text = "".join(run.artifact.entry.sources().values())
    assert (".prologue = " in text) is is_fused


def test_the_operand_takes_no_memory() -> None:
    inputs = (torch.randn(2000, 512), torch.randn(512, 16))
    run = compile_graph(trace(lambda x, w: (F.relu(x) @ w,), inputs), GraphKind.INFERENCE, CompileOptions())
    assert run.arena_bytes < 2000 * 512 * 4


def test_an_input_that_is_written_later_is_read_before() -> None:
    def fn(x: torch.Tensor, y: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        operand = x * 2
        x.add_(y)
        return operand @ w

    compiled = torch.compile(fn, fullgraph=True)
    x, y = X.clone(), torch.randn(600, 96)
    want = X * 2 @ W
    assert torch.allclose(compiled(x, y, W), want, rtol=1e-4, atol=2e-4)
    assert torch.equal(x, X + y)


def test_a_position_that_a_prologue_looks_up_is_checked() -> None:
    compiled = torch.compile(lambda x, i, w: (x[i] * 2) @ w, fullgraph=True)
    compiled(X, ROWS, W)
    with pytest.raises(IndexError, match="index 600 is out of bounds"):
        compiled(X, torch.full_like(ROWS, 600), W)


def test_the_loops_of_a_block_count_through_all_axes_of_the_depth() -> None:
    row, outer, inner, column = (E.sym(name, 0, n - 1) for name, n in (("i", 4), ("k", 3), ("l", 4), ("j", 2)))
    f32 = torch.float32
    value = ir.make_op("mul", (ir.load("x", row * 12 + outer * 4 + inner, f32), ir.const(2.0, f32)), f32)
    axes = Axes((), ((row, 4),), ((column, 2),), ((outer, 3), (inner, 4)))
    s = Contract("y", Place("y", row * 2 + column), axes, value, ir.load("w", (outer * 4 + inner) * 2 + column, f32))
    x, block = np.arange(48, dtype=np.float32), np.zeros(80, np.float32)
    kernel = Kernel(computed_block(s).body, {"x": f32, computed_name(s): f32})
    interpret(kernel, {"x": x, computed_name(s): block}, {E.sym("pitch", 0): 20})
    np.testing.assert_array_equal(block.reshape(4, 20)[:, :12], 2 * x.reshape(4, 12))
    assert not block.reshape(4, 20)[:, 12:].any()
