"""Scaled dot-product attention as one op, with its own kernel and gradient.

Only the logarithm of each row's normaliser is kept for the gradient, not the (t, s) weights. Dropout of the weights is a function of
a random state and of the position in the weights, so that the gradient draws it again.
"""
from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from eager import _native
from eager.base import dtypes
from eager.base.dtypes import c_name
from eager.base.spec import (
    SpecLike,
    TensorSpec,
    broadcast_shapes,
    common_device,
    contiguous_strides,
    preserve_strides,
    same_shape,
)
from eager.optable.declaration import cast_to, sum_to
from eager.optable.gradient_strides import laid_out
from eager.optable.matmul import transpose_last
from eager.optable.nn import accumulator, is_wide, require_floating
from eager.optable.precision import LOWER
from eager.optable.products import matmul
from eager.optable.random import kept
from eager.optable.registry import Kind
from eager.optable.sums import total, widen
from eager.optable.table import OPS, declare


def weights_shape(q: Sequence[int], k: Sequence[int], mask: Sequence[int] = ()) -> tuple[int, ...]:
    """The shape (*, t, s) of the weights, whose row-major positions number the random bits of dropout. q, k, mask: shapes."""
    return (*broadcast_shapes(q[:-2], k[:-2], mask[:-2]), q[-2], k[-2])


def _meta(q: SpecLike, k: SpecLike, v: SpecLike, mask: Any, is_causal: bool, scale: float, state: Any, dropout_p: Any) -> Any:
    require_floating("scaled_dot_product_attention", q.dtype)
    if not q.dtype is k.dtype is v.dtype:
        raise RuntimeError("Expected query, key, and value to have the same dtype, but got query.dtype: "
                           f"{c_name(q.dtype)} key.dtype: {c_name(k.dtype)} and value.dtype: {c_name(v.dtype)} instead.")  # fmt: skip
    if min(q.ndim, k.ndim, v.ndim) < 2:
        raise RuntimeError("Expected query, key, and value to all be at least 2 dimensional, but got query dim: "
                           f"{q.ndim}, key dim: {k.ndim} and value dim: {v.ndim} instead.")  # fmt: skip
    if q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        raise RuntimeError(f"scaled_dot_product_attention: query (*, t, d), key (*, s, d) and value (*, s, e) must agree in d "
                           f"and s, but got {list(q.shape)}, {list(k.shape)} and {list(v.shape)}")  # fmt: skip
    where = common_device("scaled_dot_product_attention", [t for t in (q, k, v, mask) if t is not None])
    lead = broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    if mask is not None:
        scores = (*lead, q.shape[-2], k.shape[-2])
        masked = broadcast_shapes(scores, mask.shape)
        if not same_shape(masked, scores):
            raise RuntimeError(f"output with shape {list(scores)} doesn't match the broadcast shape {list(masked)}")
    shape = (*lead, q.shape[-2], v.shape[-1])
    lse = TensorSpec.contiguous((*lead, q.shape[-2], 1), accumulator(q.dtype), where)
    return TensorSpec(shape, q.dtype, _strides(shape, q, k, v, state), where), lse


def _strides(shape: tuple[int, ...], q: SpecLike, k: SpecLike, v: SpecLike, state: Any) -> tuple[int, ...]:
    """Strides of a result of `shape`: the layout of the query, where the result of torch's CPU flash kernel has it.

    Models transpose the result back before they merge the heads; with this layout that reshape is a view.
    """
    has_layout_of_query = all(x.ndim == 4 and x.stride()[-1] == 1 for x in (q, k, v)) and same_shape(q.shape, shape)
    return preserve_strides(q) if has_layout_of_query and state is None and 0 not in shape else contiguous_strides(shape)


def _causal(rows: int, columns: int, where: Any) -> Any:
    """True where row i may see column j: j <= i."""
    i = OPS["view"](OPS["arange"](0, rows, 1, dtypes.int64, where), (-1, 1))
    return OPS["arange"](0, columns, 1, dtypes.int64, where) <= i


def _scores(q: Any, k: Any, mask: Any, is_causal: bool, scale: float) -> Any:
    s = OPS["matmul"](q * scale, transpose_last(k))
    if mask is not None:
        s = OPS["where"](mask, s, -math.inf) if mask.dtype is dtypes.bool_ else s + mask
    if is_causal:
        s = OPS["where"](_causal(q.shape[-2], k.shape[-2], q.device), s, -math.inf)
    return s


def _dropped(weights: Any, shape: tuple[int, ...], state: Any, p: Any) -> Any:
    """Dropout of weights, or the cotangent of their dropout. state: None without dropout."""
    if state is None:
        return weights
    is_kept = OPS["ge"](OPS["philox_uniform"](state, shape, dtypes.float32), p)
    return OPS["where"](is_kept, weights * _share(p), 0)


def _share(p: Any) -> Any:
    """The factor of a weight that dropout with probability `p` keeps."""
    return 0.0 if isinstance(p, float) and p == 1.0 else 1.0 / (1.0 - p)


def _attention(q: Any, k: Any, v: Any, mask: Any, is_causal: bool, scale: float, state: Any, dropout_p: Any) -> tuple[Any, Any]:
    """dropout(softmax(q k^T * scale + mask)) v, and the log of each row's normaliser. A row that sees nothing gives zeros.

    q: (*, t, d), k: (*, s, d), v: (*, s, e); mask: bool (True = may see) or added, broadcast to (*, t, s). state: of the random
    bits of dropout, None without dropout. dropout_p: the probability with which a weight becomes 0, a number or a 0-d tensor.
    """
    shape = weights_shape(*(x.shape for x in (q, k, mask) if x is not None))
    d = accumulator(q.dtype)
    given = q, k, v
    q, k, wide_v = cast_to(q, d), cast_to(k, d), cast_to(v, d)
    s = _scores(q, k, mask if mask is None or mask.dtype is dtypes.bool_ else cast_to(mask, d), is_causal, scale)
    dims = (s.ndim - 1,)
    top = OPS["amax"](s, dims, True)
    top = OPS["where"](top == -math.inf, 0.0, top)
    e = OPS["exp"](s - top)
    total = OPS["sum"](e, dims, True, None)
    empty = total == 0
    weights = _dropped(e / OPS["where"](empty, 1.0, total), shape, state, dropout_p)
    y = OPS["matmul"](weights, wide_v)
    lse = OPS["log"](OPS["where"](empty, 1.0, total)) + top
    if not same_shape(lse.shape[:-1], y.shape[:-1]):  # the values have more leading dims
        lse = OPS["clone"](OPS["expand"](lse, (*y.shape[:-1], 1)), "contiguous")
    return laid_out(cast_to(y, v.dtype), _strides(tuple(y.shape), *given, state)), lse


def _masked_scores(xp: Any, q: Any, k: Any, mask: Any, is_causal: bool, scale: float) -> Any:
    s = matmul(xp, q, xp.swapaxes(k, -1, -2))
    s *= scale
    if mask is not None:
        if mask.dtype.kind == "b":
            shape = xp.broadcast_shapes(s.shape, mask.shape)
            s = xp.array(xp.broadcast_to(s, shape)) if shape != s.shape else s
            xp.copyto(s, -math.inf, where=xp.logical_not(mask))
        elif mask.ndim > s.ndim or xp.broadcast_shapes(s.shape, mask.shape) != s.shape:
            s = s + widen(mask)
        else:
            s += widen(mask)
    if is_causal:
        hidden = ~xp.tri(q.shape[-2], k.shape[-2], dtype=bool)
        xp.copyto(s, -math.inf, where=hidden)
    return s


def _drop(xp: Any, x: Any, dropped: Any, p: Any) -> None:
    """Dropout in place, as `_dropped` computes it. dropped: where weights become 0."""
    if dropped is not None:
        x *= _share(float(p))
        xp.copyto(x, 0, where=dropped)


def _dropped_weights(xp: Any, weights: Any, state: Any, p: Any) -> Any:
    """Where dropout with a random state makes weights 0; None without dropout."""
    return None if state is None else xp.logical_not(kept(xp, state, weights.shape, float(p)))


def _kernel(xp: Any, out: Any, q: Any, k: Any, v: Any, mask: Any, is_causal: bool, scale: float, state: Any,
            dropout_p: Any) -> None:  # fmt: skip
    y, lse = out
    if y.size == 0 or k.shape[-2] == 0:
        y.fill(0), lse.fill(0)
        return
    s = _masked_scores(xp, widen(q), widen(k), mask, is_causal, scale)
    top = s.max(axis=-1, keepdims=True)
    if mask is not None:
        top[top == -math.inf] = 0.0
    s -= top
    xp.exp(s, out=s)
    denominator = total(xp, s, -1)
    if mask is not None:
        denominator[denominator == 0] = 1.0
    _drop(xp, s, _dropped_weights(xp, s, state, dropout_p), dropout_p)
    target = y if is_wide(y) else xp.empty(y.shape, "f4")
    matmul(xp, s, widen(v), target)
    target /= denominator  # after the product: (t, e) divisions rather than (t, s)
    if target is not y:
        xp.copyto(y, target, casting="unsafe")
    xp.copyto(lse, xp.log(denominator) + top)


def _weights_and_cotangent(g: Any, q: Any, k: Any, v: Any, mask: Any, y: Any, lse: Any, is_causal: bool, scale: float,
                           state: Any, dropout_p: Any) -> tuple[Any, Any]:  # fmt: skip
    """The weights after dropout and the cotangent of the scores, in the accumulator's dtype. y: in its own dtype."""
    shape = weights_shape(*(x.shape for x in (q, k, mask) if x is not None))
    p = OPS["exp"](_scores(q, k, mask, is_causal, scale) - lse)
    dp = _dropped(OPS["matmul"](g, transpose_last(v)), shape, state, dropout_p)
    # The sum of p * dp along a row equals the sum of g * y, except for the rounding of a half-precision y.
    weighted = p * dp if y.dtype.itemsize == 2 else g * y
    return _dropped(p, shape, state, dropout_p), p * (dp - OPS["sum"](weighted, (weighted.ndim - 1,), True, None))


def _backward(g: Any, q: Any, k: Any, v: Any, mask: Any, y: Any, lse: Any, is_causal: bool, scale: float, state: Any,
              dropout_p: Any) -> Any:  # fmt: skip
    """Cotangents of q, k and v."""
    d = accumulator(q.dtype)
    gw, qw, kw, vw = (cast_to(t, d) for t in (g, q, k, v))
    mask = mask if mask is None or mask.dtype is dtypes.bool_ else cast_to(mask, d)
    weights, ds = _weights_and_cotangent(gw, qw, kw, vw, mask, y, lse, is_causal, scale, state, dropout_p)
    gq = OPS["matmul"](ds, kw) * scale
    gk = OPS["matmul"](transpose_last(ds), qw) * scale
    gv = OPS["matmul"](transpose_last(weights), gw)
    return tuple(cast_to(sum_to(t, x.shape), x.dtype) for t, x in ((gq, q), (gk, k), (gv, v)))


def _sum_leading(xp: Any, a: Any, shape: tuple[int, ...]) -> Any:
    if a.shape == shape:
        return a
    lead = a.ndim - len(shape)
    axes = tuple(range(lead)) + tuple(i + lead for i, n in enumerate(shape) if n == 1 and a.shape[i + lead] != 1)
    return total(xp, a, axes).reshape(shape)


def _backward_kernel(xp: Any, out: Any, g: Any, q: Any, k: Any, v: Any, mask: Any, y: Any, lse: Any, is_causal: bool,
                     scale: float, state: Any, dropout_p: Any) -> None:  # fmt: skip
    gq, gk, gv = out
    if g.size == 0 or k.shape[-2] == 0:
        for t in out:
            t.fill(0)
        return
    g, q, k, v = widen(g), widen(q), widen(k), widen(v)
    p = _masked_scores(xp, q, k, mask, is_causal, scale)
    dropped = _dropped_weights(xp, p, state, dropout_p)
    p = xp.subtract(p, lse, out=p if p.shape[:-1] == lse.shape[:-1] else None)  # values may have more leading dims
    xp.exp(p, out=p)
    weights = p if state is None else p.copy()
    _drop(xp, weights, dropped, dropout_p)
    xp.copyto(gv, _sum_leading(xp, matmul(xp, xp.swapaxes(weights, -1, -2), g), gv.shape), casting="unsafe")
    ds = matmul(xp, g, xp.swapaxes(v, -1, -2))
    _drop(xp, ds, dropped, dropout_p)
    ds -= total(xp, g * y if is_wide(y) else p * ds, -1)  # a half-precision y is rounded
    ds *= p
    ds *= scale
    xp.copyto(gq, _sum_leading(xp, matmul(xp, ds, k), gq.shape), casting="unsafe")
    xp.copyto(gk, _sum_leading(xp, matmul(xp, xp.swapaxes(ds, -1, -2), q), gk.shape), casting="unsafe")


def _like(x: SpecLike) -> TensorSpec:
    return TensorSpec.contiguous(tuple(x.shape), x.dtype, x.device)


def _vjp(gs: Any, q: Any, k: Any, v: Any, mask: Any, ys: Any, is_causal: bool, scale: float, state: Any, dropout_p: Any,
         needs: Any) -> Any:  # fmt: skip
    g = gs[0]
    y, lse = ys
    if _native.grad_enabled():  # a second derivative goes through the normaliser too
        y, lse = _attention(q, k, v, mask, is_causal, scale, state, dropout_p)
    gq = gk = gv = gm = None
    if any(needs[:3]):
        gq, gk, gv = OPS["attention_backward"](g, q, k, v, mask, y, lse, is_causal, scale, state, dropout_p)
    if needs[3] and mask is not None:
        d = accumulator(q.dtype)
        gw, qw, kw, vw, mw = (cast_to(t, d) for t in (g, q, k, v, mask))
        _, ds = _weights_and_cotangent(gw, qw, kw, vw, mw, y, lse, is_causal, scale, state, dropout_p)
        gm = sum_to(ds, mask.shape)
    return gq, gk, gv, gm


def _samples(make: Any) -> Iterator[tuple[Any, ...]]:
    yield make(2, 3, 4), make(2, 5, 4), make(2, 5, 6), None, False, 0.5, None, 0.0
    yield make(2, 2, 4, 3), make(2, 2, 4, 3), make(2, 2, 4, 3), None, True, 0.6, None, 0.0
    yield make(2, 3, 4), make(2, 3, 4), make(2, 3, 4), make(3, 3), False, 0.5, make.state(), 0.4
    yield make(3, 4), make(5, 4), make(2, 5, 2), make.bool(3, 5), False, 0.5, make.state(), 0.25


def _backward_samples(make: Any) -> Iterator[tuple[Any, ...]]:
    for q, k, v, mask, causal, scale, state, p in _samples(make):
        y, lse = _attention(q.detach(), k.detach(), v.detach(), None if mask is None else mask.detach(), causal, scale, state, p)
        yield make(*y.shape), q, k, v, mask, y, lse, causal, scale, state, p


def sdpa_flop_count(query_shape: Sequence[int], key_shape: Sequence[int], value_shape: Sequence[int]) -> int:
    """Operations of both products of attention: (b, h, t, d), (b, h, s, d) and (b, h, s, e)."""
    *lead, queries, d = query_shape
    keys, e = value_shape[-2:]
    return math.prod(lead) * queries * keys * 2 * (d + e)


def sdpa_backward_flop_count(grad_out_shape: Sequence[int], query_shape: Sequence[int], key_shape: Sequence[int],
                             value_shape: Sequence[int]) -> int:  # fmt: skip
    """Operations of five products: the recomputed scores, and two for each product of forward."""
    *lead, queries, d = query_shape
    keys, e = value_shape[-2:]
    return math.prod(lead) * queries * keys * 2 * (3 * d + 2 * e)


_DROPOUT = "bool is_causal, float scale, Tensor? state, Tensor? dropout_p"  # the last parameters of both ops
ATTENTION_BACKWARD = declare(
    f"attention_backward(Tensor g, Tensor q, Tensor k, Tensor v, Tensor? mask, Tensor y, Tensor lse, {_DROPOUT}) -> "
    "(Tensor, Tensor, Tensor)", Kind.COMPOSITE, numbers="dropout_p",
    meta=lambda g, q, k, v, mask, y, lse, is_causal, scale, state, dropout_p: (_like(q), _like(k), _like(v)),
    decompose=_backward, kernel=_backward_kernel, samples=_backward_samples,
    flops=lambda g, q, k, v, *_, out_shape: sdpa_backward_flop_count(g, q, k, v))  # fmt: skip
ATTENTION = declare(
    f"attention(Tensor q, Tensor k, Tensor v, Tensor? mask, {_DROPOUT}) -> (Tensor, Tensor)", Kind.COMPOSITE, numbers="dropout_p",
    meta=_meta, decompose=_attention, kernel=_kernel, vjp={"q, k, v, mask": _vjp}, nondifferentiable_outputs=(1,),
    in_opmath=False, samples=_samples, precision=LOWER, flops=lambda q, k, v, *_, out_shape: sdpa_flop_count(q, k, v))  # fmt: skip
