"""inverse, solve and cholesky with a status for each matrix of a batch in place of an error.

The status is LAPACK's: 0, or the number (from 1) of the first zero pivot, or of the first leading minor that is not
positive definite. A matrix that fails gives nan and does not affect the others.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from eager.base import dtypes
from eager.base.spec import SpecLike, TensorSpec
from eager.optable.array_functions import on_host
from eager.optable.linalg import (
    CHOLESKY,
    INVERSE,
    SOLVE,
    cholesky_vjp,
    first_indefinite_minor,
    first_zero_pivot,
    inverse_vjp,
    solve_vjp,
    spec_like,
)
from eager.optable.memory import linalg_errors
from eager.optable.precision import FLOAT32_ON_CPU
from eager.optable.registry import Kind
from eager.optable.table import Op, declare


def _kernel(compute: Callable[..., Any], status: Callable[[Any], int]) -> Callable[..., None]:
    """The kernel of an op that runs numpy's `compute` over the whole batch, or matrix by matrix where one fails."""

    def kernel(xp: Any, out: Any, x: Any, *others: Any) -> None:
        y, info = out
        info[...] = 0
        try:
            with linalg_errors(xp):
                xp.copyto(y, compute(xp, x, *others))
            return
        except np.linalg.LinAlgError:
            pass
        for at in np.ndindex(*x.shape[:-2]):
            try:
                with linalg_errors(xp):
                    y[at] = compute(xp, x[at], *(o[at] for o in others))
            except np.linalg.LinAlgError:
                y[at] = np.nan
                info[at] = status(on_host(x[at]))

    return kernel


def _declare(name: str, base: Op, params: str, compute: Callable[..., Any], status: Callable[[Any], int], vjp: dict[str, Any],
             **rules: Any) -> Op:  # fmt: skip
    def meta(x: SpecLike, *others: SpecLike) -> tuple[TensorSpec, TensorSpec]:
        assert base.meta is not None
        return base.meta(x, *others), spec_like(x, tuple(x.shape[:-2]), dtypes.int32)

    def samples(make: Any) -> Iterator[tuple[Any, ...]]:
        assert base.samples is not None
        return base.samples(make)

    return declare(f"{name}({params}) -> (Tensor, Tensor)", Kind.OPAQUE, meta=meta, kernel=_kernel(compute, status), vjp=vjp,
                   nondifferentiable_outputs=(1,), samples=samples, **rules)  # fmt: skip


INVERSE_STATUS = _declare("inverse_status", INVERSE, "Tensor x", lambda xp, x: xp.linalg.inv(x), first_zero_pivot,
                          {"x": lambda gs, y: inverse_vjp(gs[0], y)}, precision=FLOAT32_ON_CPU, batch="last_dims")  # fmt: skip
SOLVE_STATUS = _declare("solve_status", SOLVE, "Tensor x, Tensor other", lambda xp, x, other: xp.linalg.solve(x, other), first_zero_pivot,
                        {"x,other": lambda gs, x, y: solve_vjp(gs[0], x, y)}, precision=FLOAT32_ON_CPU, batch="last_dims")  # fmt: skip
CHOLESKY_STATUS = _declare("cholesky_status", CHOLESKY, "Tensor x", lambda xp, x: xp.linalg.cholesky(x), first_indefinite_minor,
                           {"x": lambda gs, y: cholesky_vjp(gs[0], y)}, precision=FLOAT32_ON_CPU, batch="last_dims")  # fmt: skip
