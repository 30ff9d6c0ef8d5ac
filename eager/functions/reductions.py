"""Public reductions: torch's overloads over the ops, which take normalised dims."""
from __future__ import annotations

from typing import Any

from eager import _native
from eager.base import dtypes, return_types
from eager.base.dtypes import scalar_name
from eager.base.spec import normalize_dim, normalize_dims
from eager.optable.gradient_strides import with_gradient
from eager.optable.out import write_out
from eager.optable.precision import FLOAT32_ON_CUDA, FLOAT32_UNLESS_ASKED, Policy, Precision
from eager.optable.table import OPS
from eager.public.record import Out, public
from eager.tape.record import owned

TensorBase = _native.TensorBase
_MISSING: Any = object()


def _out(result: Any, out: Any, exact: bool = False) -> Any:
    return result if out is None else write_out(out, result, exact)


def _one_dim(dim: Any, axis: Any) -> Any:
    """`axis`, numpy's name for dim. Raises TypeError if both are given."""
    if dim is not None:
        raise TypeError(f"got both 'dim' ({dim}) and 'axis' ({axis}), which name one argument")
    return axis


@public(axis=True, autocast=FLOAT32_UNLESS_ASKED)
def sum(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None, axis: Any = None) -> Any:  # noqa: A001
    """Sum over `dim` (an int, several, or None for all). Integers and bools give int64.

    Raises: IndexError for a wrong dim, RuntimeError for a repeated dim.
    """
    dims = normalize_dims(dim if axis is None else _one_dim(dim, axis), input.ndim)
    if dtype is None and out is not None:  # as torch: the sum is taken in the dtype of `out`
        dtype = out.dtype
    if dtype is not None and input.dtype.is_float8:
        input = OPS["to_dtype"](input, dtype)
    return _out(OPS["sum"](input, dims, keepdim, dtype), out)


@public(axis=True)
def nansum(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None) -> Any:
    """Sum over `dim` of the elements that are not nan, in the dtype of `out` if no dtype is given. Raises: RuntimeError for complex."""
    if out is not None and not input.dtype.is_integral and out.dtype.is_integral:
        raise dtypes.no_kernel("nansum_cpu", out.dtype)
    if input.dtype.is_complex:
        raise RuntimeError("nansum on CPU does not support complex inputs")
    return sum(OPS["where"](OPS["isnan"](input), 0, input), dim, keepdim, dtype=dtype, out=out)


@public(axis=True)
def mean(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None, axis: Any = None) -> Any:
    """Arithmetic mean over `dim` (an int, several, or None for all). Raises: RuntimeError for integers without `dtype`, IndexError."""
    dims = normalize_dims(dim if axis is None else _one_dim(dim, axis), input.ndim)
    return _out(OPS["mean"](input, dims, keepdim, dtype), out, exact=dtype is not None)


@public(axis=True, autocast=Precision(cuda=Policy.FLOAT32_UNLESS_ASKED, cpu=Policy.FLOAT32))
def prod(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None) -> Any:
    """Product over `dim`, in the dtype of `out` if no dtype is given. Integers and bools give int64. Raises: IndexError for a wrong dim."""
    if dtype is None and out is not None:
        dtype = out.dtype
    return _out(OPS["prod"](input, normalize_dims(dim, input.ndim), keepdim, dtype), out)


@public(axis=True)
def amax(input: Any, dim: Any | None = (), keepdim: bool = False, *, out: Any = None) -> Any:
    """The maximum over `dim`, by default over all dims; gradients are shared among equal maxima."""
    return _out(OPS["amax"](input, normalize_dims(dim, input.ndim), keepdim), out)


@public(axis=True)
def amin(input: Any, dim: Any | None = (), keepdim: bool = False, *, out: Any = None) -> Any:
    """The minimum over `dim`, by default over all dims; gradients are shared among equal minima."""
    return _out(OPS["amin"](input, normalize_dims(dim, input.ndim), keepdim), out)


@public(out=Out(exact=True))
def aminmax(input: Any, *, dim: int | None = None, keepdim: bool = False) -> Any:
    """The named tuple (min, max) along `dim`, by default over all dims. Raises: IndexError for a wrong dim."""
    return return_types.aminmax(amin(input, () if dim is None else dim, keepdim), amax(input, () if dim is None else dim, keepdim))


@public(axis=True)
def any(input: Any, dim: Any = None, keepdim: bool = False, *, out: Any = None) -> Any:  # noqa: A001
    """Whether an element over `dim` is not zero: bool, or uint8 for a uint8 input."""
    return _out(_logical("any", input, dim, keepdim), out, exact=True)


@public(axis=True)
def all(input: Any, dim: Any = None, keepdim: bool = False, *, out: Any = None) -> Any:  # noqa: A001
    """Whether all elements over `dim` are not zero: bool, or uint8 for a uint8 input."""
    return _out(_logical("all", input, dim, keepdim), out, exact=True)


def _logical(name: str, input: Any, dim: Any, keepdim: bool) -> Any:
    if isinstance(dim, (tuple, list)) and not dim:  # an empty list means no dims, not all: each element alone
        result = OPS["ne"](input, 0)
    else:
        result = OPS[name](input, normalize_dims(dim, input.ndim), keepdim)
    return OPS["to_dtype"](result, dtypes.uint8) if input.dtype is dtypes.uint8 else result


def _arg(name: str, input: Any, dim: int | None, keepdim: bool) -> Any:
    if input.dtype is dtypes.bool_:
        raise NotImplementedError(f"{name}(): does not support bool input")
    if dim is None:
        if input.numel() == 0:
            raise IndexError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction "
                             "dim with the 'dim' argument.")  # fmt: skip
        return OPS[name](input, tuple(range(input.ndim)), keepdim)
    return OPS[name](input, normalize_dims(dim, input.ndim), keepdim)


@public(out=Out(exact=True), axis=True)
def argmax(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """int64 index of the first maximum along `dim`, or into the flattened tensor. Raises: IndexError for a wrong or empty dim."""
    return _arg("argmax", input, dim, keepdim)


@public(out=Out(exact=True), axis=True)
def argmin(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """int64 index of the first minimum along `dim`, or into the flattened tensor. Raises: IndexError for a wrong or empty dim."""
    return _arg("argmin", input, dim, keepdim)


def _extreme(name: str, result: Any, pair: Any, input: Any, dim: Any, keepdim: bool, other: Any) -> Any:
    if isinstance(dim, TensorBase):
        other, dim = dim, None
    if (dim is None and keepdim) or (other is not None and not isinstance(other, TensorBase)):
        given = f"keepdim={keepdim} without dim" if other is None else f"other={type(other).__name__}"
        raise TypeError(f"{name}() received an invalid combination of arguments: expected dim and keepdim, or a tensor, got {given}")
    if other is not None:
        return OPS[pair](input, other)
    if dim is None:
        if input.numel() == 0:
            raise RuntimeError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction "
                               "dim with the 'dim' argument.")  # fmt: skip
        return OPS["a" + name](with_gradient("rows", input), tuple(range(input.ndim)), False)
    d = normalize_dim(dim, input.ndim)
    indices = OPS["arg" + name](input, normalize_dims(d, input.ndim), True)
    if input.ndim == 0:
        return result(OPS["clone"](input), indices)
    values = OPS["gather"](input, d, indices)
    if not keepdim:
        values, indices = owned((OPS["squeeze"](values, (d,)), OPS["squeeze"](indices, (d,))))
    return result(values, indices)


@public(axis=True)
def max(input: Any, dim: Any = None, keepdim: bool = False, *, other: Any = None, out: Any = None) -> Any:  # noqa: A001
    """`max(x)`: shape (). `max(x, dim, keepdim)`: the named tuple (values, int64 indices). `max(x, other)`: elementwise, broadcast."""
    return _out(_extreme("max", return_types.max, "maximum", input, dim, keepdim, other), out)


@public(axis=True)
def min(input: Any, dim: Any = None, keepdim: bool = False, *, other: Any = None, out: Any = None) -> Any:  # noqa: A001
    """`min(x)`: shape (). `min(x, dim, keepdim)`: the named tuple (values, int64 indices). `min(x, other)`: elementwise, broadcast."""
    return _out(_extreme("min", return_types.min, "minimum", input, dim, keepdim, other), out)


def _correction(dim: Any, unbiased: Any, correction: Any) -> tuple[Any, float]:
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if unbiased is not None and (correction is not _MISSING or not isinstance(unbiased, bool)):
        raise TypeError("var() and std() received an invalid combination of arguments: expected unbiased (bool) or correction, got "
                        f"unbiased={unbiased!r}{'' if correction is _MISSING else f' and correction={correction!r}'}")  # fmt: skip
    if correction is _MISSING or correction is None:
        correction = 1 if unbiased is None or unbiased else 0
    return dim, float(dtypes.option(dtypes.float64, correction))


@public(out=Out(), axis=True)
def var(input: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = _MISSING) -> Any:
    """Variance over `dim`, divided by (count - correction); `unbiased=False` is correction 0."""
    dim, c = _correction(dim, unbiased, correction)
    return OPS["var"](input, normalize_dims(dim, input.ndim), c, keepdim)


@public(out=Out(), axis=True)
def std(input: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = _MISSING) -> Any:
    """Square root of `var`; its gradient is zero where all elements are equal."""
    dim, c = _correction(dim, unbiased, correction)
    return OPS["std"](input, normalize_dims(dim, input.ndim), c, keepdim)


@public(axis=True, composed=True)
def var_mean(input: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = _MISSING) -> Any:
    """The pair (`var`, `mean`) over `dim`."""
    mean_ = mean(input, None if isinstance(dim, bool) else dim, keepdim)
    return var(input, dim, unbiased, keepdim, correction=correction), mean_


@public(axis=True, composed=True)
def std_mean(input: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = _MISSING) -> Any:
    """The pair (`std`, `mean`) over `dim`."""
    mean_ = mean(input, None if isinstance(dim, bool) else dim, keepdim)
    return std(input, dim, unbiased, keepdim, correction=correction), mean_


@public(out=Out(), axis=True, autocast=FLOAT32_ON_CUDA)
def logsumexp(input: Any, dim: Any, keepdim: bool = False) -> Any:
    """log(sum(exp(input))) over `dim`, without overflow of intermediate values. Integers are cast to the default dtype."""
    if input.dtype.is_integral:
        input = OPS["to_dtype"](input, dtypes.get_default_dtype())
    return OPS["logsumexp"](input, normalize_dims(dim, input.ndim), keepdim)


@public(out=Out(), axis=True, ints_apart=True)
def count_nonzero(input: Any, dim: Any = None) -> Any:
    """The number of elements over `dim` that are not zero, as int64."""
    return OPS["sum"](input != 0, normalize_dims(dim, input.ndim), False, None)


def hash_tensor(input: Any, dim: Any | None = (), *, keepdim: bool = False, mode: int = 0, out: Any = None) -> Any:
    """The exclusive or, in uint64, of the bits of the elements along `dim` (all dims by default), as 64-bit floats or integers.

    Raises: RuntimeError for another mode than 0; IndexError for a dim of no elements.
    """
    if mode != 0:
        raise RuntimeError(f"Unknown hash_tensor mode: {mode}")
    dims = normalize_dims(dim, input.ndim)
    if input.numel() == 0:
        if dim is None or dim == () or dim == []:
            raise RuntimeError("hash_tensor: Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim "
                               "with the 'dim' argument.")  # fmt: skip
        for d in dims:
            if input.shape[d] == 0:
                raise IndexError(f"hash_tensor: Expected reduction dim {d} to have non-zero size.")
    if out is not None and out.dtype is not dtypes.uint64:
        raise RuntimeError(f"Expected result to be of dtype uint64, but got {scalar_name(out.dtype)}")
    return _out(OPS["hash_tensor"](input, dims, keepdim), out)


FUNCTIONS: dict[str, Any] = {
    "hash_tensor": hash_tensor,
    "sum": sum, "nansum": nansum, "mean": mean, "prod": prod, "amax": amax, "amin": amin, "aminmax": aminmax, "any": any,
    "all": all, "argmax": argmax, "argmin": argmin, "max": max, "min": min, "var": var, "std": std, "var_mean": var_mean,
    "std_mean": std_mean, "logsumexp": logsumexp, "count_nonzero": count_nonzero,
}  # fmt: skip
METHODS = {name: fn for name, fn in FUNCTIONS.items() if name not in ("var_mean", "std_mean")}
