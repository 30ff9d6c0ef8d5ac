"""A break inside of `no_grad` makes what follows begin without grad mode and switch it on: the views that come out of such a graph,
and the writes into its inputs, belong to the mode that they were made in. They lost their gradients without a word."""
from __future__ import annotations

from typing import Any

import pytest

import dynamo
import eager as torch


def writes(x: Any, w: Any, y: Any) -> Any:
    with torch.no_grad():
        dynamo.graph_break()
    y.mul_(w)
    return y.sum()


def views_of_a_result(x: Any, w: Any, y: Any) -> Any:
    with torch.no_grad():
        dynamo.graph_break()
    z = x * 2
    return z, z[0], z.view(-1)


def views_of_an_input(x: Any, w: Any, y: Any) -> Any:
    with torch.no_grad():
        dynamo.graph_break()
    return x.view(-1), x[0]


def views_without(x: Any, w: Any, y: Any) -> Any:
    with torch.no_grad():
        z = x * 2
        v = z[0]
        dynamo.graph_break()
        return z, v, z[1], x[0]


def views_with_and_without(x: Any, w: Any, y: Any) -> Any:
    with torch.no_grad():
        dynamo.graph_break()
        with torch.enable_grad():
            z = x * 2
            u = z[0]
        v = z[1]
    return z, u, v


def after_inference_mode(x: Any, w: Any, y: Any) -> Any:
    with torch.inference_mode():
        dynamo.graph_break()
    z = x * w
    return z, z[0]


PROGRAMS = (writes, views_of_a_result, views_of_an_input, views_without, views_with_and_without, after_inference_mode)


def seen(fn: Any, mode: Any) -> list[Any]:
    """The autograd state and the gradients of each result and of each written tensor."""
    x, w, y = torch.ones(2, 3, requires_grad=True), torch.full((2, 3), 3.0, requires_grad=True), torch.ones(2, 3)
    with mode():
        results = fn(x, w, y)
    found = []
    for t in (*(results if isinstance(results, tuple) else (results,)), y):
        grads = torch.autograd.grad(t.sum(), (x, w), allow_unused=True, retain_graph=True) if t.grad_fn is not None else ()
        found.append((t.requires_grad, t.grad_fn is None, t._is_view(), [g if g is None else g.tolist() for g in grads]))
    return found


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("mode", [torch.enable_grad, torch.no_grad, torch.inference_mode], ids=lambda m: m.__name__)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_results_know_what_eager_knows_of_them(program: Any, mode: Any, backend: str) -> None:
    dynamo.reset()
    compiled = dynamo.compile(program, backend=backend)
    expected = seen(program, mode)
    assert seen(compiled, mode) == expected
    assert seen(compiled, mode) == expected
