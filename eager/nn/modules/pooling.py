"""Pooling layers."""
from __future__ import annotations

from typing import Any

from eager._tensor.tensor import Tensor
from eager.functions import pooling as functions
from eager.nn.functional import fractional
from eager.nn.module import Module
from eager.nn.modules.utils import _ntuple


class _MaxPoolNd(Module):
    _n = 0

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, return_indices: bool = False,
                 ceil_mode: bool = False) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Any:
        pool = (functions.max_pool1d, functions.max_pool2d, functions.max_pool3d)[self._n - 1]
        return pool(input, self.kernel_size, self.stride, self.padding, self.dilation, ceil_mode=self.ceil_mode,
                    return_indices=self.return_indices)  # fmt: skip

    def extra_repr(self) -> str:
        return (f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, dilation={self.dilation}, "
                f"ceil_mode={self.ceil_mode}")  # fmt: skip


class MaxPool1d(_MaxPoolNd):
    """The maximum of each window of (n, c, l); with return_indices also its position."""

    _n = 1


class MaxPool2d(_MaxPoolNd):
    """The maximum of each window of (n, c, h, w); with return_indices also its position."""

    _n = 2


class MaxPool3d(_MaxPoolNd):
    """The maximum of each window of (n, c, d, h, w); with return_indices also its position."""

    _n = 3


class _MaxUnpoolNd(Module):
    _n = 0

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        spread = _ntuple(self._n)
        self.kernel_size = spread(kernel_size)
        self.stride = spread(kernel_size if stride is None else stride)
        self.padding = spread(padding)

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        unpool = (functions.max_unpool1d, functions.max_unpool2d, functions.max_unpool3d)[self._n - 1]
        return unpool(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpoolNd):
    """Places maxima (n, c, l) at the positions that MaxPool1d returned, with zeros elsewhere."""

    _n = 1


class MaxUnpool2d(_MaxUnpoolNd):
    """Places maxima (n, c, h, w) at the positions that MaxPool2d returned, with zeros elsewhere."""

    _n = 2


class MaxUnpool3d(_MaxUnpoolNd):
    """Places maxima (n, c, d, h, w) at the positions that MaxPool3d returned, with zeros elsewhere."""

    _n = 3


class _AvgPoolNd(Module):
    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPoolNd):
    """The mean of each window of (n, c, l)."""

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
                 count_include_pad: bool = True) -> None:  # fmt: skip
        super().__init__()
        one = _ntuple(1)
        self.kernel_size = one(kernel_size)
        self.stride = one(kernel_size if stride is None else stride)
        self.padding = one(padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return functions.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)


class _AvgPoolOfImages(_AvgPoolNd):
    _n = 0

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
                 count_include_pad: bool = True, divisor_override: int | None = None) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        pool = functions.avg_pool2d if self._n == 2 else functions.avg_pool3d
        return pool(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad,
                    self.divisor_override)  # fmt: skip


class AvgPool2d(_AvgPoolOfImages):
    """The mean of each window of (n, c, h, w)."""

    _n = 2


class AvgPool3d(_AvgPoolOfImages):
    """The mean of each window of (n, c, d, h, w)."""

    _n = 3


class _LPPoolNd(Module):
    _n = 0

    def __init__(self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        pool = (functions.lp_pool1d, functions.lp_pool2d, functions.lp_pool3d)[self._n - 1]
        return pool(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self) -> str:
        return (f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
                f"ceil_mode={self.ceil_mode}")  # fmt: skip


class LPPool1d(_LPPoolNd):
    """The p-norm of each window of (n, c, l)."""

    _n = 1


class LPPool2d(_LPPoolNd):
    """The p-norm of each window of (n, c, h, w)."""

    _n = 2


class LPPool3d(_LPPoolNd):
    """The p-norm of each window of (n, c, d, h, w)."""

    _n = 3


class _AdaptiveAvgPoolNd(Module):
    _n = 0

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        pool = (functions.adaptive_avg_pool1d, functions.adaptive_avg_pool2d, functions.adaptive_avg_pool3d)[self._n - 1]
        return pool(input, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """Means of windows of (n, c, l), sized so that the output is (n, c, output_size)."""

    _n = 1


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """Means of windows of (n, c, h, w), sized so that the output is (n, c, *output_size)."""

    _n = 2


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """Means of windows of (n, c, d, h, w), sized so that the output is (n, c, *output_size)."""

    _n = 3


class _AdaptiveMaxPoolNd(Module):
    _n = 0

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Any:
        pool = (functions.adaptive_max_pool1d, functions.adaptive_max_pool2d, functions.adaptive_max_pool3d)[self._n - 1]
        return pool(input, self.output_size, self.return_indices)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """Maxima of windows of (n, c, l), sized so that the output is (n, c, output_size)."""

    _n = 1


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """Maxima of windows of (n, c, h, w), sized so that the output is (n, c, *output_size)."""

    _n = 2


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """Maxima of windows of (n, c, d, h, w), sized so that the output is (n, c, *output_size)."""

    _n = 3


class _FractionalMaxPoolNd(Module):
    _n = 0
    _random_samples: Tensor | None

    def __init__(self, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False,
                 _random_samples: Tensor | None = None) -> None:  # fmt: skip
        super().__init__()
        spread = _ntuple(self._n)
        self.kernel_size = spread(kernel_size)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else spread(output_size)
        self.output_ratio = None if output_ratio is None else spread(output_ratio)
        layer = type(self).__name__
        if output_size is None and output_ratio is None:
            raise ValueError(f"{layer} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < r < 1 for r in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input: Tensor) -> Any:
        pool = (fractional.fractional_max_pool2d, fractional.fractional_max_pool3d)[self._n - 2]
        return pool(input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices, self._random_samples)


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """Maxima of randomly placed windows of (n, c, h, w), as many as output_size or output_ratio requires.

    Raises: ValueError unless exactly one of output_size and output_ratio is given.
    """

    _n = 2


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """Maxima of randomly placed windows of (n, c, d, h, w), as many as output_size or output_ratio requires.

    Raises: ValueError unless exactly one of output_size and output_ratio is given.
    """

    _n = 3
