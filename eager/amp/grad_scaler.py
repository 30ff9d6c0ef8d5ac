"""Loss scaling: scale the loss against underflow of float16 gradients, unscale before the step, skip steps that overflow."""
from __future__ import annotations

import warnings
from collections.abc import Iterable
from enum import Enum
from typing import Any

from eager import cuda
from eager._tensor.tensor import Tensor
from eager.base import dtypes
from eager.base.device import device
from eager.functions import creation
from eager.optable.table import OPS

__all__ = ["GradScaler", "OptState"]


class OptState(Enum):
    """The progress of an optimizer since the last update."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _fresh() -> dict[str, Any]:
    return {"stage": OptState.READY, "found_inf_per_device": {}}


class GradScaler:
    """Dynamic loss scaling.

        scaler.scale(loss).backward()
        scaler.step(optimizer)      # skipped if a gradient is inf or nan
        scaler.update()

    device: "cuda" or "cpu". The scale starts at init_scale. A skipped step multiplies it by backoff_factor,
    growth_interval successful steps in a row by growth_factor. enabled=False: every method passes its input through.
    Raises: AssertionError unless growth_factor > 1 and backoff_factor < 1.
    """

    def __init__(self, device: str = "cuda", init_scale: float = 2.0**16, growth_factor: float = 2.0, backoff_factor: float = 0.5,
                 growth_interval: int = 2000, enabled: bool = True) -> None:  # fmt: skip
        self._device = device
        if enabled and device == "cuda" and not cuda.is_available():
            warnings.warn("torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.", stacklevel=2)
            enabled = False
        self._enabled = enabled
        if enabled and growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if enabled and backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale = init_scale
        self._scale: Tensor | None = None
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._growth_tracker: Tensor | None = None
        self._init_growth_tracker = 0
        self._per_optimizer_states: dict[int, dict[str, Any]] = {}

    # ---- scaling ----

    def _begin(self, where: device) -> None:
        self._scale = creation.full((), self._init_scale, dtype=dtypes.float32, device=where)
        self._growth_tracker = creation.full((), self._init_growth_tracker, dtype=dtypes.int32, device=where)

    def _begun(self, method: str) -> Tensor:
        if self._scale is None:
            raise AssertionError(f"Attempted {method} but _scale is None.  This may indicate your script did not use "
                                 "scaler.scale(loss or outputs) earlier in the iteration.")  # fmt: skip
        return self._scale

    def scale(self, outputs: Any) -> Any:
        """`outputs` (a tensor, or a nested iterable of tensors) times the scale.

        Raises: ValueError for any other type.
        """
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            if self._scale is None:
                self._begin(outputs.device)
            assert self._scale is not None
            return outputs * self._scale.to(outputs.device, non_blocking=True)
        if isinstance(outputs, Iterable):
            scaled = [self.scale(v) for v in outputs]
            return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else iter(scaled)
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer's parameters by the scale, in place, and record whether any is inf or nan.

        Raises: RuntimeError for a second call before `update`, or one after `step`; ValueError for float16 gradients.
        """
        if not self._enabled:
            return
        scale = self._begun("unscale_")
        state = self._state_of(optimizer)
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        inverse = 1.0 / float(scale.item())
        state["found_inf_per_device"] = self._unscale_grads_(optimizer, inverse, allow_fp16=False)
        state["stage"] = OptState.UNSCALED

    def _unscale_grads_(self, optimizer: Any, inverse: float, allow_fp16: bool) -> dict[device, Tensor]:
        found: dict[device, Tensor] = {}
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if not allow_fp16 and p.grad.dtype is dtypes.float16:
                    raise ValueError("Attempting to unscale FP16 gradients.")
                grad = p.grad.detach()
                bad = not bool(OPS["isfinite"](grad).all().item())  # check before unscaling: a tiny scale could hide an inf
                if inverse != 1.0:
                    grad.mul_(inverse)
                if bad or grad.device not in found:
                    found[grad.device] = creation.full((), float(bad), dtype=dtypes.float32, device=grad.device)
        return found

    def _state_of(self, optimizer: Any) -> dict[str, Any]:
        return self._per_optimizer_states.setdefault(id(optimizer), _fresh())

    # ---- stepping ----

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """`optimizer.step(*args, **kwargs)` on unscaled gradients, skipped if any is inf or nan. Returns: its result, or None.

        Raises: RuntimeError with a closure, or for a second call before `update`; AssertionError if no parameter has a gradient.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._begun("step")
        state = self._state_of(optimizer)
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if state["stage"] is OptState.READY:
            self.unscale_(optimizer)
        if not state["found_inf_per_device"]:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        result = None
        if not sum(v.item() for v in state["found_inf_per_device"].values()):
            result = optimizer.step(*args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Adjust the scale to the results of the steps since the last update, or set it to `new_scale`.

        Raises: AssertionError if nothing was unscaled since the last update.
        """
        if not self._enabled:
            return
        scale = self._begun("update")
        if new_scale is not None:
            scale.fill_(float(new_scale.item() if isinstance(new_scale, Tensor) else new_scale))
        else:
            found = [v for state in self._per_optimizer_states.values() for v in state["found_inf_per_device"].values()]
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            self._adjust(scale, any(v.item() for v in found))
        self._per_optimizer_states.clear()

    def _adjust(self, scale: Tensor, overflowed: bool) -> None:
        assert self._growth_tracker is not None
        if overflowed:
            scale.mul_(self._backoff_factor)
            self._growth_tracker.fill_(0)
            return
        successes = int(self._growth_tracker.item()) + 1
        if successes == self._growth_interval:
            grown = float(scale.item()) * self._growth_factor
            if grown <= _FLOAT32_MAX:  # keep the scale finite
                scale.fill_(grown)
            successes = 0
        self._growth_tracker.fill_(successes)

    # ---- reading and setting ----

    def get_scale(self) -> float:
        """The scale as a float; 1.0 if disabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else float(self._scale.item())

    def get_growth_factor(self) -> float:
        """The factor that raises the scale."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set the factor that raises the scale."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """The factor that lowers the scale."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set the factor that lowers the scale."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """The number of successful steps in a row that raise the scale."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set the number of successful steps in a row that raise the scale."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else int(self._growth_tracker.item())

    def is_enabled(self) -> bool:
        """Whether scaling is on."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """Scale, factors, interval and growth count, in torch's layout; empty if disabled."""
        if not self._enabled:
            return {}
        return {"scale": self.get_scale(), "growth_factor": self._growth_factor, "backoff_factor": self._backoff_factor,
                "growth_interval": self._growth_interval, "_growth_tracker": self._get_growth_tracker()}  # fmt: skip

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore a state from `state_dict`. Raises: RuntimeError for an empty one."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError("The source state dict is empty, possibly because it was saved from a disabled instance of "
                               "GradScaler.")  # fmt: skip
        self._init_scale = state_dict["scale"]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._scale is not None and self._growth_tracker is not None:
            self._scale.fill_(self._init_scale)
            self._growth_tracker.fill_(self._init_growth_tracker)

    def __getstate__(self) -> dict[str, Any]:
        """The state for pickle. Raises: AssertionError between `scale` and `update`."""
        if self._per_optimizer_states:
            raise AssertionError("A GradScaler instance may only be pickled at the beginning of an iteration, or at the end after "
                                 "scaler.update().")  # fmt: skip
        state = dict(self.__dict__)
        if self._enabled:
            state.update(_init_scale=self.get_scale(), _init_growth_tracker=self._get_growth_tracker(), _scale=None, _growth_tracker=None)
        return state


_FLOAT32_MAX = 3.4028234663852886e38
