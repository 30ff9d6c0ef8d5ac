"""Resampling images: interpolation to another size, and sampling at a grid of points.

Interpolation is separable: along each dim, every output is a weighted sum of a few inputs whose
positions and weights depend on sizes alone, so they are computed once as constants.
"""
from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from eager.base import dtypes
from eager.base.dtypes import scalar_name
from eager.base.symint import as_count
from eager.functions import resize_weights
from eager.optable.gradient_strides import with_gradient
from eager.optable.precision import FLOAT32_ON_CUDA, Policy, Precision
from eager.optable.shape import in_suggested_format
from eager.optable.table import OPS
from eager.public.record import public

_MANY_TAPS = 8  # with more taps, a product with the dense matrix is cheaper than the reads


def _weighted(x: Any, dim: int, positions: Any, weights: Any) -> Any:
    """Sum over taps of x at positions[tap] times weights[tap], along `dim`. positions, weights: (taps, out)."""
    count, out = positions.shape
    n = x.shape[dim]
    if count > _MANY_TAPS:
        matrix = np.zeros((out, n))
        np.add.at(matrix, (np.arange(out)[None], positions), weights)
        table = OPS["float_table"](tuple(matrix.reshape(-1).tolist()), x.dtype, x.device).reshape(out, n)
        return OPS["matmul"](x.movedim(dim, -1), table.t()).movedim(-1, dim)
    shape = tuple(-1 if d == dim else 1 for d in range(x.ndim))
    total = None
    for at, w in zip(positions.tolist(), weights.tolist(), strict=True):
        part = OPS["index_select"](x, dim, OPS["int_table"](tuple(at), x.device))
        if any(v != 1.0 for v in w):
            part = part * OPS["float_table"](tuple(w), x.dtype, x.device).reshape(shape)
        total = part if total is None else total + part
    return total


def _weighted_bytes(x: Any, dim: int, positions: Any, weights: Any) -> Any:
    """`_weighted` of bytes, rounded once: whole numbers, so that the sums are exact in double precision."""
    whole, bits = resize_weights.fixed_point(positions, weights)
    total = _weighted(OPS["to_dtype"](x, dtypes.float64), dim, positions, whole) + 0.5 * (1 << bits)
    return OPS["to_dtype"](OPS["clamp"](OPS["floor"](total * 0.5**bits), 0, 255), dtypes.uint8)


def _nearest(x: Any, dim: int, out: int, scale: float | None, exact: bool) -> Any:
    n = x.shape[dim]
    ratio = np.float32(resize_weights.ratio(n, out, scale, False))  # torch counts in single precision here
    i = np.arange(out, dtype=np.float32)
    at = np.minimum(np.floor((i + np.float32(0.5 if exact else 0.0)) * ratio).astype(np.int64), n - 1)
    return OPS["index_select"](x, dim, OPS["int_table"](tuple(at.tolist()), x.device))


_BY_DIMS = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3, "lanczos": 2}


def _sizes(x: Any, size: Any, scale_factor: Any, recompute: bool | None) -> tuple[tuple[int, ...], tuple[float | None, ...]]:
    """Output sizes, and the scales to count coordinates by (None: the ratio of sizes)."""
    n = x.ndim - 2
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is not None:
        wanted = tuple(as_count(s) for s in size) if isinstance(size, (tuple, list)) else (as_count(size),) * n
        if len(wanted) != n:
            raise ValueError(f"Input and output must have the same number of spatial dimensions, but got input with spatial "
                             f"dimensions of {list(x.shape[2:])} and output size of {size}.")  # fmt: skip
        return wanted, (None,) * n
    if scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    scales = tuple(map(float, scale_factor)) if isinstance(scale_factor, (tuple, list)) else (float(scale_factor),) * n
    if len(scales) != n:
        raise ValueError(f"Input and scale_factor must have the same number of spatial dimensions, but got input with spatial "
                         f"dimensions of {list(x.shape[2:])} and scale_factor of shape {scale_factor}. Please provide input "
                         "tensor in (N, C, d1, d2, ...,dK) format and scale_factor in (s1, s2, ...,sK) format.")  # fmt: skip
    wanted = tuple(math.floor(m * s) for m, s in zip(x.shape[2:], scales, strict=True))
    return wanted, (None,) * n if recompute else scales


@public(autocast=FLOAT32_ON_CUDA, lenient=("recompute_scale_factor",))
def interpolate(input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None,  # noqa: A002
                recompute_scale_factor: bool | None = None, antialias: bool = False) -> Any:  # fmt: skip
    """Resize the spatial dims of (b, c, *spatial) to `size`, or by `scale_factor`.

    mode: nearest, nearest-exact, area, linear (3-d input), bilinear, bicubic and lanczos (4-d), trilinear (5-d).
    Bytes (uint8) are resized with weights of 16 bits, as Pillow does it.
    Raises: ValueError for sizes that do not fit, NotImplementedError for a mode that the input's dims or dtype do not have.
    """
    interpolating = mode in _BY_DIMS
    if not interpolating and align_corners is not None:
        raise ValueError("align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear")
    if mode not in ("nearest", "nearest-exact", "area") and not interpolating:
        raise NotImplementedError(f"interpolate: unknown mode {mode!r}; allowed: nearest, nearest-exact, area, {', '.join(_BY_DIMS)}")
    if input.ndim in (3, 4, 5) and interpolating and _BY_DIMS[mode] != input.ndim - 2:
        raise NotImplementedError(f"Got {input.ndim}D input, but {mode} mode needs {_BY_DIMS[mode] + 2}D input")
    if input.ndim not in (3, 4, 5):
        raise NotImplementedError("Input Error: Only 3D, 4D and 5D input Tensors supported (got "
                                  f"{input.ndim}D) for the modes: nearest | linear | bilinear | bicubic | trilinear | area | "
                                  f"nearest-exact (got {mode})")  # fmt: skip
    if antialias and mode not in ("bilinear", "bicubic", "lanczos"):
        raise ValueError("Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input")
    if mode == "lanczos" and (align_corners or not antialias):
        raise ValueError(f"Lanczos mode {'does not support align_corners=True' if align_corners else 'requires antialias=True'}")
    wanted, scales = _sizes(input, size, scale_factor, recompute_scale_factor)
    if any(n < 1 for n in (*wanted, *input.shape[2:])):
        raise RuntimeError(f"Input and output sizes should be greater than 0, but got input {list(input.shape[2:])} output "
                           f"{list(wanted)}")  # fmt: skip
    if mode == "area":
        return OPS["adaptive_avg_pool"](input, wanted)
    law = "rows" if mode in ("bicubic", "lanczos") or (input.ndim == 5 and mode != "trilinear") else "format"
    x = with_gradient(law, input, always=True)
    return in_suggested_format(_along_dims(x, wanted, scales, mode, bool(align_corners), antialias), input)


def _along_dims(x: Any, wanted: Any, scales: Any, mode: str, align_corners: bool, antialias: bool) -> Any:
    dims = list(zip(range(2, x.ndim), wanted, scales, strict=True))
    if mode.startswith("nearest"):
        for dim, out, scale in dims:
            x = _nearest(x, dim, out, scale, mode == "nearest-exact")
        return x
    if x.dtype is dtypes.uint8 and _BY_DIMS[mode] == 2:
        result = OPS["clone"](x, None)
        for dim, out, scale in reversed(dims):
            if out != x.shape[dim]:
                result = _weighted_bytes(result, dim, *_taps(x.shape[dim], out, scale, mode, align_corners, antialias))
        return result
    if not x.dtype.is_floating_point:
        raise NotImplementedError(f"\"compute_indices_weights_{mode}\" not implemented for '{scalar_name(x.dtype)}'")
    half = x.dtype if x.dtype.itemsize == 2 else None
    result = OPS["to_dtype"](x, dtypes.float32) if half else x
    for dim, out, scale in dims:
        result = _weighted(result, dim, *_taps(x.shape[dim], out, scale, mode, align_corners, antialias))
    return OPS["to_dtype"](result, half) if half else result


def _taps(n: int, out: int, scale: float | None, mode: str, align_corners: bool, antialias: bool) -> resize_weights.Taps:
    if antialias:
        return resize_weights.antialiased(mode, n, out, scale, align_corners)
    return (resize_weights.cubic if mode == "bicubic" else resize_weights.linear)(n, out, scale, align_corners)


def upsample(input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None) -> Any:  # noqa: A002
    """`interpolate` by its old name."""
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Any, size: Any = None, scale_factor: Any = None) -> Any:  # noqa: A002
    """`interpolate` by nearest neighbour, by its old name."""
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input: Any, size: Any = None, scale_factor: Any = None) -> Any:  # noqa: A002
    """Bilinear `interpolate` with aligned corners, by its old name."""
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


# ---- sampling at points ----


def _unnormalize(g: Any, n: int, align_corners: bool) -> Any:
    """From [-1, 1] to element positions."""
    return (g + 1) * ((n - 1) / 2) if align_corners else ((g + 1) * n - 1) * 0.5


def _reflect(at: Any, low: float, span: float) -> Any:
    """Positions folded back at both borders until they lie within `span` of `low`."""
    if span == 0:
        return at * 0
    distance = OPS["abs"](at - low)
    turns = OPS["floor"](distance / span)
    rest = distance - turns * span
    odd = OPS["remainder"](turns, 2) == 1
    return OPS["where"](odd, span - rest, rest) + low


def _bounded(at: Any, n: int, padding_mode: str, align_corners: bool) -> Any:
    if padding_mode == "reflection":
        at = _reflect(at, 0.0, float(n - 1)) if align_corners else _reflect(at, -0.5, float(n))
    return at if padding_mode == "zeros" else OPS["clamp"](at, 0, n - 1)


def _read(x: Any, positions: list[Any]) -> Any:
    """x: (b, c, *spatial) at integer positions, each (b, *points); outside it is zero. Result (b, c, *points)."""
    b, c = x.shape[:2]
    spatial, points = tuple(x.shape[2:]), tuple(positions[0].shape[1:])
    flat, inside = None, None
    for at, n in zip(positions, spatial, strict=True):
        ok = (at >= 0) & (at <= n - 1)
        inside = ok if inside is None else inside & ok
        at = OPS["clamp"](at, 0, n - 1)
        flat = at if flat is None else flat * n + at
    count = math.prod(points)
    index = OPS["expand"](OPS["to_dtype"](flat, dtypes.int64).reshape(b, 1, count), (b, c, count))
    values = OPS["gather"](x.reshape(b, c, math.prod(spatial)), 2, index).reshape(b, c, *points)
    return OPS["where"](OPS["unsqueeze"](inside, 1), values, 0)


def _sample_linear(x: Any, at: list[Any]) -> Any:
    low = [OPS["floor"](a) for a in at]
    total = None
    for corner in itertools.product((0, 1), repeat=len(at)):
        weight, where = None, []
        for a, base, side in zip(at, low, corner, strict=True):
            part = a - base if side else base + 1 - a
            weight = part if weight is None else weight * part
            where.append(OPS["detach"](base) + side)
        term = _read(x, where) * OPS["unsqueeze"](weight, 1)
        total = term if total is None else total + term
    return total


def _sample_cubic(x: Any, at: list[Any], padding_mode: str, align_corners: bool) -> Any:
    low = [OPS["floor"](a) for a in at]
    total = None
    for corner in itertools.product((-1, 0, 1, 2), repeat=2):
        weight, where = None, []
        for a, base, side, n in zip(at, low, corner, x.shape[2:], strict=True):
            part = _cubic_weight(OPS["abs"](a - base - side), abs(side - 0.5) < 1)
            weight = part if weight is None else weight * part
            where.append(_bounded(OPS["detach"](base) + side, n, padding_mode, align_corners))
        term = _read(x, where) * OPS["unsqueeze"](weight, 1)
        total = term if total is None else total + term
    return total


def _cubic_weight(t: Any, near: bool) -> Any:
    a = -0.75
    return ((a + 2) * t - (a + 3)) * t * t + 1 if near else ((a * t - 5 * a) * t + 8 * a) * t - 4 * a


@public(autocast=Precision(cuda=Policy.PROMOTE, cpu=Policy.FLOAT32))
def grid_sample(input: Any, grid: Any, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None) -> Any:  # noqa: A002
    """`input` (b, c, *spatial) read at the points of `grid` (b, *points, d), whose last dim is x, y(, z) in [-1, 1].

    mode: bilinear, nearest, bicubic (4-d input only). padding_mode: zeros, border, reflection.
    """
    n = input.ndim - 2
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise ValueError(f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'")
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError("nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: "
                         f"'{padding_mode}'")  # fmt: skip
    if n not in (2, 3) or grid.ndim != input.ndim or grid.shape[-1] != n or grid.shape[0] != input.shape[0]:
        raise RuntimeError(f"grid_sampler(): expected grid of size [{input.shape[0]}, ..., {n}] with {input.ndim} dims for input of "
                           f"size {list(input.shape)}, but got grid of size {list(grid.shape)}")  # fmt: skip
    if mode == "bicubic" and n != 2:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    corners = bool(align_corners)
    at = [_unnormalize(OPS["select"](grid, grid.ndim - 1, n - 1 - i), input.shape[2 + i], corners) for i in range(n)]
    if mode == "bicubic":
        return _sample_cubic(input, at, padding_mode, corners)
    at = [_bounded(a, m, padding_mode, corners) for a, m in zip(at, input.shape[2:], strict=True)]
    return _read(input, [OPS["round"](a) for a in at]) if mode == "nearest" else _sample_linear(input, at)


def affine_grid(theta: Any, size: Any, align_corners: bool | None = None) -> Any:
    """Points (b, *spatial, d) of an image of `size` (b, c, *spatial) under affine maps `theta` (b, d, d + 1)."""
    spatial = tuple(size)[2:]
    d = len(spatial)
    if tuple(theta.shape[1:]) != (d, d + 1):
        raise ValueError(f"Expected a batch of {d}D affine matrices of shape Nx{d}x{d + 1} for size {tuple(size)}. Got "
                         f"{tuple(theta.shape)}.")  # fmt: skip
    batch, *_ = size
    if theta.shape[0] != batch:
        raise RuntimeError(f"Expected size for first two dimensions of batch2 tensor to be: [{batch}, {d + 1}] but got: "
                           f"[{theta.shape[0]}, {d + 1}].")  # fmt: skip
    axes = []
    for i, n in enumerate(reversed(spatial)):  # x first
        steps = np.linspace(-1.0, 1.0, n) if n > 1 else np.zeros(1)
        if not align_corners:
            steps = steps * (n - 1) / n
        axis = OPS["float_table"](tuple(steps.tolist()), theta.dtype, theta.device)
        axes.append(OPS["expand"](axis.reshape(tuple(-1 if j == d - 1 - i else 1 for j in range(d))), spatial))
    axes.append(OPS["full"](spatial, 1, theta.dtype, theta.device))
    points = OPS["stack"](axes, d).reshape(1, -1, d + 1)
    return OPS["matmul"](points, theta.transpose(1, 2)).reshape(theta.shape[0], *spatial, d)


FUNCTIONS: dict[str, Any] = {}
METHODS: dict[str, Any] = {}
