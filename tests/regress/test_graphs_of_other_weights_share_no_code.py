"""Two graphs that differ only in which of several weights they read where must not share code."""

from __future__ import annotations

import itertools

import pytest

import eager as torch
from eager.base.spec import spec_of
from eager.optable.table import OPS
from fxir.base.options import CompileOptions, GraphKind
from fxir.ir.graph import Graph, GraphSignature
from fxir.ir.node import NodeInfo
from inductor.driver.backend import compile_graph

N = 1536  # a weight larger than the constants whose values are part of the key


@pytest.mark.parametrize("as_output", [False, True])
def test_a_graph_is_not_served_the_code_of_another_order_of_weights(as_output: bool) -> None:
    torch.manual_seed(0)
    x, weights = torch.randn(3, N), {"a": torch.randn(N), "b": torch.randn(N)}
    for order in itertools.product("ab", repeat=3):
        graph = Graph(dict(weights))
        y, want = graph.placeholder("x", info=NodeInfo(spec_of(x))), x
        for key in order:
            weight = graph.get_attr(key, info=NodeInfo(spec_of(weights[key])))
            y = graph.call_function(OPS["sub"], (y, weight), info=NodeInfo(spec_of(x)))
            want = want - weights[key]
        graph.output((y, weight) if as_output else (y,))
        graph.signature = GraphSignature(n_user_outputs=1 + as_output)
        got = compile_graph(graph, GraphKind.INFERENCE, CompileOptions())(x)
        assert torch.equal(got[0], want), order
        assert not as_output or torch.equal(got[1], weights[order[-1]]), order


@pytest.mark.parametrize("which", [(0, 1, 0, 1), (0, 1, 1, 0), (0, 0, 1, 1)])
def test_layers_of_a_module_that_share_weights(which: tuple[int, ...]) -> None:
    torch.manual_seed(1)
    layers = [torch.nn.Linear(48, 48) for _ in range(2)]
    model = torch.nn.Sequential(*(layers[i] for i in which))
    x = torch.randn(5, 48)
    assert torch.allclose(torch.compile(model, fullgraph=True)(x), model(x), rtol=1e-5, atol=1e-5)
