"""One step of a recurrent cell, after its matrix products: the gates and the new state."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from eager.base.spec import SpecLike, TensorSpec, common_device
from eager.optable.nn import is_wide, require_floating
from eager.optable.precision import PROMOTE
from eager.optable.registry import Kind
from eager.optable.sums import widen
from eager.optable.table import OPS, declare


def _parts(x: Any, count: int) -> list[Any]:
    """Equal slices of the last dim."""
    n = x.shape[-1] // count
    return [OPS["slice"](x, x.ndim - 1, i * n, (i + 1) * n, 1) for i in range(count)]


def _like(x: SpecLike) -> TensorSpec:
    return TensorSpec.contiguous(tuple(x.shape), x.dtype, x.device)


# ---- LSTM. Source: Hochreiter & Schmidhuber, 1997; gates in the order input, forget, cell, output ----


def _lstm(gates: Any, c: Any) -> tuple[Any, Any]:
    """h and c of an LSTM cell from its gates before activation. gates: (n, 4 * h), c: (n, h)."""
    i, f, g, o = _parts(gates, 4)
    new = OPS["sigmoid"](f) * c + OPS["sigmoid"](i) * OPS["tanh"](g)
    return OPS["sigmoid"](o) * OPS["tanh"](new), new


def _lstm_meta(gates: SpecLike, c: SpecLike) -> Any:
    require_floating("lstm", gates.dtype)
    common_device("lstm", [gates, c])
    if gates.dtype is not c.dtype or gates.shape[-1] != 4 * c.shape[-1]:
        raise RuntimeError(f"lstm: gates {list(gates.shape)} {gates.dtype} do not fit a state {list(c.shape)} {c.dtype}")
    return _like(c), _like(c)


def _sigmoid(xp: Any, x: Any) -> Any:
    y = xp.negative(x)
    xp.exp(y, out=y)
    y += 1
    return xp.reciprocal(y, out=y)


def lstm_kernel(xp: Any, out: Any, gates: Any, c: Any) -> None:
    h_out, c_out = out
    n = c.shape[-1]
    wide = widen(gates)
    i, f = _sigmoid(xp, wide[..., :n]), _sigmoid(xp, wide[..., n : 2 * n])
    f *= c
    i *= xp.tanh(wide[..., 2 * n : 3 * n])
    f += i
    xp.copyto(c_out, f, casting="unsafe")
    o = _sigmoid(xp, wide[..., 3 * n :])
    o *= xp.tanh(f)
    xp.copyto(h_out, o, casting="unsafe")


def lstm_backward(gh: Any, gc: Any, gates: Any, c: Any) -> tuple[Any, Any]:
    """Cotangents of the gates and of the old state."""
    raw_i, raw_f, raw_g, raw_o = _parts(gates, 4)
    i, f, g, o = OPS["sigmoid"](raw_i), OPS["sigmoid"](raw_f), OPS["tanh"](raw_g), OPS["sigmoid"](raw_o)
    t = OPS["tanh"](f * c + i * g)
    d = gc + gh * o * (1 - t * t)
    parts = [d * g * i * (1 - i), d * c * f * (1 - f), d * i * (1 - g * g), gh * t * o * (1 - o)]
    return OPS["cat"](parts, gates.ndim - 1), d * f


def lstm_backward_kernel(xp: Any, out: Any, gh: Any, gc: Any, gates: Any, c: Any) -> None:
    g_gates, g_c = out
    n = c.shape[-1]
    wide, c = widen(gates), widen(c)
    i, f, o = (_sigmoid(xp, wide[..., k * n : (k + 1) * n]) for k in (0, 1, 3))
    g = xp.tanh(wide[..., 2 * n : 3 * n])
    t = xp.tanh(f * c + i * g)
    gh = widen(gh)
    d = gh * o
    d *= 1 - t * t
    d += gc
    target = g_gates if is_wide(g_gates) else xp.empty(g_gates.shape, "f4")
    target[..., :n] = d * g * i * (1 - i)
    target[..., n : 2 * n] = d * c * f * (1 - f)
    target[..., 2 * n : 3 * n] = d * i * (1 - g * g)
    target[..., 3 * n :] = gh * t * o * (1 - o)
    if target is not g_gates:
        xp.copyto(g_gates, target, casting="unsafe")
    xp.copyto(g_c, d * f, casting="unsafe")


def _lstm_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    yield make(3, 8), make(3, 2)
    yield make(4), make(1)


LSTM_GATES_BACKWARD = declare(
    "lstm_gates_backward(Tensor gh, Tensor gc, Tensor gates, Tensor c) -> (Tensor, Tensor)", Kind.COMPOSITE,
    meta=lambda gh, gc, gates, c: (_like(gates), _like(c)), decompose=lstm_backward, kernel=lstm_backward_kernel,
    samples=lambda make: ((make(*c.shape), make(*c.shape), gates, c) for gates, c in _lstm_samples(make)))  # fmt: skip
LSTM_GATES = declare(
    "lstm_gates(Tensor gates, Tensor c) -> (Tensor, Tensor)", Kind.COMPOSITE, meta=_lstm_meta, decompose=_lstm,
    kernel=lstm_kernel, vjp={"gates, c": lambda gs, gates, c: OPS["lstm_gates_backward"](*gs, gates, c)},
    samples=_lstm_samples, precision=PROMOTE)  # fmt: skip


# ---- GRU. Source: Cho et al., 2014, with the reset after the product; gates in the order reset, update, new ----


def _gru(gx: Any, gh: Any, h: Any) -> Any:
    """The new state of a GRU cell from both products. gx, gh: (n, 3 * h), h: (n, h)."""
    rx, zx, nx = _parts(gx, 3)
    rh, zh, nh = _parts(gh, 3)
    z = OPS["sigmoid"](zx + zh)
    new = OPS["tanh"](nx + OPS["sigmoid"](rx + rh) * nh)
    return new + z * (h - new)


def _gru_meta(gx: SpecLike, gh: SpecLike, h: SpecLike) -> Any:
    require_floating("gru", gx.dtype)
    common_device("gru", [gx, gh, h])
    if gx.shape[-1] != 3 * h.shape[-1] or tuple(gx.shape) != tuple(gh.shape):
        raise RuntimeError(f"gru: gates {list(gx.shape)}, {list(gh.shape)} do not fit a state {list(h.shape)}")
    return _like(h)


def gru_kernel(xp: Any, out: Any, gx: Any, gh: Any, h: Any) -> None:
    n = h.shape[-1]
    gx, gh = widen(gx), widen(gh)
    rz = _sigmoid(xp, gx[..., : 2 * n] + gh[..., : 2 * n])
    new = rz[..., :n] * gh[..., 2 * n :]
    new += gx[..., 2 * n :]
    xp.tanh(new, out=new)
    step = h - new
    step *= rz[..., n:]
    step += new
    xp.copyto(out, step, casting="unsafe")


def gru_backward(g: Any, gx: Any, gh: Any, h: Any) -> tuple[Any, Any, Any]:
    """Cotangents of both products and of the old state."""
    rx, zx, nx = _parts(gx, 3)
    rh, zh, nh = _parts(gh, 3)
    r, z = OPS["sigmoid"](rx + rh), OPS["sigmoid"](zx + zh)
    new = OPS["tanh"](nx + r * nh)
    d_new = g * (1 - z) * (1 - new * new)
    d_r = d_new * nh * r * (1 - r)
    d_z = g * (h - new) * z * (1 - z)
    dim = gx.ndim - 1
    return OPS["cat"]([d_r, d_z, d_new], dim), OPS["cat"]([d_r, d_z, d_new * r], dim), g * z


def gru_backward_kernel(xp: Any, out: Any, g: Any, gx: Any, gh: Any, h: Any) -> Any:
    """Writes the cotangents of both products; the result is the part of the cotangent of the old state that reaches it directly."""
    d_gx, d_gh = out
    n = h.shape[-1]
    gx, gh = widen(gx), widen(gh)
    rz = _sigmoid(xp, gx[..., : 2 * n] + gh[..., : 2 * n])
    r, z, nh = rz[..., :n], rz[..., n:], gh[..., 2 * n :]
    new = xp.tanh(gx[..., 2 * n :] + r * nh)
    d_new = g * (1 - z) * (1 - new * new)
    d_gx[..., :n] = d_gh[..., :n] = d_new * nh * r * (1 - r)
    d_gx[..., n : 2 * n] = d_gh[..., n : 2 * n] = g * (h - new) * z * (1 - z)
    d_gx[..., 2 * n :] = d_new
    d_gh[..., 2 * n :] = d_new * r
    return g * z


def _gru_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    yield make(3, 6), make(3, 6), make(3, 2)


GRU_GATES = declare(
    "gru_gates(Tensor gx, Tensor gh, Tensor h) -> Tensor", Kind.COMPOSITE, meta=_gru_meta, decompose=_gru,
    kernel=gru_kernel, vjp={"gx, gh, h": gru_backward}, samples=_gru_samples, precision=PROMOTE)  # fmt: skip
