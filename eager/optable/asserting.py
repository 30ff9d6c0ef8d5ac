"""Checks of the values of arguments: immediate in eager code, and an op of the graph while a function is traced."""
from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from typing import Any

from eager.base import dtypes
from eager.base.spec import SpecLike, TensorSpec
from eager.optable.registry import Kind
from eager.optable.table import declare


def _assert_all(xp: Any, out: Any, cond: Any, error: str, message: str) -> None:
    if not bool(cond.all()):
        raise getattr(builtins, error)(message)
    out[...] = True


def _meta(cond: SpecLike, error: str, message: str) -> TensorSpec:
    return TensorSpec.contiguous((), dtypes.bool_, cond.device)


def _samples(make: Any) -> Iterator[tuple[Any, ...]]:
    yield make(3, 4) < 2, "RuntimeError", "draws are below 1"
    yield make(0) > 0, "ValueError", "no element is enough"


ASSERT_ALL = declare("assert_all(Tensor cond, str error, str message) -> Tensor", Kind.EFFECT, meta=_meta, kernel=_assert_all,
                     nondifferentiable=True, fallible=True, samples=_samples, batch="demanded")  # fmt: skip


def _no_gradient(xp: Any, out: Any, gs: Any, size: Any, message: str) -> None:
    if any(g.any() for g in gs):
        raise NotImplementedError(message)
    out[...] = 0  # of a result that no caller uses


# The op of a traced backward in place of a gradient without a formula.
NO_GRADIENT = declare("no_gradient(Tensor[] gs, int[] size, str message) -> Tensor", Kind.OPAQUE, kernel=_no_gradient,
                      meta=lambda gs, size, message: TensorSpec.contiguous(tuple(size), gs[0].dtype, gs[0].device), nondifferentiable=True,
                      fallible=True, samples=lambda make: iter([([make(3) * 0, make(2) * 0], (2, 4), "no gradient")]))  # fmt: skip


def demand(cond: Any, error: type[Exception], message: str | Callable[[], str]) -> None:
    """Raise `error` with `message` (or the text that it returns) unless every element of the bool tensor `cond` is true.

    A fake tensor has no values: the call becomes an op of the traced graph, which raises when it runs.
    """
    if not cond.is_fake:
        if not bool(cond.all()):
            raise error(message if isinstance(message, str) else message())
        return
    told = next(e.__name__ for e in error.__mro__ if vars(builtins).get(e.__name__) is e)
    ASSERT_ALL(cond, told, message if isinstance(message, str) else f"{told}: what eager refuses")
