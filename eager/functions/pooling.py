"""Pooling over windows of one to three spatial dims."""
from __future__ import annotations

import inspect
import math
from typing import Any

from eager import _native
from eager.base import dtypes
from eager.base.dtypes import scalar_name
from eager.base.spec import size_at
from eager.base.symint import as_count
from eager.functions.convolution import batched, spread
from eager.optable.out import write_out
from eager.optable.precision import FLOAT32_ON_CPU
from eager.optable.shape import in_rows, in_suggested_format
from eager.optable.table import OPS
from eager.public.record import public


def _options(n: int, who: str, kernel: Any, stride: Any, padding: Any, dilation: Any = 1) -> tuple[tuple[int, ...], ...]:
    kernel = spread(kernel, n, who, "kernel_size")
    none = stride is None or (isinstance(stride, (tuple, list)) and not stride)
    return (kernel, kernel if none else spread(stride, n, who, "stride"), spread(padding, n, who, "padding"),
            spread(dilation, n, who, "dilation"))  # fmt: skip


def _images(x: Any, n: int, who: str) -> tuple[Any, bool]:
    """As `batched`. Raises: RuntimeError for an empty dim other than the batch dim."""
    images, single = batched(x, n, who)
    if 0 in images.shape[1:]:
        raise RuntimeError(f"Expected {n + 1}D or {n + 2}D (batch mode) tensor with optional 0 dim batch size for input, but got:"
                           f"{list(x.shape)}")  # fmt: skip
    return images, single


def _unbatched(y: Any, single: bool) -> Any:
    return OPS["squeeze"](y, (0,)) if single else y


def _max_pool(n: int) -> Any:
    who = f"max_pool{n}d"

    @public(autocast=FLOAT32_ON_CPU if n == 3 else None)
    def max_pool(input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,  # noqa: A002
                 return_indices: bool = False) -> Any:  # fmt: skip
        """Largest element of each window; with `return_indices` also its position in the flattened spatial dims."""
        x, single = _images(input, n, who)
        kernel, stride, padding, dilation = _options(n, who, kernel_size, stride, padding, dilation)
        if min(dilation) <= 0:
            raise RuntimeError(f"{who}: dilation should be greater than zero, but got {dilation}")
        values, index = OPS["max_pool"](x, kernel, stride, padding, dilation, ceil_mode)
        values = _unbatched(values, single)
        if n == 1 and not return_indices and not (input.requires_grad and _native.grad_enabled()):
            return in_rows(values)  # as by torch's kernel that finds no positions
        return (values, _unbatched(index, single)) if return_indices else values

    max_pool.__name__ = max_pool.__qualname__ = who
    return max_pool


def _avg_pool(n: int) -> Any:
    who = f"avg_pool{n}d"

    def pool(input: Any, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool, count_include_pad: bool,  # noqa: A002
             divisor_override: int | None) -> Any:  # fmt: skip
        if n == 2:
            size_at(input.shape, -3)  # torch reads it first
        x, single = _images(input, n, who)
        kernel, stride, padding, _ = _options(n, who, kernel_size, stride, padding)
        return _unbatched(OPS["avg_pool"](x, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override), single)

    @public(parsed=True)
    def of_one_dim(input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,  # noqa: A002
                   count_include_pad: bool = True) -> Any:  # fmt: skip
        """Mean of each window."""
        return pool(input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)

    @public(autocast=FLOAT32_ON_CPU if n == 3 else None, parsed=True)
    def avg_pool(input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,  # noqa: A002
                 count_include_pad: bool = True, divisor_override: int | None = None, *, out: Any = None) -> Any:  # fmt: skip
        """Mean of each window; divisor_override: the divisor of sums, in place of the window's size."""
        if divisor_override is not None and (isinstance(divisor_override, bool) or not hasattr(divisor_override, "__index__")):
            raise TypeError(f"{who}(): argument 'divisor_override' must be int, not {type(divisor_override).__name__}")
        y = pool(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
        return y if out is None else write_out(out, y, exact=True)

    made = of_one_dim if n == 1 else avg_pool
    made.__name__ = made.__qualname__ = who
    return made


def _target(x: Any, size: Any, n: int) -> tuple[int, ...]:
    """Output sizes; None leaves a dim unchanged."""
    wanted = tuple(size) if isinstance(size, (tuple, list)) else (size,) * n
    if len(wanted) != n:
        raise RuntimeError(f"adaptive pooling: output_size must have {n} elements, got {list(wanted)}")
    sizes = tuple(have if want is None else as_count(want) for have, want in zip(x.shape[2:], wanted, strict=True))
    if any(n < 0 for n in sizes):
        raise RuntimeError(f"adaptive pooling: elements of output_size must be greater than or equal to 0 but received {list(sizes)}")
    return sizes


def _adaptive_avg_pool(n: int) -> Any:
    who = f"adaptive_avg_pool{n}d"

    @public(autocast=FLOAT32_ON_CPU if n == 3 else None, parsed=n == 1 or None, kinds={"output_size": ""})
    def adaptive_avg_pool(input: Any, output_size: Any) -> Any:  # noqa: A002
        """Mean over so many windows as `output_size` says, as even as they can be."""
        x, single = batched(input, n, who)
        size = _target(x, output_size, n)
        if 0 in size and 0 not in x.shape[2:]:  # of any dtype: no kernel runs
            return _unbatched(x.new_empty((*x.shape[:2], *size)), single)
        return _unbatched(OPS["adaptive_avg_pool"](x, size), single)

    adaptive_avg_pool.__name__ = adaptive_avg_pool.__qualname__ = who
    return adaptive_avg_pool


def _adaptive_max_pool(n: int) -> Any:
    who = f"adaptive_max_pool{n}d"

    @public(autocast=FLOAT32_ON_CPU if n == 3 else None, kinds={"output_size": ""})
    def adaptive_max_pool(input: Any, output_size: Any, return_indices: bool = False) -> Any:  # noqa: A002
        """Maximum over so many windows as `output_size` says."""
        x, single = batched(input, n, who)
        values, index = OPS["adaptive_max_pool"](x, _target(x, output_size, n))
        values = _unbatched(values, single)
        return (values, _unbatched(index, single)) if return_indices else values

    adaptive_max_pool.__name__ = adaptive_max_pool.__qualname__ = who
    return adaptive_max_pool


def _lp_pool(n: int) -> Any:
    who = f"lp_pool{n}d"

    def lp_pool(input: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Any:  # noqa: A002
        """(the sum of x**p over each window) ** (1/p)."""
        kernel = spread(kernel_size, n, who, "kernel_size")
        elements = 1
        for k in kernel:
            elements *= k
        mean = _AVERAGES[n](OPS["pow"](input, norm_type), kernel, stride, 0, ceil_mode)
        mean = OPS["sign"](mean) * OPS["relu"](OPS["abs"](mean))  # as torch: the gradient of a mean of zero is zero
        return OPS["pow"](mean * elements, 1.0 / norm_type)

    lp_pool.__name__ = lp_pool.__qualname__ = who
    return lp_pool


def _unpooled(default: tuple[int, ...], stride: tuple[int, ...], given: tuple[int, ...]) -> tuple[int, ...]:
    """The spatial sizes in an output_size. Raises: ValueError for another number of sizes and for a size that no window reaches."""
    n = len(default)
    if len(given) not in (n, n + 2):
        raise ValueError(f"output_size should be a sequence containing {n} or {n + 2} elements, but it has a length of '{len(given)}'")
    size = given[-n:]
    for d, (wanted, least, step) in enumerate(zip(size, default, stride, strict=True)):
        if not least - step < wanted < least + step:
            raise ValueError(f'invalid output_size "{size}" (dim {d} must be between {least - step} and {least + step})')
    return size


def _max_unpool(n: int) -> Any:
    who = f"max_unpool{n}d"

    @public(autocast=FLOAT32_ON_CPU if n > 1 else None)
    def max_unpool(input: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None) -> Any:  # noqa: A002
        """Elements put back where `max_pool` found them, zeros elsewhere."""
        kernel, stride, padding, _ = _options(n, who, kernel_size, stride, padding)
        if min(stride) <= 0:
            raise RuntimeError(f"strides should be greater than zero, but got stride: {list(stride)}")
        if indices.dtype is not dtypes.int64:
            raise RuntimeError(f"elements in indices should be type int64 but got: {scalar_name(indices.dtype)}")
        if tuple(indices.shape) != tuple(input.shape):
            raise RuntimeError(f"Expected shape of indices to be same as that of the input tensor ({list(input.shape)}) but got indices "
                               f"tensor with shape: {list(indices.shape)}")  # fmt: skip
        x, single = batched(input, n, who)
        index, _ = batched(indices, n, who)
        size = tuple((m - 1) * s - 2 * p + k for m, s, p, k in zip(x.shape[2:], stride, padding, kernel, strict=True))
        if output_size is not None:
            size = _unpooled(size, stride, tuple(output_size))
        lead = tuple(x.shape[:2])
        rows = (*lead, math.prod(x.shape[2:]))
        flat = OPS["full"]((*lead, math.prod(size)), 0, x.dtype, x.device)
        y = OPS["scatter"](flat, 2, index.reshape(rows), x.reshape(rows)).reshape(*lead, *size)
        return _unbatched(in_suggested_format(y, x) if n == 2 else y, single)

    max_unpool.__name__ = max_unpool.__qualname__ = who
    return max_unpool


def _with_indices(fn: Any, name: str) -> Any:
    def both(input: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: A002
        """Values and positions."""
        return fn(input, *args, **{**kwargs, "return_indices": True})

    both.__name__ = both.__qualname__ = name
    both.__signature__ = inspect.signature(fn)  # type: ignore[attr-defined]
    return both


max_pool1d, max_pool2d, max_pool3d = _max_pool(1), _max_pool(2), _max_pool(3)
max_pool1d_with_indices = _with_indices(max_pool1d, "max_pool1d_with_indices")
max_pool2d_with_indices = _with_indices(max_pool2d, "max_pool2d_with_indices")
max_pool3d_with_indices = _with_indices(max_pool3d, "max_pool3d_with_indices")
adaptive_max_pool1d_with_indices = _with_indices(_adaptive_max_pool(1), "adaptive_max_pool1d_with_indices")
adaptive_max_pool2d_with_indices = _with_indices(_adaptive_max_pool(2), "adaptive_max_pool2d_with_indices")
adaptive_max_pool3d_with_indices = _with_indices(_adaptive_max_pool(3), "adaptive_max_pool3d_with_indices")
avg_pool1d, avg_pool2d, avg_pool3d = _avg_pool(1), _avg_pool(2), _avg_pool(3)
adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = _adaptive_avg_pool(1), _adaptive_avg_pool(2), _adaptive_avg_pool(3)
adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = _adaptive_max_pool(1), _adaptive_max_pool(2), _adaptive_max_pool(3)
_AVERAGES = {1: avg_pool1d, 2: avg_pool2d, 3: avg_pool3d}
lp_pool1d, lp_pool2d, lp_pool3d = _lp_pool(1), _lp_pool(2), _lp_pool(3)
max_unpool1d, max_unpool2d, max_unpool3d = _max_unpool(1), _max_unpool(2), _max_unpool(3)

FUNCTIONS: dict[str, Any] = {f.__name__: f for f in (max_pool1d, max_pool2d, max_pool3d, avg_pool1d, adaptive_avg_pool1d)}
FUNCTIONS["adaptive_max_pool1d"] = adaptive_max_pool1d_with_indices  # torch's top-level function returns the indices too
METHODS: dict[str, Any] = {}
