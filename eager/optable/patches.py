"""Patches of an image as columns, and columns summed back into an image: each the gradient of the other."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from eager.base.spec import SpecLike, TensorSpec
from eager.optable.conv import output_size
from eager.optable.registry import Kind
from eager.optable.table import OPS, declare


def _counts(size: Sequence[int], kernel: Any, dilation: Any, padding: Any, stride: Any) -> tuple[int, ...]:
    out = output_size(size, kernel, stride, padding, dilation)
    if any(n < 1 for n in out):
        raise RuntimeError(f"Given input with spatial size {list(size)}, kernel_size={list(kernel)}, dilation={list(dilation)}, "
                           f"padding={list(padding)}, calculated shape of the array of sliding blocks as {list(out)}, but its "
                           "components must be at least one.")  # fmt: skip
    return out


def _im2col_meta(x: SpecLike, kernel: Any, dilation: Any, padding: Any, stride: Any) -> TensorSpec:
    n = math.prod(_counts(x.shape[2:], kernel, dilation, padding, stride))
    return TensorSpec.contiguous((x.shape[0], x.shape[1] * math.prod(kernel), n), x.dtype, x.device)


def _col2im_meta(x: SpecLike, size: Any, kernel: Any, dilation: Any, padding: Any, stride: Any) -> TensorSpec:
    block, blocks = math.prod(kernel), math.prod(_counts(size, kernel, dilation, padding, stride))
    if x.shape[1] % block:
        raise RuntimeError("Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got "
                           f"input.size(1)={x.shape[1]} and kernel_size={tuple(kernel)}.")  # fmt: skip
    if x.shape[2] != blocks:
        raise RuntimeError(f"Given output_size={tuple(size)}, kernel_size={tuple(kernel)}, dilation={tuple(dilation)}, "
                           f"padding={tuple(padding)}, stride={tuple(stride)}, expected size of input's dimension 2 to match the "
                           f"calculated number of sliding blocks {blocks}, but got input.size(2)={x.shape[2]}.")  # fmt: skip
    return TensorSpec.contiguous((x.shape[0], x.shape[1] // block, *size), x.dtype, x.device)


def _under(tap: Any, out: Any, dilation: Any, stride: Any) -> tuple[slice, ...]:
    return (slice(None), slice(None),
            *(slice(t * d, t * d + (n - 1) * s + 1, s) for t, n, d, s in zip(tap, out, dilation, stride, strict=True)))  # fmt: skip


def _im2col(xp: Any, out: Any, x: Any, kernel: Any, dilation: Any, padding: Any, stride: Any) -> None:
    counts = output_size(x.shape[2:], kernel, stride, padding, dilation)
    padded = xp.pad(x, ((0, 0), (0, 0), *((p, p) for p in padding)))
    blocks = out.reshape(*x.shape[:2], *kernel, *counts)
    for tap in np.ndindex(*kernel):
        blocks[(slice(None), slice(None), *tap)] = padded[_under(tap, counts, dilation, stride)]


def _col2im(xp: Any, out: Any, x: Any, size: Any, kernel: Any, dilation: Any, padding: Any, stride: Any) -> None:
    counts = output_size(size, kernel, stride, padding, dilation)
    blocks = x.reshape(out.shape[0], out.shape[1], *kernel, *counts)
    wide = "f4" if x.dtype.itemsize == 2 and x.dtype.kind in "fV" else x.dtype
    total = xp.zeros((*out.shape[:2], *(n + 2 * p for n, p in zip(size, padding, strict=True))), wide)
    for tap in np.ndindex(*kernel):
        under = total[_under(tap, counts, dilation, stride)]
        xp.add(under, blocks[(slice(None), slice(None), *tap)], out=under)
    inside = tuple(slice(p, p + n) for p, n in zip(padding, size, strict=True))
    xp.copyto(out, total[(slice(None), slice(None), *inside)], casting="unsafe")


# (n, c, *spatial) -> (n, c * prod(kernel), number of blocks).
IM2COL = declare(
    "im2col(Tensor x, int[] kernel, int[] dilation, int[] padding, int[] stride) -> Tensor", Kind.OPAQUE, meta=_im2col_meta,
    kernel=_im2col,
    vjp={"x": lambda g, x_spec, kernel, dilation, padding, stride: OPS["col2im"](
        g, tuple(x_spec.shape[2:]), kernel, dilation, padding, stride)},
    samples=lambda make: iter([(make(2, 3, 4, 5), (2, 3), (1, 1), (0, 1), (1, 2)),
                               (make(5, 2, 1, 4).permute(1, 2, 3, 0), (2, 2), (2, 1), (0, 0), (1, 1))]),
                               batch="folded", linear_in=("x",))  # fmt: skip
COL2IM = declare(
    "col2im(Tensor x, int[] size, int[] kernel, int[] dilation, int[] padding, int[] stride) -> Tensor", Kind.OPAQUE,
    meta=_col2im_meta, kernel=_col2im,
    vjp={"x": lambda g, kernel, dilation, padding, stride: OPS["im2col"](g, kernel, dilation, padding, stride)},
    samples=lambda make: iter([(make(2, 12, 12), (4, 5), (2, 2), (1, 1), (0, 0), (1, 1)),
                               (make(1, 6, 6), (3, 5), (2, 3), (1, 1), (0, 1), (1, 2))]), batch="folded", linear_in=("x",))  # fmt: skip
