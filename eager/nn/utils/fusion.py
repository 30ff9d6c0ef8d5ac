"""Fusion of an evaluation-mode batch norm into the preceding linear map."""
from __future__ import annotations

import copy
from typing import Any

from eager._tensor.tensor import Tensor
from eager.nn.module import Module
from eager.nn.parameter import Parameter
from eager.optable.table import OPS


def _scale(var: Tensor, eps: float, weight: Tensor | None) -> Tensor:
    scale = OPS["rsqrt"](var + eps)
    return scale if weight is None else weight * scale


def _fused(weight: Tensor, bias: Tensor | None, mean: Tensor, scale: Tensor, shift: Tensor | None,
           shape: tuple[int, ...]) -> tuple[Parameter, Parameter]:  # fmt: skip
    moved = -mean * scale if bias is None else (bias - mean) * scale
    if shift is not None:
        moved = moved + shift
    new_weight = Parameter((weight * scale.view(shape)).to(weight.dtype).detach(), weight.requires_grad)
    requires_grad = bias is None or bias.requires_grad
    return new_weight, Parameter(moved.to((weight if bias is None else bias).dtype).detach(), requires_grad)


def _check(first: Any, bn: Any) -> None:
    if first.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A copy of `conv` that computes bn(conv(x)). transpose: `conv` is a transposed convolution.

    Raises: AssertionError in training mode, or without running statistics.
    """
    _check(conv, bn)
    fused = copy.deepcopy(conv)
    fused.weight, fused.bias = fuse_conv_bn_weights(fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps,
                                                    bn.weight, bn.bias, transpose)  # fmt: skip
    return fused


def fuse_conv_bn_weights(conv_w: Tensor, conv_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float,
                         bn_w: Tensor | None, bn_b: Tensor | None, transpose: bool = False) -> tuple[Parameter, Parameter]:  # fmt: skip
    """Weight and bias of the fused convolution."""
    shape = (1, -1, *(1,) * (conv_w.ndim - 2)) if transpose else (-1, *(1,) * (conv_w.ndim - 1))
    return _fused(conv_w, conv_b, bn_rm, _scale(bn_rv, bn_eps, bn_w), bn_b, shape)


def fuse_linear_bn_eval(linear: Any, bn: Module) -> Any:
    """A copy of `linear` that computes bn(linear(x)).

    Raises: AssertionError in training mode, without running statistics, or if the numbers of features differ
    (unless the norm has a single feature).
    """
    _check(linear, bn)
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError("To fuse, linear.out_features == bn.num_features or bn.num_features == 1")
    fused = copy.deepcopy(linear)
    fused.weight, fused.bias = fuse_linear_bn_weights(fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps,
                                                      bn.weight, bn.bias)  # fmt: skip
    return fused


def fuse_linear_bn_weights(linear_w: Tensor, linear_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float,
                           bn_w: Tensor | None, bn_b: Tensor | None) -> tuple[Parameter, Parameter]:  # fmt: skip
    """Weight and bias of the fused linear layer."""
    return _fused(linear_w, linear_b, bn_rm, _scale(bn_rv, bn_eps, bn_w), bn_b, (-1, 1))
