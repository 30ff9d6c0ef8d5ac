"""The strides of gradients, where torch computes one by a separate kernel or in a tensor that it allocates first.

A gradient formula is written as a few ops, and its result follows the laws of those ops (eager/base/spec.py). torch writes most
gradients so too. For the others the formula is wrapped in the law that torch's result follows:

- `elementwise_over`: one elementwise kernel over the tensors named, in that order (`elu_backward(grad, self)`).
- `in_rows`: row-major memory (`mse_loss_backward`).
- `as_input`: memory like the input's (`take_backward`).
- `in_channels_last`: channels-last memory where the input suggests it (`native_batch_norm_backward`).
- `in_strides`: any other strides, from the gradient and the formula's values (`max_pool2d_with_indices_backward`).

A public function of several ops names the law of its gradient by `with_gradient`.
"""
from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final

from eager import _native
from eager.base.spec import (
    SpecLike,
    contiguous_strides,
    elementwise_strides,
    format_strides,
    is_channels_last,
    preserve_strides,
    suggested_strides,
)
from eager.optable.registry import Kind
from eager.optable.table import OPS, declare

Formula = Callable[..., Any]


def laid_out(y: Any, strides: tuple[int, ...]) -> Any:
    """`y`, a fresh result, with dense `strides`: itself, a view of it if only dims of size 1 differ, else a copy."""
    shape, have = tuple(y.shape), tuple(y.stride())
    if have == strides:
        return y
    if all(n == 1 or a == b for n, a, b in zip(shape, have, strides, strict=True)):
        return OPS["as_strided"](y, shape, strides, None)
    for name, ndim in (("contiguous", len(shape)), ("channels_last", 4), ("channels_last_3d", 5)):
        if len(shape) == ndim and strides == format_strides(shape, name):
            return OPS["clone"](y, name)
    memory = OPS["full"]((y.numel(),), 0, y.dtype, y.device)
    return OPS["copy"](OPS["as_strided"](memory, shape, strides, 0), y)


def in_strides(formula: Formula, needs: str, strides_of: Callable[..., tuple[int, ...] | None]) -> Formula:
    """The formula with its gradient, or the first of several, in the strides of `strides_of(gradient, *values of needs)`.

    needs: names of values that a formula may take (see `Vjp` in eager/optable/declaration.py).
    strides_of: returns None if the gradient's strides are right.
    """
    own = list(inspect.signature(formula).parameters)
    names = own + [n for n in needs.split() if n not in own]
    at, count = [names.index(n) for n in needs.split()], len(own)

    def wrapped(*values: Any) -> Any:
        result = formula(*values[:count])
        several = isinstance(result, tuple)
        g = result[0] if several else result
        if g is None:
            return result
        strides = strides_of(g, *[values[i] for i in at])
        if strides is None:
            return result
        g = laid_out(g, strides)
        return (g, *result[1:]) if several else g

    wrapped.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(n, inspect.Parameter.POSITIONAL_ONLY) for n in names])  # fmt: skip
    return wrapped


def _elementwise(g: Any, *operands: Any) -> tuple[int, ...] | None:
    """None in the usual case: the operands have the gradient's strides, or are expanded in all dims and so order none."""
    have = g.stride()
    for t in operands:
        if hasattr(t, "stride") and (strides := t.stride()) != have and any(strides):
            return elementwise_strides(tuple(g.shape), [t for t in operands if hasattr(t, "stride")])
    return None


def elementwise_over(operands: str, formula: Formula) -> Formula:
    return in_strides(formula, operands, _elementwise)


def in_rows(formula: Formula) -> Formula:
    return in_strides(formula, "", lambda g: contiguous_strides(tuple(g.shape)))


def as_input(formula: Formula, name: str = "x") -> Formula:
    return in_strides(formula, f"{name}_spec", lambda g, x: preserve_strides(x))


def in_channels_last(formula: Formula, name: str = "x") -> Formula:
    """Channels-last memory where the input suggests it; other strides stay as the formula's ops give them."""
    return in_strides(formula, f"{name}_spec", lambda g, x: (
        suggested_strides(x, tuple(g.shape)) if is_channels_last(x) else tuple(g.stride())))


_LAWS: Final[dict[str, Callable[[SpecLike], tuple[int, ...]]]] = {
    "rows": lambda x: contiguous_strides(tuple(x.shape)), "format": lambda x: suggested_strides(x, tuple(x.shape))}


def _same(x: Any, law: str) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    return tuple(x.shape), tuple(x.stride()), x.storage_offset() if hasattr(x, "storage_offset") else 0


# `x` itself, whose gradient has the strides that a law of `_LAWS` gives.
GRADIENT_IN = declare("gradient_in(Tensor x, str law) -> Tensor", Kind.VIEW, view=_same,
                      vjp={"x": lambda g, x_spec, law: laid_out(g, _LAWS[law](x_spec))},
                      samples=lambda make: iter([(make(4, 3).t(), "rows"), (make(2, 3, 4, 5), "format")]),
                      batch="first_in_front")  # fmt: skip


def with_gradient(law: str, x: Any, always: bool = False) -> Any:
    """`x`, such that ops on it give a gradient in the strides of `law` ("rows" or "format").

    always: a row-major `x` may have another gradient too.
    """
    if x.requires_grad and _native.grad_enabled() and (always or law == "format" or not x.is_contiguous()):
        return OPS["gradient_in"](x, law)
    return x
