"""Backward from some of the outputs of a graph for all sizes. This backward is compiled after the guards are fixed."""
from __future__ import annotations

import itertools
from typing import Any

import pytest

import eager as torch
from tests.dynamic.support import BACKENDS, assert_same


def _two_layouts(w: Any, n: int) -> tuple[Any, Any]:
    h = torch.arange(n).to(torch.float64)[:, None, None] * w
    return h * 3, h.transpose(0, 1).contiguous() * 2


def _two_layouts_in_the_other_order(w: Any, n: int) -> tuple[Any, Any]:
    return _two_layouts(w, n)[::-1]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("f", [_two_layouts, _two_layouts_in_the_other_order])
def test_a_layout_is_inferred_without_a_guard_on_sizes(f: Any, backend: str) -> None:
    """n may be any integer, so that no proof decides which of the strides 4*n and 4 is greater."""
    for used in ((0,), (1,), (0, 1)):
        made = torch.compile(f, dynamic=True, backend=backend)
        for n, shape in itertools.product((5, 7), ((2, 4), (3, 4))):
            grads = []
            for fn in (f, made):
                w = torch.arange(float(shape[0] * shape[1])).double().reshape(shape).requires_grad_()
                results = fn(w, n)
                sum(results[k].square().sum() for k in used).backward()
                grads.append(w.grad)
            assert_same(grads[1], grads[0])
