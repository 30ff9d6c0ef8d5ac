"""Functions of eager whose calls a capture answers without following their code: modes, defaults, queries.

Part of the builtin table; importing this module adds its rows.
"""

from __future__ import annotations

import types
from typing import Any, Final

import eager
from dynamo.builtins.registry import Args, Kwargs, Row, answers, on_constants, process_query
from dynamo.policy.callees import ANSWERS
from dynamo.recording.data_dependent import assert_condition
from dynamo.report import causes
from dynamo.values.base import FALSE, NONE, TRUE, Constant
from dynamo.values.objects import UserObject
from dynamo.values.protocols import Machine, Value
from dynamo.values.sequences import TupleValue
from dynamo.values.tensor import TensorValue
from dynamo.values.trees import host_arguments
from eager import _native as eager_native
from eager.amp import autocast_mode
from eager.base import thread_state
from eager.functions import assertions
from eager.optim._rule import Rule, begin


@answers(eager_native.set_grad_enabled)
def _set_grad_enabled(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    return Constant(cap.modes.set_grad(cap.truth(args[0])))


@answers(eager_native.inference_mode)
def _inference_mode(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    return Constant(eager_native.inference_mode())


@answers(eager_native.set_inference_mode)
def _set_inference_mode(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    return Constant(cap.modes.set_inference(cap.truth(args[0])))


@answers(eager_native.grad_enabled)
def _grad_enabled(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    return Constant(cap.modes.grad)


@answers(thread_state.switch_autocast)
def _switch_autocast(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    return Constant(cap.modes.switch_autocast(cap.realize(args[0]).as_constant()))


@answers(autocast_mode._number)
def _autocast_number(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    return Constant(autocast_mode._number(*host_arguments(cap, args, {})[0]))


@answers(autocast_mode._settings)
def _autocast_settings(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    given, _ = host_arguments(cap, args, {})
    if given[1] is None:
        cap.world.guards.add("call_eq", (), autocast_mode.default_dtypes, autocast_mode.default_dtypes(), origin=cap.origin)
    return TupleValue([Constant(v) for v in autocast_mode._settings(*given)])


@answers(autocast_mode.is_autocast_enabled)
def _is_autocast_enabled(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    given, named = host_arguments(cap, args, kwargs)
    return Constant(autocast_mode.is_autocast_enabled(*given, *named.values()))


_STATE_ATTRIBUTES: Final = frozenset({"state", "param_groups", "grad"})  # of optimizers and parameters: what `begin` reads


@answers(begin)
def _begin(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    """Create the missing state of an optimizer now, before the capture reads the state: no graph then belongs to the first step alone.

    The program sees the state early only if the captured call never reaches its step. State that the captured program may have
    changed is left to the program.
    """
    optimizer = cap.realize(args[0])
    if isinstance(optimizer, UserObject) and isinstance(optimizer.real, Rule) and optimizer.source is not None:
        params = [p for group in optimizer.real.param_groups for p in group["params"]]
        values = [optimizer, *filter(None, (cap.world.by_id.get(id(p)) for p in params))]
        is_written = any(not _STATE_ATTRIBUTES.isdisjoint(cap.effects.attributes_of(v)) for v in values)
        if id(optimizer.real.state) not in cap.world.by_id and not is_written:
            cap.host(begin, optimizer.real)
    return NONE


def _forbid(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    before = cap.modes.forbidden
    cap.world.guards.add("call_eq", (), causes.forbidding, cap.modes.initial_forbidden, origin=cap.origin)
    cap.effects.change(None)
    cap.modes.forbidden = cap.realize(args[0]).as_constant()
    return Constant(before)


ANSWERS[causes.forbid] = _forbid
ANSWERS[thread_state.switch_autocast] = _switch_autocast
ANSWERS[autocast_mode._number] = _autocast_number
ANSWERS[autocast_mode._settings] = _autocast_settings
ANSWERS[autocast_mode.is_autocast_enabled] = _is_autocast_enabled
ANSWERS[eager.is_grad_enabled] = _grad_enabled
ANSWERS[eager.is_grad_enabled] = _grad_enabled


def _is_compiling(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    return TRUE


for _name in ("is_compiling", "is_dynamo_compiling"):
    ANSWERS[getattr(eager.compiler, _name)] = _is_compiling


ANSWERS[eager.compiler.is_exporting] = lambda cap, a, k: FALSE


def _is_tensor(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    return Constant(isinstance(cap.realize(args[0]), TensorValue))


ANSWERS[eager.is_tensor] = _is_tensor


def _tensor_query(name: str) -> Row:
    def row(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
        return cap.call_method(args[0], name, args[1:], kwargs)

    return row


ANSWERS[eager.is_floating_point] = _tensor_query("is_floating_point")
ANSWERS[eager.numel] = _tensor_query("numel")
ANSWERS[assertions.holds] = lambda cap, a, k: TRUE if assert_condition(cap, a[0]) else a[0]
for _query in (eager.is_anomaly_enabled, eager.is_anomaly_check_nan_enabled):
    ANSWERS[_query] = process_query(_query)
ANSWERS[eager.get_default_dtype] = lambda cap, a, k: cap.recorder.default_dtype()


def pure_own(fn: Any) -> None:
    """Functions of eager on dtypes and numbers."""
    ANSWERS[fn] = on_constants(fn)


for _fn in (eager.promote_types, eager.can_cast):
    if isinstance(_fn, types.FunctionType):
        pure_own(_fn)
