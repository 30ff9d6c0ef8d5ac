"""Batch normalisation, with running statistics."""
from __future__ import annotations

from typing import Any

from eager._tensor.tensor import Tensor
from eager.base import dtypes
from eager.base.device import CPU, default_device, device
from eager.nn import init
from eager.nn.functional import norm as functions
from eager.nn.module import Module
from eager.nn.modules.lazy import LazyModuleMixin
from eager.nn.modules.utils import parameter
from eager.nn.parameter import UninitializedBuffer, UninitializedParameter
from eager.optable.table import OPS


def _filled(shape: tuple[int, ...], value: float, where: Any, dtype: Any) -> Tensor:
    return OPS["full"](shape, value, dtypes.chosen(dtype, dtypes.get_default_dtype()), default_device() if where is None else device(where))


class _NormBase(Module):
    """Affine parameters and running statistics, one element per channel: each (num_features,)."""

    _version = 2
    weight: Tensor | None
    bias: Tensor | None
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
                 track_running_stats: bool = True, device: Any = None, dtype: Any = None, *, bias: bool = True) -> None:  # fmt: skip
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        shape = (num_features,)
        self.register_parameter("weight", parameter(shape, device, dtype) if affine else None)
        self.register_parameter("bias", parameter(shape, device, dtype) if affine and bias else None)
        tracked = track_running_stats
        self.register_buffer("running_mean", _filled(shape, 0.0, device, dtype) if tracked else None)
        self.register_buffer("running_var", _filled(shape, 1.0, device, dtype) if tracked else None)
        self.register_buffer("num_batches_tracked", _filled((), 0, device, dtypes.int64) if tracked else None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Set the mean to 0, the variance to 1 and the batch count to 0."""
        for name, value in (("running_mean", 0), ("running_var", 1), ("num_batches_tracked", 0)):
            stat = self._buffers[name]
            if stat is not None:
                stat.fill_(value)

    def reset_parameters(self) -> None:
        """Reset the running statistics, set weight to 1 and bias to 0."""
        self.reset_running_stats()
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        raise NotImplementedError(f"{type(self).__name__}._check_input_dim")

    def extra_repr(self) -> str:
        return (f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
                f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}")  # fmt: skip

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: dict[str, Any], strict: bool,
                              missing_keys: Any, unexpected_keys: Any, error_msgs: Any) -> None:  # fmt: skip
        version = local_metadata.get("version")
        key = prefix + "num_batches_tracked"
        if (version is None or version < 2) and self.track_running_stats and key not in state_dict:
            state_dict[key] = OPS["full"]((), 0, dtypes.int64, CPU)  # version 1 of the state has no batch count
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)


class _BatchNorm(_NormBase):
    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        factor = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # cumulative average over all batches
                factor = 1.0 / float(self.num_batches_tracked)
        by_batch = self.training or (self.running_mean is None and self.running_var is None)
        kept = not self.training or self.track_running_stats
        return functions.batch_norm(input, self.running_mean if kept else None, self.running_var if kept else None,
                                    self.weight, self.bias, by_batch, factor, self.eps)  # fmt: skip


def _check(input: Tensor, *allowed: int) -> None:
    if input.ndim not in allowed:
        ranks = " or ".join(f"{n}D" for n in allowed)
        raise ValueError(f"expected {ranks} input (got {input.ndim}D input)")


class BatchNorm1d(_BatchNorm):
    """Batch normalisation of (n, c) or (n, c, l), c = num_features. Raises: ValueError for other ranks."""

    def _check_input_dim(self, input: Tensor) -> None:
        _check(input, 2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch normalisation of (n, c, h, w), c = num_features. Raises: ValueError for other ranks."""

    def _check_input_dim(self, input: Tensor) -> None:
        _check(input, 4)


class BatchNorm3d(_BatchNorm):
    """Batch normalisation of (n, c, d, h, w), c = num_features. Raises: ValueError for other ranks."""

    def _check_input_dim(self, input: Tensor) -> None:
        _check(input, 5)


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation of (n, c, *) over all processes of a group; with one process, ordinary batch normalisation."""

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
                 track_running_stats: bool = True, process_group: Any = None, device: Any = None, dtype: Any = None, *,
                 bias: bool = True) -> None:  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim < 2:
            raise ValueError(f"expected at least 2D input (got {input.ndim}D input)")

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """Replace every batch norm in `module` by a SyncBatchNorm that shares its tensors; returns the new root."""
        result = module
        if isinstance(module, _BatchNorm):
            result = cls(module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats, process_group,
                         bias=module.bias is not None)  # fmt: skip
            if module.affine:
                result.weight, result.bias = module.weight, module.bias
            for name in ("running_mean", "running_var", "num_batches_tracked", "training"):
                setattr(result, name, getattr(module, name))
        for name, child in module.named_children():
            result.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return result


class _LazyNormBase(LazyModuleMixin, _NormBase):
    """Takes num_features from the first input."""

    def __init__(self, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
                 track_running_stats: bool = True, device: Any = None, dtype: Any = None, *, bias: bool = True) -> None:  # fmt: skip
        super().__init__(0, eps, momentum, False, False, device, dtype)
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(device=device, dtype=dtype)
            if bias:
                self.bias = UninitializedParameter(device=device, dtype=dtype)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)
            self.num_batches_tracked = _filled((), 0, device, dtypes.int64)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def _channels(self, input: Tensor) -> int:
        return input.shape[1]

    def initialize_parameters(self, input: Tensor) -> None:
        if self.has_uninitialized_params():
            self.num_features = self._channels(input)
            for t in (self.weight, self.bias, self.running_mean, self.running_var):
                if t is not None:
                    t.materialize((self.num_features,))
            self.reset_parameters()


class LazyBatchNorm1d(_LazyNormBase, _BatchNorm):
    """A BatchNorm1d that takes num_features from its first input."""

    cls_to_become = BatchNorm1d

    def _check_input_dim(self, input: Tensor) -> None:
        _check(input, 2, 3)


class LazyBatchNorm2d(_LazyNormBase, _BatchNorm):
    """A BatchNorm2d that takes num_features from its first input."""

    cls_to_become = BatchNorm2d

    def _check_input_dim(self, input: Tensor) -> None:
        _check(input, 4)


class LazyBatchNorm3d(_LazyNormBase, _BatchNorm):
    """A BatchNorm3d that takes num_features from its first input."""

    cls_to_become = BatchNorm3d

    def _check_input_dim(self, input: Tensor) -> None:
        _check(input, 5)
