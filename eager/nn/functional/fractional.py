"""Max pooling over randomly placed windows.

Source: Graham, "Fractional Max-Pooling", 2014 (arXiv:1412.6071): starts floor((i + u) * a) - floor(u * a).
"""
from __future__ import annotations

import math
from typing import Any

from eager.base import dtypes
from eager.optable.declaration import cast_to
from eager.optable.precision import FLOAT32_ON_CPU
from eager.optable.table import OPS
from eager.public.record import public
from eager.random import state_for

Tensor = Any


def _sizes(value: Any, n: int) -> tuple[int, ...]:
    return tuple(int(v) for v in value) if isinstance(value, (tuple, list)) else (int(value),) * n


def _starts(samples: Tensor, size: int, out: int, kernel: int) -> Tensor:
    """Window starts along one dim, (n, c, out). samples: (n, c) in [0, 1)."""
    last = size - kernel
    if out == 1:
        return OPS["full"]((*samples.shape, 1), last, dtypes.int64, samples.device)
    step = last / (out - 1)
    u = samples.unsqueeze(2)
    i = cast_to(OPS["arange"](0, out - 1, 1, dtypes.int64, samples.device), samples.dtype)
    inner = OPS["trunc"]((i + u) * step) - OPS["trunc"](u * step)
    return OPS["constant_pad_nd"](cast_to(inner, dtypes.int64), (0, 1), last)


def _pool(n: int, input: Tensor, kernel_size: Any, output_size: Any, output_ratio: Any, samples: Tensor | None) -> tuple[Tensor, Tensor]:
    function = f"fractional_max_pool{n}d"
    if output_size is None and output_ratio is None:
        raise ValueError(f"{function} requires specifying either an output_size or an output_ratio")
    if input.ndim == 0:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    if input.ndim not in (n + 1, n + 2):
        raise RuntimeError(f"{function}: Expected {n + 1}D or {n + 2}D tensor, but got: {list(input.shape)}")
    x = input if input.ndim == n + 2 else input.unsqueeze(0)
    spatial, kernel = tuple(x.shape[2:]), _sizes(kernel_size, n)
    if output_size is None:
        ratio = output_ratio if isinstance(output_ratio, (tuple, list)) else (output_ratio,) * n
        output_size = tuple(int(m * r) for m, r in zip(spatial, ratio, strict=True))
    out = _sizes(output_size, n)
    for m, o, k in zip(spatial, out, kernel, strict=True):
        if o + k - 1 > m:
            raise RuntimeError(f"{function}: pool size {k} and output size {o} too large for an input of size {m}")
    lead = tuple(x.shape[:2])
    if samples is None:
        samples = OPS["philox_uniform"](state_for(math.prod(lead) * n, None, x.device), (*lead, n), dtypes.float32)
    position = OPS["full"]((*lead, *(1,) * 2 * n), 0, dtypes.int64, x.device)
    for d in range(n):
        # torch assigns the samples of a 2-d window to the last dim first, but the samples of a 3-d window in order
        starts = _starts(OPS["select"](samples, 2, n - 1 - d if n == 2 else d), spatial[d], out[d], kernel[d])
        offsets = OPS["arange"](0, kernel[d], 1, dtypes.int64, x.device)
        shape = (*lead, *(out[d] if e == d else 1 for e in range(n)), *(1,) * n)
        positions = starts.view(shape) + offsets.view(*(kernel[d] if e == d else 1 for e in range(n)))
        position = position + positions * math.prod(spatial[d + 1 :])
    position = position.reshape(*lead, math.prod(out), math.prod(kernel))
    flat = x.reshape(*lead, math.prod(spatial))
    windows = OPS["gather"](flat, 2, position.reshape(*lead, math.prod(out) * math.prod(kernel))).view(tuple(position.shape))
    best = OPS["argmax"](windows.detach(), (3,), True)
    index = OPS["gather"](position, 3, best).squeeze(3)
    values = OPS["gather_chosen"](flat, 2, index)
    final = (*(lead if x is input else lead[1:]), *out)
    return values.reshape(final), index.reshape(final)


def fractional_max_pool2d_with_indices(input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
                                       return_indices: bool = False,
                                       _random_samples: Tensor | None = None) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Maxima of random windows of (n, c, h, w) or (c, h, w), and their positions in the flattened plane.

    output_size, or output_ratio of the input's size. _random_samples: (n, c, 2) in [0, 1) to use instead of new samples.
    Raises: ValueError unless size or ratio is given; RuntimeError for a size that does not fit.
    """
    return _pool(2, input, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool3d_with_indices(input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
                                       return_indices: bool = False,
                                       _random_samples: Tensor | None = None) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Maxima of random windows of (n, c, d, h, w) or (c, d, h, w), and their positions in the flattened volume.

    Arguments and errors as fractional_max_pool2d_with_indices; _random_samples: (n, c, 3).
    """
    return _pool(3, input, kernel_size, output_size, output_ratio, _random_samples)


@public(autocast=FLOAT32_ON_CPU)
def fractional_max_pool2d(input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
                          return_indices: bool = False, _random_samples: Tensor | None = None) -> Any:  # fmt: skip
    """As fractional_max_pool2d_with_indices; returns the positions only with return_indices."""
    found = _pool(2, input, kernel_size, output_size, output_ratio, _random_samples)
    return found if return_indices else found[0]


@public(autocast=FLOAT32_ON_CPU)
def fractional_max_pool3d(input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
                          return_indices: bool = False, _random_samples: Tensor | None = None) -> Any:  # fmt: skip
    """As fractional_max_pool3d_with_indices; returns the positions only with return_indices."""
    found = _pool(3, input, kernel_size, output_size, output_ratio, _random_samples)
    return found if return_indices else found[0]
