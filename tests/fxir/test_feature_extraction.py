"""Uses of torch.fx's private names in libraries: tracers that follow nodes, graph modules with two graphs."""
from __future__ import annotations

import copy
from typing import Any

import eager as torch
from fxir.ir.graph_module import _USER_PRESERVED_ATTRIBUTES_KEY, _CodeOnlyModule, _copy_attr

fx, nn = torch.fx, torch.nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.unused = nn.Linear(3, 4), nn.Sequential(nn.Linear(4, 4), nn.ReLU()), nn.Linear(4, 4)
        self.scale, self.by = nn.Parameter(torch.ones(4)), nn.Parameter(torch.tensor(2.0))
        self.register_buffer("shift", torch.ones(4))

    def forward(self, x: torch.Tensor, twice: bool = False) -> torch.Tensor:
        torch._assert(x.dim() == 2, "two dims")
        y = self.second(self.first(x)) * (self.scale * self.by) + self.shift
        return self.unused(y) if twice or not self.training else y


class Paths(fx.Tracer):
    """A tracer that notes each node as it is made."""

    def __init__(self) -> None:
        super().__init__()
        self.made: list[tuple[str, str]] = []

    def create_proxy(self, kind: str, target: Any, args: Any, kwargs: Any, *rest: Any) -> fx.Proxy:
        proxy = super().create_proxy(kind, target, args, kwargs, *rest)
        self.made.append((kind, proxy.node.name))
        return proxy


class Dual(fx.GraphModule):
    """One graph for training, one for evaluation."""

    def __init__(self, root: nn.Module, train: fx.Graph, evaluate: fx.Graph) -> None:
        super(fx.GraphModule, self).__init__()
        self.train_graph, self.eval_graph = train, evaluate
        for node in (*train.nodes, *evaluate.nodes):
            if node.op in ("get_attr", "call_module"):
                _copy_attr(root, self, node.target)
        self.graph = train

    def train(self, mode: bool = True) -> Dual:
        self.graph = self.train_graph if mode else self.eval_graph
        return super().train(mode)

    def __deepcopy__(self, memo: dict[int, Any]) -> Dual:
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        parts = _CodeOnlyModule(copy.deepcopy(self.__dict__, memo))
        Dual.__init__(made, parts, parts.__dict__["train_graph"], parts.__dict__["eval_graph"])
        return made


def _graph(net: Net) -> fx.Graph:
    tracer = Paths()
    graph = tracer.trace(net, {"twice": False})
    assert graph._tracer_cls is Paths
    graph.eliminate_dead_code()
    return graph


def test_a_tracer_sees_every_node_made() -> None:
    tracer = Paths()
    graph = tracer.trace(Net(), {"twice": False})
    names = [n.name for n in graph.nodes if n.op not in ("output", "get_attr") or n.target != "shift"][:-1]
    assert [name for _, name in tracer.made] == names
    assert ("call_function", "_assert") in tracer.made and ("get_attr", "scale") in tracer.made


def test_computations_on_parameters_alone_are_in_the_graph() -> None:
    net = Net()
    gm = fx.GraphModule(net, Paths().trace(net, {"twice": False}))
    x = torch.randn(2, 3)
    with torch.no_grad():
        net.by.fill_(5.0)
    assert torch.equal(gm(x), net(x))
    gm(x).sum().backward()
    assert net.by.grad is not None


def test_a_module_of_two_graphs() -> None:
    net = Net()
    dual = Dual(net, _graph(net.train()), _graph(net.eval()))
    x = torch.randn(2, 3)
    assert torch.equal(dual.eval()(x), net.eval()(x)) and torch.equal(dual.train()(x), net.train()(x))
    assert dual.first.weight is net.first.weight and _USER_PRESERVED_ATTRIBUTES_KEY not in getattr(dual, "meta", {})
    again = copy.deepcopy(dual)
    assert again.first.weight is not net.first.weight
    assert torch.equal(again.eval()(x), net.eval()(x)) and torch.equal(again.train()(x), net.train()(x))


def test_unread_nodes_are_erased_unless_their_module_is_impure() -> None:
    net = Net()
    graph = fx.Graph()
    x = graph.placeholder("x")
    kept = graph.call_method("add_", (x, 1))
    graph.call_method("sum", (x,))
    graph.call_module("first", (x,))
    net.second._is_impure = True
    stays = graph.call_module("second", (x,))
    graph.output(x)
    gm = fx.GraphModule(net, graph)
    gm.graph.eliminate_dead_code()
    assert [n for n in gm.graph.nodes if n.op.startswith("call")] == [kept, stays]
