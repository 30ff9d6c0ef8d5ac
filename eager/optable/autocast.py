"""Autocast's lists: which precision an op runs in by device, and the casts that bring its inputs there.

Owns the policies, for ops of the table and for public functions made of several ops, and the cache of cast weights.
Dispatch asks `cast_inputs` before anything is recorded, so that gradients, tracing and compiled code see the casts as
ordinary ops. An op on a list runs whole with autocast off. Knows nothing of the context manager (`amp.autocast`).

The lists are those that torch documents for its CUDA and CPU ops. Names of ops are the op table's, where one op often
stands for several of torch's ("convolution": conv1d ... conv_transpose3d).
"""
from __future__ import annotations

import functools
import threading
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from eager import _native
from eager.base import dtypes, thread_state
from eager.base.dtypes import dtype
from eager.dispatch import calls
from eager.optable.table import OPS, Op

TensorBase = _native.TensorBase


class Policy(Enum):
    """What becomes of the floating-point inputs of an op (never of float64, nor of tensors on other devices)."""

    LOWER = "cast to the dtype of autocast"
    FLOAT32 = "cast to float32"
    FLOAT32_UNLESS_ASKED = "cast to float32 where the call names no dtype of its own"
    PROMOTE = "cast to the widest of the inputs"
    KEEP = "run as it is, with autocast off inside"
    REFUSE = "unsafe in this precision"


def _table(**names: str) -> dict[str, Policy]:
    return {name: Policy[key] for key, listed in names.items() for name in listed.split()}


# Losses made of several ops, and norms of differences: overflow or cancel early in half precision.
_LOSSES = """mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy_with_logits kl_div nll_loss cross_entropy nll
    poisson_nll_loss hinge_embedding_loss margin_ranking_loss soft_margin_loss multi_margin_loss multilabel_margin_loss
    cosine_embedding_loss triplet_margin_loss cdist"""
_PRODUCTS = """mm bmm matmul linear convolution attention addmm addbmm baddbmm einsum chain_matmul multi_dot prelu
    scaled_dot_product_attention conv_tbc vecdot"""

_CUDA = _table(
    LOWER=f"{_PRODUCTS} addmv addr mv",
    FLOAT32=f"""{_LOSSES} acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow softplus
        native_layer_norm layer_norm rms_norm group_norm cosine_similarity pdist dist renorm logsumexp interpolate matrix_norm""",
    FLOAT32_UNLESS_ASKED="prod softmax log_softmax cumprod cumsum vector_norm sum norm",
    PROMOTE="addcdiv addcmul atan2 bilinear cross dot vdot grid_sample index_put scatter_add tensordot cat stack lstm_gates gru_gates",
    REFUSE="binary_cross_entropy",
)
_CPU = _table(
    LOWER=_PRODUCTS,
    FLOAT32=f"""{_LOSSES} binary_cross_entropy grid_sample polar prod quantile nanquantile stft trace view_as_complex ctc_loss
        cholesky cholesky_inverse cholesky_solve cholesky_status inverse inverse_status solve_status pinv pinverse solve
        solve_triangular triangular_solve lu_solve lu_factor
        lstsq qr svd svdvals eig eigh cond matrix_rank avg_pool3d max_pool3d adaptive_avg_pool3d
        adaptive_max_pool3d max_unpool2d max_unpool3d fractional_max_pool2d fractional_max_pool3d""",
    PROMOTE="cat stack index_copy lstm_gates gru_gates",
    # Made of products here, but not on torch's list: their own precision.
    KEEP="mv addmv addr dot vdot bilinear cov corrcoef",
)
POLICIES: dict[str, dict[str, Policy]] = {"cuda": _CUDA, "cpu": _CPU}
_LISTED = frozenset(_CUDA) | frozenset(_CPU)

_REFUSAL = (
    "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast.\n"
    "Many models use a sigmoid layer right before the binary cross entropy layer.\n"
    "In this case, combine the two layers using torch.nn.functional.binary_cross_entropy_with_logits\n"
    "or torch.nn.BCEWithLogitsLoss.  binary_cross_entropy_with_logits and BCEWithLogits are\n"
    "safe to autocast."
)


# ---- the cache: a weight that several ops of a block use is cast once ----


class _Cache(threading.local):
    """Casts of leaves that want gradients, by identity; with the leaf, so that its id stays its own."""

    def __init__(self) -> None:
        self.casts: dict[tuple[int, int, dtype], tuple[Any, Any]] = {}


cache = _Cache()
thread_state.call_when_off(lambda: cache.casts.clear())


@dataclass(frozen=True, slots=True)
class State:
    """What autocast is set to. precisions: the low precision by device type, CUDA first; keeps: whether casts are kept."""

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
    """`value` with its eligible tensors in `d`; lists and tuples are gone through."""
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
    """What to cast to; None for inputs as they are. Raises: RuntimeError for an op that is refused."""
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


def _choose(name: str, tensors: list[Any]) -> tuple[Policy, dtype, str] | None:
    """The policy for a call with these tensors, the low precision, and the device type it goes by."""
    for device_type, lower in thread_state.autocast().precisions:
        policy = POLICIES[device_type].get(name)
        if policy is not None and any(x.device.type == device_type for x in tensors):
            return policy, lower, device_type
    return None


def cast_inputs(op: Op, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """The arguments that autocast gives `op`, or None for an op that it leaves alone."""
    if op.name not in _LISTED:
        return None
    tensors = list(op.tensors(args))
    chosen = _choose(op.name, tensors)
    if chosen is None:
        return None
    policy, lower, device_type = chosen
    if policy is Policy.FLOAT32_UNLESS_ASKED and any(isinstance(a, dtype) for a in args):
        return args
    target = _target(policy, lower, tensors, device_type)
    return args if target is None else tuple(_to(a, target, device_type) for a in args)


calls.set_caster(cast_inputs)


# ---- public functions made of several ops ----


def listed(functions: Mapping[str, Any]) -> dict[str, Any]:
    """A namespace whose plain functions on autocast's lists go through it. Ops among the values do so by themselves."""
    return {name: _through(name, fn) if name in _LISTED and isinstance(fn, types.FunctionType) else fn
            for name, fn in functions.items()}  # fmt: skip


@functools.cache
def _through(name: str, fn: types.FunctionType) -> Callable[..., Any]:
    mode_depth, on = _native.mode_depth, thread_state.AUTOCAST

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        if mode_depth() & on:
            return _call_listed(name, fn, args, kwargs)
        return fn(*args, **kwargs)

    return call


def _call_listed(name: str, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    tensors = list(_flat((*args, *kwargs.values())))
    chosen = _choose(name, tensors)
    if chosen is None:
        return fn(*args, **kwargs)
    policy, lower, device_type = chosen
    asked = policy is Policy.FLOAT32_UNLESS_ASKED and kwargs.get("dtype") is not None
    target = None if asked else _target(policy, lower, tensors, device_type)
    if target is not None:
        args = tuple(_to(a, target, device_type) for a in args)
        kwargs = {k: _to(v, target, device_type) for k, v in kwargs.items()}
    before = thread_state.set_autocast(None)
    try:
        return fn(*args, **kwargs)
    finally:
        thread_state.set_autocast(before)
