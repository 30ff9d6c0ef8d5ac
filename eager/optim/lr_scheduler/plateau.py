"""ReduceLROnPlateau: lowers the rates when a metric stops improving."""
from __future__ import annotations

import math
from typing import Any

from eager.optim.lr_scheduler.base import LRScheduler, _per_group, _set
from eager.optim.optimizer import Optimizer


class ReduceLROnPlateau(LRScheduler):
    """Multiplies the rates by factor if a metric has not improved for `patience` epochs; call `step(metric)`.

    Raises: ValueError for settings out of range; TypeError for a value that is not an Optimizer.
    """

    def __init__(self, optimizer: Optimizer, mode: str = "min", factor: float = 0.1, patience: int = 10,
                 threshold: float = 1e-4, threshold_mode: str = "rel", cooldown: int = 0, min_lr: Any = 0,
                 eps: float = 1e-8) -> None:  # fmt: skip
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        if mode not in ("min", "max"):
            raise ValueError("mode " + mode + " is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError("threshold mode " + threshold_mode + " is unknown!")
        self.factor = factor
        self.optimizer = optimizer
        self.default_min_lr = None if isinstance(min_lr, (list, tuple)) else min_lr  # for groups that are added later
        self.min_lrs = _per_group(optimizer, min_lr, "min_lrs", "expected {groups} min_lrs, got {got}")
        self.patience = patience
        self.cooldown = cooldown
        self.cooldown_counter = 0
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.best = self.mode_worse
        self.num_bad_epochs = 0
        self.eps = eps
        self.last_epoch = 0
        self._last_lr = self._last()

    def step(self, metrics: Any, epoch: int | None = None) -> None:
        """Record an epoch's metric and lower the rates if it has not improved for `patience` epochs."""
        current = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self.is_better(current, self.best):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._cover_groups()
            for group, low in zip(self.optimizer.param_groups, self.min_lrs, strict=True):
                old = float(group["lr"])
                new = max(old * self.factor, low)
                if old - new > self.eps:
                    _set(group, "lr", new)
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = self._last()

    def _cover_groups(self) -> None:
        """Extend the minimum rates to groups added since. Raises: RuntimeError if each group had its own minimum."""
        groups = len(self.optimizer.param_groups)
        if groups == len(self.min_lrs):
            return
        if self.default_min_lr is None:
            raise RuntimeError("The number of param groups in the `optimizer` "
                               f"({groups}) differs from when `ReduceLROnPlateau` was initialized ({len(self.min_lrs)}), usually "
                               "due to a new param group being added to the optimizer. Please modify the `min_lrs` field to match "
                               "the length of the `optimizer` param groups.")  # fmt: skip
        self.min_lrs = [self.default_min_lr] * groups

    @property
    def in_cooldown(self) -> bool:
        """Whether the rates were lowered within the last `cooldown` epochs."""
        return self.cooldown_counter > 0

    def is_better(self, a: float, best: float) -> bool:
        """Whether `a` improves on `best` by more than the threshold."""
        sign = 1.0 if self.mode == "max" else -1.0
        if self.threshold_mode == "rel":
            bound = best * (1.0 + sign * self.threshold)
        else:
            bound = best + sign * self.threshold
        return a > bound if self.mode == "max" else a < bound
