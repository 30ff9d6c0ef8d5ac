"""Short-time Fourier transforms and the windows that go with them."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from eager.base import dtypes
from eager.base.device import default_device, device
from eager.base.dtypes import scalar_name
from eager.functions.creation import finish
from eager.functions.shape import pad
from eager.optable.asserting import demand
from eager.optable.precision import FLOAT32_ON_CPU
from eager.optable.table import OPS
from eager.public.record import public
from eager.tape.record import owned

# ---- windows ----


def _window(name: str, length: int, periodic: bool, options: dict[str, Any], shape: Callable[[Any, int], Any]) -> Any:
    """`shape(n, last)` over n = 0..length-1, where `last` is the n at which the window ends."""
    d = options.get("dtype") or dtypes.get_default_dtype()
    requires_grad, pin_memory = options.get("requires_grad", False), bool(options.get("pin_memory", False))
    where = default_device() if options.get("device") is None else device(options["device"])
    if d.is_integral:
        raise RuntimeError(f"{name}_window expects floating point dtypes, got: {d}")
    if length < 0:
        raise RuntimeError(f"{name}_window requires non-negative window_length, got window_length={length}")
    if length < 2:
        return finish(OPS["full"]((length,), 1.0, d, where), requires_grad, pin_memory=pin_memory)
    if d.is_complex:
        raise dtypes.no_kernel("arange_cpu", d)
    n = OPS["arange"](0, length, 1, dtypes.float64, where)
    return finish(OPS["to_dtype"](shape(n, length if periodic else length - 1), d), requires_grad, pin_memory=pin_memory)


def hann_window(window_length: int, periodic: bool = True, **options: Any) -> Any:
    """0.5 - 0.5 cos(2 pi n / N): of period N = window_length, or symmetric. Options: dtype, device, requires_grad."""
    return hamming_window(window_length, periodic, 0.5, 0.5, _name="hann", **options)


def hamming_window(window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *, _name: str = "hamming",
                   **options: Any) -> Any:  # fmt: skip
    """alpha - beta cos(2 pi n / N)."""
    return _window(_name, window_length, periodic, options, lambda n, last: alpha - OPS["cos"](n * (2 * math.pi / last)) * beta)


def blackman_window(window_length: int, periodic: bool = True, **options: Any) -> Any:
    """0.42 - 0.5 cos(2 pi n / N) + 0.08 cos(4 pi n / N)."""
    return _window("blackman", window_length, periodic, options, lambda n, last: (
        OPS["cos"](n * (4 * math.pi / last)) * 0.08 - OPS["cos"](n * (2 * math.pi / last)) * 0.5 + 0.42))  # fmt: skip


def bartlett_window(window_length: int, periodic: bool = True, **options: Any) -> Any:
    """A triangle: 1 - |2n/N - 1|."""
    return _window("bartlett", window_length, periodic, options, lambda n, last: 1 - OPS["abs"](n * (2 / last) - 1))


def kaiser_window(window_length: int, periodic: bool = True, beta: float = 12.0, **options: Any) -> Any:
    """I0(beta sqrt(1 - (2n/N - 1)^2)) / I0(beta)."""

    def shape(n: Any, last: int) -> Any:
        at = n * (2 / last) - 1
        top = OPS["i0"](OPS["full"]((), beta, dtypes.float64, n.device))
        return OPS["i0"](OPS["sqrt"](OPS["clamp"](1 - at * at, 0, None)) * beta) / top

    return _window("kaiser", window_length, periodic, options, shape)


# ---- short-time transforms ----


def _centred_window(who: str, window: Any, n_fft: int, win_length: int | None, like: Any) -> Any:
    """The window, padded with zeros on both sides to n_fft points; all ones where none is given."""
    length = n_fft if win_length is None else win_length
    if not 0 < length <= n_fft:
        raise RuntimeError(f"{who}: expected 0 < win_length <= n_fft, but got win_length={length} and n_fft={n_fft}")
    if window is None:
        window = OPS["full"]((length,), 1.0, like.dtype.to_real(), like.device)
    elif window.ndim != 1 or window.shape[0] != length:
        raise RuntimeError(f"{who}: expected a 1D window tensor of size equal to win_length={length}, but got window with size "
                           f"{list(window.shape)}")  # fmt: skip
    left = (n_fft - length) // 2
    return OPS["constant_pad_nd"](window, (left, n_fft - length - left), 0) if length < n_fft else window


@public(autocast=FLOAT32_ON_CPU, parsed=False, lenient=("center",))
def stft(input: Any, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Any = None,  # noqa: A002
         center: bool = True, pad_mode: str = "reflect", normalized: bool = False, onesided: bool | None = None,
         return_complex: bool | None = None, align_to_window: bool | None = None) -> Any:  # fmt: skip
    """The spectra of overlapping frames: (batch?, samples) to complex (batch?, frequencies, frames).

    Frames of n_fft samples begin hop_length (default: n_fft // 4) apart and are weighted by `window`, which has
    win_length points; `center` pads so that frame t is centred at sample t * hop_length. `onesided` (the default for
    real input) keeps n_fft // 2 + 1 frequencies; `normalized` divides by sqrt(n_fft).
    Raises RuntimeError for sizes that do not fit, and for a real result (`return_complex` False or None).
    """
    if align_to_window is not None and center:
        raise RuntimeError("stft align_to_window should only be set when center = false")
    if align_to_window and win_length not in (None, n_fft):
        raise NotImplementedError(f"stft: align_to_window=True with win_length={win_length} and n_fft={n_fft} is not implemented; allowed: "
                                  "a window of n_fft points")  # fmt: skip
    hop = n_fft // 4 if hop_length is None else hop_length
    complex_input = input.dtype.is_complex or (window is not None and window.dtype.is_complex)
    if return_complex is None and not complex_input:
        raise RuntimeError("stft requires the return_complex parameter be given for real inputs, and will further require that "
                           "return_complex=True in a future PyTorch release.")  # fmt: skip
    if not (input.dtype.is_floating_point or input.dtype.is_complex):
        raise RuntimeError(f"stft: expected a tensor of floating point or complex values, but got {scalar_name(input.dtype)}")
    if input.ndim not in (1, 2):
        raise RuntimeError(f"stft: expected a 1D or 2D tensor, but got {input.ndim}D")
    rows = input if input.ndim == 2 else OPS["unsqueeze"](input, 0)
    if center:
        half = n_fft // 2
        rows = OPS["squeeze"](pad(OPS["unsqueeze"](rows, 0), (half, half), pad_mode), (0,))
    size = rows.shape[1]
    if not 0 < n_fft <= size:
        raise RuntimeError(f"stft: expected 0 < n_fft < {size}, but got n_fft={n_fft}")
    if hop <= 0:
        raise RuntimeError(f"stft: expected hop_length > 0, but got hop_length={hop}")
    weights = _centred_window("stft", window, n_fft, win_length, input)
    if onesided is None:
        onesided = not complex_input
    if onesided and complex_input:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    frames = OPS["unfold"](rows, 1, n_fft, hop) * weights  # (batch, frames, n_fft)
    scale = 1 / math.sqrt(n_fft) if normalized else 1.0
    if onesided:
        spectrum = OPS["fft_r2c"](frames, (2,), scale)
    else:
        spectrum = OPS["fft_c2c"](OPS["to_dtype"](frames, frames.dtype.to_complex()), (2,), scale, True)
    result = OPS["permute"](spectrum, (0, 2, 1))
    result = owned(result if input.ndim == 2 else OPS["squeeze"](result, (0,)))
    return result if return_complex or return_complex is None else OPS["view_as_real"](result)


@public(parsed=False)
def istft(input: Any, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Any = None,  # noqa: A002
          center: bool = True, normalized: bool = False, onesided: bool | None = None, length: int | None = None,
          return_complex: bool = False) -> Any:  # fmt: skip
    """The inverse of `stft`, by the least-squares overlap-add: complex (batch?, frequencies, frames) to (batch?, samples).

    Source: Griffin & Lim, "Signal estimation from modified short-time Fourier transform", 1984.
    Raises RuntimeError where the squared windows do not add up to something above zero at every sample.
    """
    if not input.dtype.is_complex:
        raise RuntimeError("istft requires a complex-valued input tensor matching the output from stft with return_complex=True.")
    if input.ndim not in (2, 3):
        raise RuntimeError(f"istft: expected a tensor with 2 or 3 dimensions, but got {input.ndim}")
    hop = n_fft // 4 if hop_length is None else hop_length
    spectra = input if input.ndim == 3 else OPS["unsqueeze"](input, 0)
    points, frames = spectra.shape[1], spectra.shape[2]
    if onesided is None:
        onesided = points != n_fft
    expected = n_fft // 2 + 1 if onesided else n_fft
    if points != expected:
        raise RuntimeError("istft: expected the frequency dimension (3rd to the last) of the input tensor to match "
                           f"{'n_fft / 2 + 1' if onesided else 'n_fft'} when onesided={onesided}, but got {points}")  # fmt: skip
    weights = _centred_window("istft", window, n_fft, win_length, input)
    spectra = OPS["permute"](spectra, (0, 2, 1))
    scale = 1 / math.sqrt(n_fft) if normalized else 1.0 / n_fft
    if return_complex:
        parts = OPS["fft_c2c"](spectra, (2,), scale, False)
    elif onesided:
        parts = OPS["fft_c2r"](spectra, (2,), scale, n_fft)
    else:
        parts = OPS["real"](OPS["fft_c2c"](spectra, (2,), scale, False))
    total = n_fft + hop * (frames - 1)
    starts = OPS["arange"](0, frames, 1, None, input.device).reshape(-1, 1) * hop
    at = (starts + OPS["arange"](0, n_fft, 1, None, input.device)).reshape(-1)
    y = _overlap_add(parts * weights, at, total)
    envelope = _overlap_add(OPS["expand"](OPS["view"](weights * weights, (1, 1, n_fft)), (1, frames, n_fft)), at, total)
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else total - start if center else total
    y, envelope = (OPS["slice"](v, 1, start, min(end, total), 1) for v in (y, envelope))
    demand(envelope.abs() >= 1e-11, RuntimeError, "window overlap add min: 1")
    y = y / envelope
    if length is not None and y.shape[1] < length:
        y = OPS["constant_pad_nd"](y, (0, length - y.shape[1]), 0)
    return y if input.ndim == 3 else OPS["squeeze"](y, (0,))


def _overlap_add(frames: Any, at: Any, total: int) -> Any:
    """Sum frames (batch, count, n) into (batch, total) at the positions `at`, of all frames in turn."""
    flat = frames.reshape(frames.shape[0], -1)
    return OPS["index_add"](OPS["full"]((flat.shape[0], total), 0, flat.dtype, flat.device), 1, at, flat)


FUNCTIONS: dict[str, Any] = {
    "stft": stft, "istft": istft, "hann_window": hann_window, "hamming_window": hamming_window, "blackman_window": blackman_window,
    "bartlett_window": bartlett_window, "kaiser_window": kaiser_window,
}  # fmt: skip
METHODS: dict[str, Any] = {"stft": stft, "istft": istft}
