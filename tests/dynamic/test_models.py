"""Real models with varying batch, length and image size: eager's results and gradients from two compilations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

import eager as torch
from eager import nn
from tests.dynamic.support import assert_same, compiled

F = nn.functional


class Block(nn.Module):
    """A pre-norm transformer block."""

    def __init__(self, d: int = 16, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x: Any) -> Any:
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.norm2(x))


class Manual(nn.Module):
    """Attention written out, with a mask by length and rotary tables."""

    def __init__(self, d: int = 8) -> None:
        super().__init__()
        self.q, self.k = nn.Linear(d, d), nn.Linear(d, d)
        angle = torch.arange(64).unsqueeze(1) / 10 ** (torch.arange(d) / d)
        self.register_buffer("cos", angle.cos())

    def forward(self, x: Any) -> Any:
        _b, t, d = x.shape
        q, k = self.q(x) * self.cos[:t], self.k(x) * self.cos[:t]
        scores = q @ k.transpose(-2, -1) / math.sqrt(d)
        mask = torch.tril(torch.ones(t, t)).view(1, t, t)
        scores = scores.masked_fill(mask == 0, float("-inf"))
        return (scores.softmax(-1) @ x).mean(1)


class GPT(nn.Module):
    """Embeddings, blocks and the loss."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(20, 16), nn.Embedding(64, 16)
        self.blocks = nn.ModuleList([Block(), Block()])
        self.norm, self.head = nn.LayerNorm(16), nn.Linear(16, 20)

    def forward(self, ids: Any, targets: Any) -> Any:
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(self.norm(x)).view(-1, 20), targets.view(-1))


class CNN(nn.Module):
    """Convolutions, batch norm, pooling and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, stride=2, padding=1)
        self.norm, self.head = nn.BatchNorm2d(8), nn.Linear(8, 5)

    def forward(self, x: Any) -> Any:
        x = F.relu(self.norm(self.first(x)))
        x = F.max_pool2d(F.relu(self.second(x)), 2)
        return self.head(x.mean((2, 3)))


def sequences(*shape: int) -> tuple[Any, ...]:
    return (torch.randn(*shape),)


def texts(*shape: int) -> tuple[Any, ...]:
    return torch.randint(0, 20, shape), torch.randint(0, 20, shape)


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[..., tuple[Any, ...]], list[tuple[int, ...]]]] = {
    "block, length": (Block, sequences, [(2, 5, 16), (2, 7, 16), (2, 9, 16), (2, 4, 16)]),
    "block, batch and length": (Block, sequences, [(2, 5, 16), (3, 7, 16), (4, 9, 16), (6, 4, 16)]),
    "attention by hand": (Manual, sequences, [(2, 5, 8), (3, 7, 8), (4, 9, 8), (6, 2, 8)]),
    "gpt, length": (GPT, texts, [(2, 5), (2, 7), (2, 9), (2, 4)]),
    "gpt, batch and length": (GPT, texts, [(2, 5), (3, 7), (4, 9), (6, 4)]),
    "cnn, batch": (CNN, sequences, [(2, 3, 8, 8), (3, 3, 8, 8), (5, 3, 8, 8), (4, 3, 8, 8)]),
    "cnn, batch and size": (CNN, sequences, [(2, 3, 8, 8), (3, 3, 12, 16), (5, 3, 16, 12), (4, 3, 9, 11)]),
}


def twins(make: Callable[[], nn.Module], train: bool) -> tuple[nn.Module, nn.Module]:
    made = []
    for _ in range(2):
        torch.manual_seed(1)
        made.append(make().train(train))
    return made[0], made[1]


COMPILED = {"block, batch and length", "attention by hand", "cnn, batch and size"}  # code generation takes its time
TRAINED = {"gpt, length", "cnn, batch"}


def cases(compiled: set[str]) -> list[tuple[str, str]]:
    return [*((name, "aot_eager") for name in MODELS), *((name, "inductor") for name in sorted(compiled))]


@pytest.mark.parametrize(("name", "backend"), cases(COMPILED))
def test_inference_compiles_twice(name: str, backend: str) -> None:
    make, inputs, shapes = MODELS[name]
    plain, other = twins(make, False)
    made, counting = compiled(other, backend)
    with torch.no_grad():
        for shape in shapes:
            args = inputs(*shape)
            assert_same(made(*args), plain(*args))
    assert len(counting.graphs) == 2


@pytest.mark.parametrize(("name", "backend"), cases(TRAINED))
def test_training_compiles_twice(name: str, backend: str) -> None:
    make, inputs, shapes = MODELS[name]
    plain, other = twins(make, True)
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.05) for m in (plain, other)]
    made, counting = compiled(other, backend)
    for shape in shapes:
        args = inputs(*shape)
        results = [model(*args) for model in (plain, made)]
        assert_same(results[1], results[0])
        for result in results:
            result.square().mean().backward()
        assert_same([p.grad for p in other.parameters()], [p.grad for p in plain.parameters()])
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
    assert_same(list(other.buffers()), list(plain.buffers()))
    assert len(counting.graphs) == 2
