"""Randomised factorisations of low rank, and LU with its older return values."""
from __future__ import annotations

from typing import Any

from eager import linalg
from eager.functions.linalg import adjoint
from eager.functions.random import randn
from eager.optable.table import OPS
from eager.public.record import public


def _basis(A: Any, q: int, niter: int, M: Any) -> Any:  # noqa: N803 - torch's names here and below
    """Orthonormal columns that span most of the range of A - M: subspace iteration from random vectors."""

    def times(x: Any) -> Any:
        return OPS["matmul"](A, x) if M is None else OPS["matmul"](A, x) - OPS["matmul"](M, x)

    def back(x: Any) -> Any:
        result = OPS["matmul"](adjoint(A), x)
        return result if M is None else result - OPS["matmul"](adjoint(M), x)

    start = randn(*A.shape[:-2], A.shape[-1], q, dtype=A.dtype.to_real(), device=A.device)
    found = linalg.qr(times(OPS["to_dtype"](start, A.dtype))).Q
    for _ in range(niter):
        found = linalg.qr(back(found)).Q
        found = linalg.qr(times(found)).Q
    return found


@public(lenient=("q", "niter"))
def svd_lowrank(A: Any, q: int | None = None, niter: int | None = 2, M: Any = None) -> tuple[Any, Any, Any]:  # noqa: N803
    """U (*, m, q), S (*, q), V (*, n, q) with U @ diag(S) @ V.mH near A (less its mean M).

    Source: Halko, Martinsson & Tropp, "Finding structure with randomness", 2011 (algorithms 4.4 and 5.1).
    """
    most = min(A.shape[-2:])
    q, niter = min(6, most) if q is None else q, 2 if niter is None else niter
    if q > most:
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={most}")
    wide = A.shape[-2] < A.shape[-1]
    if wide:
        A, M = adjoint(A), None if M is None else adjoint(M)  # noqa: N806
    basis = _basis(A, q, niter, M)
    small = OPS["matmul"](adjoint(basis), A if M is None else A - M)
    u, s, vh = linalg.svd(small, full_matrices=False)
    u, v = OPS["matmul"](basis, u), adjoint(vh)
    return (v, s, u) if wide else (u, s, v)


@public(lenient=("q", "center", "niter"))
def pca_lowrank(A: Any, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Any, Any, Any]:  # noqa: N803
    """(U, S, V): `svd_lowrank` of the rows of A (*, m, n), from which `center` subtracts the mean row. q: rank, at most min(m, n)."""
    if not (A.dtype.is_floating_point or A.dtype.is_complex):
        raise ValueError(f"input must be a floating tensor, got {A.dtype}")
    m, n = A.shape[-2:]
    q = min(6, m, n) if q is None else q
    if not 0 <= q <= min(m, n):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return svd_lowrank(A - OPS["mean"](A, (A.ndim - 2,), True, None) if center else A, q, niter)


@public(lenient=("get_infos",))
def lu(A: Any, pivot: bool = True, get_infos: bool = False) -> tuple[Any, ...]:  # noqa: N803
    """(LU, pivots) of A (*, m, n), and with `get_infos` a status for each matrix, as `linalg.lu_factor_ex`."""
    packed, pivots, infos = linalg.lu_factor_ex(A, pivot=pivot)
    return (packed, pivots, infos) if get_infos else (packed, pivots)


FUNCTIONS: dict[str, Any] = {"svd_lowrank": svd_lowrank, "pca_lowrank": pca_lowrank, "lu": lu}
METHODS: dict[str, Any] = {"lu": lu}
