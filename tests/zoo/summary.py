"""The summary of a tensor in eight numbers. torch's results are stored as summaries, and ours are compared with them."""

from __future__ import annotations

import numpy as np

SAMPLED = 5
_HUGE = 1e30  # stands for infinities, which masks contain


def summarize(array: np.ndarray) -> np.ndarray:
    """(8,) float64: number of elements, root mean square, projection on fixed weights, SAMPLED entries."""
    if array.dtype.kind == "c":
        array = np.stack([array.real, array.imag], -1)
    flat = np.nan_to_num(array.astype(np.float64).ravel(), nan=np.nan, posinf=_HUGE, neginf=-_HUGE)
    out = np.zeros(3 + SAMPLED)
    out[0] = flat.size
    if flat.size:
        scale = np.sqrt(flat.size)
        out[1] = np.linalg.norm(flat) / scale
        out[2] = flat @ np.cos(1.7 * np.arange(flat.size) + 0.3) / scale
        out[3:] = flat[np.linspace(0, flat.size - 1, SAMPLED).astype(int)]
    return out


def differ(ours: np.ndarray, reference: np.ndarray, rtol: float, floor: float) -> str | None:
    """The difference of a summary from torch's, or None. floor: a magnitude below which differences are rounding errors."""
    if ours[0] != reference[0]:
        return f"{ours[0]:.0f} elements; torch has {reference[0]:.0f}"
    size = max(reference[1], floor)
    error = np.abs(ours[1:] - reference[1:])
    error[2:] /= 4  # a single entry may have a larger error than the mean
    if np.isnan(error).any() or error.max() > rtol * size:
        return f"error {error.max() / size:.2e}: {ours[1:]} torch {reference[1:]}"
    return None
