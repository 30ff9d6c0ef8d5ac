"""Tensors as text, laid out as torch prints them."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from eager.base import dtypes
from eager.base.records import dataclass


@dataclass(slots=True)
class _Options:
    """The options of `set_printoptions`. sci_mode: None chooses the notation by the values."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


PRINT_OPTS = _Options()
_PROFILES: dict[str, tuple[int, float, int, int]] = {
    "default": (4, 1000, 3, 80), "short": (2, 1000, 2, 80), "full": (4, math.inf, 3, 80)}  # fmt: skip


def set_printoptions(precision: int | None = None, threshold: float | None = None, edgeitems: int | None = None,
                     linewidth: int | None = None, profile: str | None = None, sci_mode: bool | None = None) -> None:  # fmt: skip
    """Set the options of printing; None leaves an option unchanged (sci_mode: None chooses the notation by the values).

    profile: "default", "short" or "full" sets the first four options, before the other arguments override them.
    """
    o = PRINT_OPTS
    if profile is not None:
        o.precision, o.threshold, o.edgeitems, o.linewidth = _PROFILES[profile]
    o.precision = o.precision if precision is None else precision
    o.threshold = o.threshold if threshold is None else threshold
    o.edgeitems = o.edgeitems if edgeitems is None else edgeitems
    o.linewidth = o.linewidth if linewidth is None else linewidth
    o.sci_mode = sci_mode


class _Formatter:
    """One width and one notation for all shown values, chosen by the finite values other than zero."""

    def __init__(self, values: np.ndarray[Any, Any]) -> None:
        self.integral = values.dtype.kind in "iub"
        self.int_mode = True
        self.sci = False
        self.width = 1
        if self.integral:
            self.width = max((len(str(v)) for v in values.reshape(-1)), default=1)
            return
        telling = values[np.isfinite(values) & (values != 0)]
        if telling.size == 0:
            return
        size = np.abs(telling).astype(np.float64)
        low, high = size.min(), size.max()
        self.int_mode = bool(np.all(size == np.ceil(size)))
        self.sci = bool(high / low > 1000.0 or high > 1.0e8 or (not self.int_mode and low < 1.0e-4))
        if PRINT_OPTS.sci_mode is not None:
            self.sci = bool(PRINT_OPTS.sci_mode)
        self.width = max(len(self.text(v)) for v in telling)

    def text(self, v: Any) -> str:
        if self.integral:
            return str(v)
        v = float(v)
        if self.sci:
            return f"{v:.{PRINT_OPTS.precision}e}"
        if self.int_mode:
            return f"{v:.0f}." if math.isfinite(v) else f"{v:.0f}"
        return f"{v:.{PRINT_OPTS.precision}f}"

    def __call__(self, v: Any) -> str:
        return self.text(v).rjust(self.width)


class _ComplexFormatter:
    """Real and imaginary parts, each in its own notation."""

    def __init__(self, values: np.ndarray[Any, Any]) -> None:
        self.real, self.imag = _Formatter(values.real), _Formatter(values.imag)
        self.width = self.real.width + self.imag.width + 1

    def __call__(self, v: Any) -> str:
        imag = (self.imag(v.imag) + "j").lstrip()
        return self.real(v.real) + ("" if imag[0] in "+-" else "+") + imag


def _summarised(a: np.ndarray[Any, Any], edge: int) -> np.ndarray[Any, Any]:
    """The elements that a summary shows."""
    for d in range(a.ndim):
        if a.shape[d] > 2 * edge:
            a = np.concatenate([a.take(range(edge), d), a.take(range(a.shape[d] - edge, a.shape[d]), d)], d)
    return a


def _vector(a: np.ndarray[Any, Any], indent: int, summarise: bool, fmt: Any) -> str:
    per_line = max(1, (PRINT_OPTS.linewidth - indent) // (fmt.width + 2))
    edge = PRINT_OPTS.edgeitems
    if summarise and len(a) > 2 * edge:
        items = [fmt(v) for v in a[:edge]] + [" ..."] + [fmt(v) for v in a[-edge:]]
    else:
        items = [fmt(v) for v in a]
    lines = [", ".join(items[i : i + per_line]) for i in range(0, len(items), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _nested(a: np.ndarray[Any, Any], indent: int, summarise: bool, fmt: Any) -> str:
    if a.ndim == 0:
        return fmt(a[()])
    if a.ndim == 1:
        return _vector(a, indent, summarise, fmt)
    edge = PRINT_OPTS.edgeitems
    if summarise and len(a) > 2 * edge:
        parts = [_nested(x, indent + 1, summarise, fmt) for x in a[:edge]] + ["..."]
        parts += [_nested(x, indent + 1, summarise, fmt) for x in a[-edge:]]
    else:
        parts = [_nested(x, indent + 1, summarise, fmt) for x in a]
    return "[" + ("," + "\n" * (a.ndim - 1) + " " * (indent + 1)).join(parts) + "]"


def format_tensor(t: Any) -> str:
    """The text of `repr(t)`, for a tensor of any device; fakes that stand for real tensors say so."""
    kind = type(t)
    prefix = kind.__dict__.get("_shown_as", kind.__name__) + "("  # a subclass is shown by its own name
    if t.device.type == "meta":
        return _join(prefix + "...", _meta_suffix(t) + _grad_suffix(t), len(prefix))
    if t.is_fake:
        given = [f"size={tuple(t.shape)}", f"device='{t.device}'"] + ([] if _implied(t) else [f"dtype={t.dtype}"])
        return "FakeTensor(" + ", ".join(given + _grad_suffix(t)) + ")"
    suffix = [f"device='{t.device}'"] if t.device.type == "cuda" else []
    if t.numel() == 0:
        body = "[]"
        if t.ndim != 1:
            suffix.append(f"size={tuple(t.shape)}")
    else:
        body = values_text(t, len(prefix))
    if not _implied(t) or (t.numel() == 0 and t.dtype is not dtypes.get_default_dtype()):
        suffix.append(f"dtype={t.dtype}")
    return _join(prefix + body, suffix + _grad_suffix(t), len(prefix))


def values_text(t: Any, indent: int) -> str:
    """The values, all or in summary."""
    a = t.detach().cpu()._array
    if t.dtype.itemsize <= 2 and t.dtype.is_floating_point:
        a = a.astype(np.float32)
    summarise = t.numel() > PRINT_OPTS.threshold
    shown = np.asarray(_summarised(a, PRINT_OPTS.edgeitems) if summarise else a)
    return _nested(a, indent, summarise, _ComplexFormatter(shown) if t.dtype.is_complex else _Formatter(shown))


def _implied(t: Any) -> bool:
    """Whether a reader knows the dtype from the values alone."""
    default = dtypes.get_default_dtype()
    return t.dtype in (default, default.to_complex(), dtypes.int64, dtypes.bool_)


def _meta_suffix(t: Any) -> list[str]:
    given = [f"device='{t.device}'", f"size={tuple(t.shape)}"]
    return given if t.dtype is dtypes.get_default_dtype() else [*given, f"dtype={t.dtype}"]


def _join(text: str, suffix: list[str], indent: int) -> str:
    last = len(text) - text.rfind("\n") + 1
    for part in suffix:
        if last + len(part) + 2 > PRINT_OPTS.linewidth:
            text += ",\n" + " " * indent + part
            last = indent + len(part)
        else:
            text += ", " + part
            last += len(part) + 2
    return text + ")"


def _grad_suffix(t: Any) -> list[str]:
    if t.grad_fn is not None:
        return [f"grad_fn=<{t.grad_fn.name().removeprefix('torch::autograd::')}>"]
    return ["requires_grad=True"] if t.requires_grad else []
