"""Autocast: the casts that bring the inputs of a call to the precision that its op or function declares.

Owns the casts, and the cache of cast weights. Dispatch calls `cast_inputs` before gradients are recorded, so that gradients,
tracing and compiled code see the casts as ordinary ops. An op or function with a declared precision (`eager.optable.precision`)
runs whole with autocast off. Does not depend on the context manager (`amp.autocast`).
"""
from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from eager import _native
from eager.base import dtypes, thread_state
from eager.base.dtypes import dtype
from eager.dispatch import calls
from eager.optable.precision import Policy, Precision
from eager.optable.table import OPS, Op

TensorBase = _native.TensorBase


_REFUSAL = (
    "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast.\n"
    "Many models use a sigmoid layer right before the binary cross entropy layer.\n"
    "In this case, combine the two layers using torch.nn.functional.binary_cross_entropy_with_logits\n"
    "or torch.nn.BCEWithLogitsLoss.  binary_cross_entropy_with_logits and BCEWithLogits are\n"
    "safe to autocast."
)


# ---- the cache: a weight that several ops of a block use is cast once ----


class _Cache(threading.local):
    """Casts of leaves that require gradients, by the leaf's id; the value holds the leaf, so that no other object takes its id."""

    def __init__(self) -> None:
        self.casts: dict[tuple[int, int, dtype], tuple[Any, Any]] = {}


cache = _Cache()
thread_state.call_when_off(lambda: cache.casts.clear())


class State(NamedTuple):
    """The settings of an autocast block. precisions: the low precision by device type, CUDA first; keeps: whether casts are kept."""

    precisions: tuple[tuple[str, dtype], ...]
    keeps: bool

    def __str__(self) -> str:
        return ", ".join(f"{name}: {d}" for name, d in self.precisions)


def _cast(x: Any, d: dtype) -> Any:
    """`x` in `d`. A leaf's cast is kept until the outermost block ends: it is one node in the gradient's graph too."""
    leaf = x._requires_grad and x.dtype is dtypes.float32 and d is not dtypes.float32 and x.is_leaf and not x._is_view()
    # without recording, the cast has no history and must not serve later; while tracing, it belongs to the trace
    is_traced = _native.mode_depth() & thread_state.MODES or x.is_fake
    if not leaf or not thread_state.autocast().keeps or not _native.grad_enabled() or is_traced:
        return OPS["to_dtype"](x, d)
    key = (id(x), x._version, d)
    found = cache.casts.get(key)
    if found is None:
        found = cache.casts[key] = (x, OPS["to_dtype"](x, d))
    return found[1]


# ---- the casts ----


def _eligible(x: Any, device_type: str) -> bool:
    return (isinstance(x, TensorBase) and x.dtype.is_floating_point and x.dtype is not dtypes.float64
            and x.device.type == device_type)  # fmt: skip


def _to(value: Any, d: dtype, device_type: str) -> Any:
    """`value` with its eligible tensors in `d`, also those in lists and tuples."""
    if isinstance(value, TensorBase):
        return _cast(value, d) if value.dtype is not d and _eligible(value, device_type) else value
    if isinstance(value, (list, tuple)) and any(isinstance(v, TensorBase) for v in value):
        made = [_to(v, d, device_type) for v in value]
        return made if isinstance(value, list) else tuple(made)
    return value


def _flat(values: Any) -> Any:
    for v in values:
        if isinstance(v, (list, tuple)):
            yield from _flat(v)
        elif isinstance(v, TensorBase):
            yield v


def _target(policy: Policy, lower: dtype, tensors: list[Any], device_type: str) -> dtype | None:
    """The dtype to cast to; None to cast nothing. Raises: RuntimeError under the policy REFUSE."""
    if policy is Policy.REFUSE:
        raise RuntimeError(_REFUSAL)
    if policy is Policy.KEEP:
        return None
    if policy is Policy.LOWER:
        return lower
    if policy is Policy.PROMOTE:
        wide = any(_eligible(x, device_type) and x.dtype is dtypes.float32 for x in tensors)
        return dtypes.float32 if wide else lower
    return dtypes.float32


def _choose(precision: Precision, tensors: list[Any]) -> tuple[Policy, dtype, str] | None:
    """The policy for a call with these tensors, the low precision, and the device type that decided."""
    for device_type, lower in thread_state.autocast().precisions:
        policy = precision.on(device_type)
        if policy is not None and any(x.device.type == device_type for x in tensors):
            return policy, lower, device_type
    return None


def cast_inputs(op: Op, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """The arguments that autocast gives `op`, or None for an op that autocast leaves alone."""
    if op.precision is None:
        return None
    tensors = list(op.tensors(args))
    chosen = _choose(op.precision, tensors)
    if chosen is None:
        return None
    policy, lower, device_type = chosen
    if policy is Policy.FLOAT32_UNLESS_ASKED and any(isinstance(a, dtype) for a in args):
        return args
    target = _target(policy, lower, tensors, device_type)
    return args if target is None else tuple(_to(a, target, device_type) for a in args)


calls.set_caster(cast_inputs)


def call_listed(precision: Precision, fn: Callable[[tuple[Any, ...], dict[str, Any]], Any], args: tuple[Any, ...],
                kwargs: dict[str, Any]) -> Any:  # fmt: skip
    """`fn(args, kwargs)` for a public function of several ops: with its inputs cast, and autocast off inside."""
    tensors = list(_flat((*args, *kwargs.values())))
    chosen = _choose(precision, tensors)
    if chosen is None:
        return fn(args, kwargs)
    policy, lower, device_type = chosen
    asked = policy is Policy.FLOAT32_UNLESS_ASKED and kwargs.get("dtype") is not None
    target = None if asked else _target(policy, lower, tensors, device_type)
    if target is not None:
        args = tuple(_to(a, target, device_type) for a in args)
        kwargs = {k: _to(v, target, device_type) for k, v in kwargs.items()}
    before = thread_state.set_autocast(None)
    try:
        return fn(args, kwargs)
    finally:
        thread_state.set_autocast(before)
