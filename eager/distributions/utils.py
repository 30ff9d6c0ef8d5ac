"""Helpers of distributions: broadcasting of parameters, probabilities and logits, lazily computed attributes."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from eager._tensor.tensor import Tensor
from eager.autograd.grad_mode import enable_grad
from eager.base.spec import broadcast_shapes
from eager.distributions._functions import (
    broadcast_tensors,
    diag_embed,
    finfo,
    get_default_dtype,
    randn,
    tensor,
    tril_indices,
)
from eager.optable.table import OPS

__all__ = ["broadcast_all", "clamp_probs", "lazy_property", "logits_to_probs", "probs_to_logits", "tril_matrix_to_vec",
           "vec_to_tril_matrix"]  # fmt: skip


def broadcast_all(*values: Any) -> tuple[Any, ...]:
    """Numbers and tensors as tensors of one shape. Numbers get the dtype and device of the first tensor, or the defaults.

    Raises: ValueError for other types.
    """
    if not all(isinstance(v, (Tensor, int, float)) for v in values):
        raise ValueError("Input arguments must all be instances of Number, torch.Tensor or objects implementing __torch_function__.")
    like = next((v for v in values if isinstance(v, Tensor)), None)
    if like is None:
        return tuple(broadcast_tensors(*(tensor(v, dtype=get_default_dtype()) for v in values)))
    made = [v if isinstance(v, Tensor) else tensor(v, dtype=like.dtype, device=like.device) for v in values]
    return tuple(broadcast_tensors(*made))


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities clamped to [eps, 1 - eps], eps being the dtype's epsilon."""
    eps = finfo(probs.dtype).eps
    return probs.clamp(eps, 1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Log odds of a binary distribution, log probabilities of a categorical one."""
    clamped = clamp_probs(probs)
    return clamped.log() - (-clamped).log1p() if is_binary else clamped.log()


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """The inverse of `probs_to_logits`: sigmoid, or softmax along the last dim for a categorical distribution."""
    return logits.sigmoid() if is_binary else logits.softmax(-1)


def sum_rightmost(value: Any, dims: int) -> Any:
    """`value` summed over its last `dims` dims."""
    return value if dims == 0 else value.reshape(*value.shape[: value.ndim - dims], -1).sum(-1)


_sum_rightmost = sum_rightmost  # libraries import torch's name


def _standard_normal(shape: Sequence[int], dtype: Any, device: Any) -> Tensor:
    """Standard normal draws of `shape`. Libraries import it by torch's name."""
    return randn(shape, dtype=dtype, device=device)


class lazy_property:  # noqa: N801 - torch's name
    """An attribute that is computed at its first access and then stored on the instance."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        self.__doc__ = wrapped.__doc__
        self.__name__ = wrapped.__name__

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        with enable_grad():  # the stored value outlives a no_grad block around its first access
            value = self.wrapped(instance)
        instance.__dict__[self.__name__] = value
        return value


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The entries on and below a diagonal, row by row.

    mat: (*, d, d). Result: (*, n). Raises: ValueError for a diag out of range.
    """
    n = mat.shape[-1]
    if not (-n <= diag < n):
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    rows, columns = tril_indices(n, n, diag)
    return mat[..., rows, columns]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """The inverse of `tril_matrix_to_vec`, with zeros above the diagonal. vec: (*, n). Result: (*, d, d).

    Raises: ValueError if n is not the size of a triangular part.
    """
    n = (-(1 + 2 * diag) + ((1 + 2 * diag) ** 2 + 8 * vec.shape[-1] + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    if round(n) - n > finfo(vec.dtype).eps:
        raise ValueError(f"The size of last dimension is {vec.shape[-1]} which cannot be expressed as the lower triangular part of a "
                         "square D x D matrix.")  # fmt: skip
    size = round(n)
    mat = vec.new_zeros((*vec.shape[:-1], size, size))
    rows, columns = tril_indices(size, size, diag)
    mat[..., rows, columns] = vec
    return mat


def batch_mahalanobis(lower: Tensor, x: Tensor) -> Tensor:
    """x^T (L L^T)^-1 x for lower-triangular L. lower: (*, d, d), x: (*, d); their batch shapes broadcast."""
    from_left = solve_lower(lower, x.unsqueeze(-1)).squeeze(-1)
    return (from_left * from_left).sum(-1)


def solve_lower(lower: Tensor, b: Tensor) -> Tensor:
    """L^-1 b. lower: (*, d, d), b: (*, d, k)."""
    shape = broadcast_shapes(lower.shape[:-2], b.shape[:-2])
    return OPS["solve_triangular"](lower.expand(*shape, *lower.shape[-2:]), b.expand(*shape, *b.shape[-2:]), False, False)


def precision_to_scale_tril(precision: Tensor) -> Tensor:
    """The Cholesky factor of the inverse of a precision matrix (*, d, d), without inverting the matrix.

    The Cholesky factor of the row- and column-reversed matrix, reversed back, is the upper factor; the transpose of its
    inverse is the result.
    """
    lower = OPS["cholesky"](precision.flip((-2, -1)))
    upper = lower.flip((-2, -1)).transpose(-2, -1)
    identity = diag_embed(upper.new_ones(upper.shape[:-1]))
    return OPS["solve_triangular"](upper, identity, False, False)
