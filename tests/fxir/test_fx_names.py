"""torch.fx under its names: tracing, rewriting and running graphs, and backends written for torch."""

from __future__ import annotations

import copy
import operator

import pytest

import eager as torch
from eager import fx, nn
from fxir.leaves import LEAVES
from fxir.proxy import TraceError


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
