"""Modules of nn: attributes, parameters, buffers, children, hooks."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import eager as torch
from eager import nn
from tests.dynamo.guards.states.table import State, state


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(2, 2)
        self.act: Any = nn.ReLU()
        self.drop = nn.Dropout(1.0)
        self.k = 2
        self.layers = nn.ModuleList([nn.Tanh()])
        self.named = nn.ModuleDict({"a": nn.Sigmoid()})
        self.ps = nn.ParameterList([nn.Parameter(torch.ones(2))])
        self.config = {"deep": [1]}
        self.register_buffer("buf", torch.ones(2))
        self.seen: Any = None

    def forward(self, x: Any) -> Any:
        y = self.act(self.lin(x)) * self.k + self.buf
        for layer in self.layers:
            y = layer(y)
        for name, layer in self.named.items():
            y = layer(y) + len(name)
        for p in self.ps:
            y = y * p
        return self.drop(y) + self.config["deep"][0] + (0 if self.seen is None else self.seen)


def _net_state(*changes: Callable[[Net], Any]) -> State:
    torch.manual_seed(0)
    net = Net().eval()
    return State(net, tuple(functools.partial(change, net) for change in changes))


@state
def module_plain_attributes() -> State:
    return _net_state(
        lambda n: setattr(n, "k", 3),
        lambda n: n.__dict__.update(k=4),
        lambda n: n.config["deep"].insert(0, 8),
        lambda n: setattr(n, "config", {"deep": [5]}),
        lambda n: n.config.update(deep=[6]),
    )


@state
def module_training_flag() -> State:
    return _net_state(
        lambda n: n.train(),
        lambda n: n.eval(),
        lambda n: n.drop.__dict__.update(training=True),
        lambda n: setattr(n.drop, "p", 0.0),
    )


@state
def module_parameters() -> State:
    def refill(n: Net) -> None:
        with torch.no_grad():
            n.lin.weight.mul_(-2)

    def by_data(n: Net) -> None:
        n.lin.weight.data = torch.ones(2, 2)

    return _net_state(
        refill,
        by_data,
        lambda n: setattr(n.lin, "weight", nn.Parameter(torch.eye(2))),
        lambda n: setattr(n.lin, "bias", None),
        lambda n: n.lin._parameters.update(weight=nn.Parameter(torch.eye(2) * 3)),
        lambda n: n.lin.weight.requires_grad_(False),
        lambda n: n.ps.append(nn.Parameter(torch.ones(2) * 2)),
        lambda n: setattr(n.lin, "weight", nn.Parameter(torch.ones(3, 2))) or by_data(n),
    )


@state
def module_buffers() -> State:
    return _net_state(
        lambda n: setattr(n, "buf", torch.ones(2) * 3),
        lambda n: n.buf.add_(1),
        lambda n: n._buffers.update(buf=torch.zeros(2)),
        lambda n: n.register_buffer("buf", torch.ones(1)),
        lambda n: setattr(n, "buf", torch.ones(2, dtype=torch.float64)),
    )


@state
def module_children() -> State:
    return _net_state(
        lambda n: n.layers.append(nn.Sigmoid()),
        lambda n: n.named.update({"bb": nn.Tanh()}),
        lambda n: setattr(n, "act", nn.Sigmoid()),
        lambda n: n._modules.update(act=nn.Tanh()),
        lambda n: n.layers.__setitem__(0, nn.ReLU()),
        lambda n: n.named.clear(),
    )


@state
def module_forward_patched() -> State:
    def drop(n: Net) -> None:
        n.act.__dict__.pop("forward", None)

    return _net_state(
        lambda n: setattr(n.act, "forward", lambda x: x * 3),
        drop,
        lambda n: n.act.__dict__.update(forward=lambda x: x - 9),
        drop,
        lambda n: setattr(n.lin, "__class__", type("Lin", (nn.Linear,), {"forward": lambda self, x: x * 7})),
    )


@state
def module_hooks() -> State:
    handles: list[Any] = []

    def hook(n: Net) -> None:
        handles.append(n.act.register_forward_hook(lambda m, a, y: y * 2))

    def pre_hook(n: Net) -> None:
        handles.append(n.lin.register_forward_pre_hook(lambda m, a: (a[0] + 1,)))

    def remove(n: Net) -> None:
        while handles:
            handles.pop().remove()

    return _net_state(hook, pre_hook, remove)


@state
def module_global_hooks() -> State:
    handles: list[Any] = []

    def remove() -> None:
        while handles:
            handles.pop().remove()

    def add() -> None:
        handles.append(
            nn.modules.module.register_module_forward_hook(lambda m, a, y: y * 2 if isinstance(m, nn.ReLU) else None)
        )

    torch.manual_seed(0)
    return State(Net().eval(), (add, remove), remove)


@state
def module_gets_state() -> State:
    return _net_state(
        lambda n: setattr(n, "seen", torch.ones(2)), lambda n: setattr(n, "seen", 3), lambda n: setattr(n, "seen", None)
    )


@state
def module_dtype() -> State:
    def read(n: Net, x: Any) -> Any:
        return n(x.to(n.lin.weight.dtype))

    torch.manual_seed(0)
    net = Net().eval()
    return State(
        lambda x: read(net, x),
        (net.double, net.float, lambda: net.requires_grad_(False), lambda: net.requires_grad_(True)),
    )
