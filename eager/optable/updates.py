"""An optimizer's update of one parameter as one op.

A rule, such as Adam's, is a function in ops that writes a parameter and its state in place; `eager.optim` enters its rules in `RULES`.
Captured code calls the op instead of the rule, so that a graph has one node for each parameter. The op runs the rule; a compiler runs it
on fakes, once for all updates of equal tensors.
"""
from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, Final, NamedTuple

from eager import _native
from eager.base import dtypes
from eager.base.spec import TensorSpec, fake, spec_of
from eager.base.symfloat import SymFloat
from eager.base.symint import SymInt
from eager.dispatch import calls
from eager.optable.registry import Kind
from eager.optable.table import OPS, declare

TensorBase = _native.TensorBase
_GIVEN: Final = object()  # in place of the value of a setting that is an argument
_SCHEDULED: Final = frozenset(("lr", "betas", "momentum", "weight_decay"))  # settings that rules accept as tensors
RULES: Final[dict[str, Callable[[Any, Any, dict[str, Any], dict[str, Any]], None]]] = {}  # (parameter, gradient, state, settings)


class _Form(NamedTuple):
    """A parsed form. settings: name, length if the setting is a tuple, and its value if the form holds it."""

    rule: str
    state: tuple[str, ...]
    settings: tuple[tuple[str, int | None, Any], ...]

    def group(self, given: Sequence[Any]) -> dict[str, Any]:
        """All settings by name."""
        values = iter(given)
        return {name: value if value is not _GIVEN else next(values) if n is None else tuple(islice(values, n))
                for name, n, value in self.settings}  # fmt: skip

    @property
    def given(self) -> list[str]:
        """The name of the setting that each argument belongs to."""
        return [name for name, n, value in self.settings if value is _GIVEN for _ in range(1 if n is None else n)]


@lru_cache(maxsize=256)
def _parse(form: str) -> _Form:
    """A form is one text, because graphs hold it in every call: `SGD momentum_buffer lr momentum nesterov=False`.

    It names the rule, the tensors of the state joined by commas, and the settings: `name` for one argument, `name*n` for a tuple of n
    arguments, `name=value` for a value that the form holds.
    """
    rule, state, *texts = form.split(" ")
    settings: list[tuple[str, int | None, Any]] = []
    for text in texts:
        name, held, value = text.partition("=")
        name, several, n = name.partition("*")
        settings.append((name, int(n) if several else None, ast.literal_eval(value) if held else _GIVEN))
    return _Form(rule, tuple(filter(None, state.split(","))), tuple(settings))


def _update(parameter: Any, gradient: Any, state: Sequence[Any], settings: Sequence[Any], form: str) -> None:
    """Write the values after one step into `parameter` and `state`."""
    found = _parse(form)
    group = found.group(settings)
    if _native.grad_enabled() and any(t._requires_grad for t in (parameter, gradient, *state)):
        group |= {"differentiable": True, "capturable": True}  # neither kernels nor counts as numbers have a history
    RULES[found.rule](parameter, gradient, dict(zip(found.state, state, strict=True)), group)


def _updated(parameter: Any, gradient: Any, state: Sequence[Any], settings: Sequence[Any], form: str) -> tuple[Any, ...]:
    """The values of the parameter and of its state after one step."""
    new = [OPS["clone"](t, None) for t in (parameter, *state)]
    _update(new[0], gradient, new[1:], settings, form)
    return tuple(new)


def _specs(parameter: Any, gradient: Any, state: Sequence[Any], settings: Sequence[Any], form: str) -> tuple[TensorSpec, ...]:
    """The specs of the results. Raises: the errors of the rule for these shapes and dtypes."""
    given = tuple(map(spec_of, (parameter, gradient, *state)))
    numbers = tuple((v.__class__, spec_of(v) if isinstance(v, TensorBase | TensorSpec) else v.hint if v.__class__ is SymFloat else v)
                    for v in settings)  # fmt: skip
    symbolic = any(isinstance(n, SymInt) for s in given for n in s.shape)
    return _infer.__wrapped__(given, numbers, form) if symbolic else _infer(given, numbers, form)


@lru_cache(maxsize=256)
def _infer(given: tuple[TensorSpec, ...], numbers: tuple[Any, ...], form: str) -> tuple[TensorSpec, ...]:
    with calls.modes_off():
        parameter, gradient, *state = map(fake, given)
        settings = [fake(v) if isinstance(v, TensorSpec) else v for _, v in numbers]
        return tuple(map(spec_of, _updated(parameter, gradient, state, settings, form)))


def _expandable(parameter: Any, gradient: Any, state: Sequence[Any], settings: Sequence[Any], form: str) -> bool:
    """Whether rules can do with tensors in place of the settings that vary. A parameter without dims would be promoted by them."""
    varying = [name for name, v in zip(_parse(form).given, settings, strict=True) if v.__class__ is SymFloat]
    return parameter.ndim > 0 and _SCHEDULED.issuperset(varying)


def _samples(make: Any) -> Iterator[tuple[Any, ...]]:
    flags = "maximize=False fused=None differentiable=False"
    yield (make(3, 4), make(3, 4), [make(3, 4)], [0.1, 0.9, 0.0, 0.1],
           f"SGD momentum_buffer lr momentum dampening weight_decay nesterov=True {flags}")  # fmt: skip
    count = OPS["full"]((), 2.0, dtypes.float32, None)
    yield (make(5), make(5), [count, make(5), make(5, low=0.1)], [0.1, 0.9, 0.99, 1e-8, 0.1],
           f"Adam step,exp_avg,exp_avg_sq lr betas*2 eps weight_decay amsgrad=False decoupled_weight_decay=True {flags}")  # fmt: skip


UPDATE: Final = declare(
    "optimizer_update(Tensor parameter, Tensor gradient, Tensor[] state, Tensor?[] settings, str form) -> Tensor[]",
    Kind.COMPOSITE, meta=_specs, decompose=_updated, expandable=_expandable, samples=_samples,
    doc="""The parameter and its state after one step of an optimizer. settings: numbers and 0-d tensors; `form` names them.""",
)  # fmt: skip
declare(
    "optimizer_update_(Tensor parameter, Tensor gradient, Tensor[] state, Tensor?[] settings, str form) -> Tensor",
    Kind.INPLACE, base=UPDATE, decompose=_update, writes=("parameter", "state"), samples=_samples,
    doc="""One step of an optimizer, which writes the parameter and its state.""",
)  # fmt: skip
