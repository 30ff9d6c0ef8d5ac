"""Factors of symmetric and Hermitian matrices that need not be definite, with pivots of one and of two rows, and solving by them.

Source: Bunch & Kaufman, "Some stable methods for calculating inertia and solving symmetric linear systems", 1977, with
LAPACK's conventions (sytrf, hetrf, sytrs): the lower triangle, pivots counted from 1, a pair of equal negative ones for a
block of two rows.
"""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from eager.base import dtypes
from eager.base.spec import SpecLike, TensorSpec
from eager.optable.array_functions import hosted
from eager.optable.linalg import check_matrix, check_square
from eager.optable.registry import Kind
from eager.optable.table import declare

_ALPHA = (1 + math.sqrt(17)) / 8  # Bunch and Kaufman's bound on the growth of elements


def _sizes(z: Any) -> Any:
    """Magnitudes as LAPACK compares them: of a complex number the sum of its parts' magnitudes."""
    return np.abs(z.real) + np.abs(z.imag) if z.dtype.kind == "c" else np.abs(z)


def _pivot(a: Any, k: int, hermitian: bool) -> tuple[int, int]:
    """The row to exchange at step k, and whether one or two rows are eliminated; (-1, 1) for a column of zeros."""
    own = float(abs(a[k, k].real) if hermitian else _sizes(a[k : k + 1, k])[0])
    below = _sizes(a[k + 1 :, k])
    at = k + 1 + int(below.argmax()) if below.size else k
    largest = float(below.max()) if below.size else 0.0
    if max(own, largest) == 0 or math.isnan(own):
        return -1, 1
    if own >= _ALPHA * largest:
        return k, 1
    row = max(float(_sizes(a[at, k:at]).max()), float(_sizes(a[at + 1 :, at]).max()) if at + 1 < len(a) else 0.0)
    if own >= _ALPHA * largest * (largest / row):
        return k, 1
    return at, 1 if float(abs(a[at, at].real) if hermitian else _sizes(a[at : at + 1, at])[0]) >= _ALPHA * row else 2


def _exchange(a: Any, k: int, at: int, rows: int, conj: Any) -> None:
    """Rows and columns k + rows - 1 and `at` of the remaining lower triangle."""
    to = k + rows - 1
    a[at + 1 :, [to, at]] = a[at + 1 :, [at, to]]
    between = a[to + 1 : at, to].copy()
    a[to + 1 : at, to] = conj(a[at, to + 1 : at])
    a[at, to + 1 : at] = conj(between)
    a[at, to] = conj(a[at, to])
    a[to, to], a[at, at] = a[at, at], a[to, to]
    if rows == 2:
        a[k + 1, k], a[at, k] = a[at, k], a[k + 1, k]


def _factor_one(a: Any, pivots: Any, hermitian: bool) -> int:
    """Factor the lower triangle of `a` in place; the number of the first zero on the diagonal of D, or 0."""
    conj: Any = np.conj if hermitian else (lambda z: z.copy())
    n, k, info = len(a), 0, 0
    while k < n:
        at, rows = _pivot(a, k, hermitian)
        if at < 0:
            info, at = info or k + 1, k
        elif at != k + rows - 1:
            _exchange(a, k, at, rows, conj)
        if hermitian:
            for i in range(k, k + rows):
                a[i, i] = a[i, i].real
        pivots[k : k + rows] = at + 1 if rows == 1 else -(at + 1)
        end = k + rows
        if rows == 1 and a[k, k] != 0:
            column = a[end:, k] / a[k, k]
            a[end:, end:] -= np.outer(column, conj(a[end:, k]))
            a[end:, k] = column
        elif rows == 2 and end < n:
            block = np.array([[a[k, k], conj(a[k + 1, k])], [a[k + 1, k], a[k + 1, k + 1]]])
            pair = np.linalg.solve(block.T, a[end:, k:end].T).T
            a[end:, end:] -= pair @ conj(a[end:, k:end]).T
            a[end:, k:end] = pair
        k = end
    return info


@hosted
def _factor(xp: Any, out: Any, x: Any, hermitian: bool) -> None:
    n = x.shape[-1]
    matrices = np.array(np.tril(x)).reshape(math.prod(x.shape[:-2]), n, n)
    pivots, info = np.empty((len(matrices), n), "i4"), np.empty(len(matrices), "i4")
    with np.errstate(all="ignore"):
        for i, a in enumerate(matrices):
            info[i] = _factor_one(a, pivots[i], hermitian and x.dtype.kind == "c")
    out[0][...] = np.tril(matrices).reshape(x.shape)
    out[1][...] = pivots.reshape(out[1].shape)
    out[2][...] = info.reshape(out[2].shape)


def _columns_first(x: SpecLike) -> TensorSpec:
    """As LAPACK leaves matrices: the columns of each one after another."""
    lead, (m, n) = tuple(x.shape[:-2]), x.shape[-2:]
    spec = TensorSpec.contiguous((*lead, n, m), x.dtype, x.device)
    return TensorSpec((*lead, m, n), x.dtype, (*spec.strides[:-2], 1, max(m, 1)), x.device)


def _factor_meta(x: SpecLike, hermitian: bool) -> tuple[TensorSpec, ...]:
    check_square("torch.linalg.ldl_factor_ex", x)
    lead = tuple(x.shape[:-2])
    return (_columns_first(x), TensorSpec.contiguous((*lead, x.shape[-1]), dtypes.int32, x.device),
            TensorSpec.contiguous(lead, dtypes.int32, x.device))  # fmt: skip


def _symmetric(make: Any) -> Any:
    yield make.symmetric(3, 3), False
    yield make.symmetric(2, 4, 4), True


LDL_FACTOR = declare("ldl_factor(Tensor x, bool hermitian=False) -> (Tensor, Tensor, Tensor)", Kind.OPAQUE, meta=_factor_meta,
                     kernel=_factor, underived=True, samples=_symmetric)  # fmt: skip


def _solve_one(a: Any, pivots: list[int], b: Any, conj: Any) -> None:
    """b becomes the solution: L, then D block by block, then the transpose of L, with the exchanges of rows on the way."""
    n, k = len(a), 0
    steps: list[tuple[int, int]] = []
    while k < n:
        rows = 1 if pivots[k] > 0 else 2
        at, to, end = abs(pivots[k]) - 1, k + rows - 1, k + rows
        b[[to, at]] = b[[at, to]]
        b[end:] -= a[end:, k:end] @ b[k:end]
        block = a[k:end, k:end]
        if rows == 2:
            block = np.array([[a[k, k], conj(a[k + 1, k])], [a[k + 1, k], a[k + 1, k + 1]]])
        b[k:end] = np.linalg.solve(block, b[k:end]) if rows == 2 else b[k:end] / a[k, k]
        steps.append((k, rows))
        k = end
    for k, rows in reversed(steps):
        end = k + rows
        b[k:end] -= conj(a[end:, k:end]).T @ b[end:]
        at, to = abs(pivots[k]) - 1, end - 1
        b[[to, at]] = b[[at, to]]


@hosted
def _solve(xp: Any, out: Any, x: Any, pivots: Any, other: Any, hermitian: bool) -> None:
    conj: Any = np.conj if hermitian else (lambda z: z)
    n, count = x.shape[-1], math.prod(x.shape[:-2])
    solved = np.array(other).reshape(count, n, other.shape[-1])
    with np.errstate(all="ignore"):
        for a, p, b in zip(x.reshape(count, n, n), pivots.reshape(count, n).tolist(), solved, strict=True):
            _solve_one(a, p, b, conj)
    out[...] = solved.reshape(out.shape)


def _solve_meta(x: SpecLike, pivots: SpecLike, other: SpecLike, hermitian: bool) -> TensorSpec:
    check_square("torch.linalg.ldl_solve", x)
    check_matrix("torch.linalg.ldl_solve", other)
    return _columns_first(other)


def _solvable(make: Any) -> Any:
    pivots = make.int(3, low=1, high=2)
    yield make.invertible(3, 3), pivots, make(3, 2), False


LDL_SOLVE = declare("ldl_solve(Tensor x, Tensor pivots, Tensor other, bool hermitian=False) -> Tensor", Kind.OPAQUE, fallible=True,
                    meta=_solve_meta, kernel=_solve, samples=_solvable, underived=True)  # fmt: skip
