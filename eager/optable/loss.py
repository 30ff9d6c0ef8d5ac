"""Losses over class scores, row by row: the cross entropy and the negative log likelihood of a target index."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from eager import _native
from eager.base import dtypes
from eager.base.spec import SpecLike, TensorSpec, common_device
from eager.optable.declaration import cast_to
from eager.optable.nn import accumulator, is_wide, require_floating
from eager.optable.piecewise import piecewise_linear
from eager.optable.precision import FLOAT32
from eager.optable.registry import Kind
from eager.optable.sums import total, widen
from eager.optable.table import OPS, declare


def _check(who: str, x: SpecLike, target: SpecLike, weight: Any) -> None:
    require_floating(who, x.dtype)
    if target.dtype not in (dtypes.int64, dtypes.int32, dtypes.uint8):
        raise RuntimeError(f"expected scalar type Long but found {target.dtype}: {who} takes class indices as int64")
    if x.ndim != 2 or target.ndim != 1:
        raise RuntimeError(f"{who}: expected scores (n, classes) and targets (n,), got {list(x.shape)} and {list(target.shape)}")
    if x.shape[0] != target.shape[0]:
        raise ValueError(f"Expected input batch_size ({x.shape[0]}) to match target batch_size ({target.shape[0]}).")
    if weight is not None and tuple(weight.shape) != (x.shape[1],):
        raise RuntimeError("weight tensor should be defined either for all or no classes: "
                           f"got {list(weight.shape)} for {x.shape[1]} classes")  # fmt: skip
    common_device(who, [t for t in (x, target, weight) if t is not None])


def _check_range(target: Any, kept: Any, classes: int) -> None:
    if target.size == 0:
        return
    used = target[kept]
    if used.size and (int(used.max()) >= classes or int(used.min()) < 0):
        bad = int(used.max()) if int(used.max()) >= classes else int(used.min())
        raise IndexError(f"Target {bad} is out of bounds.")


def _hit(x: Any, target: Any) -> Any:
    """(n, classes) bool: True at each row's target."""
    columns = OPS["arange"](0, x.shape[1], 1, dtypes.int64, x.device)
    return columns == OPS["unsqueeze"](target, 1)


def _row_weight(target: Any, weight: Any, ignore_index: int) -> tuple[Any, Any]:
    """Which rows count, and their weights (None for all alike)."""
    kept = target != ignore_index
    if weight is None:
        return kept, None
    return kept, OPS["index_select"](weight, 0, OPS["where"](kept, target, 0))


def _pick(x: Any, target: Any, kept: Any) -> Any:
    safe = OPS["unsqueeze"](OPS["where"](kept, cast_to(target, dtypes.int64), 0), 1)
    return OPS["squeeze"](OPS["gather"](x, 1, safe), (1,))


def _cross_entropy(x: Any, target: Any, weight: Any, ignore_index: int) -> tuple[Any, Any]:
    """Per row -weight[t] * log_softmax(x)[t], zero where t is ignore_index; and each row's log normaliser.

    x: (n, classes) floating, target: (n,) integer, weight: (classes,) or None. Results: (n,) and (n, 1).
    Raises: IndexError for a target that is not a class.
    """
    wide = cast_to(x, accumulator(x.dtype))
    lse = OPS["logsumexp"](wide, (1,), True)
    kept, w = _row_weight(target, weight, ignore_index)
    loss = OPS["squeeze"](lse, (1,)) - _pick(wide, target, kept)
    if w is not None:
        loss = loss * w
    return cast_to(OPS["where"](kept, loss, 0.0), x.dtype), lse


def _cross_entropy_meta(x: SpecLike, target: SpecLike, weight: Any, ignore_index: int) -> Any:
    _check("cross_entropy", x, target, weight)
    n = x.shape[0]
    return (TensorSpec.contiguous((n,), x.dtype, x.device), TensorSpec.contiguous((n, 1), accumulator(x.dtype), x.device))


def _cross_entropy_kernel(xp: Any, out: Any, x: Any, target: Any, weight: Any, ignore_index: int) -> None:
    losses, lse = out
    if x.shape[0] == 0:
        return
    kept = target != ignore_index
    _check_range(target, kept, x.shape[1])
    wide = widen(x)
    safe = xp.where(kept, target, 0).astype("i8", copy=False)
    top = wide.max(axis=1, keepdims=True)
    t = wide - top
    picked = t[xp.arange(x.shape[0]), safe]
    xp.exp(t, out=t)
    log_total = xp.log(total(xp, t, 1))
    xp.add(log_total, top, out=lse)
    loss = log_total[:, 0] - picked
    if weight is not None:
        loss *= weight[safe]
    xp.copyto(losses, xp.where(kept, loss, 0), casting="unsafe")


def _cross_entropy_backward(g: Any, x: Any, target: Any, weight: Any, lse: Any, ignore_index: int) -> Any:
    """Cotangent of the scores: (softmax(x) - onehot(target)) * weight[target] * g, zero in ignored rows."""
    d = accumulator(x.dtype)
    kept, w = _row_weight(target, weight, ignore_index)
    scale = cast_to(g, d) if w is None else cast_to(g, d) * w
    p = OPS["exp"](cast_to(x, d) - lse)
    gx = OPS["where"](_hit(x, target), p - 1.0, p) * OPS["unsqueeze"](scale, 1)
    return cast_to(OPS["where"](OPS["unsqueeze"](kept, 1), gx, 0.0), x.dtype)


def _cross_entropy_backward_kernel(xp: Any, out: Any, g: Any, x: Any, target: Any, weight: Any, lse: Any,
                                   ignore_index: int) -> None:  # fmt: skip
    kept = target != ignore_index
    safe = xp.where(kept, target, 0).astype("i8", copy=False)
    t = out if is_wide(out) else xp.empty(out.shape, "f4")
    xp.subtract(widen(x), lse, out=t)
    xp.exp(t, out=t)
    t[xp.arange(x.shape[0]), safe] -= 1
    scale = widen(g) if weight is None else widen(g) * widen(weight)[safe]
    t *= scale[:, None]
    if not kept.all():
        t[~kept] = 0
    if t is not out:
        xp.copyto(out, t, casting="unsafe")


def _vjp(gs: Any, x: Any, target: Any, weight: Any, y1: Any, ignore_index: int, needs: Any) -> Any:
    gx = gw = None
    lse = OPS["logsumexp"](cast_to(x, accumulator(x.dtype)), (1,), True) if _native.grad_enabled() else y1
    if needs[0]:
        gx = OPS["cross_entropy_backward"](gs[0], x, target, weight, lse, ignore_index)
    if needs[1] and weight is not None:
        unweighted, _ = _cross_entropy(x, target, None, ignore_index)
        safe = OPS["where"](target != ignore_index, target, 0)
        gw = OPS["index_add"](weight * 0, 0, safe, cast_to(gs[0] * unweighted, weight.dtype), 1)
    return gx, gw


def _samples(make: Any) -> Iterator[tuple[Any, ...]]:
    yield make(4, 5), make.int(4, high=5), None, -100
    yield make(4, 5), make.int(4, high=5), make(5, low=0.2, high=1.0).detach(), 1
    yield make(5, 3).t(), make.int(3, high=5), None, 2


def _backward_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    for x, target, weight, ignore in _samples(make):
        _, lse = _cross_entropy(x.detach(), target, weight, ignore)
        yield make(x.shape[0]), x, target, weight, lse, ignore


CROSS_ENTROPY_BACKWARD = declare(
    "cross_entropy_backward(Tensor g, Tensor x, Tensor target, Tensor? weight, Tensor lse, int ignore_index) -> Tensor",
    Kind.COMPOSITE,
    meta=lambda g, x, target, weight, lse, ignore_index: TensorSpec.contiguous(tuple(x.shape), x.dtype, x.device),
    decompose=_cross_entropy_backward, kernel=_cross_entropy_backward_kernel, samples=_backward_samples)  # fmt: skip
CROSS_ENTROPY = declare(
    "cross_entropy(Tensor x, Tensor target, Tensor? weight, int ignore_index) -> (Tensor, Tensor)", Kind.COMPOSITE, fallible=True,
    meta=_cross_entropy_meta, decompose=_cross_entropy, kernel=_cross_entropy_kernel, vjp={"x, weight": _vjp},
    nondifferentiable_outputs=(1,), samples=_samples, precision=FLOAT32)  # fmt: skip


# ---- negative log likelihood ----


def _nll(x: Any, target: Any, weight: Any, ignore_index: int) -> Any:
    """Per row -weight[t] * x[t], zero where t is ignore_index. Arguments as cross_entropy, x log probabilities."""
    kept, w = _row_weight(target, weight, ignore_index)
    loss = -_pick(x, target, kept)
    if w is not None:
        loss = loss * w
    return OPS["where"](kept, cast_to(loss, x.dtype), 0.0)


def _nll_meta(x: SpecLike, target: SpecLike, weight: Any, ignore_index: int) -> TensorSpec:
    _check("nll_loss", x, target, weight)
    return TensorSpec.contiguous((x.shape[0],), x.dtype, x.device)


def _nll_kernel(xp: Any, out: Any, x: Any, target: Any, weight: Any, ignore_index: int) -> None:
    kept = target != ignore_index
    _check_range(target, kept, x.shape[1])
    safe = xp.where(kept, target, 0).astype("i8", copy=False)
    loss = -widen(x[xp.arange(x.shape[0]), safe])
    if weight is not None:
        loss = loss * widen(weight)[safe]
    xp.copyto(out, xp.where(kept, loss, 0), casting="unsafe")


def _nll_vjp(g: Any, x: Any, x_spec: Any, target: Any, weight: Any, ignore_index: int, needs: Any) -> Any:
    gx = gw = None
    kept, w = _row_weight(target, weight, ignore_index)
    if needs[0]:
        scale = OPS["where"](kept, -g if w is None else -g * w, 0.0)
        gx = OPS["where"](_hit(x, target), OPS["unsqueeze"](scale, 1), 0.0)
    if needs[1] and weight is not None:
        terms = g * _nll(x, target, None, ignore_index)
        gw = OPS["index_add"](weight * 0, 0, OPS["where"](kept, target, 0), cast_to(terms, weight.dtype), 1)
    return gx, gw


NLL = declare("nll(Tensor x, Tensor target, Tensor? weight, int ignore_index) -> Tensor", Kind.COMPOSITE, fallible=True, meta=_nll_meta,
              decompose=_nll, kernel=_nll_kernel, vjp={"x, weight": piecewise_linear(_nll_vjp)}, samples=_samples,
              precision=FLOAT32)  # fmt: skip
