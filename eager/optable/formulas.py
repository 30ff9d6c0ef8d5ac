"""Gradient formulas: how a declaration states them, and the helpers that formulas share.

A formula is a function whose parameter names say which values it needs (`Vjp`). `eager.optable.gradients` runs the formulas of an op.
"""
from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Sequence
from typing import Any, Final

from eager import _native
from eager.base.dtypes import dtype
from eager.base.spec import SpecLike, TensorSpec, same_shape
from eager.optable import opmath
from eager.optable.registry import CALLS

OUTPUT_NAMES: Final = ("y", *(f"y{i}" for i in range(1, 8)))


class Vjp:
    """A gradient formula for one or several inputs. Its parameter names say which values are saved for it.

    They name parameters of the op (`x`, or `x_spec` for the shape alone), outputs (`y` the first, `y1` the second, `ys` all),
    cotangents (`g`, `gs`) and `needs`. A named tensor must not be written to before the backward.
    """

    __slots__ = ("inputs", "fn", "params", "joint")

    def __init__(self, key: str, fn: Callable[..., Any], tensors: Sequence[str], in_opmath: bool) -> None:
        self.inputs = tuple(key.replace(" ", "").split(","))
        self.joint = len(self.inputs) > 1
        self.params = _parameter_names(fn)
        cotangent = next((i for i, p in enumerate(self.params) if p in ("g", "gs")), None)
        alone = not {*tensors, *OUTPUT_NAMES, "ys"}.intersection(self.params)  # a formula of the cotangent alone rounds once at most
        self.fn = fn if cotangent is None or alone or not in_opmath else opmath.gradient(fn, cotangent, cast_to)


def _parameter_names(fn: Callable[..., Any]) -> tuple[str, ...]:
    if type(fn) is types.FunctionType and not vars(fn):  # a hundred times as fast as a signature
        code = fn.__code__
        return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return tuple(inspect.signature(fn).parameters)


def no_derivative(what: str, name: str) -> Callable[..., Any]:
    """Gradient formula in the parameter `name` of an op without a derivative: raises when called, or when a captured graph runs."""

    def refuse(gs: Sequence[Any], spec: TensorSpec) -> Any:
        message, given = f"the derivative for '{what}' is not implemented", [g for g in gs if g is not None]
        if not given[0].is_fake:
            raise NotImplementedError(message)
        return CALLS["no_gradient"](given, tuple(spec.shape), message)

    refuse.__signature__ = inspect.Signature([  # type: ignore[attr-defined]
        inspect.Parameter(n, inspect.Parameter.POSITIONAL_ONLY) for n in ("gs", f"{name}_spec")])  # fmt: skip
    return refuse


def cast_to(g: Any, d: dtype) -> Any:
    """`g` in dtype `d`. The real part of a complex gradient of a real input is a view, as in torch."""
    if g.dtype is d:
        return g
    if g.dtype.is_complex and not d.is_complex:
        return cast_to(CALLS["real"](g), d)
    return CALLS["to_dtype"](g, d)


def sum_to(g: Any, shape: Sequence[int]) -> Any:
    """Sum `g` over the dims along which `shape` was broadcast to it."""
    shape = tuple(shape)
    if same_shape(g.shape, shape):
        return g
    lead = g.ndim - len(shape)
    dims = tuple(range(lead)) + tuple(i + lead for i, n in enumerate(shape) if n == 1 and g.shape[i + lead] != 1)
    if dims:
        g = CALLS["sum"](g, dims, True, None)
    return CALLS["view"](g, shape) if lead else g


def zeros(spec: SpecLike) -> Any:
    """A tensor of zeros, through dispatch."""
    return CALLS["full"](tuple(spec.shape), 0, spec.dtype, spec.device)


def fit(g: Any, x: Any) -> Any:
    """A cotangent in the shape and dtype of the input that it belongs to."""
    return cast_to(sum_to(g, x.shape), x.dtype)


_native.register_gradient_helpers(None, fit, cast_to)
composition: Final = opmath.composition(cast_to)
