"""Schedules composed of other schedules, in sequence or simultaneously."""
from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from eager.optim.lr_scheduler.base import LRScheduler, _set
from eager.optim.lr_scheduler.plateau import ReduceLROnPlateau
from eager.optim.optimizer import Optimizer


class SequentialLR(LRScheduler):
    """Several schedules in sequence; each milestone is the epoch at which the next one starts.

    Raises: ValueError unless the schedules share `optimizer` and there is one milestone fewer than schedules.
    """

    def __init__(self, optimizer: Optimizer, schedulers: Sequence[LRScheduler], milestones: Sequence[int],
                 last_epoch: int = -1) -> None:  # fmt: skip
        if not schedulers:
            raise ValueError(f"{type(self).__name__} expects at least one scheduler, but got no scheduler.")
        for i, s in enumerate(schedulers):
            if not hasattr(s, "optimizer"):
                raise TypeError(f"{type(self).__name__} at index {i} should have `optimizer` as its attribute.")
            if isinstance(s, ReduceLROnPlateau):
                raise ValueError(f"{type(self).__name__} does not support `ReduceLROnPlateau` scheduler as it requires additional "
                                 f"kwargs to be specified when calling `step`, but got one at index {i} in the given schedulers "
                                 "sequence.")  # fmt: skip
            if s.optimizer is not optimizer:
                raise ValueError(f"{type(self).__name__} expects all schedulers to belong to the same optimizer, but got "
                                 f"scheduler {type(s).__name__} at index {i} has {s.optimizer}, which is different from "
                                 f"{type(optimizer).__name__}.")  # fmt: skip
        if len(milestones) != len(schedulers) - 1:
            raise ValueError("Sequential Schedulers expects number of schedulers provided to be one more than the number of "
                             f"milestone points, but got number of schedulers {len(schedulers)} and the number of milestones to "
                             f"be equal to {len(milestones)}")  # fmt: skip
        self._schedulers = list(schedulers)
        self._milestones = list(milestones)
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        for group in optimizer.param_groups:  # undo the step that each schedule made in its constructor
            _set(group, "lr", group["initial_lr"])
        for s in self._schedulers:
            _rewind(s)
        self._schedulers[0]._initial_step()
        self._last_lr = schedulers[0].get_last_lr()

    def step(self) -> None:
        """Advance to the next epoch."""
        self.last_epoch += 1
        i = bisect_right(self._milestones, self.last_epoch)
        if i > 0 and self._milestones[i - 1] == self.last_epoch:
            self._schedulers[i]._update_lr(0)
        else:
            self._schedulers[i].step()
        self._last_lr = self._schedulers[i].get_last_lr()

    def state_dict(self) -> dict[str, Any]:
        """All attributes except the optimizer, with the states of the schedules."""
        state = {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "_schedulers")}
        state["_schedulers"] = [s.state_dict() for s in self._schedulers]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore a state from `state_dict`."""
        self.__dict__.update({k: v for k, v in state_dict.items() if k != "_schedulers"})
        for s, saved in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            s.load_state_dict(saved)


def _rewind(scheduler: Any) -> None:
    scheduler.last_epoch -= 1
    if hasattr(scheduler, "_schedulers"):
        for s in scheduler._schedulers:
            _rewind(s)


class ChainedScheduler(LRScheduler):
    """Several recursive schedules at once: each changes the rates that the previous one set."""

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        if not schedulers:
            raise ValueError(f"{type(self).__name__} expects at least one scheduler to be chained, but got no scheduler.")
        optimizer = optimizer or schedulers[0].optimizer
        for i, s in enumerate(schedulers):
            if s.optimizer is not optimizer:
                raise ValueError(f"{type(self).__name__} expects all schedulers to belong to the same optimizer, but got scheduler "
                                 f"{type(s).__name__} at index {i} has {s.optimizer}, which is different from "
                                 f"{type(optimizer).__name__}.")  # fmt: skip
        self._schedulers = list(schedulers)
        self.optimizer = optimizer
        self._last_lr = self._last()

    def step(self) -> None:
        """Step every schedule."""
        for s in self._schedulers:
            s.step()
        self._last_lr = self._last()

    state_dict = SequentialLR.state_dict
    load_state_dict = SequentialLR.load_state_dict
