"""A custom function that returns a view of its input keeps its backward: replaying the view alone lost it.

A gradient that is reversed, `x.view_as(x)` with a backward of `-g`, is the well-known case: its gradient was None for a view
of an input, and the gradient of the identity for a view of another result.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import eager as torch


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return -0.5 * g


def _with_its_base(x: Any) -> Any:
    u = x * 2
    return u, Reverse.apply(u)


def _views_around_it(x: Any) -> Any:
    u = x * 2
    return u.t(), Reverse.apply(u)[0], u


def _two_of_one(x: Any) -> Any:
    v = Reverse.apply(x.t())
    return v, v[0]


def _before_a_break(x: Any) -> Any:
    v = Reverse.apply(x)
    torch._dynamo.graph_break()
    return (v * 3,)


def _viewed_without_grad_mode(x: Any) -> Any:
    v = Reverse.apply(x)
    with torch.no_grad():
        w = v[0]
    return w, v


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "of an input": lambda x: (Reverse.apply(x),),
    "part of it": lambda x: (Reverse.apply(x)[0], Reverse.apply(x).t()),
    "with its base": _with_its_base,
    "views around it": _views_around_it,
    "two of one": _two_of_one,
    "before a break": _before_a_break,
    "twice": lambda x: (Reverse.apply(Reverse.apply(x)),),
    "twice, with a view between": lambda x: (Reverse.apply(Reverse.apply(x)[1]),),
    "detached": lambda x: (Reverse.apply(x).detach(), Reverse.apply(x).view(-1)),
    "viewed without grad mode": _viewed_without_grad_mode,
    "with the input": lambda x: (Reverse.apply(x), x, x * 2),
}


def _run(fn: Callable[[Any], Any], is_leaf: bool) -> list[Any]:
    leaf = torch.arange(4.0).view(2, 2).requires_grad_()
    x = leaf if is_leaf else leaf * 1
    results = fn(x)
    loss = sum((t * (i + 1)).sum() for i, t in enumerate(results) if t.requires_grad)
    loss.backward()
    found = [leaf.grad.tolist(), [(t.requires_grad, t.is_leaf, t.tolist()) for t in results]]
    places = [t.untyped_storage().data_ptr() for t in (x, *results)]
    with torch.no_grad():
        x.mul_(2)
    return [*found, [places.index(p) for p in places], [t.tolist() for t in results]]


@pytest.mark.parametrize("is_leaf", [True, False])
@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_values_and_memory_are_eagers(name: str, backend: str, is_leaf: bool) -> None:
    torch.compiler.reset()
    assert _run(torch.compile(PROGRAMS[name], backend=backend), is_leaf) == _run(PROGRAMS[name], is_leaf)
