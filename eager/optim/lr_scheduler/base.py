"""LRScheduler: the base class of learning-rate schedules.

`step()` advances one epoch. Most schedules are recursive: they compute the next rate from the present one, so that
several schedules can share an optimizer.
"""
from __future__ import annotations

import types
import warnings
import weakref
from functools import wraps
from typing import Any, cast

from eager._tensor.tensor import Tensor
from eager.base.overriding import open_parameters
from eager.base.warn import warn
from eager.optable.table import OPS
from eager.optim.optimizer import Optimizer


def _set(group: dict[str, Any], key: str, value: Any) -> None:
    """Store a setting; if the group holds it as a tensor, write that tensor in place."""
    if isinstance(group[key], Tensor):
        OPS["fill_"](group[key], float(value))
    else:
        group[key] = value


def _value(v: Any) -> Any:
    return v.item() if isinstance(v, Tensor) else v


def _kept(v: Any) -> Any:
    """A copy of a setting that later in-place writes do not change."""
    return v.clone() if isinstance(v, Tensor) else v


def _warn_of_epoch() -> None:
    warn("The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
         "`scheduler.step()` to step the scheduler. During the deprecation, if epoch is different from None, the closed form is "
         "used instead of the new chainable form, where available. Please open an issue if you are unable to replicate your use "
         "case: https://github.com/pytorch/pytorch/issues/new/choose.")  # fmt: skip


class LRScheduler:
    """Base class of schedules. Subclasses define `get_lr()`, the rates of the groups for `last_epoch`.

    last_epoch: -1 starts at the beginning; another number resumes (the groups must then have "initial_lr").
    Raises: TypeError for a value that is not an Optimizer; KeyError for a group without "initial_lr".
    """

    _get_lr_called_within_step = False
    _is_initial = False  # True during the constructor's step, which must not change resumed rates

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        if last_epoch == -1:
            for group in optimizer.param_groups:
                group.setdefault("initial_lr", _kept(group["lr"]))
        else:
            for i, group in enumerate(optimizer.param_groups):
                if "initial_lr" not in group:
                    raise KeyError(f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with "
                                   f"last_epoch >= 0.\nThis typically happens when:\n1. You're trying to resume training from "
                                   "a checkpoint but haven't properly loaded the optimizer state\n2. You're using last_epoch "
                                   ">= 0 for a fresh training run (not recommended)")  # fmt: skip
        self.base_lrs: list[Any] = [_kept(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._watch_optimizer()
        self._initial_step()

    def _watch_optimizer(self) -> None:
        """Wrap the optimizer's `step` to record that it has run, for the warning about the order of calls."""
        step = self.optimizer.step
        if getattr(step, "_watched", False):
            return
        reference = weakref.ref(self.optimizer)
        function = cast(types.MethodType, step).__func__

        @wraps(function)
        def watched(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            found = reference()
            if found is not None:
                found._opt_called = True
            return function(optimizer, *args, **kwargs)

        vars(watched)["_watched"] = True
        setattr(self.optimizer, "step", types.MethodType(watched, self.optimizer))  # noqa: B010 - mypy rejects an assignment to a method

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def _warn_outside_step(self) -> None:
        if not self._get_lr_called_within_step:
            warnings.warn("To get the last learning rate computed by the scheduler, please use `get_last_lr()`.", UserWarning,
                          stacklevel=3)  # fmt: skip

    def state_dict(self) -> dict[str, Any]:
        """All attributes except the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore a state from `state_dict`."""
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list[float]:
        """The rates that the last step set."""
        return self._last_lr

    def get_lr(self) -> list[Any]:
        """The rates for `last_epoch`; a recursive schedule computes them from the present rates."""
        raise NotImplementedError(f"{type(self).__name__}.get_lr")

    @open_parameters
    def step(self, epoch: int | None = None) -> None:
        """Advance to the next epoch, or (deprecated) to a given one, and set the rates."""
        if self._step_count == 1 and not getattr(self.optimizer, "_opt_called", False):
            warnings.warn("Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, you "
                          "should call them in the opposite order: `optimizer.step()` before `lr_scheduler.step()`.  Failure "
                          "to do this will result in PyTorch skipping the first value of the learning rate schedule. See more "
                          "details at https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate",
                          UserWarning, stacklevel=2)  # fmt: skip
        self._step_count += 1
        if epoch is not None:
            _warn_of_epoch()
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        """Set the rates of the next epoch, or of `epoch`."""
        self._get_lr_called_within_step = True
        try:
            if epoch is None:
                self.last_epoch += 1
                values = self.get_lr()
            else:
                self.last_epoch = epoch
                closed = getattr(self, "_get_closed_form_lr", None)
                values = closed() if closed is not None else self.get_lr()
        finally:
            self._get_lr_called_within_step = False
        for group, lr in zip(self.optimizer.param_groups, values, strict=False):
            _set(group, "lr", lr)
        self._last_lr: list[Any] = self._last()

    def _rates(self) -> list[Any]:
        """The present rates as numbers."""
        return [_value(group["lr"]) for group in self.optimizer.param_groups]

    def _last(self) -> list[Any]:
        """The present rates for `get_last_lr`; tensors are copied."""
        return [_kept(group["lr"]) for group in self.optimizer.param_groups]


class _LRScheduler(LRScheduler):
    """Deprecated name of LRScheduler."""


def _per_group(optimizer: Optimizer, given: Any, name: str, text: str = "") -> list[Any]:
    """One value per group. text: the error message for another number of values, with fields `groups` and `got`."""
    groups = len(optimizer.param_groups)
    if not isinstance(given, (list, tuple)):
        return [given] * groups
    if len(given) != groups:
        text = text or (f"{name} must have the same length as optimizer.param_groups. {name} has {{got}} values, param_groups has "
                        "{groups}.")  # fmt: skip
        raise ValueError(text.format(groups=groups, got=len(given)))
    return list(given)
