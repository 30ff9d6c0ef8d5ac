"""Instance normalisation: each channel of each sample separately."""
from __future__ import annotations

import warnings
from typing import Any

from eager._tensor.tensor import Tensor
from eager.nn import functional
from eager.nn.modules.batchnorm import _check, _LazyNormBase, _NormBase


class _InstanceNorm(_NormBase):
    _spatial = 0

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = False,
                 track_running_stats: bool = False, device: Any = None, dtype: Any = None, *, bias: bool = True) -> None:  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _check_input_dim(self, input: Tensor) -> None:
        _check(input, self._spatial + 1, self._spatial + 2)

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        channels = input.shape[-self._spatial - 1]
        if channels != self.num_features:
            if self.affine:
                raise ValueError(f"expected input's size at dim={input.ndim - self._spatial - 1} to match num_features "
                                 f"({self.num_features}), but got: {channels}.")  # fmt: skip
            warnings.warn(f"input's size at dim={input.ndim - self._spatial - 1} does not match num_features. You can silence "
                          "this warning by not passing in num_features, which is not used because affine=False",
                          stacklevel=2)  # fmt: skip
        batched = input if input.ndim == self._spatial + 2 else input.unsqueeze(0)
        y = functional.instance_norm(batched, self.running_mean, self.running_var, self.weight, self.bias,
                                     self.training or not self.track_running_stats,
                                     0.0 if self.momentum is None else self.momentum, self.eps)  # fmt: skip
        return y if batched is input else y.squeeze(0)


class InstanceNorm1d(_InstanceNorm):
    """Normalises each channel of each sample of (n, c, l) or (c, l) separately."""

    _spatial = 1


class InstanceNorm2d(_InstanceNorm):
    """Normalises each channel of each sample of (n, c, h, w) or (c, h, w) separately."""

    _spatial = 2


class InstanceNorm3d(_InstanceNorm):
    """Normalises each channel of each sample of (n, c, d, h, w) or (c, d, h, w) separately."""

    _spatial = 3


class _LazyInstanceNorm(_LazyNormBase, _InstanceNorm):
    """Takes num_features from the first input, batched or not."""

    def _channels(self, input: Tensor) -> int:
        self._check_input_dim(input)
        return input.shape[-self._spatial - 1]


class LazyInstanceNorm1d(_LazyInstanceNorm):
    """An InstanceNorm1d that takes num_features from its first input."""

    _spatial = 1
    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(_LazyInstanceNorm):
    """An InstanceNorm2d that takes num_features from its first input."""

    _spatial = 2
    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(_LazyInstanceNorm):
    """An InstanceNorm3d that takes num_features from its first input."""

    _spatial = 3
    cls_to_become = InstanceNorm3d
