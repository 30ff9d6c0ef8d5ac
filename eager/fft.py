"""`eager.fft`: Fourier transforms with torch.fft's names.

`n` or `s` pads with zeros or trims. `norm` selects the scaled direction: "backward" (the inverse by 1/n), "forward", or
"ortho" (both by 1/sqrt(n)). Inputs of integer dtype are converted to the default dtype. Every transform is differentiable.
Raises: RuntimeError for another norm, a size below 1, or dims that repeat.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from eager import _native
from eager.base import dtypes
from eager.base.dtypes import scalar_name as _scalar_name
from eager.base.spec import normalize_dim as _normalize_dim
from eager.functions.creation import check_layout as _check_layout
from eager.functions.creation import finish as _finish
from eager.optable.fft import frequencies as _points_of
from eager.optable.fft import half as _half
from eager.optable.memory import from_array as _from_array
from eager.optable.out import write_out as _write_out
from eager.optable.table import OPS
from eager.public.wrapper import publish_module as _publish_module

_TensorBase = _native.TensorBase


def _out(result: Any, out: Any) -> Any:
    return result if out is None else _write_out(out, result)


def _operand(name: str, x: Any, kind: str) -> Any:
    """The input as real (kind "real") or complex ("complex"); with kind "any" a floating input is unchanged."""
    if not isinstance(x, _TensorBase):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(x).__name__}")
    if kind == "real" and x.dtype.is_complex:
        raise RuntimeError(f"{name} expects a real{'-valued' if name.endswith('n') else ''} input tensor, but got {_scalar_name(x.dtype)}")
    d = x.dtype
    if d.is_integral:
        d = dtypes.get_default_dtype()
    if d in (dtypes.float16, dtypes.bfloat16):
        raise RuntimeError(f"Unsupported dtype {_scalar_name(d)}")
    if kind == "complex":
        d = d.to_complex()
    return x if d is x.dtype else OPS["to_dtype"](x, d)


def _scale(norm: str | None, n: int, forward: bool) -> float:
    if norm not in (None, "backward", "forward", "ortho"):
        raise RuntimeError(f'Invalid normalization mode: "{norm}"')
    if n < 1:
        raise RuntimeError(f"Invalid number of data points ({n}) specified")
    if norm == "ortho":
        return 1 / math.sqrt(n)
    return 1.0 / n if forward == (norm == "forward") else 1.0


def _resized(x: Any, dims: Sequence[int], sizes: Sequence[int]) -> Any:
    """`x` trimmed or padded with zeros to `sizes` along `dims`."""
    for d, n in zip(dims, sizes, strict=True):
        if n < 1:
            raise RuntimeError(f"Invalid number of data points ({n}) specified")
        if n < x.shape[d]:
            x = OPS["slice"](x, d, 0, n, 1)
        elif n > x.shape[d]:
            pad = [0] * (2 * x.ndim)
            pad[2 * (x.ndim - 1 - d) + 1] = n - x.shape[d]
            x = OPS["constant_pad_nd"](x, tuple(pad), 0)
    return x


def _one_dim(x: Any, dim: int) -> int:
    if x.ndim == 0:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return _normalize_dim(dim, x.ndim)


def _plan(x: Any, s: Any, dim: Any, last: bool = False) -> tuple[list[int], list[int]]:
    """(dims, sizes) of a transform over several dims. last: the last size belongs to the signal of a half spectrum."""
    s = [s] if isinstance(s, int) else s
    dim = [dim] if isinstance(dim, int) else dim
    if dim is None:
        count = x.ndim if s is None else len(s)
        if count > x.ndim:
            raise RuntimeError(f"Got shape with {count} values but input tensor only has {x.ndim} dimensions.")
        dims = list(range(x.ndim - count, x.ndim))
    else:
        dims = [_normalize_dim(d, x.ndim) for d in dim]
        if len(set(dims)) != len(dims):
            raise RuntimeError("FFT dims must be unique")
        if s is not None and len(s) != len(dims):
            raise RuntimeError("When given, dim and shape arguments must have the same length")
    sizes = [x.shape[d] if s is None or s[i] == -1 else s[i] for i, d in enumerate(dims)]
    if last and dims and (s is None or s[-1] == -1):
        sizes[-1] = 2 * (x.shape[dims[-1]] - 1)
    for n in sizes:
        if n < 1:
            raise RuntimeError(f"Invalid number of data points ({n}) specified")
    return dims, sizes


def _c2c(x: Any, dims: Sequence[int], sizes: Sequence[int], norm: str | None, forward: bool) -> Any:
    scale = _scale(norm, math.prod(sizes), forward)
    x = _resized(x, dims, sizes)
    return OPS["fft_c2c"](x, tuple(dims), scale, forward) if dims else x


def _r2c(x: Any, dims: Sequence[int], sizes: Sequence[int], norm: str | None, forward: bool = True) -> Any:
    scale = _scale(norm, math.prod(sizes), forward)
    return OPS["fft_r2c"](_resized(x, dims, sizes), tuple(dims), scale)


def _c2r(x: Any, dims: Sequence[int], sizes: Sequence[int], norm: str | None, forward: bool = False) -> Any:
    scale = _scale(norm, math.prod(sizes), forward)
    x = _resized(x, dims, [*sizes[:-1], _half(sizes[-1])])
    return OPS["fft_c2r"](x, tuple(dims), scale, sizes[-1])


# ---- one dim ----


def fft(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Any = None) -> Any:
    """The complex spectrum of `input` along `dim`, with size n."""
    x = _operand("fft", input, "complex")
    d = _one_dim(x, dim)
    return _out(_c2c(x, [d], [x.shape[d] if n is None else n], norm, True), out)


def ifft(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Any = None) -> Any:
    """The inverse of `fft`."""
    x = _operand("ifft", input, "complex")
    d = _one_dim(x, dim)
    return _out(_c2c(x, [d], [x.shape[d] if n is None else n], norm, False), out)


def rfft(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Any = None) -> Any:
    """The first n // 2 + 1 points of the spectrum of a real signal; the others are their conjugates."""
    x = _operand("rfft", input, "real")
    d = _one_dim(x, dim)
    return _out(_r2c(x, [d], [x.shape[d] if n is None else n], norm), out)


def irfft(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Any = None) -> Any:
    """The inverse of `rfft`. n: size of the real result, by default 2 * (size - 1)."""
    x = _operand("irfft", input, "complex")
    d = _one_dim(x, dim)
    size = 2 * (x.shape[d] - 1) if n is None else n
    if size < 1:
        raise RuntimeError(f"Invalid number of data points ({size}) specified")
    return _out(_c2r(x, [d], [size], norm), out)


def hfft(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Any = None) -> Any:
    """The real spectrum of a Hermitian-symmetric signal, of which `input` is the first half."""
    x = _operand("hfft", input, "complex")
    d = _one_dim(x, dim)
    size = 2 * (x.shape[d] - 1) if n is None else n
    if size < 1:
        raise RuntimeError(f"Invalid number of data points ({size}) specified")
    return _out(_c2r(OPS["conj"](x), [d], [size], norm, True), out)


def ihfft(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Any = None) -> Any:
    """The inverse of `hfft`."""
    x = _operand("ihfft", input, "real")
    d = _one_dim(x, dim)
    return _out(OPS["conj"](_r2c(x, [d], [x.shape[d] if n is None else n], norm, False)), out)


# ---- several dims ----


def fftn(input: Any, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Any = None) -> Any:
    """The spectrum over `dim` (by default the last dims, as many as `s` has sizes, or all)."""
    x = _operand("fftn", input, "complex")
    return _out(_c2c(x, *_plan(x, s, dim), norm, True), out)


def ifftn(input: Any, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Any = None) -> Any:
    """The inverse of `fftn`."""
    x = _operand("ifftn", input, "complex")
    return _out(_c2c(x, *_plan(x, s, dim), norm, False), out)


def _needs_dims(name: str, dims: Sequence[int]) -> None:
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")


def rfftn(input: Any, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Any = None) -> Any:
    """The spectrum of a real signal, halved along the last of `dim`."""
    x = _operand("rfftn", input, "real")
    dims, sizes = _plan(x, s, dim)
    _needs_dims("rfftn", dims)
    return _out(_r2c(x, dims, sizes, norm), out)


def irfftn(input: Any, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Any = None) -> Any:
    """The inverse of `rfftn`."""
    x = _operand("irfftn", input, "complex")
    dims, sizes = _plan(x, s, dim, last=True)
    _needs_dims("irfftn", dims)
    return _out(_c2r(x, dims, sizes, norm), out)


def hfftn(input: Any, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Any = None) -> Any:
    """The real spectrum of a Hermitian-symmetric signal, which is halved along the last of `dim`."""
    x = _operand("hfftn", input, "complex")
    dims, sizes = _plan(x, s, dim, last=True)
    _needs_dims("hfftn", dims)
    scale = _scale(norm, math.prod(sizes), True)
    if len(dims) > 1:
        x = OPS["fft_c2c"](_resized(x, dims[:-1], sizes[:-1]), tuple(dims[:-1]), 1.0, True)
    x = OPS["conj"](_resized(x, dims[-1:], [_half(sizes[-1])]))
    return _out(OPS["fft_c2r"](x, (dims[-1],), scale, sizes[-1]), out)


def ihfftn(input: Any, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Any = None) -> Any:
    """The inverse of `hfftn`."""
    x = _operand("ihfftn", input, "real")
    dims, sizes = _plan(x, s, dim)
    _needs_dims("ihfftn", dims)
    scale = _scale(norm, math.prod(sizes), False)
    y = OPS["conj"](OPS["fft_r2c"](_resized(x, dims, sizes), (dims[-1],), scale))
    return _out(OPS["fft_c2c"](y, tuple(dims[:-1]), 1.0, False) if len(dims) > 1 else y, out)


def fft2(input: Any, s: Any = None, dim: Any = (-2, -1), norm: str | None = None, *, out: Any = None) -> Any:
    """`fftn` over two dims."""
    return fftn(input, s, dim, norm, out=out)


def ifft2(input: Any, s: Any = None, dim: Any = (-2, -1), norm: str | None = None, *, out: Any = None) -> Any:
    """`ifftn` over two dims."""
    return ifftn(input, s, dim, norm, out=out)


def rfft2(input: Any, s: Any = None, dim: Any = (-2, -1), norm: str | None = None, *, out: Any = None) -> Any:
    """`rfftn` over two dims."""
    return rfftn(input, s, dim, norm, out=out)


def irfft2(input: Any, s: Any = None, dim: Any = (-2, -1), norm: str | None = None, *, out: Any = None) -> Any:
    """`irfftn` over two dims."""
    return irfftn(input, s, dim, norm, out=out)


def hfft2(input: Any, s: Any = None, dim: Any = (-2, -1), norm: str | None = None, *, out: Any = None) -> Any:
    """`hfftn` over two dims."""
    return hfftn(input, s, dim, norm, out=out)


def ihfft2(input: Any, s: Any = None, dim: Any = (-2, -1), norm: str | None = None, *, out: Any = None) -> Any:
    """`ihfftn` over two dims."""
    return ihfftn(input, s, dim, norm, out=out)


# ---- helpers ----


def _frequencies(real: bool) -> Any:
    def make(n: int, d: float = 1.0, *, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
             requires_grad: bool = False, pin_memory: bool = False) -> Any:  # fmt: skip
        """The frequencies (*) of the spectrum of n samples at distance d."""
        _check_layout(layout)
        result_dtype = dtype if dtype is not None or out is None else out.dtype
        if result_dtype is not None and dtypes.meant(result_dtype).is_integral:
            raise RuntimeError(f"{make.__name__} requires a floating point or complex dtype")
        made = OPS["to_dtype"](_from_array(_points_of(n, d, real)), dtypes.chosen(dtype, dtypes.get_default_dtype()))
        return _finish(made.to(device) if device is not None else made, requires_grad, out, pin_memory)

    make.__name__ = make.__qualname__ = "rfftfreq" if real else "fftfreq"
    return make


fftfreq, rfftfreq = _frequencies(False), _frequencies(True)


def _shift(input: Any, dim: Any, forward: bool) -> Any:
    dims = range(input.ndim) if dim is None else [dim] if isinstance(dim, int) else dim
    dims = tuple(_normalize_dim(d, input.ndim) for d in dims)
    if input.ndim == 0 or not dims:
        raise RuntimeError("`shifts` required")
    steps = tuple(input.shape[d] // 2 if forward else (input.shape[d] + 1) // 2 for d in dims)
    return OPS["roll"](input, steps, dims)


def fftshift(input: Any, dim: Any = None) -> Any:
    """The spectrum with frequency zero in the middle of `dim` (by default of every dim)."""
    return _shift(input, dim, True)


def ifftshift(input: Any, dim: Any = None) -> Any:
    """The inverse of `fftshift`."""
    return _shift(input, dim, False)


_publish_module(globals(), "fft_")
