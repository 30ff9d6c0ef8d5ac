"""The gradients of a convolution with respect to its input and its weight, as separate functions."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eager._tensor.tensor import Tensor
from eager.autograd.grad_mode import enable_grad
from eager.functions.convolution import conv1d, conv2d, conv3d
from eager.tape.engine import grad


def _gradient(conv: Callable[..., Tensor], varied: Tensor, args: tuple[Tensor, Tensor], grad_output: Tensor,
              settings: tuple[Any, ...]) -> Tensor:  # fmt: skip
    with enable_grad():
        leaf = varied.detach().requires_grad_()
        y = conv(*(leaf if a is varied else a.detach() for a in args), None, *settings)
        return grad(y, leaf, grad_output)[0]


def _pair_for(conv: Callable[..., Tensor], n: int) -> tuple[Callable[..., Tensor], Callable[..., Tensor]]:
    def of_input(input_size: Any, weight: Tensor, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
                 groups: int = 1) -> Tensor:  # fmt: skip
        """Gradient of a convolution with respect to its input.

        input_size: shape (n, c, *) of the input. weight: (out, c / groups, *kernel). grad_output: gradient of the output.
        Result: shape input_size.
        """
        x = grad_output.new_empty(tuple(input_size))
        return _gradient(conv, x, (x, weight), grad_output, (stride, padding, dilation, groups))

    def of_weight(input: Tensor, weight_size: Any, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
                  groups: int = 1) -> Tensor:  # fmt: skip
        """Gradient of a convolution with respect to its weight.

        input: (n, c, *). weight_size: shape (out, c / groups, *kernel) of the weight. grad_output: gradient of the output.
        Result: shape weight_size.
        """
        w = grad_output.new_empty(tuple(weight_size))
        return _gradient(conv, w, (input, w), grad_output, (stride, padding, dilation, groups))

    of_input.__name__ = of_input.__qualname__ = f"conv{n}d_input"
    of_weight.__name__ = of_weight.__qualname__ = f"conv{n}d_weight"
    return of_input, of_weight


conv1d_input, conv1d_weight = _pair_for(conv1d, 1)
conv2d_input, conv2d_weight = _pair_for(conv2d, 2)
conv3d_input, conv3d_weight = _pair_for(conv3d, 3)
