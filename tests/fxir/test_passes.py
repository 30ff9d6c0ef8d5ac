"""Each pass: its rewrites, the calls that it must leave alone, and equal results before and after."""

from __future__ import annotations

import pytest

import eager
from eager.optable.table import OPS
from fxir.ir.graph import Graph, physical_root
from fxir.ir.graph_module import GraphModule
from fxir.ir.passes import PIPELINE, canonicalise, constant_fold, cse, dce, run_passes
from fxir.ir.verifier import verify
from fxir.trace.trace import trace
from tests.fxir.helpers import array, as_list, assert_same_tensors, capture, fakes_of
from tests.fxir.programs import PROGRAMS


def traced(fn, *tensors):
    """The functional graph before any pass."""
    return verify(trace(capture(fn, len(tensors)), fakes_of(tensors)), functional=True, specs=True)


def names(graph):
    return [n.target.name for n in graph.nodes if n.op == "call_function"]


def run(graph, *tensors):
    with eager.no_grad():
        return as_list(GraphModule(graph.root, graph)(*tensors))


X = eager.randn(3, 4)


@pytest.mark.parametrize("name", sorted(PROGRAMS))
@pytest.mark.parametrize("step", [*{p.__name__: p for p in PIPELINE}.values(), run_passes], ids=lambda f: f.__name__)
def test_every_pass_keeps_every_program(name, step):
    fn, make = PROGRAMS[name]
    tensors = make()
    if len({id(t.untyped_storage().root) for t in tensors}) < len(tensors):
        tensors = [t.clone() for t in tensors]
    graph = traced(fn, *tensors)
    want = run(graph, *tensors)
    step(graph)
    verify(graph, functional=True, specs=True)
    assert_same_tensors(run(graph, *tensors), want, rtol=0, atol=0)


def test_cse_joins_equal_calls_and_views():
    graph = traced(lambda x: ((x + 1) * (x + 1)).t() @ ((x + 1) * (x + 1)), X)
    assert cse(graph) == 4
    assert names(graph) == ["add", "mul", "permute", "mm"]


def test_cse_distinguishes_numbers():
    graph = traced(lambda x: (x * 2) + (x * 2.0) + (x * True) + (x / 0.0) + (x / -0.0), X)
    assert cse(graph) == 0


def test_cse_keeps_outputs_apart():
    graph = traced(lambda x: (x + 1, x + 1, (x + 1) * 2), X)
    cse(graph)
    a, b, _ = graph.outputs
    assert a is not b and b.target is OPS["add"]


def test_cse_keeps_outputs_apart_that_are_some_of_several_results():
    graph = traced(lambda x: (x.sort()[0], x.sort()[0].t(), x.argmax(), x.argmax()), X)
    cse(graph)
    a, b, *_ = graph.outputs
    assert physical_root(a).args[0] is not physical_root(b).args[0]


def test_cse_leaves_draws_alone():
    graph = traced(lambda x: x * eager.rand(3, 4) + x * eager.rand(3, 4), X)
    before = names(graph)
    run_passes(graph, check=True)
    assert names(graph).count("rng_state") == before.count("rng_state") == 2
    assert names(graph).count("philox_uniform") == 2


def test_dce_drops_unread_nodes_without_effect():
    def fn(x):
        x.exp().sum()
        eager.rand(2)
        return x * 2

    graph = trace(fn, fakes_of([X]))
    assert "exp" not in names(graph) and "philox_uniform" not in names(graph) and "rng_state" in names(graph)
    assert dce(graph) == 0


def test_constant_fold_computes_what_the_trace_made():
    def fn(x):
        return x + (eager.tensor([1.0, 2.0, 3.0, 4.0]) * 2).exp().flip(0)

    graph = traced(fn, X)
    want = run(graph, X)
    assert constant_fold(graph) == 3
    dce(graph)
    assert names(graph) == ["add"]
    assert_same_tensors(run(graph, X), want, rtol=0, atol=0)


def test_constant_fold_leaves_tensors_of_others_and_outputs_alone():
    w = eager.ones(4)
    gm = GraphModule({"w": w}, _reads_w())
    graph = trace(gm, fakes_of([X]))
    assert constant_fold(graph) == 0
    w.fill_(3)
    assert array(run(graph, X * 0)[0]).tolist() == [[6.0] * 4] * 3
    graph = traced(lambda x: eager.tensor([1.0, 2.0]) * 2, X)
    assert constant_fold(graph) == 0, "a result must be new memory in every call"


def _reads_w():
    g = Graph()
    x = g.placeholder("x")
    g.output(g.call_function(eager.add, (x, g.call_function(eager.mul, (g.get_attr("w"), 2)))))
    return g


GOES = {
    "mul by one": (lambda x: x.exp() * 1 + 1, ["exp", "add"]),
    "one times": (lambda x: 1 * x.exp() + 1, ["exp", "add"]),
    "div by one": (lambda x: x.exp() / 1 + 1, ["exp", "add"]),
    "minus zero": (lambda x: (x.exp() - 0) + 1, ["exp", "add"]),
    "copies of copies": (lambda x: x.exp().clone().clone() + 1, ["exp", "add"]),
    "casts to the same": (lambda x: OPS["to_dtype"](x.exp(), eager.float32) + 1, ["exp", "add"]),
    "views of views": (lambda x: x.exp().view(12).view(2, 6).view(4, 3) + 1, ["exp", "view", "add"]),
    "a view back": (lambda x: x.exp().view(12).view(3, 4) + 1, ["exp", "add"]),
    "transposed twice": (lambda x: x.exp().t().t() + 1, ["exp", "add"]),
    "expand to its size": (lambda x: x.exp().expand(3, 4) + 1, ["exp", "add"]),
    "integers plus zero": (lambda x: (x.long() + 0) * 2, ["to_dtype", "mul"]),
}
STAYS = {
    "floats plus zero": (lambda x: (x.exp() + 0) * 2, "add"),
    "a promotion": (lambda x: x.long() * 1.0 + 1, "mul"),
    "a copy that is a result": (lambda x: (x.exp().clone(), x.exp()), "clone"),
    "a copy of an input": (lambda x: x.clone() * 2, "clone"),
    "a change of layout": (lambda x: x.exp().t().contiguous().view(12) + 1, "clone"),
}


@pytest.mark.parametrize("name", sorted(GOES))
def test_canonicalise_removes(name):
    fn, left = GOES[name]
    graph = traced(fn, X)
    want = run(graph, X)
    canonicalise(graph)
    dce(graph)
    canonicalise(graph)
    dce(graph)
    assert names(verify(graph, specs=True)) == left
    assert_same_tensors(run(graph, X), want, rtol=0, atol=0)


@pytest.mark.parametrize("name", sorted(STAYS))
def test_canonicalise_keeps(name):
    fn, kept = STAYS[name]
    graph = traced(fn, X)
    run_passes(graph, check=True)
    assert kept in names(graph)


def test_minus_zero_survives_the_passes():
    graph = run_passes(traced(lambda x: (x - 0) * 1 / 1 + 0, eager.tensor([-0.0])))
    want = (eager.tensor([-0.0]) - 0) * 1 / 1 + 0
    assert str(array(run(graph, eager.tensor([-0.0]))[0])) == str(array(want))
