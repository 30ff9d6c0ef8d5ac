"""Calls for which torch derives the strides of the results from the strides of the inputs, and the layouts of the inputs.

A call is an expression of `x`, a tensor in some layout; `same()` makes another tensor of x's shape and layout, `rows(*shape)`
one in row-major layout, `last(*shape)` one in channels-last layout. `T` is torch or eager, and `F` its `nn.functional`.
The strides under torch are stored in layouts.json.gz by make_layouts.py; tests/ops/test_layouts.py compares them.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

Shape = tuple[int, ...]

# Every call of a line is made for inputs of each number of dims that its key names.
CALLS: dict[str, str] = {
    # elementwise, one operand
    "2345": """
        T.exp(x) | T.neg(x) | T.abs(x) | T.sqrt(x.abs()) | T.sigmoid(x) | T.tanh(x) | T.relu(x) | T.sign(x) | T.round(x) | T.erf(x)
        T.lgamma(x) | T.digamma(x) | T.isnan(x) | T.isinf(x) | T.isfinite(x) | T.logical_not(x) | T.signbit(x) | T.angle(x) | T.sgn(x)
        T.nan_to_num(x) | T.frac(x) | T.reciprocal(x) | T.rsqrt(x.abs() + 1) | T.square(x) | T.sinc(x) | T.i0(x) | T.real(x) | T.conj(x)
        T.special.erfcx(x) | T.special.ndtri(x.sigmoid()) | T.special.entr(x) | T.logit(x.sigmoid()) | T.special.bessel_j0(x)
        T.polygamma(1, x)
        T.positive(x) | T.deg2rad(x) | T.frexp(x) | T.view_as_real(T.complex(x, x)) | T.polar(x, x) | T.complex(x, same())
        T.mvlgamma(x.abs() + 3, 2)
        x.double() | x.half() | x.int() | x.to(T.float64) | x.type(T.int64) | x.float() | x.bool() | x.cfloat() | x.bfloat16()
        x.clone() | x.contiguous() | x.detach() | T.empty_like(x) | T.zeros_like(x) | T.ones_like(x) | T.full_like(x, 2.0)
        T.rand_like(x) | T.randn_like(x)
        T.randint_like(x, 3) | T.bernoulli(x.sigmoid()) | T.normal(x, 1.0) | T.normal(x, same().abs()) | T.poisson(x.abs())
        x.new_empty(x.shape) | x.new_zeros(x.shape)
        x.clone(memory_format=T.preserve_format) | x.clone(memory_format=T.contiguous_format) | x.detach().clone().requires_grad_()
        F.silu(x) | F.gelu(x) | F.gelu(x, approximate="tanh") | F.elu(x) | F.selu(x) | F.celu(x) | F.leaky_relu(x) | F.hardswish(x)
        F.hardsigmoid(x)
        F.hardtanh(x) | F.relu6(x) | F.softplus(x) | F.logsigmoid(x) | F.mish(x) | F.softsign(x) | F.tanhshrink(x) | F.hardshrink(x)
        F.softshrink(x)
        F.threshold(x, 0.0, 1.0) | F.rrelu(x) | F.rrelu(x, training=True) | F.prelu(x, rows(1)) | F.dropout(x)
        F.dropout(x, training=False) | F.alpha_dropout(x, training=True)
        F.feature_alpha_dropout(x, training=True) | F.softmax(x, 1) | F.softmax(x, -1) | F.log_softmax(x, 1) | F.log_softmax(x, 0)
        F.softmin(x, 1) | F.gumbel_softmax(x, dim=1)
        F.normalize(x, dim=1) | F.glu(T.cat([x, x], 1), 1) | F.glu(T.cat([x, x], 0), 0)
        F.softmax(x, 1, dtype=T.float64)
        x + 1 | 1 - x | x * 2.0 | x / 2 | x ** 2 | 2 ** x | x > 0 | x == 0 | x % 2 | x // 2 | T.clamp(x, -1, 1) | T.clamp_min(x, 0.5)
        T.clamp(x, same(), None)
        x + same() | x * same() | T.add(x, same(), alpha=2) | T.sub(x, same()) | x - x.contiguous() | x.contiguous() - x
        T.maximum(x, same()) | T.minimum(x, same())
        T.atan2(x, same()) | T.fmod(x, same()) | T.hypot(x, same()) | T.pow(x.abs(), same()) | x < same() | T.eq(x, same())
        T.logical_and(x, same()) | T.copysign(x, same())
        T.ldexp(x, same()) | T.logaddexp(x, same()) | T.xlogy(x, same().abs()) | T.heaviside(x, same()) | T.nextafter(x, same())
        T.isclose(x, same()) | T.fmax(x, same())
        T.floor_divide(x, same()) | T.remainder(x, same()) | T.float_power(x.abs(), 2.0) | T.rsub(x, same())
        T.special.xlog1py(x, same().abs()) | T.special.zeta(x.abs() + 2, same().abs() + 1)
        x.int() & same().int() | x.int() << 1 | T.gcd(x.int(), same().int()) | T.bitwise_not(x.int())
        T.where(x > 0, x, same()) | T.where(x > 0, x, 0.0) | T.where(x > 0, x, rows(1)) | T.where(x.contiguous() > 0, x, x)
        T.addcmul(x, same(), same()) | T.addcdiv(x, same(), same())
        T.addcmul(x.contiguous(), x, same()) | T.lerp(x, same(), 0.3) | T.lerp(x, same(), same().abs()) | T.lerp(x.contiguous(), x, 0.3)
        x + rows(*x.shape) | rows(*x.shape) * x | x * rows(1) | x * rows(x.shape[-1]) | rows(x.shape[-1]) + x | x + rows(())
        x * rows(x.shape[1], *(1,) * (x.ndim - 2))
        x * x.mean(1, keepdim=True) | x.mean(-1, keepdim=True) + x | x + x[:1] | x[:1] + x | x * x[..., :1] | x[..., :1] - x
        x.masked_fill(x > 0, 1.0) | x.masked_fill(x.contiguous() > 0, rows(())) | x.masked_fill(rows(x.shape[-1]) > 0, 1.0)
        rows(*x.shape).masked_fill(x > 0, 1.0)
        x.masked_scatter(x > 0, rows(400))
    """,
    # in place and copies
    "2345 ": """
        x.clone().add_(1) | x.clone().mul_(rows(*x.shape)) | x.clone().copy_(rows(*x.shape)) | rows(*x.shape).copy_(x)
        x.clone().zero_() | x.clone().relu_() | x.clone().clamp_(0, 1)
        F.relu(x.clone(), inplace=True) | F.silu(x.clone(), inplace=True) | F.dropout(x.clone(), inplace=True)
        x.clone().masked_fill_(x > 0, 2.0) | x.clone().fill_(1.0)
        T.exp(x.detach(), out=T.empty(0)) | T.add(x.detach(), same(), out=T.empty(0)) | T.cat([x.detach(), same()], 1, out=T.empty(0))
        T.exp(x.detach(), out=T.empty_like(x)) | T.mul(x.detach(), 2, out=rows(*x.shape))
        x.clone().uniform_() | x.clone().normal_() | x.clone().bernoulli_(0.5) | x.clone().transpose_(0, 1) | T.empty_like(x).copy_(x)
        x.new_zeros(x.shape).copy_(x)
    """,
    # reductions, scans, sorting
    " 2345": """
        x.sum() | x.sum(1) | x.sum(1, keepdim=True) | x.sum(-1) | x.sum(0) | x.sum((0, 1), keepdim=True) | x.mean(1, keepdim=True)
        x.mean(-1, keepdim=True) | x.mean((0, -1))
        x.mean(0) | x.amax(1) | x.amax(1, keepdim=True) | x.amin(-1, keepdim=True) | x.max(1) | x.max(1, keepdim=True) | x.min(-1)
        x.max() | x.argmax(1) | x.argmax(1, keepdim=True) | x.argmin(-1)
        x.var(1, keepdim=True) | x.std(-1) | x.var(0) | T.var_mean(x, 1) | T.std_mean(x, 0, keepdim=True) | x.prod(1)
        x.prod(1, keepdim=True) | x.norm(dim=1, keepdim=True) | x.norm(p=1, dim=1)
        T.linalg.vector_norm(x, dim=1) | x.logsumexp(1) | x.logsumexp(1, keepdim=True) | (x > 0).any(1) | (x > 0).all(1, keepdim=True)
        T.count_nonzero(x, 1) | x.nansum(1) | x.nanmean(1, keepdim=True)
        x.sum(1, dtype=T.float64) | (x > 0).sum(1) | x.aminmax(dim=1) | x.aminmax(dim=1, keepdim=True)
        x.median(1) | x.median(1, keepdim=True) | x.mode(1) | x.kthvalue(1, 1) | x.kthvalue(1, -1, True) | x.nanmedian(1)
        x.quantile(0.5, 1) | x.quantile(0.5, 1, keepdim=True) | x.quantile(rows(2).sigmoid(), 1)
        x.cumsum(1) | x.cumsum(-1) | x.cumsum(0) | x.cumprod(1) | x.cummax(1) | x.cummin(-1) | x.logcumsumexp(1) | x.sort(1)
        x.sort(-1) | x.sort(0, True) | x.argsort(1) | x.topk(1, 1) | x.topk(1, -1) | x.topk(1, 0)
        x.msort() | x.diff(dim=1) | x.diff(dim=-1) | x.diff(dim=0) | T.trapezoid(x, dim=1) | T.cumulative_trapezoid(x, dim=1)
        x.renorm(2, 1, 1.0) | x.renorm(2, 0, 0.5) | x.dist(same())
        T.cdist(x, same()) | T.gradient(x, dim=-1)
    """,
    # movement
    "2345  ": """
        T.cat([x, same()], 1) | T.cat([x, same()], 0) | T.cat([x, same()], -1) | T.cat([x, x.contiguous()], 1)
        T.cat([x.contiguous(), x], 1) | T.cat([x], 1) | T.cat([x, x.double()], 1) | T.cat([x, T.empty(0)], 0)
        T.stack([x, same()], 0) | T.stack([x, same()], 1) | T.stack([x, same()], -1) | T.stack([x], 0) | T.hstack([x, same()])
        T.vstack([x, same()]) | T.dstack([x, same()])
        x.flip(1) | x.flip(-1) | x.flip(0, 1) | x.fliplr() | x.flipud() | x.roll(1) | x.roll(1, 1) | x.roll((1, 2), (0, -1)) | x.rot90()
        x.rot90(2, (0, -1)) | x.repeat(*(1,) * (x.ndim - 1), 2) | x.repeat(2, *(1,) * x.ndim)
        x.tile(2) | x.tile((2, 1)) | x.repeat_interleave(2, 1) | x.repeat_interleave(2, -1) | x.repeat_interleave(2, 0)
        x.repeat_interleave(2)
        F.pad(x, (1, 1)) | F.pad(x, (1, 0, 0, 1)) | F.pad(x, (1, -1)) | F.pad(x, (-1, 0)) | F.pad(x, (0, 0)) | x.tril() | x.triu(1)
        x.expand(*x.shape) | x.unsqueeze(0) | x.transpose(0, 1) | x.movedim(1, -1)
        x.transpose(0, 1).contiguous() | x.transpose(1, -1).clone() | x.permute(*range(x.ndim - 1, -1, -1)) + 1 | x.flatten(1)
        x.flatten() | x.reshape(-1) | x.reshape(x.shape[0], -1) | x.unflatten(1, (1, -1)) | x.unfold(1, 1, 1) | x.unfold(-1, 1, 1)
        x.index_select(1, T.tensor([0, 0])) | x.index_select(0, T.tensor([0])) | x.index_select(-1, T.tensor([0])) | x[T.tensor([0])]
        x[:, T.tensor([0, 0])] | x[..., T.tensor([0, 0, 0])] | x[T.tensor([0]), T.tensor([0])]
        x[T.tensor([[0], [0]])] | x[:, None, T.tensor([0])] | x[x > 0] | x[x.shape[0] * [True]] | x.take_along_dim(x.argsort(1), 1)
        x.gather(1, x.argsort(1)) | x.gather(1, T.zeros_like(x, dtype=T.int64)) | x.take(T.zeros_like(x, dtype=T.int64))
        x.scatter(1, T.zeros_like(x, dtype=T.int64), same()) | x.scatter(1, T.zeros_like(x, dtype=T.int64), 1.0)
        x.scatter_add(1, T.zeros_like(x, dtype=T.int64), same()) | x.scatter_reduce(1, T.zeros_like(x, dtype=T.int64), same(), "amax")
        x.index_add(1, T.tensor([0]), x[:, :1]) | x.index_copy(1, T.tensor([0]), x[:, :1]) | x.index_fill(1, T.tensor([0]), 1.0)
        x.index_put((T.tensor([0]),), rows(())) | x.index_reduce(1, T.tensor([0]), x[:, :1], "mean")
        x.select_scatter(x[:, 0], 1, 0) | x.slice_scatter(x[:, :1], 1, 0, 1) | x.diagonal_scatter(x.diagonal()) | x.diag_embed()
        x.narrow_copy(1, 0, 1) | x.nonzero() | x.masked_select(x > 0)
        x.split(1, 1)[0] | x.chunk(2, -1)[0] + 1 | x.unbind(1)[0] * 2 | T.bucketize(x, rows(3).sort()[0])
        T.searchsorted(rows(3).sort()[0], x) | T.isin(x, rows(3)) | T.unique(x) | x.unsqueeze(1).squeeze(1)
        T.broadcast_to(x, (2, *x.shape)) + 1 | T.kron(x, rows(*(1,) * x.ndim)) | T.tensordot(x, x, x.ndim) | T.fft.fft(x)
        T.fft.rfft(x) | T.fft.fft2(x) | T.fft.fftshift(x) | T.einsum("ij...->ji...", x)
    """,
    # products
    "234": """
        x @ x.transpose(-1, -2) | T.matmul(x, rows(x.shape[-1], 3)) | F.linear(x, rows(3, x.shape[-1]), rows(3))
        F.linear(x, rows(3, x.shape[-1])) | x.transpose(-1, -2) @ x | x @ rows(x.shape[-1]) | T.linalg.svdvals(x)
        T.linalg.inv(x @ x.mT)
        T.linalg.qr(x) | T.linalg.cross(x[..., :3], x[..., :3]) | F.bilinear(x, same(), rows(3, x.shape[-1], x.shape[-1]))
        F.embedding(x.abs().long(), rows(9, 3)) | F.one_hot(x.abs().long()) | F.cosine_similarity(x, same(), 1)
        F.pairwise_distance(x, same()) | F.scaled_dot_product_attention(x, x, x)
        F.scaled_dot_product_attention(x, x[..., :1, :], x[..., :1, :]) | F.scaled_dot_product_attention(x, x, x, is_causal=True)
    """,
    "4": """
        F.scaled_dot_product_attention(x.transpose(1, 2), x.transpose(1, 2), x.transpose(1, 2)) | F.pixel_shuffle(x, 2)
        F.pixel_unshuffle(x, 2) | F.channel_shuffle(x, 2) | F.fold(x.flatten(2), (4, 2), 1) | F.unfold(x, 2)
        F.affine_grid(rows(x.shape[0], 2, 3), x.shape)
        F.interpolate(x, scale_factor=2) | F.interpolate(x, scale_factor=2, mode="nearest-exact")
        F.interpolate(x, scale_factor=2, mode="bilinear") | F.interpolate(x, size=(5, 7), mode="bilinear", align_corners=True)
        F.interpolate(x, scale_factor=2, mode="bicubic")
        F.interpolate(x, size=(3, 3), mode="area") | F.interpolate(x, size=(3, 3), mode="bilinear", antialias=True)
        F.interpolate(x, size=(3, 3), mode="bicubic", antialias=True) | F.interpolate(x, size=x.shape[2:], mode="bilinear")
        F.interpolate(x, size=x.shape[2:]) | F.upsample(x, scale_factor=2)
        F.max_pool2d(x, 2) | F.max_pool2d(x, 2, return_indices=True) | F.max_pool2d(x, 3, 1, 1) | F.avg_pool2d(x, 2)
        F.avg_pool2d(x, 3, 1, 1) | F.adaptive_avg_pool2d(x, 1) | F.adaptive_avg_pool2d(x, (2, 3)) | F.adaptive_max_pool2d(x, 2)
        F.adaptive_max_pool2d(x, (2, 1), return_indices=True)
        F.lp_pool2d(x, 2, 2) | F.fractional_max_pool2d(x, 2, output_size=2)
        F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2) | F.grid_sample(x, rows(x.shape[0], 3, 5, 2))
        F.grid_sample(x, rows(x.shape[0], 3, 5, 2), mode="nearest") | F.grid_sample(x, rows(x.shape[0], 3, 5, 2), mode="bicubic")
        F.pad(x, (1, 1, 1, 1)) | F.pad(x, (1, 1, 1, 1), value=2.0) | F.pad(x, (1, 1, 1, 1), mode="reflect")
        F.pad(x, (1, 1, 1, 1), mode="replicate") | F.pad(x, (1, 1, 1, 1), mode="circular") | F.pad(x, (0, 0, 0, 0, 1, 1))
        F.pad(x, (-1, 1, 1, -1))
        F.conv2d(x, rows(6, x.shape[1], 1, 1)) | F.conv2d(x, rows(6, x.shape[1], 3, 3), rows(6), padding=1)
        F.conv2d(x, last(6, x.shape[1], 3, 3), padding=1) | F.conv2d(x, rows(x.shape[1], 1, 3, 3), padding=1, groups=x.shape[1])
        F.conv2d(x, rows(4, x.shape[1], 2, 2), padding=1, stride=2) | F.conv2d(x, rows(1, x.shape[1], 1, 1))
        F.conv2d(x, last(2, x.shape[1], 1, 1))
        F.conv_transpose2d(x, rows(x.shape[1], 5, 2, 2), stride=2) | F.conv_transpose2d(x, last(x.shape[1], 5, 3, 3), padding=1)
        F.conv_transpose2d(x, rows(x.shape[1], 1, 3, 3), groups=x.shape[1]) | F.conv2d(x, rows(6, x.shape[1], 3, 3), padding="same")
        F.conv2d(x, rows(3, x.shape[1], 2, 2), dilation=2, padding=2)
        F.batch_norm(x, T.zeros(x.shape[1]), T.ones(x.shape[1]))
        F.batch_norm(x, T.zeros(x.shape[1]), T.ones(x.shape[1]), rows(x.shape[1]), rows(x.shape[1]), training=True)
        F.batch_norm(x, None, None, training=True) | F.instance_norm(x)
        F.instance_norm(x, weight=rows(x.shape[1]), bias=rows(x.shape[1]))
        F.local_response_norm(x, 2) | F.dropout2d(x) | F.dropout2d(x, training=True) | F.prelu(x, rows(x.shape[1]))
        F.nll_loss(x, T.zeros(x.shape[0], *x.shape[2:], dtype=T.int64), reduction="none")
        F.cross_entropy(x, T.zeros(x.shape[0], *x.shape[2:], dtype=T.int64), reduction="none")
        F.cross_entropy(x, same().softmax(1), reduction="none") | T.nn.Softmax2d()(x) | T.nn.Flatten()(x) | T.nn.PixelShuffle(2)(x)
        T.nn.ChannelShuffle(2)(x) | T.nn.ZeroPad2d(1)(x) | T.nn.Identity()(x) | T.nn.UpsamplingNearest2d(scale_factor=2)(x)
        T.nn.ReflectionPad2d((1, 0, 0, 1))(x)
        x.to(memory_format=T.channels_last) | x.contiguous(memory_format=T.channels_last) | x.clone(memory_format=T.channels_last)
        x.contiguous(memory_format=T.channels_last).contiguous() | x.to(T.float64, memory_format=T.channels_last)
        T.empty_like(x, memory_format=T.channels_last) | x.to(memory_format=T.contiguous_format)
        F.relu(F.conv2d(x, last(6, x.shape[1], 1, 1))) | F.conv2d(F.relu(x), rows(6, x.shape[1], 1, 1)) + 1
        x.mean((2, 3), keepdim=True) | x.sum((2, 3)) | x.mean((2, 3)) | x.amax((2, 3), keepdim=True) | x.std((2, 3), keepdim=True)
        x * x.mean((2, 3), keepdim=True) | x.view(x.shape) | x.flatten(2).transpose(1, 2).contiguous()
        x.permute(0, 2, 3, 1) + 1 | x.permute(0, 2, 3, 1).contiguous()
        F.layer_norm(x.permute(0, 2, 3, 1), (x.shape[1],)).permute(0, 3, 1, 2)
        T.nn.functional.embedding(x.permute(0, 2, 3, 1).abs().long(), rows(9, 3)) | T.native_channel_shuffle(x, 2)
        T.rms_norm(x, x.shape[2:]) | T.cat([x, last(*x.shape)], 1) | T.stack([x, last(*x.shape)], 1)
        x + last(*x.shape) | last(*x.shape) + x | T.where(x > 0, x, last(*x.shape)) | x * last(1, x.shape[1], 1, 1)
        T.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5) | T.native_layer_norm(x, x.shape[2:], None, None, 1e-5)
        T.native_group_norm(x.contiguous(), None, None, x.shape[0], x.shape[1], x.shape[2] * x.shape[3], 1, 1e-5)
        T.lerp(x, rows(*x.shape), 0.3) | T.lerp(rows(*x.shape), x, 0.3) | F.fractional_max_pool2d(x, 2, output_size=2, return_indices=True)
        last(1, x.shape[1], 1, 1) * x | x + last(x.shape[0], 1, *x.shape[2:])
    """,
    "5": """
        F.interpolate(x, scale_factor=2) | F.interpolate(x, scale_factor=2, mode="trilinear")
        F.interpolate(x, scale_factor=2, mode="nearest-exact") | F.interpolate(x, size=(3, 3, 3), mode="area") | F.max_pool3d(x, 2)
        F.max_pool3d(x, 2, return_indices=True) | F.avg_pool3d(x, 2) | F.adaptive_avg_pool3d(x, 1)
        F.adaptive_avg_pool3d(x, 2) | F.adaptive_max_pool3d(x, 2) | F.conv3d(x, rows(6, x.shape[1], 1, 1, 1))
        F.conv3d(x, rows(6, x.shape[1], 3, 3, 3), rows(6), padding=1) | F.conv3d(x, last(6, x.shape[1], 3, 3, 3), padding=1)
        F.conv_transpose3d(x, rows(x.shape[1], 5, 2, 2, 2), stride=2)
        F.batch_norm(x, T.zeros(x.shape[1]), T.ones(x.shape[1])) | F.batch_norm(x, None, None, training=True) | F.instance_norm(x)
        F.pad(x, (1, 1, 1, 1, 1, 1)) | F.pad(x, (1, 1, 1, 1, 1, 1), mode="replicate") | F.pad(x, (1, 1, 1, 1, 1, 1), mode="reflect")
        F.grid_sample(x, rows(x.shape[0], 2, 3, 2, 3)) | F.dropout3d(x, training=True) | F.pixel_shuffle(x, 2)
        F.pixel_unshuffle(x, 2) | F.channel_shuffle(x, 2) | F.local_response_norm(x, 2) | F.prelu(x, rows(x.shape[1]))
        x.to(memory_format=T.channels_last_3d) | x.contiguous(memory_format=T.channels_last_3d)
        T.empty_like(x, memory_format=T.channels_last_3d) | x.mean((2, 3, 4), keepdim=True) | x + last(*x.shape)
        F.adaptive_max_pool3d(x, 2, return_indices=True)
        F.max_unpool3d(*F.max_pool3d(x, 2, return_indices=True), 2)
        F.fractional_max_pool3d(x, 1, output_size=1) | F.lp_pool3d(x, 2, 2) | F.pad(x, (1, 1, 1, 1, 1, 1), mode="circular")
    """,
    "3": """
        F.interpolate(x, scale_factor=2) | F.interpolate(x, scale_factor=2, mode="linear") | F.max_pool1d(x, 2) | F.avg_pool1d(x, 2)
        F.adaptive_avg_pool1d(x, 2) | F.adaptive_max_pool1d(x, 2) | F.conv1d(x, rows(6, x.shape[1], 1))
        F.conv1d(x, rows(6, x.shape[1], 3), rows(6), padding=1) | F.conv_transpose1d(x, rows(x.shape[1], 5, 2), stride=2)
        F.batch_norm(x, T.zeros(x.shape[1]), T.ones(x.shape[1])) | F.batch_norm(x, None, None, training=True) | F.instance_norm(x)
        F.pad(x, (1, 1), mode="replicate") | F.pad(x, (1, 1), mode="reflect") | F.pad(x, (1, 1), mode="circular")
        F.dropout1d(x, training=True) | F.prelu(x, rows(x.shape[1])) | F.channel_shuffle(x, 2) | F.max_pool1d(x, 2, return_indices=True)
        F.max_pool2d(x, 2) | F.avg_pool2d(x, 2) | F.conv2d(x, rows(6, x.shape[0], 1, 1)) | F.max_pool1d(x.detach(), 2)
        T.nn.MultiheadAttention(x.shape[-1], 1)(x, x, x)[0]
        x.bmm(x.transpose(1, 2)) | T.baddbmm(rows(1), x, x.transpose(1, 2)) | F.unfold(x, 2) | F.pixel_shuffle(x, 1)
        T.nn.LSTM(x.shape[-1], 3)(x)[0] | T.nn.GRU(x.shape[-1], 3, batch_first=True)(x) | T.nn.RNN(x.shape[-1], 3)(x)
    """,
    "2": """
        T.gru_cell(rows(x.shape[0], 3), x, rows(3 * x.shape[1], 3), rows(3 * x.shape[1], x.shape[1])) | x.put(T.tensor([0]), rows(1))
        T.mm(x, x.t()) | T.addmm(rows(3), x, rows(x.shape[1], 3)) | x.t() + 1 | T.nn.GRUCell(x.shape[-1], 3)(x)
        T.nn.LSTMCell(x.shape[-1], 3)(x) | T.nn.RNNCell(x.shape[-1], 3)(x)
        F.cross_entropy(x, T.zeros(x.shape[0], dtype=T.int64), reduction="none")
        F.batch_norm(x, T.zeros(x.shape[1]), T.ones(x.shape[1])) | F.batch_norm(x, None, None, training=True)
        T.outer(x[0], x[-1]) | T.corrcoef(x) | T.cov(x) | x.diag() | x.trace() | F.pdist(x) | x.clone().fill_diagonal_(1.0)
        T.block_diag(x) | T.combinations(x[0]) | T.addmv(rows(x.shape[0]), x, rows(x.shape[1])) | T.cartesian_prod(x[0], x[-1])
    """,
    # normalisation and losses over any number of dims
    "2345   ": """
        F.layer_norm(x, x.shape[-1:]) | F.layer_norm(x, x.shape[1:])
        F.layer_norm(x, x.shape[-1:], rows(x.shape[-1]), rows(x.shape[-1])) | F.rms_norm(x, x.shape[-1:])
        F.rms_norm(x, x.shape[1:], rows(*x.shape[1:])) | F.group_norm(x, 1)
        F.group_norm(x, x.shape[1], rows(x.shape[1]), rows(x.shape[1]))
        F.mse_loss(x, same(), reduction="none") | F.l1_loss(x, same(), reduction="none") | F.smooth_l1_loss(x, same(), reduction="none")
        F.huber_loss(x, same(), reduction="none") | F.binary_cross_entropy(x.sigmoid(), same().sigmoid(), reduction="none")
        F.binary_cross_entropy_with_logits(x, same().sigmoid(), reduction="none")
        F.kl_div(x, same().sigmoid(), reduction="none") | F.soft_margin_loss(x, same().sign(), reduction="none")
        F.poisson_nll_loss(x, same().abs(), reduction="none") | F.gaussian_nll_loss(x, same(), same().abs() + 1, reduction="none")
        F.hinge_embedding_loss(x, same().sign(), reduction="none") | F.margin_ranking_loss(x, same(), same().sign(), reduction="none")
        F.mse_loss(x, same()) | T.nn.Linear(x.shape[-1], 3)(x) | T.nn.LayerNorm(x.shape[-1])(x) | T.nn.GroupNorm(1, x.shape[1])(x)
        T.nn.RMSNorm(x.shape[-1])(x)
    """,
}  # fmt: skip

SHAPES: dict[int, dict[str, Shape]] = {
    2: {"": (4, 6), "one row": (1, 6), "one column": (4, 1)},
    3: {"": (2, 4, 6), "one channel": (2, 1, 6), "one step": (2, 4, 1)},
    4: {"": (2, 4, 6, 4), "one channel": (2, 1, 6, 4), "one image": (1, 4, 6, 4), "one pixel": (2, 4, 1, 1), "one row": (2, 4, 1, 6)},
    5: {"": (2, 4, 2, 4, 2), "one channel": (2, 1, 2, 4, 2), "one pixel": (2, 4, 1, 1, 1)},
}


def last_strides(shape: Shape) -> Shape:
    strides, step = [0] * len(shape), 1
    for d in (1, *range(len(shape) - 1, 1, -1), 0):
        strides[d], step = step, step * shape[d]
    return tuple(strides)


class Maker:
    """Makes the tensors of one call. Each new `Maker` repeats the same numbers."""

    def __init__(self, torch: Any) -> None:
        self.torch, self.count = torch, 0

    def numbers(self, shape: Shape) -> Any:
        self.count += 1
        return self.torch.tensor(np.random.default_rng(self.count).standard_normal(shape).astype(np.float32))

    def rows(self, *shape: Any) -> Any:
        return self.numbers(() if shape == ((),) else shape)

    def last(self, *shape: int) -> Any:
        y = self.torch.empty_strided(shape, last_strides(shape))
        return y.copy_(self.numbers(shape))

    def in_layout(self, layout: str, shape: Shape) -> Any:
        """Random numbers of `shape`; every name of `LAYOUTS` is a layout."""
        n = len(shape)
        wide = (*shape[:1], 2 * shape[1], *shape[2:])
        match layout:
            case "rows":
                return self.rows(*shape)
            case "last":
                return self.last(*shape)
            case "swapped":  # the last two dims in each other's place in memory
                return self.rows(*shape[:-2], shape[-1], shape[-2]).transpose(-1, -2)
            case "image":  # a single image with its channels innermost
                return self.rows(*shape[1:], shape[0]).permute(n - 1, *range(n - 1))
            case "reversed":
                return self.rows(*shape[::-1]).permute(*range(n - 1, -1, -1))
            case "batch inner":
                return self.rows(shape[1], shape[0], *shape[2:]).transpose(0, 1)
            case "sliced":
                return self.rows(*wide)[:, ::2]
            case "sliced last":
                return self.last(*wide)[:, : shape[1]]
            case "cropped last":
                return self.last(*shape[:-1], shape[-1] + 2)[..., 1:-1]
            case "expanded":
                return self.rows(1, *shape[1:]).expand(*shape)
            case "expanded last":
                return self.last(1, *shape[1:]).expand(*shape)
        raise KeyError(layout)


LAYOUTS = {
    2: ("rows", "swapped", "sliced", "expanded"),
    3: ("rows", "swapped", "reversed", "batch inner", "image", "sliced", "expanded"),
    4: ("rows", "last", "swapped", "reversed", "batch inner", "sliced", "sliced last", "cropped last", "expanded", "expanded last"),
    5: ("rows", "last", "reversed", "sliced", "cropped last", "expanded last"),
}


SPECIAL = {2: ("rows", "swapped"), 3: ("rows", "swapped"), 4: ("rows", "last", "reversed"), 5: ("rows", "last")}


def inputs() -> Iterator[tuple[int, str, Shape]]:
    """Number of dims, layout and shape of each input. Shapes with dims of size 1 have only the layouts of `SPECIAL`."""
    for ndim, shapes in SHAPES.items():
        for which, shape in shapes.items():
            for layout in LAYOUTS[ndim]:
                if not which or layout in SPECIAL[ndim]:
                    yield ndim, layout, shape


def calls(ndim: int) -> list[str]:
    """The calls for inputs of `ndim` dims."""
    return list(dict.fromkeys(call.strip() for ranks, text in CALLS.items() if str(ndim) in ranks
                for line in text.strip().split("\n") for call in line.split(" | ")))  # fmt: skip


RANDOM = re.compile("rand|Multihead|drop|bern|pois|empty|rrelu|LSTM|GRU|RNN|uniform|gumbel|normal_|T.normal|Linear|fractional|grid_sample")
DATA_DEPENDENT = re.compile(r"masked_select|nonzero|x\[x|unique")  # sizes that depend on data break the graph


def function_of(call: str) -> Any:
    return eval(f"lambda T, F, x, same, rows, last: {call}")  # noqa: S307 - our own expressions


def results(y: Any) -> list[Any]:
    """The tensors of a result, in order."""
    if isinstance(y, (tuple, list)):
        return [t for part in y for t in results(part)]
    return [y] if hasattr(y, "stride") else []


class Case:
    """One call of one input: `x`, the other operands in order (`given`), and the results."""

    def __init__(self, torch: Any, call: str, layout: str, shape: Shape, requires_grad: bool = False, rows_first: bool = False) -> None:
        """rows_first: x has the same numbers in row-major layout."""
        make = Maker(torch)
        torch.manual_seed(0)
        x = make.in_layout(layout, shape)
        self.x = (x.contiguous() if rows_first else x).requires_grad_(requires_grad)
        self.given: list[Any] = []
        self.call = call
        self.torch = torch
        y = function_of(call)(torch, torch.nn.functional, self.x, lambda: self.keep(make.in_layout(layout, shape)),
                              lambda *s: self.keep(make.rows(*s)), lambda *s: self.keep(make.last(*s)))  # fmt: skip
        self.results = results(y)

    def keep(self, t: Any) -> Any:
        self.given.append(t)
        return t

    def gradient(self) -> list[int] | None:
        """Strides of the gradient of `x`. The cotangents are ones in the layouts of the results."""
        roots = [y for y in self.results if y.requires_grad and not y.is_leaf]
        if not roots:
            return None
        ones = [self.torch.ones_like(y.detach()) for y in roots]
        g, = self.torch.autograd.grad(roots, [self.x], ones, allow_unused=True)
        return None if g is None else list(g.stride())

    def geometry(self) -> list[tuple[Any, ...]]:
        return [geometry(y) for y in self.results]


def geometry(y: Any) -> tuple[list[int], list[int]]:
    """Shape and strides. Strides of dims of size 1 and of empty tensors are included."""
    return list(y.shape), list(y.stride())
