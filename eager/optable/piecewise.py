"""Second derivatives of piecewise linear ops: zero, and present, as torch has them.

The gradient of such an op (relu, max_pool, nll) does not change with its input, so that a formula written as plain ops
leaves the input out of the second graph: torch.autograd.grad then reports an unused input (or gives None), where torch
gives zeros. `piecewise_linear` wraps a formula and keeps the input in that graph.
"""
from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from eager import _native
from eager.optable.registry import Kind
from eager.optable.table import OPS, declare


def _samples(make: Any) -> Iterator[tuple[Any, ...]]:
    yield make(3, 4), make(3, 4)


# `grad` itself, whose derivative in `x` is zero.
WITH_ZERO_SLOPE = declare("with_zero_slope(Tensor grad, Tensor x) -> Tensor", Kind.POINTWISE, scalar=lambda k, grad, x: grad,
                          vjp={"grad": lambda g: g, "x": lambda g: OPS["fill"](g, 0)}, samples=_samples)  # fmt: skip


def piecewise_linear(formula: Callable[..., Any], kept: str = "x") -> Callable[..., Any]:
    """The gradient formula with a second derivative of zero in `kept`: the input, or the output `y` that depends on it.

    formula: gives the gradient of the input, or a tuple whose first element is that.
    """
    names = list(inspect.signature(formula).parameters)
    added = kept not in names
    at = len(names) if added else names.index(kept)

    def wrapped(*args: Any) -> Any:
        x = args[at]
        result = formula(*(args[:-1] if added else args))
        if x is None or not (_native.grad_enabled() and x.requires_grad):
            return result
        if isinstance(result, tuple):
            return (_with_zero_slope(result[0], x), *result[1:])
        return _with_zero_slope(result, x)

    parameters = [*names, kept] if added else names
    wrapped.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in parameters])  # fmt: skip
    return wrapped


def _with_zero_slope(g: Any, x: Any) -> Any:
    return None if g is None else OPS["with_zero_slope"](g, x)
