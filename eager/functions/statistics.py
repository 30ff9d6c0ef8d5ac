"""Means that ignore nan, histograms with edges, numerical gradients, and positions in a grid."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from eager import _native
from eager.base import dtypes, return_types
from eager.base.dtypes import scalar_name
from eager.base.spec import normalize_dim, normalize_dims, size_at
from eager.functions.creation import linspace
from eager.functions.reductions import sum as sum_of
from eager.optable.out import write_out
from eager.optable.shape import in_rows
from eager.optable.table import OPS
from eager.public.record import Out, public

TensorBase = _native.TensorBase


@public(axis=True)
def nanmean(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None) -> Any:
    """The mean of the elements that are not nan. Raises RuntimeError for integer and complex tensors."""
    if input.dtype.is_integral:
        raise RuntimeError("nanmean(): expected input to have floating point or complex dtype but got " + scalar_name(input.dtype))
    if input.dtype.is_complex:
        raise RuntimeError("nansum on CPU does not support complex inputs")
    if dtype is not None and dtypes.meant(dtype).is_integral:
        raise RuntimeError("nanmean(): could not infer output dtype. Optional dtype must be either a floating point or complex dtype. "
                           f"Got: {scalar_name(dtypes.meant(dtype))}")  # fmt: skip
    if out is not None and out.dtype.is_integral:
        raise dtypes.no_kernel("nansum_cpu", out.dtype)
    missing = OPS["isnan"](input)
    total = sum_of(OPS["where"](missing, 0, input), dim, keepdim, dtype=dtype)
    result = total / sum_of(OPS["logical_not"](missing), dim, keepdim)
    return result if out is None else write_out(out, result)


def histogram(input: Any, bins: Any = 100, *, range: Sequence[float] | None = None, weight: Any = None, density: bool = False,
              out: Any = None) -> Any:  # fmt: skip
    """(hist, bin_edges): how many elements, or what weight of them, fall between neighbouring edges.

    bins: a number of equal bins over `range` (default: the data's own), or a rising 1-d tensor of edges. The last bin
    includes its right edge. `density` divides by the total and the widths.
    Raises RuntimeError for other dtypes than the input's in bins or weight.
    """
    sources = (input, bins, weight)
    input, bins, weight = map(_detached, sources)
    x = input.reshape(-1)
    if isinstance(bins, TensorBase):
        if bins.dtype is not input.dtype:
            raise RuntimeError(f"torch.histogram(): bin edges should have the same dtype as input, but got {bins.dtype} and {input.dtype}")
        edges = OPS["clone"](bins, None)
    else:
        edges = _edges(x, int(bins), range)
    count = edges.shape[0] - 1
    at, inside = _bin_of(x, edges)
    hist = _counted(at, inside, count, x, weight)
    if density:
        hist = hist / (hist.sum() * (OPS["slice"](edges, 0, 1, None, 1) - OPS["slice"](edges, 0, 0, count, 1)))
    result = return_types.histogram(_derived_from(hist, sources), _derived_from(edges, sources))
    return result if out is None else write_out(out, result)


def _detached(x: Any) -> Any:
    return x.detach() if isinstance(x, TensorBase) else x


def _derived_from(result: Any, sources: Sequence[Any]) -> Any:
    """`result`, with a history whose backward refuses if autograd records a source."""
    if _native.grad_enabled():
        for x in sources:
            if isinstance(x, TensorBase) and x.requires_grad:
                return OPS["histogram_of"](result, x)
    return result


def _bin_of(x: Any, edges: Any) -> tuple[Any, Any]:
    """For each element of x the number of its bin, and whether it is in any; the last bin includes its right edge."""
    count = edges.shape[0] - 1
    right = OPS["searchsorted"](edges, x.contiguous(), True, False)
    at = OPS["where"](OPS["eq"](x, OPS["select"](edges, 0, count)), count, right) - 1
    return at, OPS["logical_and"](OPS["ge"](at, 0), OPS["lt"](at, count))


def _counted(at: Any, inside: Any, bins: int, x: Any, weight: Any) -> Any:
    """How many of the positions `at` that are `inside` name each bin, or what weight of them; in x's dtype."""
    ones = OPS["full"](tuple(at.shape), 1, x.dtype, x.device) if weight is None else weight.reshape(-1)
    hist = OPS["full"]((bins,), 0, x.dtype, x.device)
    return OPS["index_add"](hist, 0, OPS["where"](inside, at, 0), OPS["where"](inside, ones, 0))


def histogramdd(input: Any, bins: Any, *, range: Sequence[float] | None = None, weight: Any = None, density: bool = False) -> Any:
    """(hist, bin_edges) of points in space. input: (*, d); hist: a dim per coordinate; bin_edges: d rising 1-d tensors.

    bins: a number of bins for all coordinates or for each, or the edges for each. range: 2 d bounds. `density` divides by the
    total and the volumes. Raises RuntimeError for an input without dims and for bins or bounds that are not d.
    """
    size_at(input.shape, -1)
    if input.ndim < 2:
        raise RuntimeError("torch.histogramdd(): input tensor should have at least 2 dimensions")
    sources = (input, weight)
    input, weight = map(_detached, sources)
    points = input.reshape(math.prod(input.shape[:-1]), input.shape[-1])
    d = points.shape[1]
    per_dim = [bins] * d if isinstance(bins, int) else list(bins)
    if len(per_dim) != d:
        raise RuntimeError("histogramdd: The size of bins must be equal to the innermost dimension of the input.")
    if range is not None and len(range) != 2 * d:
        raise RuntimeError(f"torch.histogramdd(): for a {d}-dimensional histogram range should have {2 * d} elements, but got {len(range)}")
    if not d:
        return return_types.histogramdd(OPS["full"]((), 0, input.dtype, input.device), ())
    edges, at, inside = [], None, None
    for i, given in enumerate(per_dim):
        x = OPS["select"](points, 1, i)
        bounds = None if range is None else range[2 * i : 2 * i + 2]
        edges.append(given if isinstance(given, TensorBase) else _edges(x, int(given), bounds))
        here, fits = _bin_of(x, _detached(edges[-1]))
        at = here if at is None else at * (edges[-1].shape[0] - 1) + here
        inside = fits if inside is None else OPS["logical_and"](inside, fits)
    counts = [e.shape[0] - 1 for e in edges]
    hist = OPS["view"](_counted(at, inside, math.prod(counts), points, weight), tuple(counts))
    if density:
        hist = hist / hist.sum()
        for i, e in enumerate(edges):
            widths = OPS["slice"](e, 0, 1, None, 1) - OPS["slice"](e, 0, 0, counts[i], 1)
            hist = hist / OPS["view"](_detached(widths), tuple(-1 if j == i else 1 for j, _ in enumerate(counts)))
    hist = _derived_from(hist, sources)
    return return_types.histogramdd(hist, tuple(e if isinstance(b, TensorBase) else _derived_from(e, sources)
                                                for e, b in zip(edges, per_dim, strict=True)))  # fmt: skip


def _edges(x: Any, bins: int, bounds: Sequence[float] | None) -> Any:
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    if bounds is not None:
        low, high = bounds
    elif x.numel():
        low, high = x.min().item(), x.max().item()
    else:
        low, high = 0.0, 1.0
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"torch.histogram(): dimension 0's range [{low}, {high}] is not finite")
    if low > high:
        raise RuntimeError(f"torch.histogram(): dimension 0's min value, {low}, is larger than max value, {high}")
    if low == high:
        low, high = low - 0.5, high + 0.5
    return linspace(low, high, bins + 1, dtype=x.dtype, device=x.device)


# ---- numerical gradients ----


def gradient(input: Any, *, spacing: Any = 1, dim: Any = None, edge_order: int = 1) -> tuple[Any, ...]:
    """The derivative of samples along each of `dim` (default: all), by central differences of second order inside.

    spacing: a number, a number per dim, or a 1-d tensor of coordinates per dim. At the edges differences have
    `edge_order` 1 or 2. Raises RuntimeError for dims too short for that.
    """
    dims = [normalize_dim(d, input.ndim) for d in (range(input.ndim) if dim is None else [dim] if isinstance(dim, int) else dim)]
    normalize_dims(dims, input.ndim)  # raises for a repeated dim
    spacing = 1 if spacing is None else spacing
    if edge_order not in (1, 2):
        raise RuntimeError(f"torch.gradient only supports edge_order=1 and edge_order=2, but received: {edge_order}")
    if isinstance(spacing, TensorBase):
        if spacing.ndim:
            raise TypeError("gradient() received an invalid combination of arguments: `spacing` must be a number, or a list of numbers "
                            "or tensors, one for each dim")  # fmt: skip
        spacing = spacing.item()
    steps = list(spacing) if isinstance(spacing, (tuple, list)) else [spacing] * len(dims)
    if len(steps) != len(dims):
        raise RuntimeError(f"torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal to 'self.dim() = "
                           f"{input.ndim}', but got a list of length {len(steps)}")  # fmt: skip
    x = input if not input.dtype.is_integral else OPS["to_dtype"](input, dtypes.get_default_dtype())
    for d in dims:
        if x.shape[d] < edge_order + 1:
            raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")
    return tuple(_along(x, d, step, edge_order) for d, step in zip(dims, steps, strict=True))


def _along(x: Any, d: int, step: Any, order: int) -> Any:
    n = x.shape[d]

    def part(start: int, end: int | None) -> Any:
        return OPS["slice"](x, d, start, end, 1)

    if isinstance(step, TensorBase):
        h = OPS["slice"](step, 0, 1, None, 1) - OPS["slice"](step, 0, 0, n - 1, 1)
        h = OPS["view"](OPS["to_dtype"](h, x.dtype), tuple(n - 1 if i == d else 1 for i in range(x.ndim)))
        before, after = OPS["slice"](h, d, 0, n - 2, 1), OPS["slice"](h, d, 1, None, 1)
        first, last = OPS["slice"](h, d, 0, 1, 1), OPS["slice"](h, d, n - 2, None, 1)
        second, beyond = OPS["slice"](h, d, 1, 2, 1), OPS["slice"](h, d, max(n - 3, 0), max(n - 2, 1), 1)
    else:
        return _evenly(x, d, step, order)
    total = before + after
    inside = (part(0, n - 2) * (-after / (before * total)) + part(1, n - 1) * ((after - before) / (before * after))
              + part(2, None) * (before / (after * total)))  # fmt: skip
    if order == 1:
        left, right = (part(1, 2) - part(0, 1)) / first, (part(n - 1, None) - part(n - 2, n - 1)) / last
    else:
        left = (part(0, 1) * (-(2 * first + second) / (first * (first + second))) + part(1, 2) * ((first + second) / (first * second))
                - part(2, 3) * (first / (second * (first + second))))  # fmt: skip
        right = (part(n - 3, n - 2) * (last / (beyond * (beyond + last))) - part(n - 2, n - 1) * ((last + beyond) / (beyond * last))
                 + part(n - 1, None) * ((2 * last + beyond) / (last * (beyond + last))))  # fmt: skip
    return OPS["cat"]([left, inside, right], d)


def _evenly(x: Any, d: int, step: Any, order: int) -> Any:
    """The derivative along one dim of samples at the distance `step`, a number."""
    n = x.shape[d]

    def part(start: int, end: int | None) -> Any:
        return OPS["slice"](x, d, start, end, 1)

    if order == 1:
        left, right = part(1, 2) - part(0, 1), part(n - 1, None) - part(n - 2, n - 1)
    else:
        left = part(0, 1) * -1.5 + part(1, 2) * 2 - part(2, 3) * 0.5
        right = part(n - 3, n - 2) * 0.5 - part(n - 2, n - 1) * 2 + part(n - 1, None) * 1.5
    return OPS["cat"]([left / step, (part(2, None) - part(0, n - 2)) / step / 2, right / step], d)


# ---- positions ----


def unravel_index(indices: Any, shape: Any) -> tuple[Any, ...]:
    """Coordinates in a grid of `shape` of positions in its flattened form.

    Raises TypeError for positions that are not integers, ValueError for negative sizes.
    """
    if indices.dtype.is_floating_point or indices.dtype.is_complex or indices.dtype is dtypes.bool_:
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    if any(n < 0 for n in sizes):
        raise ValueError(f"'shape' cannot have negative values, but got {sizes}")
    found, step = [], 1
    for n in reversed(sizes):
        found.append(OPS["remainder"](OPS["floor_divide"](indices, step), n))
        step *= n
    return tuple(reversed(found))


@public(out=Out(exact=True))
def nonzero_static(input: Any, *, size: int, fill_value: int = -1) -> Any:
    """The first `size` positions of elements that are not zero, (size, ndim) int64; missing rows are `fill_value`. Raises: RuntimeError."""
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    found = OPS["slice"](OPS["nonzero"](input), 0, 0, size, 1)
    missing = size - found.shape[0]
    return in_rows(OPS["constant_pad_nd"](found, (0, 0, 0, missing), fill_value) if missing > 0 else found)


FUNCTIONS: dict[str, Any] = {
    "nanmean": nanmean, "histogram": histogram, "histogramdd": histogramdd, "gradient": gradient,
    "unravel_index": unravel_index, "nonzero_static": nonzero_static,
}  # fmt: skip
METHODS: dict[str, Any] = {"nanmean": nanmean, "histogram": histogram, "nonzero_static": nonzero_static}
