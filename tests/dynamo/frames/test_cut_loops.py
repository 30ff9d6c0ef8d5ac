"""A loop with a graph break is captured from the break to its end; a loop that breaks in each iteration is compiled once."""

from __future__ import annotations

from typing import Any

import pytest

import dynamo
import eager as torch
from dynamo.compilation.region import all_regions


def _breaks_and_graphs() -> tuple[int, int]:
    found = [r.statistics for r in all_regions()]
    return sum(len(s.breaks) for s in found), sum(len(s.graphs) for s in found)


LOOPS = {
    "list": lambda: [0, 1, 2, 3, 4],
    "tuple": lambda: (0, 1, 2, 3, 4),
    "range": lambda: range(5),
    "dict": lambda: {0: "a", 1: "b", 2: "c", 3: "d"},
    "values": lambda: {"a": 0, "b": 1, "c": 2}.values(),
    "text": lambda: b"\0abc",
}


@pytest.mark.parametrize("kind", LOOPS)
@pytest.mark.parametrize("how", ["plain", "enumerate", "zip"])
def test_the_rest_of_a_loop_is_one_graph(kind: str, how: str) -> None:
    def f(x, items):
        over: Any = {"plain": lambda: items, "enumerate": lambda: enumerate(items), "zip": lambda: zip(items, items, strict=False)}[how]()
        for v in over:
            first = v if how == "plain" else v[0]
            if first == 0:
                torch._dynamo.graph_break()
            x = x * 2 + first
        return x

    dynamo.reset()
    compiled = dynamo.compile(f, backend="eager")
    for _ in range(2):
        assert torch.equal(compiled(torch.ones(3), LOOPS[kind]()), f(torch.ones(3), LOOPS[kind]()))
    assert _breaks_and_graphs() == (1, 1)


def test_a_loop_that_breaks_each_time_is_not_compiled_for_each_position() -> None:
    def f(x, n):
        for i in range(n):
            x = x * 0.5 + i
            torch._dynamo.graph_break()
        return x

    dynamo.reset()
    compiled = dynamo.compile(f, backend="eager")
    for n in (30, 40):
        assert torch.equal(compiled(torch.ones(3), n), f(torch.ones(3), n))
    assert _breaks_and_graphs()[1] <= 5


def test_layers_after_a_break_are_captured_together() -> None:
    class Stack(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.ModuleList([torch.nn.Linear(3, 3) for _ in range(6)])

        def forward(self, x):
            for i, layer in enumerate(self.layers):
                x = layer(x)
                if i == 0:
                    torch._dynamo.graph_break()
            return x

    dynamo.reset()
    module = Stack()
    compiled = dynamo.compile(module, backend="eager")
    x = torch.ones(2, 3)
    assert torch.equal(compiled(x), module(x))
    assert torch.equal(compiled(x), module(x))
    assert _breaks_and_graphs() == (1, 2)


def test_an_iterator_that_a_compiled_function_advanced_is_where_eager_leaves_it() -> None:
    def f(x, it):
        a = next(it)
        return x + a, next(it, None)

    compiled = dynamo.compile(f, backend="eager")
    for make in (lambda: iter([1, 2, 3, 4]), lambda: iter({1: 0, 2: 0, 3: 0}), lambda: iter(range(1, 9, 3)), lambda: iter((1,))):
        eager_it, captured_it = make(), make()
        f(torch.ones(1), eager_it), compiled(torch.ones(1), captured_it)
        assert list(eager_it) == list(captured_it)
