"""`_foreach_*`: one function over the tensors of a list, as optimizers and clipping write it.

Each takes lists of equal length, or one number (or 0-d tensor) for all, or a list of numbers; in-place forms end in `_`.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from eager import _native
from eager.functions import linalg, pointwise, reductions
from eager.optable.table import OPS

TensorBase = _native.TensorBase
_UNARY = ("abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg reciprocal round rsqrt "
          "sigmoid sign sin sinh sqrt tan tanh trunc").split()  # fmt: skip
_BINARY = "maximum minimum clamp_max clamp_min pow mul div add sub copysign".split()


def _tensors(who: str, given: Any) -> Sequence[Any]:
    if not isinstance(given, (list, tuple)) or not all(isinstance(t, TensorBase) for t in given):
        raise TypeError(f"{who}(): argument 'self' (position 1) must be tuple of Tensors, not {type(given).__name__}")
    _nonempty(given)
    return given


def _others(who: str, given: Any, count: int) -> Sequence[Any]:
    """One operand per tensor, from a list, a number or a 0-d tensor."""
    if isinstance(given, (list, tuple)):
        if len(given) != count:
            raise RuntimeError(f"Tensor list must have same number of elements as scalar list, got {count} and {len(given)}"
                               if given and not isinstance(given[0], TensorBase) else
                               f"Tensor lists must have the same number of tensors, got {count} and {len(given)}")  # fmt: skip
        return given
    if not isinstance(given, (int, float, complex, TensorBase)):
        raise TypeError(f"{who}() received an invalid combination of arguments: expected numbers or tensors, got {type(given).__name__}")
    return [given] * count


def _nonempty(tensors: Sequence[Any]) -> None:
    if not tensors:
        raise RuntimeError("Tensor list must have at least one tensor.")


def _unary(name: str, suffix: str) -> Callable[..., Any]:
    op = OPS[name + suffix]

    def each(self: Any) -> Any:
        result = [op(t) for t in _tensors(each.__name__, self)]
        return self if suffix else tuple(result)

    return each


_APPLY: dict[str, Callable[..., Any]] = {
    "mul": OPS["mul"], "copysign": OPS["copysign"], "pow": pointwise.pow, "div": pointwise.div,
    "maximum": pointwise.clamp_min, "minimum": pointwise.clamp_max,
    "clamp_max": pointwise.clamp_max, "clamp_min": pointwise.clamp_min, "add": pointwise.add, "sub": pointwise.sub,
}  # fmt: skip
_OF_NUMBERS_TOO = {"maximum": "clamp_min", "minimum": "clamp_max"}


def _binary(name: str, suffix: str) -> Callable[..., Any]:
    fn = pointwise.METHODS[_OF_NUMBERS_TOO.get(name, name) + suffix] if suffix else _APPLY[name]

    def each(self: Any, other: Any = None, *, alpha: Any = None, scalar: Any = None, scalars: Any = None, exponent: Any = None) -> Any:
        operands = [v for v in (other, scalar, scalars, exponent) if v is not None]
        if len(operands) != 1:
            raise TypeError(f"{each.__name__}() received an invalid combination of arguments: expected one of other, scalar, scalars and "
                            f"exponent, got {len(operands)}")  # fmt: skip
        operand = operands[0]
        tensors = _tensors(each.__name__, self)
        _nonempty(tensors)
        pairs = zip(tensors, _others(each.__name__, operand, len(tensors)), strict=True)
        extra = {} if alpha is None else {"alpha": alpha}
        result = [fn(a, b, **extra) for a, b in pairs]
        return self if suffix else tuple(result)

    return each


def _ternary(name: str, suffix: str) -> Callable[..., Any]:
    fn = pointwise.METHODS[name + suffix] if suffix else pointwise.FUNCTIONS[name]

    def each(self: Any, tensor1: Any, tensor2: Any, value: Any = 1, scalars: Any = None) -> Any:
        if isinstance(scalars, (int, float, complex)):
            raise TypeError(f"{each.__name__}(): argument 'scalars' must be tuple of Scalars, not {type(scalars).__name__}")
        tensors = _tensors(each.__name__, self)
        values = scalars if scalars is not None else value
        values = values.tolist() if isinstance(values, TensorBase) and values.ndim else values
        triples = zip(tensors, _tensors(each.__name__, tensor1), _tensors(each.__name__, tensor2),
                      _others(each.__name__, values, len(tensors)), strict=True)  # fmt: skip
        result = [fn(a, b, c, value=v) for a, b, c, v in triples]
        return self if suffix else tuple(result)

    return each


def _lerp(suffix: str) -> Callable[..., Any]:
    fn = pointwise.METHODS["lerp" + suffix] if suffix else pointwise.lerp

    def each(self: Any, tensors1: Any, weight: Any) -> Any:
        tensors = _tensors(each.__name__, self)
        weights = _others(each.__name__, weight, len(tensors))
        result = [fn(a, b, w) for a, b, w in zip(tensors, _tensors(each.__name__, tensors1), weights, strict=True)]
        return self if suffix else tuple(result)

    return each


def _foreach_norm(self: Any, ord: Any = 2, dtype: Any = None) -> tuple[Any, ...]:
    """The norm of each tensor, over all of its elements."""
    if isinstance(ord, bool):
        raise RuntimeError("foreach_tensor_norm_slow expects ord to be integer or float")
    return tuple(linalg.norm(t, ord, dtype=dtype) for t in _tensors("_foreach_norm", self))


def _foreach_max(self: Any) -> tuple[Any, ...]:
    """The largest element of each tensor."""
    return tuple(reductions.max(t) for t in _tensors("_foreach_max", self))


def _foreach_zero_(self: Any) -> Any:
    """Fill every tensor with zeros."""
    for t in _tensors("_foreach_zero_", self):
        OPS["fill_"](t, 0)
    return self


def _foreach_copy_(self: Any, src: Any, non_blocking: bool = False) -> Any:
    """Copy each tensor of `src` into the tensor of self at the same place."""
    if not isinstance(non_blocking, bool):
        raise TypeError(f"_foreach_copy_(): argument 'non_blocking' must be bool, not {type(non_blocking).__name__}")
    for t, s in zip(_tensors("_foreach_copy_", self), _tensors("_foreach_copy_", src), strict=True):
        pointwise.copy_(t, s, non_blocking)
    return self


def _family() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for suffix in ("", "_"):
        found.update({name + suffix: _unary(name, suffix) for name in _UNARY})
        found.update({name + suffix: _binary(name, suffix) for name in _BINARY if suffix == "" or name + "_" in pointwise.METHODS})
        found.update({name + suffix: _ternary(name, suffix) for name in ("addcmul", "addcdiv")})
        found["lerp" + suffix] = _lerp(suffix)
    named = {f"_foreach_{name}": fn for name, fn in found.items()}
    for name, fn in named.items():
        fn.__name__ = fn.__qualname__ = name
        fn.__doc__ = f"`{name.removeprefix('_foreach_')}` of each tensor of a list."
    return named


FUNCTIONS: dict[str, Any] = {
    **_family(), "_foreach_norm": _foreach_norm, "_foreach_max": _foreach_max, "_foreach_zero_": _foreach_zero_,
    "_foreach_copy_": _foreach_copy_,
}  # fmt: skip
METHODS: dict[str, Any] = {}
