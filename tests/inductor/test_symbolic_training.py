"""Captured functions of symbolic sizes, forward and backward: one compilation for all batches and lengths."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import eager as torch
from eager import nn
from eager.nn import functional as F


@pytest.fixture(autouse=True)
def _alone() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


class Encoder(nn.Module):
    """Embeddings, one attention layer, a loss over all positions."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(11, 16), nn.Embedding(64, 16)
        self.qkv, self.norm, self.head = nn.Linear(16, 48), nn.LayerNorm(16), nn.Linear(16, 11)

    def forward(self, ids: Any, targets: Any) -> Any:
        b, t = ids.shape
        x = self.words(ids) + self.places(torch.arange(t))
        q, k, v = self.qkv(x).view(b, t, 3, 2, 8).permute(2, 0, 3, 1, 4).unbind(0)
        a = F.softmax((q @ k.transpose(-1, -2)).tril() / 8**0.5, -1) @ v
        x = self.norm(x + a.transpose(1, 2).reshape(b, t, 16))
        return F.cross_entropy(self.head(x).view(-1, 11), targets.view(-1))


def _step(model: nn.Module, run: Any, ids: Any, targets: Any) -> tuple[Any, list[Any]]:
    loss = run(ids, targets)
    loss.backward()
    grads = [p.grad for p in model.parameters()]
    model.zero_grad()
    return loss.detach(), grads


def test_training_steps_of_all_sizes_run_the_same_code() -> None:
    torch.manual_seed(0)
    model = Encoder()
    run = torch.compile(model)
    examples = [tuple(torch.randint(0, 11, size) for _ in range(2)) for size in ((2, 5), (3, 8), (7, 33), (2, 2), (5, 64))]
    for ids, targets in examples[:2]:  # the second call makes symbols of the changed sizes
        _step(model, run, ids, targets)
    with torch.compiler.set_stance("fail_on_recompile"):
        for ids, targets in examples:
            if ids.shape == (2, 5):
                continue
            loss, grads = _step(model, run, ids, targets)
            expected, want = _step(model, model, ids, targets)
            torch.testing.assert_close(loss, expected)
            for got, g in zip(grads, want, strict=True):
                torch.testing.assert_close(got, g, rtol=1e-4, atol=1e-5)


def test_inputs_are_written_and_views_returned() -> None:
    @torch.compile(dynamic=True)
    def fn(x: Any, n: int) -> Any:
        x.mul_(n)
        x[1:] += x.sum(0)
        return x[:, 1:].t(), x.shape[0] * n

    for rows, columns, n in ((3, 4, 5), (7, 9, 2), (40, 3, 11)):
        x = torch.randn(rows, columns)
        mine, want = x.clone(), x * n
        view, product = fn(mine, n)
        want[1:] += want.sum(0)
        torch.testing.assert_close(mine, want)
        assert product == rows * n and view.shape == (columns - 1, rows) and view.data_ptr() == mine.data_ptr() + 4


def test_code_that_needs_a_number_is_made_static_and_right() -> None:
    @torch.compile
    def fn(x: Any) -> Any:
        return torch.arange(0, x.shape[0], 1.5).sum() + F.adaptive_avg_pool2d(x, 3).sum()

    for n in (4, 5, 9):
        x = torch.randn(n, n, n)
        torch.testing.assert_close(fn(x), torch.arange(0, n, 1.5).sum() + F.adaptive_avg_pool2d(x, 3).sum(), rtol=1e-4, atol=1e-4)
