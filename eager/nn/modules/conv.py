"""Convolution layers over one to three spatial dims, and transposed convolutions."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from eager._tensor.tensor import Tensor
from eager.functions import convolution as functions
from eager.functions.shape import pad
from eager.nn import init
from eager.nn.module import Module
from eager.nn.modules.lazy import LazyModuleMixin
from eager.nn.modules.utils import _ntuple, _reverse_repeat_tuple, parameter
from eager.nn.parameter import UninitializedParameter

_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """Settings, parameters and printed form of all convolutions. `_n`: the number of spatial dims.

    weight: (out, in / groups, *kernel), transposed (in, out / groups, *kernel); bias: (out,) or None.
    Raises: ValueError unless groups is positive and divides both channel counts, or for an unknown padding_mode.
    """

    _n = 0
    _transposed = False
    weight: Tensor
    bias: Tensor | None

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
                 dilation: Any = 1, groups: int = 1, bias: bool = True, padding_mode: str = "zeros",
                 output_padding: Any = 0, device: Any = None, dtype: Any = None) -> None:  # fmt: skip
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if padding_mode not in _MODES:
            raise ValueError(f"padding_mode must be one of {set(_MODES)}, but got padding_mode='{padding_mode}'")
        spread = _ntuple(self._n)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = spread(kernel_size)
        self.stride = spread(stride)
        self.padding = padding if isinstance(padding, str) else spread(padding)
        self.dilation = spread(dilation)
        self.transposed = self._transposed
        self.output_padding = spread(output_padding)
        self.groups = groups
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = self._edges()
        self.register_parameter("weight", parameter(self._weight_shape(), device, dtype))
        self.register_parameter("bias", parameter((out_channels,), device, dtype) if bias else None)
        self.reset_parameters()

    def _weight_shape(self) -> tuple[int, ...]:
        i, o = self.in_channels, self.out_channels
        first, second = (i, o // self.groups) if self._transposed else (o, i // self.groups)
        return (first, second, *self.kernel_size)

    def _edges(self) -> Sequence[int]:
        """Padding of both sides of each dim, starting with the last dim, in the order that `pad` takes."""
        if not isinstance(self.padding, str):
            return _reverse_repeat_tuple(self.padding, 2)
        if self.padding not in ("same", "valid"):
            raise ValueError(f"Invalid padding string '{self.padding}', should be one of {{'valid', 'same'}}")
        if self.padding == "valid":
            return [0, 0] * self._n
        if any(s != 1 for s in self.stride):
            raise ValueError("padding='same' is not supported for strided convolutions")
        result: list[int] = []
        for k, d in zip(reversed(self.kernel_size), reversed(self.dilation), strict=True):
            total = d * (k - 1)
            result += [total // 2, total - total // 2]
        return result

    def reset_parameters(self) -> None:
        """Draw weight and bias uniformly within 1 / sqrt(fan_in)."""
        if 0 in self.weight.shape:
            return
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        conv = (functions.conv1d, functions.conv2d, functions.conv3d)[self._n - 1]
        if self.padding_mode == "zeros":
            return conv(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)
        padded = pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
        return conv(padded, weight, bias, self.stride, 0, self.dilation, self.groups)

    def extra_repr(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding != (0,) * self._n:
            text += f", padding={self.padding}"
        if self.dilation != (1,) * self._n:
            text += f", dilation={self.dilation}"
        if self.output_padding != (0,) * self._n:
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        return text if self.padding_mode == "zeros" else text + f", padding_mode={self.padding_mode}"


class _Conv(_ConvNd):
    def __init__(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
                 dilation: Any = 1, groups: int = 1, bias: bool = True, padding_mode: str = "zeros", device: Any = None,
                 dtype: Any = None) -> None:  # fmt: skip
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, 0,
                         device, dtype)  # fmt: skip


class Conv1d(_Conv):
    """Convolution of (n, in_channels, l) or (in_channels, l) to (n, out_channels, l')."""

    _n = 1


class Conv2d(_Conv):
    """Convolution of (n, in_channels, h, w) or (in_channels, h, w) to (n, out_channels, h', w')."""

    _n = 2


class Conv3d(_Conv):
    """Convolution of (n, in_channels, d, h, w) or (in_channels, d, h, w) to (n, out_channels, d', h', w')."""

    _n = 3


class _ConvTransposeNd(_ConvNd):
    _transposed = True

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
                 output_padding: Any = 0, groups: int = 1, bias: bool = True, dilation: Any = 1,
                 padding_mode: str = "zeros", device: Any = None, dtype: Any = None) -> None:  # fmt: skip
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode,
                         output_padding, device, dtype)  # fmt: skip

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        """Transposed convolution of `input`.

        output_size: selects one of the spatial sizes that map to input's size under the stride; by default the smallest.
        Raises: ValueError for an output_size outside their range.
        """
        if self.padding_mode != "zeros":
            raise ValueError(f"Only `zeros` padding mode is supported for {type(self).__name__}")
        conv = (functions.conv_transpose1d, functions.conv_transpose2d, functions.conv_transpose3d)[self._n - 1]
        extra = self._output_padding(input, output_size)
        return conv(input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation)

    def _output_padding(self, input: Tensor, output_size: list[int] | None) -> tuple[int, ...]:
        if output_size is None:
            return self.output_padding
        n = self._n
        lead = input.ndim - n
        sizes = list(output_size)[lead:] if len(output_size) == input.ndim else list(output_size)
        if len(sizes) != n:
            raise ValueError(f"ConvTranspose{n}D: for {input.ndim}D input, output_size must have {n} or {input.ndim} elements "
                             f"(got {len(output_size)})")  # fmt: skip
        smallest = [(input.shape[i + lead] - 1) * self.stride[i] - 2 * self.padding[i]
                    + self.dilation[i] * (self.kernel_size[i] - 1) + 1 for i in range(n)]  # fmt: skip
        largest = [low + self.stride[i] - 1 for i, low in enumerate(smallest)]
        if any(not low <= size <= high for low, size, high in zip(smallest, sizes, largest, strict=True)):
            raise ValueError(f"requested an output size of {output_size}, but valid sizes range from {smallest} to {largest} "
                             f"(for an input of {input.size()[lead:]})")  # fmt: skip
        return tuple(size - low for size, low in zip(sizes, smallest, strict=True))


class ConvTranspose1d(_ConvTransposeNd):
    """Transposed convolution of (n, in_channels, l) or (in_channels, l)."""

    _n = 1


class ConvTranspose2d(_ConvTransposeNd):
    """Transposed convolution of (n, in_channels, h, w) or (in_channels, h, w)."""

    _n = 2


class ConvTranspose3d(_ConvTransposeNd):
    """Transposed convolution of (n, in_channels, d, h, w) or (in_channels, d, h, w)."""

    _n = 3


_ConvTransposeMixin = _ConvTransposeNd  # the name before torch 1.8, which model code still uses


class _LazyConvXdMixin(LazyModuleMixin, _ConvNd):
    """Takes in_channels from the first input."""

    def _defer(self, out_channels: int, device: Any, dtype: Any) -> None:
        """Replace the parameters of a convolution without channels by uninitialised ones."""
        self.out_channels = out_channels
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        if self.bias is not None:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        if not self.has_uninitialized_params():
            return
        if input.ndim not in (self._n + 1, self._n + 2):
            raise RuntimeError(f"Expected {self._n + 1}D (unbatched) or {self._n + 2}D (batched) input to "
                               f"{type(self).__name__}, but got input of size: {input.shape}")  # fmt: skip
        self.in_channels = input.shape[-self._n - 1]
        if self.in_channels % self.groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        self.weight.materialize(self._weight_shape())
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()


class _LazyConv(_LazyConvXdMixin):
    def __init__(self, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
                 groups: int = 1, bias: bool = True, padding_mode: str = "zeros", device: Any = None,
                 dtype: Any = None) -> None:  # fmt: skip
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, bias, padding_mode, device=device, dtype=dtype)
        self._defer(out_channels, device, dtype)


class _LazyConvTranspose(_LazyConvXdMixin):
    def __init__(self, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
                 groups: int = 1, bias: bool = True, dilation: Any = 1, padding_mode: str = "zeros", device: Any = None,
                 dtype: Any = None) -> None:  # fmt: skip
        super().__init__(0, 0, kernel_size, stride, padding, output_padding, groups, bias, dilation, padding_mode, device, dtype)
        self._defer(out_channels, device, dtype)


class LazyConv1d(_LazyConv, Conv1d):
    """A Conv1d that takes in_channels from its first input."""

    cls_to_become = Conv1d


class LazyConv2d(_LazyConv, Conv2d):
    """A Conv2d that takes in_channels from its first input."""

    cls_to_become = Conv2d


class LazyConv3d(_LazyConv, Conv3d):
    """A Conv3d that takes in_channels from its first input."""

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    """A ConvTranspose1d that takes in_channels from its first input."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    """A ConvTranspose2d that takes in_channels from its first input."""

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    """A ConvTranspose3d that takes in_channels from its first input."""

    cls_to_become = ConvTranspose3d
