"""Learning-rate schedules: what torch.optim.lr_scheduler offers, under its names and state dicts.

`step()` moves to the next epoch. Most schedules are recursive: the next rate follows from the present
one, so that several can be chained on one optimizer.
"""
from __future__ import annotations

import math
import types
import warnings
import weakref
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any

from eager.ops.table import OPS
from eager.optim.optimizer import Optimizer
from eager.tensor import Tensor


def _set(group: dict[str, Any], key: str, value: Any) -> None:
    """Store a setting; one kept as a tensor is written in place."""
    if isinstance(group[key], Tensor):
        OPS["fill_"](group[key], float(value))
    else:
        group[key] = value


def _value(v: Any) -> Any:
    return v.item() if isinstance(v, Tensor) else v


def _kept(v: Any) -> Any:
    """A setting that later writes do not reach."""
    return v.clone() if isinstance(v, Tensor) else v


class LRScheduler:
    """Base class: `get_lr()` gives the rates of the groups for `last_epoch`; subclasses define it.

    last_epoch: -1 starts anew; another number resumes (the groups must then have "initial_lr").
    """

    _get_lr_called_within_step = False
    _is_initial = False  # within the constructor's own step, which must not move rates that were resumed

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
        """Note whether the optimizer has stepped, for the warning about the order of calls."""
        step = self.optimizer.step
        if getattr(step, "_watched", False):
            return
        reference = weakref.ref(self.optimizer)
        function = step.__func__  # type: ignore[attr-defined]

        @wraps(function)
        def watched(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            found = reference()
            if found is not None:
                found._opt_called = True  # type: ignore[attr-defined]
            return function(optimizer, *args, **kwargs)

        watched._watched = True  # type: ignore[attr-defined]
        self.optimizer.step = types.MethodType(watched, self.optimizer)  # type: ignore[method-assign]

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
        """Everything but the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list[float]:
        """The rates last set."""
        return self._last_lr

    def get_lr(self) -> list[Any]:
        """The rates for `last_epoch`, from the present ones where the schedule is recursive."""
        raise NotImplementedError(f"{type(self).__name__}.get_lr")

    def step(self, epoch: int | None = None) -> None:
        """Move to the next epoch, or (deprecated) to a given one, and set the rates."""
        if self._step_count == 1 and not getattr(self.optimizer, "_opt_called", False):
            warnings.warn("Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, you "
                          "should call them in the opposite order: `optimizer.step()` before `lr_scheduler.step()`.  Failure "
                          "to do this will result in PyTorch skipping the first value of the learning rate schedule.",
                          UserWarning, stacklevel=2)  # fmt: skip
        self._step_count += 1
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
        """The present rates as they are kept; copies of tensors."""
        return [_kept(group["lr"]) for group in self.optimizer.param_groups]


class _LRScheduler(LRScheduler):
    """The older name of LRScheduler."""


class LambdaLR(LRScheduler):
    """initial_lr times lr_lambda(epoch); one function, or one per group."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        self.lr_lambdas = _per_group(optimizer, lr_lambda, "lr_lambdas", "Expected {groups} lr_lambdas, but got {got}")
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """Functions are not saved, callable objects are by their attributes."""
        return _with_lambdas(self)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        _load_with_lambdas(self, state_dict)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        return [base * fn(self.last_epoch) for fn, base in zip(self.lr_lambdas, self.base_lrs, strict=True)]


class MultiplicativeLR(LRScheduler):
    """The present rate times lr_lambda(epoch)."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        self.lr_lambdas = _per_group(optimizer, lr_lambda, "lr_lambdas", "Expected {groups} lr_lambdas, but got {got}")
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """Functions are not saved, callable objects are by their attributes."""
        return _with_lambdas(self)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        _load_with_lambdas(self, state_dict)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        if self._is_initial:
            return self._rates()
        return [lr * fn(self.last_epoch) for fn, lr in zip(self.lr_lambdas, self._rates(), strict=True)]


def _per_group(optimizer: Optimizer, given: Any, name: str, text: str = "") -> list[Any]:
    """One value per group. text: the message for another number, over `groups` and `got`."""
    groups = len(optimizer.param_groups)
    if not isinstance(given, (list, tuple)):
        return [given] * groups
    if len(given) != groups:
        text = text or (f"{name} must have the same length as optimizer.param_groups. {name} has {{got}} values, param_groups has "
                        "{groups}.")  # fmt: skip
        raise ValueError(text.format(groups=groups, got=len(given)))
    return list(given)


def _with_lambdas(scheduler: Any) -> dict[str, Any]:
    state = {k: v for k, v in scheduler.__dict__.items() if k not in ("optimizer", "lr_lambdas")}
    state["lr_lambdas"] = [None if isinstance(f, types.FunctionType) else dict(f.__dict__) for f in scheduler.lr_lambdas]
    return state


def _load_with_lambdas(scheduler: Any, state_dict: dict[str, Any]) -> None:
    scheduler.__dict__.update({k: v for k, v in state_dict.items() if k != "lr_lambdas"})
    for fn, attributes in zip(scheduler.lr_lambdas, state_dict["lr_lambdas"], strict=True):
        if attributes is not None:
            fn.__dict__.update(attributes)


class StepLR(LRScheduler):
    """Times gamma every step_size epochs."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:  # fmt: skip
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        if self.last_epoch == 0 or self.last_epoch % self.step_size != 0:
            return self._rates()
        return [lr * self.gamma for lr in self._rates()]

    def _get_closed_form_lr(self) -> list[Any]:
        return [base * self.gamma ** (self.last_epoch // self.step_size) for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """Times gamma at each of the milestones."""

    def __init__(self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1) -> None:  # fmt: skip
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        if self.last_epoch not in self.milestones:
            return self._rates()
        return [lr * self.gamma ** self.milestones[self.last_epoch] for lr in self._rates()]

    def _get_closed_form_lr(self) -> list[Any]:
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [base * self.gamma**passed for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """Times factor until total_iters, then the full rate."""

    def __init__(self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1) -> None:  # fmt: skip
        if factor > 1.0 or factor < 0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        if self.last_epoch == 0:
            return [lr * self.factor for lr in self._rates()]
        if self.last_epoch != self.total_iters:
            return self._rates()
        return [lr * (1.0 / self.factor) for lr in self._rates()]

    def _get_closed_form_lr(self) -> list[Any]:
        return [base * (1.0 if self.last_epoch >= self.total_iters else self.factor) for base in self.base_lrs]


class LinearLR(LRScheduler):
    """Times a factor that goes from start_factor to end_factor over total_iters."""

    def __init__(self, optimizer: Optimizer, start_factor: float = 1.0 / 3, end_factor: float = 1.0, total_iters: int = 5,
                 last_epoch: int = -1) -> None:  # fmt: skip
        if start_factor > 1.0 or start_factor <= 0:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if end_factor > 1.0 or end_factor < 0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        if self.last_epoch == 0:
            return [lr * self.start_factor for lr in self._rates()]
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._rates()
        change = self.end_factor - self.start_factor
        growth = 1.0 + change / (self.total_iters * self.start_factor + (self.last_epoch - 1) * change)
        return [lr * growth for lr in self._rates()]

    def _get_closed_form_lr(self) -> list[Any]:
        done = min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * (self.start_factor + (self.end_factor - self.start_factor) * done) for base in self.base_lrs]


class ExponentialLR(LRScheduler):
    """Times gamma every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        return self._rates() if self._is_initial else [lr * self.gamma for lr in self._rates()]

    def _get_closed_form_lr(self) -> list[Any]:
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    """Times (1 - epoch / total_iters) ** power, zero from total_iters on."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:  # fmt: skip
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._rates()
        left, before = 1.0 - self.last_epoch / self.total_iters, 1.0 - (self.last_epoch - 1) / self.total_iters
        return [lr * (left / before) ** self.power for lr in self._rates()]

    def _get_closed_form_lr(self) -> list[Any]:
        left = 1.0 - min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * left**self.power for base in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """From the initial rate to eta_min along half a cosine of T_max epochs. Source: Loshchilov & Hutter, 2017."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:  # noqa: N803
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        t, period, low = self.last_epoch, self.T_max, self.eta_min
        if self._is_initial:
            return self._rates()
        if self._step_count == 1 and t > 0:
            return [low + (base - low) * (1 + math.cos(t * math.pi / period)) / 2 for base in self.base_lrs]
        if (t - 1 - period) % (2 * period) == 0:
            rise = (1 - math.cos(math.pi / period)) / 2
            return [lr + (base - low) * rise for base, lr in zip(self.base_lrs, self._rates(), strict=True)]
        ratio = (1 + math.cos(math.pi * t / period)) / (1 + math.cos(math.pi * (t - 1) / period))
        return [ratio * (lr - low) + low for lr in self._rates()]

    def _get_closed_form_lr(self) -> list[Any]:
        wave = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * wave for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Cosine annealing begun anew after T_0, T_0 * T_mult, ... epochs."""

    def __init__(self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1) -> None:  # noqa: N803
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        wave = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * wave for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """epoch may be fractional: how far the present epoch has come."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        else:
            if epoch < 0:
                raise ValueError(f"Expected non-negative epoch, but got {epoch}")
            self.T_cur, self.T_i = epoch, self.T_0
            if epoch >= self.T_0:
                if self.T_mult == 1:
                    self.T_cur = epoch % self.T_0
                else:
                    n = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
                    self.T_cur = epoch - self.T_0 * (self.T_mult**n - 1) / (self.T_mult - 1)
                    self.T_i = self.T_0 * self.T_mult**n
        self.last_epoch = math.floor(epoch)
        self._get_lr_called_within_step = True
        try:
            rates = self.get_lr()
        finally:
            self._get_lr_called_within_step = False
        for group, lr in zip(self.optimizer.param_groups, rates, strict=True):
            _set(group, "lr", lr)
        self._last_lr = self._last()


class SequentialLR(LRScheduler):
    """Several schedules one after another, changing at the milestones."""

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
        for group in optimizer.param_groups:  # undo the first steps that the schedules made on their own
            _set(group, "lr", group["initial_lr"])
        for s in self._schedulers:
            _rewind(s)
        self._schedulers[0]._initial_step()
        self._last_lr = schedulers[0].get_last_lr()

    def step(self) -> None:  # type: ignore[override]
        """Move to the next epoch."""
        self.last_epoch += 1
        i = bisect_right(self._milestones, self.last_epoch)
        if i > 0 and self._milestones[i - 1] == self.last_epoch:
            self._schedulers[i].step(0)
        else:
            self._schedulers[i].step()
        self._last_lr = self._schedulers[i].get_last_lr()

    def state_dict(self) -> dict[str, Any]:
        state = {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "_schedulers")}
        state["_schedulers"] = [s.state_dict() for s in self._schedulers]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.__dict__.update({k: v for k, v in state_dict.items() if k != "_schedulers"})
        for s, saved in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            s.load_state_dict(saved)


def _rewind(scheduler: Any) -> None:
    scheduler.last_epoch -= 1
    if hasattr(scheduler, "_schedulers"):
        for s in scheduler._schedulers:
            _rewind(s)


class ChainedScheduler(LRScheduler):
    """Several recursive schedules at once: each changes what the one before left."""

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

    def step(self) -> None:  # type: ignore[override]
        """Step every schedule."""
        for s in self._schedulers:
            s.step()
        self._last_lr = self._last()

    state_dict = SequentialLR.state_dict
    load_state_dict = SequentialLR.load_state_dict


class ReduceLROnPlateau(LRScheduler):
    """Times factor when a metric has not improved for `patience` epochs; `step(metric)`."""

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
        self.default_min_lr = None if isinstance(min_lr, (list, tuple)) else min_lr  # for groups that come later
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

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Note an epoch's metric and lower the rates if it has stalled."""
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
        """A least rate for each group, also for those added since."""
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
        return self.cooldown_counter > 0

    def is_better(self, a: float, best: float) -> bool:
        """Whether `a` improves on `best` by more than the threshold."""
        sign = 1.0 if self.mode == "max" else -1.0
        if self.threshold_mode == "rel":
            bound = best * (1.0 + sign * self.threshold)
        else:
            bound = best + sign * self.threshold
        return a > bound if self.mode == "max" else a < bound


class CyclicLR(LRScheduler):
    """Up and down between base_lr and max_lr. Source: Smith, 2017 (arXiv:1506.01186)."""

    def __init__(self, optimizer: Optimizer, base_lr: Any, max_lr: Any, step_size_up: int = 2000,
                 step_size_down: int | None = None, mode: str = "triangular", gamma: float = 1.0,
                 scale_fn: Callable[[float], float] | None = None, scale_mode: str = "cycle", cycle_momentum: bool = True,
                 base_momentum: float = 0.8, max_momentum: float = 0.9, last_epoch: int = -1) -> None:  # fmt: skip
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        lows = _per_group(optimizer, base_lr, "base_lr")
        if last_epoch == -1:
            for group, low in zip(optimizer.param_groups, lows, strict=True):
                _set(group, "lr", low)
        self.max_lrs = _per_group(optimizer, max_lr, "max_lr")
        down = step_size_up if step_size_down is None else step_size_down
        self.total_size = float(step_size_up + down)
        self.step_ratio = step_size_up / self.total_size
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
                raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
            self.use_beta1 = "betas" in optimizer.defaults
            self.base_momentums = _per_group(optimizer, base_momentum, "base_momentum")
            self.max_momentums = _per_group(optimizer, max_momentum, "max_momentum")
            if last_epoch == -1:
                for group, low, high in zip(optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True):
                    _set_momentum(group, self.use_beta1, high)
                    group["max_momentum"], group["base_momentum"] = high, low
        super().__init__(optimizer, last_epoch)
        self.base_lrs = lows

    def scale_fn(self, x: float) -> float:
        """How far up cycle (or iteration) x goes."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        return {"triangular": 1.0, "triangular2": 1 / 2.0 ** (x - 1), "exp_range": self.gamma**x}[self.mode]

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for group, low, high in zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True):
                _set_momentum(group, self.use_beta1, high - (high - low) * height * scale)
        return [low + (high - low) * height * scale for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        state = super().state_dict()
        fn = state.pop("_scale_fn_custom")
        state["_scale_fn_custom"] = dict(fn.__dict__) if fn is not None and not isinstance(fn, types.FunctionType) else None
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        attributes = state_dict.get("_scale_fn_custom")
        self.__dict__.update({k: v for k, v in state_dict.items() if k != "_scale_fn_custom"})
        if attributes is not None and self._scale_fn_custom is not None:
            self._scale_fn_custom.__dict__.update(attributes)


def _set_momentum(group: dict[str, Any], beta1: bool, value: float) -> None:
    if beta1:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value


class OneCycleLR(LRScheduler):
    """One rise to max_lr and a long fall below the start. Source: Smith & Topin, 2018 (arXiv:1708.07120)."""

    def __init__(self, optimizer: Optimizer, max_lr: Any, total_steps: int | None = None, epochs: int | None = None,
                 steps_per_epoch: int | None = None, pct_start: float = 0.3, anneal_strategy: str = "cos",
                 cycle_momentum: bool = True, base_momentum: Any = 0.85, max_momentum: Any = 0.95, div_factor: float = 25.0,
                 final_div_factor: float = 1e4, three_phase: bool = False, last_epoch: int = -1) -> None:  # fmt: skip
        self.total_steps = _total_steps(total_steps, epochs, steps_per_epoch)
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_func_type = anneal_strategy
        n = self.total_steps
        # (last step, from which rate, to which rate, from which momentum, to which momentum)
        up, down = ("initial_lr", "max_lr", "max_momentum", "base_momentum"), ("max_lr", "min_lr", "base_momentum", "max_momentum")
        if three_phase:
            back = ("max_lr", "initial_lr", "base_momentum", "max_momentum")
            end = ("initial_lr", "min_lr", "max_momentum", "max_momentum")
            self._schedule_phases = [(pct_start * n - 1, *up), (2 * pct_start * n - 2, *back), (n - 1, *end)]
        else:
            self._schedule_phases = [(pct_start * n - 1, *up), (n - 1, *down)]
        highs = _per_group(optimizer, max_lr, "max_lr")
        if last_epoch == -1:
            for group, high in zip(optimizer.param_groups, highs, strict=True):
                group["initial_lr"], group["max_lr"] = high / div_factor, high
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
                raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
            self.use_beta1 = "betas" in optimizer.defaults
            lows, tops = _per_group(optimizer, base_momentum, "base_momentum"), _per_group(optimizer, max_momentum, "max_momentum")
            if last_epoch == -1:
                for group, low, top in zip(optimizer.param_groups, lows, tops, strict=True):
                    _set_momentum(group, self.use_beta1, top)
                    group["max_momentum"], group["base_momentum"] = top, low
        super().__init__(optimizer, last_epoch)

    def _anneal(self, start: float, end: float, done: float) -> float:
        if self._anneal_func_type == "linear":
            return (end - start) * done + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * done) + 1)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times. The total number of steps is {self.total_steps}")
        start, phase = 0.0, self._schedule_phases[-1]
        for candidate in self._schedule_phases:
            if step <= candidate[0] or candidate is phase:
                phase = candidate
                break
            start = candidate[0]
        end, *names = phase
        done = (step - start) / (end - start)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._anneal(group[names[0]], group[names[1]], done))
            if self.cycle_momentum:
                _set_momentum(group, self.use_beta1, self._anneal(group[names[2]], group[names[3]], done))
        return rates


def _total_steps(total: int | None, epochs: int | None, per_epoch: int | None) -> int:
    if total is not None:
        if total <= 0 or not isinstance(total, int):
            raise ValueError(f"Expected positive integer total_steps, but got {total}")
        return total
    if epochs is None or per_epoch is None:
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    for name, value in (("epochs", epochs), ("steps_per_epoch", per_epoch)):
        if not isinstance(value, int) or value <= 0:
            raise ValueError(f"Expected positive integer {name}, but got {value}")
    return epochs * per_epoch
