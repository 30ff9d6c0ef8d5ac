"""Losses. `reduction` is "none", "mean" or "sum"; the deprecated flags `size_average` and `reduce` map to it.

The result is () for "mean" and "sum". Elementwise losses return the broadcast shape for "none".
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from eager import _native
from eager.base import dtypes
from eager.base.dtypes import c_name, scalar_name
from eager.base.spec import broadcast_shapes, normalize_dim
from eager.base.warn import warn
from eager.nn.functional.activation import log_softmax
from eager.nn.functional.linears import pairwise_distance
from eager.optable.asserting import demand
from eager.optable.declaration import cast_to, composition
from eager.optable.gradient_strides import with_gradient
from eager.optable.precision import FLOAT32, Policy, Precision
from eager.optable.shape import in_layout_of
from eager.optable.table import OPS
from eager.public.record import public

Tensor = Any
TensorBase = _native.TensorBase


def reduction_of_flags(size_average: bool | None, reduce: bool | None) -> str:
    """The reduction name that the deprecated flags select; None counts as True."""
    return "none" if reduce is not None and not reduce else "mean" if size_average is None or size_average else "sum"


def resolve_reduction(reduction: str, size_average: bool | None = None, reduce: bool | None = None) -> str:
    """The reduction name, after the deprecated flags are taken into account. Raises: ValueError for an unknown name."""
    if size_average is not None or reduce is not None:
        reduction = reduction_of_flags(size_average, reduce)
        warn(f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return reduction


def _reduce(loss: Tensor, reduction: str) -> Tensor:
    if reduction == "none":
        return loss
    return loss.mean() if reduction == "mean" else loss.sum()


def _difference(x: Tensor, t: Tensor, kernel: str) -> Tensor:
    """x - t. Raises: NotImplementedError for integer and bool dtypes, for which torch has no kernel."""
    if x.dtype.is_integral and t.dtype.is_integral:
        raise dtypes.no_kernel(kernel, dtypes.promote_types(x.dtype, t.dtype))
    return x - t


@composition
def _pairwise(name: str, input: Tensor, target: Tensor, rule: Callable[[Tensor, Tensor], Tensor], reduction: str,
              weight: Tensor | None = None) -> Tensor:  # fmt: skip
    """Reduce `rule(input, target)`, with torch's warning if the shapes differ and only broadcast."""
    if tuple(input.shape) != tuple(target.shape):
        warn(f"Using a target size ({target.size()}) that is different to the input size ({input.size()}). This will "
             "likely lead to incorrect results due to broadcasting. Please ensure they have the same size.")  # fmt: skip
        broadcast_shapes(input.shape, target.shape)
    loss = rule(input, target)
    if weight is None:
        return _reduce(loss, reduction)
    loss = loss * weight
    if reduction == "mean":
        return loss.sum() / OPS["expand"](weight, tuple(loss.shape)).sum()
    return _reduce(loss, reduction)


@public(autocast=FLOAT32)
def mse_loss(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
             reduction: str = "mean", weight: Tensor | None = None) -> Tensor:  # fmt: skip
    """(x - t)^2, broadcast. reduction: "none" (broadcast shape), "mean" or "sum" (shape ()). Raises: NotImplementedError for integers."""
    reduction = resolve_reduction(reduction, size_average, reduce)
    return _pairwise("mse_loss", input, target, lambda x, t: OPS["square"](
        _difference(with_gradient("rows", x), with_gradient("rows", t), "mse_cpu")), reduction, weight)


@public(autocast=FLOAT32)
def l1_loss(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
            reduction: str = "mean", weight: Tensor | None = None) -> Tensor:  # fmt: skip
    """|x - t|, broadcast. reduction: "none" (broadcast shape), "mean" or "sum" (shape ()). Raises: ValueError for another reduction."""
    reduction = resolve_reduction(reduction, size_average, reduce)
    return _pairwise("l1_loss", input, target, lambda x, t: OPS["abs"](x - t), reduction, weight)


@public(autocast=FLOAT32)
def smooth_l1_loss(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
                   reduction: str = "mean", beta: float = 1.0) -> Tensor:  # fmt: skip
    """d^2 / (2 beta) if |d| < beta, else |d| - beta / 2, for d = x - t. Raises: RuntimeError for a negative beta."""
    reduction = resolve_reduction(reduction, size_average, reduce)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    if beta == 0.0:
        return l1_loss(input, target, reduction=reduction)

    def rule(x: Tensor, t: Tensor) -> Tensor:
        d = OPS["abs"](_difference(with_gradient("rows", x), with_gradient("rows", t), "smooth_l1_cpu"))
        far = d >= beta
        near = OPS["where"](far, 0, d)  # the square of an infinite distance has the gradient nan
        return OPS["where"](far, d - 0.5 * beta, near * near * (0.5 / beta))

    return _pairwise("smooth_l1_loss", input, target, rule, reduction)


@public(autocast=FLOAT32)
def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0,
               weight: Tensor | None = None) -> Tensor:  # fmt: skip
    """d^2 / 2 if |d| <= delta, else delta * (|d| - delta / 2), for d = x - t, in the dtype of `input`.

    Raises: RuntimeError unless delta is positive.
    """
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")

    def rule(x: Tensor, t: Tensor) -> Tensor:
        d = OPS["abs"](_difference(with_gradient("rows", x), with_gradient("rows", t), "huber_cpu"))
        far = d > delta
        near = OPS["where"](far, 0, d)
        return in_layout_of(OPS["where"](far, (d - 0.5 * delta) * delta, near * near * 0.5), x)

    return cast_to(_pairwise("huber_loss", input, target, rule, resolve_reduction(reduction), weight), input.dtype)


@public(autocast=Precision(cuda=Policy.REFUSE, cpu=Policy.FLOAT32))
def binary_cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
                         reduce: bool | None = None, reduction: str = "mean") -> Tensor:  # fmt: skip
    """-(t log x + (1 - t) log(1 - x)), each logarithm clamped to at least -100.

    Raises: ValueError for differing shapes; RuntimeError for an input outside [0, 1].
    """
    reduction = resolve_reduction(reduction, size_average, reduce)
    if tuple(target.shape) != tuple(input.shape):
        raise ValueError(f"Using a target size ({target.size()}) that is different to the input size ({input.size()}) is "
                         "deprecated. Please ensure they have the same size.")  # fmt: skip
    if target.dtype is not input.dtype:
        raise RuntimeError(f"Found dtype {scalar_name(target.dtype)} but expected {scalar_name(input.dtype)}")
    demand((input >= 0) & (input <= 1), RuntimeError, "all elements of input should be between 0 and 1")
    log_x = OPS["clamp"](OPS["log"](input), -100, None)
    log_1mx = OPS["clamp"](OPS["log1p"](-input), -100, None)
    loss = (target - 1) * log_1mx - target * log_x
    return _reduce(loss if weight is None else loss * weight, reduction)


@public(autocast=FLOAT32, composed=True)
def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Tensor | None = None,
                                     size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
                                     pos_weight: Tensor | None = None) -> Tensor:  # fmt: skip
    """Binary cross entropy of sigmoid(input), stable for large |input|. pos_weight: weight of the positive class.

    Raises: ValueError for differing shapes.
    """
    reduction = resolve_reduction(reduction, size_average, reduce)
    if tuple(target.shape) != tuple(input.shape):
        raise ValueError(f"Target size ({target.size()}) must be the same as input size ({input.size()})")
    return logits_loss(input, target, weight, pos_weight, reduction)


def logits_loss(input: Tensor, target: Tensor, weight: Tensor | None, pos_weight: Tensor | None, reduction: str) -> Tensor:
    """`binary_cross_entropy_with_logits` for an input and a target that broadcast; the loss has the target's shape."""
    if input.dtype.is_complex:
        raise dtypes.no_kernel("log_sigmoid_cpu", input.dtype)
    shape = broadcast_shapes(target.shape, input.shape)
    if shape != tuple(target.shape):
        raise RuntimeError(f"output with shape {list(target.shape)} doesn't match the broadcast shape {list(shape)}")
    if target.dtype.category < input.dtype.category:
        raise RuntimeError(f"result type {scalar_name(input.dtype)} can't be cast to the desired output type {scalar_name(target.dtype)}")
    log_sigmoid = OPS["log_sigmoid"](input)
    if pos_weight is None:
        loss = (1 - target) * input - log_sigmoid
    else:
        loss = (1 - target) * input - ((pos_weight - 1) * target + 1) * log_sigmoid
    loss = cast_to(loss, target.dtype)  # torch writes the loss into a tensor of the target's dtype
    return _reduce(loss if weight is None else loss * weight, reduction)


@public(autocast=FLOAT32, composed=True)
def kl_div(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
           reduction: str = "mean", log_target: bool = False) -> Tensor:  # fmt: skip
    """t * (log t - x), elementwise, where x is a log probability. `reduction` may also be "batchmean".

    log_target: the target holds log probabilities.
    """
    if reduction == "batchmean":
        loss = kl_div(input, target, reduction="sum", log_target=log_target)
        return loss / input.shape[0] if input.ndim else loss
    if reduction == "mean":
        warn("reduction: 'mean' divides the total loss by both the batch size and the support size.'batchmean' divides only "
             "by the batch size, and aligns with the KL div math definition.'mean' will be changed to behave the same as "
             "'batchmean' in the next major release.")  # fmt: skip
    reduction = resolve_reduction(reduction, size_average, reduce)
    if log_target:
        return _reduce(OPS["exp"](target) * (target - input), reduction)
    some = target != 0  # 0 log 0 is 0, with a gradient of 0
    entropy = OPS["where"](some, target * OPS["log"](OPS["where"](some, target, 1.0)), 0.0)
    return _reduce(entropy - target * input, reduction)


# ---- over class indices ----


def _rows(input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Scores (n, classes) and targets (n,), from scores (classes,), (n, classes) or (n, classes, *).

    Raises: ValueError for batch sizes that differ; RuntimeError for targets of another shape.
    """
    batch = target.shape[0] if target.ndim else 0
    if input.ndim != 1 and input.shape[0] != batch:
        raise ValueError(f"Expected input batch_size ({input.shape[0]}) to match target batch_size ({batch}).")
    if input.ndim == 1:
        if target.ndim > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if target.ndim and batch != 1:
            raise ValueError(f"For 1D input, 1D target must have size 1, but got target size: {batch}")
        return input.unsqueeze(0), target.reshape(1) if target.ndim == 0 else target
    if input.ndim == 2:
        if target.ndim > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        return input, target
    if tuple(input.shape[:1]) + tuple(input.shape[2:]) != tuple(target.shape):
        raise RuntimeError(f"Expected target size {list(input.shape[:1] + input.shape[2:])}, got {list(target.shape)}")
    order = (0, *range(2, input.ndim), 1)
    return with_gradient("rows", input, always=True).permute(*order).reshape(target.numel(), input.shape[1]), target.reshape(-1)


def _check_classes(rows: Tensor, target: Tensor, weight: Tensor | None) -> None:
    """Raise RuntimeError unless targets have an index dtype and `weight` has one element per class."""
    if target.dtype not in (dtypes.int64, dtypes.uint8):
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {scalar_name(target.dtype)}")
    if weight is not None and tuple(weight.shape) != (rows.shape[1],):
        raise RuntimeError(f"weight tensor should be defined either for all {rows.shape[1]} classes or no classes but got weight "
                           f"tensor of shape: {list(weight.shape)}")  # fmt: skip


def _reduce_rows(losses: Tensor, target: Tensor, shape: tuple[int, ...], weight: Tensor | None, ignore_index: int,
                 reduction: str) -> Tensor:  # fmt: skip
    if reduction == "none":
        return losses.reshape(shape)
    total = losses.sum()
    if reduction == "sum":
        return total
    kept = target != ignore_index
    if weight is None:
        return total / cast_to(kept.sum(), losses.dtype)
    safe = OPS["where"](kept, target, 0)
    used = OPS["where"](kept, OPS["index_select"](weight, 0, safe), 0.0)
    return total / cast_to(used.sum(), losses.dtype)


@public(autocast=FLOAT32)
def nll_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
             ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean") -> Tensor:  # fmt: skip
    """-weight[t] * x[t] for log probabilities. input: (n, c, *) or (c,), target: (n, *) or () class indices.

    Raises: IndexError for a target outside [0, c); ValueError for batch sizes that differ.
    """
    reduction = resolve_reduction(reduction, size_average, reduce)
    if input.ndim == 0:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    shape = tuple(target.shape)
    rows, target = _rows(input, target)
    _check_classes(rows, target, weight)
    losses = OPS["nll"](rows, target, weight, ignore_index)
    return _reduce_rows(losses, target, shape, weight, ignore_index, reduction)


@public(autocast=FLOAT32)
def cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
                  ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean",
                  label_smoothing: float = 0.0) -> Tensor:  # fmt: skip
    """Cross entropy of scores against class indices, or against class probabilities of input's shape.

    input: (n, c, *) or (c,); target: (n, *) or () integer, or input's shape floating. weight: (c,).
    Raises: as nll_loss; RuntimeError for label_smoothing outside [0, 1].
    """
    reduction = resolve_reduction(reduction, size_average, reduce)
    probabilities = tuple(target.shape) == tuple(input.shape)
    if label_smoothing > 1.0 or (probabilities and not label_smoothing >= 0.0):
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing:g}")
    if probabilities:
        if not target.dtype.is_floating_point:
            raise RuntimeError(f"Expected floating point type for target with class probabilities, got {scalar_name(target.dtype)}")
        if ignore_index >= 0:
            raise RuntimeError("ignore_index is not supported for floating point target")
        return _cross_entropy_of_probabilities(input, target, weight, reduction, label_smoothing)
    if input.ndim == 0:
        normalize_dim(1, 0)
    shape = tuple(target.shape)
    rows, target = _rows(input, target)
    _check_classes(rows, target, weight)
    losses = OPS["cross_entropy"](rows, target, weight, ignore_index)[0]
    if not label_smoothing > 0.0:  # as in torch, a negative value and nan mean no smoothing
        return _reduce_rows(losses, target, shape, weight, ignore_index, reduction)
    return _smoothed(losses, rows, target, shape, weight, ignore_index, reduction, label_smoothing)


def _smoothed(losses: Tensor, rows: Tensor, target: Tensor, shape: tuple[int, ...], weight: Tensor | None, ignore_index: int,
              reduction: str, smoothing: float) -> Tensor:  # fmt: skip
    """Mix the loss at the target with the mean loss over all classes."""
    log_p = OPS["log_softmax"](rows, 1)
    spread = -(log_p if weight is None else log_p * weight).sum(1)
    kept = target != ignore_index
    spread = OPS["where"](kept, spread, 0.0)
    first = _reduce_rows(losses, target, shape, weight, ignore_index, reduction)
    second = _reduce_rows(spread, target, shape, weight, ignore_index, reduction)
    return first * (1 - smoothing) + second * (smoothing / rows.shape[1])


@composition
def _cross_entropy_of_probabilities(input: Tensor, target: Tensor, weight: Tensor | None, reduction: str,
                                    smoothing: float) -> Tensor:  # fmt: skip
    dim = 0 if input.ndim == 1 else 1
    classes = input.shape[dim]
    if smoothing > 0.0:
        target = target * (1 - smoothing) + smoothing / classes
    terms = log_softmax(input, dim) * target
    if weight is not None:
        terms = terms * (weight if dim == 0 else weight.view(1, -1, *(1,) * (input.ndim - 2)))
    if reduction == "none":
        return -terms.sum(dim)
    total = -terms.sum()
    return total if reduction == "sum" else total / (input.numel() // classes)


@public(composed=True)
def linear_cross_entropy(input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None,
                         weight: Tensor | None = None, reduction: str = "mean", ignore_index: int | None = None,
                         label_smoothing: float = 0.0, options: Any = None) -> Tensor:  # fmt: skip
    """Cross entropy of the scores input @ linear_weight.T + linear_bias.

    input: (n, d) or (d,); linear_weight: (c, *k, d); linear_bias: (c, *k); target: as in cross_entropy for
    scores (n, c, *k) or (c,). Raises: RuntimeError for shapes that do not fit, or ignore_index with class
    probabilities; NotImplementedError for options, which request the computation of the scores in chunks.
    """
    if options is not None:
        raise NotImplementedError("linear_cross_entropy: computing the scores in chunks (options) is not implemented; give None")
    if input.ndim not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.ndim}")
    if linear_weight.ndim < 2:
        raise RuntimeError(f"expected linear_weight with dimensionality at least 2, got {linear_weight.ndim}")
    if input.shape[-1] != linear_weight.shape[-1]:
        raise RuntimeError("expected equal input and linear_weight last dimensions (in_features), got "
                           f"{input.shape[-1]} and {linear_weight.shape[-1]}, respectively")  # fmt: skip
    columns = tuple(linear_weight.shape[:-1])
    if linear_bias is not None and tuple(linear_bias.shape) != columns:
        raise RuntimeError(f"expected linear_bias shape {columns}, got {tuple(linear_bias.shape)}")
    if len(columns) > 1 and input.ndim == 1:
        raise RuntimeError(f"K-dimensional loss defined by linear_weight shape {tuple(linear_weight.shape)} requires batched "
                           f"input, (N, {input.shape[-1]}), got unbatched input with shape {tuple(input.shape)}")  # fmt: skip
    scores = OPS["linear"](input, linear_weight.reshape(-1, input.shape[-1]), None if linear_bias is None else linear_bias.reshape(-1))
    scores = scores.view(*input.shape[:-1], *columns)
    if tuple(target.shape) == tuple(scores.shape) and ignore_index is not None:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    return cross_entropy(scores, target, weight, ignore_index=-100 if ignore_index is None else ignore_index,
                         reduction=reduction, label_smoothing=label_smoothing)  # fmt: skip


# ---- margins and rankings ----


@public(autocast=FLOAT32, composed=True)
def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool = True, full: bool = False,
                     size_average: bool | None = None, eps: float = 1e-8, reduce: bool | None = None,
                     reduction: str = "mean") -> Tensor:  # fmt: skip
    """Negative log likelihood of counts under the Poisson rate exp(input), or input with log_input=False.

    full: add Stirling's approximation of the constant term.
    """
    reduction = resolve_reduction(reduction, size_average, reduce)
    loss = OPS["exp"](input) - target * input if log_input else input - target * OPS["log"](input + eps)
    if full:
        stirling = target * OPS["log"](target) - target + OPS["log"](target * (2 * math.pi)) * 0.5
        loss = loss + OPS["where"](target > 1, stirling, 0.0)
    return _reduce(loss, reduction)


@public(composed=True, kinds={"target": "Number"}, lenient=("full",))
def gaussian_nll_loss(input: Tensor, target: Tensor, var: Any, full: bool = False, eps: Any = 1e-6,
                      reduction: str = "mean") -> Tensor:  # fmt: skip
    """(log v + (x - t)^2 / v) / 2 with v = max(var, eps). full: add the constant term.

    input, target: (*); var: a number, the shape of input, or that shape with the last dim absent or 1.
    Raises: ValueError for a negative or misshapen var.
    """
    if not isinstance(var, (float, TensorBase)):
        raise TypeError(f"gaussian_nll_loss(): argument 'var' (position 3) must be Tensor or float, not {type(var).__name__}")
    if isinstance(var, float):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = OPS["full"](tuple(input.shape), var, input.dtype, input.device)
    else:
        demand(~(var < 0), ValueError, "var has negative entry/entries")
    if tuple(var.shape) != tuple(input.shape) and tuple(input.shape[:-1]) == tuple(var.shape):
        var = var.unsqueeze(-1)
    elif tuple(var.shape) not in (tuple(input.shape), (*input.shape[:-1], 1)):
        raise ValueError("var is of incorrect size")
    if eps is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    eps = dtypes.option(dtypes.float64, eps)
    if var.dtype.is_integral:  # torch clamps a copy of `var` in place, which keeps its dtype
        raise RuntimeError(f"result type Float can't be cast to the desired output type {c_name(var.dtype)}")
    floor = OPS["clamp"](var.detach(), eps, None)
    clamped = var + (floor - var.detach())  # the gradient ignores the clamp
    loss = (OPS["log"](clamped) + OPS["square"](input - target) / clamped) * 0.5
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return _reduce(loss, resolve_reduction(reduction))


@public(autocast=FLOAT32, composed=True)
def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, size_average: bool | None = None,
                         reduce: bool | None = None, reduction: str = "mean") -> Tensor:  # fmt: skip
    """x if the target is 1, max(0, margin - x) if it is -1, broadcast. Raises: ValueError for another reduction."""
    reduction = resolve_reduction(reduction, size_average, reduce)
    if not isinstance(target, TensorBase):
        raise TypeError(f"hinge_embedding_loss(): argument 'target' (position 2) must be Tensor, not {type(target).__name__}")
    margin = OPS["full"]((), margin, input.dtype, input.device) if input.dtype.is_integral else float(margin)
    far = OPS["where"](target != 1, OPS["clamp"](margin - input, 0, None), 0)
    near = OPS["where"](target != -1, input, 0)
    return _reduce(far + near, reduction)


@public(autocast=FLOAT32, composed=True)
def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, size_average: bool | None = None,
                        reduce: bool | None = None, reduction: str = "mean") -> Tensor:  # fmt: skip
    """max(0, -t * (x1 - x2) + margin), elementwise. Raises: RuntimeError for differing ranks."""
    reduction = resolve_reduction(reduction, size_average, reduce)
    if not input1.ndim == input2.ndim == target.ndim:
        raise RuntimeError(f"margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: "
                           f"{input1.size()}, input2: {input2.size()}, target: {target.size()} ")  # fmt: skip
    return ranking_loss(input1, input2, target, margin, reduction)


def ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float, reduction: str) -> Tensor:
    """`margin_ranking_loss` without the check of ranks: inputs and targets broadcast."""
    return _reduce(OPS["clamp"](-target * (input1 - input2) + float(margin), 0, None), reduction)


@public(autocast=FLOAT32, composed=True)
def soft_margin_loss(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
                     reduction: str = "mean") -> Tensor:  # fmt: skip
    """log(1 + exp(-t * x)), elementwise. Raises: RuntimeError unless the target broadcasts to the input's shape."""
    reduction = resolve_reduction(reduction, size_average, reduce)
    shape = broadcast_shapes(input.shape, target.shape)
    if shape != tuple(input.shape):
        raise RuntimeError(f"output with shape {list(input.shape)} doesn't match the broadcast shape {list(shape)}")
    if input.dtype.is_complex:
        return _reduce(OPS["log"](OPS["exp"](-target * input) + 1), reduction)
    return _reduce(-OPS["log_sigmoid"](target * input), reduction)


@public(autocast=FLOAT32, composed=True)
def multi_margin_loss(input: Tensor, target: Tensor, p: Any = 1, margin: Any = 1.0, weight: Tensor | None = None,
                      size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean") -> Tensor:  # fmt: skip
    """Mean over the other classes j of max(0, margin - x[t] + x[j]) ** p. input: (n, c) or (c,), target: (n,) or ().

    Raises: ValueError unless p is 1 or 2; RuntimeError for targets of another dtype or shape.
    """
    reduction = resolve_reduction(reduction, size_average, reduce)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    rows = _margin_rows(input)
    margin = float(dtypes.option(input.dtype, margin))
    if target.dtype is not dtypes.int64:
        raise RuntimeError(f"expected scalar type Long but found {scalar_name(target.dtype)}")
    index = target.reshape(-1, 1)
    if index.shape[0] != rows.shape[0]:
        raise RuntimeError("multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch size). "
                           f"Expected target size [{rows.shape[0]}], but got {list(target.shape)}. Input has shape {list(input.shape)}.")
    demand(OPS["logical_and"](index >= 0, index < rows.shape[1]), RuntimeError, "target out of range")
    terms = OPS["clamp"](margin - OPS["gather"](rows, 1, index) + rows, 0, None)
    if p == 2:
        terms = terms * terms
    if weight is not None:
        terms = terms * OPS["index_select"](weight, 0, index.reshape(-1)).unsqueeze(1)
    loss = OPS["scatter"](terms, 1, index, 0.0).sum(1) / rows.shape[1]
    return _reduce(loss if input.ndim > 1 else loss.squeeze(0), reduction)


def _margin_rows(input: Tensor) -> Tensor:
    """`input` as (n, c), from (n, c), (c,) or (). Raises: RuntimeError for another rank or no classes."""
    if input.ndim > 2 or (input.ndim and input.shape[-1] == 0):
        raise RuntimeError(f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(input.shape)}")
    return input if input.ndim == 2 else input.reshape(1, -1)


@public(autocast=FLOAT32, composed=True)
def multilabel_margin_loss(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
                           reduction: str = "mean") -> Tensor:  # fmt: skip
    """Hinge loss between each target class and each other class. input: (n, c) or (c,).

    target: int64, the shape of input; class indices, ended by -1. Raises: RuntimeError for another shape or dtype.
    """
    reduction = resolve_reduction(reduction, size_average, reduce)
    rows = _margin_rows(input)
    if tuple(target.shape) != tuple(input.shape) and not (input.ndim < 2 and target.ndim < 2 and target.numel() == input.numel()):
        raise RuntimeError(f"inconsistent target size: {list(target.shape)} for input of size: {list(input.shape)}")
    if target.dtype is not dtypes.int64:
        raise RuntimeError(f"expected scalar type Long but found {scalar_name(target.dtype)}")
    labels = target.reshape(tuple(rows.shape))
    demand(OPS["logical_and"](labels >= -1, labels < rows.shape[1]), RuntimeError, "argument #2 'target' is out of range")
    valid = OPS["cumsum"](cast_to(labels < 0, labels.dtype), 1) == 0
    safe = OPS["where"](valid, labels, 0)
    is_target = OPS["scatter_reduce"](cast_to(rows.detach() * 0, labels.dtype), 1, safe, cast_to(valid, labels.dtype), "amax") > 0
    picked = OPS["gather"](rows, 1, safe)  # (n, c): score of each listed target
    hinge = OPS["clamp"](1 - picked.unsqueeze(2) + rows.unsqueeze(1), 0, None)
    counted = valid.unsqueeze(2) & OPS["logical_not"](is_target).unsqueeze(1)
    loss = OPS["where"](counted, hinge, 0.0).sum((1, 2)) / rows.shape[1]
    return _reduce(loss if input.ndim > 1 else loss.squeeze(0), reduction)


@public(composed=True, kinds={"target": "Number", "weight": "Number"})
def multilabel_soft_margin_loss(input: Tensor, target: Tensor, weight: Tensor | None = None,
                                size_average: bool | None = None, reduce: bool | None = None,
                                reduction: str = "mean") -> Tensor:  # fmt: skip
    """Mean over the last dim (the classes) of the binary cross entropy with logits. input, target: (n, c) or (c,)."""
    reduction = resolve_reduction(reduction, size_average, reduce)
    loss = -(target * OPS["log_sigmoid"](input) + (1 - target) * OPS["log_sigmoid"](-input))
    if weight is not None:
        loss = loss * weight
    if input.ndim == 0:
        raise IndexError("Dimension specified as -1 but tensor has no dimensions")
    return _reduce(loss.sum(input.ndim - 1) / input.shape[-1], reduction)


@public(autocast=FLOAT32, composed=True)
def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0,
                          size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean") -> Tensor:  # fmt: skip
    """1 - cos if the target is 1, max(0, cos - margin) if it is -1. inputs: (n, d) or (d,), target: (n,) or ().

    Raises: RuntimeError for ranks that do not fit.
    """
    reduction = resolve_reduction(reduction, size_average, reduce)
    if target.ndim > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    last = (target.ndim,)  # the dim that follows the target's dims
    if input1.ndim != target.ndim + 1 or input2.ndim != target.ndim + 1:
        raise RuntimeError(f"{target.ndim}D target tensor expects {target.ndim + 1}D input tensors, but found inputs with sizes "
                           f"{list(input1.shape)} and {list(input2.shape)}.")  # fmt: skip
    squares = [OPS["sum"](x * x, last, False, None) + 1e-12 for x in (input1, input2)]
    cos = OPS["sum"](input1 * input2, last, False, None) / OPS["sqrt"](squares[0] * squares[1])
    loss = OPS["where"](target == 1, 1 - cos, 0.0) + OPS["where"](target == -1, OPS["clamp"](cos - float(margin), 0, None), 0.0)
    return _reduce(loss, reduction)


@public(autocast=FLOAT32, composed=True)
def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2,
                        eps: float = 1e-6, swap: bool = False, size_average: bool | None = None, reduce: bool | None = None,
                        reduction: str = "mean") -> Tensor:  # fmt: skip
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), d being the p-norm distance of (*, d) inputs.

    swap: use the distance of positive and negative if it is smaller. Raises: ValueError unless margin is positive.
    """
    reduction = resolve_reduction(reduction, size_average, reduce)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    return triplet_loss(anchor, positive, negative, margin, p, eps, swap, reduction)


def _check_triplet(anchor: Tensor, positive: Tensor, negative: Tensor) -> None:
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError("The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: anchor "
                           f"{anchor.ndim}D, positive {positive.ndim}D, and negative {negative.ndim}D inputs")  # fmt: skip


def triplet_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float, p: float, eps: float, swap: bool,
                 reduction: str) -> Tensor:  # fmt: skip
    """`triplet_margin_loss` without the check of the margin's sign."""
    _check_triplet(anchor, positive, negative)
    near = pairwise_distance(anchor, positive, p, eps)
    far = pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = OPS["minimum"](far, pairwise_distance(positive, negative, p, eps))
    return _reduce(OPS["clamp"](near - far + margin, 0, None), reduction)


@public(lenient=("swap",))
def triplet_margin_with_distance_loss(anchor: Tensor, positive: Tensor, negative: Tensor, *, distance_function: Any = None,
                                      margin: float = 1.0, swap: bool = False, reduction: str = "mean") -> Tensor:  # fmt: skip
    """`triplet_margin_loss` with any distance function. Raises: ValueError unless margin is positive."""
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    _check_triplet(anchor, positive, negative)
    distance = pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = OPS["minimum"](far, distance(positive, negative))
    return _reduce(OPS["clamp"](near - far + margin, 0, None), resolve_reduction(reduction))
