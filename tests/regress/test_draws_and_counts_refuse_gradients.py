"""Functions without a derivative raise: at the call if `out=` has no history, in backward if torch accepts the call."""
from collections.abc import Callable
from typing import Any

import pytest

import eager as torch

HISTOGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "count": lambda x, w: torch.histogram(x, 3),
    "edges": lambda x, w: torch.histogram(x.detach(), torch.linspace(0, 1, 4) + x[0] * 0),
    "weight": lambda x, w: torch.histogram(x.detach(), 3, weight=w),
    "density": lambda x, w: x.histogram(3, density=True),
    "of points": lambda x, w: torch.histogramdd(x.view(3, 2), [2, 2]),
    "of weighted points": lambda x, w: torch.histogramdd(x.detach().view(6, 1), [2], weight=w),
}


@pytest.mark.parametrize("name", HISTOGRAMS)
def test_backward_of_a_histogram_refuses(name: str) -> None:
    x, w = (torch.linspace(0, 1, 6).requires_grad_() for _ in range(2))
    hist, edges = HISTOGRAMS[name](x, w)
    assert torch.equal(hist, HISTOGRAMS[name](x.detach(), w.detach())[0])
    for result in (hist, edges[0] if isinstance(edges, tuple) else edges):
        with pytest.raises(NotImplementedError, match="the derivative for 'histogram_of' is not implemented"):
            result.sum().backward(retain_graph=True)
    with torch.no_grad():
        assert not HISTOGRAMS[name](x, w)[0].requires_grad


@pytest.mark.parametrize("among", range(3))
def test_normal_with_out_refuses_gradients(among: int) -> None:
    mean, std, out = (torch.ones(3, requires_grad=i == among) for i in range(3))
    with pytest.raises(RuntimeError, match=r"normal\(\): functions with out=\.\.\. arguments don't support automatic differentiation"):
        torch.normal(mean, std, out=out)
    with torch.no_grad():
        assert torch.normal(mean, std, out=out) is out
