"""Weights kept packed between calls of a compiled program: used under inference, and never out of date."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import eager
import eager.nn.functional as F
from eager import nn
from eager.autograd.grad_mode import no_grad
from eager.base.spec import fake_like
from fxir.base.options import CompileOptions
from fxir.ir.graph import Graph
from fxir.ir.graph_module import GraphModule
from inductor.driver import backend


def program(fn: Callable[..., Any], inputs: list[Any], options: CompileOptions) -> tuple[Any, list[Any]]:
    """(the callable, the CompiledGraphs behind it)."""
    graph = Graph()
    graph.output(graph.call_function(fn, tuple(graph.placeholder(f"x{i}") for i in range(len(inputs)))))
    fakes = []
    for t in inputs:
        f = fake_like(t)
        f._requires_grad, f._is_param = t.requires_grad, t._is_param
        fakes.append(f)
    made: list[Any] = []
    original = backend._compile_part

    def note(*args: Any) -> Any:
        made.append(original(*args))
        return made[-1]

    backend._compile_part = note
    try:
        return backend.inductor(GraphModule({}, graph), fakes, options), made
    finally:
        backend._compile_part = original


def linear(x: Any, w: Any, b: Any) -> Any:
    return (F.linear(x, w, b),)


@pytest.fixture
def layer() -> Iterator[Any]:
    eager.manual_seed(0)
    yield nn.Linear(96, 160)


X = eager.randn(24, 96)


def compiled(layer: Any, x: Any = X, **options: Any) -> tuple[Any, list[Any]]:
    return program(linear, [x, layer.weight, layer.bias], CompileOptions(**options))


def agree(run: Any, layer: Any) -> bool:
    with no_grad():
        want = linear(X, layer.weight, layer.bias)[0]
        return bool(np.allclose(run(X, layer.weight, layer.bias)[0].numpy(), want.numpy(), atol=1e-4))


def test_parameters_are_packed_under_inference_and_activations_are_not(layer: Any) -> None:
    with no_grad():
        _, (graph,) = compiled(layer)
        (pack,) = graph.artifact.entry.plan.packs
        assert pack.sources == (1,)
        _, (plain,) = program(linear, [X, layer.weight.detach(), layer.bias.detach()], CompileOptions())
        assert not plain.artifact.entry.plan.packs


def test_training_and_the_option_turn_packing_off(layer: Any) -> None:
    _, (forward,) = compiled(layer)
    assert not forward.artifact.entry.plan.packs
    with no_grad():
        _, (graph,) = compiled(layer, options={"packing": False})
    assert not graph.artifact.entry.plan.packs


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_changed_parameter_is_seen_by_the_next_call(layer: Any, mode: str) -> None:
    with no_grad():
        run, _ = compiled(layer, mode=mode)
        for _ in range(3):
            assert agree(run, layer)
        changes: list[Callable[[], object]] = [
            lambda: layer.weight.mul_(2),
            lambda: layer.weight.data.add_(1),
            lambda: layer.weight.t()[3:5].zero_(),
            lambda: setattr(layer.weight, "data", eager.randn(160, 96)),
            lambda: layer.load_state_dict({"weight": eager.randn(160, 96), "bias": eager.randn(160)}),
            lambda: layer.weight.detach().numpy().__setitem__(slice(None), 0.25),
        ]
        for change in changes:
            change()
            for _ in range(3):
                assert agree(run, layer)


def test_two_layers_may_share_one_compiled_program(layer: Any) -> None:
    other = nn.Linear(96, 160)
    with no_grad():
        run, _ = compiled(layer)
        for _ in range(3):
            assert agree(run, layer) and agree(run, other)


def test_lifted_weight_is_packed(layer: Any) -> None:
    weight = eager.randn(96, 160)
    graph = Graph({"weight": weight})
    x = graph.placeholder("x")
    graph.output(graph.call_function(lambda a, w: (a @ w,), (x, graph.get_attr("weight"))))
    run = backend.inductor(GraphModule(graph.root, graph), [fake_like(X)], CompileOptions())
    for _ in range(3):
        assert np.allclose(run(X)[0].numpy(), X.numpy() @ weight._array, atol=1e-4)
    assert len(run.artifact.entry.plan.packs) == 1
    weight.mul_(3)
    assert np.allclose(run(X)[0].numpy(), X.numpy() @ weight._array, atol=1e-4)
