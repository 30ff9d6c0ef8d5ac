"""Training under compile: whole steps with backward and optimizer inside, and modules compiled alone."""

from __future__ import annotations

import threading

import pytest

import dynamo
import eager as torch
from eager import nn
from eager.nn import functional as F
from tests.dynamo.api.test_compile import Recorder, same


class Block(nn.Module):
    def __init__(self, n: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(n)
        self.up, self.down = nn.Linear(n, 2 * n), nn.Linear(2 * n, n)
        self.drop = nn.Dropout(0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.drop(self.down(F.gelu(self.up(self.norm(x)))))


def model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), Block(8), Block(8), nn.Linear(8, 3))


def losses(compile_step, compile_model, make_optimizer, steps: int = 4) -> tuple[list[float], list[torch.Tensor]]:
    net = model()
    optimizer = make_optimizer(net.parameters())
    forward = compile_model(net)

    def step(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(forward(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    run = compile_step(step)
    torch.manual_seed(1)
    found = []
    for _ in range(steps):
        x, y = torch.randn(5, 4), torch.randint(0, 3, (5,))
        found.append(float(run(x, y)))
    return found, [p.detach().clone() for p in net.parameters()]


def plain(fn):
    return fn


OPTIMIZERS = {
    "sgd": lambda params: torch.optim.SGD(params, lr=0.1, momentum=0.9),
    "adamw": lambda params: torch.optim.AdamW(params, lr=0.01),
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_whole_training_step_agrees_with_eager(optimizer: str, backend: str) -> None:
    def compiled(fn):
        return dynamo.compile(fn, backend=backend)

    expected, weights = losses(plain, plain, OPTIMIZERS[optimizer])
    for step, forward in ((compiled, plain), (plain, compiled), (compiled, compiled)):
        got, got_weights = losses(step, forward, OPTIMIZERS[optimizer])
        assert got == pytest.approx(expected, rel=1e-5)
        assert all(same(a, b) for a, b in zip(got_weights, weights, strict=True))
    assert expected[-1] != expected[0]


def test_a_training_step_compiles_once() -> None:
    backend = Recorder()
    losses(lambda fn: dynamo.compile(fn, backend=backend), plain, OPTIMIZERS["sgd"], steps=2)
    before = len(backend.graphs)
    net, optimizer = model(), None
    optimizer = OPTIMIZERS["sgd"](net.parameters())

    def step(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        return loss

    backend = Recorder()
    run = dynamo.compile(step, backend=backend)
    counts = []
    for _ in range(6):
        run(torch.randn(5, 4), torch.randint(0, 3, (5,)))
        counts.append(len(backend.graphs))
    assert before > 0
    assert counts[2] == counts[-1]  # the momentum buffers exist from the second step on


def test_a_graph_over_parameters_sees_updates_in_place() -> None:
    net = model().eval()
    compiled = dynamo.compile(net, backend="aot_eager")
    x = torch.randn(2, 4)
    with torch.no_grad():
        assert same(compiled(x), net(x))
        for p in net.parameters():
            p.add_(0.5)
        assert same(compiled(x), net(x))
        net[0].weight.data = torch.ones(8, 4)
        assert same(compiled(x), net(x))
    net.load_state_dict({k: v * 0.5 for k, v in net.state_dict().items()})
    assert same(compiled(x).detach(), net(x).detach())
    net.double()
    assert same(compiled(x.double()).detach(), net(x.double()).detach())


def test_threads_compile_and_call_one_function() -> None:
    compiled = dynamo.compile(lambda x, n: (x * n).relu() + n, backend="eager")
    errors: list[BaseException] = []

    def work(n: int) -> None:
        try:
            for i in range(40):
                x = torch.full((2, 1 + i % 3), float(i))
                assert same(compiled(x, n), (x * n).relu() + n)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors
