"""Convolutions of one to three spatial dims, patches as columns, and channel shuffles."""
from __future__ import annotations

from typing import Any

from eager.base.symint import as_count
from eager.optable.precision import LOWER
from eager.optable.shape import in_rows
from eager.optable.table import OPS
from eager.public.record import public


def spread(value: Any, n: int, who: str, name: str) -> tuple[int, ...]:
    """`value` for each of `n` spatial dims: an int, or a sequence of one or `n` ints."""
    if isinstance(value, (tuple, list)):
        result = tuple(as_count(v) for v in value)
        if len(result) == 1:
            return result * n
        if len(result) != n:
            raise RuntimeError(f"{who}: expected {name} to be a single integer value or a list of {n} values to match the "
                               f"convolution dimensions, but got {name}={list(result)}")  # fmt: skip
        return result
    return (as_count(value),) * n


def batched(x: Any, n: int, who: str) -> tuple[Any, bool]:
    """`x` with a batch dim, and whether the dim was added. Raises: RuntimeError for another number of dims."""
    if x.ndim == n + 1:
        return OPS["unsqueeze"](x, 0), True
    if x.ndim != n + 2:
        raise RuntimeError(f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {who}, but got input of size: "
                           f"{list(x.shape)}")  # fmt: skip
    return x, False


def _pad_same(x: Any, kernel: tuple[int, ...], dilation: tuple[int, ...]) -> tuple[Any, tuple[int, ...]]:
    """Input and padding under which stride one keeps the size; an odd rest is padded at the end beforehand."""
    total = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
    if any(t % 2 for t in total):
        uneven = [v for t in reversed(total) for v in (0, t % 2)]
        x = OPS["constant_pad_nd"](x, tuple(uneven), 0)
    return x, tuple(t // 2 for t in total)


def _conv(n: int) -> Any:
    who = f"conv{n}d"

    @public(parsed=True)
    def conv(input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,  # noqa: A002
             groups: int = 1) -> Any:  # fmt: skip
        """Cross-correlation. input: (b, c, *spatial) or (c, *spatial); weight: (out, c / groups, *kernel); bias: (out,)."""
        x, single = batched(input, n, who)
        if weight.ndim != n + 2:
            raise RuntimeError(f"{who}: expected weight of {n + 2} dims, but got weight of size {list(weight.shape)}")
        stride, dilation = spread(stride, n, who, "stride"), spread(dilation, n, who, "dilation")
        if isinstance(padding, str):
            if padding == "same":
                if any(s != 1 for s in stride):
                    raise RuntimeError("padding='same' is not supported for strided convolutions")
                x, padding = _pad_same(x, tuple(weight.shape[2:]), dilation)
            elif padding == "valid":
                padding = (0,) * n
            else:
                raise RuntimeError(f"Invalid padding string: '{padding}'")
        y = OPS["convolution"](x, weight, bias, stride, spread(padding, n, who, "padding"), dilation, False, (0,) * n, groups)
        return OPS["squeeze"](y, (0,)) if single else y

    conv.__name__ = conv.__qualname__ = who
    return conv


def _conv_transpose(n: int) -> Any:
    who = f"conv_transpose{n}d"

    @public(parsed=True)
    def conv_transpose(input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,  # noqa: A002
                       output_padding: Any = 0, groups: int = 1, dilation: Any = 1) -> Any:  # fmt: skip
        """Adjoint of a convolution in its input. weight: (c, out / groups, *kernel)."""
        x, single = batched(input, n, who)
        if weight.ndim != n + 2:
            raise RuntimeError(f"{who}: expected weight of {n + 2} dims, but got weight of size {list(weight.shape)}")
        y = OPS["convolution"](x, weight, bias, spread(stride, n, who, "stride"), spread(padding, n, who, "padding"),
                               spread(dilation, n, who, "dilation"), True, spread(output_padding, n, who, "output_padding"),
                               groups)  # fmt: skip
        return OPS["squeeze"](y, (0,)) if single else y

    conv_transpose.__name__ = conv_transpose.__qualname__ = who
    return conv_transpose


def _pair(value: Any) -> tuple[int, int]:
    a, b = spread(value, 2, "unfold", "size")
    return a, b


def unfold(input: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Any:  # noqa: A002
    """Sliding blocks of images as columns: (b, c, h, w) -> (b, c * kernel elements, blocks)."""
    x, single = batched(input, 2, "unfold")
    y = OPS["im2col"](x, _pair(kernel_size), _pair(dilation), _pair(padding), _pair(stride))
    return OPS["squeeze"](y, (0,)) if single else y


def fold(input: Any, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Any:  # noqa: A002
    """Columns summed back into images of `output_size`: the adjoint of `unfold`."""
    if input.ndim not in (2, 3):
        raise RuntimeError(f"Expected 2D or 3D (batch mode) tensor for input, but got: {list(input.shape)}")
    x = OPS["unsqueeze"](input, 0) if input.ndim == 2 else input
    y = OPS["col2im"](x, _pair(output_size), _pair(kernel_size), _pair(dilation), _pair(padding), _pair(stride))
    return OPS["squeeze"](y, (0,)) if input.ndim == 2 else y


@public(parsed=True)
def pixel_shuffle(input: Any, upscale_factor: int) -> Any:  # noqa: A002
    """(*, c * r * r, h, w) -> (*, c, h * r, w * r). Raises: RuntimeError if r * r does not divide the channels."""
    return OPS["pixel_shuffle"](input, upscale_factor)


@public(parsed=True)
def pixel_unshuffle(input: Any, downscale_factor: int) -> Any:  # noqa: A002
    """(*, c, h * r, w * r) -> (*, c * r * r, h, w). Raises: RuntimeError if r does not divide the height and width."""
    return OPS["pixel_unshuffle"](input, downscale_factor)


@public(parsed=True)
def channel_shuffle(input: Any, groups: int) -> Any:  # noqa: A002
    """Transpose the channels as (groups, k) -> (k, groups). input: (b, groups * k, *). Raises: RuntimeError if groups does not divide."""
    return OPS["channel_shuffle"](input, groups)


@public(parsed=True)
def native_channel_shuffle(input: Any, groups: int) -> Any:  # noqa: A002
    """`channel_shuffle` under the name of torch's CPU kernel."""
    return channel_shuffle(input, groups)


@public(autocast=LOWER, parsed=True)
def conv_tbc(input: Any, weight: Any, bias: Any, pad: int = 0) -> Any:  # noqa: A002
    """Convolution over time. input: (t, b, c); weight: (kernel, c, out); bias: (out,). Result: (t', b, out). Raises: RuntimeError."""
    if input.ndim != 3 or weight.ndim != 3 or bias.ndim != 1:
        raise RuntimeError(f"conv_tbc: expected input and weight of 3 dims and bias of 1, got {input.ndim}, {weight.ndim}, {bias.ndim}")
    y = conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), OPS["to_dtype"](bias, input.dtype), 1, pad)
    return in_rows(y.permute(2, 0, 1))


conv1d, conv2d, conv3d = _conv(1), _conv(2), _conv(3)
conv_transpose1d, conv_transpose2d, conv_transpose3d = _conv_transpose(1), _conv_transpose(2), _conv_transpose(3)
_CONVOLUTIONS = {f.__name__: f for f in (conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d)}
_SHUFFLES = {"pixel_shuffle": pixel_shuffle, "pixel_unshuffle": pixel_unshuffle, "channel_shuffle": channel_shuffle}
FUNCTIONS: dict[str, Any] = {**_CONVOLUTIONS, **_SHUFFLES}
METHODS: dict[str, Any] = {}
