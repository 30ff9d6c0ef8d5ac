"""Sorting, order statistics, unique values, scans and counting, with torch's overloads and named results."""
from __future__ import annotations

from typing import Any

from eager import _native
from eager.base import dtypes, return_types
from eager.base.dtypes import c_name, scalar_name
from eager.base.overlap import check_no_overlap, check_out
from eager.base.spec import TensorSpec, normalize_dim
from eager.base.symint import as_count
from eager.optable.asserting import demand
from eager.optable.declaration import zeros
from eager.optable.out import write_out
from eager.optable.precision import FLOAT32_ON_CPU, FLOAT32_UNLESS_ASKED
from eager.optable.shape import in_rows
from eager.optable.table import OPS
from eager.public.record import Out, public
from eager.tape.record import owned

TensorBase = _native.TensorBase


def _pair(kind: Any, result: Any, out: Any = None) -> Any:
    return kind(*(result if out is None else write_out(out, result)))


def _check_outs(out: Any, input: Any, same_allowed: bool = True) -> None:  # noqa: A002
    """Raise RuntimeError where a tensor in `out` lies over part of the input."""
    for written in out if isinstance(out, (tuple, list)) else ():
        if isinstance(written, TensorBase) and not written.is_fake and written.device.type != "meta":
            check_no_overlap(written, (input,), same_allowed)


@public(axis=True)
def sort(input: Any, dim: int = -1, descending: bool = False, stable: bool = False, *, out: Any = None) -> Any:  # noqa: A002
    """The named tuple (values, int64 indices) in ascending order along `dim`. Equal elements keep their order. Raises: IndexError."""
    _check_outs(out, input)
    return _pair(return_types.sort, OPS["sort"](input, normalize_dim(dim, input.ndim), descending, bool(stable)), out)


@public(out=Out(exact=True), axis=True)
def argsort(input: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:  # noqa: A002
    """int64 indices that put `input` in ascending order along `dim`. Raises: IndexError for a wrong dim."""
    return OPS["argsort"](input, normalize_dim(dim, input.ndim), descending, stable)


@public(out=Out(exact=True, not_over_inputs=True))
def msort(input: Any) -> Any:  # noqa: A002
    """Values in ascending order along dim 0."""
    return OPS["sort"](input, 0, False, True)[0]


@public(axis=True)
def topk(input: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True, *, out: Any = None) -> Any:  # noqa: A002
    """The named tuple (values, int64 indices) of the `k` largest (or smallest) along `dim`, in order.

    Raises: RuntimeError if k exceeds the size of dim, IndexError for a wrong dim.
    """
    return _pair(return_types.topk, OPS["topk"](input, as_count(k), normalize_dim(dim, input.ndim), largest, sorted), out)


def kthvalue(input: Any, k: int, dim: int = -1, keepdim: bool = False, *, out: Any = None) -> Any:  # noqa: A002
    """The `k`-th smallest element along `dim`, counted from 1, with its position."""
    _check_outs(out, input, False)
    return _pair(return_types.kthvalue, OPS["kthvalue"](input, k, normalize_dim(dim, input.ndim), keepdim), out)


def _median(name: str, kind: Any) -> Any:
    @public(axis=name == "median")
    def median(input: Any, dim: int | None = None, keepdim: bool = False, *, out: Any = None) -> Any:  # noqa: A002
        """The lower median: of all elements, or along `dim` with its position."""
        if dim is not None:
            return _pair(kind, OPS[name + "_dim"](input, normalize_dim(dim, input.ndim), keepdim), out)
        if keepdim or out is not None:
            raise TypeError(f'{name}() missing 1 required positional arguments: "dim"')
        if not input.numel():
            return OPS["full"]((), float("nan"), input.dtype, input.device)
        return OPS["median_all"](input, name == "nanmedian")

    median.__name__ = median.__qualname__ = name
    return median


@public(out=Out())
def mode(input: Any, dim: int = -1, keepdim: bool = False) -> Any:  # noqa: A002
    """The named tuple (values, int64 indices) of the most frequent value along `dim`, the smallest if several. Raises: IndexError."""
    return _pair(return_types.mode, OPS["mode"](input, normalize_dim(dim, input.ndim), keepdim))


def _quantile(ignore_nan: bool) -> Any:
    @public(out=Out(exact=True, differentiable=False), axis=not ignore_nan, autocast=FLOAT32_ON_CPU)
    def quantile(input: Any, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear") -> Any:  # noqa: A002
        """The value below which a fraction `q` of the elements lie, by interpolation between neighbours."""
        if input.dtype not in (dtypes.float32, dtypes.float64):
            raise RuntimeError("quantile() input tensor must be either float or double dtype")
        if not isinstance(q, TensorBase):
            if not 0 <= q <= 1:
                raise RuntimeError(f"quantile() q must be in the range [0, 1] but got {q}")
            q = OPS["full"]((), q, input.dtype, input.device)
        _check_quantile(input, q)
        x = input.reshape(-1) if dim is None or not input.ndim else input
        d = 0 if dim is None else normalize_dim(dim, input.ndim)
        ranked = OPS["sort"](x.movedim(d, -1), x.ndim - 1, False, True)[0]
        result = _interpolated(ranked, q.reshape(-1), interpolation, ignore_nan)  # (len(q), *rest)
        if keepdim:
            result = result.reshape(result.shape[0], *([1] * input.ndim)) if dim is None else result.unsqueeze(d + 1)
            result = result if input.ndim else result.reshape(-1)
        return owned(result if q.ndim else OPS["select"](result, 0, 0))

    quantile.__name__ = quantile.__qualname__ = "nanquantile" if ignore_nan else "quantile"
    return quantile


def _check_quantile(x: Any, q: Any) -> None:
    """Raise RuntimeError for an empty input, and unless the fractions are a vector in [0, 1] of the input's dtype."""
    if x.numel() == 0:
        raise RuntimeError("quantile() input tensor must be non-empty")
    if q.ndim > 1:
        raise RuntimeError("quantile() q must be a scalar or 1D tensor")
    if q.dtype is not x.dtype:
        raise RuntimeError("quantile() q tensor must be same dtype as the input tensor")
    demand(OPS["logical_and"](q >= 0, q <= 1), RuntimeError, "quantile() q values must be in the range [0, 1]")


def _interpolated(ranked: Any, q: Any, how: str, ignore_nan: bool) -> Any:
    """Quantiles of sorted rows (*, n), NaN last: (len(q), *)."""
    n, lead = ranked.shape[-1], tuple(ranked.shape[:-1])
    nans = OPS["sum"](OPS["isnan"](ranked), (ranked.ndim - 1,), True, None)
    last = OPS["clamp"](n - 1 - nans, 0, None) if ignore_nan else OPS["full"]((*lead, 1), n - 1, dtypes.int64, ranked.device)
    at = q * OPS["to_dtype"](last, ranked.dtype)  # (*, len(q))
    if how in ("lower", "higher", "nearest"):
        at = {"lower": OPS["floor"], "higher": OPS["ceil"], "nearest": OPS["round"]}[how](at)
    elif how not in ("linear", "midpoint"):
        raise RuntimeError(f"quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {how}")
    low, high = OPS["floor"](at), OPS["ceil"](at)
    weight = OPS["where"](high > low, 0.5, 0.0) if how == "midpoint" else at - low
    axis = ranked.ndim - 1
    a = OPS["gather"](ranked, axis, OPS["to_dtype"](low, dtypes.int64))
    b = OPS["gather"](ranked, axis, OPS["to_dtype"](high, dtypes.int64))
    result = a + (b - a) * OPS["to_dtype"](weight, ranked.dtype)
    if not ignore_nan:
        result = OPS["masked_fill"](result, nans > 0, float("nan"))
    return result.movedim(-1, 0)


# ---- unique values ----


def unique(input: Any, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:  # noqa: A002
    """The distinct elements in order (or slices along `dim`), and on request each element's number and the counts."""
    return _unique("unique", input, return_inverse, return_counts, dim)


@public(parsed=False)
def unique_consecutive(input: Any, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:  # noqa: A002
    """The first element of each run of equal elements, (count,), or the first slice along `dim`. Raises: IndexError for a wrong dim."""
    return _unique("unique_consecutive", input, return_inverse, return_counts, dim)


def _unique(op: str, input: Any, return_inverse: bool, return_counts: bool, dim: int | None) -> Any:  # noqa: A002
    if dim is not None:
        if input.ndim == 0:
            raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
        dim = normalize_dim(dim, input.ndim)
        empty = [n == 0 for n in input.shape]
        if sum(empty) > 1:
            raise RuntimeError("Number of zero sized dimensions is more than one, so unique cannot be applied ")
        if any(empty) and not empty[dim]:
            raise RuntimeError("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
    values, inverse, counts = OPS[op](input, dim)
    chosen = (values, *([inverse] if return_inverse else []), *([counts] if return_counts else []))
    return chosen if len(chosen) > 1 else values


# ---- search and counting ----


def searchsorted(sorted_sequence: Any, input: Any, *, out_int32: bool = False, right: bool = False, side: str | None = None,  # noqa: A002
                 sorter: Any = None, out: Any = None) -> Any:  # fmt: skip
    """Positions at which the values of `input` go into a sorted sequence so that it stays sorted."""
    if side not in (None, "left", "right"):
        raise RuntimeError(f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError("torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True")
    if sorter is not None:
        sorted_sequence = OPS["gather"](sorted_sequence, sorted_sequence.ndim - 1, sorter)
    if not isinstance(input, TensorBase) and sorted_sequence.ndim != 1:
        raise RuntimeError("torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we got "
                           f"boundaries tensor dim({sorted_sequence.ndim}) and input value's dim(0) numel(1)")
    found = OPS["searchsorted"](sorted_sequence, input, right or side == "right", out_int32)
    wanted = dtypes.int32 if out_int32 else dtypes.int64
    if out is not None and out.dtype is not wanted:
        raise RuntimeError("torch.searchsorted(): output tensor's dtype is wrong, it can only be Int(int32) or Long(int64) depending on "
                           f"whether out_int32 flag is True, but we got output tensor's dtype {scalar_name(out.dtype)} and out_int32 flag "
                           f"is {out_int32}")  # fmt: skip
    return found if out is None else write_out(out, found)


def bucketize(input: Any, boundaries: Any, *, out_int32: bool = False, right: bool = False, out: Any = None) -> Any:  # noqa: A002
    """The bucket between the sorted `boundaries` that each value falls into."""
    if out is not None and not isinstance(input, TensorBase):
        raise TypeError(f"bucketize() received an invalid combination of arguments: out= takes a Tensor, not {type(input).__name__}")
    if boundaries.ndim != 1:
        raise RuntimeError(f"torch.searchsorted(): boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right, out=out)


def bincount(input: Any, weights: Any = None, minlength: int = 0) -> Any:  # noqa: A002
    """How often each of 0, 1, 2, ... occurs in a vector; sums of `weights` where given."""
    return OPS["bincount"](input, weights, minlength)


@public(out=Out(exact=True, differentiable=False))
def histc(input: Any, bins: int = 100, min: Any = 0, max: Any = 0) -> Any:  # noqa: A002
    """Counts in `bins` bins of equal width in [min, max], (bins,); if min == max, the extremes of the data.

    Raises: NotImplementedError for integers, RuntimeError for bins <= 0 or max < min.
    """
    return OPS["histc"](input, bins, dtypes.option(dtypes.float64, min), dtypes.option(dtypes.float64, max))


@public(out=Out(exact=True))
def isin(elements: Any = None, test_elements: Any = None, *, assume_unique: bool = False, invert: bool = False, element: Any = None,
         test_element: Any = None) -> Any:  # fmt: skip
    """Bool tensor: whether each element is among `test_elements`. One of both may be a number. Raises: TypeError for two numbers."""
    if (elements is None) is (element is None) or (test_elements is None) is (test_element is None):
        raise TypeError("isin() received an invalid combination of arguments: expected elements or element, and test_elements "
                        "or test_element")  # fmt: skip
    elements = element if elements is None else elements
    test_elements = test_element if test_elements is None else test_elements
    if not isinstance(test_elements, TensorBase):
        found = elements == test_elements
    elif not isinstance(elements, TensorBase):
        found = (test_elements == elements).any()
    else:
        ranked = OPS["sort"](test_elements.reshape(-1), 0, False, True)[0]
        n = ranked.shape[0]
        if n == 0:
            found = OPS["full"](tuple(elements.shape), False, dtypes.bool_, elements.device)
        else:
            at = OPS["clamp"](OPS["searchsorted"](ranked, elements, False, False), None, n - 1)
            found = OPS["index"](ranked, [at]) == elements
    return in_rows(~found if invert else found)


# ---- scans ----


def _scan(name: str, suffix: str = "") -> Any:
    @public(axis=not suffix, autocast=None if suffix else FLOAT32_UNLESS_ASKED)
    def scan(input: Any, dim: int, *, dtype: Any = None, out: Any = None) -> Any:  # noqa: A002
        """Running total along `dim`; integers are totalled in int64. dtype: of the total, by default the dtype of `out`."""
        if suffix and dtype is not None and dtypes.meant(dtype) is not input.dtype:
            raise RuntimeError(f"Bad in-place call: input tensor dtype {c_name(input.dtype)} and output tensor dtype "
                               f"{c_name(dtypes.meant(dtype))} should match")  # fmt: skip
        if dtype is None and out is not None:
            dtype = out.dtype
        result = OPS[name + suffix](input, normalize_dim(dim, input.ndim), dtype)
        if out is None:
            return result
        check_out(out, (input,))
        return write_out(out, result)

    scan.__name__ = scan.__qualname__ = name + suffix
    return scan


@public(out=Out())
def cummax(input: Any, dim: int) -> Any:  # noqa: A002
    """The named tuple (values, int64 indices) of the running maximum along `dim`. Raises: IndexError for a wrong dim."""
    return _pair(return_types.cummax, OPS["cummax"](input, normalize_dim(dim, input.ndim)))


@public(out=Out())
def cummin(input: Any, dim: int) -> Any:  # noqa: A002
    """The named tuple (values, int64 indices) of the running minimum along `dim`. Raises: IndexError for a wrong dim."""
    return _pair(return_types.cummin, OPS["cummin"](input, normalize_dim(dim, input.ndim)))


@public(out=Out(exact=True, not_over_inputs=True))
def logcumsumexp(input: Any, dim: int) -> Any:  # noqa: A002
    """Logarithm of the running sum of exponentials along `dim`. Raises: NotImplementedError for integers, IndexError for a wrong dim."""
    return OPS["logcumsumexp"](input, normalize_dim(dim, input.ndim))


@public(out=Out(not_over_itself=True))
def diff(input: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Any:  # noqa: A002
    """`n`-th differences of neighbours along `dim`, which becomes n shorter. Raises: RuntimeError for a scalar or a negative n."""
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    if input.ndim == 0:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    d = normalize_dim(dim, input.ndim)
    parts = [t for t in (prepend, input, append) if t is not None]
    x = OPS["cat"](parts, d) if len(parts) > 1 else input
    for _ in range(min(n, x.shape[d])):
        low, high = OPS["slice"](x, d, 0, -1, 1), OPS["slice"](x, d, 1, None, 1)
        x = OPS["ne"](high, low) if x.dtype is dtypes.bool_ else high - low
    return x


def _widths(y: Any, x: Any, dx: Any, d: int) -> Any:
    """The distances between samples along dim `d`: a number, or a tensor that broadcasts over the panels of y."""
    if x is None:
        return dx
    if x.ndim == 1:
        x = x.reshape(tuple(-1 if i == d else 1 for i in range(y.ndim)))
    elif x.ndim < y.ndim:
        x = x.reshape((1,) * (y.ndim - x.ndim) + tuple(x.shape))
    return diff(x, 1, d)


def _ends(y: Any, d: int) -> tuple[Any, Any]:
    """The left and the right sample of every panel along dim `d`."""
    return OPS["slice"](y, d, 0, -1, 1), OPS["slice"](y, d, 1, None, 1)


def _sampled(who: str, y: Any, dx: Any, dim: int) -> int:
    if y.ndim == 0:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    if isinstance(dx, (bool, complex)):
        raise RuntimeError(f"{who}: Currently, we only support dx as a real number.")
    if y.dtype is dtypes.bool_:
        raise RuntimeError(f"{who}: received a bool input for `y`, but bool is not supported")
    return normalize_dim(dim, y.ndim)


def trapezoid(y: Any, x: Any = None, *, dx: Any = 1, dim: int = -1) -> Any:
    """Integral along `dim` by the trapezoidal rule: over samples at the places `x`, or at the distance dx."""
    d = _sampled("trapezoid", y, dx, dim)
    if y.shape[d] == 0:
        return zeros(TensorSpec.contiguous(tuple(n for i, n in enumerate(y.shape) if i != d), y.dtype, y.device))
    if x is None:  # the sum first: integers are summed in 64 bits
        first, last = OPS["select"](y, d, 0), OPS["select"](y, d, y.shape[d] - 1)
        return (OPS["sum"](y, (d,), False, None) - (first + last) * 0.5) * dx
    left, right = _ends(y, d)
    return OPS["sum"]((left + right) * _widths(y, x, dx, d), (d,), False, None) / 2


def trapz(y: Any, x: Any = None, *, dx: Any = 1, dim: int = -1) -> Any:
    """`trapezoid`, for which dx may be a bool."""
    return trapezoid(y, x, dx=int(dx) if isinstance(dx, bool) else dx, dim=dim)


def cumulative_trapezoid(y: Any, x: Any = None, *, dx: Any = 1, dim: int = -1) -> Any:
    """Running integral along `dim` by the trapezoidal rule."""
    d = _sampled("cumulative_trapezoid", y, dx, dim)
    left, right = _ends(y, d)
    return OPS["cumsum"]((left + right) * _widths(y, x, dx, d), d, None) / 2


FUNCTIONS: dict[str, Any] = {
    "sort": sort, "argsort": argsort, "msort": msort, "topk": topk, "kthvalue": kthvalue,
    "median": _median("median", return_types.median), "nanmedian": _median("nanmedian", return_types.nanmedian), "mode": mode,
    "quantile": _quantile(False), "nanquantile": _quantile(True), "unique": unique, "unique_consecutive": unique_consecutive,
    "searchsorted": searchsorted, "bucketize": bucketize, "bincount": bincount, "histc": histc, "isin": isin,
    "cumsum": _scan("cumsum"), "cumprod": _scan("cumprod"), "cummax": cummax, "cummin": cummin, "logcumsumexp": logcumsumexp,
    "diff": diff, "trapezoid": trapezoid, "trapz": trapz, "cumulative_trapezoid": cumulative_trapezoid,
}  # fmt: skip
METHODS: dict[str, Any] = {
    **{name: fn for name, fn in FUNCTIONS.items() if name not in (
        "trapezoid", "trapz", "cumulative_trapezoid", "searchsorted", "bucketize", "isin")},
    "cumsum_": _scan("cumsum", "_"), "cumprod_": _scan("cumprod", "_"),
}  # fmt: skip
