"""`eager.linalg`: linear algebra over batches of floating or complex matrices (*, m, n).

RuntimeError for other arguments.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from eager.base import dtypes, return_types
from eager.base.dtypes import scalar_name as _scalar_name
from eager.base.spec import broadcast_shapes as _broadcast_shapes
from eager.base.spec import normalize_dim as _normalize_dim
from eager.base.spec import normalize_dims as _normalize_dims
from eager.optable.asserting import demand as _demand
from eager.optable.linalg import LinAlgError
from eager.optable.linalg import check_lapack_dtype as _check_lapack_dtype
from eager.optable.linalg import check_matrix as _check_matrix
from eager.optable.linalg import check_square as _check_square
from eager.optable.lu_factors import check_pivots as _check_pivots
from eager.optable.lu_factors import permutation_of as _permutation_of
from eager.optable.lu_factors import unpack_factors as _unpack_factors
from eager.optable.matmul import transpose_last as _transpose_last
from eager.optable.out import write_out as _write_out
from eager.optable.table import OPS
from eager.public.record import Out as _Out
from eager.public.record import public as _public
from eager.public.wrapper import publish_module as _publish_module
from eager.public.wrapper import wrap as _wrap


def _out(result: Any, out: Any) -> Any:
    return result if out is None else _write_out(out, result, exact=True)


def _cast_out(result: Any, out: Any) -> Any:
    """As `_out`, for functions that cast their result to the dtype of `out`."""
    return result if out is None else _write_out(out, result)


def _batched(a: Any, b: Any) -> tuple[Any, Any]:
    """Both tensors with their leading dims broadcast."""
    lead = _broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return OPS["expand"](a, (*lead, *a.shape[-2:])), OPS["expand"](b, (*lead, *b.shape[-2:]))


# ---- inverse, determinant, solve ----


def inv(A: Any, *, out: Any = None) -> Any:  # noqa: N803 - torch's names here and below
    """The inverses of square matrices (*, n, n). Raises: LinAlgError for a singular matrix."""
    return _out(OPS["inverse"](A), out)


def det(A: Any, *, out: Any = None) -> Any:  # noqa: N803
    """Determinants: (*, n, n) -> (*)."""
    return _out(OPS["det"](A), out)


@_public(out=_Out())
def slogdet(A: Any) -> Any:  # noqa: N803
    """The named tuple (sign, logabsdet) of determinants: (*, n, n) -> (*), (*). Raises: RuntimeError unless square and floating."""
    return return_types.linalg_slogdet(*OPS["slogdet"](A))


def solve(A: Any, B: Any, *, left: bool = True, out: Any = None) -> Any:  # noqa: N803
    """X with A @ X = B (X @ A = B unless `left`).

    A: (*, n, n). B: (*, n, k) or (*, n). Raises: LinAlgError if singular.
    """
    _check_square("linalg.solve", A)
    vector = B.ndim == 1 or (A.ndim - 1 == B.ndim and tuple(A.shape[:-1]) == tuple(B.shape))
    b = OPS["unsqueeze"](B, B.ndim) if vector else B
    if not left:
        return _out(_transpose_last(OPS["solve"](*_batched(_transpose_last(A), _transpose_last(b)))), out)
    x = OPS["solve"](*_batched(A, b))
    return _out(OPS["squeeze"](x, (-1,)) if vector else x, out)


def solve_triangular(input: Any, B: Any, *, upper: bool, left: bool = True, unitriangular: bool = False, out: Any = None) -> Any:  # noqa: A002, N803
    """X with input @ X = B (X @ input = B unless `left`), reading one triangle of input (*, n, n).

    B: cast to its dtype.
    """
    B = B if B.dtype is input.dtype else OPS["to_dtype"](B, input.dtype)  # noqa: N806
    if left:
        return _out(OPS["solve_triangular"](*_batched(input, B), upper, unitriangular), out)
    x = OPS["solve_triangular"](*_batched(_transpose_last(input), _transpose_last(B)), not upper, unitriangular)
    return _out(_transpose_last(x), out)


_DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


@_public(out=_Out())
def lstsq(input: Any, b: Any, rcond: float | None = None, *, driver: str | None = None) -> Any:  # noqa: A002
    """Least squares: the X that minimises |A @ X - B|, of minimum norm if it is not unique.

    input: (*, m, n). b: (*, m, k) or (*, m). Result: X (*, n, k), the squared residuals, the ranks, the singular
    values. As in torch, the residuals are empty with the default driver gelsy, the ranks with gels, and only gelsd and
    gelss return the singular values. Raises: RuntimeError for another driver.
    """
    driver = "gelsy" if driver is None else driver
    if driver not in _DRIVERS:
        raise RuntimeError(f"torch.linalg.lstsq: parameter `driver` should be one of ({', '.join(_DRIVERS)})")
    _check_matrix("linalg.lstsq", input)
    if not 0 <= input.ndim - b.ndim <= 1:
        raise RuntimeError("torch.linalg.lstsq: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1")
    vector = input.ndim - 1 == b.ndim
    if vector:
        b = OPS["expand"](b, _broadcast_shapes(input.shape[:-1], b.shape))
    a, rhs = _batched(input, OPS["unsqueeze"](b, b.ndim) if vector else b)
    x = OPS["matmul"](OPS["pinv"](a, rcond), rhs)
    m, n = input.shape[-2:]
    rank = input.new_empty((0,), dtype=dtypes.int64) if driver == "gels" else matrix_rank(a, rtol=rcond)
    rest = input.new_empty((0,))
    if m > n and driver != "gelsy" and (driver == "gels" or bool((rank == n).all())):
        error = OPS["matmul"](a, x) - rhs
        squares = OPS["real"](error * OPS["conj"](error)) if input.dtype.is_complex else error * error
        rest = OPS["sum"](squares, (rhs.ndim - 2,), False, None)
    values = OPS["svdvals"](a) if driver in ("gelsd", "gelss") else input.new_empty((0,), dtype=input.dtype.to_real())
    solution = OPS["squeeze"](x, (-1,)) if vector else x
    return return_types.linalg_lstsq(solution, rest, rank, values)


def _raise_failed(name: str, info: Any, what: Callable[[int], str]) -> None:
    """Raise LinAlgError for the first matrix whose status is not 0. what: the error text for that status."""

    def text() -> str:
        found = info.reshape(-1).tolist()
        index = next(i for i, status in enumerate(found) if status)
        return f"{name}: {f'(Batch element {index}): ' if info.ndim else ''}{what(found[index])}"

    _demand(info == 0, LinAlgError, text)


@_public(out=_Out())
def inv_ex(A: Any, *, check_errors: bool = False) -> Any:  # noqa: N803
    """(inverse, int32 status): a failed inverse is nan, its status the first zero pivot from 1, else 0. check_errors: raise LinAlgError."""
    inverse, info = OPS["inverse_status"](A)
    if check_errors:
        _raise_failed("linalg.inv_ex", info, lambda k: f"The diagonal element {k} is zero, the inversion could not be completed because "
                      "the input matrix is singular.")  # fmt: skip
    return return_types.linalg_inv_ex(inverse, info)


@_public(out=_Out())
def solve_ex(A: Any, B: Any, *, left: bool = True, check_errors: bool = False) -> Any:  # noqa: N803
    """(X, int32 status): a failed solution is nan, its status the first zero pivot from 1, else 0. check_errors: raise LinAlgError."""
    _check_square("linalg.solve", A)
    vector = left and (B.ndim == 1 or (A.ndim - 1 == B.ndim and tuple(A.shape[:-1]) == tuple(B.shape)))
    b = OPS["unsqueeze"](B, B.ndim) if vector else B
    x, info = OPS["solve_status"](*(_batched(A, b) if left else _batched(_transpose_last(A), _transpose_last(b))))
    if check_errors:
        _raise_failed("torch.linalg.solve_ex", info, lambda k: "The solver failed because the input matrix is singular.")
    x = x if left else _transpose_last(x)
    return return_types.linalg_solve_ex(OPS["squeeze"](x, (-1,)) if vector else x, info)


def tensorinv(input: Any, ind: int = 2, *, out: Any = None) -> Any:  # noqa: A002
    """The inverse of a tensor as a linear map from its last dims to its first `ind` dims."""
    if ind <= 0:
        raise RuntimeError("Expected a strictly positive integer for 'ind'")
    head, tail = tuple(input.shape[:ind]), tuple(input.shape[ind:])
    if math.prod(head) != math.prod(tail):
        raise RuntimeError("Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got "
                           f"{math.prod(tail)} != {math.prod(head)}")  # fmt: skip
    return _out(inv(input.reshape(math.prod(head), -1)).reshape((*tail, *head)), out)


def tensorsolve(input: Any, other: Any, dims: Any = None, *, out: Any = None) -> Any:  # noqa: A002
    """X with tensordot(A, X, X.ndim) = B, after moving the dims `dims` of A to its end."""
    if dims is not None:
        moved = [_normalize_dim(d, input.ndim) for d in dims]
        input = OPS["permute"](input, tuple(d for d in range(input.ndim) if d not in moved) + tuple(moved))
    shape = tuple(input.shape[other.ndim :])
    if math.prod(shape) != other.numel():
        raise RuntimeError("Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), but "
                           f"got {math.prod(shape)} != {math.prod(input.shape[: other.ndim])}")  # fmt: skip
    return _cast_out(solve(input.reshape(-1, math.prod(shape)), other.reshape(-1)).reshape(tuple(shape)), out)


# ---- factorisations ----


def cholesky(input: Any, *, upper: bool = False, out: Any = None) -> Any:  # noqa: A002
    """Lower triangular L with L @ L.mT = input (its transpose with `upper`).

    Raises: LinAlgError unless positive definite.
    """
    if upper:
        return _out(_transpose_last(OPS["cholesky"](_transpose_last(input))), out)
    return _out(OPS["cholesky"](input), out)


@_public(out=_Out())
def cholesky_ex(input: Any, *, upper: bool = False, check_errors: bool = False) -> Any:  # noqa: A002
    """(factor, int32 status): a failed factor is nan, its status the order of the first bad minor. check_errors: raise LinAlgError."""
    factor, info = OPS["cholesky_status"](_conj_transpose(input) if upper else input)
    if check_errors:
        _raise_failed("linalg.cholesky_ex", info, lambda k: "The factorization could not be completed because the input is not "
                      f"positive-definite (the leading minor of order {k} is not positive-definite).")  # fmt: skip
    return return_types.linalg_cholesky_ex(_conj_transpose(factor) if upper else factor, info)


@_public(out=_Out())
def qr(A: Any, mode: str = "reduced") -> Any:  # noqa: N803
    """Orthogonal Q and upper triangular R, Q @ R = A. mode: "reduced", "complete" or "r" (no Q). Raises: RuntimeError for others."""
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'")
    q, r = OPS["qr"](A, mode == "complete")
    return return_types.linalg_qr(A.new_empty((0,)) if mode == "r" else q, r)


def _refuse_driver(A: Any, driver: str | None) -> None:  # noqa: N803
    """Raise for a choice among cuSOLVER's drivers: numpy and CuPy choose their own."""
    if driver is not None:
        if A.device.type != "cpu":
            raise NotImplementedError(f"torch.linalg.svd: driver={driver!r} is not implemented; allowed: None")
        raise RuntimeError("torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend.")


@_public(out=_Out())
def svd(A: Any, full_matrices: bool = True, *, driver: str | None = None) -> Any:  # noqa: N803
    """U, S, Vh with U @ diag(S) @ Vh = A; singular values are decreasing.

    Raises: RuntimeError for a `driver` on the CPU.
    """
    _refuse_driver(A, driver)
    return return_types.linalg_svd(*OPS["svd"](A, full_matrices))


@_public(out=_Out(exact=True))
def svdvals(A: Any, *, driver: str | None = None) -> Any:  # noqa: N803
    """The singular values (*, min(m, n)), decreasing. Raises: RuntimeError for a `driver` on the CPU."""
    _refuse_driver(A, driver)
    return OPS["svdvals"](A)


@_public(out=_Out())
def eigh(input: Any, UPLO: str = "L") -> Any:  # noqa: A002
    """Eigenvalues (*, n), increasing, and eigenvectors (*, n, n) of Hermitian matrices, of which the triangle `UPLO` is read."""
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    return return_types.linalg_eigh(*OPS["eigh"](input, UPLO.upper() == "U"))


@_public(out=_Out(exact=True))
def eigvalsh(input: Any, UPLO: str = "L") -> Any:  # noqa: A002
    """The eigenvalues (*, n) of Hermitian matrices (*, n, n), increasing. UPLO: the triangle that is read. Raises: RuntimeError."""
    return eigh(input, UPLO)[0]


@_public(out=_Out())
def eig(input: Any) -> Any:  # noqa: A002
    """The complex eigenvalues (*, n) and eigenvectors (*, n, n) of square matrices (*, n, n). Raises: RuntimeError unless square."""
    return return_types.linalg_eig(*OPS["eig"](input))


@_public(out=_Out())
def eigvals(input: Any) -> Any:  # noqa: A002
    """The complex eigenvalues (*, n) of square matrices (*, n, n). Raises: RuntimeError unless square."""
    return OPS["eig"](input)[0]


@_public(out=_Out())
def lu_factor(A: Any, *, pivot: bool = True) -> Any:  # noqa: N803
    """L and U in one matrix (*, m, n), and int32 pivots (*, min(m, n)) from 1. Raises: NotImplementedError for pivot=False."""
    if not pivot:
        raise NotImplementedError("linalg.lu_factor: pivot=False is not implemented; leave pivot=True")
    return return_types.linalg_lu_factor(*OPS["lu_factor"](A))


@_public(out=_Out())
def lu_factor_ex(A: Any, *, pivot: bool = True, check_errors: bool = False) -> Any:  # noqa: N803
    """`lu_factor`, and an int32 status (*) for each matrix: 0, or the number of the first zero pivot from 1."""
    matrix, pivots = lu_factor(A, pivot=pivot)
    zero = OPS["eq"](OPS["diagonal"](matrix, 0, -2, -1), 0)
    if not zero.shape[-1]:
        return return_types.linalg_lu_factor_ex(matrix, pivots, OPS["full"](tuple(A.shape[:-2]), 0, dtypes.int32, A.device))
    first = OPS["argmax"](OPS["to_dtype"](zero, dtypes.uint8), (zero.ndim - 1,), False) + 1
    info = OPS["where"](OPS["any"](zero, (zero.ndim - 1,), False), first, 0)
    if check_errors:
        _demand(info == 0, LinAlgError, lambda: f"linalg.lu_factor_ex: U[{int(info.max()) - 1},{int(info.max()) - 1}] is zero and using "
               "it on lu_solve would result in a division by zero.")  # fmt: skip
    return return_types.linalg_lu_factor_ex(matrix, pivots, OPS["to_dtype"](info, dtypes.int32))


def householder_product(input: Any, tau: Any, *, out: Any = None) -> Any:  # noqa: A002
    """The first columns of the product of reflectors I - tau_i v_i v_i^H, v_i being stored below the diagonal: (*, m, n)."""
    if input.ndim < 2:
        raise RuntimeError("torch.linalg.householder_product: input must have at least 2 dimensions.")
    m, n = input.shape[-2:]
    if m < n:
        raise RuntimeError("torch.linalg.householder_product: input.shape[-2] must be greater than or equal to input.shape[-1]")
    if tau.shape[-1:] and n < tau.shape[-1]:
        raise RuntimeError("torch.linalg.householder_product: input.shape[-1] must be greater than or equal to tau.shape[-1]")
    _normalize_dim(-1, tau.ndim)
    if input.ndim - tau.ndim != 1:
        raise RuntimeError("torch.linalg.householder_product: Expected tau to have one dimension less than input, but got tau.ndim equal "
                           f"to {tau.ndim} and input.ndim is equal to {input.ndim}")  # fmt: skip
    if input.dtype is not tau.dtype:
        raise RuntimeError(f"torch.linalg.householder_product: tau dtype {_scalar_name(tau.dtype)} does not match input dtype "
                           f"{_scalar_name(input.dtype)}")  # fmt: skip
    _check_lapack_dtype("torch.linalg.householder_product", input)
    q = OPS["expand"](_eye(m, n, input), (*input.shape[:-2], m, n))
    for i in reversed(range(tau.shape[-1])):
        v = _reflector(input, i)
        weight = OPS["slice"](tau, tau.ndim - 1, i, i + 1, 1)
        row = OPS["matmul"](OPS["unsqueeze"](OPS["conj"](v) if v.dtype.is_complex else v, v.ndim - 1), q)
        q = q - OPS["unsqueeze"](v * weight, v.ndim) * row
    return _cast_out(q, out)


def _eye(m: int, n: int, like: Any) -> Any:
    rows = OPS["arange"](0, m, 1, None, like.device).reshape(m, 1)
    return OPS["to_dtype"](OPS["eq"](rows, OPS["arange"](0, n, 1, None, like.device)), like.dtype)


def _reflector(A: Any, i: int) -> Any:  # noqa: N803
    """Column i of A below the diagonal, with 1 on the diagonal and 0 above."""
    column = OPS["select"](A, A.ndim - 1, i)
    at = OPS["arange"](0, A.shape[-2], 1, None, A.device)
    return OPS["where"](OPS["gt"](at, i), column, OPS["to_dtype"](OPS["eq"](at, i), A.dtype))


@_public(out=_Out())
def lu(A: Any, *, pivot: bool = True) -> Any:  # noqa: N803
    """P (*, m, m), L (*, m, k), U (*, k, n) with P @ L @ U = A, k = min(m, n). Raises: NotImplementedError for pivot=False."""
    matrix, pivots = lu_factor(A, pivot=pivot)
    lower, upper = _unpack_factors(matrix)
    return return_types.linalg_lu(_permutation_of(OPS["pivot_order"](pivots, A.shape[-2]), A.dtype), lower, upper)


def _conj_transpose(x: Any) -> Any:
    """Matrices transposed and conjugated."""
    x = _transpose_last(x)
    return OPS["conj"](x) if x.dtype.is_complex else x


@_public(out=_Out(not_over_itself=True, not_over_inputs=True))
def lu_solve(LU: Any, pivots: Any, B: Any, *, left: bool = True, adjoint: bool = False) -> Any:  # noqa: N803
    """X with A @ X = B (X @ A = B unless `left`), from `lu_factor` of A; adjoint: A^H instead of A. Raises: RuntimeError."""
    if not left:
        return _conj_transpose(lu_solve(LU, pivots, _conj_transpose(B), adjoint=not adjoint))
    _check_square("linalg.lu_solve", LU)
    _check_matrix("linalg.lu_solve", B)
    _check_pivots("linalg.lu_solve", LU, pivots)
    if LU.dtype is not B.dtype:
        raise RuntimeError(f"linalg.lu_solve: Expected LU and B to have the same dtype, but found LU of type {_scalar_name(LU.dtype)} "
                           f"and B of type {_scalar_name(B.dtype)} instead")  # fmt: skip
    lower, upper = _unpack_factors(LU)
    order = OPS["pivot_order"](pivots, LU.shape[-2])
    if adjoint:  # A^H = U^H L^H P^T, where P^T A = L U
        y = OPS["solve_triangular"](*_batched(_conj_transpose(upper), B), False, False)
        y = OPS["solve_triangular"](*_batched(_conj_transpose(lower), y), True, True)
        order, B = OPS["argsort"](order, order.ndim - 1, False, True), y
    rows = OPS["gather"](B, B.ndim - 2, OPS["expand"](OPS["unsqueeze"](order, order.ndim), tuple(B.shape)))
    if adjoint:
        return rows
    y = OPS["solve_triangular"](*_batched(lower, rows), False, True)
    return OPS["solve_triangular"](*_batched(upper, y), True, False)


def ldl_factor(input: Any, *, hermitian: bool = False, out: Any = None) -> Any:  # noqa: A002
    """L and the block-diagonal D of a symmetric (or Hermitian) matrix in one matrix, and the pivots, in LAPACK's format."""
    LD, pivots, info = OPS["ldl_factor"](input, hermitian)  # noqa: N806
    _check_ldl("torch.linalg.ldl_factor", info)
    return _out(return_types.linalg_ldl_factor(LD, pivots), out)


def ldl_factor_ex(input: Any, *, hermitian: bool = False, check_errors: bool = False, out: Any = None) -> Any:  # noqa: A002
    """`ldl_factor`, and a status per matrix: 0, or the number of the first zero on the diagonal of D."""
    LD, pivots, info = OPS["ldl_factor"](input, hermitian)  # noqa: N806
    if check_errors:
        _check_ldl("torch.linalg.ldl_factor_ex", info)
    return _out(return_types.linalg_ldl_factor_ex(LD, pivots, info), out)


def _check_ldl(name: str, info: Any) -> None:
    _demand(info == 0, RuntimeError, lambda: f"{name}: the diagonal element D[{int(info.max()) - 1},{int(info.max()) - 1}] is zero, and "
           "solving by D would divide by it")  # fmt: skip


def ldl_solve(LD: Any, pivots: Any, B: Any, *, hermitian: bool = False, out: Any = None) -> Any:  # noqa: N803
    """X (*, n, k) with A @ X = B, from the factors of A by `ldl_factor`."""
    _check_square("torch.linalg.ldl_solve", LD, "LD")
    _normalize_dim(-2, B.ndim)
    if B.shape[-2] != LD.shape[-1]:
        raise RuntimeError(f"Incompatible matrix sizes for torch.linalg.ldl_solve: each A matrix is {LD.shape[-1]} by {LD.shape[-1]} but "
                           f"each b matrix is {B.shape[-2]} by {B.shape[-1]}")  # fmt: skip
    if LD.dtype is not B.dtype:
        raise RuntimeError(f"Expected b and A to have the same dtype, but found b of type {_scalar_name(B.dtype)} and A of type "
                           f"{_scalar_name(LD.dtype)} instead.")  # fmt: skip
    if tuple(pivots.shape) != tuple(LD.shape[:-1]) or not pivots.dtype.is_integral:
        raise RuntimeError(f"torch.linalg.ldl_solve: Expected pivots to be integers of shape {list(LD.shape[:-1])}, but got {pivots.dtype} "
                           f"of shape {list(pivots.shape)}")  # fmt: skip
    a, b = _batched(LD, B)
    places = OPS["expand"](OPS["to_dtype"](pivots, dtypes.int32), tuple(a.shape[:-1]))
    return _out(OPS["ldl_solve"](a, places, b, hermitian), out)


@_public(out=_Out())
def pinv(input: Any, rtol: Any = None, *, atol: Any = None, rcond: Any = None, hermitian: bool = False) -> Any:  # noqa: A002
    """The Moore-Penrose inverse (*, n, m). Singular values up to max(atol, rtol * the largest) count as zero.
    rtol: by default 0 if atol is given. hermitian: `input` is Hermitian; its lower triangle is read.
    """
    rtol = rcond if rtol is None else rtol
    if input.numel() == 0:
        return OPS["pinv"](input, None)
    if atol is None and not hermitian and not hasattr(rtol, "stride"):
        return OPS["pinv"](input, rtol)
    _check_matrix("linalg.pinv", input)
    if hermitian:
        s, u = eigh(input)
        vh = u.mH
    else:
        u, s, vh = svd(input, full_matrices=False)
    some = OPS["abs"](s) > _tolerance(input, OPS["abs"](s), atol, rtol)
    inverses = OPS["where"](some, 1 / OPS["where"](some, s, 1.0), 0.0)
    return (vh.mH * inverses.unsqueeze(-2)) @ u.mH


def _tolerance(A: Any, s: Any, atol: Any, rtol: Any) -> Any:  # noqa: N803
    """The bound (*, 1) that nonzero singular values `s` (*, k) exceed.

    rtol: by default eps * max(m, n), but 0 with an atol.
    """
    default = max(A.shape[-2:]) * _dtypes_eps(A.dtype)

    def per_matrix(t: Any) -> Any:
        return OPS["unsqueeze"](t, t.ndim) if hasattr(t, "stride") else t

    largest = OPS["amax"](s, (s.ndim - 1,), True) if s.shape[-1] else OPS["full"]((*s.shape[:-1], 1), 0, s.dtype, s.device)
    atol = 0.0 if atol is None else per_matrix(atol)
    if rtol is not None:
        relative = per_matrix(rtol)
    elif hasattr(atol, "stride"):
        relative = OPS["where"](atol > 0, 0.0, default)
    else:
        relative = 0.0 if atol > 0 else default
    return OPS["clamp"](largest * relative, atol, None)


@_public(out=_Out())
def matrix_rank(input: Any, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None) -> Any:  # noqa: A002
    """The number (*) of singular values above `tol`, else above max(atol, rtol * the largest).

    hermitian: read the lower triangle.
    """
    s = OPS["abs"](eigvalsh(input)) if hermitian else OPS["svdvals"](input)
    if s.shape[-1] == 0:
        return OPS["full"](tuple(s.shape[:-1]), 0, dtypes.int64, input.device)
    if tol is None:
        bound = _tolerance(input, s, atol, rtol)
    else:
        bound = OPS["unsqueeze"](tol, tol.ndim) if hasattr(tol, "stride") else tol
    above = s > bound
    return OPS["sum"](above, (above.ndim - 1,), False, None)


def _dtypes_eps(d: dtypes.dtype) -> float:
    """The distance from 1 to the next larger number of a floating dtype."""
    return 2.0**-52 if d.to_real() is dtypes.float64 else 2.0**-23


# ---- norms ----

_INF = math.inf


def _check_norm_dtype(name: str, input_dtype: dtypes.dtype, norm_dtype: dtypes.dtype) -> None:
    """Raise RuntimeError unless a norm may have this dtype: no narrower than the input's, and real iff it is."""
    if norm_dtype.is_integral:
        raise RuntimeError(f"{name}: dtype should be floating point or complex, but got {_scalar_name(norm_dtype)}")
    if input_dtype.is_complex is not norm_dtype.is_complex:
        kind = "complex" if input_dtype.is_complex else "real"
        raise RuntimeError(f"{name}: dtype should be {kind} for {kind} inputs, but got {_scalar_name(norm_dtype)}")
    if dtypes.promote_types(input_dtype, norm_dtype) is not norm_dtype:
        raise RuntimeError(f"{name}: the dtype of the input ({_scalar_name(input_dtype)}) should be convertible without narrowing to the "
                           f"specified dtype ({_scalar_name(norm_dtype)})")  # fmt: skip


def vector_norm(input: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None) -> Any:  # noqa: A002
    """The norm of order `ord` over `dim` (by default all dims), of the elements as one vector."""
    if isinstance(ord, complex):
        raise RuntimeError("linalg.vector_norm: Expected a non-complex scalar as the order of norm.")
    if dtype is not None:
        _check_norm_dtype("linalg.vector_norm", input.dtype, dtype)
        input = OPS["to_dtype"](input, dtype)
    return _out(OPS["vector_norm"](input, float(ord), _normalize_dims(dim, input.ndim), keepdim), out)


@_public(kinds={"ord": "Number"})
def _powsum(input: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:  # noqa: A002
    """The sum of |x| ** ord over `dim` (by default all dims)."""
    if isinstance(ord, complex):
        raise RuntimeError("value cannot be converted to type double without overflow")
    kind = input.dtype if dtype is None else dtype
    if kind.is_integral:
        raise dtypes.no_kernel("powsum_cpu", dtypes.int64 if dtype is None else kind)
    x = OPS["abs"](input if dtype is None else OPS["to_dtype"](input, dtype))
    return OPS["sum"](OPS["pow"](x, float(ord)), _normalize_dims(dim, input.ndim), keepdim, None)


@_public(out=_Out(exact=True))
def matrix_norm(input: Any, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: Any = None) -> Any:  # noqa: A002
    """The norm (*) of matrices: "fro", "nuc", or 1, 2, inf and their negatives. Raises: RuntimeError for integers or another ord."""
    if dtype is not None:
        _check_norm_dtype("linalg.matrix_norm", input.dtype, dtype)
        input = OPS["to_dtype"](input, dtype)
    _check_matrix("linalg.matrix_norm", input, halves=ord not in ("nuc", 2, -2))
    dims = tuple(dim)
    if len(dims) != 2:
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {' '.join(map(str, dims))}")
    rows, cols = (_normalize_dim(d, input.ndim) for d in dims)
    if rows == cols:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got ({dims[0]}, {dims[1]})")
    if ord == "fro":
        return OPS["vector_norm"](input, 2.0, tuple(sorted((rows, cols))), keepdim)
    if ord in ("nuc", 2, -2):
        s = OPS["svdvals"](input.movedim((rows, cols), (-2, -1)))
        last = (s.ndim - 1,)
        result = OPS["sum"](s, last, False, None) if ord == "nuc" else OPS["amax" if ord == 2 else "amin"](s, last, False)
    elif ord in (1, -1, _INF, -_INF):
        summed, other = (rows, cols) if abs(ord) == 1 else (cols, rows)
        sums = OPS["sum"](OPS["abs"](input), (summed,), True, None)
        result = OPS["amax" if ord > 0 else "amin"](sums, (other,), True)
        return result if keepdim else OPS["squeeze"](result, (rows, cols))
    else:
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    if keepdim:
        for d in sorted((rows, cols)):
            result = OPS["unsqueeze"](result, d)
    return result


def norm(input: Any, ord: Any = None, dim: Any = None, keepdim: bool = False, *, out: Any = None, dtype: Any = None) -> Any:  # noqa: A002
    """The vector norm over one dim (or over all, without an order), or the matrix norm over two dims."""
    dims = dim if dim is None or isinstance(dim, (tuple, list)) else (dim,)
    if dims is not None and len(dims) not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dims)}")
    if ord is not None and (isinstance(ord, str) or (dims is not None and len(dims) == 2) or (dims is None and input.ndim == 2)):
        return _out(matrix_norm(input, ord, dims or (-2, -1), keepdim, dtype=dtype), out)
    if ord is not None and dims is None and input.ndim != 1:
        raise RuntimeError(f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {input.ndim}D.")
    return vector_norm(input, 2 if ord is None else ord, dims, keepdim, dtype=dtype, out=out)


@_public(out=_Out())
def cond(input: Any, p: Any = None) -> Any:  # noqa: A002
    """Condition number (*). p: an ord of `matrix_norm`; None: the ratio of the extreme singular values. Raises: LinAlgError."""
    if p not in ("fro", "nuc") and input.numel() == 0 and input.ndim > 1:
        return OPS["full"](tuple(input.shape[:-2]), 0, input.dtype.to_real(), input.device)
    if p in (None, 2, -2):
        s = OPS["svdvals"](input)
        first, last = OPS["select"](s, s.ndim - 1, 0), OPS["select"](s, s.ndim - 1, s.shape[-1] - 1)
        return last / first if p == -2 else first / last
    return matrix_norm(input, p) * matrix_norm(inv(input), p)


# ---- products ----


@_public(out=_Out())
def matrix_power(input: Any, n: int) -> Any:  # noqa: A002
    """Square matrices (*, n, n) to the power `n`; a negative `n` inverts them first. Raises: LinAlgError for a singular matrix."""
    if input.ndim < 2 or input.shape[-1] != input.shape[-2]:
        _check_square("linalg.matrix_power", input)
    if n < 0:
        input, n = inv(input), -n
    if n == 0:  # the copy keeps `input` in the graph, with a zero gradient
        identity = OPS["diag_embed"](OPS["full"](tuple(input.shape[:-1]), 1, input.dtype, input.device), 0, -2, -1)
        return OPS["copy"](OPS["clone"](input, "contiguous"), identity)
    if n == 1:
        return OPS["clone"](input, "contiguous")
    result = None
    while n:  # binary powering
        if n & 1:
            result = input if result is None else OPS["matmul"](result, input)
        n >>= 1
        if n:
            input = OPS["matmul"](input, input)
    return result


def matrix_exp(input: Any) -> Any:  # noqa: A002
    """The exponential of square matrices (*, n, n)."""
    return OPS["matrix_exp"](input)


@_public(out=_Out(exact=True))
def multi_dot(tensors: Any) -> Any:
    """The product of several matrices in the order with the fewest multiplications.

    The first and last may be vectors.
    """
    factors = list(tensors)
    if len(factors) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(factors)}")
    row, column = factors[0].ndim == 1, factors[-1].ndim == 1
    if row:
        factors[0] = OPS["unsqueeze"](factors[0], 0)
    if column:
        factors[-1] = OPS["unsqueeze"](factors[-1], 1)
    result = _cheapest(factors)
    drop = tuple(d for d, gone in ((0, row), (1, column)) if gone)
    return OPS["squeeze"](result, drop) if drop else result


def _cheapest(factors: list[Any]) -> Any:
    """Matrix chain order by dynamic programming (Cormen et al., 15.2)."""
    sizes = [f.shape[0] for f in factors] + [factors[-1].shape[1]]
    n = len(factors)
    best: dict[tuple[int, int], tuple[int, int]] = {(i, i): (0, i) for i in range(n)}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            best[i, j] = min((best[i, k][0] + best[k + 1, j][0] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j))

    def product(i: int, j: int) -> Any:
        if i == j:
            return factors[i]
        k = best[i, j][1]
        return OPS["matmul"](product(i, k), product(k + 1, j))

    return product(0, n - 1)


def cross(input: Any, other: Any, *, dim: int = -1, out: Any = None) -> Any:  # noqa: A002
    """Cross product of vectors of three elements along `dim`."""
    if input.ndim != other.ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    if input.dtype is dtypes.bool_ and other.dtype is dtypes.bool_:
        raise NotImplementedError("\"cross\" not implemented for 'Bool'")
    if input.dtype is not other.dtype:
        raise RuntimeError(f"expected scalar type {_scalar_name(input.dtype)} but found {_scalar_name(other.dtype)}")
    d = _normalize_dim(dim, input.ndim)
    shape = _broadcast_shapes(input.shape, other.shape)
    if input.shape[d] != 3 or other.shape[d] != 3:
        raise RuntimeError(f"linalg.cross: inputs dimension {dim} must have length 3. Got {input.shape[dim]} and {other.shape[dim]}")
    a, b = OPS["expand"](input, shape), OPS["expand"](other, shape)

    def turned(x: Any, by: int) -> Any:
        return OPS["roll"](x, (by,), (d,))

    return _out((turned(a, -1) * turned(b, -2) - turned(a, -2) * turned(b, -1)).contiguous(), out)


@_public(out=_Out(exact=True))
def vecdot(x: Any, y: Any, *, dim: int = -1) -> Any:
    """The sums of products conj(x) * y along `dim`. Raises: RuntimeError for integer dtypes."""
    if x.dtype.is_integral:
        raise RuntimeError(f"linalg.vecdot: Expected a floating point or complex tensor as input. Got {_scalar_name(x.dtype)}")
    if x.dtype is not y.dtype:
        raise RuntimeError("linalg.vecdot: Expected x and y to have the same dtype, but found x of type "
                           f"{_scalar_name(x.dtype)} and y of type {_scalar_name(y.dtype)} instead")  # fmt: skip
    product = (OPS["conj"](x) if x.dtype.is_complex else x) * y
    return OPS["sum"](product, (_normalize_dim(dim, product.ndim),), False, None)


def diagonal(A: Any, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:  # noqa: N803
    """A view of the diagonals of matrices: (*, m, n) -> (*, k)."""
    return OPS["diagonal"](A, offset, dim1, dim2)


def matmul(input: Any, other: Any, *, out: Any = None) -> Any:  # noqa: A002
    """The matrix product; see `torch.matmul`."""
    return _out(OPS["matmul"](input, other), out)


def vander(x: Any, N: int | None = None) -> Any:  # noqa: N803
    """The powers 0, 1, 2, ..., N - 1 of the elements of vectors: (*, n) -> (*, n, N).

    Raises: RuntimeError for N < 1.
    """
    if x.dtype is dtypes.bool_ or x.dtype in (dtypes.float16, dtypes.bfloat16):
        raise RuntimeError(f"linalg.vander supports floating point, complex, and integer tensors, but got {_scalar_name(x.dtype)}")
    x = OPS["unsqueeze"](x, 0) if x.ndim == 0 else x
    n = x.shape[-1] if N is None else N
    if n <= 1:
        raise RuntimeError("N must be greater than 1.")
    x = OPS["to_dtype"](x, dtypes.int64) if x.dtype.is_integral else x
    return OPS["stack"]([OPS["pow"](x, i) for i in range(n)], x.ndim)


_publish_module(globals(), "linalg_")
_powsum = _wrap(_powsum, "linalg__powsum")

__all__ = [
    "LinAlgError", "cholesky", "cholesky_ex", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv",
    "ldl_factor", "ldl_factor_ex", "ldl_solve", "lstsq", "lu", "lu_factor", "lu_solve", "matmul", "matrix_exp", "matrix_norm",
    "matrix_power", "matrix_rank", "multi_dot", "norm", "pinv", "qr", "slogdet", "solve", "solve_triangular", "svd", "svdvals", "vander",
    "vecdot", "vector_norm",
]  # fmt: skip
