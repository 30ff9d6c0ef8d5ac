"""The rows of a benchmark: programs in torch's names, each with its inputs.

Owns the record of a row and the ways to run its program. `eager` is torch in a peer's process (`benchmarks.worker`), so a row is
written once. numpy draws all numbers from a seed: every library computes the same values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

import eager as torch
from eager import nn

__all__ = ["Case", "Row", "chosen", "draw", "drawn", "integers"]


class _Named(Protocol):
    """A line of a table."""

    @property
    def name(self) -> str: ...
    @property
    def group(self) -> str: ...


Named = TypeVar("Named", bound=_Named)


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A program made for measuring. It computes `fn(*inputs)`.

    wrt: also computes the gradients of the result with respect to these tensors. optimizer: `fn` is a loss; a run is a training
    step, backward and update included. update: `fn` changes its inputs, so runs of it cannot be compared.
    """

    fn: Callable[..., Any]
    inputs: tuple[Any, ...]
    wrt: tuple[torch.Tensor, ...] = ()
    optimizer: torch.optim.Optimizer | None = None
    update: bool = False

    def runner(self, compile: Callable[[Any], Any] = lambda fn: fn) -> Callable[[], Any]:
        """One run of the program, its functions passed through `compile`. Returns the result, then the gradients."""
        fn = compile(self.fn)
        if self.optimizer is not None:
            return self._training_step(fn, compile(self.optimizer.step))
        if self.wrt:
            return self._with_gradients(fn)

        def run() -> Any:
            with torch.no_grad():
                return fn(*self.inputs)

        return run

    def _training_step(self, loss: Callable[..., Any], update: Callable[[], Any]) -> Callable[[], Any]:
        optimizer = self.optimizer
        assert optimizer is not None

        def run() -> Any:
            optimizer.zero_grad(set_to_none=True)
            value = loss(*self.inputs)
            value.backward()
            update()
            return value

        return run

    def _with_gradients(self, fn: Callable[..., Any]) -> Callable[[], Any]:
        cotangents: list[torch.Tensor] = []

        def run() -> Any:
            y = fn(*self.inputs)
            if not cotangents:
                cotangents.append(draw(*y.shape, seed=9))
            return (y, *torch.autograd.grad(y, self.wrt, cotangents[0]))

        return run


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table. group: decides the required ratio. make: builds the program; called in each measuring process.

    nbytes: least bytes read and written by a row that memory bounds, else 0. flops: of a row that arithmetic bounds, else 0.
    images: a convolution network, whose weights and inputs a peer may keep in channels_last.
    """

    name: str
    group: str
    make: Callable[[], Case]
    nbytes: int = 0
    flops: int = 0
    images: bool = False


def chosen(rows: Sequence[Named], text: str | None) -> list[Named]:
    """The rows whose name or group contains `text`; all for None. Raises: ValueError if no row does."""
    found = [r for r in rows if text is None or text in r.name or text == r.group]
    if not found:
        raise ValueError(f"no row contains {text!r}; rows: {', '.join(r.name for r in rows)}")
    return found


def draw(*shape: int, scale: float = 1.0, seed: int = 0, grad: bool = False) -> torch.Tensor:
    """Normal numbers times `scale`, float32."""
    values = np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)
    return torch.from_numpy(np.asarray(values * np.float32(scale))).requires_grad_(grad)


def integers(below: int, *shape: int, seed: int = 0) -> torch.Tensor:
    """Uniform int64 in [0, below)."""
    return torch.from_numpy(np.random.default_rng(seed).integers(0, below, shape))


def drawn(module: nn.Module, seed: int = 0) -> Any:
    """`module` with weights drawn, scaled by the root of their inputs, and small biases; the scales of norms stay 1."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for name, weight in module.named_parameters():
            shape = tuple(weight.shape)
            scale = max(1, int(np.prod(shape[1:]))) ** -0.5 if len(shape) > 1 else 0.02
            if len(shape) > 1 or "bias" in name:
                weight.copy_(torch.from_numpy(rng.standard_normal(shape, dtype=np.float32) * np.float32(scale)))
    return module
