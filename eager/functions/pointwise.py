"""Public pointwise functions, the Tensor operators and the in-place forms."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from eager import _native
from eager.base import dtypes
from eager.base.dtypes import Category, c_name, result_type, scalar_name
from eager.base.overlap import check_each_element_once, check_no_overlap, check_out
from eager.base.scalars import check_element, fits_every_dtype, rounded
from eager.base.spec import elementwise_strides
from eager.base.symfloat import SymFloat
from eager.base.symint import SymInt
from eager.base.warn import warn
from eager.optable.declaration import composition, is_number
from eager.optable.memory import from_array
from eager.optable.out import write_out
from eager.optable.precision import FLOAT32_ON_CUDA, PROMOTE_ON_CUDA
from eager.optable.shape import in_layout_of, laid_out
from eager.optable.table import OPS, Op
from eager.public.record import ALPHA_BEFORE_TENSOR, VALUE_BEFORE_TENSORS, Out, public, variant

TensorBase = _native.TensorBase
_NUMBERS = (int, float, bool, complex, np.number, np.bool_, SymInt, SymFloat)
_FITS_ALL: Final = 65504  # the largest number of float16, the narrowest of the floating dtypes


def operand(value: Any) -> Any:
    """An operator's operand as a tensor or Python number, or NotImplemented for another type."""
    if type(value) in (int, float, bool):
        return value
    if isinstance(value, TensorBase):
        return NotImplemented if value.is_sparse else value  # a sparse one knows what to do with a dense one
    if isinstance(value, _NUMBERS):
        return value.item() if isinstance(value, (np.number, np.bool_)) else value
    if isinstance(value, np.ndarray):
        return from_array(value)
    return NotImplemented


def _operator(op: Op) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        other = operand(other)
        return other if other is NotImplemented else op(self, other)

    method.__name__ = method.__qualname__ = f"__{op.name}__"
    return method


def _reflected(op: Op) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        other = operand(other)
        return other if other is NotImplemented else op(other, self)

    method.__name__ = method.__qualname__ = f"__r{op.name}__"
    return method


def _inplace_operator(op: Op) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        other = operand(other)
        return other if other is NotImplemented else op(self, other)

    method.__name__ = method.__qualname__ = f"__i{op.base.name if op.base else op.name}__"
    return method


def _scaled(other: Any, alpha: Any) -> Any:
    return other if alpha == 1 else other * alpha


def _times(other: Any, alpha: Any, *terms: Any) -> Any:
    """alpha * other, as the second of `terms` that are added or subtracted. Raises RuntimeError for an alpha of a higher kind."""
    if alpha is not True and alpha == 1:
        return other
    category = result_type(*terms).category
    if isinstance(alpha, bool) and category > Category.BOOL:
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if isinstance(alpha, complex) and category < Category.COMPLEX:
        raise RuntimeError("For non-complex input tensors, argument alpha must not be a complex number.")
    if isinstance(alpha, float | SymFloat) and category < Category.FLOAT:
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
    if not fits_every_dtype(alpha) and not isinstance(alpha, SymInt | SymFloat):
        check_element(alpha, result_type(*terms))
    if category is Category.BOOL:
        return OPS["mul"](other, bool(alpha)) if isinstance(other, TensorBase) else bool(other and alpha)
    return other * alpha


def _out(result: Any, out: Any, *inputs: Any) -> Any:
    """The result of an elementwise function of `inputs`, in `out` if there is one."""
    if out is None:
        return result
    check_out(out, inputs)
    return write_out(out, result)


def _no_bool(*values: Any) -> None:
    kinds = [isinstance(v, bool) or (isinstance(v, TensorBase) and v.dtype is dtypes.bool_) for v in values]
    if all(kinds):
        raise RuntimeError("Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
                           "`logical_xor()` operator instead.")  # fmt: skip
    if any(kinds):
        raise RuntimeError("Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use "
                           "the `~` or `logical_not()` operator instead.")  # fmt: skip


@public(former=ALPHA_BEFORE_TENSOR, numbers_as_tensors=True)
def add(input: Any, other: Any, *, alpha: Any = 1, out: Any = None) -> Any:
    """input + alpha * other, broadcast, in the promoted dtype.

    Raises: RuntimeError if the shapes do not broadcast, or for a float alpha of integers.
    """
    return _out(OPS["add"](input, _times(other, alpha, input, other)), out, input, other)


@public(former=ALPHA_BEFORE_TENSOR, numbers_as_tensors=True)
def sub(input: Any, other: Any, *, alpha: Any = 1, out: Any = None) -> Any:
    """input - alpha * other, broadcast, in the promoted dtype.

    Raises: RuntimeError if the shapes do not broadcast, for bools, or for a float alpha of integers.
    """
    _no_bool(input, other)
    return _out(OPS["sub"](input, _times(other, alpha, input, other)), out, input, other)


def rsub(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """other - alpha * input."""
    _no_bool(input, other)
    return OPS["sub"](other, _times(input, alpha, input, other))


@public(numbers_as_tensors=True)
def div(input: Any, other: Any, *, rounding_mode: str | None = None, out: Any = None) -> Any:
    """input / other, broadcast; integers give the default dtype. rounding_mode "trunc" or "floor": in the promoted dtype.

    Raises: RuntimeError for another rounding_mode.
    """
    return _out(OPS[_division(rounding_mode)](input, other), out, input, other)


def _division(rounding_mode: str | None) -> str:
    """The name of the op that divides and rounds so."""
    names = {None: "div", "trunc": "trunc_divide", "floor": "div_floor"}
    if rounding_mode not in names:
        raise RuntimeError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'")
    return names[rounding_mode]


@public(autocast=FLOAT32_ON_CUDA)
def pow(input: Any, exponent: Any, *, out: Any = None) -> Any:  # noqa: A001
    """input ** exponent. Raises RuntimeError for an integer tensor with a negative integer exponent."""
    if not isinstance(input, TensorBase):
        power = _power_of_number if is_number(input) else OPS["pow"]
        return _out(power(input, exponent), out, input, exponent)
    if isinstance(exponent, bool) and input.dtype is dtypes.bool_:
        return _out(OPS["bitwise_or"](input, not exponent), out, input)  # the only powers of bools that are bools
    if exponent is True:
        exponent = 1
    elif isinstance(exponent, int) if input.dtype.is_integral else input.dtype.itemsize == 2:
        if input.dtype.is_integral and exponent < 0:
            raise RuntimeError("Integers to negative integer powers are not allowed.")
        _check_numbers(input, exponent)
    return _out(OPS["pow"](input, exponent), out, input, exponent)


def _power_of_number(base: Any, exponent: Any) -> Any:
    """base ** exponent of a number and a tensor. The result is row-major for every layout of the exponent, as in torch."""
    return OPS["pow"](base, exponent.contiguous() if isinstance(exponent, TensorBase) else exponent)


def square(input: Any, *, out: Any = None) -> Any:
    """input * input; of a bool tensor int64."""
    return _out(OPS["pow"](OPS["to_dtype"](input, dtypes.int64), 2) if input.dtype is dtypes.bool_ else OPS["square"](input), out, input)


def clamp(input: Any, min: Any = None, max: Any = None, *, out: Any = None) -> Any:  # noqa: A002
    """Limit values to [min, max]; either bound may be None, a number or a tensor."""
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    _check_numbers(input, min, max)
    return _out(OPS["clamp"](input, min, max), out, input, min, max)


def _check_numbers(tensor: Any, *values: Any) -> None:
    """Raise RuntimeError for a number that a tensor is combined with and that the dtype of the result does not hold.

    Ints that no dtype holds are left to the op.
    """
    for value in values:
        kind = value.__class__
        if value is None or fits_every_dtype(value):
            continue
        if kind is int and tensor.dtype.category is Category.INT:
            if -(2**63) <= value < 2**64:
                check_element(value, tensor.dtype)
        elif (kind is int or kind is float) and not -_FITS_ALL <= value <= _FITS_ALL and value == value:
            check_element(value, result_type(tensor, value))


@public(out=Out(not_over_itself=True, not_over_inputs=True))
def clamp_min(input: Any, min: Any) -> Any:  # noqa: A002
    """Values limited from below by a number or a tensor that broadcasts. Raises: RuntimeError if it does not."""
    _check_numbers(input, min)
    return OPS["clamp"](input, min, None)


@public(out=Out(not_over_itself=True, not_over_inputs=True))
def clamp_max(input: Any, max: Any) -> Any:  # noqa: A002
    """Values limited from above by a number or a tensor that broadcasts. Raises: RuntimeError if it does not."""
    _check_numbers(input, max)
    return OPS["clamp"](input, None, max)


def round(input: Any, *, decimals: int = 0, out: Any = None) -> Any:  # noqa: A001
    """To the nearest integer, halves to even; to `decimals` places (negative: tens, hundreds, ...)."""
    if decimals == 0:
        return _out(OPS["round"](input), out, input)
    if input.dtype.is_integral:
        raise NotImplementedError(f"\"round_decimals\" not implemented for '{scalar_name(input.dtype)}'")
    return _out(_rounded(input, decimals), out, input)


@composition
def _rounded(input: Any, decimals: int) -> Any:
    scale = 10.0 ** abs(decimals)
    return OPS["round"](input * scale) / scale if decimals > 0 else OPS["round"](input / scale) * scale


def lerp(input: Any, end: Any, weight: Any, *, out: Any = None) -> Any:
    """input + weight * (end - input), from the nearer end. Raises RuntimeError unless all have one dtype."""
    for name, t in (("end", end), ("weight", weight)):
        if isinstance(t, TensorBase) and t.dtype is not input.dtype:
            raise RuntimeError(f"expected dtype {c_name(input.dtype)} for `{name}` but got dtype {c_name(t.dtype)}")
    if input.dtype.is_integral:
        raise NotImplementedError(f"\"lerp_kernel\" not implemented for '{scalar_name(input.dtype)}'")
    weight = dtypes.option(input.dtype, weight)
    y = _rounded_once(_lerp, input, end, weight)
    operands = [t for t in (input, end, weight) if isinstance(t, TensorBase)]
    return _out(laid_out(y, elementwise_strides(tuple(y.shape), operands)), out, input, end, weight)


def _lerp(x: Any, end: Any, weight: Any) -> Any:
    # From the nearer end: a value that is exact or infinite there remains so. Chosen before the sum, which keeps gradients finite.
    if isinstance(weight, SymFloat):  # chosen in the graph, which then holds for weights on both sides
        weight = OPS["full"]((), 0.0, dtypes.float64, x.device) + weight
    near = abs(weight) < 0.5
    if not isinstance(near, TensorBase):
        return x + weight * (end - x) if near else end + (weight - 1) * (end - x)
    return OPS["where"](near, x, end) + OPS["where"](near, weight, weight - 1) * (end - x)


def _rounded_once(fn: Callable[..., Any], *terms: Any) -> Any:
    """`fn(*terms)`, where 16-bit floats are computed in float32 and rounded at the end."""
    d = result_type(*(t for t in terms if isinstance(t, TensorBase)))
    return OPS["to_dtype"](fn(*_widened(d, terms)), d) if _is_narrow(d) else fn(*terms)


def _is_narrow(d: Any) -> bool:
    return d in (dtypes.float16, dtypes.bfloat16)


def _widened(d: Any, terms: tuple[Any, ...]) -> list[Any]:
    """The terms of a sum of dtype `d`, as they are computed with: float32 for 16-bit floats."""
    return [OPS["to_dtype"](t, dtypes.float32) if isinstance(t, TensorBase) and _is_narrow(d) else t for t in terms]


def _ternary_value(who: str, value: Any, *terms: Any) -> Any:
    """`value` in the kind of the result: an integer result takes its whole part."""
    d = result_type(*terms)
    if who == "addcdiv" and d.is_integral:
        raise RuntimeError("Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a true "
                           "division of tensor1 and tensor2. The historic addcdiv behavior can be implemented as "
                           "(input + value * torch.trunc(tensor1 / tensor2)).to(input.dtype) for integer inputs and as "
                           "(input + value * tensor1 / tensor2) for float inputs. The future addcdiv behavior is just the latter "
                           "implementation: (input + value * tensor1 / tensor2), for all dtypes.")  # fmt: skip
    value = dtypes.option(d, value)
    if d.is_integral or d.itemsize > 2:  # halves are computed in float32
        check_element(value, d)
    return int(value) if d.is_integral else value


def _addcmul(x: Any, tensor1: Any, tensor2: Any, value: Any) -> Any:
    return x + _scaled(tensor1 * tensor2, value)


def _addcdiv(x: Any, tensor1: Any, tensor2: Any, value: Any) -> Any:
    return x + _scaled(tensor1 / tensor2, value)


@public(former=VALUE_BEFORE_TENSORS, autocast=PROMOTE_ON_CUDA)
def addcmul(input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1, out: Any = None) -> Any:
    """input + value * tensor1 * tensor2, broadcast, in the promoted dtype. Raises: RuntimeError if shapes do not fit."""
    value = _ternary_value("addcmul", value, input, tensor1, tensor2)
    return _out(_rounded_once(_addcmul, input, tensor1, tensor2, value), out, input, tensor1, tensor2)


@public(former=VALUE_BEFORE_TENSORS, autocast=PROMOTE_ON_CUDA)
def addcdiv(input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1, out: Any = None) -> Any:
    """input + value * tensor1 / tensor2, broadcast. Raises: RuntimeError for integers, or if shapes do not fit."""
    value = _ternary_value("addcdiv", value, input, tensor1, tensor2)
    return _out(_rounded_once(_addcdiv, input, tensor1, tensor2, value), out, input, tensor1, tensor2)


@public(out=Out(exact=True))
def nan_to_num(input: Any, nan: float | None = 0.0, posinf: float | None = None, neginf: float | None = None) -> Any:
    """A copy with nan and infinities replaced by numbers. posinf, neginf: by default the largest and smallest of the dtype."""
    nan = 0.0 if nan is None else nan
    if input.dtype.is_integral:
        return OPS["clone"](input)
    if input.dtype.is_complex:
        parts = nan_to_num(OPS["view_as_real"](input), nan, posinf, neginf)
        return OPS["view_as_complex"](parts)
    if input.dtype.is_float8:
        raise NotImplementedError(f"\"nan_to_num\" not implemented for '{scalar_name(input.dtype)}'")
    limit = float(np.finfo(np.float32 if input.dtype is dtypes.bfloat16 else input.dtype.numpy).max)
    if input.dtype is dtypes.bfloat16:
        limit = 3.3895313892515355e38
    x = OPS["where"](OPS["isnan"](input), nan, input)
    x = OPS["where"](OPS["logical_and"](OPS["isinf"](input), input > 0), limit if posinf is None else posinf, x)
    y = OPS["where"](OPS["logical_and"](OPS["isinf"](input), input < 0), -limit if neginf is None else neginf, x)
    return in_layout_of(y, input)


def isclose(input: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Any:
    """|input - other| <= atol + rtol * |other|, elementwise; infinities equal themselves.

    Raises RuntimeError for tensors of different dtypes and for negative tolerances.
    """
    if input.dtype is not other.dtype:
        raise RuntimeError(f"{scalar_name(input.dtype)} did not match {scalar_name(other.dtype)}")
    if not (rtol >= 0 and atol >= 0):
        name, value = ("atol", atol) if rtol >= 0 else ("rtol", rtol)
        raise RuntimeError(f"{name} must be greater than or equal to zero, but got {value}")
    same = OPS["eq"](input, other)
    if input.dtype.is_integral and rtol == 0 and atol == 0:
        return same
    wide = input.dtype if not input.dtype.is_integral else dtypes.get_default_dtype()
    a, b = OPS["to_dtype"](input, wide), OPS["to_dtype"](other, wide)
    difference = OPS["abs"](OPS["sub"](a, b))
    close = OPS["le"](difference, OPS["add"](OPS["abs"](OPS["mul"](b, rtol)), atol))
    result = OPS["logical_or"](same, OPS["logical_and"](close, OPS["isfinite"](difference)))
    if equal_nan:
        result = OPS["logical_or"](result, OPS["logical_and"](OPS["isnan"](input), OPS["isnan"](other)))
    return result


def allclose(input: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether `isclose` holds for all elements. Raises: RuntimeError for two dtypes or a negative tolerance."""
    return bool(isclose(input, other, rtol, atol, equal_nan).all().item())


def equal(input: Any, other: Any) -> bool:
    """Whether both have the same shape and the same values."""
    return tuple(input.shape) == tuple(other.shape) and bool((input == other).all().item())


def where(condition: Any, input: Any = None, other: Any = None, *, out: Any = None) -> Any:
    """`input` where condition holds, else `other`; with the condition alone, indices of its true elements."""
    if input is None and other is None:
        return OPS["nonzero"](condition if condition.ndim else OPS["unsqueeze"](condition, 0)).unbind(1)
    check_condition(condition)
    if not (isinstance(input, TensorBase) and isinstance(other, TensorBase)):
        _check_choices(input, other)
    chosen = OPS["where"](condition, input, other)
    if out is not None and out.dtype is not chosen.dtype:
        raise RuntimeError(f"Expected out type to be {scalar_name(chosen.dtype)} but got {scalar_name(out.dtype)}")
    return _out(chosen, out, condition, input, other)


def _check_choices(input: Any, other: Any) -> None:  # noqa: A002
    """Raise RuntimeError for a number that does not fit the result; beside halves it becomes an infinity, as in torch."""
    tensor, number = (input, other) if isinstance(input, TensorBase) else (other, input)
    if not isinstance(tensor, TensorBase) or fits_every_dtype(number):
        return
    if not (tensor.dtype.is_floating_point and tensor.dtype.itemsize == 2):
        _check_numbers(tensor, number)


def check_condition(condition: Any) -> None:
    """Raise TypeError unless a condition is a Tensor, RuntimeError unless it is bool (or, with a warning, uint8)."""
    if not isinstance(condition, TensorBase):
        raise TypeError(f"where(): argument 'condition' must be Tensor, not {type(condition).__name__}")
    if condition.dtype is dtypes.uint8:
        warn("where received a uint8 condition tensor. This behavior is deprecated and will be removed in a future version of "
             "PyTorch. Use a boolean condition instead.")  # fmt: skip
    elif condition.dtype is not dtypes.bool_:
        raise RuntimeError(f"where expected condition to be a boolean tensor, but got a tensor with dtype {scalar_name(condition.dtype)}")


def _where_method(self: Any, condition: Any, other: Any) -> Any:
    check_condition(condition)
    _check_choices(self, other)
    return OPS["where"](condition, self, other)


_PLAIN = (
    "mul floor_divide remainder fmod maximum minimum atan2 copysign eq ne lt le gt ge logical_and logical_or logical_xor "
    "logical_not bitwise_and bitwise_or bitwise_xor bitwise_not isnan isinf isfinite signbit neg abs sign square reciprocal exp "
    "exp2 expm1 log log2 log10 log1p sqrt rsqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc erfinv "
    "lgamma digamma floor ceil trunc frac sigmoid relu"
).split()
_ALIASES = {"multiply": "mul", "absolute": "abs", "negative": "neg", "arctan2": "atan2", "greater": "gt", "less": "lt",
            "greater_equal": "ge", "less_equal": "le", "not_equal": "ne", "fix": "trunc", "arcsin": "asin",
            "arccos": "acos", "arctan": "atan", "bitwise_left_shift": "left_shift",
            "bitwise_right_shift": "right_shift"}  # fmt: skip

FUNCTIONS: dict[str, Any] = {name: OPS[name] for name in _PLAIN}
FUNCTIONS.update({alias: OPS[name] for alias, name in _ALIASES.items()})
FUNCTIONS.update(
    add=add, sub=sub, subtract=variant(sub, name="subtract", former={}), rsub=rsub,
    div=div, divide=div, true_divide=div, pow=pow, clamp=clamp, clip=clamp,
    clamp_min=clamp_min, clamp_max=clamp_max, round=round, lerp=lerp, addcmul=addcmul, addcdiv=addcdiv,
    nan_to_num=nan_to_num, isclose=isclose, allclose=allclose,
    square=square, equal=equal, fill=lambda input, value: OPS["copy" if isinstance(value, TensorBase) else "fill"](input, value),
)  # fmt: skip


def kept(t: Any) -> Any:
    """A tensor that is about to be written, as its gradient formula may need it: a copy if it requires grad."""
    return OPS["clone"](t, None) if _native.grad_enabled() and t._requires_grad else t


def inplace_of(fn: Callable[..., Any], name: str | None = None) -> Callable[..., Any]:
    """The in-place form of a function with options: computes, then copies into its first argument. name: in place of the name of `fn`."""
    name = f"{name or fn.__name__}_"

    def method(input: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: A002
        if "out" in kwargs:
            raise TypeError(f"{name}() got an unexpected keyword argument 'out'")
        result = fn(kept(input), *args, **kwargs)
        if not dtypes.can_cast(result.dtype, input.dtype):
            raise RuntimeError(f"result type {scalar_name(result.dtype)} can't be cast to the desired output type "
                               f"{scalar_name(input.dtype)}")  # fmt: skip
        if tuple(result.shape) != tuple(input.shape):
            raise RuntimeError(f"output with shape {list(input.shape)} doesn't match the broadcast shape {list(result.shape)}")
        check_no_overlap(input, (*args, *kwargs.values()))
        return input.copy_(result)

    method.__name__ = method.__qualname__ = name
    return method


@public(former=ALPHA_BEFORE_TENSOR, numbers_as_tensors=True)
def add_(self: Any, other: Any, *, alpha: Any = 1) -> Any:
    """self += alpha * other. Raises: RuntimeError if the result does not fit self's shape or dtype category."""
    return OPS["add_"](self, _times(other, alpha, self, other))


@public(former=ALPHA_BEFORE_TENSOR, numbers_as_tensors=True)
def sub_(self: Any, other: Any, *, alpha: Any = 1) -> Any:
    """self -= alpha * other. Raises: RuntimeError for bools, or if the result does not fit self's shape or dtype category."""
    _no_bool(self, other)
    return OPS["sub_"](self, _times(other, alpha, self, other))


@public(numbers_as_tensors=True)
def div_(self: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    """self /= other, rounded by `rounding_mode` (None, "trunc" or "floor"). Raises: RuntimeError if the result does not fit self."""
    return OPS[_division(rounding_mode) + "_"](self, other)


def clamp_(self: Any, min: Any = None, max: Any = None) -> Any:  # noqa: A002
    """`clamp` in place. Raises: RuntimeError without a bound."""
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    _check_numbers(self, min, max)
    return OPS["clamp_"](self, min, max)


@public(former=VALUE_BEFORE_TENSORS)
def addcmul_(self: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Any:
    """self += value * tensor1 * tensor2. Raises: RuntimeError if the result does not fit self's shape or dtype category."""
    value = _ternary_value("addcmul", value, self, tensor1, tensor2)
    check_no_overlap(self, (tensor1, tensor2))
    wide1, wide2 = _widened(self.dtype, (tensor1, tensor2))
    return OPS["add_"](self, _scaled(wide1 * wide2, value))


@public(former=VALUE_BEFORE_TENSORS)
def addcdiv_(self: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Any:
    """self += value * tensor1 / tensor2. Raises: RuntimeError for integers."""
    value = _ternary_value("addcdiv", value, self, tensor1, tensor2)
    check_no_overlap(self, (tensor1, tensor2))
    wide1, wide2 = _widened(self.dtype, (tensor1, tensor2))
    return OPS["add_"](self, _scaled(wide1 / wide2, value))


@public(schemas=("copy_(Tensor self, Tensor other, bool non_blocking=False) -> Tensor",), numbers_as_tensors=True)
def copy_(self: Any, other: Any, non_blocking: bool = False) -> Any:
    """Write the values of `other`, a tensor or a number, broadcast and cast, into self. Raises: RuntimeError if it does not broadcast."""
    if not isinstance(other, TensorBase):
        if not isinstance(other, (bool, int, float, complex, np.number, np.bool_, SymInt, SymFloat)):
            raise TypeError(f"copy_(): argument 'other' (position 1) must be Tensor, not {type(other).__name__}")
        check_each_element_once(self)
        number = other.real if isinstance(other, complex) and not self.dtype.is_complex else other
        return OPS["fill_"](self, rounded(number, self.dtype))
    if other.device is not self.device and not self.is_fake and not other.is_fake:
        other = other.to(self.device)
    return OPS["copy_"](self, other)


def fill_(input: Any, value: Any) -> Any:  # noqa: A002
    """Fill with a number or a 0-d tensor. Raises: RuntimeError for a tensor with dims."""
    if not isinstance(value, TensorBase):
        return OPS["fill_"](input, value)
    if value.ndim:
        raise RuntimeError(f"fill_ only supports 0-dimension value tensor but got tensor with {value.ndim} dimensions.")
    return OPS["copy_"](input, OPS["clone"](value, None) if _native.memory_overlap(input, (value,)) else value)


def zero_(input: Any) -> Any:  # noqa: A002
    """Fill with zeros."""
    return OPS["fill_"](input, 0)


METHODS: dict[str, Any] = {name: fn for name, fn in FUNCTIONS.items() if name not in ("fill", "rsub")}
METHODS.update({name + "_": OPS[name + "_"] for name in _PLAIN if name + "_" in OPS})
METHODS.update({alias + "_": OPS[name + "_"] for alias, name in _ALIASES.items() if name + "_" in OPS})
METHODS.update(
    where=_where_method, add_=add_, sub_=sub_, subtract_=variant(sub_, name="subtract_", former={}), div_=div_,
    divide_=div_, true_divide_=div_, pow_=OPS["pow_"],
    clamp_=clamp_, clip_=clamp_, clamp_min_=inplace_of(clamp_min), clamp_max_=inplace_of(clamp_max), round_=inplace_of(round),
    addcmul_=addcmul_, addcdiv_=addcdiv_, lerp_=inplace_of(lerp), copy_=copy_, fill_=fill_, zero_=zero_,
    nan_to_num_=inplace_of(nan_to_num), clone=lambda self, *, memory_format=None: clone(
        self, memory_format=memory_format),
)  # fmt: skip


def clone(input: Any, *, memory_format: Any = None) -> Any:
    """A copy in separate memory. `memory_format` None or preserve keeps a dense layout."""
    name = getattr(memory_format, "name", memory_format)
    return OPS["clone"](input, None if name == "preserve" else name)


def _fast(name: str, method: Callable[[Any, Any], Any]) -> Any:
    """The operator with its fast path in C for plain operands, if it has one."""
    return _native.native_operator(OPS[name], method)


FUNCTIONS["clone"] = METHODS["clone"] = clone
FUNCTIONS["where"] = where
for _name, _op in (("add", "add"), ("mul", "mul"), ("floordiv", "floor_divide"), ("mod", "remainder"),
                   ("and", "bitwise_and"), ("or", "bitwise_or"), ("xor", "bitwise_xor"), ("lshift", "left_shift"),
                   ("rshift", "right_shift")):  # fmt: skip
    METHODS[f"__{_name}__"] = _fast(_op, _operator(OPS[_op]))
    METHODS[f"__r{_name}__"] = _reflected(OPS[_op])
    METHODS[f"__i{_name}__"] = _inplace_operator(OPS[_op + "_"])
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    METHODS[f"__{_name}__"] = _fast(_name, _operator(OPS[_name]))


def _rtruediv(self: Any, other: Any) -> Any:
    """other / self as in torch: through the reciprocal, which is rounded."""
    other = operand(other)
    return other if other is NotImplemented else OPS["mul"](OPS["reciprocal"](self), other)


def _sub(self: Any, other: Any) -> Any:
    other = operand(other)
    return other if other is NotImplemented else sub(self, other)


def _rsub(self: Any, other: Any) -> Any:
    other = operand(other)
    return other if other is NotImplemented else sub(other, self)


def _pow(self: Any, other: Any) -> Any:
    other = operand(other)
    return other if other is NotImplemented else pow(self, other)


def _rpow(self: Any, other: Any) -> Any:
    other = operand(other)
    return other if other is NotImplemented else _power_of_number(other, self)


METHODS.update(
    __sub__=_fast("sub", _sub), __rsub__=_rsub, __isub__=_inplace_operator(OPS["sub_"]), __pow__=_pow, __rpow__=_rpow,
    __ipow__=_inplace_operator(OPS["pow_"]), __truediv__=_fast("div", _operator(OPS["div"])), __rtruediv__=_rtruediv,
    __itruediv__=_inplace_operator(OPS["div_"]), __neg__=lambda self: OPS["neg"](self), __pos__=lambda self: self,
    __abs__=lambda self: OPS["abs"](self), __invert__=lambda self: OPS["bitwise_not"](self),
)  # fmt: skip
