"""A recurrent layer over all time steps as one op, with a gradient that is one op too.

gx: (t, n, gates * h), the product with the input of every step; the first state and the results of a step are (n, h). With
`reverse` the steps run from the last to the first; element t of a result always belongs to step t. The results include the values
that the gradient needs. Source of the gradients: backpropagation through time (Werbos, 1990).
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from eager.base.spec import SpecLike, TensorSpec, common_device
from eager.optable.declaration import zeros
from eager.optable.matmul import transpose_last
from eager.optable.nn import require_floating
from eager.optable.products import matmul
from eager.optable.registry import Kind
from eager.optable.rnn import (
    gru_backward,
    gru_backward_kernel,
    gru_kernel,
    lstm_backward,
    lstm_backward_kernel,
    lstm_kernel,
)
from eager.optable.sums import widen
from eager.optable.table import OPS, declare

_ACTIVATIONS = ("tanh", "relu")


def _order(length: int, reverse: bool) -> range:
    """The time steps in the order in which they run."""
    return range(length - 1, -1, -1) if reverse else range(length)


def _with_state(state: Any, w: Any, b: Any) -> Any:
    """The product of a state with the recurrent weights."""
    product = OPS["matmul"](state, transpose_last(w))
    return product if b is None else product + b


def _stacked(parts: dict[int, Any]) -> Any:
    return OPS["stack"]([parts[t] for t in range(len(parts))], 0)


def _check(name: str, gx: SpecLike, states: Sequence[SpecLike], w: SpecLike, gates: int) -> None:
    require_floating(name, gx.dtype)
    common_device(name, [gx, *states, w])
    if len(gx.shape) != 3 or gx.shape[0] == 0:
        raise RuntimeError(f"{name}: gx is {list(gx.shape)}; allowed: (t, n, {gates} * h) with at least one step")
    n, h = gx.shape[1], w.shape[1]
    if gx.shape[2] != gates * h or tuple(w.shape) != (gates * h, h) or any(tuple(s.shape) != (n, h) for s in states):
        shapes = ", ".join(str(list(x.shape)) for x in (gx, *states, w))
        raise RuntimeError(f"{name}: the shapes {shapes} do not fit; allowed: (t, n, {gates} * h), states (n, h), weights ({gates} * h, h)")
    if any(x.dtype is not gx.dtype for x in (*states, w)):
        raise RuntimeError(f"{name}: gx is {gx.dtype}, and a state or the weights are not")


def _like(x: SpecLike, size: int | None = None) -> TensorSpec:
    shape = tuple(x.shape) if size is None else (*x.shape[:-1], size)
    return TensorSpec.contiguous(shape, x.dtype, x.device)


def _weight_gradient(d: Any, y: Any, first: Any, reverse: bool) -> Any:
    """The cotangent of the recurrent weights. d: (t, n, gates * h), of the products; y: (t, n, h), the states after each step."""
    length, (gates, h) = d.shape[0], (d.shape[2], y.shape[2])
    at, rest, before = (length - 1, slice(0, length - 1), slice(1, length)) if reverse else (0, slice(1, length), slice(0, length - 1))

    def product(left: Any, right: Any) -> Any:
        left, right = OPS["view"](left, (-1, gates)), OPS["view"](right, (-1, h))
        return OPS["matmul"](transpose_last(left), right)

    found = product(OPS["select"](d, 0, at), first)
    if length == 1:
        return found
    return found + product(_steps(d, rest), _steps(y, before))


def _steps(x: Any, s: slice) -> Any:
    return OPS["slice"](x, 0, s.start, s.stop, 1)


def _weight_gradients(d: Any, y: Any, first: Any, b: Any, reverse: bool, needs: Sequence[bool]) -> tuple[Any, Any]:
    """The cotangents of the recurrent weights and of their bias, where they are needed."""
    weights = _weight_gradient(d, y, first, reverse) if needs[0] else None
    return weights, OPS["sum"](d, (0, 1), False, None) if needs[1] and b is not None else None


# ---- LSTM ----


def _lstm_layer(gx: Any, h: Any, c: Any, w_hh: Any, b_hh: Any, reverse: bool) -> tuple[Any, Any, Any]:
    """The states h and c after every step, and the gates before activation: (t, n, h), (t, n, h), (t, n, 4 * h)."""
    ys, cs, gates = {}, {}, {}
    for t in _order(gx.shape[0], reverse):
        gates[t] = OPS["select"](gx, 0, t) + _with_state(h, w_hh, b_hh)
        h, c = OPS["lstm_gates"](gates[t], c)
        ys[t], cs[t] = h, c
    return _stacked(ys), _stacked(cs), _stacked(gates)


def _lstm_meta(gx: SpecLike, h: SpecLike, c: SpecLike, w_hh: SpecLike, b_hh: SpecLike | None, reverse: bool) -> Any:
    _check("lstm_layer", gx, [h, c], w_hh, 4)
    return _like(gx, h.shape[1]), _like(gx, h.shape[1]), _like(gx)


def _lstm_layer_kernel(xp: Any, out: Any, gx: Any, h: Any, c: Any, w_hh: Any, b_hh: Any, reverse: bool) -> None:
    ys, cs, gates = out
    weights = xp.swapaxes(widen(w_hh), 0, 1)
    for t in _order(len(gx), reverse):
        g = matmul(xp, widen(h), weights)
        if b_hh is not None:
            g += b_hh
        g += gx[t]
        gates[t] = g
        lstm_kernel(xp, (ys[t], cs[t]), gates[t], c)
        h, c = ys[t], cs[t]


def _lstm_layer_backward(gy: Any, gcs: Any, ggates: Any, gates: Any, cs: Any, c: Any, w_hh: Any, reverse: bool) -> tuple[Any, Any, Any]:
    """Cotangents of gx, h and c, from the cotangents of the results of the layer."""
    order = _order(gates.shape[0], reverse)
    gh = gc = None
    ds = {}
    for k in range(len(order) - 1, -1, -1):
        t = order[k]
        g = _sum(OPS["select"](gy, 0, t), gh)
        gt = _sum(None if gcs is None else OPS["select"](gcs, 0, t), gc)
        before = OPS["select"](cs, 0, order[k - 1]) if k else c
        d, gc = lstm_backward(g, 0 if gt is None else gt, OPS["select"](gates, 0, t), before)
        ds[t] = d if ggates is None else d + OPS["select"](ggates, 0, t)
        gh = OPS["matmul"](ds[t], w_hh)
    return _stacked(ds), gh, gc


def _sum(a: Any, b: Any) -> Any:
    """a + b, where None is nothing."""
    return b if a is None else a if b is None else a + b


def _lstm_layer_backward_kernel(xp: Any, out: Any, gy: Any, gcs: Any, ggates: Any, gates: Any, cs: Any, c: Any, w_hh: Any,
                                reverse: bool) -> None:  # fmt: skip
    ds, gh, gc = out
    order, w = _order(len(gates), reverse), widen(w_hh)
    product: Any = 0
    carried: Any = 0
    for k in range(len(order) - 1, -1, -1):
        t = order[k]
        gt = carried if gcs is None else carried + widen(gcs[t])
        lstm_backward_kernel(xp, (ds[t], gc), product + widen(gy[t]), gt, gates[t], cs[order[k - 1]] if k else c)
        if ggates is not None:
            ds[t] += ggates[t]
        product, carried = matmul(xp, widen(ds[t]), w), widen(gc)
    xp.copyto(gh, product, casting="unsafe")


def _lstm_vjp(gs: Any, h: Any, c: Any, w_hh: Any, b_hh: Any, ys: Any, reverse: bool, needs: Any) -> Any:
    y, cs, gates = ys
    gy, gcs, ggates = gs
    d, gh, gc = OPS["lstm_layer_backward"](zeros(y) if gy is None else gy, gcs, ggates, gates, cs, c, w_hh, reverse)
    return d, gh, gc, *_weight_gradients(d, y, h, b_hh, reverse, needs[3:])


def _lstm_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    yield make(3, 2, 12), make(2, 3), make(2, 3), make(12, 3), make(12), False
    yield make(2, 1, 8), make(1, 2), make(1, 2), make(8, 2), None, True
    yield make(1, 2, 4), make(2, 1), make(2, 1), make(4, 1), make(4), False


def _lstm_backward_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    for gx, h, c, w, b, reverse in _lstm_samples(make):
        y, cs, gates = _lstm_layer(gx.detach(), h.detach(), c.detach(), w.detach(), None if b is None else b.detach(), reverse)
        yield make(*y.shape), None if reverse else make(*y.shape), make(*gates.shape) if reverse else None, gates, cs, c, w, reverse


LSTM_LAYER_BACKWARD = declare(
    "lstm_layer_backward(Tensor gy, Tensor? gcs, Tensor? ggates, Tensor gates, Tensor cs, Tensor c, Tensor w_hh, bool reverse) -> "
    "(Tensor, Tensor, Tensor)", Kind.OPAQUE, meta=lambda gy, gcs, ggates, gates, cs, c, w_hh, reverse: (_like(gates), _like(c), _like(c)),
    decompose=_lstm_layer_backward, kernel=_lstm_layer_backward_kernel, samples=_lstm_backward_samples)  # fmt: skip
LSTM_LAYER = declare(
    "lstm_layer(Tensor gx, Tensor h, Tensor c, Tensor w_hh, Tensor? b_hh, bool reverse) -> (Tensor, Tensor, Tensor)", Kind.OPAQUE,
    meta=_lstm_meta, decompose=_lstm_layer, kernel=_lstm_layer_kernel, vjp={"gx, h, c, w_hh, b_hh": _lstm_vjp},
    samples=_lstm_samples)  # fmt: skip


# ---- GRU ----


def _gru_layer(gx: Any, h: Any, w_hh: Any, b_hh: Any, reverse: bool) -> tuple[Any, Any]:
    """The state after every step, and its product with the recurrent weights before it: (t, n, h), (t, n, 3 * h)."""
    ys, products = {}, {}
    for t in _order(gx.shape[0], reverse):
        products[t] = _with_state(h, w_hh, b_hh)
        h = ys[t] = OPS["gru_gates"](OPS["select"](gx, 0, t), products[t], h)
    return _stacked(ys), _stacked(products)


def _gru_meta(gx: SpecLike, h: SpecLike, w_hh: SpecLike, b_hh: SpecLike | None, reverse: bool) -> Any:
    _check("gru_layer", gx, [h], w_hh, 3)
    return _like(gx, h.shape[1]), _like(gx)


def _gru_layer_kernel(xp: Any, out: Any, gx: Any, h: Any, w_hh: Any, b_hh: Any, reverse: bool) -> None:
    ys, products = out
    weights = xp.swapaxes(widen(w_hh), 0, 1)
    for t in _order(len(gx), reverse):
        product = matmul(xp, widen(h), weights)
        if b_hh is not None:
            product += b_hh
        products[t] = product
        gru_kernel(xp, ys[t], gx[t], products[t], h)
        h = ys[t]


def _gru_layer_backward(gy: Any, gproducts: Any, gx: Any, products: Any, y: Any, h: Any, w_hh: Any, reverse: bool) -> Any:
    """Cotangents of gx, of the products with the states, and of h."""
    order = _order(gx.shape[0], reverse)
    gh = None
    dx, ds = {}, {}
    for k in range(len(order) - 1, -1, -1):
        t = order[k]
        before = OPS["select"](y, 0, order[k - 1]) if k else h
        g = _sum(OPS["select"](gy, 0, t), gh)
        dx[t], d, direct = gru_backward(g, OPS["select"](gx, 0, t), OPS["select"](products, 0, t), before)
        ds[t] = d if gproducts is None else d + OPS["select"](gproducts, 0, t)
        gh = OPS["matmul"](ds[t], w_hh) + direct
    return _stacked(dx), _stacked(ds), gh


def _gru_layer_backward_kernel(xp: Any, out: Any, gy: Any, gproducts: Any, gx: Any, products: Any, y: Any, h: Any, w_hh: Any,
                               reverse: bool) -> None:  # fmt: skip
    dx, ds, gh = out
    order, w = _order(len(gx), reverse), widen(w_hh)
    carried: Any = 0
    for k in range(len(order) - 1, -1, -1):
        t = order[k]
        direct = gru_backward_kernel(xp, (dx[t], ds[t]), carried + widen(gy[t]), gx[t], products[t], y[order[k - 1]] if k else h)
        if gproducts is not None:
            ds[t] += gproducts[t]
        carried = matmul(xp, widen(ds[t]), w) + direct
    xp.copyto(gh, carried, casting="unsafe")


def _gru_vjp(gs: Any, gx: Any, h: Any, w_hh: Any, b_hh: Any, ys: Any, reverse: bool, needs: Any) -> Any:
    y, products = ys
    gy = zeros(y) if gs[0] is None else gs[0]
    dx, d, gh = OPS["gru_layer_backward"](gy, gs[1], gx, products, y, h, w_hh, reverse)
    return dx, gh, *_weight_gradients(d, y, h, b_hh, reverse, needs[2:])


def _gru_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    yield make(3, 2, 9), make(2, 3), make(9, 3), make(9), False
    yield make(2, 1, 6), make(1, 2), make(6, 2), None, True


def _gru_backward_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    for gx, h, w, b, reverse in _gru_samples(make):
        y, products = _gru_layer(gx.detach(), h.detach(), w.detach(), None if b is None else b.detach(), reverse)
        yield make(*y.shape), make(*products.shape) if reverse else None, gx, products, y, h, w, reverse


GRU_LAYER_BACKWARD = declare(
    "gru_layer_backward(Tensor gy, Tensor? gproducts, Tensor gx, Tensor products, Tensor y, Tensor h, Tensor w_hh, bool reverse) -> "
    "(Tensor, Tensor, Tensor)", Kind.OPAQUE, meta=lambda gy, gproducts, gx, products, y, h, w_hh, reverse: (_like(gx), _like(gx), _like(h)),
    decompose=_gru_layer_backward, kernel=_gru_layer_backward_kernel, samples=_gru_backward_samples)  # fmt: skip
GRU_LAYER = declare(
    "gru_layer(Tensor gx, Tensor h, Tensor w_hh, Tensor? b_hh, bool reverse) -> (Tensor, Tensor)", Kind.OPAQUE,
    meta=_gru_meta, decompose=_gru_layer, kernel=_gru_layer_kernel, vjp={"gx, h, w_hh, b_hh": _gru_vjp}, samples=_gru_samples)  # fmt: skip


# ---- plain recurrence: y = tanh or relu of gx + h w^T + b ----


def _rnn_layer(gx: Any, h: Any, w_hh: Any, b_hh: Any, nonlinearity: str, reverse: bool) -> Any:
    """The state after every step: (t, n, h). nonlinearity: "tanh" or "relu"."""
    ys = {}
    for t in _order(gx.shape[0], reverse):
        h = ys[t] = OPS[nonlinearity](OPS["select"](gx, 0, t) + _with_state(h, w_hh, b_hh))
    return _stacked(ys)


def _rnn_meta(gx: SpecLike, h: SpecLike, w_hh: SpecLike, b_hh: SpecLike | None, nonlinearity: str, reverse: bool) -> Any:
    _check("rnn_layer", gx, [h], w_hh, 1)
    if nonlinearity not in _ACTIVATIONS:
        raise ValueError(f"rnn_layer: nonlinearity {nonlinearity!r}; allowed: {', '.join(_ACTIVATIONS)}")
    return _like(gx)


def _rnn_layer_kernel(xp: Any, out: Any, gx: Any, h: Any, w_hh: Any, b_hh: Any, nonlinearity: str, reverse: bool) -> None:
    weights = xp.swapaxes(widen(w_hh), 0, 1)
    for t in _order(len(gx), reverse):
        product = matmul(xp, widen(h), weights)
        if b_hh is not None:
            product += b_hh
        product += gx[t]
        out[t] = xp.tanh(product) if nonlinearity == "tanh" else xp.maximum(product, 0)
        h = out[t]


def _rnn_layer_backward(gy: Any, y: Any, w_hh: Any, nonlinearity: str, reverse: bool) -> tuple[Any, Any]:
    """Cotangents of gx and h. y: the states after every step."""
    order = _order(y.shape[0], reverse)
    gh = None
    ds = {}
    for t in reversed(order):
        g, state = _sum(OPS["select"](gy, 0, t), gh), OPS["select"](y, 0, t)
        ds[t] = g * (1 - state * state) if nonlinearity == "tanh" else OPS["where"](state > 0, g, 0.0)
        gh = OPS["matmul"](ds[t], w_hh)
    return _stacked(ds), gh


def _rnn_layer_backward_kernel(xp: Any, out: Any, gy: Any, y: Any, w_hh: Any, nonlinearity: str, reverse: bool) -> None:
    ds, gh = out
    w = widen(w_hh)
    carried: Any = 0
    for t in reversed(_order(len(y), reverse)):
        g, state = carried + widen(gy[t]), widen(y[t])
        ds[t] = g * (1 - state * state) if nonlinearity == "tanh" else xp.where(state > 0, g, 0)
        carried = matmul(xp, widen(ds[t]), w)
    xp.copyto(gh, carried, casting="unsafe")


def _rnn_vjp(g: Any, h: Any, w_hh: Any, b_hh: Any, y: Any, nonlinearity: str, reverse: bool, needs: Any) -> Any:
    d, gh = OPS["rnn_layer_backward"](g, y, w_hh, nonlinearity, reverse)
    return d, gh, *_weight_gradients(d, y, h, b_hh, reverse, needs[2:])


def _rnn_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    yield make(3, 2, 3), make(2, 3), make(3, 3), make(3), "tanh", False
    yield make(2, 1, 2), make(1, 2), make(2, 2), None, "tanh", True


def _rnn_backward_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    for gx, h, w, b, nonlinearity, reverse in _rnn_samples(make):
        y = _rnn_layer(gx.detach(), h.detach(), w.detach(), None if b is None else b.detach(), nonlinearity, reverse)
        yield make(*y.shape), y, w, nonlinearity, reverse


RNN_LAYER_BACKWARD = declare(
    "rnn_layer_backward(Tensor gy, Tensor y, Tensor w_hh, str nonlinearity, bool reverse) -> (Tensor, Tensor)", Kind.OPAQUE,
    meta=lambda gy, y, w_hh, nonlinearity, reverse: (_like(y), TensorSpec.contiguous(tuple(y.shape[1:]), y.dtype, y.device)),
    decompose=_rnn_layer_backward, kernel=_rnn_layer_backward_kernel, samples=_rnn_backward_samples)  # fmt: skip
RNN_LAYER = declare(
    "rnn_layer(Tensor gx, Tensor h, Tensor w_hh, Tensor? b_hh, str nonlinearity, bool reverse) -> Tensor", Kind.OPAQUE,
    meta=_rnn_meta, decompose=_rnn_layer, kernel=_rnn_layer_kernel, vjp={"gx, h, w_hh, b_hh": _rnn_vjp}, samples=_rnn_samples)  # fmt: skip
