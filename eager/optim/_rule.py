"""Common part of the first-order optimizers: the loop over parameters, and checks of settings.

An optimizer is a rule: a function of one parameter, its gradient and its state, which updates both in place.
Rules are written in ops, so that they run on any device, layout or dtype, under the compiler, and, with
`differentiable`, under autograd. The options `foreach` and `fused` select implementations with equal
results, and `capturable` requires parameters on a GPU. `fused=False` runs the rule in ops; otherwise a rule that has a
kernel (`_kernels`) uses it when the tensors allow. A captured step calls the op `optimizer_update_` (`eager.optable.updates`), which
stands for the rule.

A number that changes from step to step (a count, a mean over steps) is a float in eager. In a captured step, and with
`capturable`, the number is a float64 tensor (), so that one graph serves all steps. The functions `root`, `larger`,
`smaller` and `store` take both.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from eager import _native
from eager._tensor.tensor import Tensor
from eager.base.device import CPU
from eager.compiler import is_compiling
from eager.optable import updates
from eager.optable.table import OPS
from eager.optim.optimizer import Optimizer, counter, descended, scalar, with_gradients
from eager.sparse import SparseTensor

Arguments = tuple[list[Any], str, str]


def common(maximize: bool, foreach: bool | None, capturable: bool, differentiable: bool) -> dict[str, Any]:
    """The settings that most optimizers share, as a dict."""
    return {"maximize": maximize, "foreach": foreach, "capturable": capturable, "differentiable": differentiable}


def check_range(name: str, value: Any, valid: bool) -> None:
    """Raise ValueError with torch's text unless `valid`."""
    if not valid:
        raise ValueError(f"Invalid {name}: {value}")


def check_settings(lr: Any, eps: float | None, weight_decay: float) -> None:
    """Raise ValueError unless lr is one non-negative number, and eps and weight_decay are not negative."""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    check_range("learning rate", lr, scalar(lr) >= 0.0)
    if eps is not None:
        check_range("epsilon value", eps, eps >= 0.0)
    check_range("weight_decay value", weight_decay, weight_decay >= 0.0)


def check_decay(decay: Any) -> None:
    """Raise RuntimeError for a bool weight decay, because torch's `add` rejects it as alpha."""
    if isinstance(decay, bool):
        raise RuntimeError("Boolean alpha only supported for Boolean results.")


def check_betas(betas: tuple[Any, Any]) -> None:
    """Raise ValueError for decay rates outside [0, 1)."""
    for i in (0, 1):
        check_range(f"beta parameter at index {i}", betas[i], 0.0 <= scalar(betas[i]) < 1.0)


def check_fused(fused: bool | None, foreach: bool | None, differentiable: bool) -> None:
    """Raise RuntimeError for options that exclude each other."""
    if fused and differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if fused and foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


def move(average: Tensor, value: Tensor, decay: float) -> None:
    """average = decay * average + (1 - decay) * value, in place."""
    OPS["mul_"](average, decay)
    OPS["add_"](average, value * (1 - decay))


class Rule(Optimizer):
    """An optimizer that updates one parameter at a time by `_update(p, g, state, group, step)`.

    `_decays`: add the weight decay to the gradient. A rule sees complex parameters, gradients and state as pairs of real numbers.
    `_name`: the rule's entry in `updates.RULES`; None if a subclass outside of this package replaces a part of the rule.
    `_unread`: settings that the rule does not read.
    """

    _decays = True
    _unread: frozenset[str] = frozenset(("foreach",))
    _name: str | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__module__.startswith("eager.optim."):
            cls._name = cls.__name__
            updates.RULES[cls.__name__] = cls._apply
        elif any(name in vars(Rule) for name in vars(cls) if name.startswith("_") and not name.startswith("__")):
            cls._name = None

    def _init_state(self, p: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        raise NotImplementedError(f"{type(self).__name__}._init_state")

    @classmethod
    def _update(cls, p: Tensor, g: Tensor, state: dict[str, Any], group: dict[str, Any], step: float) -> None:
        raise NotImplementedError(f"{cls.__name__}._update")

    def _update_sparsely(self, p: Tensor, g: SparseTensor, state: dict[str, Any], group: dict[str, Any], step: float) -> None:
        """Update the rows of `p` that a sparse gradient has. Raises: RuntimeError for a rule without sparse support."""
        raise RuntimeError(f"{type(self).__name__} does not support sparse gradients")

    @classmethod
    def _decayed(cls, group: dict[str, Any]) -> bool:
        return cls._decays and not group.get("decoupled_weight_decay") and given(group["weight_decay"])

    def _begin(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """The state of `p`, which the first call creates."""
        state = self.state[p]
        if not state:
            state["step"] = counter(0.0, counter_device(p, group))
            self._init_state(p, state, group)
        return state

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient. closure: recomputes the loss, which `step` returns."""
        loss = self._run_closure(closure)
        if is_compiling():
            begin(self)
        before = _native.set_grad_enabled(bool(self.defaults.get("differentiable", False)))
        try:
            for group in self.param_groups:
                whole = _as_arguments(self, group) if is_compiling() else None
                for p in with_gradients(group["params"]):
                    self._advance(p, group, whole)
        finally:
            _native.set_grad_enabled(before)
        return loss

    def _advance(self, p: Tensor, group: dict[str, Any], whole: Arguments | None) -> None:
        """One update of `p`. whole: the settings as arguments of an op, if captured code may update `p` by one op."""
        if group.get("capturable") and p.device.type == "cpu" and not is_compiling():
            raise AssertionError("If capturable=True, params and state_steps must be on supported devices: ['cuda'].")
        state = self._begin(p, group)
        g: Any = p.grad
        if g.is_sparse:
            OPS["add_"](state["step"], 1.0)
            self._update_sparsely(p, descended(g, group).coalesce(), state, group, state["step"].item())
        elif whole is not None:
            update_by_op(p, g, state, whole)
        else:
            self._apply(p, g, state, group)

    @classmethod
    def _apply(cls, p: Tensor, g: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        """Write the values after one step into `p` and the tensors of `state`. g: a dense gradient."""
        OPS["add_"](state["step"], 1.0)
        g = descended(g, group)
        if cls._decayed(group):
            check_decay(group["weight_decay"])
            g = g + p * group["weight_decay"]
        step = scalar(state["step"], bool(group.get("capturable")))
        if not p.is_complex():
            cls._update(p, g, state, group, step)
            return
        pairs = {k: _as_real(v) for k, v in state.items()}
        real = _as_real(p)
        cls._update(real, _as_real(g), pairs, group, step)
        if is_compiling() or p.is_fake:  # the pairs are copies there
            for old, new in ((p, real), *((state[k], v) for k, v in pairs.items() if v is not state[k])):
                OPS["copy_"](old, OPS["view_as_complex"](new))


def update_by_op(p: Tensor, g: Tensor, state: dict[str, Any], whole: Arguments) -> None:
    """`Rule._apply` as one op."""
    settings, name, texts = whole
    OPS["optimizer_update_"](p, g, list(state.values()), settings, f"{name} {','.join(state)} {texts}")


def _as_arguments(optimizer: Rule, group: dict[str, Any]) -> Arguments | None:
    """The settings of a group as arguments of the op `optimizer_update_`: (numbers and tensors, the rule's name, the rest of the form).

    None if the op cannot stand for an update: the rule is not of this package, or gradients pass through the update.
    """
    if optimizer._name is None or group.get("differentiable"):
        return None
    settings: list[Any] = []
    texts: list[str] = []
    for key in optimizer.defaults:
        if key in optimizer._unread:
            continue
        value = group[key]
        if value is None or isinstance(value, bool):
            texts.append(f"{key}={value!r}")
        elif isinstance(value, tuple | list):
            texts.append(f"{key}*{len(value)}")
            settings += map(_argument, value)
        else:
            texts.append(key)
            settings.append(_argument(value))
    return settings, optimizer._name, " ".join(texts)


def _argument(value: Any) -> Any:
    """A setting as an argument of an op. A number that is not 0 may become a tensor there (`given`), so capture guards that."""
    if type(value) is int:
        value = float(value)
    return 0.0 if isinstance(value, float) and value == 0.0 else value


def given(value: Any) -> bool:
    """Whether a setting is not 0. A number that varies between captured steps is a tensor in the rule, and is not 0."""
    return isinstance(value, Tensor) or value != 0


def begin(optimizer: Rule) -> None:
    """Create the missing state of all parameters that have a gradient.

    A capture calls this function ahead of the step that it captures: the graph of the first step is then the graph of all steps.
    """
    before = _native.set_grad_enabled(False)
    try:
        for group in optimizer.param_groups:
            for p in with_gradients(group["params"]):
                if not p.grad.is_sparse:  # type: ignore[union-attr]
                    optimizer._begin(p, group)
    finally:
        _native.set_grad_enabled(before)


def counter_device(p: Tensor, group: dict[str, Any]) -> Any:
    """The device of the step count: the parameter's with `capturable`, else the CPU."""
    return p.device if group.get("capturable") else CPU


def root(x: Any) -> Any:
    """The square root of a number."""
    return OPS["sqrt"](x) if isinstance(x, Tensor) else math.sqrt(x)


def larger(x: Any, bound: float) -> Any:
    """The larger of two numbers."""
    return OPS["clamp"](x, bound, None) if isinstance(x, Tensor) else max(bound, x)


def smaller(x: Any, y: Any) -> Any:
    """The smaller of two numbers."""
    if isinstance(x, Tensor) or isinstance(y, Tensor):
        return OPS["where"](x < y, x, y)
    return min(x, y)


def store(t: Tensor, x: Any) -> None:
    """t = x, in place."""
    OPS["copy_" if isinstance(x, Tensor) else "fill_"](t, x)


def _as_real(value: Any) -> Any:
    """Pairs of real numbers over the memory of a complex tensor; a copy in a captured step, because a graph cannot write through a
    view of another dtype."""
    if not (isinstance(value, Tensor) and value.is_complex()):
        return value
    pairs = OPS["view_as_real"](value)
    return OPS["clone"](pairs, None) if is_compiling() or value.is_fake else pairs


def rate(group: dict[str, Any]) -> Any:
    """The learning rate as a number; a tensor remains a tensor if the update must be differentiable."""
    return group["lr"] if group.get("differentiable") else scalar(group["lr"], bool(group.get("capturable")))
