"""The gradient of a tensor that was written to through a view may come in another layout: `view` refused it in backward."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import eager as torch


def _flat(x: Any, write: bool) -> Any:
    h = x.clone()
    if write:
        h.view(-1)[::2] = 1
    else:
        h = torch.where(torch.arange(12).view(3, 4) % 2 == 0, 1.0, h)
    return h.t() * torch.arange(12.0).view(4, 3)


def _flat_of_a_transposed_base(x: Any, write: bool) -> Any:
    h = x.t().contiguous().t() * 1
    assert h.stride() == (1, 3)
    if write:
        h.t().view(-1)[:6].mul_(2)
    else:
        h = torch.where((torch.arange(12) < 6).view(4, 3).t(), h * 2, h)
    return h.contiguous() * torch.arange(12.0).view(3, 4)


def _split_in_two(x: Any, write: bool) -> Any:
    h = x.expand(2, 3, 4).clone()
    if write:
        h.view(2, 12)[:, 1:4].zero_()
    else:
        at = torch.arange(12)
        h = torch.where(((at >= 1) & (at < 4)).view(3, 4), 0.0, h)
    return h.permute(2, 0, 1).pow(2)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("fn", [_flat, _flat_of_a_transposed_base, _split_in_two])
def test_gradients_and_their_gradients(fn: Callable[[Any, bool], Any], compiled: bool) -> None:
    found = []
    for write in (True, False):
        x = torch.arange(12.0, dtype=torch.float64).view(3, 4).requires_grad_()
        y = (torch.compile(fn) if compiled and write else fn)(x, write)
        (g,) = torch.autograd.grad(y.pow(3).sum(), x, create_graph=True)
        found.append((y.detach(), g.detach(), torch.autograd.grad(g.pow(2).sum(), x)[0]))
    assert all(torch.allclose(a, b) for a, b in zip(*found, strict=True))
