"""Methods by which a tensor becomes a view of itself, compiled: they were left out, and the tensor kept its old shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import dynamo
import eager as torch
from tests.dynamo.support import same

VIEWS: dict[str, tuple[Any, ...]] = {
    "unsqueeze_": (-1,), "squeeze_": (0,), "transpose_": (0, 1), "t_": (), "swapaxes_": (0, 1), "swapdims_": (-1, 0),
    "as_strided_": ((2,), (1,)),
}  # fmt: skip


def made(name: str, x: Any) -> Any:
    y = x * 2
    return getattr(y, name)(*VIEWS[name]) + 1, y.shape, y


def ignored(name: str, x: Any) -> Any:
    y, kept = x * 2, []
    kept.append(y)
    getattr(y, name)(*VIEWS[name])
    return y.sin().sum(0), kept[0] is y, y


def written(name: str, x: Any) -> Any:
    y = x * 2
    z = y[:]
    getattr(z, name)(*VIEWS[name]).add_(1)
    return y, z, y.shape == x.shape


def given(name: str, x: Any) -> Any:
    return getattr(x, name)(*VIEWS[name]) + 1, x.shape


def looped(name: str, x: Any) -> Any:
    y = x * 2
    for _ in range(3):
        y = y + 1
        if y.ndim == 2:
            getattr(y, name)(*VIEWS[name])
    return y


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("program", [made, ignored, written, given, looped])
def test_the_tensor_is_the_view_from_then_on(program: Callable[..., Any], name: str, backend: str) -> None:
    compiled = torch.compile(program, backend=backend)
    for _ in range(2):
        x, y = torch.arange(3.0).reshape(1, 3), torch.arange(3.0).reshape(1, 3)
        same(program(name, x), compiled(name, y))
        assert x.shape == y.shape and x.stride() == y.stride() and torch.equal(x, y)


@pytest.mark.parametrize("program", [made, ignored, looped])
def test_gradients_pass_through(program: Callable[..., Any]) -> None:
    grads = []
    for fn in (program, torch.compile(program, fullgraph=True)):
        x = torch.arange(3.0).reshape(1, 3).requires_grad_()
        result = fn("unsqueeze_", x)
        (result[0] if isinstance(result, tuple) else result).sin().sum().backward()
        grads.append(x.grad)
    same(*grads)


def test_resizing_is_not_captured() -> None:
    def fn(x):
        y = x * 2
        y.resize_(2)
        return y + 1, y.resize_as_(torch.ones(1, 1)) * 2

    x = torch.arange(3.0)
    assert dynamo.explain(fn)(x).graph_break_count >= 1
    same(fn(x), torch.compile(fn)(x))


def test_becoming_a_view_counts_as_a_write() -> None:
    x = torch.ones(1, 3)
    other = x[0]
    for name in ("unsqueeze_", "squeeze_", "transpose_"):
        before = x._version
        getattr(x, name)(*VIEWS[name])
        assert x._version == other._version == before + 1
