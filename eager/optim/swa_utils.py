"""Averaged models: stochastic weight averaging and exponential moving averages."""
from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

from eager import _native
from eager._tensor.tensor import Tensor
from eager.base import dtypes
from eager.nn.module import Module
from eager.nn.modules.batchnorm import _BatchNorm
from eager.optable.table import OPS
from eager.optim.lr_scheduler.base import LRScheduler, _per_group
from eager.optim.optimizer import Optimizer

Average = Callable[[Any, Any, Any], Any]


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """`avg_fn` of an exponential moving average. Raises: ValueError for a decay outside [0, 1]."""
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")
    return lambda ema, current, num_averaged: ema * decay + current * (1 - decay)


def get_swa_avg_fn() -> Average:
    """`avg_fn` of the plain mean of all updates."""
    return lambda averaged, current, num_averaged: averaged + (current - averaged) / (num_averaged + 1)


def _multi(one: Average) -> Callable[[list[Tensor], list[Tensor], Any], None]:
    def update(averaged: list[Tensor], current: list[Tensor], num_averaged: Any) -> None:
        for a, c in zip(averaged, current, strict=True):
            if a.is_floating_point():
                OPS["copy_"](a, one(a, c, num_averaged))
            else:
                OPS["copy_"](a, c)

    return update


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[..., None]:
    """`multi_avg_fn` of an exponential moving average."""
    return _multi(get_ema_avg_fn(decay))


def get_swa_multi_avg_fn() -> Callable[..., None]:
    """`multi_avg_fn` of the plain mean of all updates."""
    return _multi(get_swa_avg_fn())


class AveragedModel(Module):
    """A copy of a model whose parameters are a running average, updated by `update_parameters(model)`.

    Raises: AssertionError if both avg_fn and multi_avg_fn are given.
    """

    n_averaged: Tensor

    def __init__(self, model: Module, device: Any = None, avg_fn: Average | None = None,
                 multi_avg_fn: Callable[..., None] | None = None, use_buffers: bool = False) -> None:  # fmt: skip
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", OPS["full"]((), 0, dtypes.int64, device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Include the model's present parameters in the average."""
        before = _native.set_grad_enabled(False)
        try:
            averaged, current = (list(itertools.chain(m.parameters(), m.buffers())) if self.use_buffers else list(m.parameters())
                           for m in (self.module, model))  # fmt: skip
            moved: list[Tensor] = [t.detach().to(a.device) for a, t in zip(averaged, current, strict=True)]
            if int(self.n_averaged) == 0:
                for a, t in zip(averaged, moved, strict=True):
                    OPS["copy_"](a.detach(), t)
            elif self.multi_avg_fn is not None:
                self.multi_avg_fn([a.detach() for a in averaged], moved, self.n_averaged)
            else:
                _multi(self.avg_fn or get_swa_avg_fn())([a.detach() for a in averaged], moved, self.n_averaged)
            if not self.use_buffers:
                for b, c in zip(self.module.buffers(), model.buffers(), strict=True):
                    OPS["copy_"](b, c.to(b.device))
            OPS["add_"](self.n_averaged, 1)
        finally:
            _native.set_grad_enabled(before)


def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Recompute the running statistics of all batch norms of `model` from the batches of `loader`."""
    norms = [m for m in model.modules() if isinstance(m, _BatchNorm)]
    if not norms:
        return
    momenta = [m.momentum for m in norms]
    was_training = model.training
    model.train()
    for m in norms:
        m.reset_running_stats()
        m.momentum = None
    before = _native.set_grad_enabled(False)
    try:
        for batch in loader:
            x = batch[0] if isinstance(batch, (list, tuple)) else batch
            model(x.to(device) if device is not None else x)
    finally:
        _native.set_grad_enabled(before)
    for m, momentum in zip(norms, momenta, strict=True):
        m.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """Anneals each group's rate to swa_lr over anneal_epochs, then keeps it."""

    def __init__(self, optimizer: Optimizer, swa_lr: Any, anneal_epochs: int = 10, anneal_strategy: str = "cos",
                 last_epoch: int = -1) -> None:  # fmt: skip
        for group, rate in zip(optimizer.param_groups, _per_group(optimizer, swa_lr, "swa_lr"), strict=True):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _share(self, t: float) -> float:
        return (1 - math.cos(math.pi * t)) / 2 if self._anneal_strategy == "cos" else t

    def get_lr(self) -> list[Any]:
        """The rates of this epoch, computed from the present ones."""
        self._warn_outside_step()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before = self._share(max(0, min(1, (step - 1) / max(1, self.anneal_epochs))))
        now = self._share(max(0, min(1, step / max(1, self.anneal_epochs))))
        rates = []
        for group, lr in zip(self.optimizer.param_groups, self._rates(), strict=True):
            start = lr if before == 1 else (lr - before * group["swa_lr"]) / (1 - before)
            rates.append(group["swa_lr"] * now + start * (1 - now))
        return rates
