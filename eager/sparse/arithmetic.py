"""Arithmetic of sparse tensors: sums, products, elementwise functions, reductions.

Every function takes the arguments of torch's function of its name, with a sparse tensor for at least one. It
computes with ops of dense tensors on positions and values, so that gradients reach the values and the dense operands.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eager._tensor.tensor import Tensor
from eager.base import dtypes
from eager.base.dtypes import result_type
from eager.base.spec import normalize_dim
from eager.optable.declaration import is_number
from eager.optable.table import OPS
from eager.sparse.geometry import result_type_of, sparse_mask, t, to_sparse, unsqueeze, values_at
from eager.sparse.tensor import SparseTensor, linear_positions

# ---- sums ----


def add(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """input + alpha * other: sparse for two sparse tensors, dense for a dense `input`.

    Raises: RuntimeError for sizes that differ, and for a sparse `input` with a dense `other`.
    """
    if not isinstance(other, SparseTensor):
        raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
    if not isinstance(input, SparseTensor):
        _same_size([] if is_number(input) else list(input.shape), other, "dense-sparse")
        return input + (other if alpha == 1 else mul(other, alpha)).to_dense()
    _same_size(list(input.shape), other, "op2-sparse")
    if input.sparse_dim() != other.sparse_dim():
        raise RuntimeError(f"add: expected 'self' and 'other' to have same number of sparse dimensions, but got {input.sparse_dim()} "
                           f"and {other.sparse_dim()}")  # fmt: skip
    scaled = other._elements if alpha == 1 else other._elements * alpha
    dtype = result_type_of((input._elements, scaled))
    elements = OPS["cat"]([OPS["to_dtype"](input._elements, dtype), OPS["to_dtype"](scaled, dtype)], 0)
    both = SparseTensor(OPS["cat"]([input._positions, other._positions], 1), elements, input.shape)
    return both.coalesce() if input._is_coalesced and other._is_coalesced else both


def _same_size(size: list[int], other: SparseTensor, which: str) -> None:
    if size != list(other.shape):
        raise RuntimeError(f"add: expected 'self' and 'other' to have same size, but self has size {size} while other has size "
                           f"{list(other.shape)} (FYI: {which} addition does not currently support broadcasting)")  # fmt: skip


def sub(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """input - alpha * other."""
    return add(input, other, alpha=-alpha)


def rsub(input: SparseTensor, other: Any) -> Any:
    """other - input."""
    return add(other, neg(input))


def add_(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """`add` in place."""
    if isinstance(input, SparseTensor):
        return input.take(add(input, other, alpha=alpha))
    _same_size(list(input.shape), other, "dense-sparse")
    return input.add_(other.to_dense(), alpha=alpha)


def sub_(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """`sub` in place."""
    return add_(input, other, alpha=-alpha)


# ---- elementwise products ----


def mul(input: Any, other: Any) -> SparseTensor:
    """The elementwise product, at the positions of the sparse factor.

    other: a number or a tensor that broadcasts to it.
    """
    if not isinstance(input, SparseTensor):
        input, other = other, input
    if isinstance(other, SparseTensor):
        return sparse_mask(other.to_dense() * input.to_dense(), input.coalesce())
    if is_number(other) or other.ndim == 0:
        return input.with_values(input._elements * other)
    if other.ndim > input.ndim:
        raise NotImplementedError(f"mul: a sparse tensor of {input.ndim} dims times a dense one of {other.ndim} is not implemented")
    return input.with_values(input._elements * values_at(OPS["expand"](other, tuple(input.shape)), input._positions))


def mul_(input: Any, other: Any) -> Any:
    """`mul` in place."""
    if isinstance(input, SparseTensor):
        return input.take(mul(input, other))
    return input.mul_(other.to_dense())


def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> SparseTensor:
    """A sparse tensor divided by a number or a 0-d tensor. Raises: RuntimeError for another divisor."""
    if (not is_number(other) and other.ndim) or not isinstance(input, SparseTensor):
        shape = list(getattr(other, "shape", ()))
        raise RuntimeError(f"Sparse division requires a scalar or zero-dim dense tensor divisor (got shape {shape} for divisor)")
    if rounding_mode is not None:
        input = input.coalesce()  # rounding does not distribute over the summands of a repeated position
    return input.with_values(input._elements.div(other, rounding_mode=rounding_mode))


def floor_divide(input: SparseTensor, other: Any) -> SparseTensor:
    """`div` with rounding_mode="floor"."""
    return div(input, other, rounding_mode="floor")


def pow(input: SparseTensor, exponent: Any) -> SparseTensor:
    """The stored elements to a power. Raises: RuntimeError for an exponent of 0."""
    if not is_number(exponent):
        raise NotImplementedError("pow: of a sparse tensor only powers by a number are implemented")
    if exponent == 0:
        raise RuntimeError("pow: cannot raise to zeroth power on sparse tensor; it would make the result tensor dense")
    coalesced = input.coalesce()
    return coalesced.with_values(coalesced._elements.pow(exponent))


def neg(input: SparseTensor) -> SparseTensor:
    """The negated tensor."""
    return input.with_values(-input._elements)


def positive(input: SparseTensor) -> SparseTensor:
    """The tensor itself."""
    return input


def dropout(input: SparseTensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> SparseTensor:
    """The tensor itself outside training. Raises: NotImplementedError in training."""
    if training and p > 0:
        raise NotImplementedError("dropout of a sparse tensor is not implemented in training; drop of its values() instead")
    return input


# ---- matrix products ----


def mm(input: Any, mat2: Any) -> Any:
    """(m, k) times (k, n): dense if a factor is dense, sparse if both are sparse.

    Raises: RuntimeError for sizes that do not fit.
    """
    if input.ndim != 2 or mat2.ndim != 2:
        raise RuntimeError(f"mm: expected matrices, got sizes {list(input.shape)} and {list(mat2.shape)}")
    if input.shape[1] != mat2.shape[0]:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({input.shape[0]}x{input.shape[1]} and "
                           f"{mat2.shape[0]}x{mat2.shape[1]})")  # fmt: skip
    if not isinstance(input, SparseTensor):
        return OPS["permute"](mm(t(mat2), OPS["permute"](input, (1, 0))), (1, 0))
    if input.sparse_dim() != 2:
        raise RuntimeError(f"mm: expected a matrix with 2 sparse dims, but it has {input.sparse_dim()}")
    if isinstance(mat2, SparseTensor):
        return to_sparse(mm(input, mat2.to_dense()))
    row, column = input.rows()
    terms = OPS["unsqueeze"](input._elements, 1) * OPS["index_select"](mat2, 0, column)
    blank = OPS["full"]((input.shape[0], mat2.shape[1]), 0, result_type(input._elements, mat2), input.device)
    return OPS["index_add"](blank, 0, row, terms)


def mv(input: Any, vec: Any) -> Any:
    """(m, k) times (k,): a dense vector (m,)."""
    return OPS["squeeze"](mm(input, OPS["unsqueeze"](vec, 1)), (1,))


def matmul(input: Any, other: Any) -> Any:
    """A sparse matrix with a dense vector, matrix or batch of matrices, on either side."""
    if not isinstance(input, SparseTensor):
        if not isinstance(other, SparseTensor):
            return OPS["matmul"](input, other)
        if input.ndim == 1:
            return mv(t(other), input)
        rows = input.reshape(-1, input.shape[-1])
        return mm(rows, other).reshape(*input.shape[:-1], other.shape[-1])
    if other.ndim == 1:
        return mv(input, other)
    if input.ndim == 3:
        return bmm(input, other)
    if other.ndim == 2 or isinstance(other, SparseTensor):
        return mm(input, other)
    batch = other.movedim(-2, 0)
    found = mm(input, batch.reshape(batch.shape[0], -1))
    return found.reshape(found.shape[0], *batch.shape[1:]).movedim(0, -2)


def bmm(input: SparseTensor, mat2: Any) -> Any:
    """(b, m, k), sparse in all dims, times dense (b, k, n): dense (b, m, n)."""
    if not isinstance(input, SparseTensor) or input.sparse_dim() != 3:
        sparse_ndim = input.sparse_dim() if isinstance(input, SparseTensor) else 0
        raise RuntimeError(f"bmm_sparse: Tensor 'self' must have 3 sparse dims, but has {sparse_ndim}")
    b, m, k = input.shape
    if mat2.ndim != 3 or (mat2.shape[0], mat2.shape[1]) != (b, k):
        raise RuntimeError(f"bmm_sparse: expected a dense tensor of size [{b}, {k}, n], got {list(mat2.shape)}")
    batch, row, column = input.rows()
    terms = OPS["unsqueeze"](input._elements, 1) * OPS["index"](mat2, [batch, column])
    blank = OPS["full"]((b * m, mat2.shape[2]), 0, result_type(input._elements, mat2), input.device)
    return OPS["view"](OPS["index_add"](blank, 0, batch * m + row, terms), (b, m, mat2.shape[2]))


def addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """beta * input + alpha * (mat1 @ mat2), for a dense `input` and one sparse matrix."""
    product = matmul(mat1, mat2)
    if isinstance(input, SparseTensor) or isinstance(product, SparseTensor):
        raise RuntimeError("addmm_sparse_dense: expected strided result tensor, got tensor with layout Sparse")
    return input * beta + product * alpha


def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    """input @ weight.T + bias, for a sparse `input` or `weight`."""
    product = matmul(input, t(weight) if isinstance(weight, SparseTensor) else OPS["permute"](weight, (1, 0)))
    return product if bias is None else product + bias


def smm(input: SparseTensor, mat: Any) -> SparseTensor:
    """The product with a dense matrix, as a sparse tensor."""
    return to_sparse(mm(input, mat))


def hspmm(mat1: SparseTensor, mat2: Any) -> SparseTensor:
    """The product with a dense matrix, as a tensor with sparse rows."""
    return to_sparse(mm(mat1, mat2), 1)


# ---- reductions ----


def sum(input: SparseTensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The sum of all elements, dense; or over dims, sparse if a sparse dim remains."""
    if dim is None or dim == ():
        return input._elements.sum(dtype=dtype)
    dims = sorted({normalize_dim(k, input.ndim) for k in (dim if isinstance(dim, (tuple, list)) else (dim,))})
    d = input.sparse_dim()
    if dtype is None and not (input.is_floating_point() or input.is_complex()):
        dtype = dtypes.int64
    dense = [k - d + 1 for k in dims if k >= d]
    gone = [k for k in dims if k < d]
    if len(gone) == d:
        found = input._elements.sum([0, *dense], dtype=dtype)
    else:
        elements = input._elements if dtype is None else OPS["to_dtype"](input._elements, dtype)
        elements = elements.sum(dense) if dense else elements
        rows = [row for k, row in enumerate(input.rows()) if k not in gone]
        size = [n for k, n in enumerate(input.shape) if k not in dims]
        found = SparseTensor(OPS["stack"](rows, 0), elements, size, input._is_coalesced and not gone).coalesce()
    for k in dims if keepdim else ():
        found = unsqueeze(found, k) if isinstance(found, SparseTensor) else OPS["unsqueeze"](found, k)
    return found


def norm(input: SparseTensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    """The norm of all elements. Raises: RuntimeError for a norm over part of the dims."""
    dims = [] if dim is None else [normalize_dim(k, input.ndim) for k in (dim if isinstance(dim, (tuple, list)) else (dim,))]
    if dims and sorted(dims) != list(range(input.ndim)):
        raise RuntimeError("norm_sparse currently only supports full reductions, so 'dim' must either be empty or contain all dimensions "
                           "of the input")  # fmt: skip
    return input.coalesce()._elements.norm(2 if p == "fro" else p, dtype=dtype)


def any(input: SparseTensor) -> Any:
    """Whether any element is nonzero."""
    return (input.coalesce()._elements != 0).any()


def dist(input: SparseTensor, other: SparseTensor, p: Any = 2) -> Any:
    """The norm of the difference."""
    return norm(sub(input, other), p)


def is_same_size(input: Any, other: Any) -> bool:
    """Whether both sizes are equal."""
    return tuple(input.shape) == tuple(other.shape)


# ---- elementwise functions ----


def of_elements(name: str) -> Callable[..., SparseTensor]:
    """The elementwise function `name`, which maps 0 to 0."""
    method = getattr(Tensor, name)

    def call(input: SparseTensor, *args: Any, **kwargs: Any) -> SparseTensor:
        coalesced = input.coalesce()
        return coalesced.with_values(method(coalesced._elements, *args, **kwargs))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = of_elements.__doc__
    return call


def in_place(name: str, fn: Callable[..., SparseTensor]) -> Callable[..., SparseTensor]:
    """`fn`, writing its result into the first argument."""

    def call(input: SparseTensor, *args: Any, **kwargs: Any) -> SparseTensor:
        return input.take(fn(input, *args, **kwargs))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = in_place.__doc__
    return call


# ---- rows ----


def softmax(input: SparseTensor, dim: int, *, dtype: Any = None) -> SparseTensor:
    """The softmax of the stored elements along a dim; missing elements count as minus infinity."""
    return _softmax(input, dim, dtype, False)


def log_softmax(input: SparseTensor, dim: int, *, dtype: Any = None) -> SparseTensor:
    """The logarithm of `softmax`."""
    return _softmax(input, dim, dtype, True)


def _softmax(input: SparseTensor, dim: int, dtype: Any, log: bool) -> SparseTensor:
    x = input.to(dtypes.chosen(dtype, input.dtype)).coalesce()
    d, dim = x.sparse_dim(), normalize_dim(dim, x.ndim)
    if dim >= d:
        return x.with_values(OPS["log_softmax" if log else "softmax"](x._elements, dim - d + 1))
    rows = x.rows()
    others = [k for k in range(d) if k != dim]
    positions = OPS["stack"]([rows[k] for k in others], 0) if others else x._positions[:0]
    lines = linear_positions(SparseTensor(positions, x._elements, [x.shape[k] for k in others]))
    stored, line, _ = OPS["unique"](lines, None)
    blank = OPS["full"]((stored.shape[0], *x._elements.shape[1:]), 0, x.dtype, x.device)
    highest = blank.index_reduce(0, line, x._elements.detach(), "amax", include_self=False)
    shifted = x._elements - OPS["index_select"](highest, 0, line)
    powers = OPS["exp"](shifted)
    sums = OPS["index_select"](OPS["index_add"](blank, 0, line, powers), 0, line)
    return x.with_values(shifted - OPS["log"](sums) if log else powers / sums)
