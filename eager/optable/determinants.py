"""Determinants of matrices (*, n, n), with gradients that are exact at every rank.

The gradient of det is the matrix of cofactors, and the cofactors have a derivative along each direction. Both are polynomials of
the matrix. They are computed in the frame of its singular vectors, without a division, so a singular matrix needs no
special case: see Stewart, "On the adjugate matrix", Linear Algebra Appl. 283, 1998. Derivatives of third order use the inverse.
"""
from __future__ import annotations

from typing import Any

from eager.base.spec import SpecLike, TensorSpec
from eager.optable.linalg import check_square, invertible_samples, spec_like
from eager.optable.matmul import transpose_last
from eager.optable.registry import Kind
from eager.optable.shape import row_major
from eager.optable.table import OPS, declare


def _det_meta(x: SpecLike) -> TensorSpec:
    check_square("linalg.det", x)
    return spec_like(x, tuple(x.shape[:-2]))


def _per_matrix(v: Any) -> Any:
    """(*) -> (*, 1, 1)."""
    return OPS["unsqueeze"](OPS["unsqueeze"](v, v.ndim), v.ndim + 1)


def _product(x: Any, other: Any) -> Any:
    return OPS["matmul"](x, other)


def _trace(x: Any) -> Any:
    """(*, n, n) -> (*, 1, 1)."""
    diagonal = OPS["diagonal"](x, 0, x.ndim - 2, x.ndim - 1)
    return _per_matrix(OPS["sum"](diagonal, (diagonal.ndim - 1,)))


def _frame(xp: Any, x: Any) -> tuple[Any, Any, Any, Any]:
    """u, s, vh of the singular value decomposition, and det(u) det(vh) as (*, 1, 1). nan for a matrix that is not finite."""
    finite = xp.isfinite(x).all(axis=(-2, -1))[..., None, None]
    u, s, vh = xp.linalg.svd(xp.where(finite, x, 0))
    phase = (xp.linalg.det(u) * xp.linalg.det(vh))[..., None, None]
    return u, s, vh, xp.where(finite, phase, xp.nan)


def _products_of_others(xp: Any, s: Any) -> Any:
    """(*, n) -> (*, n): the product of all elements but one, for each."""
    ones = xp.ones_like(s[..., :1])
    before = xp.cumprod(xp.concatenate([ones, s[..., :-1]], axis=-1), axis=-1)
    after = xp.cumprod(xp.concatenate([ones, s[..., :0:-1]], axis=-1), axis=-1)[..., ::-1]
    return before * after


def _products_of_other_pairs(xp: Any, s: Any) -> Any:
    """(*, n) -> (*, n, n): the product of all elements but i and j; 0 on the diagonal."""
    n = s.shape[-1]
    without_i = xp.where(xp.eye(n, dtype=bool), s.dtype.type(1), s[..., None, :])
    return xp.where(xp.eye(n, dtype=bool), s.dtype.type(0), _products_of_others(xp, without_i))


def _cofactor(xp: Any, out: Any, x: Any) -> None:
    if x.size:
        u, s, vh, phase = _frame(xp, x)
        others = _products_of_others(xp, s).astype(x.dtype)
        xp.copyto(out, phase * xp.matmul(xp.conj(u) * others[..., None, :], xp.conj(vh)))


def _cofactor_derivative(xp: Any, out: Any, x: Any, direction: Any) -> None:
    if not x.size:
        return
    u, s, vh, phase = _frame(xp, x)
    inner = xp.matmul(xp.matmul(xp.conj(xp.swapaxes(u, -2, -1)), direction), xp.conj(xp.swapaxes(vh, -2, -1)))
    pairs = _products_of_other_pairs(xp, s).astype(x.dtype)
    turned = -pairs * xp.swapaxes(inner, -2, -1)
    diagonal = xp.arange(s.shape[-1])
    turned[..., diagonal, diagonal] = xp.matmul(pairs, xp.diagonal(inner, 0, -2, -1)[..., None])[..., 0]
    xp.copyto(out, phase * xp.matmul(xp.matmul(xp.conj(u), turned), xp.conj(vh)))


def _third_order(g: Any, x: Any, direction: Any) -> Any:
    """Gradient by x of the sum of g * cofactor_derivative(x, direction): the form of third order, for an invertible x."""
    inverse = OPS["inverse"](x)
    left, right = _product(inverse, g), _product(inverse, direction)
    both = _product(left, right)
    a, b, ab = _trace(left), _trace(right), _trace(both)
    terms = (a * b - ab) * inverse - _product(b * left + a * right - both - _product(right, left), inverse)
    return _per_matrix(OPS["det"](x)) * transpose_last(terms)


def _direction_samples(make: Any) -> Any:
    yield make.invertible(3, 3), make(3, 3)
    yield make.invertible(2, 3, 3).transpose(1, 2), make(2, 3, 3)
    yield make.invertible(0, 2, 2), make(0, 2, 2)


def _cofactor_meta(x: SpecLike, *direction: SpecLike) -> TensorSpec:
    check_square("linalg.det", x)
    return row_major(x)


# The derivative of `cofactor` at x along a direction. It is symmetric, so its gradient by the direction is its value along g.
COFACTOR_DERIVATIVE = declare(
    "cofactor_derivative(Tensor x, Tensor direction) -> Tensor", Kind.OPAQUE, meta=_cofactor_meta, kernel=_cofactor_derivative,
    vjp={"x": _third_order, "direction": lambda g, x: OPS["cofactor_derivative"](x, g)}, samples=_direction_samples,
    batch="last_dims")  # fmt: skip


# The matrix of signed minors: the gradient of the determinant.
COFACTOR = declare("cofactor(Tensor x) -> Tensor", Kind.OPAQUE, meta=_cofactor_meta, kernel=_cofactor,
                   vjp={"x": lambda g, x: OPS["cofactor_derivative"](x, g)}, samples=invertible_samples, batch="last_dims")  # fmt: skip

DET = declare("det(Tensor x) -> Tensor", Kind.OPAQUE, meta=_det_meta, kernel=lambda xp, out, x: xp.copyto(out, xp.linalg.det(x)),
              vjp={"x": lambda g, x: _per_matrix(g) * OPS["cofactor"](x)}, samples=invertible_samples, batch="last_dims")  # fmt: skip


def _slogdet_meta(x: SpecLike) -> tuple[TensorSpec, TensorSpec]:
    check_square("linalg.slogdet", x)
    shape = tuple(x.shape[:-2])
    return spec_like(x, shape), spec_like(x, shape, x.dtype.to_real())


def _slogdet(xp: Any, out: Any, x: Any) -> None:
    sign, logarithm = xp.linalg.slogdet(x)
    xp.copyto(out[0], sign)
    xp.copyto(out[1], logarithm)


def _slogdet_vjp(gs: Any, x: Any, y: Any) -> Any:
    """The sign of a complex determinant turns with its angle; the sign of a real one is constant. nan for a singular matrix."""
    g = OPS["complex"](gs[1], OPS["imag"](gs[0] * y)) if x.dtype.is_complex else gs[1]
    return _per_matrix(g) * transpose_last(OPS["inverse_status"](x)[0])


SLOGDET = declare("slogdet(Tensor x) -> (Tensor, Tensor)", Kind.OPAQUE, meta=_slogdet_meta, kernel=_slogdet,
                  vjp={"x": _slogdet_vjp}, samples=invertible_samples, batch="last_dims")  # fmt: skip
