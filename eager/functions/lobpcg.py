"""`lobpcg`: a few of the largest or smallest eigenvalues of symmetric matrices, by products with them alone.

Source: A. Knyazev, "Toward the optimal preconditioned eigensolver", SIAM J. Sci. Comput. 23(2), 2001.
"""
from __future__ import annotations

from typing import Any

from eager import _native
from eager._tensor.tensor import Tensor
from eager.autograd.grad_mode import no_grad
from eager.base.limits import finfo
from eager.functions import random
from eager.optable.table import OPS
from eager.public.record import public

_DEFAULT_STEPS = 1000  # of an iteration that is to run until it converges


def _times(a: Any, x: Any) -> Any:
    return x if a is None else OPS["matmul"](a, x)


def _t(x: Any) -> Any:
    return OPS["permute"](x, (1, 0))


def _orthonormal(s: Any, b: Any) -> Any:
    """A basis of the columns of s (m, n), orthonormal in the product with b; what depends on the others is left out."""
    for _ in range(2):  # twice, against rounding errors
        lengths, vectors = OPS["eigh"](OPS["matmul"](_t(s), _times(b, s)), False)
        keep = lengths > lengths[-1] * (10 * finfo(s.dtype).eps)
        s = OPS["matmul"](s, vectors[:, keep] / OPS["sqrt"](lengths[keep]))
    return s


def _ritz(a: Any, s: Any, k: int, largest: bool) -> tuple[Any, Any]:
    """The k requested eigenvalues of `a` within the span of s, and their coordinates in it."""
    values, vectors = OPS["eigh"](OPS["matmul"](_t(s), OPS["matmul"](a, s)), False)
    if largest:
        return OPS["flip"](values[-k:], (0,)), OPS["flip"](vectors[:, -k:], (1,))
    return values[:k], vectors[:, :k]


def _solve(a: Any, b: Any, x: Any, preconditioner: Any, steps: int, tol: float, largest: bool) -> tuple[Any, Any]:
    """Eigenvalues (k) and eigenvectors (m, k) of one matrix, from the first guess x (m, k)."""
    k = x.shape[1]
    basis = _orthonormal(x, b)
    values, within = _ritz(a, basis, k, largest)
    x, before = OPS["matmul"](basis, within), None
    scale = float(OPS["sqrt"](OPS["sum"](a * a, (0, 1), False, None)))
    scale_b = 1.0 if b is None else float(OPS["sqrt"](OPS["sum"](b * b, (0, 1), False, None)))
    for _ in range(steps):
        residual = OPS["matmul"](a, x) - _times(b, x) * values
        lengths = OPS["sqrt"](OPS["sum"](residual * residual, (0,), False, None))
        bound = OPS["sqrt"](OPS["sum"](x * x, (0,), False, None)) * (scale + OPS["abs"](values) * scale_b) * tol
        if bool(OPS["all"](lengths <= bound, (0,), False)):
            break
        blocks = [x, _times(preconditioner, residual)] + ([] if before is None else [before])
        blocks = [y / OPS["sqrt"](OPS["sum"](y * y, (0,), True, None)).clamp(min=finfo(y.dtype).tiny) for y in blocks]
        basis = _orthonormal(OPS["cat"](blocks, 1), b)
        values, within = _ritz(a, basis, k, largest)
        new = OPS["matmul"](basis, within)
        x, before = new, new - OPS["matmul"](x, OPS["matmul"](_t(x), _times(b, new)))
    return values, x


@public(lenient=("niter", "largest"))
def lobpcg(A: Any, k: int | None = None, B: Any = None, X: Tensor | None = None, n: int | None = None, iK: Tensor | None = None,  # noqa: N803
           niter: int | None = None, tol: float | None = None, largest: bool | None = None, method: str | None = None,
           tracker: Any = None, ortho_iparams: Any = None, ortho_fparams: Any = None,
           ortho_bparams: Any = None) -> tuple[Any, Any]:  # fmt: skip
    """The k largest (smallest, with `largest` false) eigenvalues (*, k) with A x = e B x, and their vectors (*, m, k).

    A: symmetric (*, m, m); B: of its shape, positive definite; X: (*, m, n) to start from; iK: a preconditioner (*, m, m).
    It ends where every residual is below tol (by default the root of the precision) times the norms, or after niter steps.
    Raises: ValueError for m < 3 k, NotImplementedError for gradients, a tracker and settings of the orthogonalisation.
    """
    m = A.shape[-1]
    if method not in (None, "basic", "ortho"):
        raise ValueError(f'lobpcg: method={method!r}; allowed: "basic" and "ortho", which are one here')
    for name, value in (("tracker", tracker), ("ortho_iparams", ortho_iparams), ("ortho_fparams", ortho_fparams),
                        ("ortho_bparams", ortho_bparams)):  # fmt: skip
        if value is not None:
            raise NotImplementedError(f"lobpcg: {name} is not implemented; leave it None")
    if _native.grad_enabled() and any(t is not None and t.requires_grad for t in (A, B)):
        raise NotImplementedError("lobpcg: gradients are not implemented; use linalg.eigh, or detach its arguments")
    k = (1 if X is None else X.shape[-1]) if k is None else k
    n = (k if X is None else X.shape[-1]) if n is None else n
    if m < 3 * n:
        raise ValueError(f"LPBPCG algorithm is not applicable when the number of A rows (={m}) is smaller than 3 x the number of requested "
                         f"eigenpairs (={n})")  # fmt: skip
    lead = tuple(A.shape[:-2])
    with no_grad():
        start = random.randn((*lead, m, n), dtype=A.dtype, device=A.device) if X is None else X
        parts: list[Any] = [None if t is None else t.reshape(-1, *t.shape[-2:]) for t in (A, B, start, iK)]
        steps = _DEFAULT_STEPS if niter is None or niter < 0 else niter
        tolerance = finfo(A.dtype).eps ** 0.5 if tol is None else tol
        solved = []
        for i in range(parts[0].shape[0]):
            a, b, x, preconditioner = (None if p is None else p[i] for p in parts)
            solved.append(_solve(a, b, x, preconditioner, steps, tolerance, largest is not False))
        values = OPS["stack"]([v for v, _ in solved], 0).reshape(*lead, n)[..., :k]
        return values, OPS["stack"]([x for _, x in solved], 0).reshape(*lead, m, n)[..., :k]


FUNCTIONS: dict[str, Any] = {"lobpcg": lobpcg}
METHODS: dict[str, Any] = {}
