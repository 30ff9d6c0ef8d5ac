"""What several distributions need: broadcasting parameters, probabilities and logits, lazily computed attributes."""
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
    """Numbers and tensors, as tensors of one shape. Numbers take dtype and device of the first tensor, or the default.

    Raises: ValueError for anything else.
    """
    if not all(isinstance(v, (Tensor, int, float)) for v in values):
        raise ValueError("Input arguments must all be instances of Number, torch.Tensor or objects implementing __torch_function__.")
    like = next((v for v in values if isinstance(v, Tensor)), None)
    if like is None:
        return tuple(broadcast_tensors(*(tensor(v, dtype=get_default_dtype()) for v in values)))
    made = [v if isinstance(v, Tensor) else tensor(v, dtype=like.dtype, device=like.device) for v in values]
    return tuple(broadcast_tensors(*made))


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities away from 0 and 1 by the dtype's eps."""
    eps = finfo(probs.dtype).eps
    return probs.clamp(eps, 1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Log odds of a binary distribution, log probabilities of a categorical one."""
    clamped = clamp_probs(probs)
    return clamped.log() - (-clamped).log1p() if is_binary else clamped.log()


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """The inverse of `probs_to_logits`; along the last dim for a categorical distribution."""
    return logits.sigmoid() if is_binary else logits.softmax(-1)


def sum_rightmost(value: Any, dims: int) -> Any:
    """`value` summed over its last `dims` dims."""
    return value if dims == 0 else value.reshape(*value.shape[: value.ndim - dims], -1).sum(-1)


_sum_rightmost = sum_rightmost  # torch's name: libraries import it


def _standard_normal(shape: Sequence[int], dtype: Any, device: Any) -> Tensor:
    """Independent draws of mean 0 and variance 1. Libraries import it under torch's name."""
    return randn(shape, dtype=dtype, device=device)


class lazy_property:  # noqa: N801 - torch's name
    """An attribute computed on first access, from then on an ordinary one of the instance."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        self.__doc__ = wrapped.__doc__
        self.__name__ = wrapped.__name__

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        with enable_grad():  # the value outlives the no_grad block that may have asked for it first
            value = self.wrapped(instance)
        instance.__dict__[self.__name__] = value
        return value


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The entries on and below a diagonal, row by row. mat: (*, d, d). Result: (*, n)."""
    n = mat.shape[-1]
    if not (-n <= diag < n):
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    rows, columns = tril_indices(n, n, diag)
    return mat[..., rows, columns]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """The inverse of `tril_matrix_to_vec`, zeros above the diagonal. vec: (*, n). Result: (*, d, d)."""
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
    """x^T (L L^T)^-1 x for lower-triangular L. lower: (*, d, d), x: (*, d), of batch shapes that broadcast."""
    from_left = solve_lower(lower, x.unsqueeze(-1)).squeeze(-1)
    return (from_left * from_left).sum(-1)


def solve_lower(lower: Tensor, b: Tensor) -> Tensor:
    """L^-1 b. lower: (*, d, d), b: (*, d, k)."""
    shape = broadcast_shapes(lower.shape[:-2], b.shape[:-2])
    return OPS["solve_triangular"](lower.expand(*shape, *lower.shape[-2:]), b.expand(*shape, *b.shape[-2:]), False, False)


def precision_to_scale_tril(precision: Tensor) -> Tensor:
    """The Cholesky factor of the inverse of a precision matrix, without inverting it.

    The factor of the reversed matrix, reversed again, is the upper factor; its inverse transposed is lower.
    """
    lower = OPS["cholesky"](precision.flip((-2, -1)))
    upper = lower.flip((-2, -1)).transpose(-2, -1)
    identity = diag_embed(upper.new_ones(upper.shape[:-1]))
    return OPS["solve_triangular"](upper, identity, False, False)
