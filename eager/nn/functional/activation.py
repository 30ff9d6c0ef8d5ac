"""Activation functions: plain Python over ops. Each keeps the shape and dtype of its input.

`inplace=True` and the names that end in "_" write the result into the input.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eager import _native
from eager.base import dtypes
from eager.base.dtypes import Category, scalar_name
from eager.base.limits import finfo
from eager.base.scalars import check_element
from eager.base.warn import warn
from eager.optable.declaration import cast_to, composition
from eager.optable.out import write_out
from eager.optable.precision import FLOAT32_ON_CUDA, FLOAT32_UNLESS_ASKED, LOWER
from eager.optable.shape import in_layout_of, in_unary_layout
from eager.optable.table import OPS
from eager.public.record import public
from eager.random import state_for

Tensor = Any
where = OPS["where"]


def _floating(kernel: str, input: Tensor, kinds: tuple[Category, ...] = (Category.FLOAT,)) -> None:
    """Raise NotImplementedError for a dtype outside `kinds`: torch has no kernel for it."""
    if input.dtype.category not in kinds:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{scalar_name(input.dtype)}'")


def _into(input: Tensor, fn: Callable[..., Tensor], *args: Any) -> Tensor:
    """Write fn(input, *args) into `input`; the gradient of fn is taken at the values before the write."""
    kept = OPS["clone"](input, None) if _native.grad_enabled() and input._requires_grad else input
    return OPS["copy_"](input, fn(kept, *args))


def _out(result: Tensor, out: Tensor | None) -> Tensor:
    """`result`, written into `out` if it is given. Raises: RuntimeError for an `out` of another dtype."""
    return result if out is None else write_out(out, result, exact=True)


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(x, 0)."""
    return OPS["relu_" if inplace else "relu"](input)


@public(parsed=True)
def relu_(input: Tensor) -> Tensor:
    """`relu` in place."""
    return OPS["relu_"](input)


@public(parsed=True)
def leaky_relu_(input: Tensor, negative_slope: Any = 0.01) -> Tensor:
    """`leaky_relu` in place."""
    negative_slope = dtypes.option(input.dtype, negative_slope)
    return OPS["leaky_relu_"](input, negative_slope)


def leaky_relu(input: Tensor, negative_slope: Any = 0.01, inplace: bool = False) -> Tensor:
    """x if x > 0, else negative_slope * x."""
    negative_slope = dtypes.option(input.dtype, negative_slope)
    return OPS["leaky_relu_" if inplace else "leaky_relu"](input, negative_slope)


@public(parsed=True)
def elu_(input: Tensor, alpha: Any = 1.0, scale: Any = 1, input_scale: Any = 1) -> Tensor:
    """ELU in place: scale * x if x > 0, else scale * alpha * (exp(input_scale * x) - 1). Raises: NotImplementedError for integers."""
    alpha, scale, input_scale = (dtypes.option(input.dtype, v) for v in (alpha, scale, input_scale))
    if scale == 1 and input_scale == 1:
        return OPS["elu_"](input, alpha)
    return _into(input, lambda x: where(x <= 0, OPS["expm1"](x * input_scale) * (alpha * scale), x * scale))


def elu(input: Tensor, alpha: Any = 1.0, inplace: bool = False) -> Tensor:
    """x if x > 0, else alpha * (exp(x) - 1)."""
    alpha = dtypes.option(input.dtype, alpha)
    return OPS["elu_" if inplace else "elu"](input, alpha)


@public(parsed=True)
def selu_(input: Tensor) -> Tensor:
    """`selu` in place."""
    return selu(input, inplace=True)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """ELU with the scale and alpha that keep zero mean and unit variance. Source: Klambauer et al., 2017."""
    if inplace:
        return _into(input, selu)
    alpha, scale = 1.6732632423543772, 1.0507009873554805
    return OPS["elu"](input, alpha) * scale


@public(parsed=True)
def celu_(input: Tensor, alpha: Any = 1.0) -> Tensor:
    """`celu` in place."""
    return celu(input, alpha, inplace=True)


def celu(input: Tensor, alpha: Any = 1.0, inplace: bool = False) -> Tensor:
    """max(0, x) + min(0, alpha * (exp(x / alpha) - 1)). Raises: RuntimeError for alpha = 0."""
    alpha = dtypes.option(dtypes.float64, alpha)
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    if inplace:
        return _into(input, celu, alpha)
    return OPS["celu"](input, alpha)


@public(parsed=True)
def gelu(input: Tensor, approximate: str = "none", *, out: Tensor | None = None) -> Tensor:
    """x * Phi(x), by the error function, or by the tanh formula with approximate="tanh".

    Raises: RuntimeError for another value of `approximate`.
    """
    if approximate == "none":
        return _out(OPS["gelu_erf"](input), out)
    if approximate == "tanh":
        return _out(OPS["gelu_tanh"](input), out)
    raise RuntimeError("approximate argument must be either none or tanh.")


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x * sigmoid(x)."""
    return OPS["silu_" if inplace else "silu"](input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * tanh(softplus(x))."""
    if inplace:
        return _into(input, mish)
    return OPS["mish"](input)


def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-x))."""
    return OPS["sigmoid"](input)


def tanh(input: Tensor) -> Tensor:
    """Hyperbolic tangent."""
    return OPS["tanh"](input)


def logsigmoid(input: Tensor) -> Tensor:
    """log(sigmoid(x)) without overflow."""
    return OPS["log_sigmoid"](input.contiguous())


@public(autocast=FLOAT32_ON_CUDA, parsed=True)
def softplus(input: Tensor, beta: Any = 1.0, threshold: Any = 20.0, *, out: Tensor | None = None) -> Tensor:
    """log(1 + exp(beta * x)) / beta, or x if beta * x > threshold. Raises: NotImplementedError for integers."""
    return _out(OPS["softplus"](input, dtypes.option(input.dtype, beta), dtypes.option(input.dtype, threshold)), out)


def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|)."""
    return input / (OPS["abs"](input) + 1)


def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x)."""
    return input - OPS["tanh"](input)


@public(parsed=True)
def softshrink(input: Tensor, lambd: Any = 0.5, *, out: Tensor | None = None) -> Tensor:
    """Move x towards zero by lambd; 0 if |x| <= lambd. Raises: RuntimeError for a negative or infinite lambd."""
    _floating("softshrink_cpu", input)
    lambd, largest = float(dtypes.option(dtypes.float64, lambd)), finfo(input.dtype).max
    if not 0 <= lambd <= largest:
        raise RuntimeError(f"lambda must be in range [0, {largest:g}] for input dtype {scalar_name(input.dtype)}, but found {lambd:g}")
    return _out(OPS["softshrink"](input, lambd), out)


@public(parsed=True)
def hardshrink(input: Tensor, lambd: Any = 0.5, *, out: Tensor | None = None) -> Tensor:
    """x if |x| > lambd, else 0. Raises: NotImplementedError for integers."""
    _floating("hardshrink_cpu", input)
    return _out(OPS["hardshrink"](input, dtypes.option(input.dtype, lambd)), out)


def _integral_hardtanh(input: Tensor, min_val: float, max_val: float) -> Tensor:
    if input.dtype is dtypes.bool_:
        raise RuntimeError("Bool inputs not supported for hardtanh")
    if not input.dtype.is_signed and min_val < 0:
        raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")
    return OPS["clamp"](input, int(min_val), int(max_val))


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """x clamped to [min_val, max_val]; the gradient at the bounds is zero. Raises: ValueError if min_val > max_val."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    if inplace:
        return _into(input, _hardtanh, min_val, max_val)
    return _hardtanh(input, min_val, max_val)


def _hardtanh(input: Tensor, min_val: Any, max_val: Any) -> Tensor:
    min_val, max_val = dtypes.option(dtypes.float64, min_val), dtypes.option(dtypes.float64, max_val)
    if input.dtype.is_integral:
        return in_layout_of(_integral_hardtanh(input, min_val, max_val), input)
    return in_layout_of(OPS["hardtanh"](input, min_val, max_val), input)


@public(parsed=True)
def hardtanh_(input: Tensor, min_val: Any = -1.0, max_val: Any = 1.0) -> Tensor:
    """`hardtanh` in place."""
    return _into(input, _hardtanh, min_val, max_val)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x, 0), 6)."""
    return hardtanh(input, 0.0, 6.0, inplace)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """clamp(x + 3, 0, 6) / 6."""
    _floating("hardsigmoid_cpu", input)
    if inplace:
        return _into(input, hardsigmoid)
    return OPS["hardsigmoid"](input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * clamp(x + 3, 0, 6) / 6."""
    _floating("hardswish_cpu", input)
    return OPS["hardswish_" if inplace else "hardswish"](input)


def threshold(input: Tensor, threshold: Any, value: Any, inplace: bool = False) -> Tensor:
    """x if x > threshold, else value."""
    if inplace:
        return _into(input, _above, threshold, value)
    return _above(input, threshold, value)


def _above(input: Tensor, bound: float, value: float) -> Tensor:
    """x if x > bound, else value."""
    for number in (bound, value):
        check_element(dtypes.option(input.dtype, number), input.dtype)
    if input.dtype.is_floating_point:
        return in_unary_layout(OPS["threshold"](input, bound, value), input)
    return in_unary_layout(cast_to(where(input <= bound, value, input), input.dtype), input)


@public(parsed=True)
def threshold_(input: Tensor, threshold: Any, value: Any) -> Tensor:
    """`threshold` in place."""
    return _into(input, _above, threshold, value)


@public(autocast=LOWER, parsed=True)
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """x if x > 0, else weight * x. weight: (1,), or (c,) for an input (n, c, *).

    Raises: RuntimeError for differing dtypes, an input of no dims with several weights, or another number of weights.
    """
    if weight.dtype is not input.dtype:
        raise RuntimeError(f"prelu: Type promoting not supported. Got {input.dtype} and {weight.dtype}")
    if weight.numel() != 1:
        if input.ndim == 0:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = input.shape[1] if input.ndim > 1 else 1
        if weight.numel() != channels:
            raise RuntimeError(f"Mismatch of parameter numbers and input channel size. Found parameter numbers = "
                               f"{weight.numel()} and channel size = {channels}.")  # fmt: skip
        weight = weight.view(1, -1, *(1,) * (input.ndim - 2)) if input.ndim > 1 else weight
    return in_layout_of(OPS["prelu"](input, weight), input)


@public(parsed=True)
def rrelu_(input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False) -> Tensor:
    """`rrelu` in place."""
    return rrelu(input, lower, upper, training, inplace=True)


def rrelu(input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False,
          inplace: bool = False) -> Tensor:  # fmt: skip
    """Leaky ReLU whose slope is drawn from [lower, upper) in training; otherwise the slope is their mean.

    Raises: ValueError if lower > upper.
    """
    if lower > upper:
        raise ValueError(f"Lower bound should be less than or equal to the upper bound: {lower} > {upper}")
    if not training:
        return leaky_relu(input if inplace else input.contiguous(), (lower + upper) / 2, inplace)
    state = state_for(input.numel(), None, input.device)
    u = cast_to(OPS["philox_uniform"](state, tuple(input.shape), dtypes.float32), input.dtype)
    slope = u * (upper - lower) + lower
    input = input if inplace else input.contiguous()
    return _into(input, OPS["prelu"], slope) if inplace else OPS["prelu"](input, slope)


@public(composed=True)
def glu(input: Tensor, dim: int = -1) -> Tensor:
    """First half of the input along `dim` times the sigmoid of the second half. (*, 2 n, *) -> (*, n, *).

    Raises: RuntimeError for an input of no dims, or an odd size.
    """
    _floating("glu_cpu", input)
    if input.ndim == 0:
        raise RuntimeError("glu does not support 0-dimensional tensors")
    n = input.shape[dim]
    if n % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim % input.ndim} is size {n}")
    a = OPS["slice"](input, dim, 0, n // 2, 1)
    b = OPS["slice"](input, dim, n // 2, n, 1)
    return a * OPS["sigmoid"](b)


def _dim_of(function: str, dim: int | None, ndim: int) -> int:
    """`dim`, or torch's former default with a warning."""
    if dim is not None:
        return dim
    warn(f"Implicit dimension choice for {function} has been deprecated. Change the call to include dim=X as an argument.")
    return 0 if ndim in (0, 1, 3) else 1


@public(autocast=FLOAT32_UNLESS_ASKED)
def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Normalised exponentials along `dim`. dtype: cast the input to it first.

    Raises: IndexError for a dim out of range.
    """
    if dtype is not None:
        input = cast_to(input, dtype)
    return OPS["softmax"](input, _dim_of("softmax", dim, input.ndim))


@public(autocast=FLOAT32_UNLESS_ASKED)
def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Logarithm of softmax along `dim`, without underflow. dtype: cast the input first.

    Raises: NotImplementedError for integers without dtype, IndexError for a wrong dim.
    """
    if dtype is not None:
        input = cast_to(input, dtype)
    return OPS["log_softmax"](input, _dim_of("log_softmax", dim, input.ndim))


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """softmax(-x) along `dim`. dtype: cast the input to it first."""
    return softmax(-input, _dim_of("softmin", dim, input.ndim), dtype=dtype)


@public(lenient=("eps",))
def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """A sample of the Gumbel-softmax distribution of logits (*, n), along `dim`.

    With `hard` the result is one-hot, but has the gradient of the soft sample.
    """
    if eps != 1e-10:
        warn("`eps` parameter is deprecated and has no effect.")
    state = state_for(logits.numel(), None, logits.device)
    u = OPS["philox_uniform"](state, tuple(logits.shape), dtypes.float32)
    tiny = 2.0**-126
    noise = -OPS["log"](OPS["clamp"](-OPS["log"](OPS["clamp"](u, tiny, None)), tiny, None))
    soft = softmax((logits + cast_to(noise, logits.dtype)) / tau, dim)
    if not hard:
        return soft
    index = OPS["argmax"](soft, (dim % soft.ndim,), True)
    one_hot = OPS["scatter"](soft.detach() * 0, dim, index, 1.0)
    return one_hot - soft.detach() + soft


def normalize(input: Tensor, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, out: Tensor | None = None) -> Tensor:
    """x divided by max(its p-norm along dim, eps)."""
    result = _normalized(input, p, dim, eps)
    return result if out is None else OPS["copy_"](out, result)


@composition
def _normalized(input: Tensor, p: float, dim: Any, eps: float) -> Tensor:
    return input / OPS["clamp"](input.norm(p, dim, True), eps, None)
