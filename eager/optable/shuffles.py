"""Ops that deal out channels: to pixels and back, and among groups. The gradient of each is its inverse."""
from __future__ import annotations

from typing import Any

from eager.base.spec import is_channels_last
from eager.optable.registry import Kind
from eager.optable.table import OPS, declare


def _packed(x: Any, parts: Any, shape: tuple[int, ...], channels: int) -> Any:
    """The elements of `parts` as `shape`, in separate memory, in the format that the input `x` suggests.

    parts: a view of `x`, whose dims 1 to `channels` make up the channels of `shape` (0: x is not a batch of images).
    """
    if not channels or not is_channels_last(x):
        return OPS["view"](OPS["clone"](parts, "contiguous"), shape)
    order = (0, *range(1 + channels, parts.ndim), *range(1, 1 + channels))
    inner = OPS["view"](OPS["clone"](OPS["permute"](parts, order), "contiguous"), (shape[0], *shape[2:], shape[1]))
    return OPS["permute"](inner, (0, len(shape) - 1, *range(1, len(shape) - 1)))


def _pixel_shuffle(x: Any, upscale_factor: int) -> Any:
    """(*, c * r * r, h, w) -> (*, c, h * r, w * r)."""
    r = upscale_factor
    if x.ndim < 3:
        raise RuntimeError(f"pixel_shuffle expects input to have at least 3 dimensions, but got input with {x.ndim} dimension(s)")
    *lead, c, h, w = x.shape
    if r <= 0:
        raise RuntimeError(f"pixel_shuffle expects a positive upscale_factor, but got {r}")
    if c % (r * r):
        raise RuntimeError("pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but "
                           f"input.size(-3)={c} is not divisible by {r * r}")  # fmt: skip
    k = len(lead)
    parts = x.reshape(*lead, c // (r * r), r, r, h, w).permute(*range(k), k, k + 3, k + 1, k + 4, k + 2)
    return _packed(x, parts, (*lead, c // (r * r), h * r, w * r), 1 if k == 1 else 0)


def _pixel_unshuffle(x: Any, downscale_factor: int) -> Any:
    """(*, c, h * r, w * r) -> (*, c * r * r, h, w)."""
    r = downscale_factor
    if x.ndim < 3:
        raise RuntimeError(f"pixel_unshuffle expects input to have at least 3 dimensions, but got input with {x.ndim} dimension(s)")
    *lead, c, h, w = x.shape
    if r <= 0:
        raise RuntimeError(f"pixel_unshuffle expects a positive downscale_factor, but got {r}")
    for name, size, dim in (("height", h, -2), ("width", w, -1)):
        if size % r:
            raise RuntimeError(f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but input.size({dim})={size} is not "
                               f"divisible by {r}")  # fmt: skip
    k = len(lead)
    parts = x.reshape(*lead, c, h // r, r, w // r, r).permute(*range(k), k, k + 2, k + 4, k + 1, k + 3)
    return _packed(x, parts, (*lead, c * r * r, h // r, w // r), 3 if k == 1 else 0)


def _channel_shuffle(x: Any, groups: int) -> Any:
    """Channels dealt out over groups: (b, g * k, *) seen as (g, k) and read as (k, g)."""
    if x.ndim < 3:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(x.shape)}")
    b, c, *rest = x.shape
    if groups <= 0 or c % groups:
        raise RuntimeError(f"Number of channels must be divisible by groups. Got {c} channels and {groups} groups.")
    return _packed(x, x.reshape(b, groups, c // groups, *rest).transpose(1, 2), (b, c, *rest), 2)


PIXEL_SHUFFLE = declare("pixel_shuffle(Tensor x, int upscale_factor) -> Tensor", Kind.COMPOSITE, decompose=_pixel_shuffle,
                        vjp={"x": lambda g, upscale_factor: OPS["pixel_unshuffle"](g, upscale_factor)},
                        samples=lambda make: iter([(make(2, 8, 3, 2), 2), (make(4, 1, 3), 2),
                                                   (make(2, 3, 4, 8).permute(0, 3, 1, 2), 2)]))  # fmt: skip
PIXEL_UNSHUFFLE = declare("pixel_unshuffle(Tensor x, int downscale_factor) -> Tensor", Kind.COMPOSITE, decompose=_pixel_unshuffle,
                          vjp={"x": lambda g, downscale_factor: OPS["pixel_shuffle"](g, downscale_factor)},
                          samples=lambda make: iter([(make(2, 2, 4, 6), 2), (make(2, 3, 6), 3),
                                                     (make(2, 4, 4, 3).permute(0, 3, 1, 2), 2)]))  # fmt: skip
CHANNEL_SHUFFLE = declare("channel_shuffle(Tensor x, int groups) -> Tensor", Kind.COMPOSITE, decompose=_channel_shuffle,
                          vjp={"x": lambda g, groups: OPS["channel_shuffle"](g, g.shape[1] // groups)},
                          samples=lambda make: iter([(make(2, 6, 3), 3), (make(2, 6, 3, 4), 2),
                                                     (make(2, 3, 4, 6).permute(0, 3, 1, 2), 3)]))  # fmt: skip
