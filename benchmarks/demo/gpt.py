"""A small GPT over bytes and its training loop, written in torch style.

Owns the model, its training step and the batches. All random numbers come from a seed, so that an eager and a compiled run have
the same weights and the same text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import eager as torch
from eager import nn
from eager.nn import functional as F


@dataclass(frozen=True, slots=True)
class Config:
    """Sizes of the model and of a step. Bytes are the tokens."""

    vocab_size: int = 256
    layers: int = 4
    heads: int = 4
    width: int = 128
    context: int = 128
    batch: int = 8
    steps: int = 240
    peak_lr: float = 1e-3
    warmup_steps: int = 20
    weight_decay: float = 0.1


class CausalAttention(nn.Module):
    """Attention to the past only. (b, t, d) -> (b, t, d)."""

    mask: torch.Tensor

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.heads = config.heads
        self.qkv = nn.Linear(config.width, 3 * config.width)
        self.out = nn.Linear(config.width, config.width)
        future = torch.triu(torch.full((config.context, config.context), -1e9), diagonal=1)
        self.register_buffer("mask", future, persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, d = x.shape
        q, k, v = (part.view(b, t, self.heads, d // self.heads).transpose(1, 2) for part in self.qkv(x).split(d, dim=2))
        scores = q @ k.transpose(-1, -2) / math.sqrt(d // self.heads) + self.mask[:t, :t]
        y = F.softmax(scores, dim=-1) @ v
        return self.out(y.transpose(1, 2).reshape(b, t, d))


class Block(nn.Module):
    """One layer, normalised before attention and before the MLP. (b, t, d) -> (b, t, d)."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(config.width)
        self.attention = CausalAttention(config)
        self.norm = nn.LayerNorm(config.width)
        self.up = nn.Linear(config.width, 4 * config.width)
        self.down = nn.Linear(4 * config.width, config.width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.attention_norm(x))
        return x + self.down(F.gelu(self.up(self.norm(x)), approximate="tanh"))


class GPT(nn.Module):
    """Next-byte cross-entropy. tokens, targets: (b, t) int64 -> () float32, in nats a byte."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.tokens = nn.Embedding(config.vocab_size, config.width)
        self.positions = nn.Embedding(config.context, config.width)
        self.blocks = nn.ModuleList([Block(config) for _ in range(config.layers)])
        self.norm = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, config.vocab_size, bias=False)

    def forward(self, tokens: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))


def build(config: Config, seed: int) -> GPT:
    """A newly initialised model; the same seed gives the same weights.

    numpy draws the weights, so that they do not depend on the library's own generator.
    """
    model = GPT(config)
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):
                parameter.zero_()
            if parameter.ndim < 2:
                continue  # weights of norms stay 1
            scale = 0.02 / math.sqrt(2 * config.layers) if name.endswith(("out.weight", "down.weight")) else 0.02
            parameter.copy_(torch.from_numpy(rng.normal(0, scale, tuple(parameter.shape)).astype(np.float32)))
    return model


def batches(tokens: NDArray[np.int64], config: Config, seed: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Endless random windows of the text: tokens, and the tokens one byte later, (batch, context) int64."""
    rng = np.random.default_rng(seed)
    offsets = np.arange(config.context + 1)
    while True:
        starts = rng.integers(0, len(tokens) - config.context - 1, config.batch)
        windows = tokens[starts[:, None] + offsets]
        yield torch.from_numpy(windows[:, :-1].copy()), torch.from_numpy(windows[:, 1:].copy())


def learning_rate(step: int, config: Config) -> float:
    """Linear warm-up, then half a cosine down to a tenth of the peak."""
    if step < config.warmup_steps:
        return config.peak_lr * (step + 1) / config.warmup_steps
    done = (step - config.warmup_steps) / max(1, config.steps - config.warmup_steps)
    return config.peak_lr * (0.1 + 0.45 * (1 + math.cos(math.pi * done)))


class Trainer:
    """One model, its AdamW and its stream of text; `step()` is one training step.

    compile: a wrapper for the model's call; None leaves it eager.
    """

    def __init__(
        self,
        config: Config,
        tokens: NDArray[np.int64],
        seed: int,
        compile: Callable[[nn.Module], Callable[..., torch.Tensor]] | None = None,
    ) -> None:
        self.config = config
        self.model = build(config, seed)
        self.call = compile(self.model) if compile is not None else self.model
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=config.peak_lr, betas=(0.9, 0.95), weight_decay=config.weight_decay
        )
        self.stream = batches(tokens, config, seed)
        self.losses: list[float] = []

    def step(self) -> float:
        """Forward, backward and update on the next batch. Result: the loss before the update."""
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(len(self.losses), self.config)
        tokens, targets = next(self.stream)
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.call(tokens, targets)
        loss.backward()
        self.optimizer.step()
        self.losses.append(loss.item())
        return self.losses[-1]
