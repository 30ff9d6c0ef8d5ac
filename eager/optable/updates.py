"""An optimizer's update of one parameter as one op.

A rule, such as Adam's, is a function in ops that writes a parameter and its state in place; `eager.optim` enters its rules in `RULES`.
Captured code calls the op instead of the rule, so that a graph has one node for each parameter. The op runs the rule; a compiler runs it
on fakes, once for all updates of equal tensors.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, Final

from eager import _native
from eager.base import dtypes
from eager.base.spec import TensorSpec, fake, spec_of
from eager.base.symfloat import SymFloat
from eager.base.symint import SymInt
from eager.dispatch import calls
from eager.optable.registry import Kind
from eager.optable.table import OPS, declare

TensorBase = _native.TensorBase
# (name of a rule, names of the tensors of the state, settings: each a name and the length of a tuple, or -1 for a single value)
Form = tuple[str, tuple[str, ...], tuple[tuple[str, int], ...]]
_SCHEDULED: Final = frozenset(("lr", "betas", "momentum", "weight_decay"))  # settings that rules accept as tensors
RULES: Final[dict[str, Callable[[Any, Any, dict[str, Any], dict[str, Any]], None]]] = {}  # (parameter, gradient, state, settings)


def _update(parameter: Any, gradient: Any, state: Sequence[Any], settings: Sequence[Any], form: Form) -> None:
    """Write the values after one step into `parameter` and `state`."""
    name, names, keys = form
    values = iter(settings)
    group = {key: next(values) if n < 0 else tuple(islice(values, n)) for key, n in keys}
    if _native.grad_enabled() and any(t._requires_grad for t in (parameter, gradient, *state)):
        group |= {"differentiable": True, "capturable": True}  # neither kernels nor counts as numbers have a history
    RULES[name](parameter, gradient, dict(zip(names, state, strict=True)), group)


def _updated(parameter: Any, gradient: Any, state: Sequence[Any], settings: Sequence[Any], form: Form) -> tuple[Any, ...]:
    """The values of the parameter and of its state after one step."""
    new = [OPS["clone"](t, None) for t in (parameter, *state)]
    _update(new[0], gradient, new[1:], settings, form)
    return tuple(new)


def _specs(parameter: Any, gradient: Any, state: Sequence[Any], settings: Sequence[Any], form: Form) -> tuple[TensorSpec, ...]:
    """The specs of the results. Raises: the errors of the rule for these shapes and dtypes."""
    given = tuple(map(spec_of, (parameter, gradient, *state)))
    numbers = tuple((v.__class__, spec_of(v) if isinstance(v, TensorBase | TensorSpec) else v.hint if v.__class__ is SymFloat else v)
                    for v in settings)  # fmt: skip
    symbolic = any(isinstance(n, SymInt) for s in given for n in s.shape)
    return _infer.__wrapped__(given, numbers, form) if symbolic else _infer(given, numbers, form)


@lru_cache(maxsize=256)
def _infer(given: tuple[TensorSpec, ...], numbers: tuple[Any, ...], form: Form) -> tuple[TensorSpec, ...]:
    with calls.modes_off():
        parameter, gradient, *state = map(fake, given)
        settings = [fake(v) if isinstance(v, TensorSpec) else v for _, v in numbers]
        return tuple(map(spec_of, _updated(parameter, gradient, state, settings, form)))


def _expandable(parameter: Any, gradient: Any, state: Sequence[Any], settings: Sequence[Any], form: Form) -> bool:
    """Whether rules can do with tensors in place of the settings that vary. A parameter without dims would be promoted by them."""
    names = [key for key, n in form[2] for _ in range(abs(n))]
    return parameter.ndim > 0 and all(key in _SCHEDULED for key, v in zip(names, settings, strict=True) if v.__class__ is SymFloat)


def _samples(make: Any) -> Iterator[tuple[Any, ...]]:
    flags = (("maximize", -1), ("fused", -1), ("differentiable", -1))
    momentum = (("lr", -1), ("momentum", -1), ("dampening", -1), ("weight_decay", -1), ("nesterov", -1), *flags)
    yield (make(3, 4), make(3, 4), [make(3, 4)], [0.1, 0.9, 0.0, 0.1, True, False, None, False],
           ("SGD", ("momentum_buffer",), momentum))  # fmt: skip
    adam = (("lr", -1), ("betas", 2), ("eps", -1), ("weight_decay", -1), ("amsgrad", -1), ("decoupled_weight_decay", -1), *flags)
    count = OPS["full"]((), 2.0, dtypes.float32, None)
    yield (make(5), make(5), [count, make(5), make(5, low=0.1)], [0.1, 0.9, 0.99, 1e-8, 0.1, False, True, False, None, False],
           ("Adam", ("step", "exp_avg", "exp_avg_sq"), adam))  # fmt: skip


UPDATE: Final = declare(
    "optimizer_update(Tensor parameter, Tensor gradient, Tensor[] state, Tensor?[] settings, any form) -> Tensor[]",
    Kind.COMPOSITE, meta=_specs, decompose=_updated, expandable=_expandable, samples=_samples,
    doc="""The parameter and its state after one step of an optimizer. settings: numbers, and 0-d tensors, by the keys of `form`.""",
)  # fmt: skip
declare(
    "optimizer_update_(Tensor parameter, Tensor gradient, Tensor[] state, Tensor?[] settings, any form) -> Tensor",
    Kind.INPLACE, base=UPDATE, decompose=_update, writes=("parameter", "state"), samples=_samples,
    doc="""One step of an optimizer, which writes the parameter and its state.""",
)  # fmt: skip
