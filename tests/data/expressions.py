"""Expressions that are evaluated under torch once (make_reference.py) and under eager in every test run.

Each is Python over the names that `inputs` makes; `T` is the library, `F` its nn.functional, `put`
assigns into a copy: `put(x, key, value)` is a copy of x after `copy[key] = value`.
"""
from __future__ import annotations

from typing import Any

import numpy as np


def _wave(*shape: int, seed: float = 1.0) -> Any:
    """Values in [-2, 2] without ties, the same everywhere."""
    n = int(np.prod(shape))
    return (2 * np.sin(np.arange(1, n + 1) * 1.7 * seed + 0.3)).reshape(shape).astype(np.float32)


def inputs(T: Any) -> dict[str, Any]:  # noqa: N803 - stands for a module
    """The names that expressions use, made with the library `T`."""
    t = T.from_numpy

    def put(x: Any, key: Any, value: Any) -> Any:
        y = x.clone()
        y[key] = value
        return y

    def grad(f: Any, *xs: Any) -> Any:
        """Gradients of the weighted sum of f's result in its arguments."""
        leaves = [x.detach().clone().requires_grad_(True) for x in xs]
        y = f(*leaves)
        if y.is_complex():
            y = T.view_as_real(y)
        weights = T.linspace(0.5, 1.5, y.numel()).reshape(y.shape).to(y.dtype)
        return T.autograd.grad((y * weights).sum(), leaves)

    return {
        "T": T, "grad": grad, "c": t((_wave(2, 3) + 1j * _wave(2, 3, seed=0.6)).astype(np.complex64)), "F": getattr(getattr(T, "nn", T), "functional", T), "put": put,
        "x": t(_wave(3, 4)), "y": t(_wave(3, 4, seed=0.7)), "xt": t(_wave(4, 3)).t(), "x3": t(_wave(2, 3, 4)),
        "x3p": t(_wave(4, 2, 3)).permute(1, 2, 0), "x4": t(_wave(2, 3, 4, 5)), "v": t(_wave(5)), "s": t(_wave(1)[0:1]).reshape(()),
        "e": t(np.zeros((0, 4), np.float32)), "q": t(np.array([3, 1, 2, 3, 0, 1, 3], np.int64)),
        "iq": t(np.array([[2, 0, 1, 1], [0, 2, 2, 0]], np.int64)), "i2": t(np.array([2, 0], np.int64)),
        "n2": t(np.array([-1, 1], np.int64)), "i0": t(np.array(1, np.int64)), "k": t(np.arange(12, dtype=np.int64).reshape(3, 4)),
        "m": t(_wave(3, 4) > 0), "m3": t(np.array([True, False, True])), "m4": t(np.array([False, True, True, True])),
        "d": t(_wave(3, 4).astype(np.float64)), "h": t(_wave(3, 4).astype(np.float16)), "ties": t(np.array([[1, 3, 2, 3], [2, 2, 1, 1]], np.float32)),
        "nan": t(np.array([1.0, np.nan, -2.0, 5.0], np.float32)), "sq": t(_wave(3, 3) + 3 * np.eye(3, dtype=np.float32)),
        "spd": t((lambda a: a @ a.T + np.eye(3, dtype=np.float32))(_wave(3, 3))), "w": t(_wave(6, 3, 3, 2, seed=0.9)),
    }  # fmt: skip


GETITEM = """
x[1] | x[-1] | x[1, 2] | x[1:3] | x[:, 1] | x[::2, 1:] | x[..., 1] | x[None] | x[:, None, 1:] | x[1, ..., None] | x[()] | x[...]
x[-2:] | x[5:] | x[2:1] | x[i2] | x[:, i2] | x[i2, i2] | x[iq] | x[n2] | x[i0] | x[i0, 1:] | x[[0, 2]] | x[[0, 2], [1, 3]]
x[[True, False, True]] | x[m] | x[m3] | x[:, m4] | x[m3, 1] | x[m3, :2] | x[1, m4] | x[True] | x[False] | x[None, True].shape
x3[i2 * 0, :, i2] | x3[:, i2, i2] | x3[0, :, i2] | x3[..., i2] | x3[i2 * 0, ..., i2] | x3[:, iq] | x3[:, None, i2] | x3[None, :, i2, 1:]
x3[1, i2, [0, 1]] | x3[:, m3] | x3[:, m] | x3[0, m] | x3p[:, i2] | x3p[i2 * 0] | x3p[:, :, i2] | x3p[:, iq.t()] | xt[i2] | xt[:, i2]
x[range(2)] | x[(0, 1)] | x[[[0, 1], [1, 2]]] | x[[slice(0, 1), 1]] | x[T.tensor([], dtype=T.long)] | x[[]] | x[e[:, 0].long()]
x[i2[:, None], i2] | x[i2[:, None], :] | x[T.tensor(True)] | s[...] | s[None] | s[()] | s[True] | e[:, 1] | e[i2[:0]] | v[q[:0]] | k[k > 5]
x[9] | x[0, 0, 0] | x[1.5] | x[::-1] | x[i2 + 9] | x[m[:2]] | x[m4] | x[i2, iq[0]] | s[0] | x[i2.float()] | x[9, 9] | x[:, m3]
x.to(T.int8)[i2] | h[i2] | x3[i2 * 0, 1] | x3[1, :, i2] | x3[i2[:1] * 0, :, i2] | x3[:, 1, i2] | x[i2.to(T.int32)]
x4[:, i2, :, i2] | x4[i2 * 0, i2] | x4[:, :, i2, i2] | x4[1:, i2, None, 2] | x4[i2 * 0, :, :, i2] | x4[0, i2, :, 1:3] | x[None, None, i2]
"""
SETITEM = """
put(x, 0, 7) | put(x, (slice(None), 1), v[:3]) | put(x, ..., 0) | put(x, slice(0, 2), x[1:]) | put(x, i2, 5) | put(x, i2, x[:2]) | put(x, m, 0)
put(x, m, s) | put(x, m, v.repeat(3)[:int(m.sum())]) | put(x, m3, -1.5) | put(x, (slice(None), m4), 2) | put(x, (m3, 1), 9) | put(x, (i2, i2), v[:2])
put(x, (slice(None), i2), v[:3, None]) | put(x3, (0, slice(None), i2), 1) | put(x3, (slice(None), iq), 3) | put(k, m, 2.7) | put(k, 1, x[0])
put(x, 1, d[0]) | put(x, (None, 1), 4) | put(x, True, 3) | put(x, False, 3) | put(x, (slice(None), slice(None, None, 2)), x[:, :2]) | put(x, i0, 8)
put(x, [0, 2], 1) | put(x, (1, [0, 3]), T.tensor([1., 2.])) | put(x, slice(0, 1), T.ones(1, 1, 4)) | put(m, 1, True) | put(x, n2, -9)
put(xt, (slice(None), 0), 3) | put(xt, i2, 1) | put(x3p, (slice(None), i2), 2) | put(e, slice(None), 1) | put(x, slice(0, 1), T.zeros(2, 2))
put(x, i2, T.zeros(3, 3)) | put(x, 9, 1) | put(x, m, T.zeros(99)) | put(s, ..., 3) | put(s, (), 4) | put(x, i2, T.ones(1, 2, 4)) | put(x, m3, x[:1])
put(x, (0, 0), i0) | put(x, 0, [1., 2., 3., 4.]) | put(k, (i2, i2), 1.9) | put(x, m, T.tensor(2.5, dtype=T.float64)) | put(x, x > 1, 1)
"""
GATHER = """
x.gather(0, iq) | x.gather(1, iq) | xt.gather(0, iq) | x3.gather(2, x3.argsort(2)) | T.gather(x, -1, k % 4) | s.gather(0, i0 * 0) | x.gather(0, iq + 9)
x.gather(0, i2) | x.gather(0, iq.float()) | x.gather(0, T.zeros(3, 9, dtype=T.long)) | x.gather(1, T.zeros(3, 0, dtype=T.long))
x.scatter(0, iq[:1], y) | x.scatter(1, iq[:, :1], 9.) | T.zeros(3, 4).scatter_(0, iq[:1], 1) | x.scatter(0, iq[:1], y, reduce='add')
x.scatter(0, iq[:1], 2., reduce='multiply') | x.scatter(0, iq + 7, y) | x.scatter(0, iq, d) | x.scatter_add(0, iq, y) | xt.scatter_add(1, iq, y)
x.scatter_reduce(0, iq, y, 'sum') | x.scatter_reduce(0, iq, y, 'prod', include_self=False) | x.scatter_reduce(0, iq, y, 'mean') | k.scatter_reduce(0, iq, k, 'mean')
x.scatter_reduce(0, iq, y, 'amax', include_self=False) | x.scatter_reduce(1, iq, y, 'amin') | x.scatter_reduce(0, iq, y, 'median')
x.index_select(0, i2) | x.index_select(1, q) | xt.index_select(-1, i2) | x.index_select(0, i2 + 9) | x.index_select(0, iq) | x.index_select(0, i2.float()) | s.index_select(0, i0 * 0)
x.index_add(0, i2, y[:2]) | x.index_add(1, q, T.ones(3, 7), alpha=2) | x.index_add(0, i2, y) | x.index_add(0, i2, d[:2]) | x.index_copy(0, i2, y[:2]) | x.index_copy(0, i2, y)
x.index_fill(0, i2, 3) | x.index_fill(1, i2, s) | x.index_fill(0, i2, y) | x.index_fill(0, n2, 2) | x.index_put((i2,), y[0]) | x.index_put((i2 * 0,), y[:2], accumulate=True)
x.index_put((m,), T.tensor(3.)) | x3.index_put((i2 * 0, T.tensor([1, 1])), y[:2], accumulate=True) | x.index_put((i2,), d[0])
x.masked_fill(m, 3) | xt.masked_fill(m, -1) | x.masked_fill(m3[:, None], s) | k.masked_fill(m, 2.9) | x.masked_fill(m, y) | x.masked_fill(k, 1) | x[:, :1].masked_fill(m, 0)
x.masked_scatter(m, y) | x.masked_scatter(m, v[:1]) | x.masked_select(m) | x.masked_select(m4) | x3.masked_select(m) | x.masked_select(k > 2)
T.nonzero(m) | k.nonzero() | m3.nonzero(as_tuple=True) | s.nonzero() | T.argwhere(m) | x.take(q) | x.take(iq) | x.take(q + 90) | x.take(n2) | x.put(i2, v[:2])
x.put(i2 * 0, v[:2], accumulate=True) | T.take_along_dim(x, x.argsort(1), 1) | T.take_along_dim(x, k[:1] % 3, 0) | T.take_along_dim(x, q) | T.where(m)
F.embedding(iq, x) | F.embedding(q % 3, xt) | F.embedding(iq + 9, x) | F.embedding(i0, x) | F.one_hot(q) | F.one_hot(iq, 5)
"""
JOIN = """
T.cat([x, y]) | T.cat([x, y], 1) | T.cat([x, xt], -1) | T.cat([x, e]) | T.cat([T.empty(0), x]) | T.cat((k, x)) | T.cat([x, d]) | T.cat([]) | T.cat([x, v]) | T.cat([x, x[:, :2]])
T.cat([s, s]) | T.cat([x, x], 5) | T.cat([x4.to(memory_format=T.channels_last)] * 2, 1) | T.concat([x, y], dim=0) | T.stack([x, y]) | T.stack([x, y], -1) | T.stack([x, xt], 1) | T.stack([s, s]) | T.stack([x, v]) | T.stack([])
T.hstack([x, y]) | T.hstack([v, v]) | T.vstack([x, y]) | T.vstack([v, v]) | T.dstack([x, y]) | T.column_stack([v, v]) | T.block_diag(x, y[:1]) | T.hstack([])
x.split(2) | x.split(3, 1) | x.split([1, 3], -1) | x.split(0) | x.split([1, 1]) | e.split(2) | x.chunk(2) | x.chunk(5, 1) | v.chunk(3) | x.chunk(0) | T.tensor_split(v, 3) | T.tensor_split(v, [1, 3]) | v.tensor_split(0)
x.unbind() | x.unbind(1) | s.unbind() | T.hsplit(x, 2) | T.vsplit(x, [1]) | T.meshgrid(v, v[:2], indexing='ij') | T.meshgrid(v, v[:2], indexing='xy') | T.meshgrid(x)
T.broadcast_tensors(x, v[:4]) | T.broadcast_to(v, (2, 5)) | T.broadcast_shapes((3, 1), (4,)) | T.cartesian_prod(v[:2], v[:3]) | T.combinations(v[:4]) | T.combinations(v[:3], 2, True) | T.atleast_2d(v) | T.atleast_3d(x) | T.atleast_1d(s)
"""
SHAPE = """
x.flip(0) | x.flip(0, 1) | x.flip([1]) | x3p.flip(-1) | x.flip(5) | x.flip(0, 0) | T.fliplr(x) | T.flipud(v) | x.roll(1) | x.roll(1, 0) | x.roll((1, -1), (0, 1)) | xt.roll(2, 1) | x.roll(1, (0, 1)) | T.rot90(x) | T.rot90(x, 2) | T.rot90(x3, -1, (1, 2))
x.tril() | x.triu(1) | xt.tril(-1) | x3p.triu() | v.tril() | k.triu() | m.tril() | T.tril_indices(3, 4) | T.triu_indices(3, 3, 1) | T.diag(v) | T.diag(x) | T.diag(x, 1) | T.diag(v, -2) | T.diag_embed(x) | T.diag_embed(x, 1, 0, 2) | T.diagflat(x[:1]) | T.trace(x)
x.repeat(2, 1) | v.repeat(2, 3) | x.repeat(2) | x.tile(2) | x.tile((2, 1, 2)) | x.repeat_interleave(2) | x.repeat_interleave(2, 0) | x.repeat_interleave(T.tensor([1, 0, 2]), 0) | T.repeat_interleave(q) | x.repeat_interleave(T.tensor([1, 2]), 0) | x.repeat_interleave(2, dim=-1)
F.pad(x, (1, 2)) | F.pad(x, (1, 1, 0, 2), value=3.) | F.pad(x, (-1, 2)) | F.pad(x3, (1, 2), mode='reflect') | F.pad(x4, (1, 2, 0, 1), mode='replicate') | F.pad(x3, (2, 1), mode='circular') | F.pad(x, (1,)) | F.pad(x, (5, 5), mode='reflect') | F.pad(k, (0, 1)) | F.pad(x4.to(memory_format=T.channels_last), (1, 1)) | F.pad(m, (1, 0)) | F.pad(x, (-3, -3))
T.slice_scatter(x, y[:2], 0, 1) | T.slice_scatter(xt, y[:, ::2], 1, 0, None, 2) | T.slice_scatter(x, y, 0, 1) | T.select_scatter(x, v[:4], 0, 1) | T.diagonal_scatter(x, v[:3]) | T.as_strided_scatter(x, v[:3], (3,), (4,), 1) | T.zeros(3, 3).fill_diagonal_(2) | T.zeros(7, 3).fill_diagonal_(1, wrap=True)
x.diff() | x.diff(dim=0) | x.diff(2) | m.diff() | T.trapezoid(x) | T.trapezoid(x, v[:4]) | T.cumulative_trapezoid(v, dx=2) | T.vander(v[:3]) | T.vander(v[:3], 2, True) | x.clone().resize_(2, 3) | x.clone().resize_(3, 5).flatten()[:12] | xt.clone().resize_(4, 3)
x.movedim(0, 1) | x3.movedim((0, 2), (1, 0)) | x3.unflatten(2, (2, 2)) | x3.unflatten(2, (3, 2)) | x.narrow(1, 1, 2) | x.narrow(0, 2, 5) | x.unfold(1, 2, 1) | x3.swapaxes(0, 2) | x3.flatten(1) | x3.flatten(0, 1) | s.flatten() | x3.squeeze() | x[None].squeeze(0) | x3.mT | x.T | x.view(4, 3) | xt.view(12) | x.view(5) | xt.reshape(-1) | x.expand(2, 3, 4) | v.expand(5, 5) | x.expand(4, 4) | x.view(-1, 2) | x3.permute(2, 0, 1) | x3.transpose(0, 2) | x.t() | x3.diagonal(0, 1, 2) | x.as_strided((2, 2), (1, 2), 1)
"""
SORT = """
x.sort() | x.sort(0) | x.sort(descending=True) | xt.sort(1) | ties.sort(dim=1, stable=True) | T.sort(ties, stable=True, dim=1, descending=True) | nan.sort() | nan.sort(descending=True) | k.sort(1, descending=True) | s.sort() | e.sort(0) | x.argsort() | x.argsort(0, True) | T.msort(x) | h.sort(0)
x.topk(2) | x.topk(2, 0) | x.topk(2, largest=False) | T.arange(200.).topk(3) | T.arange(200.).flip(0).topk(3, largest=False) | nan.topk(2) | x.topk(9) | k.topk(2, 1) | x.topk(0) | s.topk(1) | x.kthvalue(2) | x.kthvalue(1, 0, True) | x.kthvalue(9)
x.median() | x.median(0) | x.median(1, True) | v.median() | nan.median() | nan.nanmedian() | nan.median(0) | nan.nanmedian(0) | x.mode(1)[0] | k.mode(0) | q.mode() | x.quantile(0.3) | x.quantile(T.tensor([0.1, 0.5]), dim=1) | x.quantile(0.5, dim=0, keepdim=True) | nan.quantile(0.5) | nan.nanquantile(0.5) | x.quantile(0.4, interpolation='nearest') | x.quantile(0.4, dim=1, interpolation='midpoint') | x.quantile(2.)
q.unique() | q.unique(return_counts=True) | T.unique(q, return_inverse=True) | iq.unique(dim=0) | q.unique_consecutive() | T.unique_consecutive(q, return_inverse=True, return_counts=True) | T.unique(iq, return_inverse=True, return_counts=True) | ties.unique()
T.searchsorted(v.sort()[0], x) | T.searchsorted(v.sort()[0], x, right=True) | T.searchsorted(x.sort(1)[0], y) | T.searchsorted(v.sort()[0], 0.5) | T.searchsorted(v.sort()[0], x, side='right', out_int32=True) | T.bucketize(x, v.sort()[0]) | q.bincount() | q.bincount(minlength=9) | T.bincount(q, T.arange(7.)) | T.bincount(-q) | x.histc(4) | x.histc(5, -1, 1) | T.isin(q, T.tensor([1, 3])) | T.isin(q, 3) | T.isin(q, T.tensor([0]), invert=True)
x.cumsum(0) | x.cumsum(1) | k.cumsum(1) | m.cumsum(0) | m.cumsum(0, dtype=T.float32) | xt.cumsum(0) | s.cumsum(0) | e.cumsum(0) | h.cumsum(1) | x.cumprod(1) | k.cumprod(1) | x.cummax(0) | x.cummin(1) | nan.cummax(0) | ties.cummax(1) | ties.cummin(1) | k.cummax(0) | x.logcumsumexp(0) | x.cumsum(7) | x.cumsum(-1)
x.max(1) | x.min(0) | x.max(0, keepdim=True) | x.argmax() | x.argmin(1) | x.max() | nan.max() | nan.argmax() | ties.argmax(1) | T.aminmax(x) | x.aminmax(dim=0) | T.maximum(x, y) | T.max(x, y) | x.amax((0, 1)) | nan.amax() | x.max(0, True).indices | ties.max(1).indices
"""
POOL = """
F.conv2d(x4, w) | F.conv2d(x4, w, stride=2, padding=1) | F.conv2d(x4, w, padding=(2, 1), dilation=(1, 2)) | F.conv2d(x4, w, v.repeat(2)[:6]) | F.conv2d(x4, w[:3, :1], groups=3, padding='same') | F.conv2d(x4, w[:, :1], groups=3) | F.conv2d(x4[0], w) | F.conv2d(x4, w.repeat(1, 2, 1, 1)) | F.conv2d(x4, w, padding='valid') | F.conv2d(x, w)
F.conv1d(x3, T.ones(5, 3, 2)) | F.conv1d(x3, T.ones(5, 3, 2), stride=2, padding=3) | F.conv1d(x3, w[:3, :1, 0], groups=3) | F.conv1d(x3[0], T.ones(5, 3, 1)) | F.conv1d(x3, T.ones(5, 3, 9)) | F.conv3d(x4[None], T.ones(2, 2, 2, 2, 2)) | F.conv3d(x4[None], T.ones(2, 2, 1, 2, 3), stride=(1, 2, 1), padding=1)
F.conv_transpose2d(x4, w[:3]) | F.conv_transpose2d(x4, w[:3], stride=2, padding=1, output_padding=1) | F.conv_transpose2d(x4, w[:3, :2], groups=3, dilation=2) | F.conv_transpose1d(x3, T.ones(3, 2, 3), stride=2) | F.conv_transpose2d(x4, w[:3], v[:3]) | F.conv_transpose2d(x4, w) | F.conv_transpose3d(x4[None], T.ones(2, 3, 2, 2, 2))
F.conv2d(x4.to(memory_format=T.channels_last), w) | F.conv2d(x4.half(), w.half()).shape | F.conv2d(x4, w.double()) | F.conv2d(x4[:0], w)
F.max_pool2d(x4, 2) | F.max_pool2d(x4, 3, 1, 1) | F.max_pool2d(x4, 2, ceil_mode=True) | F.max_pool2d(x4, 2, dilation=2, stride=1) | F.max_pool2d(x4, 2, return_indices=True) | F.max_pool1d(x3, 2) | F.max_pool3d(x4, 2) | F.max_pool2d(x4, 9) | F.max_pool2d(x4[0], (2, 3), (1, 2)) | F.max_pool2d(x4.to(memory_format=T.channels_last), 2) | F.max_pool2d(x4, 2, padding=2)
F.avg_pool2d(x4, 2) | F.avg_pool2d(x4, 3, 2, 1) | F.avg_pool2d(x4, 3, 2, 1, count_include_pad=False) | F.avg_pool2d(x4, 2, ceil_mode=True) | F.avg_pool2d(x4, 2, divisor_override=3) | F.avg_pool1d(x3, 2) | F.avg_pool3d(x4, 2) | F.avg_pool2d(x4, 3, 2, 1, ceil_mode=True) | F.lp_pool2d(x4.abs(), 2, 2)
F.adaptive_avg_pool2d(x4, 1) | F.adaptive_avg_pool2d(x4, (2, 3)) | F.adaptive_avg_pool2d(x4, (None, 2)) | F.adaptive_avg_pool1d(x3, 3) | F.adaptive_max_pool2d(x4, (2, 3)) | F.adaptive_max_pool1d(x3, 2, return_indices=True) | F.adaptive_avg_pool3d(x4, 2)
F.interpolate(x4, scale_factor=2) | F.interpolate(x4, size=(3, 7)) | F.interpolate(x4, scale_factor=2, mode='bilinear') | F.interpolate(x4, size=(3, 7), mode='bilinear', align_corners=True) | F.interpolate(x3, scale_factor=1.5, mode='linear') | F.interpolate(x4, size=(7, 9), mode='bicubic') | F.interpolate(x4, size=(7, 9), mode='bicubic', align_corners=True) | F.interpolate(x4[None], size=(3, 3, 3), mode='trilinear') | F.interpolate(x4, size=(2, 2), mode='area') | F.interpolate(x4, size=6, mode='nearest-exact') | F.interpolate(x4, scale_factor=0.5, mode='bilinear', antialias=True) | F.interpolate(x4, scale_factor=(1.3, 0.7)) | F.interpolate(x4, scale_factor=1.3, mode='bilinear', recompute_scale_factor=True) | F.interpolate(x4) | F.interpolate(x4, size=3, scale_factor=2) | F.interpolate(x3, scale_factor=2, mode='bilinear')
F.unfold(x4, 2) | F.unfold(x4, (2, 3), padding=1, stride=2) | F.fold(F.unfold(x4, 2), (4, 5), 2) | F.pixel_shuffle(T.arange(32.).reshape(1, 8, 2, 2), 2) | F.pixel_unshuffle(x4[..., :4], 2) | F.grid_sample(x4, T.linspace(-1.2, 1.2, 36).reshape(2, 3, 3, 2), align_corners=False) | F.grid_sample(x4, T.linspace(-1.2, 1.2, 36).reshape(2, 3, 3, 2), mode='nearest', align_corners=True) | F.grid_sample(x4, T.linspace(-1.5, 1.5, 36).reshape(2, 3, 3, 2), padding_mode='border', align_corners=True) | F.grid_sample(x4, T.linspace(-1.5, 1.5, 36).reshape(2, 3, 3, 2), padding_mode='reflection', align_corners=False) | F.affine_grid(T.arange(12.).reshape(2, 2, 3), (2, 3, 2, 4), align_corners=False) | F.affine_grid(T.arange(12.).reshape(2, 2, 3), (2, 3, 2, 4), align_corners=True)
"""
LINALG = """
T.linalg.inv(sq) | sq.inverse() | T.linalg.det(sq) | sq.det() | sq.logdet() | T.slogdet(sq) | T.linalg.slogdet(sq) | T.linalg.solve(sq, x) | T.linalg.solve(sq, v[:3]) | T.linalg.cholesky(spd) | T.linalg.cholesky(spd, upper=True) | T.cholesky_solve(x, T.linalg.cholesky(spd)) | T.cholesky_inverse(T.linalg.cholesky(spd)) | T.linalg.qr(x)[1].abs() | T.linalg.svdvals(x) | T.linalg.svd(x)[1] | T.svd(x)[1] | T.linalg.svd(x, full_matrices=False)[0].abs() | T.linalg.eigvalsh(spd) | T.linalg.eigh(spd)[0] | T.linalg.eigh(spd)[1].abs() | T.linalg.pinv(x) | T.linalg.matrix_rank(x) | T.linalg.lstsq(x.t(), T.ones(4, 2)).solution | T.linalg.solve_triangular(sq.triu(), x, upper=True) | T.linalg.solve_triangular(sq.tril(), x, upper=False, unitriangular=True) | T.linalg.solve_triangular(sq.tril(), y.t(), upper=False, left=False)
T.linalg.norm(x) | T.linalg.norm(x, 2) | T.linalg.norm(v) | T.linalg.norm(x, 1) | T.linalg.norm(x, 'nuc') | T.linalg.norm(x, float('inf'), dim=1) | T.linalg.norm(x, dim=(0, 1)) | T.linalg.vector_norm(x) | T.linalg.vector_norm(x, 3, dim=1) | T.linalg.vector_norm(x, 0) | T.linalg.vector_norm(x, float('-inf'), dim=0, keepdim=True) | T.linalg.matrix_norm(x) | T.linalg.matrix_norm(x, -2) | T.linalg.matrix_norm(x3, float('inf')) | x.norm() | x.norm(1) | x.norm(dim=1) | x.norm(3, 0, True) | x.norm(p='fro') | T.norm(v, float('inf')) | x.norm(p='nuc') | T.linalg.matrix_power(sq, 3) | T.linalg.matrix_power(sq, -1) | T.matrix_power(sq, 0) | T.linalg.multi_dot([x, x.t(), x]) | T.linalg.cross(x[:, :3], y[:, :3]) | T.cross(x[:, :3], y[:, :3], dim=1) | T.linalg.vecdot(x, y) | T.linalg.diagonal(x) | T.cdist(x, y) | T.cdist(x, y, p=1) | T.cdist(x, y, p=float('inf')) | T.cov(x) | T.corrcoef(x) | T.renorm(x, 2, 0, 1.) | T.kron(x, y[:1, :2]) | T.tensordot(x, y, ([0], [0])) | T.tensordot(x3, x, ([1, 2], [0, 1])) | T.linalg.matrix_exp(sq) | T.chain_matmul(x, x.t(), x) | T.inner(x, y) | T.vdot(v, v) | T.linalg.eigvals(sq.triu()).abs().sort()[0] | T.linalg.lu_factor(sq)[1] | T.lu_solve(x, *T.linalg.lu_factor(sq)) | T.linalg.cond(spd) | T.pinverse(sq)
T.einsum('ij,kj->ik', x, y) | T.einsum('ij->ji', x) | T.einsum('ii->i', sq) | T.einsum('ii', sq) | T.einsum('bij,bjk->bik', x3, x3.mT) | T.einsum('...ij,...kj->...ik', x3, x3) | T.einsum('i,j->ij', v, v) | T.einsum('ij,ij->', x, y) | T.einsum('ij,kj', x, y) | T.einsum('bij,ij->b', x3, x) | T.einsum('ij,jk,kl->il', x, x.t(), x) | T.einsum(x, [0, 1], y, [2, 1], [0, 2]) | T.einsum('ij,jk', x, y) | T.einsum('ijk->ki', x3) | T.einsum('ij,j', x, v[:4])
T.linalg.inv(x) | T.linalg.inv(T.zeros(2, 2)) | T.linalg.cholesky(-spd) | T.linalg.solve(T.zeros(2, 2), T.zeros(2, 2)) | T.linalg.det(x) | T.linalg.inv(k[:3, :3]) | T.linalg.norm(k)
"""
COMPLEX = """
c.real | c.imag | c.conj() + 0 | c.abs() | c.angle() | c * c | c / (c + 1) | c + x[:2, :3] | c * 2j | T.view_as_real(c) | T.view_as_complex(x3.reshape(2, 6, 2)) | T.polar(x.abs(), y) | T.complex(x, y) | c.exp() | c @ c.mH | c.sum() | c.is_complex() | x.real | x.is_complex() | T.view_as_complex(x3[..., :3]) | T.view_as_real(x) | c.mean(1) | c[0, 1:] | c.t() | c.sgn() | x.angle() | c == c | c.tolist() | c.isreal()
grad(lambda c: c * c, c) | grad(lambda c: c.exp(), c) | grad(lambda c: c.abs(), c) | grad(lambda c: c.real * c.imag, c) | grad(lambda c: c.conj() * c, c) | grad(lambda c: c / (c + 2), c) | grad(lambda c, x: c * x[:2, :3], c, x) | grad(lambda c: c @ c.mT, c) | grad(lambda x: T.view_as_complex(x.reshape(3, 2, 2)) * 1j, x) | grad(lambda x, y: T.polar(x * x, y), x, y) | grad(lambda x, y: T.complex(x, y) ** 2, x, y) | grad(lambda c: T.view_as_real(c) ** 2, c) | grad(lambda c: c.angle(), c) | grad(lambda c: c.sqrt(), c)
grad(lambda q, f: T.view_as_real(T.view_as_complex(q.reshape(2, 3, 2, 2)) * T.polar(T.ones(3, 2), f)).flatten(2), x3, x[:, :2])
"""
GRADS = """
grad(lambda x: x[i2], x) | grad(lambda x: x[iq], x) | grad(lambda x: x[m], x) | grad(lambda x, y: put(x, i2, y[:2]), x, y) | grad(lambda x: put(x, m, 0.), x) | grad(lambda x: x.gather(0, iq), x) | grad(lambda x, y: x.scatter_add(0, iq, y), x, y[:2]) | grad(lambda x, y: x.scatter(0, iq[:1], y), x, y[:1])
grad(lambda x, y: x.scatter_reduce(0, iq, y, 'amax'), x, y[:2]) | grad(lambda x, y: x.scatter_reduce(0, iq, y, 'prod'), x, y[:2]) | grad(lambda x, y: x.scatter_reduce(0, iq, y, 'mean', include_self=False), x, y[:2]) | grad(lambda x: x.sort(1)[0], x) | grad(lambda x: x.topk(2)[0], x) | grad(lambda x: x.cumsum(1), x) | grad(lambda x: x.cumprod(1), x) | grad(lambda x: (x * (x > -1)).cumprod(1), x) | grad(lambda x: x.logcumsumexp(1), x) | grad(lambda x: x.cummax(1)[0], x)
grad(lambda x: x.median(1)[0], x) | grad(lambda x: x.median(), x) | grad(lambda x: x.max(1)[0], x) | grad(lambda x: x.max(), x) | grad(lambda x: x.amax(1), T.ones(2, 3)) | grad(lambda x: x.norm(), x) | grad(lambda x: x.norm(), x * 0) | grad(lambda x: x.norm(dim=1), x) | grad(lambda x: x.norm(3, dim=1), x) | grad(lambda x: x.norm(1), x) | grad(lambda x, y: T.cdist(x, y), x, y) | grad(lambda x: T.cdist(x, x), x) | grad(lambda x: x.quantile(0.3, dim=1), x) | grad(lambda x: x.prod(1), x * (x > 0)) | grad(lambda x: x.std(1), x)
grad(lambda x4, w: F.conv2d(x4, w, stride=2, padding=1), x4, w) | grad(lambda x4, w: F.conv2d(x4, w, padding=1), x4, w) | grad(lambda x4, w: F.conv_transpose2d(x4, w[:3], stride=2), x4, w) | grad(lambda x4, w: F.conv2d(x4, w[:, :1], groups=3, dilation=(1, 2)), x4, w) | grad(lambda x4: F.max_pool2d(x4, 2), x4) | grad(lambda x4: F.avg_pool2d(x4, 3, 2, 1), x4) | grad(lambda x4: F.adaptive_avg_pool2d(x4, (2, 3)), x4) | grad(lambda x4: F.adaptive_max_pool2d(x4, (2, 3)), x4) | grad(lambda x4: F.interpolate(x4, scale_factor=2, mode='bilinear'), x4) | grad(lambda x4: F.interpolate(x4, size=(3, 7)), x4) | grad(lambda x4: F.interpolate(x4, size=(7, 9), mode='bicubic'), x4)
grad(lambda x4, g: F.grid_sample(x4, g, align_corners=False), x4, T.linspace(-1.2, 1.2, 36).reshape(2, 3, 3, 2)) | grad(lambda x4, g: F.grid_sample(x4, g, mode='bicubic', align_corners=False), x4, T.linspace(-0.9, 0.9, 36).reshape(2, 3, 3, 2)) | grad(lambda x3: F.pad(x3, (1, 2), mode='reflect'), x3) | grad(lambda x3: F.pad(x3, (1, 2), mode='circular'), x3) | grad(lambda x4: F.unfold(x4, 2), x4) | grad(lambda x: x.unfold(1, 2, 1), x) | grad(lambda x: x.repeat(2, 3), x) | grad(lambda x: x.roll(1, 0), x) | grad(lambda x: x.tril(), x) | grad(lambda x: T.diag(x), x) | grad(lambda x, y: T.cat([x, y], 1), x, y) | grad(lambda x, y: T.stack([x, y], 1), x, y)
grad(lambda a: T.linalg.inv(a), sq) | grad(lambda a: T.linalg.det(a), sq) | grad(lambda a, b: T.linalg.solve(a, b), sq, x) | grad(lambda a: T.linalg.cholesky(a), spd) | grad(lambda a: T.linalg.qr(a)[1], sq) | grad(lambda a: T.linalg.svdvals(a), sq) | grad(lambda a: T.linalg.eigh(a)[0], spd) | grad(lambda a: T.linalg.pinv(a), sq) | grad(lambda a: T.linalg.matrix_exp(a), sq * 0.3) | grad(lambda x, y: T.einsum('ij,kj->ik', x, y), x, y) | grad(lambda a: T.linalg.slogdet(a)[1], sq) | grad(lambda a, b: T.linalg.lstsq(a, b).solution, x.t()[:, :2], y.t()[:, :2])
"""
FAMILIES = {"complex": COMPLEX, "grads": GRADS, "getitem": GETITEM, "setitem": SETITEM, "gather": GATHER, "join": JOIN, "shape": SHAPE, "sort": SORT, "pool": POOL,
            "linalg": LINALG}  # fmt: skip


def expressions() -> dict[str, list[str]]:
    """The expressions of each family, in order."""
    return {name: [part.strip() for line in text.strip().splitlines() for part in line.split(" | ")] for name, text in FAMILIES.items()}
