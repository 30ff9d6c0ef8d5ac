"""torch's top-level functions with ATen's arguments in ATen's order: reductions as integers, few defaults.

For example `torch.embedding(weight, indices)` and `torch.batch_norm(input, weight, bias, mean, var, ...)`, whose
order differs from `nn.functional`. The cudnn flags are accepted and ignored.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from eager.base import dtypes
from eager.base.dtypes import scalar_name
from eager.base.spec import elementwise_strides
from eager.functions.convolution import conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d
from eager.functions.resampling import affine_grid, grid_sample
from eager.nn.functional import activation, dropouts, linears, norm
from eager.nn.functional import ctc as _ctc
from eager.nn.functional import loss as _loss
from eager.optable.declaration import cast_to
from eager.optable.nn import accumulator
from eager.optable.out import write_out
from eager.optable.precision import FLOAT32, FLOAT32_ON_CPU, FLOAT32_ON_CUDA, FLOAT32_UNLESS_ASKED, LOWER
from eager.optable.shape import laid_out
from eager.optable.table import OPS
from eager.public.record import public

Tensor = Any
_REDUCTIONS = ("none", "mean", "sum")


def embedding(weight: Tensor, indices: Tensor, padding_idx: int = -1, scale_grad_by_freq: bool = False,
              sparse: bool = False) -> Tensor:  # fmt: skip
    """Rows of `weight` (n, d) at `indices` (*); a padding_idx outside the rows is ignored."""
    pad = padding_idx if weight.ndim and 0 <= padding_idx < weight.shape[0] else None
    return linears.embedding(indices, weight, pad, scale_grad_by_freq=scale_grad_by_freq, sparse=sparse)


def batch_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None,
               training: bool, momentum: float, eps: float, cudnn_enabled: bool) -> Tensor:  # fmt: skip
    """`nn.functional.batch_norm`, without its checks of eps and of the number of values per channel."""
    return norm.unchecked_batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def instance_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None,
                  use_input_stats: bool, momentum: float, eps: float, cudnn_enabled: bool) -> Tensor:  # fmt: skip
    """`nn.functional.instance_norm`, without its check of the number of spatial elements."""
    return norm.unchecked_instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


@public(autocast=FLOAT32_ON_CUDA)
def group_norm(input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5,
               cudnn_enabled: bool = True) -> Tensor:  # fmt: skip
    """`nn.functional.group_norm`, without its check for groups of a single value."""
    return norm.normalize_groups(input, num_groups, weight, bias, eps)


@public(autocast=FLOAT32_ON_CUDA)
def layer_norm(input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, bias: Tensor | None = None,
               eps: float = 1e-5, cudnn_enable: bool = True) -> Tensor:  # fmt: skip
    """`nn.functional.layer_norm`."""
    return norm.layer_norm(input, normalized_shape, weight, bias, eps)


def _dropout(fn: Callable[..., Tensor], name: str, inplace: bool) -> Callable[..., Tensor]:
    @public(parsed=inplace)
    def drop(input: Tensor, p: float, train: bool) -> Tensor:
        return fn(input, p, train, inplace)

    drop.__name__ = drop.__qualname__ = name
    drop.__doc__ = f"`nn.functional.{fn.__name__}`{', in place' if inplace else ''}."
    return drop


@public(autocast=LOWER)
def convolution(input: Tensor, weight: Tensor, bias: Tensor | None, stride: Sequence[int], padding: Sequence[int],
                dilation: Sequence[int], transposed: bool, output_padding: Sequence[int], groups: int) -> Tensor:  # fmt: skip
    """A convolution, or its transpose, over the dims of `weight` (out, in / groups, *kernel) after the first two.

    Raises: ValueError for a weight with fewer than 3 or more than 5 dims.
    """
    dims = weight.ndim - 2
    if dims not in (1, 2, 3):
        raise ValueError(f"convolution: a weight of {weight.ndim} dims; allowed 3, 4 or 5")
    if transposed:
        transposed_conv = (conv_transpose1d, conv_transpose2d, conv_transpose3d)[dims - 1]
        return transposed_conv(input, weight, bias, tuple(stride), tuple(padding), tuple(output_padding), groups, tuple(dilation))
    forward_conv = (conv1d, conv2d, conv3d)[dims - 1]
    return forward_conv(input, weight, bias, tuple(stride), tuple(padding), tuple(dilation), groups)


@public(autocast=FLOAT32_ON_CUDA)
def native_layer_norm(input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, bias: Tensor | None,
                      eps: float) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """`nn.functional.layer_norm`, and each slice's mean and 1 / sqrt(var + eps), which have no gradient."""
    y, mean, rstd = OPS["native_layer_norm"](input, tuple(normalized_shape), weight, bias, eps)
    d = _statistics_dtype(input, weight, bias)
    return y, cast_to(mean, d), cast_to(rstd, d)


def _statistics_dtype(input: Tensor, *parameters: Tensor | None) -> Any:
    """The dtype of mean and rstd: the parameters' (float32 beside a half-precision input), else the input's."""
    return next((p.dtype for p in parameters if p is not None), input.dtype)


def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """`nn.functional.dropout` of the input, and the bool mask of kept elements."""
    ones = OPS["full"](tuple(input.shape), 1, input.dtype, input.device)
    scale = dropouts.dropout(ones, p, train is not False)
    return input * scale, OPS["ne"](scale, 0)


def grid_sampler(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Tensor:
    """`nn.functional.grid_sample` with modes as integers: bilinear, nearest, bicubic; zeros, border, reflection."""
    modes, paddings = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")
    return grid_sample(input, grid, modes[interpolation_mode], paddings[padding_mode], align_corners)


_MAX_MODE: Final = 2  # the largest mode of embedding_bag: 0 sum, 1 mean, 2 max


def _check_bags(weight: Tensor, indices: Tensor, offsets: Tensor, mode: int) -> None:
    """Raise RuntimeError for ranks, dtypes and modes that embedding_bag does not accept."""
    if mode not in range(_MAX_MODE + 1):
        raise RuntimeError("`mode` must be sum, mean, or max.")
    for name, t in (("weight", weight), ("input", indices), ("offsets", offsets)):
        expected_ndim = 2 if name == "weight" else 1
        if t.ndim != expected_ndim:
            raise RuntimeError(f"{name} has to be a {expected_ndim}D Tensor, but got Tensor of dimension {t.ndim}")
    if not weight.dtype.is_floating_point:
        raise RuntimeError("Expected tensor for argument #1 'weight' to have one of the following scalar types: Half, BFloat16, Float, "
                           f"Double; but got {scalar_name(weight.dtype)} instead (while checking arguments for embedding_bag)")  # fmt: skip


def embedding_bag(weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool = False, mode: int = 0, sparse: bool = False,
                  per_sample_weights: Tensor | None = None, include_last_offset: bool = False,
                  padding_idx: int | None = None) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """`nn.functional.embedding_bag` with the mode as an integer (0 sum, 1 mean, 2 max).

    Returns: (bags, the bag of each index, the size of each bag, the row of each maximum). The last is 0 for an empty
    bag, and repeats the sizes in the other modes.
    """
    _check_bags(weight, indices, offsets, mode)
    y = linears.embedding_bag(indices, weight, offsets, None, 2, scale_grad_by_freq, ("sum", "mean", "max")[mode], sparse,
                              per_sample_weights, include_last_offset, padding_idx)  # fmt: skip
    position = OPS["arange"](0, indices.shape[0], 1, dtypes.int64, indices.device)
    bag_of = OPS["searchsorted"](cast_to(offsets[: y.shape[0]], dtypes.int64), position, True) - 1
    counted = OPS["full"](tuple(indices.shape), 1, dtypes.int64, indices.device) if padding_idx is None else indices != padding_idx
    sizes = OPS["index_add"](OPS["full"]((y.shape[0],), 0, dtypes.int64, indices.device), 0, bag_of, cast_to(counted, dtypes.int64), 1)
    if mode != _MAX_MODE or not indices.shape[0]:
        return y, bag_of, sizes, sizes if mode != _MAX_MODE else OPS["full"](tuple(y.shape), 0, dtypes.int64, indices.device)
    found = OPS["eq"](OPS["index_select"](weight, 0, indices), OPS["index_select"](y, 0, bag_of))
    if padding_idx is not None:
        found = OPS["logical_and"](found, OPS["unsqueeze"](counted, 1))
    nowhere = indices.shape[0]
    at = OPS["where"](found, OPS["unsqueeze"](position, 1), nowhere)
    first = OPS["full"](tuple(y.shape), nowhere, dtypes.int64, indices.device).index_reduce(0, bag_of, at, "amin")
    rows = cast_to(OPS["where"](first < nowhere, indices[first.clamp(max=nowhere - 1)], 0), dtypes.int64)
    return y, bag_of, sizes, rows


def native_batch_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None,
                      running_var: Tensor | None, training: bool, momentum: float,
                      eps: float) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """(y, mean, reciprocal standard deviation) of `nn.functional.batch_norm`; the last two are empty in evaluation."""
    if not training:
        nothing = OPS["empty"]((0,), input.dtype, input.device)
        return norm.unchecked_batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps), nothing, nothing
    y, mean, rstd = norm.batch_norm_with_moments(input, running_mean, running_var, weight, bias, momentum, eps)
    d = _statistics_dtype(input, weight, bias, running_mean, running_var)
    return y, cast_to(mean, d), cast_to(rstd, d)


def native_group_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, N: int, C: int, HxW: int, group: int,  # noqa: N803
                      eps: float) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """(y, mean, reciprocal standard deviation) of `nn.functional.group_norm`; the last two are (N, group)."""
    y = norm.group_norm(input, group, weight, bias, eps)
    rows = OPS["view"](cast_to(input.contiguous(), accumulator(input.dtype)), (N, group, HxW * (C // group)))
    d = _statistics_dtype(input, weight, bias)
    rstd = OPS["rsqrt"](OPS["var"](rows, (2,), 0.0, False) + eps)
    return y, cast_to(OPS["mean"](rows, (2,), False, None), d), cast_to(rstd, d)


def affine_grid_generator(theta: Tensor, size: Sequence[int], align_corners: bool) -> Tensor:
    """`nn.functional.affine_grid`."""
    return affine_grid(theta, list(size), align_corners)


# ---- losses: reduction 0 is none, 1 mean, 2 sum; the default is none, as torch behaves, although its schema says mean ----


def _reduced(reduction: int) -> str:
    """The name of a reduction; "none" for any number but 1 and 2, as in torch."""
    return _REDUCTIONS[reduction] if reduction in (1, 2) else "none"


@public(autocast=FLOAT32)
def kl_div(input: Tensor, target: Tensor, reduction: int = 0, *, log_target: bool = False) -> Tensor:
    """`nn.functional.kl_div`."""
    return _loss.kl_div(input, target, reduction=_reduced(reduction), log_target=log_target)


@public(autocast=FLOAT32)
def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int) -> Tensor:
    """`nn.functional.poisson_nll_loss`."""
    return _loss.poisson_nll_loss(input, target, log_input=log_input, full=full, eps=eps, reduction=_reduced(reduction))


@public(autocast=FLOAT32)
def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 0) -> Tensor:
    """`nn.functional.margin_ranking_loss` for inputs that broadcast."""
    return _loss.ranking_loss(input1, input2, target, margin, _reduced(reduction))


@public(autocast=FLOAT32)
def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6,
                        swap: bool = False, reduction: int = 0) -> Tensor:  # fmt: skip
    """`nn.functional.triplet_margin_loss` without the check of the margin's sign."""
    return _loss.triplet_loss(anchor, positive, negative, margin, p, eps, swap, _reduced(reduction))


@public(autocast=FLOAT32)
def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = 0) -> Tensor:
    """`nn.functional.hinge_embedding_loss`."""
    return _loss.hinge_embedding_loss(input, target, margin, reduction=_reduced(reduction))


@public(autocast=FLOAT32)
def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 0) -> Tensor:
    """`nn.functional.cosine_embedding_loss`."""
    return _loss.cosine_embedding_loss(input1, input2, target, margin, reduction=_reduced(reduction))


@public(autocast=FLOAT32)
def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Tensor | None = None, pos_weight: Tensor | None = None,
                                     reduction: int = 0) -> Tensor:  # fmt: skip
    """`nn.functional.binary_cross_entropy_with_logits` for an input and a target that broadcast."""
    return _loss.logits_loss(input, target, weight, pos_weight, _reduced(reduction))


@public(autocast=FLOAT32_ON_CPU)
def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int = 0, reduction: int = 0,
             zero_infinity: bool = False) -> Tensor:  # fmt: skip
    """`nn.functional.ctc_loss`."""
    return _ctc.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, _reduced(reduction), zero_infinity)


# ---- steps of recurrent cells ----


def _gates(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None, b_hh: Tensor | None) -> tuple[Tensor, Tensor]:
    return OPS["linear"](input, w_ih, b_ih), OPS["linear"](hx, w_hh, b_hh)


def lstm_cell(input: Tensor, hx: Sequence[Tensor], w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None,
              b_hh: Tensor | None = None) -> tuple[Tensor, Tensor]:  # fmt: skip
    """(h, c) after one step. input: (n, in), hx: (h, c), each (n, hidden)."""
    of_input, of_state = _gates(input, hx[0], w_ih, w_hh, b_ih, b_hh)
    return OPS["lstm_gates"](of_input + of_state, hx[1])


def gru_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None) -> Tensor:
    """h (n, hidden) after one step. input: (n, in), hx: (n, hidden)."""
    y = OPS["gru_gates"](*_gates(input, hx, w_ih, w_hh, b_ih, b_hh), hx)
    return y if hx.is_contiguous() else laid_out(y, elementwise_strides(tuple(y.shape), [hx, y]))


def rnn_tanh_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None) -> Tensor:
    """h (n, hidden) after one step with tanh. input: (n, in), hx: (n, hidden)."""
    of_input, of_state = _gates(input, hx, w_ih, w_hh, b_ih, b_hh)
    return OPS["tanh"](of_input + of_state)


def rnn_relu_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None) -> Tensor:
    """h (n, hidden) after one step with relu. input: (n, in), hx: (n, hidden)."""
    of_input, of_state = _gates(input, hx, w_ih, w_hh, b_ih, b_hh)
    return OPS["relu"](of_input + of_state)


@public(axis=True, autocast=FLOAT32_UNLESS_ASKED, parsed=False)
def softmax(input: Tensor, dim: int, dtype: Any = None, *, out: Tensor | None = None) -> Tensor:
    """Normalised exponentials along `dim`. dtype: cast the input first. Raises: NotImplementedError for integers, IndexError."""
    result = OPS["softmax"](input if dtype is None else cast_to(input, dtype), dim)
    return result if out is None else write_out(out, result, exact=True)


@public(axis=True, autocast=FLOAT32_UNLESS_ASKED, parsed=False)
def log_softmax(input: Tensor, dim: int, dtype: Any = None, *, out: Tensor | None = None) -> Tensor:
    """Logarithm of softmax along `dim`, without underflow. dtype: cast the input first. Raises: NotImplementedError, IndexError."""
    result = OPS["log_softmax"](input if dtype is None else cast_to(input, dtype), dim)
    return result if out is None else write_out(out, result, exact=True)


def threshold(input: Tensor, threshold: Any, value: Any, *, out: Tensor | None = None) -> Tensor:
    """x if x > threshold, else value."""
    result = activation.threshold(input, threshold, value)
    return result if out is None else write_out(out, result)


def conj_physical_(input: Tensor) -> Tensor:
    """Conjugate in place."""
    return write_out(input, OPS["conj"](input), differentiable=False) if input.dtype.is_complex else input


FUNCTIONS: dict[str, Any] = {fn.__name__: fn for fn in (
    embedding, batch_norm, instance_norm, group_norm, layer_norm, convolution, native_layer_norm, native_dropout, grid_sampler,
    embedding_bag, native_batch_norm, native_group_norm, affine_grid_generator, kl_div,
    poisson_nll_loss, margin_ranking_loss, triplet_margin_loss, hinge_embedding_loss,
    cosine_embedding_loss, binary_cross_entropy_with_logits, ctc_loss, lstm_cell, gru_cell, rnn_tanh_cell, rnn_relu_cell, conj_physical_,
    softmax, log_softmax, threshold,
    *(_dropout(fn, name, name.endswith("_")) for fn, names in (
        (dropouts.dropout, "dropout dropout_"), (dropouts.alpha_dropout, "alpha_dropout alpha_dropout_"),
        (dropouts.dropout2d, "feature_dropout feature_dropout_"),
        (dropouts.feature_alpha_dropout, "feature_alpha_dropout feature_alpha_dropout_"),
    ) for name in names.split()),
)} | {"grid_sampler_2d": grid_sampler, "grid_sampler_3d": grid_sampler}  # fmt: skip
