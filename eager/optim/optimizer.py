"""Optimizer: parameter groups, state, hooks, and the state dict in torch's layout."""
from __future__ import annotations

import functools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any

from eager._tensor.tensor import Tensor
from eager.autograd.grad_mode import enable_grad
from eager.base import dtypes
from eager.base.device import CPU
from eager.base.hooks import RemovableHandle
from eager.base.overriding import open_parameters
from eager.compiler import is_compiling
from eager.optable.table import OPS


class _Required:
    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()
_global_pre_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
_global_post_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` before every optimizer's step. Returns: a handle to remove the hook."""
    handle = RemovableHandle(_global_pre_hooks)
    _global_pre_hooks[handle.id] = hook
    return handle


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` after every optimizer's step. Returns: a handle to remove the hook."""
    handle = RemovableHandle(_global_post_hooks)
    _global_post_hooks[handle.id] = hook
    return handle


class Optimizer:
    """Base class of optimizers. Subclasses define `step`, which reads the gradients from `.grad`.

    params: an iterable of tensors, of (name, tensor) pairs, or of dicts with "params" and group settings.
    Raises: TypeError for a single tensor; ValueError for an empty list, a non-leaf, or a duplicate.
    """

    param_groups: list[dict[str, Any]]
    state: defaultdict[Any, Any]
    _opt_called: bool  # set by a learning-rate schedule that watches `step`

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self._optimizer_step_pre_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
        self._optimizer_step_post_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
        self._optimizer_state_dict_pre_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
        self._optimizer_state_dict_post_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
        self._optimizer_load_state_dict_pre_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
        self._optimizer_load_state_dict_post_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
        if isinstance(params, Tensor):
            raise TypeError("params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                            + params.type())  # fmt: skip
        self.state = defaultdict(dict)
        self.param_groups = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(dict(group))

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Wrap the subclass's own `step` so that hooks run around it."""
        super().__init_subclass__(**kwargs)
        step = cls.__dict__.get("step")
        if step is not None and not getattr(step, "hooked", False):
            setattr(cls, "step", _hooked_step(step))  # noqa: B010 - mypy rejects an assignment to a method

    def __repr__(self) -> str:
        text = type(self).__name__ + " ("
        for i, group in enumerate(self.param_groups):
            text += f"\nParameter Group {i}\n"
            text += "".join(f"    {key}: {group[key]}\n" for key in sorted(group) if key != "params")
        return text + ")"

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for what in ("step_pre", "step_post", "state_dict_pre", "state_dict_post", "load_state_dict_pre", "load_state_dict_post"):
            self.__dict__.setdefault(f"_optimizer_{what}_hooks", OrderedDict())
        for group in self.param_groups:  # states of earlier versions lack settings and store step counts as numbers
            for name, default in self.defaults.items():
                group.setdefault(name, default)
            for p in group["params"]:
                mine = self.state.get(p)
                if mine and isinstance(mine.get("step"), (int, float)):
                    mine["step"] = counter(float(mine["step"]))

    # ---- parameters ----

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with their own settings; missing settings come from the defaults.

        Raises: TypeError for other types; ValueError for a non-leaf, a duplicate or a missing setting.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, Tensor):
            params = [params]
        elif isinstance(params, set):
            raise TypeError("optimizer parameters need to be organized in ordered collections, but the ordering of tensors in "
                            "sets will change between runs. Please use a list instead.")  # fmt: skip
        params = list(params)
        if any(isinstance(p, tuple) for p in params):
            if not all(isinstance(p, tuple) for p in params):
                raise ValueError("all optimizer params should be with/without names. Some param names are missing")
            param_group["param_names"] = [name for name, _ in params]
            params = [p for _, p in params]
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {type(p).__name__}")
            if not self.defaults.get("differentiable", None) and not (p.is_leaf or p.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        param_group["params"] = params
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            param_group.setdefault(name, default)
        if len(params) != len({id(p) for p in params}):
            warnings.warn("optimizer contains a parameter group with duplicate parameters; in future, this will cause an error; "
                          "see github.com/pytorch/pytorch/issues/40967 for more information", stacklevel=3)  # fmt: skip
        known = {id(p) for group in self.param_groups for p in group["params"]}
        if known.intersection(id(p) for p in params):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set the gradients to None, or with `set_to_none=False` fill them with zeros."""
        for group in self.param_groups:
            for p in group["params"]:
                if set_to_none:  # whether there is a gradient is not read: a capture would depend on it
                    p.grad = None
                elif p.grad is not None:
                    if p.grad.grad_fn is not None:
                        p.grad.detach_()
                    else:
                        p.grad.requires_grad_(False)
                    p.grad.zero_()

    @open_parameters
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters from their gradients. closure: recomputes the loss, which `step` returns."""
        raise NotImplementedError(f"{type(self).__name__}.step")

    # ---- state dict ----

    def state_dict(self) -> dict[str, Any]:
        """The state by parameter number, and the groups with numbers in place of parameters."""
        for pre_hook in self._optimizer_state_dict_pre_hooks.values():
            pre_hook(self)
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            for p in group["params"]:
                numbers.setdefault(id(p), len(numbers))
            packed = {k: v for k, v in group.items() if k != "params"}
            packed["params"] = [numbers[id(p)] for p in group["params"]]
            groups.append(packed)
        state = {numbers[id(k)] if isinstance(k, Tensor) else k: v for k, v in self.state.items()}
        result: dict[str, Any] = {"state": state, "param_groups": groups}
        for post_hook in self._optimizer_state_dict_post_hooks.values():
            replaced = post_hook(self, result)
            if replaced is not None:
                result = replaced
        return result

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore a state of the same groups. Raises: ValueError if the number or sizes of the groups differ."""
        state_dict = dict(state_dict)
        for pre_hook in self._optimizer_load_state_dict_pre_hooks.values():
            replaced = pre_hook(self, state_dict)
            if replaced is not None:
                state_dict = replaced
        groups, saved = self.param_groups, deepcopy(state_dict["param_groups"])
        if len(groups) != len(saved):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(a["params"]) != len(b["params"]) for a, b in zip(groups, saved, strict=True)):
            raise ValueError("loaded state dict contains a parameter group that doesn't match the size of optimizer's group")
        by_number = dict(zip(chain.from_iterable(g["params"] for g in saved),
                             chain.from_iterable(g["params"] for g in groups), strict=True))  # fmt: skip
        state: defaultdict[Any, Any] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in by_number:
                state[by_number[key]] = _fitted(by_number[key], value)
            else:
                state[key] = value
        merged = []
        for own_group, saved_group in zip(groups, saved, strict=True):
            saved_group["params"] = own_group["params"]
            if "param_names" in own_group and "param_names" not in saved_group:
                saved_group["param_names"] = own_group["param_names"]
            merged.append(saved_group)
        self.__setstate__({"state": state, "param_groups": merged})
        for post_hook in self._optimizer_load_state_dict_post_hooks.values():
            post_hook(self)

    # ---- hooks ----

    def _add_hook(self, hooks: OrderedDict[int, Callable[..., Any]], hook: Callable[..., Any], prepend: bool) -> RemovableHandle:
        handle = RemovableHandle(hooks)
        hooks[handle.id] = hook
        if prepend:
            hooks.move_to_end(handle.id, last=False)
        return handle

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` before step; the hook may return new (args, kwargs)."""
        return self._add_hook(self._optimizer_step_pre_hooks, hook, False)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` after step."""
        return self._add_hook(self._optimizer_step_post_hooks, hook, False)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer)` before state_dict."""
        return self._add_hook(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` after state_dict; the hook may return a replacement."""
        return self._add_hook(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` before loading; the hook may return a replacement."""
        return self._add_hook(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer)` after loading."""
        return self._add_hook(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    # ---- for subclasses ----

    def _run_closure(self, closure: Callable[[], Any] | None) -> Any:
        if closure is None:
            return None
        with enable_grad():
            return closure()


def _hooked_step(step: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(step)
    def run(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        for pre_hook in (*_global_pre_hooks.values(), *self._optimizer_step_pre_hooks.values()):
            got = pre_hook(self, args, kwargs)
            if got is not None:
                if not (isinstance(got, tuple) and len(got) == 2):
                    raise RuntimeError(f"{step.__qualname__} must return None or a tuple of (new_args, new_kwargs), but got {got}.")
                args, kwargs = got
        result = step(self, *args, **kwargs)
        for post_hook in (*self._optimizer_step_post_hooks.values(), *_global_post_hooks.values()):
            post_hook(self, args, kwargs)
        return result

    vars(run)["hooked"] = True
    return run


def _fitted(p: Tensor, value: Any, key: Any = None) -> Any:
    """Loaded state with the dtype and device of its parameter; step counters are unchanged."""
    if isinstance(value, Tensor):
        if key == "step":
            return value.clone()
        return value.to(p.device, p.dtype, copy=True) if p.is_floating_point() else value.to(p.device)
    if isinstance(value, dict):
        return {k: _fitted(p, v, k) for k, v in value.items()}
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(_fitted(p, v) for v in value)
    return value


def zeros_like(p: Tensor) -> Tensor:
    """Zeros with the shape, dtype and layout of `p`."""
    if p.is_contiguous():
        return OPS["full"](tuple(p.shape), 0.0, p.dtype, p.device)
    return OPS["fill_"](OPS["clone"](p.detach(), None), 0.0)


def counter(value: float, device: Any = CPU) -> Tensor:
    """A tensor () for a step count or another number: float64 if that is the default dtype, else float32."""
    double = dtypes.get_default_dtype() is dtypes.float64
    return OPS["full"]((), value, dtypes.float64 if double else dtypes.float32, device)


def scalar(value: Any, capturable: bool = False) -> Any:
    """A setting or a count as a float; either may be a tensor of one element.

    With `capturable`, and in a captured step, a tensor remains on its device as a float64 tensor (): a read of its value would
    end the graph. A fake has no value either. Formulas over the result have float64's precision in both forms.
    """
    if not isinstance(value, Tensor):
        return value
    if capturable or is_compiling() or value.is_fake:
        return value.to(dtypes.float64).reshape(())
    return value.item()


def with_gradients(params: Iterable[Tensor]) -> list[Tensor]:
    """The parameters that have a gradient."""
    return [p for p in params if p.grad is not None]


def descended(g: Any, group: dict[str, Any]) -> Any:
    """The gradient to descend along: `g`, negated with `maximize`."""
    return -g if group.get("maximize") else g
