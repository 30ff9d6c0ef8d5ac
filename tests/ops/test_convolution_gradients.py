"""Gradients of convolutions over stride, padding, dilation, groups and output_padding, first and second, against differences.

A convolution is linear in each operand, so that a central difference of any step is exact up to rounding.
"""
from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

import eager
from eager.nn import functional as F  # noqa: N812

_KERNEL, _INPUT, _SMALL = (2, 3, 1), (6, 7, 3), (3, 4, 2)


def _cases() -> list[tuple[int, bool, int, int, int, int, int]]:
    """(dims, transposed, stride, padding, dilation, groups, output_padding), as far as torch allows them."""
    plain = [(1, False, s, p, d, g, 0) for s, p, d, g in itertools.product((1, 2, 3), (0, 1), (1, 2), (1, 2))]
    options = itertools.product((1, 2, 3), (0, 1), (1, 3), (1, 2), (0, 1, 2))
    turned = [(2, True, s, p, d, g, o) for s, p, d, g, o in options if o < max(s, d)]
    deep = [(3, t, 2, 1, 2, 2, 1 if t else 0) for t in (False, True)]
    return plain + turned[::2] + deep


def _call(dims: int, transposed: bool, stride: int, padding: int, dilation: int, groups: int, extra: int) -> Callable[..., Any]:
    if transposed:
        return lambda x, w, b: getattr(F, f"conv_transpose{dims}d")(x, w, b, stride, padding, extra, groups, dilation)
    return lambda x, w, b: getattr(F, f"conv{dims}d")(x, w, b, stride, padding, dilation, groups)


def _dot(a: Any, b: Any) -> Any:
    return (a * b).sum()


def _slope(f: Callable[..., Any], args: list[Any], i: int, step: Any) -> Any:
    """The derivative of f in args[i] along `step`: exact where f is linear in it."""
    ends = [[*args[:i], args[i].detach() + sign * step, *args[i + 1 :]] for sign in (1, -1)]
    return (f(*ends[0]) - f(*ends[1])) / 2


@pytest.mark.parametrize("case", _cases(), ids=str)
def test_gradients_agree_with_differences(case: tuple[int, bool, int, int, int, int, int]) -> None:
    dims, transposed, groups = case[0], case[1], case[5]
    eager.manual_seed(0)
    f = _call(*case)
    channels = (2 * groups, 3, 3 * groups) if transposed else (2 * groups, 2, 2 * groups)
    x = eager.randn(1, 2 * groups, *(_SMALL if transposed else _INPUT)[:dims], dtype=eager.float64)
    args = [x, eager.randn(*channels[:2], *_KERNEL[:dims], dtype=eager.float64), eager.randn(channels[2], dtype=eager.float64)]
    args = [a.requires_grad_() for a in args]
    y = f(*args)
    g = eager.randn_like(y)
    grads = eager.autograd.grad(_dot(y, g), args, create_graph=True)
    steps = [eager.randn_like(a) for a in args]
    for i, (a, grad, step) in enumerate(zip(args, grads, steps, strict=True)):
        assert grad.shape == a.shape
        assert float(_dot(grad, step)) == pytest.approx(float(_slope(lambda *v: _dot(f(*v), g), args, i, step)), abs=1e-9)

    def projected(*values: Any) -> Any:
        fresh = [v.detach().requires_grad_() for v in values]
        found = eager.autograd.grad(_dot(f(*fresh), g), fresh[:2])
        return _dot(found[0], steps[0]) + _dot(found[1], steps[1])

    second = eager.autograd.grad(_dot(grads[0], steps[0]) + _dot(grads[1], steps[1]), args[:2])
    for i in range(2):
        assert float(_dot(second[i], steps[i])) == pytest.approx(float(_slope(projected, args, i, steps[i])), abs=1e-8)
