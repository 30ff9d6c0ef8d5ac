"""Window functions of M samples: `torch.signal.windows`. Each returns a tensor (M,).

`sym`: True for a symmetric window (filter design), False for one period of a window of M + 1 samples (spectra).
Raises: ValueError for a negative M and for a dtype other than float32 and float64.
Source: Harris, "On the use of windows for harmonic analysis with the discrete Fourier transform", Proc. IEEE 66 (1978).
"""
from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from eager.base import dtypes
from eager.base.flags import check_flags as _check_flags
from eager.base.memory_format import strided
from eager.functions.creation import empty as _empty
from eager.functions.creation import linspace as _linspace
from eager.functions.creation import ones as _ones
from eager.functions.creation import tensor as _tensor
from eager.optable.table import OPS

Tensor = Any

__all__ = ["bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming", "hann",
           "kaiser", "nuttall"]  # fmt: skip


def _window(name: str, samples: int, first: float, last: float, shape: Callable[[Tensor], Tensor], dtype: Any, layout: Any,
            device: Any, requires_grad: bool) -> Tensor:  # fmt: skip
    """`shape` evaluated at `samples` evenly spaced points from `first` to `last`."""
    if samples < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={samples}")
    if layout is not strided:
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    _check_flags(name, requires_grad=requires_grad)
    dtype = dtypes.get_default_dtype() if dtype is None else dtype
    if dtype not in (dtypes.float32, dtypes.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
    if samples < 2:
        made = (_ones if samples else _empty)(samples, dtype=dtype, device=device)
    else:
        made = shape(_linspace(first, last, samples, dtype=dtype, device=device))
    return made.requires_grad_() if requires_grad else made


def _period(samples: int, sym: bool) -> int:
    """The number of steps of the whole window."""
    return max(samples - 1 if sym else samples, 1)


def exponential(M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, dtype: Any = None,  # noqa: N803
                layout: Any = strided, device: Any = None, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """exp(-|n - center| / tau). center: the middle by default; only a periodic window may set it."""
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    middle = _period(M, sym) / 2 if center is None else center
    return _window("exponential", M, -middle / tau, (M - 1 - middle) / tau, lambda k: OPS["exp"](-OPS["abs"](k)), dtype, layout,
                   device, requires_grad)  # fmt: skip


def cosine(M: int, *, sym: bool = True, dtype: Any = None, layout: Any = strided, device: Any = None,  # noqa: N803
           requires_grad: bool = False) -> Tensor:  # fmt: skip
    """sin(pi (n + 1/2) / M)."""
    step = math.pi / (M if sym else M + 1) if M else 0.0
    return _window("cosine", M, step / 2, (M - 0.5) * step, OPS["sin"], dtype, layout, device, requires_grad)


def gaussian(M: int, *, std: float = 1.0, sym: bool = True, dtype: Any = None, layout: Any = strided, device: Any = None,  # noqa: N803
             requires_grad: bool = False) -> Tensor:  # fmt: skip
    """exp(-n^2 / (2 std^2)), n relative to the middle."""
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    start, scale = -_period(M, sym) / 2, 1 / (std * math.sqrt(2))
    return _window("gaussian", M, start * scale, (start + M - 1) * scale, lambda k: OPS["exp"](-k * k), dtype, layout, device,
                   requires_grad)  # fmt: skip


def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, dtype: Any = None, layout: Any = strided, device: Any = None,  # noqa: N803
           requires_grad: bool = False) -> Tensor:  # fmt: skip
    """I0(beta sqrt(1 - n^2)) / I0(beta), n from -1 to 1."""
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    beta = beta * 1.0  # beta may be True, which counts as 1
    step = 2.0 * beta / _period(M, sym)

    def shape(k: Tensor) -> Tensor:
        return OPS["i0"](OPS["sqrt"](beta * beta - k * k)) / OPS["i0"](_tensor(beta, dtype=k.dtype, device=k.device))

    return _window("kaiser", M, -beta, min(beta, -beta + (M - 1) * step), shape, dtype, layout, device, requires_grad)


def general_cosine(M: int, *, a: Iterable[float], sym: bool = True, dtype: Any = None, layout: Any = strided,  # noqa: N803
                   device: Any = None, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """Sum of (-1)^i a_i cos(2 pi i n / (M - 1)).

    Raises: TypeError unless `a` is iterable; ValueError if it is empty.
    """
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    weights = list(a)
    if not weights:
        raise ValueError("Coefficients cannot be empty")

    def shape(k: Tensor) -> Tensor:
        signed = [w if i % 2 == 0 else -w for i, w in enumerate(weights)]
        waves = OPS["cos"](_tensor(range(len(weights)), dtype=k.dtype, device=k.device).unsqueeze(1) * k)
        return OPS["sum"](_tensor(signed, dtype=k.dtype, device=k.device).unsqueeze(1) * waves, (0,), False, None)

    step = 2 * math.pi / _period(M, sym)
    return _window("general_cosine", M, 0.0, (M - 1) * step, shape, dtype, layout, device, requires_grad)


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, dtype: Any = None, layout: Any = strided,  # noqa: N803
                    device: Any = None, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """alpha - (1 - alpha) cos(2 pi n / (M - 1))."""
    return general_cosine(M, a=[alpha, 1.0 - alpha], sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def hamming(M: int, *, sym: bool = True, dtype: Any = None, layout: Any = strided, device: Any = None,  # noqa: N803
            requires_grad: bool = False) -> Tensor:  # fmt: skip
    """`general_hamming` with alpha 0.54."""
    return general_hamming(M, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def hann(M: int, *, sym: bool = True, dtype: Any = None, layout: Any = strided, device: Any = None,  # noqa: N803
         requires_grad: bool = False) -> Tensor:  # fmt: skip
    """`general_hamming` with alpha 1/2."""
    return general_hamming(M, alpha=0.5, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def blackman(M: int, *, sym: bool = True, dtype: Any = None, layout: Any = strided, device: Any = None,  # noqa: N803
             requires_grad: bool = False) -> Tensor:  # fmt: skip
    """`general_cosine` of 0.42, 0.5, 0.08."""
    return general_cosine(M, a=[0.42, 0.5, 0.08], sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def nuttall(M: int, *, sym: bool = True, dtype: Any = None, layout: Any = strided, device: Any = None,  # noqa: N803
            requires_grad: bool = False) -> Tensor:  # fmt: skip
    """`general_cosine` with four coefficients that minimise the largest side lobe."""
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], sym=sym, dtype=dtype, layout=layout, device=device,
                          requires_grad=requires_grad)  # fmt: skip


def bartlett(M: int, *, sym: bool = True, dtype: Any = None, layout: Any = strided, device: Any = None,  # noqa: N803
             requires_grad: bool = False) -> Tensor:  # fmt: skip
    """1 - |n|, n from -1 to 1: a triangle."""
    step = 2 / _period(M, sym)
    return _window("bartlett", M, -1.0, -1.0 + (M - 1) * step, lambda k: 1 - OPS["abs"](k), dtype, layout, device, requires_grad)
