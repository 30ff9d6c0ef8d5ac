"""Gradients of tensors that share memory, after in-place changes of their shapes and strides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import eager as torch

CHANGES = {"t_": (), "unsqueeze_": (0,), "squeeze_": (), "transpose_": (0, 1)}
VIEWS = [lambda b: b.view(-1), lambda b: b[0], lambda b: b.t(), lambda b: b.view(3, 2)[1:], lambda b: b.unsqueeze(0)]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("of_base", [True, False])
def test_gradients_after_an_in_place_change_of_shape_or_strides(change: str, view: Any, of_base: bool) -> None:
    """The expected values follow from positions in memory: element k of the base is 2 x[k], regardless of the shapes and
    strides of the base and its views."""
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    base = (x * 2).clone()
    seen = view(base)
    inside = np.isin(np.arange(6.0), torch.arange(6.0).as_strided(seen.shape, seen.stride(), seen.storage_offset()).numpy())
    changed = base if of_base else seen
    if change in ("t_", "transpose_") and changed.ndim != 2:
        change = "unsqueeze_"
    getattr(changed, change)(*CHANGES[change])
    base.mul_(3)
    seen.mul_(5)
    (base * base).sum().backward(retain_graph=True)
    factor = np.where(inside, 30.0, 6.0)
    np.testing.assert_allclose(x.grad.numpy().ravel(), 2 * factor**2 * np.arange(6.0))
    x.grad = None
    seen.sum().backward()
    np.testing.assert_allclose(x.grad.numpy().ravel(), np.where(inside, 30.0, 0.0))
