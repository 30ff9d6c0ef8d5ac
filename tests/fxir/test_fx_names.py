"""torch.fx under its names: tracing, rewriting and running graphs, and backends written for torch."""

from __future__ import annotations

import copy
import operator
import pickle
from typing import Any, NamedTuple

import pytest

import eager as torch
from eager import fx, nn
from fxir.ir.leaves import LEAVES
from fxir.torchfx.experimental.proxy_tensor import make_fx
from fxir.torchfx.passes.shape_prop import ShapeProp
from fxir.torchfx.proxy import TraceError


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.block = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
        self.scale = nn.Parameter(torch.ones(4) * 3)
        self.register_buffer("shift", torch.ones(4))

    def forward(self, x, k=2):
        u, v = torch.chunk(self.block(x) * self.scale + self.shift, 2, dim=-1)
        return torch.cat([torch.relu(u), v.sigmoid()], -1).view(x.shape[0], -1) * k


@pytest.fixture
def net() -> Net:
    torch.manual_seed(0)
    return Net()


X = torch.arange(6).reshape(2, 3) / 6


def test_a_module_is_traced_to_its_leaves(net) -> None:
    gm = fx.symbolic_trace(net)
    assert [(n.op, n.target) for n in gm.graph.nodes if n.op in ("call_module", "get_attr")] == [
        ("call_module", "block.0"), ("call_module", "block.1"), ("get_attr", "scale"), ("get_attr", "shift"),
    ]  # fmt: skip
    assert torch.equal(gm(X), net(X))
    assert torch.equal(gm(X, 5), net(X, 5))
    assert isinstance(gm, nn.Module)
    assert {id(p) for p in gm.parameters()} == {id(p) for p in net.parameters()}
    with torch.no_grad():
        net.scale.fill_(7)
    assert torch.equal(gm(X), net(X))


def test_concrete_arguments_decide_branches() -> None:
    def f(x, flag):
        return x + 1 if flag else x - 1

    gm = fx.symbolic_trace(f, concrete_args={"flag": False})
    assert torch.equal(gm(X), X - 1)
    with pytest.raises(TraceError, match="control flow"):
        fx.symbolic_trace(f)


def test_operators_methods_and_attributes_become_nodes() -> None:
    def f(x, y):
        return (2 - x) @ y.T, -x[0, 1:], x.shape[1], torch.where(x > y, x, y).sum(dim=0)

    gm = fx.symbolic_trace(f)
    got, want = gm(X, X + 0.1), f(X, X + 0.1)
    assert all(torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b for a, b in zip(got, want, strict=True))


def test_graphs_are_rewritten_in_place(net) -> None:
    gm = fx.symbolic_trace(net)
    (relu,) = gm.graph.find_nodes(op="call_function", target=torch.relu)
    with gm.graph.inserting_after(relu):
        new = gm.graph.call_function(torch.tanh, args=relu.args)
        relu.replace_all_uses_with(new)
        gm.graph.erase_node(relu)
    gm.graph.lint()
    gm.recompile()
    assert not torch.equal(gm(X), net(X))
    assert "tanh" in gm.code
    assert len(gm.graph.nodes) == len(list(reversed(gm.graph.nodes)))


def test_new_parts_can_be_called(net) -> None:
    gm = fx.symbolic_trace(net)
    gm.add_submodule("extra.neg", nn.Softplus())
    out = gm.graph.output_node
    with gm.graph.inserting_before(out):
        out.args = (gm.graph.call_module("extra.neg", (out.args[0],)),)
    gm.graph.lint()
    assert torch.equal(gm(X), nn.Softplus()(net(X)))


def test_a_copy_is_independent(net) -> None:
    gm = fx.symbolic_trace(net)
    other = copy.deepcopy(gm)
    other.graph.output_node.args = (other.graph.placeholders[0],)
    assert torch.equal(other(X), X)
    assert torch.equal(gm(X), net(X))


def test_a_transformer_makes_a_new_graph(net) -> None:
    class Swap(fx.Transformer):
        def call_function(self, target, args, kwargs):
            return super().call_function(torch.sin if target is torch.relu else target, args, kwargs)

    gm = fx.symbolic_trace(net)
    swapped = Swap(gm).transform()
    targets = [n.target for n in swapped.graph.nodes]
    assert torch.sin in targets
    assert torch.relu not in targets
    assert torch.relu in [n.target for n in gm.graph.nodes]
    assert swapped(X).shape == net(X).shape


def test_an_interpreter_sees_every_node(net) -> None:
    seen = []

    class Count(fx.Interpreter):
        def run_node(self, n):
            seen.append(n.name)
            return super().run_node(n)

    gm = fx.symbolic_trace(net)
    assert torch.equal(Count(gm).run(X), net(X))
    assert seen == [n.name for n in gm.graph.nodes]


def helper(x):
    return x + (1 if bool(x.sum() > 0) else 2)


LEAVES.add((__name__, "helper"))


def test_wrapped_functions_are_kept_whole() -> None:
    gm = fx.symbolic_trace(lambda x: helper(x * 2))
    assert torch.equal(gm(X), helper(X * 2))
    assert helper(X).shape == X.shape


def test_a_tracer_may_choose_its_leaves(net) -> None:
    class Whole(fx.Tracer):
        def is_leaf_module(self, m, module_qualified_name):
            return module_qualified_name == "block" or super().is_leaf_module(m, module_qualified_name)

    graph = Whole().trace(net)
    assert [n.target for n in graph.nodes if n.op == "call_module"] == ["block"]


def test_the_table_of_a_graph(capsys) -> None:
    fx.symbolic_trace(lambda x: x + 1).graph.print_tabular()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["opcode", "name", "target", "args", "kwargs"]
    assert [line.split()[0] for line in lines[2:]] == ["placeholder", "call_function", "output"]


def test_a_backend_written_for_torch(capsys) -> None:
    seen = []

    def backend(gm: fx.GraphModule, example_inputs: list[torch.Tensor]):
        gm.graph.print_tabular()
        for node in gm.graph.nodes:
            seen.append((node.op, node.meta.get("example_value"), node.stack_trace))
            if node.op == "call_function" and node.target in (operator.mul, torch.mul):
                node.target = operator.add
        gm.graph.lint()
        gm.recompile()
        return gm.forward

    compiled = torch.compile(lambda x: (x * 2).relu(), backend=backend)
    assert torch.equal(compiled(X), (X + 2).relu())
    assert "call_function" in capsys.readouterr().out
    assert [tuple(value.shape) for op, value, _ in seen if op != "output"] == [(2, 3)] * 3
    assert all("test_fx_names.py" in trace for op, _, trace in seen if op.startswith("call"))


class Twice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, x):
        return torch.relu(self.a(x)) + torch.relu(self.b(x)) * 2


def test_patterns_are_replaced_at_every_match() -> None:
    def pattern(x, w):
        return torch.relu(x) * w

    def replacement(x, w):
        return torch.sigmoid(x) - w

    def f(x):
        y = torch.relu(x) * 3
        kept = torch.relu(y)
        return y + kept * 2 + kept, torch.relu(x + 1) * x

    gm = fx.symbolic_trace(f)
    matches = fx.replace_pattern(gm, pattern, replacement)
    assert [m.anchor.op for m in matches] == ["call_function"] * 2, "a match whose relu has two readers is left alone"
    y = torch.sigmoid(X) - 3
    want = y + torch.relu(y) * 3, torch.sigmoid(X + 1) - X
    assert all(torch.allclose(a, b) for a, b in zip(gm(X), want, strict=True))
    gm.lint()


def test_patterns_of_modules_and_filters_and_literals(net) -> None:
    gm = fx.symbolic_trace(Twice())
    found = fx.subgraph_rewriter.replace_pattern_with_filters(
        gm, lambda x: torch.relu(x) * 1, lambda x: x, match_filters=[lambda match, graph, pattern: True], ignore_literals=True)  # fmt: skip
    assert len(found) == 1
    assert torch.allclose(gm(X), torch.relu(gm.a(X)) + gm.b(X))
    assert fx.subgraph_rewriter.replace_pattern_with_filters(gm, lambda x: torch.relu(x), lambda x: x, [lambda *_: False]) == []
    linear = fx.symbolic_trace(nn.Sequential(nn.Linear(3, 3)))
    assert len(fx.replace_pattern(gm, linear, lambda x: x + 1)) == 2
    assert torch.allclose(gm(X), torch.relu(X + 1) + X + 1)
    with pytest.raises(RuntimeError, match="equal numbers"):
        fx.replace_pattern(gm, lambda x: x + 1, lambda x, y: x)


@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
def test_functions_are_traced_to_ops(mode) -> None:
    def f(x, n):
        return {"y": torch.softmax(x, -1) * n, "grad": torch.func.grad(lambda t: t.sin().sum())(x), "n": n}

    gm = make_fx(f, tracing_mode=mode)(X, 3)
    got, want = gm(X + 1, 3), f(X + 1, 3)
    assert list(got) == list(want) and got["n"] == 3
    assert torch.allclose(got["y"], want["y"]) and torch.allclose(got["grad"], want["grad"], atol=1e-6)
    if mode == "symbolic":
        wide = torch.ones(5, 7)
        assert torch.allclose(gm(wide, 3)["y"], f(wide, 3)["y"])
    with pytest.raises(NotImplementedError, match="writes to its arguments"):
        make_fx(lambda x: x.add_(1), tracing_mode=mode)(X.clone())


def test_graph_modules_are_pickled_and_lose_unused_parts(net) -> None:
    gm = fx.symbolic_trace(net)
    again = pickle.loads(pickle.dumps(gm))
    assert torch.equal(again(X), gm(X)) and again.state_dict().keys() == gm.state_dict().keys()
    assert gm.add_submodule("extra.inner", nn.Linear(1, 1))
    gm.delete_all_unused_submodules()
    assert [n for n, _ in gm.named_modules()] == ["", "block", "block.0", "block.1"]
    assert gm.delete_submodule("block.1") and not gm.delete_submodule("block.1") and not gm.delete_submodule("nothing.here")


def test_proxies_by_hand_append_to_their_graph_and_shapes_are_noted() -> None:
    graph = fx.Graph()
    x = fx.Proxy(graph.placeholder("x"))
    y = torch.relu(x) + [x * 2][0]
    graph.output(y.node)
    gm = fx.GraphModule({}, graph)
    assert torch.equal(gm(X), torch.relu(X) + X * 2)
    ShapeProp(gm).propagate(X)
    assert {n.meta["tensor_meta"].shape for n in graph.nodes if n.op != "output"} == {X.shape}


def test_a_graph_by_hand_is_well_formed_before_it_has_its_values() -> None:
    graph = fx.Graph()
    tracer = fx.proxy.GraphAppendingTracer(graph)
    x = fx.Proxy(graph.placeholder("x", torch.Tensor, default_value=None), tracer)
    w = fx.Proxy(graph.get_attr("w", torch.Tensor), tracer=tracer)
    y = graph.call_function(torch.add, (x.node, w.node), type_expr=torch.Tensor, name="total")
    z = tracer.create_proxy("call_method", "mul", (fx.Proxy(y), 2), {}, proxy_factory_fn=lambda n: fx.Proxy(n, tracer))
    graph.output(graph.create_node("call_function", torch.relu, (z.node,), None, "last", torch.Tensor), torch.Tensor)
    graph.lint()
    assert isinstance(tracer, fx.proxy.TracerBase) and isinstance(fx.Tracer(), fx.proxy.TracerBase)
    assert [n.type for n in graph.nodes] == [torch.Tensor, torch.Tensor, torch.Tensor, None, torch.Tensor, torch.Tensor]
    y.in_a_chain = True  # code that rewrites graphs may mark nodes
    root = torch.nn.Module()
    root.w = torch.ones(3)
    gm = fx.GraphModule(root, graph)
    gm.graph.lint()
    assert torch.equal(gm(X), torch.relu((X + 1) * 2)) and y.name == "total"
    assert [n.type for n in copy.deepcopy(graph).nodes if n.name == "total"] == [torch.Tensor]
    with gm.graph.inserting_before(gm.graph.output_node):
        gm.graph.get_attr("nothing")
    with pytest.raises(Exception, match="the graph carries no value 'nothing'"):
        gm.graph.lint()


def test_a_tracer_may_say_what_a_proxy_is_worth() -> None:
    class Lenient(fx.Tracer):
        def to_bool(self, obj: Any) -> bool:
            return True

        def iter(self, obj: Any) -> Any:
            return iter([obj[0], obj[1]])

        def keys(self, obj: Any) -> Any:
            return ["left"]

    def program(x: Any) -> Any:
        total = x.sum() if x else x
        for part in x:
            total = total + part
        return total, dict(**x)

    graph = Lenient().trace(program)
    assert [n.target for n in graph.nodes if n.op == "call_method"] == ["sum"]
    assert [n.args[1] for n in graph.nodes if n.target is operator.getitem] == [0, 1, "left"]
    for wrong in (lambda x: 1 if x else 2, lambda x: [*x], lambda x: len(x)):
        with pytest.raises((ValueError, RuntimeError), match=r"control flow|iterated|'len' is not supported"):
            fx.symbolic_trace(wrong)


def test_operands_of_einsum_in_a_sequence_are_arguments_of_the_node() -> None:
    gm = fx.symbolic_trace(lambda x, y: torch.einsum("ij,kj->ik", (x, y)))
    (node,) = (n for n in gm.graph.nodes if n.target is torch.einsum)
    assert [a if isinstance(a, str) else a.name for a in node.args] == ["ij,kj->ik", "x", "y"]
    assert torch.equal(gm(X, X), X @ X.T)


def test_an_assertion_about_a_traced_value_is_a_node() -> None:
    def program(x: Any) -> Any:
        torch._assert(x.shape[0] == 4, "four rows")
        return x + 1

    gm = fx.symbolic_trace(program)
    assert any(n.target is torch._assert for n in gm.graph.nodes)
    assert gm.graph.eliminate_dead_code() in (0, False) and torch.equal(gm(torch.ones(4, 2)), torch.ones(4, 2) + 1)
    with pytest.raises(AssertionError, match="four rows"):
        gm(torch.ones(3, 2))


class Pair(NamedTuple):
    left: Any
    right: Any


def _sum_of(pair: Pair, part: slice) -> Any:
    return (pair.left + pair.right)[part]


def test_proxies_by_hand_inside_named_tuples_and_slices() -> None:
    graph = fx.Graph()
    x = fx.Proxy(graph.placeholder("x"))
    y = x.tracer.create_proxy("call_function", _sum_of, (Pair(x, {"two": [x]}["two"][0]), slice(0, 1)), {})
    graph.output(y.node)
    gm = fx.GraphModule({}, graph)
    assert torch.equal(gm(X), (X + X)[:1]) and torch.equal(pickle.loads(pickle.dumps(gm))(X), gm(X))


def test_another_value_of_a_concrete_argument_is_refused() -> None:
    gm = fx.symbolic_trace(lambda x, flag: x + 1 if flag else x - 1, concrete_args={"flag": True})
    assert torch.equal(gm(X, True), gm(X))
    with pytest.raises(AssertionError, match="flag has been specialized to have value True"):
        gm(X, False)
