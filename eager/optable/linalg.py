"""Factorisations and solvers of matrices (*, n, m) through LAPACK, with their gradients.

Leading dims are batches and, in ops of two operands, already broadcast. Formulas follow
M. Giles, "An extended collection of matrix derivative results", 2008, and of torch's documentation
for factorisations that are unique only up to signs.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from eager.base import dtypes
from eager.base.dtypes import scalar_name
from eager.base.spec import SpecLike, TensorSpec
from eager.optable.declaration import cast_to, zeros
from eager.optable.matmul import transpose_last
from eager.optable.memory import linalg_errors
from eager.optable.precision import FLOAT32_ON_CPU, FLOAT32_UNLESS_ASKED
from eager.optable.registry import Kind
from eager.optable.shape import row_major
from eager.optable.sums import total
from eager.optable.table import OPS, declare


class _LinAlgError(RuntimeError):
    """A matrix that has no inverse or factorisation of the requested kind."""


LinAlgError = _LinAlgError  # torch's class has the name with an underscore


def first_zero_pivot(x: Any) -> int:
    """The number, from 1, of a singular matrix's first zero pivot; of the last pivot where rounding hides the zero."""
    packed, _ = lu_array(np, x)
    zero = np.flatnonzero(np.diagonal(packed) == 0)
    return int(zero[0]) + 1 if zero.size else int(x.shape[-1])


def first_indefinite_minor(x: Any) -> int:
    """The order of the first leading minor that has no Cholesky factor."""
    for k in range(1, x.shape[-1]):
        try:
            np.linalg.cholesky(x[:k, :k])
        except np.linalg.LinAlgError:
            return k
    return int(x.shape[-1])


def _failure(who: str, x: Any, compute: Callable[[Any], Any], what: Callable[[Any], str]) -> LinAlgError:
    """The error for the first matrix of `x` that `compute` fails on. what: the text for that matrix."""
    x = x.get() if hasattr(x, "get") else x  # from a device
    for at in np.ndindex(*x.shape[:-2]):
        try:
            compute(x[at])
        except np.linalg.LinAlgError:
            batch = f"(Batch element {int(np.ravel_multi_index(at, x.shape[:-2]))}): " if at else ""
            return LinAlgError(f"{who}: {batch}{what(x[at])}")
    return LinAlgError(f"{who}: {what(x.reshape(-1, *x.shape[-2:])[0])}")


# The LAPACK wrappers of torch that report a dtype as not implemented: first for halves alone, then for integers too.
_HALVES_UNKNOWN: Final = {
    "linalg.det": "lu_cpu", "linalg.solve": "lu_cpu", "linalg.cholesky": "cholesky_cpu", "linalg.qr": "geqrf_cpu",
    "linalg.svd": "linalg_svd_cpu", "linalg.eig": "linalg_eig_out_cpu", "linalg.lu_solve": "linalg.lu_solve_cpu",
    "torch.linalg.ldl_factor_ex": "ldl_factor_kernel_cpu", "torch.linalg.ldl_solve": "ldl_solve_kernel_cpu",
}  # fmt: skip
_FLOATS_ALONE: Final = {
    "linalg.solve_triangular": "triangular_solve_cpu", "geqrf": "geqrf_cpu", "linalg.eigh": "linalg_eigh_cpu",
    "linalg.lu_factor": "lu_cpu", "cholesky_solve": "cholesky_solve_cpu", "cholesky_inverse": "cholesky_inverse_out_cpu",
    "torch.linalg.householder_product": "orgqr_cpu",
}  # fmt: skip
_LAPACK_DTYPES: Final = (dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128)


def check_matrix(who: str, x: SpecLike, name: str = "A", *, halves: bool = False) -> None:
    """Refuse a tensor that is not a batch of floating matrices. halves: 16-bit floats are accepted. Raises RuntimeError."""
    if x.ndim < 2:
        raise RuntimeError(f"{who}: The input tensor {name} must have at least 2 dimensions.")
    check_lapack_dtype(who, x, halves=halves)


def check_lapack_dtype(who: str, x: SpecLike, *, halves: bool = False) -> None:
    """Refuse integers and, without `halves`, 16-bit floats. Raises RuntimeError; NotImplementedError for torch's wrappers that do."""
    if x.dtype in _LAPACK_DTYPES:
        return
    if who in _FLOATS_ALONE:
        raise dtypes.no_kernel(_FLOATS_ALONE[who], x.dtype)
    if not x.dtype.is_floating_point:
        raise RuntimeError(f"{who}: Expected a floating point or complex tensor as input. Got {scalar_name(x.dtype)}")
    if who in _HALVES_UNKNOWN:
        raise dtypes.no_kernel(_HALVES_UNKNOWN[who], x.dtype)
    if not halves:
        raise RuntimeError(f"{who}: Low precision dtypes not supported. Got {scalar_name(x.dtype)}")


def check_square(who: str, x: SpecLike, name: str = "A", *, halves: bool = False) -> None:
    """Refuse a tensor that is not a batch of square matrices. Raises RuntimeError."""
    check_matrix(who, x, name, halves=halves)
    if x.shape[-1] != x.shape[-2]:
        raise RuntimeError(f"{who}: {name} must be batches of square matrices, but they are {x.shape[-2]} by {x.shape[-1]} matrices")


def _square(who: str, halves: bool = False) -> Any:
    def meta(x: SpecLike, *options: Any) -> TensorSpec:
        check_square(who, x, halves=halves)
        return row_major(x)

    return meta


def spec_like(x: SpecLike, shape: tuple[int, ...], dtype: Any = None) -> TensorSpec:
    return TensorSpec.contiguous(shape, dtype or x.dtype, x.device)


def _mm(*factors: Any) -> Any:
    product = factors[0]
    for f in factors[1:]:
        product = OPS["matmul"](product, f)
    return product


_t = transpose_last


def _c(x: Any) -> Any:
    """The conjugate.

    Formulas get the conjugate of a complex cotangent, and their result is conjugated in turn (`Op.apply_vjp`). Those of
    functions that are holomorphic need not care: transposes do. The others open and close with this.
    """
    return OPS["conj"](x) if x.dtype.is_complex else x


def _h(x: Any) -> Any:
    """Conjugate transposed."""
    return _c(_t(x))


def _diag(v: Any) -> Any:
    return OPS["diag_embed"](v, 0, -2, -1)


def _diagonal(x: Any) -> Any:
    return OPS["diagonal"](x, 0, x.ndim - 2, x.ndim - 1)


def _eye_like(x: Any) -> Any:
    return _diag(OPS["full"]((*x.shape[:-2], x.shape[-1]), 1, x.dtype, x.device))


def invertible_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    yield (make.invertible(3, 3),)
    yield (make.invertible(2, 3, 3).transpose(1, 2),)
    yield (make.invertible(0, 2, 2),)


# ---- inverse, solve ----


def _inverse(xp: Any, out: Any, x: Any) -> None:
    try:
        with linalg_errors(xp):
            xp.copyto(out, xp.linalg.inv(x))
    except np.linalg.LinAlgError:
        raise _failure("linalg.inv", x, np.linalg.inv, lambda m: f"The diagonal element {first_zero_pivot(m)} is zero, the inversion "
                       "could not be completed because the input matrix is singular.") from None  # fmt: skip


def inverse_vjp(g: Any, y: Any) -> Any:
    return -_mm(_t(y), g, _t(y))


INVERSE = declare("inverse(Tensor x) -> Tensor", Kind.OPAQUE, fallible=True, meta=_square("linalg.inv"), kernel=_inverse,
                  vjp={"x": inverse_vjp}, samples=invertible_samples, precision=FLOAT32_ON_CPU, batch="last_dims")  # fmt: skip


def _solve_meta(x: SpecLike, other: SpecLike) -> TensorSpec:
    check_square("linalg.solve", x)
    if x.dtype is not other.dtype:
        raise RuntimeError(f"linalg.solve: Expected A and B to have the same dtype, but found A of type {scalar_name(x.dtype)} "
                           f"and B of type {scalar_name(other.dtype)} instead")  # fmt: skip
    if other.ndim != x.ndim or other.shape[-2] != x.shape[-1]:
        raise RuntimeError(f"linalg.solve: Incompatible shapes of A and B for the equation AX = B ({list(x.shape[-2:])} and "
                           f"{list(other.shape[-2:])})")  # fmt: skip
    return spec_like(x, (*x.shape[:-1], other.shape[-1]))


def _solve(xp: Any, out: Any, x: Any, other: Any) -> None:
    try:
        with linalg_errors(xp):
            xp.copyto(out, xp.linalg.solve(x, other))
    except np.linalg.LinAlgError:
        raise _failure("torch.linalg.solve", x, np.linalg.inv,
                       lambda _: "The solver failed because the input matrix is singular.") from None  # fmt: skip


def solve_vjp(g: Any, x: Any, y: Any) -> tuple[Any, Any]:
    back = OPS["solve"](_t(x), g)
    return -_mm(back, _t(y)), back


# Solution of x @ y = other, in matrices.
SOLVE = declare("solve(Tensor x, Tensor other) -> Tensor", Kind.OPAQUE, fallible=True, meta=_solve_meta, kernel=_solve,
                vjp={"x,other": solve_vjp},
                samples=lambda make: iter([(make.invertible(3, 3), make(3, 2)),
                                           (make.invertible(2, 3, 3).transpose(1, 2), make(2, 3, 1)),
                                           (make.invertible(2, 2), make(2, 0))]), precision=FLOAT32_ON_CPU, batch="last_dims")  # fmt: skip


def _triangular_meta(x: SpecLike, other: SpecLike, upper: bool, unitriangular: bool) -> TensorSpec:
    check_square("linalg.solve_triangular", x)
    if other.ndim != x.ndim or other.shape[-2] != x.shape[-1]:
        raise RuntimeError(f"linalg.solve_triangular: Incompatible shapes of A and B for the equation AX = B "
                           f"({list(x.shape[-2:])} and {list(other.shape[-2:])})")  # fmt: skip
    return spec_like(x, (*x.shape[:-1], other.shape[-1]))


def _triangular(xp: Any, out: Any, x: Any, other: Any, upper: bool, unitriangular: bool) -> None:
    """Substitution, one row of the result after another, over the whole batch at once."""
    n = x.shape[-1]
    y = other.copy()
    for i in reversed(range(n)) if upper else range(n):
        known = slice(i + 1, n) if upper else slice(0, i)
        y[..., i, :] -= xp.matmul(x[..., i, None, known], y[..., known, :])[..., 0, :]
        if not unitriangular:
            y[..., i, :] /= x[..., i, i, None]
    xp.copyto(out, y)


def _triangular_vjp(g: Any, x: Any, y: Any, upper: bool, unitriangular: bool) -> tuple[Any, Any]:
    back = OPS["solve_triangular"](_t(x), g, not upper, unitriangular)
    gx = -_mm(back, _t(y))
    first = 1 if unitriangular else 0
    return (OPS["triu"](gx, first) if upper else OPS["tril"](gx, -first)), back


# Solution of x @ y = other where x is triangular: only that triangle of x is read.
SOLVE_TRIANGULAR = declare(
    "solve_triangular(Tensor x, Tensor other, bool upper, bool unitriangular=False) -> Tensor", Kind.OPAQUE,
    meta=_triangular_meta, kernel=_triangular, vjp={"x,other": _triangular_vjp},
    samples=lambda make: iter([(make.invertible(3, 3), make(3, 2), True, False),
                               (make.invertible(2, 3, 3).transpose(1, 2), make(2, 3, 2), False, False),
                               (make.invertible(3, 3), make(3, 1), False, True)]), precision=FLOAT32_ON_CPU, batch="last_dims")  # fmt: skip

# ---- factorisations ----


def _cholesky(xp: Any, out: Any, x: Any) -> None:
    try:
        with linalg_errors(xp):
            xp.copyto(out, xp.linalg.cholesky(x))
    except np.linalg.LinAlgError:
        raise _failure("linalg.cholesky", x, np.linalg.cholesky, lambda m: "The factorization could not be completed because the input "
                       f"is not positive-definite (the leading minor of order {first_indefinite_minor(m)} is not positive-definite)"
                       ".") from None  # fmt: skip


def cholesky_vjp(g: Any, y: Any) -> Any:
    inner = OPS["tril"](_mm(_h(y), _c(g)), 0)
    inner = inner - _diag(_diagonal(inner)) * 0.5
    left = OPS["solve_triangular"](_h(y), inner, True, False)
    both = _t(OPS["solve_triangular"](_t(y), _t(left), True, False))
    return _c((both + _h(both)) * 0.5)


def _definite(make: Any) -> Iterator[tuple[Any, ...]]:
    yield (make.symmetric(3, 3, definite=True),)
    yield (make.symmetric(2, 4, 4, definite=True),)


# Lower triangular y with y @ y.mH = x; reads the lower triangle of x.
CHOLESKY = declare("cholesky(Tensor x) -> Tensor", Kind.OPAQUE, fallible=True, meta=_square("linalg.cholesky"), kernel=_cholesky,
                   vjp={"x": cholesky_vjp}, samples=_definite, precision=FLOAT32_ON_CPU, batch="last_dims")  # fmt: skip


def _qr_meta(x: SpecLike, complete: bool) -> tuple[TensorSpec, TensorSpec]:
    check_matrix("linalg.qr", x)
    m, n = x.shape[-2:]
    k = m if complete else min(m, n)
    return spec_like(x, (*x.shape[:-1], k)), spec_like(x, (*x.shape[:-2], k, n))


def _qr(xp: Any, out: Any, x: Any, complete: bool) -> None:
    q, r = xp.linalg.qr(x, mode="complete" if complete else "reduced")
    xp.copyto(out[0], q)
    xp.copyto(out[1], r)


def _qr_vjp(gs: Any, ys: Any, x_spec: SpecLike, complete: bool) -> Any:
    m, n = x_spec.shape[-2:]
    (q, r), (gq, gr) = ys, (_c(g) for g in gs)
    if complete and m > n:
        raise RuntimeError("linalg.qr: The QR decomposition is not differentiable when mode='complete' and nrows > ncols")
    if m < n:
        return _c(_wide_qr_vjp(q, r, gq, gr, m))
    return _c(_tall_qr_vjp(q, r, gq, gr))


def _tall_qr_vjp(q: Any, r: Any, gq: Any, gr: Any) -> Any:
    whole = _mm(r, _h(gr)) - _mm(_h(gq), q)
    below = OPS["tril"](whole, -1)
    middle = _diagonal(whole)
    inner = below + _h(below) + _diag(OPS["real"](middle) if middle.dtype.is_complex else middle)  # the lower triangle, mirrored
    return _h(OPS["solve_triangular"](r, _h(gq + _mm(q, inner)), True, False))


def _wide_qr_vjp(q: Any, r: Any, gq: Any, gr: Any, m: int) -> Any:
    """x = (a, b) with a square: qr of a, and b = q @ (the rest of r)."""
    axis = r.ndim - 1
    r_left, r_rest = OPS["slice"](r, axis, 0, m, 1), OPS["slice"](r, axis, m, None, 1)
    g_left, g_rest = OPS["slice"](gr, axis, 0, m, 1), OPS["slice"](gr, axis, m, None, 1)
    b = _mm(q, r_rest)
    left = _tall_qr_vjp(q, r_left, gq + _mm(b, _h(g_rest)), g_left)
    return OPS["cat"]([left, _mm(q, g_rest)], axis)


QR = declare("qr(Tensor x, bool complete=False) -> (Tensor, Tensor)", Kind.OPAQUE, meta=_qr_meta, kernel=_qr, vjp={"x": _qr_vjp},
             samples=lambda make: iter([(make(4, 3), False), (make(2, 3, 3), False), (make(2, 4), False), (make(3, 3), True)]),
             precision=FLOAT32_ON_CPU, batch="last_dims")  # fmt: skip


def _geqrf_meta(x: SpecLike) -> tuple[TensorSpec, TensorSpec]:
    check_matrix("geqrf", x)
    return spec_like(x, tuple(x.shape)), spec_like(x, (*x.shape[:-2], min(x.shape[-2:])))


def _geqrf(xp: Any, out: Any, x: Any) -> None:
    packed, weights = xp.linalg.qr(x, mode="raw")
    xp.copyto(out[0], xp.swapaxes(packed, -1, -2))
    xp.copyto(out[1], weights)


# R above the diagonal, the reflectors' tails below it, and the reflectors' weights, as LAPACK's geqrf has them.
GEQRF = declare("geqrf(Tensor x) -> (Tensor, Tensor)", Kind.OPAQUE, meta=_geqrf_meta, kernel=_geqrf, underived=True,
                samples=lambda make: iter([(make(4, 3),), (make(2, 3, 3),)]), batch="last_dims")  # fmt: skip


def _svd_meta(x: SpecLike, full_matrices: bool) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
    check_matrix("linalg.svd", x)
    m, n = x.shape[-2:]
    k, lead = min(m, n), tuple(x.shape[:-2])
    return (spec_like(x, (*lead, m, m if full_matrices else k)), spec_like(x, (*lead, k), x.dtype.to_real()),
            spec_like(x, (*lead, n if full_matrices else k, n)))  # fmt: skip


def _svd(xp: Any, out: Any, x: Any, full_matrices: bool) -> None:
    for target, found in zip(out, xp.linalg.svd(x, full_matrices=full_matrices), strict=True):
        xp.copyto(target, found)


def _svd_vjp(gs: Any, ys: Any, x_spec: SpecLike, full_matrices: bool) -> Any:
    (u, s, vh), (gu, gsigma, gvh) = ys, (_c(g) for g in gs)
    m, n = x_spec.shape[-2:]
    k = min(m, n)
    if full_matrices and m != n:  # only the first k vectors are determined
        last = u.ndim - 1
        u, gu = OPS["slice"](u, last, 0, k, 1), OPS["slice"](gu, last, 0, k, 1)
        vh, gvh = OPS["slice"](vh, last - 1, 0, k, 1), OPS["slice"](gvh, last - 1, 0, k, 1)
    v, gv = _h(vh), _h(gvh)
    row, col = OPS["unsqueeze"](s, s.ndim), OPS["unsqueeze"](s, s.ndim - 1)
    gaps = col * col - row * row
    gaps = OPS["masked_fill"](gaps, _eye_like(gaps) != 0, 1)
    turn_u, turn_v = _mm(_h(u), gu), _mm(vh, gv)
    skew_u, skew_v = turn_u - _h(turn_u), turn_v - _h(turn_v)
    inner = skew_u / gaps * col + skew_v / gaps * row + _diag(gsigma)
    if u.dtype.is_complex:  # vectors are unique up to a phase, which u and vh share
        inner = inner + _diag(_diagonal(skew_u) / (2 * s))
    result = _mm(u, inner, vh)
    if m > k:
        rest = gu / col
        result = result + _mm(rest - _mm(u, _h(u), rest), vh)
    if n > k:
        rest = gvh / row
        result = result + _mm(u, rest - _mm(rest, v, vh))
    return _c(result)


# (u, s, vh) with x = u @ diag(s) @ vh; s falls. Vectors are unique up to sign.
SVD = declare("svd(Tensor x, bool full_matrices=False) -> (Tensor, Tensor, Tensor)", Kind.OPAQUE, fallible=True,
              meta=_svd_meta, kernel=_svd, vjp={"x": _svd_vjp},
              samples=lambda make: iter([(make(4, 3), False), (make(2, 3, 3), False), (make(2, 4), False)]),
              precision=FLOAT32_ON_CPU, batch="last_dims")  # fmt: skip


def _svdvals_vjp(g: Any, x: Any) -> Any:
    u, _, vh = OPS["svd"](x, False)
    return _mm(u * OPS["unsqueeze"](g, g.ndim - 1), vh)


SVDVALS = declare("svdvals(Tensor x) -> Tensor", Kind.OPAQUE, fallible=True, meta=lambda x: _svd_meta(x, False)[1],
                  kernel=lambda xp, out, x: xp.copyto(out, xp.linalg.svd(x, compute_uv=False)), vjp={"x": _svdvals_vjp},
                  samples=lambda make: iter([(make(4, 3),), (make(2, 2, 4),)]), precision=FLOAT32_ON_CPU, batch="last_dims")  # fmt: skip


def _eigh_meta(x: SpecLike, upper: bool) -> tuple[TensorSpec, TensorSpec]:
    check_square("linalg.eigh", x)
    return spec_like(x, tuple(x.shape[:-1]), x.dtype.to_real()), row_major(x)


def _eigh(xp: Any, out: Any, x: Any, upper: bool) -> None:
    values, vectors = xp.linalg.eigh(x, "U" if upper else "L")
    xp.copyto(out[0], values)
    xp.copyto(out[1], vectors)


def _eigh_vjp(gs: Any, ys: Any) -> Any:
    """Hermitian, as the matrix is: only the skew part (the identity's tangent space) can turn the vectors."""
    (values, vectors), (gl, gv) = ys, (_c(g) for g in gs)
    turn = _mm(_h(vectors), gv)
    gaps = OPS["unsqueeze"](values, values.ndim - 1) - OPS["unsqueeze"](values, values.ndim)
    gaps = OPS["masked_fill"](gaps, _eye_like(gaps) != 0, float("inf"))
    return _c(_mm(vectors, (turn - _h(turn)) / (gaps * 2) + _diag(gl), _h(vectors)))


def _symmetric(make: Any) -> Iterator[tuple[Any, ...]]:
    yield make.symmetric(3, 3), False
    yield make.symmetric(2, 4, 4), True


# Eigenvalues, rising, and eigenvectors (as columns, unique up to sign) of symmetric matrices; one triangle is read.
EIGH = declare("eigh(Tensor x, bool upper=False) -> (Tensor, Tensor)", Kind.OPAQUE, fallible=True, meta=_eigh_meta, kernel=_eigh,
               vjp={"x": _eigh_vjp}, samples=_symmetric, precision=FLOAT32_ON_CPU, batch="last_dims")  # fmt: skip


def _eig_meta(x: SpecLike) -> tuple[TensorSpec, TensorSpec]:
    check_square("linalg.eig", x)
    d = x.dtype.to_complex() if not x.dtype.is_complex else x.dtype
    return spec_like(x, tuple(x.shape[:-1]), d), spec_like(x, tuple(x.shape), d)


def _eig(xp: Any, out: Any, x: Any) -> None:
    values, vectors = xp.linalg.eig(x)
    xp.copyto(out[0], values)
    xp.copyto(out[1], vectors)


def _eig_vjp(gs: Any, ys: Any, x_spec: SpecLike) -> Any:
    """Source: Boeddeker et al., arXiv:1701.00392, section 4.7; each eigenvector has length 1."""
    (values, vectors), (gl, gv) = ys, (_c(g) for g in gs)
    adjoint = _h(vectors)
    turned = _mm(adjoint, gv)
    lengths = OPS["real"](_diagonal(turned))
    gaps = _c(OPS["unsqueeze"](values, values.ndim - 1) - OPS["unsqueeze"](values, values.ndim))
    same = _eye_like(OPS["real"](gaps)) != 0
    inner = (turned - _mm(adjoint, vectors) * OPS["unsqueeze"](lengths, lengths.ndim - 1)) / OPS["masked_fill"](gaps, same, 1)
    inner = OPS["masked_fill"](inner, same, 0) + _diag(gl)
    result = _mm(OPS["solve"](adjoint, inner), adjoint)
    return _c(result if x_spec.dtype.is_complex else OPS["real"](result))


def _real_spectrum(make: Any) -> Iterator[tuple[Any, ...]]:
    """Matrices of real eigenvalues: the phase of a complex eigenvector is arbitrary, and so its derivative is too."""
    yield (make.symmetric(3, 3),)
    yield (make.symmetric(2, 2, 2),)


# Complex eigenvalues and eigenvectors (columns of length 1, unique up to a phase) of any square matrix.
EIG = declare("eig(Tensor x) -> (Tensor, Tensor)", Kind.OPAQUE, fallible=True, meta=_eig_meta, kernel=_eig, vjp={"x": _eig_vjp},
              samples=_real_spectrum, precision=FLOAT32_ON_CPU, batch="last_dims")  # fmt: skip


def _lu_meta(x: SpecLike) -> tuple[TensorSpec, TensorSpec]:
    check_matrix("linalg.lu_factor", x)
    return row_major(x), spec_like(x, (*x.shape[:-2], min(x.shape[-2:])), dtypes.int32)


def _lu(xp: Any, out: Any, x: Any) -> None:
    packed, pivots = lu_array(xp, x)
    xp.copyto(out[0], packed)
    xp.copyto(out[1], pivots)


def lu_array(xp: Any, x: Any) -> tuple[Any, Any]:
    """(l and u in one, pivots): Gaussian elimination with partial pivoting, each step over the whole batch.

    Pivots count from 1, as LAPACK's do.
    """
    m, n = x.shape[-2:]
    a = x.reshape(math.prod(x.shape[:-2]), m, n).copy()
    pivots = xp.empty((a.shape[0], min(m, n)), "i4")
    batch = xp.arange(a.shape[0])
    for k in range(min(m, n)):
        at = k + xp.abs(a[:, k:, k]).argmax(1)
        pivots[:, k] = at + 1
        swapped = a[batch, at].copy()
        a[batch, at] = a[:, k]
        a[:, k] = swapped
        if k + 1 < m:
            head = a[:, k, k]
            a[:, k + 1 :, k] /= xp.where(head == 0, 1, head)[:, None]
            a[:, k + 1 :, k + 1 :] -= a[:, k + 1 :, k, None] * a[:, k, None, k + 1 :]
    return a.reshape(x.shape), pivots.reshape(*x.shape[:-2], min(m, n))


def _lu_vjp(g: Any, y: Any, y1: Any) -> Any:
    """The rows of x, in the order of the pivots, are l @ u, both packed in y; what of y is not square belongs to one of them."""
    m, n = y.shape[-2:]
    k, rows, cols = min(m, n), y.ndim - 2, y.ndim - 1
    g = _c(g)

    def block(x: Any, r: tuple[int, int], c: tuple[int, int]) -> Any:
        return OPS["slice"](OPS["slice"](x, rows, *r, 1), cols, *c, 1)

    head, g_head = block(y, (0, k), (0, k)), block(g, (0, k), (0, k))
    lower, upper = OPS["tril"](head, -1) + _eye_like(head), OPS["triu"](head, 0)

    def over_upper(x: Any) -> Any:
        """x @ inverse(upper).mH"""
        return _h(OPS["solve_triangular"](upper, _h(x), True, False))

    below, above = _mm(_h(lower), OPS["tril"](g_head, -1)), _mm(OPS["triu"](g_head, 0), _h(upper))
    if n > k:  # columns that belong to u alone
        wing = block(g, (0, k), (k, n))
        below = below - _mm(wing, _h(block(y, (0, k), (k, n))))
    if m > k:  # rows that belong to l alone
        tail = block(g, (k, m), (0, k))
        above = above - _mm(_h(block(y, (k, m), (0, k))), tail)
    left = over_upper(OPS["tril"](below, -1) + OPS["triu"](above, 0))
    result = OPS["solve_triangular"](_h(lower), OPS["cat"]([left, wing], cols) if n > k else left, True, True)
    if m > k:
        result = OPS["cat"]([result, over_upper(tail)], rows)
    order = OPS["sort"](OPS["pivot_order"](y1, m), y1.ndim - 1, False, True)[1]
    return _c(OPS["gather"](result, rows, OPS["expand"](OPS["unsqueeze"](order, order.ndim), tuple(y.shape))))


LU_FACTOR = declare("lu_factor(Tensor x) -> (Tensor, Tensor)", Kind.OPAQUE, meta=_lu_meta, kernel=_lu,
                    vjp={"x": lambda gs, y, y1: _lu_vjp(gs[0], y, y1)}, nondifferentiable_outputs=(1,),
                    samples=lambda make: iter([(make.invertible(3, 3),), (make(2, 4, 3),)]),
                    precision=FLOAT32_ON_CPU, batch="last_dims")  # fmt: skip


def _pivot_order(xp: Any, out: Any, pivots: Any, n: int) -> None:
    if out.size == 0:
        return
    rows = out.reshape(-1, n)
    rows[...] = xp.arange(n)
    for order, swaps in zip(rows, pivots.reshape(rows.shape[0], -1), strict=True):
        for i, p in enumerate(swaps.tolist()):
            order[i], order[p - 1] = int(order[p - 1]), int(order[i])


# The row order that LAPACK's sequence of swaps amounts to: (*, k) -> (*, n).
PIVOT_ORDER = declare("pivot_order(Tensor pivots, int n) -> Tensor", Kind.OPAQUE, fallible=True,
                      nondifferentiable=True, kernel=_pivot_order,
                      meta=lambda pivots, n: spec_like(pivots, (*pivots.shape[:-1], n), dtypes.int64),
                      samples=lambda make: iter([(make.int(2, 2, low=2, high=4), 3)]), batch="last_dims")  # fmt: skip

# ---- pseudo-inverse and exponential ----


def _pinv_meta(x: SpecLike, rcond: float | None) -> TensorSpec:
    check_matrix("linalg.pinv", x)
    return spec_like(x, (*x.shape[:-2], x.shape[-1], x.shape[-2]))


def _pinv(xp: Any, out: Any, x: Any, rcond: float | None) -> None:
    if x.size == 0:
        out.fill(0)
        return
    cut = max(x.shape[-2:]) * np.finfo(x.dtype).eps if rcond is None else rcond
    xp.copyto(out, xp.linalg.pinv(x, cut))


def _pinv_vjp(g: Any, x: Any, y: Any) -> Any:
    """Golub and Pereyra, SIAM J. Numer. Anal. 10, 1973: the derivative at constant rank."""
    gt, yt = _t(g), _h(y)
    second, third = _mm(yt, y, gt), _mm(gt, _mm(y, yt))
    return _c(second - _mm(yt, _c(g), yt) - _mm(_mm(second, y), x) + third - _mm(x, _mm(y, third)))


PINV = declare("pinv(Tensor x, float? rcond=None) -> Tensor", Kind.OPAQUE, fallible=True,
               meta=_pinv_meta, kernel=_pinv, vjp={"x": _pinv_vjp},
               samples=lambda make: iter([(make(4, 3), None), (make(2, 2, 3), None), (make(0, 3), None)]),
               precision=FLOAT32_ON_CPU, batch="last_dims")  # fmt: skip


def _matrix_exp(xp: Any, out: Any, x: Any) -> None:
    """Scaling and squaring round a Taylor polynomial of degree 18, exact to double precision for norms up to 1."""
    n = x.shape[-1]
    wide = x.astype("f8") if x.dtype.kind != "c" else x
    norm = xp.abs(wide).sum(-1).max() if wide.size else 0.0
    squarings = max(0, int(np.ceil(np.log2(max(float(norm), 1e-300)))) + 1)
    scaled = wide / 2.0**squarings
    total = term = xp.broadcast_to(xp.eye(n, dtype=wide.dtype), wide.shape).copy()
    for i in range(1, 19):
        term = xp.matmul(term, scaled) / i
        total = total + term
    for _ in range(squarings):
        total = xp.matmul(total, total)
    xp.copyto(out, total, casting="unsafe")


def _matrix_exp_vjp(g: Any, x: Any) -> Any:
    """The upper right block of exp of ((x.T, g), (0, x.T)): Al-Mohy and Higham, SIAM J. Matrix Anal. 30, 2009."""
    n, xt, axis = x.shape[-1], _t(x), x.ndim - 1
    top, bottom = OPS["cat"]([xt, g], axis), OPS["cat"]([zeros(row_major(x)), xt], axis)
    whole = OPS["matrix_exp"](OPS["cat"]([top, bottom], axis - 1))
    return OPS["slice"](OPS["slice"](whole, axis - 1, 0, n, 1), axis, n, None, 1)


MATRIX_EXP = declare("matrix_exp(Tensor x) -> Tensor", Kind.OPAQUE, fallible=True, meta=_square("linalg.matrix_exp", halves=True),
                     kernel=_matrix_exp, vjp={"x": _matrix_exp_vjp},
                     samples=lambda make: iter([(make(3, 3),), (make(2, 2, 2),)]), batch="last_dims")  # fmt: skip

# ---- norms of vectors ----


def _norm_meta(x: SpecLike, p: float, dims: Any, keepdim: bool) -> TensorSpec:
    if not (x.dtype.is_floating_point or x.dtype.is_complex):
        raise RuntimeError(f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {scalar_name(x.dtype)}")
    shape = tuple(1 if i in dims else n for i, n in enumerate(x.shape) if keepdim or i not in dims)
    if p < 0 or p == float("inf"):
        for d in dims:
            if x.shape[d] == 0:
                raise RuntimeError(f"linalg.vector_norm cannot compute the {p} norm on the dimension {d} because this dimension is empty "
                                   "and the operation does not have an identity")  # fmt: skip
    return spec_like(x, shape, x.dtype.to_real())


def _vector_norm(x: Any, p: float, dims: Any, keepdim: bool) -> Any:
    """(sum of |x|**p) ** (1/p) over `dims`; for infinite p the extreme of |x|, for p = 0 the number of non-zero elements.

    Of half precision in float32: the powers may be beyond it.
    """
    _norm_meta(x, p, dims, keepdim)
    if x.dtype.itemsize == 2:
        return cast_to(_vector_norm(cast_to(x, dtypes.float32), p, dims, keepdim), x.dtype)
    magnitude = OPS["abs"](x)
    if p == float("inf"):
        return OPS["amax"](magnitude, dims, keepdim)
    if p == float("-inf"):
        return OPS["amin"](magnitude, dims, keepdim)
    if p == 0:
        return OPS["sum"](OPS["to_dtype"](x != 0, magnitude.dtype), dims, keepdim, None)
    if p == 1:
        return OPS["sum"](magnitude, dims, keepdim, None)
    if p == 2:
        return OPS["sqrt"](OPS["sum"](magnitude * magnitude, dims, keepdim, None))
    return OPS["pow"](OPS["sum"](OPS["pow"](magnitude, p), dims, keepdim, None), 1.0 / p)


def _norm_kernel(xp: Any, out: Any, x: Any, p: float, dims: Any, keepdim: bool) -> None:
    wide = x.astype("f4") if x.dtype.itemsize == 2 else x
    if not dims:
        xp.copyto(out, (wide != 0) if p == 0 else xp.abs(wide), casting="unsafe")
        return
    if p == 2 and wide.dtype.kind != "c":
        xp.copyto(out, xp.sqrt(total(xp, wide * wide, dims, keepdim)), casting="unsafe")
        return
    magnitude = xp.abs(wide)
    if abs(p) == float("inf"):
        result = (xp.max if p > 0 else xp.min)(magnitude, axis=dims, keepdims=keepdim)
    elif p == 0:
        result = (wide != 0).sum(axis=dims, keepdims=keepdim)
    elif p == 1:
        result = total(xp, magnitude, dims, keepdim)
    elif p == 2:
        result = xp.sqrt(total(xp, magnitude * magnitude, dims, keepdim))
    else:
        result = total(xp, magnitude**p, dims, keepdim) ** (1.0 / p)
    xp.copyto(out, result, casting="unsafe")


def _norm_vjp(g: Any, x: Any, y: Any, p: float, dims: Any, keepdim: bool) -> Any:
    """Zero where the norm is zero: the least subgradient, as in torch."""
    direction = OPS["sgn" if x.dtype.is_complex else "sign"]
    if p == 0:
        return x * 0
    if not keepdim:
        shape = tuple(1 if i in dims else n for i, n in enumerate(x.shape))
        g, y = OPS["view"](g, shape), OPS["view"](y, shape)
    if p == 1:
        return direction(x) * g
    if abs(p) == float("inf"):
        hit = OPS["abs"](x) == y
        count = OPS["sum"](OPS["to_dtype"](hit, y.dtype), dims, True, None)
        return OPS["where"](hit, direction(x) * (g / count), 0)
    nothing = y == 0
    if p == 2:
        return g * OPS["where"](nothing, 0, x / OPS["where"](nothing, 1, y))
    flat = x == 0
    magnitude = OPS["masked_fill"](OPS["abs"](x), flat, 1)
    slope = OPS["pow"](magnitude / OPS["masked_fill"](y, nothing, 1), p - 1) * direction(x) * g
    return OPS["where"](flat | nothing, 0, slope)


VECTOR_NORM = declare(
    "vector_norm(Tensor x, float p, int[] dims, bool keepdim=False) -> Tensor", Kind.COMPOSITE, meta=_norm_meta,
    decompose=_vector_norm, in_opmath=True, kernel=_norm_kernel, vjp={"x": _norm_vjp},
    samples=lambda make: iter([(make(3, 4), 2.0, (0, 1), False), (make(4, 3).t(), 1.0, (1,), True), (make(3, 4), 3.0, (0,), False),
                               (make(3, 4), float("inf"), (1,), False), (make(3, 4), float("-inf"), (0,), True),
                               (make(3, 4), 0.0, (1,), False), (make(), 2.0, (), False), (make(0, 3), 2.0, (0,), False)]),
                               precision=FLOAT32_UNLESS_ASKED, batch="over_dims")  # fmt: skip

