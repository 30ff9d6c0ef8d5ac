"""Discrete Fourier transforms: complex to complex, real to half a spectrum, half a spectrum to real.

Dims reach these ops non-negative; sizes are the input's (callers pad or trim). `scale` multiplies the sums:
1, 1/n or 1/sqrt(n), by the norm mode.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from eager.base import dtypes
from eager.base.spec import SpecLike, TensorSpec
from eager.optable.registry import Kind
from eager.optable.table import OPS, declare


def _strides(shape: Sequence[int], x: SpecLike, dims: Sequence[int], fixed: int = 0) -> tuple[int, ...]:
    """Dense, with the transformed dims innermost, each group in the order of the input's strides.

    The last `fixed` of `dims`, along which the spectrum is halved, stay last.
    """
    moved = list(dims[: len(dims) - fixed])
    order = sorted((d for d in range(len(shape)) if d not in dims), key=lambda d: -x.stride()[d])
    order += sorted(moved, key=lambda d: -x.stride()[d]) + list(dims[len(moved) :])
    strides, step = [0] * len(shape), 1
    for d in reversed(order):
        strides[d] = step
        step *= max(shape[d], 1)
    return tuple(strides)


def _c2c_meta(x: SpecLike, dims: Sequence[int], scale: float, forward: bool) -> TensorSpec:
    return TensorSpec(tuple(x.shape), x.dtype, _strides(tuple(x.shape), x, dims), x.device)


def _run_c2c(xp: Any, out: Any, x: Any, dims: Sequence[int], scale: float, forward: bool) -> None:
    y = xp.fft.fftn(x, axes=dims) if forward else xp.fft.ifftn(x, axes=dims, norm="forward")
    xp.multiply(y, scale, out=out, casting="unsafe")


def _complex_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    for shape, dims, forward in (((6,), (0,), True), ((3, 4), (0, 1), False), ((2, 5), (1,), True)):
        yield OPS["complex"](make(*shape), make(*shape)), dims, 0.5, forward


FFT_C2C = declare("fft_c2c(Tensor x, int[] dims, float scale, bool forward) -> Tensor", Kind.OPAQUE, meta=_c2c_meta,
                  kernel=_run_c2c, samples=_complex_samples,
                  vjp={"x": lambda g, dims, scale, forward: OPS["fft_c2c"](g, dims, scale, forward)}, batch="over_dims")  # fmt: skip


def half(n: int) -> int:
    """How many points of the spectrum of n real values are kept."""
    return n // 2 + 1


def _r2c_meta(x: SpecLike, dims: Sequence[int], scale: float) -> TensorSpec:
    shape = tuple(half(n) if d == dims[-1] else n for d, n in enumerate(x.shape))
    return TensorSpec(shape, x.dtype.to_complex(), _strides(shape, x, dims, 1), x.device)


def _run_r2c(xp: Any, out: Any, x: Any, dims: Sequence[int], scale: float) -> None:
    xp.multiply(xp.fft.rfftn(x, axes=dims), scale, out=out, casting="unsafe")


def _r2c_vjp(g: Any, x_spec: SpecLike, dims: Sequence[int], scale: float) -> Any:
    """The transposed transform: of the half spectrum padded with zeros to all of it."""
    last = dims[-1]
    missing = x_spec.shape[last] - g.shape[last]
    pad = [0] * (2 * g.ndim)
    pad[2 * (g.ndim - 1 - last) + 1] = missing
    whole = OPS["constant_pad_nd"](g, tuple(pad), 0) if missing else g
    return OPS["real"](OPS["fft_c2c"](whole, dims, scale, True))


def _real_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    yield make(6), (0,), 1.0
    yield make(3, 5), (0, 1), 0.5
    yield make(4, 3).t(), (1,), 0.5


FFT_R2C = declare("fft_r2c(Tensor x, int[] dims, float scale) -> Tensor", Kind.OPAQUE, meta=_r2c_meta, kernel=_run_r2c,
                  vjp={"x": _r2c_vjp}, samples=_real_samples, batch="over_dims")  # fmt: skip


def _c2r_meta(x: SpecLike, dims: Sequence[int], scale: float, last_size: int) -> TensorSpec:
    shape = tuple(last_size if d == dims[-1] else n for d, n in enumerate(x.shape))
    return TensorSpec(shape, x.dtype.to_real(), _strides(shape, x, dims, 1), x.device)


def _run_c2r(xp: Any, out: Any, x: Any, dims: Sequence[int], scale: float, last_size: int) -> None:
    sizes = [last_size if d == dims[-1] else x.shape[d] for d in dims]
    xp.multiply(xp.fft.irfftn(x, s=sizes, axes=dims, norm="forward"), scale, out=out, casting="unsafe")


def _c2r_vjp(g: Any, x_spec: SpecLike, dims: Sequence[int], scale: float, last_size: int) -> Any:
    """Points of the half spectrum that stand for two of the whole count twice."""
    y = OPS["fft_r2c"](g, dims, scale)
    last, n = dims[-1], x_spec.shape[dims[-1]]
    doubled = OPS["arange"](0, n, 1, dtypes.int64, g.device)
    twice = OPS["logical_and"](doubled > 0, doubled < last_size - n + 1)
    weights = OPS["where"](twice, 2.0, OPS["full"]((), 1.0, g.dtype, g.device))
    return y * OPS["view"](weights, tuple(n if d == last else 1 for d in range(y.ndim)))


def _half_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    for x, dims, size in ((make(6), (0,), 6), (make(3, 5), (0, 1), 5), (make(2, 4), (1,), 4)):
        yield OPS["fft_r2c"](x, dims, 1.0), dims, 0.5, size


FFT_C2R = declare("fft_c2r(Tensor x, int[] dims, float scale, int last_size) -> Tensor", Kind.OPAQUE, meta=_c2r_meta,
                  kernel=_run_c2r, vjp={"x": _c2r_vjp}, samples=_half_samples, batch="over_dims")  # fmt: skip


def frequencies(n: int, d: float, real: bool) -> np.ndarray[Any, Any]:
    """The frequencies of the points of a spectrum of n samples, d apart; nan and infinities for d = 0.

    As in torch, a real spectrum of -1 samples has one point. Raises: RuntimeError for a smaller n.
    """
    count = int(n / 2) + 1 if real else n
    if count < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {count}: [{count}]")
    span = np.float64(n) * d
    with np.errstate(all="ignore"):
        numbers = np.arange(count) if real else np.concatenate([np.arange((n + 1) // 2), np.arange(-(n // 2), 0)])
        return np.asarray(numbers * (1.0 / span))
