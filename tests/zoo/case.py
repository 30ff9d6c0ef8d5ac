"""The declaration of a model of the zoo: constructor, inputs and loss. It runs under torch and under this project."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch


class Draw:
    """Inputs from one numpy stream, so that both libraries get the same numbers."""

    def __init__(self, seed: int) -> None:
        self.stream = np.random.RandomState(seed)

    def normal(self, *shape: int, scale: float = 1.0) -> torch.Tensor:
        return torch.from_numpy((self.stream.standard_normal(shape) * scale).astype(np.float32))

    def uniform(self, *shape: int, low: float = 0.0, high: float = 1.0) -> torch.Tensor:
        return torch.from_numpy(self.stream.uniform(low, high, shape).astype(np.float32))

    def integers(self, high: int, *shape: int, low: int = 0) -> torch.Tensor:
        return torch.from_numpy(self.stream.randint(low, high, shape).astype(np.int64))

    def mask(self, *shape: int, keep: float = 0.7) -> torch.Tensor:
        return torch.from_numpy(self.stream.uniform(size=shape) < keep)


@dataclass(frozen=True)
class Case:
    """One model.

    build: () -> Module. inputs: (Draw) -> the positional arguments of the model.
    loss: (Module, outputs, inputs) -> scalar; by default a fixed weighting of all floating outputs.
    breaks: the most graph breaks that capturing the model may need, one training step and one evaluation together.
    draws: the model draws random numbers, so torch's results differ; compiled is still held against eager.
    rtol: of the comparison with torch, relative to each tensor's largest value.
    grad_in_eval: the evaluation takes gradients itself, so it does not run under no_grad.
    frozen: parts of names of parameters that do not learn and were drawn; they get weights like the others.
    compiled: whether the default run of the tests compiles it with the native backend (the others only on request).
    """

    build: Callable[[], torch.nn.Module]
    inputs: Callable[[Draw], tuple[Any, ...]]
    loss: Callable[[torch.nn.Module, Any, tuple[Any, ...]], torch.Tensor] | None = None
    breaks: int = 0
    draws: bool = False
    rtol: float = 1e-3
    compiled: bool = False
    lr: float = 0.05
    grad_in_eval: bool = False
    frozen: tuple[str, ...] = ()
