"""Rules: numpy's functions computed with functions of tensors, one rule each, with numpy's own parameter names.

A rule takes a `Call` and the arguments (arrays as values, other arguments as host objects) and returns one or several
tensor values. numpy itself has decided dtype, shape and order of the result (`call.expected`); a rule is responsible
for the numbers alone. A rule refuses arguments for which it would round differently: it does not accumulate
half-precision numbers, because numpy's result depends on its blocking.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any, Final

import numpy as np

import eager
from dynamo.builtins.numpy.calls import Call, Rule
from dynamo.recording.failing_calls import is_handled
from dynamo.values.ndarray import NdArrayValue
from dynamo.values.tensor import TensorValue

Array = Any  # an array as a value, a number, or nested sequences of arrays and numbers
INTS: Final = "biu"
REALS: Final = "biuf"
ALL: Final = "biufc"


# --- ufuncs --------------------------------------------------------------------------------------------------


def loop_dtypes(ufunc: np.ufunc, given: tuple[Any, ...]) -> tuple[np.dtype[Any], ...]:
    """The dtypes in which a ufunc computes: of its inputs, then of its outputs. Python's numbers are weak (NEP 50)."""
    kinds = tuple(_kind(v) for v in given)
    return tuple(ufunc.resolve_dtypes((*kinds, *(None,) * ufunc.nout)))


def _kind(value: Any) -> Any:
    if isinstance(value, NdArrayValue):
        return value.dtype
    if type(value) in (int, float, complex):
        return type(value)
    return np.asarray(value).dtype


def elementwise(ufunc: np.ufunc, fn: Callable[..., Any], kinds: str = REALS) -> Rule:
    """The rule of a ufunc.

    fn: takes tensors of the dtype in which the ufunc computes. kinds: the kinds of that dtype that fn supports.
    """

    def rule(call: Call, *given: Array, out: Array = None) -> Any:
        if any(isinstance(v, list | tuple | TensorValue) for v in given) or len(given) != ufunc.nin:
            call.refuse("of a value that is neither an array nor a number")
        loop = loop_dtypes(ufunc, given)
        if any(d.kind not in kinds for d in loop[: ufunc.nin]):
            call.refuse(f"in {loop[0]}")
        made = fn(call, *map(call.tensor, given, loop))
        if out is None:
            return made
        written = call.tensor(made, out.dtype)
        call.cap.arrays.write(call, out, lambda x: call.method("copy_", x, written))
        return made

    return rule


def plain(fn: Any) -> Callable[..., Any]:
    """The function `fn` of tensors, without changes."""
    return lambda call, *xs: call.op(fn, *xs)


def _remainder(call: Call, x: TensorValue, y: TensorValue) -> Any:
    if x.fake.dtype.is_floating_point:
        made = call.op(eager.remainder, x, y)
        return call.op(eager.where, call.op(operator.eq, made, 0), call.op(eager.copysign, made, y), made)  # zeros have the sign of y
    return _by_divisor(call, eager.remainder, x, y)


def _floor_divide(call: Call, x: TensorValue, y: TensorValue) -> Any:
    if x.fake.dtype.is_floating_point:
        return call.op(eager.floor_divide, x, y)
    return _by_divisor(call, eager.floor_divide, x, y)


def _by_divisor(call: Call, fn: Any, x: TensorValue, y: TensorValue) -> Any:
    """A division of integers, where division by zero gives 0."""
    zero = call.op(operator.eq, y, 0)
    made = call.op(fn, x, call.op(eager.where, zero, call.op(eager.ones_like, y), y))
    return call.op(eager.where, zero, call.op(eager.zeros_like, made), made)


def _sign(call: Call, x: TensorValue) -> Any:
    made = call.op(eager.sign, x)
    return call.op(eager.where, call.op(eager.isnan, x), x, made) if x.fake.dtype.is_floating_point else made


def _truth(call: Call, x: TensorValue) -> TensorValue:
    """x != 0"""
    return x if x.fake.dtype is eager.bool else call.op(operator.ne, x, 0)


def _logical(fn: Any) -> Callable[..., Any]:
    return lambda call, *xs: call.op(fn, *(_truth(call, x) for x in xs))


def _rounded(fn: Any) -> Callable[..., Any]:
    """A function that rounds floats and leaves integers unchanged."""
    return lambda call, x: call.op(fn, x) if x.fake.dtype.is_floating_point else call.method("clone", x)


def _none(call: Call, x: TensorValue) -> Any:
    """isnan and isinf of integers."""
    return call.op(eager.zeros_like, x, dtype=eager.bool)


def _float_test(fn: Any, of_ints: Callable[..., Any]) -> Callable[..., Any]:
    return lambda call, x: call.op(fn, x) if x.fake.dtype.is_floating_point or x.fake.dtype.is_complex else of_ints(call, x)


_FLOATS: Final = "sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh exp exp2 expm1 log log2 log10 log1p sqrt".split()
_PAIRS: Final = "hypot arctan2 copysign logaddexp logaddexp2".split()

UFUNCS: Final[dict[np.ufunc, Rule]] = {
    **{getattr(np, n): elementwise(getattr(np, n), plain(getattr(eager, n)), "f") for n in (*_FLOATS, *_PAIRS)},
    **{getattr(np, n): elementwise(getattr(np, n), plain(getattr(eager, n)), REALS) for n in "maximum minimum fmax fmin".split()},
    np.add: elementwise(np.add, plain(operator.add), ALL),
    np.subtract: elementwise(np.subtract, plain(operator.sub), "iufc"),
    np.multiply: elementwise(np.multiply, plain(operator.mul), ALL),
    np.true_divide: elementwise(np.true_divide, plain(operator.truediv), "fc"),
    np.floor_divide: elementwise(np.floor_divide, _floor_divide, "iuf"),
    np.remainder: elementwise(np.remainder, _remainder, "iuf"),
    np.negative: elementwise(np.negative, plain(operator.neg), "iufc"),
    np.positive: elementwise(np.positive, lambda call, x: call.method("clone", x), "iufc"),
    np.absolute: elementwise(np.absolute, lambda call, x: x if x.fake.dtype is eager.bool else call.op(eager.abs, x), ALL),
    np.fabs: elementwise(np.fabs, plain(eager.abs), "f"),
    np.square: elementwise(np.square, plain(eager.square), "iuf"),
    np.reciprocal: elementwise(np.reciprocal, plain(eager.reciprocal), "f"),
    np.sign: elementwise(np.sign, _sign, "iuf"),
    np.deg2rad: elementwise(np.deg2rad, plain(eager.deg2rad), "f"),
    np.radians: elementwise(np.radians, plain(eager.deg2rad), "f"),
    np.rad2deg: elementwise(np.rad2deg, plain(eager.rad2deg), "f"),
    np.degrees: elementwise(np.degrees, plain(eager.rad2deg), "f"),
    np.floor: elementwise(np.floor, _rounded(eager.floor), REALS),
    np.ceil: elementwise(np.ceil, _rounded(eager.ceil), REALS),
    np.trunc: elementwise(np.trunc, _rounded(eager.trunc), REALS),
    np.rint: elementwise(np.rint, plain(eager.round), "f"),
    np.isnan: elementwise(np.isnan, _float_test(eager.isnan, _none), ALL),
    np.isinf: elementwise(np.isinf, _float_test(eager.isinf, _none), ALL),
    np.isfinite: elementwise(np.isfinite, _float_test(eager.isfinite, lambda c, x: c.op(eager.ones_like, x, dtype=eager.bool)), ALL),
    np.signbit: elementwise(np.signbit, plain(eager.signbit), "f"),
    np.equal: elementwise(np.equal, plain(operator.eq), ALL),
    np.not_equal: elementwise(np.not_equal, plain(operator.ne), ALL),
    np.less: elementwise(np.less, plain(operator.lt)),
    np.less_equal: elementwise(np.less_equal, plain(operator.le)),
    np.greater: elementwise(np.greater, plain(operator.gt)),
    np.greater_equal: elementwise(np.greater_equal, plain(operator.ge)),
    np.logical_and: elementwise(np.logical_and, _logical(eager.logical_and)),
    np.logical_or: elementwise(np.logical_or, _logical(eager.logical_or)),
    np.logical_xor: elementwise(np.logical_xor, _logical(eager.logical_xor)),
    np.logical_not: elementwise(np.logical_not, _logical(eager.logical_not)),
    np.bitwise_and: elementwise(np.bitwise_and, plain(operator.and_), INTS),
    np.bitwise_or: elementwise(np.bitwise_or, plain(operator.or_), INTS),
    np.bitwise_xor: elementwise(np.bitwise_xor, plain(operator.xor), INTS),
    np.invert: elementwise(np.invert, plain(operator.invert), INTS),
}


def power(call: Call, x: Array, y: Array) -> Any:
    """x ** y and power(x, y).

    An integer needs a constant power: a negative power is an error that depends on the data.
    """
    loop = loop_dtypes(np.power, (x, y))
    if loop[0].kind != "f" and (isinstance(y, NdArrayValue) or loop[0].kind not in "iu"):
        call.refuse(f"in {loop[0]} to a power that is not constant")
    return call.op(eager.pow, call.tensor(x, loop[0]), call.tensor(y, loop[1]))


def _multiplies(call: Call) -> None:
    """Refuse dtypes in which the matrix products of tensors and of numpy differ."""
    if call.dtype.kind not in "iuf":
        call.refuse(f"in {call.dtype}")
    _accumulates(call, call.dtype)


def matmul(call: Call, a: Array, b: Array) -> Any:
    """a @ b"""
    _multiplies(call)
    return call.op(eager.matmul, call.tensor(a, call.dtype), call.tensor(b, call.dtype))


UFUNCS[np.power] = power
UFUNCS[np.matmul] = matmul


# --- reductions ----------------------------------------------------------------------------------------------


def _dims(call: Call, a: NdArrayValue, axis: Any) -> tuple[int, ...]:
    if axis == ():
        call.refuse("over an empty tuple of axes")
    given = range(a.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return tuple(operator.index(d) for d in given)


def _array(call: Call, a: Array) -> NdArrayValue:
    return a if isinstance(a, NdArrayValue) else call.refuse("of an object that is not an array")


def _accumulates(call: Call, *dtypes: np.dtype[Any]) -> None:
    if any(d.kind == "f" and d.itemsize < 4 for d in dtypes):
        call.refuse("of half-precision numbers")


def reduction(fn: Any, kinds: str = ALL, *, adds: bool = True, cast: bool = True) -> Rule:
    """The rule of a reduction fn(x, dim, keepdim).

    adds: fn accumulates. cast: fn computes in the dtype of the result.
    """

    def rule(call: Call, a: Array, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False) -> Any:
        a = _array(call, a)
        if a.dtype.kind not in kinds or out is not None:
            call.refuse(f"of {a.dtype}")
        if adds:
            _accumulates(call, a.dtype, call.dtype)
        if a.dtype.kind == "c" and call.dtype.kind != "c":
            call.refuse("of complex numbers")
        made = fn(call, call.tensor(a, _sums_in(call) if cast else None), _dims(call, a, axis), bool(keepdims))
        return call.tensor(made, call.dtype) if cast else made

    return rule


def _sums_in(call: Call) -> np.dtype[Any]:
    """The dtype in which tensors add and multiply.

    Unsigned numbers use the signed dtype: the bits of the results are equal.
    """
    return np.dtype(np.int64) if call.dtype == np.uint64 else call.dtype


def without_dtype(rule: Rule) -> Rule:
    """A reduction without the parameter dtype."""

    def without(call: Call, a: Array, axis: Any = None, out: None = None, keepdims: bool = False) -> Any:
        return rule(call, a, axis, None, out, keepdims)

    return without


def over(fn: Any) -> Callable[..., Any]:
    return lambda call, x, dims, keep: call.op(fn, x, dim=dims, keepdim=keep) if dims else call.method("clone", x)


def mean(call: Call, x: TensorValue, dims: tuple[int, ...], keep: bool) -> Any:
    """The sum divided by the count, as numpy computes it."""
    shape = x.fake.shape
    count = functools.reduce(operator.mul, (shape[d] for d in dims), 1)
    return call.op(operator.truediv, over(eager.sum)(call, x, dims, keep), count)


def one_by_one(fn: Any) -> Callable[..., Any]:
    """The rule of any() or all()."""

    def several(call: Call, x: TensorValue, dims: tuple[int, ...], keep: bool) -> Any:
        ndim = max(len(x.fake.shape), 1)  # a scalar has an axis 0 to reduce
        for d in sorted({d % ndim for d in dims}, reverse=True):
            x = call.op(fn, x, dim=d, keepdim=keep)
        return x if dims else call.method("clone", x)

    return several


def truth_reduction(fn: Any) -> Rule:
    """any and all."""
    return reduction(lambda call, x, dims, keep: one_by_one(fn)(call, _truth(call, x), dims, keep), "biuf", adds=False, cast=False)


def extent(call: Call, x: TensorValue, dims: tuple[int, ...], keep: bool) -> Any:
    return call.op(operator.sub, over(eager.amax)(call, x, dims, keep), over(eager.amin)(call, x, dims, keep))


def spread(root: bool) -> Rule:
    """The rule of var() or std()."""

    def rule(call: Call, a: Array, axis: Any = None, dtype: Any = None, out: None = None, ddof: Any = 0, keepdims: bool = False,
             correction: Any = None) -> Any:  # fmt: skip
        a = _array(call, a)
        _accumulates(call, a.dtype, call.dtype)
        if a.dtype.kind == "c" or out is not None or not a.ndim:
            call.refuse(f"of {a.dtype} numbers, or of no dims")
        free = ddof if correction is None else correction
        made = call.op(eager.var, call.tensor(a, call.dtype), dim=_dims(call, a, axis), correction=free, keepdim=bool(keepdims))
        return call.op(eager.sqrt, made) if root else made

    return rule


def place(fn: Any) -> Rule:
    """The rule of argmax() or argmin()."""

    def rule(call: Call, a: Array, axis: Any = None, out: None = None, keepdims: bool = False) -> Any:
        a = _array(call, a)
        if a.dtype.kind not in "iuf" or out is not None:
            call.refuse(f"of {a.dtype}")
        if axis is None and keepdims:
            flat = call.op(fn, call.method("reshape", a.tensor, -1), dim=0)
            return call.method("reshape", flat, *(1,) * a.ndim)
        return call.op(fn, a.tensor, dim=axis, keepdim=bool(keepdims))

    return rule


def scan(fn: Any) -> Rule:
    """The rule of cumsum() or cumprod()."""

    def rule(call: Call, a: Array, axis: Any = None, dtype: Any = None, out: None = None) -> Any:
        a = _array(call, a)
        _accumulates(call, a.dtype, call.dtype)
        if a.dtype.kind == "c" or out is not None:
            call.refuse(f"of {a.dtype}")
        x = call.tensor(a, _sums_in(call))
        made = call.op(fn, x if axis is not None else call.method("reshape", x, -1), dim=0 if axis is None else axis)
        return call.tensor(made, call.dtype)

    return rule


def median(call: Call, a: Array, axis: Any = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False) -> Any:
    """The mean of the two middle sorted numbers; NaN if a number is NaN: the sort puts NaN last."""
    a = _array(call, a)
    _accumulates(call, a.dtype, call.dtype)
    if isinstance(axis, tuple) or keepdims or a.dtype.kind == "c" or out is not None or not a.ndim:
        call.refuse("over several axes, with keepdims or out, of complex numbers, or of a scalar")
    x = call.tensor(a, call.dtype)
    x = call.method("reshape", x, -1) if axis is None else call.op(eager.movedim, x, axis, -1)
    n = x.fake.shape[-1]
    if type(n) is not int or n == 0:
        call.refuse("of an array whose size is not constant, or is 0")
    ordered = call.op(operator.getitem, call.op(eager.sort, x), 0)
    low, high, last = (call.method("select", ordered, -1, i) for i in ((n - 1) // 2, n // 2, n - 1))
    middle = call.op(operator.truediv, call.op(operator.add, low, high), 2)
    return call.op(eager.where, call.op(eager.isnan, last), last, middle)


def norm(call: Call, x: Array, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:  # noqa: A002
    """linalg.norm: the 1, 2 and inf norms of vectors; the root of the sum of squares of any array."""
    x = _array(call, x)
    _accumulates(call, x.dtype)
    vector = isinstance(axis, int) or (axis is None and x.ndim == 1)
    if x.dtype.kind == "c" or not (ord is None or (vector and ord in (1, 2, np.inf))):
        call.refuse(f"with ord={ord}")
    sizes, dims = call.op(eager.abs, call.tensor(x, call.dtype)), _dims(call, x, axis)
    if ord in (1, np.inf):
        return over(eager.sum if ord == 1 else eager.amax)(call, sizes, dims, bool(keepdims))
    return call.op(eager.sqrt, over(eager.sum)(call, call.op(eager.square, sizes), dims, bool(keepdims)))


# --- shapes --------------------------------------------------------------------------------------------------


def reshape(call: Call, a: Array, shape: Any = None, order: str = "C", newshape: Any = None) -> Any:
    """Returns a view if numpy returns a view."""
    if order != "C" or newshape is not None:
        call.refuse(f"in the order {order}")
    return call.method("reshape", call.tensor(a), shape)


def flat(call: Call, a: Array, order: str = "C") -> Any:
    """The rule of ravel() and flatten()."""
    if order != "C":
        call.refuse(f"in the order {order}")
    return call.method("reshape", call.tensor(a), -1)


def transpose(call: Call, a: Array, axes: Any = None) -> Any:
    a = _array(call, a)
    return call.method("permute", a.tensor, *(reversed(range(a.ndim)) if axes is None else axes))


def squeeze(call: Call, a: Array, axis: Any = None) -> Any:
    a = _array(call, a)
    return call.op(eager.squeeze, a.tensor) if axis is None else call.op(eager.squeeze, a.tensor, axis)


def expand_dims(call: Call, a: Array, axis: Any) -> Any:
    a = _array(call, a)
    axes = axis if isinstance(axis, tuple | list) else (axis,)
    x = a.tensor
    for d in sorted(d % (a.ndim + len(axes)) for d in axes):
        x = call.op(eager.unsqueeze, x, d)
    return x


def joined(fn: Any) -> Rule:
    """The rule of concatenate(), stack() and related functions."""
    keyword = fn in (eager.cat, eager.stack)

    def rule(call: Call, arrays: Array, axis: Any = 0, out: None = None, dtype: Any = None) -> Any:
        if not isinstance(arrays, list | tuple) or out is not None or not (keyword or axis == 0):
            call.refuse("without a sequence of arrays, or with this axis or out")
        tensors = [call.tensor(a, call.dtype) for a in arrays]
        if fn is eager.cat and axis is None:
            tensors, axis = [call.method("reshape", x, -1) for x in tensors], 0
        return call.op(fn, tensors, **({"dim": axis} if keyword else {}))

    return rule


def split(call: Call, ary: Array, indices_or_sections: Any, axis: int = 0) -> Any:
    sections = list(indices_or_sections) if isinstance(indices_or_sections, tuple | list) else indices_or_sections
    return call.op(eager.tensor_split, call.tensor(ary), sections, dim=axis)


def at_least(fn: Any) -> Rule:
    """The rule of atleast_1d(), atleast_2d() and atleast_3d(), for one array."""
    return lambda call, a: call.op(fn, call.tensor(a))


def repeat(call: Call, a: Array, repeats: Any, axis: Any = None) -> Any:
    if type(repeats) is not int:
        call.refuse("with a count that is not an int")
    x = call.tensor(a)
    return call.op(eager.repeat_interleave, x if axis is not None else call.method("reshape", x, -1), repeats, dim=axis or 0)


def tile(call: Call, A: Array, reps: Any) -> Any:  # noqa: N803
    return call.op(eager.tile, call.tensor(A), reps if isinstance(reps, tuple | list) else (reps,))


def roll(call: Call, a: Array, shift: Any, axis: Any = None) -> Any:
    return call.op(eager.roll, call.tensor(a), shift, axis)


def broadcast_to(call: Call, array: Array, shape: Any) -> Any:
    return call.method("expand", call.tensor(array), *(shape if isinstance(shape, tuple | list) else (shape,)))


def triangle(fn: Any) -> Rule:
    """The rule of tril() or triu()."""
    return lambda call, m, k=0: call.op(fn, call.tensor(_array(call, m)), k)


def diagonal(call: Call, a: Array, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    return call.op(eager.diagonal, call.tensor(a), offset, axis1, axis2)


def diag(call: Call, v: Array, k: int = 0) -> Any:
    x = call.tensor(_array(call, v))
    return call.op(eager.diag if len(x.fake.shape) == 1 else eager.diagonal, x, k)


def pad(call: Call, array: Array, pad_width: Any, mode: str = "constant", constant_values: Any = 0) -> Any:
    a = _array(call, array)
    if mode != "constant" or type(constant_values) not in (int, float) or isinstance(pad_width, dict):
        call.refuse(f"in the mode {mode}, or with several values")
    widths = np.broadcast_to(np.asarray(pad_width), (a.ndim, 2)).tolist()
    return call.op(eager.nn.functional.pad, a.tensor, [n for pair in reversed(widths) for n in pair], "constant",
                   np.asarray(constant_values).astype(a.dtype).item())  # fmt: skip


def take(call: Call, a: Array, indices: Array, axis: Any = None, out: None = None, mode: str = "raise") -> Any:
    if mode != "raise" or out is not None:
        call.refuse(f"in the mode {mode}")
    x = call.tensor(a)
    x, axis = (call.method("reshape", x, -1), 0) if axis is None else (x, axis % len(x.fake.shape))
    return call.cap.operators.getitem(x, call._value((*(slice(None),) * axis, _index(call, indices))))


def diff(call: Call, a: Array, n: int = 1, axis: int = -1) -> Any:
    a = _array(call, a)
    if a.dtype.kind not in "iuf":
        call.refuse(f"of {a.dtype}")
    return call.op(eager.diff, a.tensor, n, axis)


def sort(call: Call, a: Array, axis: Any = -1, kind: Any = None) -> Any:
    x = call.tensor(_array(call, a))
    x, axis = (call.method("reshape", x, -1), 0) if axis is None else (x, axis)
    return call.op(operator.getitem, call.op(eager.sort, x, dim=axis), 0)


def argsort(call: Call, a: Array, axis: Any = -1, kind: Any = None, stable: Any = None) -> Any:
    if not stable and kind not in ("stable", "mergesort"):
        call.refuse("that is not stable: the order of equal elements depends on the algorithm")
    x = call.tensor(_array(call, a))
    x, axis = (call.method("reshape", x, -1), 0) if axis is None else (x, axis)
    return call.op(eager.argsort, x, dim=axis, stable=True)


# --- several arrays ------------------------------------------------------------------------------------------


def where(call: Call, condition: Array, x: Array = None, y: Array = None) -> Any:
    if x is None or y is None:
        call.refuse("of a condition alone: the number of elements depends on the data")
    return call.op(eager.where, _truth(call, call.tensor(condition)), call.tensor(x, call.dtype), call.tensor(y, call.dtype))


def clip(call: Call, a: Array, a_min: Array = None, a_max: Array = None, out: None = None, min: Array = None, max: Array = None) -> Any:  # noqa: A002
    low, high = (a_min if min is None else min), (a_max if max is None else max)
    x = call.tensor(_array(call, a), call.dtype)
    if call.dtype.kind not in "iuf" or out is not None:
        call.refuse(f"of {call.dtype}")
    for bound, fn in ((low, eager.maximum), (high, eager.minimum)):
        if bound is not None:
            x = call.op(fn, x, call.tensor(bound, call.dtype))
    return x


def round_(call: Call, a: Array, decimals: int = 0, out: None = None) -> Any:
    a = _array(call, a)
    if a.dtype.kind not in "iuf" or out is not None or (a.dtype.kind != "f" and decimals < 0) or (a.dtype.itemsize < 4 and decimals):
        call.refuse(f"of {a.dtype} to {decimals} decimals")
    if a.dtype.kind != "f":
        return call.method("clone", a.tensor)
    if not decimals:
        return call.op(eager.round, a.tensor)
    scale = call.tensor(10.0 ** abs(decimals), a.dtype)
    there, back = (operator.mul, operator.truediv) if decimals > 0 else (operator.truediv, operator.mul)
    return call.op(back, call.op(eager.round, call.op(there, a.tensor, scale)), scale)


def dot(call: Call, a: Array, b: Array, out: None = None) -> Any:
    """dot() of vectors and matrices."""
    a, b = _array(call, a), _array(call, b)
    if out is not None or not (0 < a.ndim <= 2 and 0 < b.ndim <= 2):
        call.refuse("of an array that is neither a vector nor a matrix")
    return matmul(call, a, b)


def outer(call: Call, a: Array, b: Array, out: None = None) -> Any:
    if out is not None:
        call.refuse("with out")
    x, y = (call.method("reshape", call.tensor(v, call.dtype), -1) for v in (a, b))
    return call.op(operator.mul, call.op(eager.unsqueeze, x, 1), y)


def inner(call: Call, a: Array, b: Array) -> Any:
    if _array(call, a).ndim != 1 or _array(call, b).ndim != 1:
        call.refuse("of an array that is not a vector")
    return matmul(call, a, b)


def einsum(call: Call, subscripts: Any, *operands: Array) -> Any:
    if not isinstance(subscripts, str):
        call.refuse("without subscripts")
    _multiplies(call)
    shared = call.dtype if len(operands) > 1 else None
    return call.op(eager.einsum, subscripts, *(call.tensor(v, shared) for v in operands))


def tensordot(call: Call, a: Array, b: Array, axes: Any = 2) -> Any:
    _multiplies(call)
    dims = axes if type(axes) is int else tuple(list(d) if isinstance(d, tuple | list) else [d] for d in axes)
    return call.op(eager.tensordot, call.tensor(a, call.dtype), call.tensor(b, call.dtype), dims)


def meshgrid(call: Call, *xi: Array, indexing: str = "xy") -> Any:
    flat_ = [call.method("reshape", call.tensor(_array(call, x)), -1) for x in xi]
    return call.op(eager.meshgrid, *flat_, indexing=indexing)


# --- making arrays -------------------------------------------------------------------------------------------


def filled(value: Any) -> Rule:
    """The rule of zeros_like() and related functions.

    value: None for full_like(), which fills with its second argument.
    """

    def like(call: Call, a: Array, dtype: Any = None, order: Any = "K", subok: Any = True) -> Any:
        return call.op(eager.full, tuple(_array(call, a).tensor.fake.shape), call.dtype.type(value).item(), dtype=_eager(call))

    def full_like(call: Call, a: Array, fill_value: Array, dtype: Any = None, order: Any = "K", subok: Any = True) -> Any:
        return call.method("expand", call.tensor(fill_value, call.dtype), *_array(call, a).tensor.fake.shape)

    return full_like if value is None else like


def _eager(call: Call) -> Any:
    return eager.from_numpy(np.empty(0, call.dtype)).dtype


def copied(call: Call, a: Array, order: Any = "K", subok: Any = False) -> Any:
    return call.method("clone", call.tensor(a))


def converted(call: Call, a: Array, dtype: Any = None, *rest: Any, **how: Any) -> Any:
    """astype, array, asarray.

    numpy has decided whether the result is a copy; the other parameters do not affect the values.
    """
    if isinstance(a, NdArrayValue) and a.dtype.kind == "c" != call.dtype.kind:
        call.refuse("of complex numbers as real ones")
    return call.tensor(a, call.dtype)


def clipped(call: Call, a: Array, min: Array = None, max: Array = None, out: None = None) -> Any:  # noqa: A002
    """a.clip(min, max)"""
    return clip(call, a, min, max, out)


# --- items ---------------------------------------------------------------------------------------------------


def _index(call: Call, key: Any) -> Any:
    """An index of an array as an index of a tensor."""
    if isinstance(key, NdArrayValue):
        if key.dtype.kind not in INTS:
            call.refuse("at an array that is not of integers")
        if is_handled(call.cap.frames.running):
            call.refuse("at indices in an array, where the program would catch an IndexError")
        return call.tensor(key, None if key.dtype.kind == "b" else np.int64)
    if isinstance(key, tuple):
        parts = [_index(call, k) for k in key]
        if any(isinstance(p, TensorValue | list) for p in parts) and any(isinstance(p, int) for p in parts):
            call.refuse("at ints and arrays together")
        return tuple(parts)
    if isinstance(key, np.integer):
        return int(key)
    if isinstance(key, slice) and any(isinstance(part, NdArrayValue) for part in (key.start, key.stop, key.step)):
        call.refuse("between bounds in arrays")
    if isinstance(key, slice) and isinstance(key.step, int) and key.step < 0:
        call.refuse("backwards: tensors have no negative strides")
    if isinstance(key, bool | np.bool_) or (isinstance(key, list) and not all(type(k) is int for k in key)):
        call.refuse("at bools, or at a list that does not contain only ints")
    return key


def _has(key: Any, kinds: str, sequences: bool = True) -> bool:
    parts = key if isinstance(key, tuple) else (key,)
    return any((isinstance(p, NdArrayValue) and p.dtype.kind in kinds and p.ndim > 0) or (sequences and isinstance(p, list)) for p in parts)


def getitem(call: Call, a: Array, key: Array) -> Any:
    """a[key]"""
    if _has(key, "b", sequences=False):
        call.refuse("at a mask: the number of elements depends on the data")
    return call.cap.operators.getitem(call.tensor(_array(call, a)), call._value(_index(call, key)))


def setitem(call: Call, a: Array, key: Array, value: Array) -> Any:
    """a[key] = value"""
    target = _array(call, a)
    if isinstance(value, list | tuple) or (isinstance(value, NdArrayValue) and value.dtype.kind == "c" != target.dtype.kind):
        call.refuse("of a value that is neither an array nor a number")
    if _has(key, "iu", sequences=False):
        call.refuse("at indices in an array: whether they are in range depends on their values")
    if isinstance(value, NdArrayValue) and value.ndim and _has(key, "b"):
        call.refuse("of an array at indices in an array or a list")
    new = call.tensor(value, target.dtype)
    if isinstance(value, NdArrayValue) and value.tensor.fake.untyped_storage().root is target.tensor.fake.untyped_storage().root:
        new = call.method("clone", new)
    at = call._value(_index(call, key))
    call.cap.arrays.write(call, target, lambda x: call.cap.items.set(x, at, new))


def fill(call: Call, a: Array, value: Array) -> Any:
    """a.fill(value)"""
    target = _array(call, a)
    new = call.tensor(value, target.dtype)
    if new.fake.ndim:
        call.refuse("with an array")
    call.cap.arrays.write(call, target, lambda x: call.method("copy_", x, new))
