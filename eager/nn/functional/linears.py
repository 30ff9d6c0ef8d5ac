"""Linear maps, embeddings and similarities."""
from __future__ import annotations

from typing import Any

from eager import _native
from eager.base import dtypes
from eager.base.dtypes import c_name, promote_types, scalar_name
from eager.base.spec import size_at
from eager.functions.joining import broadcast_tensors
from eager.optable.asserting import demand
from eager.optable.declaration import cast_to
from eager.optable.out import write_out
from eager.optable.precision import FLOAT32_ON_CUDA, LOWER, Policy, Precision
from eager.optable.table import OPS
from eager.public.record import public
from eager.sparse import SparseTensor
from eager.tape.node import attach

Tensor = Any


@public(autocast=LOWER, parsed=True)
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None, *, out: Tensor | None = None) -> Tensor:
    """x @ weight.T + bias. input: (*, in), weight: (out, in) or (in,), bias: (out,) or None; result (*, out).

    Raises: RuntimeError for shapes that do not multiply.
    """
    if out is not None:
        return write_out(out, OPS["linear"](input, weight, bias), exact=True)
    return OPS["linear"](input, weight, bias)


@public(autocast=Precision(cuda=Policy.PROMOTE, cpu=Policy.KEEP), composed=True, parsed=True)
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """y[o] = x1^T weight[o] x2 + bias[o]. input1: (*, a), input2: (*, b), weight: (out, a, b), bias: (out,).

    Raises: RuntimeError for differing dtypes or shapes that do not fit.
    """
    if not input1.dtype is input2.dtype is weight.dtype:
        raise RuntimeError(f"All tensors must have the same dtype, got input1: {c_name(input1.dtype)}, input2: {c_name(input2.dtype)}, "
                           f"weight: {c_name(weight.dtype)}")  # fmt: skip
    if input1.shape[:-1] != input2.shape[:-1]:
        raise RuntimeError(f"bilinear(): input batch dimensions do not match: got {list(input1.shape)} and {list(input2.shape)}")
    size_at(weight.shape, 1)
    if weight.ndim != 3:
        raise RuntimeError(f"bilinear(): expected a weight of 3 dims (out, in1, in2), got {list(weight.shape)}")
    out, a, b = weight.shape
    if input1.shape[-1] != a or input2.shape[-1] != b:
        raise RuntimeError(f"bilinear(): input1 size does not match weight size: got {input1.shape[-1]}, {input2.shape[-1]} "
                           f"but expected {a}, {b}")  # fmt: skip
    left = OPS["linear"](input1, weight.permute(0, 2, 1).reshape(out * b, a), None)  # (*, out * b)
    y = (left.reshape(*input1.shape[:-1], out, b) * input2.unsqueeze(-2)).sum(-1)
    return y if bias is None else y + bias


@public(lenient=("norm_type",))
def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None,
              norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False) -> Tensor:  # fmt: skip
    """Rows of `weight` at the indices in `input`. input: (*) integer, weight: (n, d); result (*, d).

    padding_idx: this row gets no gradient. max_norm: the used rows are first scaled down to this norm, in place.
    sparse: the gradient of `weight` is a sparse tensor of the used rows (`eager.sparse`); not in captured graphs.
    Raises: IndexError for an index outside [0, n).
    """
    if weight.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    n = weight.shape[0]
    if padding_idx is not None:
        if padding_idx >= n or padding_idx < -n:
            raise AssertionError("Padding_idx must be within num_embeddings")
        padding_idx += n if padding_idx < 0 else 0
    if max_norm is not None:
        _renormalize(weight, input, max_norm, norm_type)
    pad = -1 if padding_idx is None else padding_idx
    if sparse and weight.requires_grad and _native.grad_enabled():
        if scale_grad_by_freq:
            raise RuntimeError("embedding_backward: scale_grad_by_freq not supported with sparse gradients")
        return _sparsely_differentiable(weight, input, pad)
    if scale_grad_by_freq and weight.requires_grad:
        return _scaled_by_frequency(OPS["embedding"](weight, input, pad), input, n)
    return OPS["embedding"](weight, input, pad)


def _sparsely_differentiable(weight: Tensor, index: Tensor, pad: int) -> Tensor:
    """The rows, with a gradient in coordinate format: one element per used row, without the padding row."""
    if weight.is_fake or index.is_fake:
        raise NotImplementedError("embedding(sparse=True): sparse gradients are not implemented in captured graphs")
    rows = OPS["embedding"](weight.detach(), index, pad)
    shape = tuple(weight.shape)

    def backward(grads: tuple[Any, ...]) -> tuple[Any, ...]:
        used_rows, values = index.reshape(-1), grads[0].reshape(-1, *shape[1:])
        if pad >= 0:
            kept = used_rows != pad
            used_rows, values = used_rows[kept], values[kept]
        return (SparseTensor(cast_to(used_rows, dtypes.int64).unsqueeze(0), values, shape),)

    attach([rows], [weight], backward, "EmbeddingBackward0")
    return rows


def _renormalize(weight: Tensor, rows: Tensor, max_norm: float, norm_type: float) -> None:
    before = _native.set_grad_enabled(False)
    try:
        used = rows.reshape(-1).unique()
        values = OPS["index_select"](weight, 0, used)
        norms = values.norm(norm_type, 1, True)
        scaled = OPS["where"](norms > max_norm, values * (max_norm / (norms + 1e-7)), values)
        OPS["index_copy_"](weight.detach(), 0, used, scaled)
    finally:
        _native.set_grad_enabled(before)


def _scaled_by_frequency(rows: Tensor, index: Tensor, n: int) -> Tensor:
    """The identity forwards; backwards, each row's gradient is divided by the number of times the row was used."""
    counts = OPS["bincount"](index.reshape(-1), None, n)
    share = 1.0 / OPS["index_select"](counts, 0, index.reshape(-1)).to(rows.dtype)
    share = share.view(*index.shape, 1)
    return rows * share + (rows - rows * share).detach()


@public(lenient=("norm_type", "include_last_offset"))
def embedding_bag(input: Tensor, weight: Tensor, offsets: Tensor | None = None, max_norm: float | None = None,
                  norm_type: float = 2, scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False,
                  per_sample_weights: Tensor | None = None, include_last_offset: bool = False,
                  padding_idx: int | None = None) -> Tensor:  # fmt: skip
    """Sum, mean or maximum of bags of embeddings.

    input: (bags, n) integer, or (n,) with `offsets` (bags,), the start of each bag. Result: (bags, d).
    Raises: ValueError for another mode or rank; NotImplementedError for per_sample_weights unless mode is "sum".
    """
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if weight.ndim != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.ndim}")
    if offsets is not None and input.ndim == 1 and offsets.ndim != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    if offsets is not None and not offsets.dtype.is_integral:
        raise RuntimeError("Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
                           f"{scalar_name(offsets.dtype)} instead (while checking arguments for embedding_bag)")  # fmt: skip
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError("embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for "
                                  f"mode='sum' (got mode='{mode}'). Please open a feature request on GitHub.")  # fmt: skip
    if per_sample_weights is not None and tuple(per_sample_weights.shape) != tuple(input.shape):
        raise ValueError(f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must have the same shape "
                         f"as the input ({input.shape})")  # fmt: skip
    if input.ndim == 2:
        if offsets is not None:
            raise ValueError("if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length "
                             "sequences. However, found offsets of type <class 'torch.Tensor'>")  # fmt: skip
        bags, width = input.shape
        bag_of = OPS["arange"](0, bags, 1, dtypes.int64, input.device).repeat_interleave(width)
        flat = input.reshape(-1)
        weights = None if per_sample_weights is None else per_sample_weights.reshape(-1)
    elif input.ndim == 1:
        if offsets is None:
            raise ValueError("offsets has to be a 1D Tensor but got None")
        demand(offsets[:1] == 0, RuntimeError, lambda: "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to "
               f"start from position 0. However, got {int(offsets[0])}")  # fmt: skip
        count = input.shape[0]
        demand(offsets[-1:] <= count, RuntimeError, lambda: f"offsets[-1] can not be greater than input's length {count} but got "
               f"offsets[-1] of {int(offsets[-1])}")  # fmt: skip
        bags = offsets.shape[0] - (1 if include_last_offset else 0)
        position = OPS["arange"](0, input.shape[0], 1, dtypes.int64, input.device)
        bag_of = OPS["searchsorted"](cast_to(offsets[:bags], dtypes.int64), position, True) - 1
        flat, weights = input, per_sample_weights
    else:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.ndim}")
    if sparse and mode == "max":
        raise RuntimeError("embedding_bag: max mode does not support sparse weights")
    rows = embedding(flat, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse)
    return _combine_bags(rows, flat, bag_of, int(bags), mode, weights, padding_idx)


def _combine_bags(rows: Tensor, flat: Tensor, bag_of: Tensor, bags: int, mode: str, weights: Tensor | None,
                  padding_idx: int | None) -> Tensor:  # fmt: skip
    kept = None if padding_idx is None else (flat != padding_idx).unsqueeze(1)
    zero = rows.new_zeros((bags, rows.shape[1]))
    if mode == "max":
        if kept is not None:
            rows = OPS["where"](kept, rows, float("-inf"))
        index = bag_of.unsqueeze(1).expand(-1, rows.shape[1])
        best = OPS["scatter_reduce"](zero, 0, index, rows, "amax", False)
        return OPS["where"](best == float("-inf"), 0.0, best)
    if weights is not None:
        rows = rows * weights.unsqueeze(1)
    if kept is not None:
        rows = OPS["where"](kept, rows, 0.0)
    total = OPS["index_add"](zero, 0, bag_of, rows, 1)
    if mode == "sum":
        return total
    ones = rows.new_ones((rows.shape[0],)) if kept is None else kept.squeeze(1).to(rows.dtype)
    counts = OPS["index_add"](rows.new_zeros((bags,)), 0, bag_of, ones, 1)
    return total / OPS["clamp"](counts, 1, None).unsqueeze(1)


@public(parsed=True)
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """int64 (*, num_classes) with a single 1 at each index. num_classes=-1: the largest index plus one.

    Raises: RuntimeError for a dtype other than int64, or an empty tensor without num_classes.
    """
    if tensor.dtype is not dtypes.int64:
        raise RuntimeError(f"one_hot is only applicable to index tensor of type LongTensor, got {tensor.type()}")
    if num_classes == -1:
        if tensor.numel() == 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        num_classes = int(tensor.max().item()) + 1
    demand(tensor >= 0, RuntimeError, "Class values must be non-negative.")
    demand(tensor < num_classes, RuntimeError, "Class values must be smaller than num_classes.")
    columns = OPS["arange"](0, num_classes, 1, dtypes.int64, tensor.device)
    return cast_to(tensor.contiguous().unsqueeze(-1) == columns, dtypes.int64)


@public(autocast=FLOAT32_ON_CUDA, composed=True, parsed=True)
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Cosine of the angle between x1 and x2 along `dim`; each norm is at least eps. x1 and x2 broadcast.

    Raises: RuntimeError for a negative eps or dtypes that are not floating.
    """
    if not eps >= 0:
        raise RuntimeError(f"eps must be non-negative, got: {eps}")
    common = promote_types(x1.dtype, x2.dtype)
    if not common.is_floating_point:
        raise RuntimeError(f"expected common dtype to be floating point, yet common dtype is {scalar_name(common)}")
    x1, x2 = cast_to(x1, common), cast_to(x2, common)
    if tuple(x1.shape) != tuple(x2.shape):
        x1, x2 = broadcast_tensors(x1, x2)
    a = OPS["clamp"](x1.norm(2, dim, True), eps, None)
    b = OPS["clamp"](x2.norm(2, dim, True), eps, None)
    return ((x1 / a) * (x2 / b)).sum(dim)


@public(composed=True, parsed=True)
def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """p-norm of x1 - x2 + eps along the last dim. (*, d), (*, d) -> (*), or (*, 1) with keepdim."""
    return (x1 - x2 + eps).norm(p, -1, keepdim)


@public(autocast=FLOAT32_ON_CUDA, composed=True, parsed=True)
def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """p-norm distances of all pairs of rows i < j, in row-major order of (i, j). input: (n, d); result (n (n - 1) / 2,).

    Raises: RuntimeError for another rank or a negative p.
    """
    if input.ndim != 2:
        raise RuntimeError("pdist only supports 2D tensors, got: " f"{input.ndim}D")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    n = input.shape[0]
    firsts = [i for i in range(n) for _ in range(i + 1, n)]
    seconds = [j for i in range(n) for j in range(i + 1, n)]
    a = input.new_tensor(firsts, dtype=dtypes.int64)
    b = input.new_tensor(seconds, dtype=dtypes.int64)
    return (OPS["index_select"](input, 0, a) - OPS["index_select"](input, 0, b)).norm(p, -1)
