"""Compiled steps of optimizers: one graph without a break, in place, for all steps, with the values of eager."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import dynamo
import eager as torch
from dynamo.api import compile as api
from eager.optim import lr_scheduler

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "sgd": ("SGD", {}), "nesterov": ("SGD", {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    "dampened": ("SGD", {"momentum": 0.9, "dampening": 0.1, "maximize": True}),
    "adam": ("Adam", {"weight_decay": 0.1, "maximize": True}), "amsgrad": ("AdamW", {"amsgrad": True, "foreach": True}),
    "adamw": ("AdamW", {"capturable": True}), "rmsprop": ("RMSprop", {"centered": True, "momentum": 0.5}),
    "adagrad": ("Adagrad", {"lr_decay": 0.1}), "adadelta": ("Adadelta", {}), "adamax": ("Adamax", {}),
    "nadam": ("NAdam", {"decoupled_weight_decay": True, "weight_decay": 0.1}), "radam": ("RAdam", {"betas": (0.9, 0.8)}),
    "asgd": ("ASGD", {"t0": 2.0, "lambd": 0.1}), "rprop": ("Rprop", {}), "adafactor": ("Adafactor", {}), "muon": ("Muon", {}),
}  # fmt: skip
NATIVE = {"nesterov", "amsgrad", "radam"}


class Trainer:
    """Parameters in two groups, one of them never used, with gradients from a seed for each step."""

    def __init__(self, kind: str, options: dict[str, Any]) -> None:
        torch.manual_seed(0)
        self.params = [torch.nn.Parameter(torch.randn(3, n)) for n in (4, 4, 5, 2)]
        groups = [{"params": self.params[:2]}, {"params": self.params[2:], "lr": 0.05}]
        self.optimizer: Any = getattr(torch.optim, kind)(groups, lr=0.02, **options)
        self.scheduler = lr_scheduler.ExponentialLR(self.optimizer, 0.9)

    def run(self, steps: range, step: Callable[[], Any], decays: bool, absent: tuple[int, ...] = (3,)) -> None:
        for k in steps:
            torch.manual_seed(100 + k)
            for i, p in enumerate(self.params):
                g = torch.randn(*p.shape)
                p.grad = None if i in absent else g
            step()
            if decays:
                self.scheduler.step()

    def tensors(self) -> dict[tuple[int, str], Any]:
        states = {(i, name): t for i, s in self.optimizer.state_dict()["state"].items() for name, t in s.items() if t is not None}
        return {(i, ""): p for i, p in enumerate(self.params)} | states


def agree(a: Trainer, b: Trainer) -> None:
    found, wanted = a.tensors(), b.tensors()
    assert found.keys() == wanted.keys() and len(a.optimizer.state) == len(b.optimizer.state)
    for name, x in found.items():
        y = wanted[name]
        assert x.dtype is y.dtype and torch.allclose(x, y, rtol=2e-5, atol=1e-6), (name, x, y)


@pytest.mark.parametrize("case", CASES)
def test_a_compiled_step_agrees_with_eager(case: str) -> None:
    """One graph for a constant rate, a second one for a rate that changes, a third one after a state dict was loaded."""
    dynamo.reset()
    kind, options = CASES[case]
    plain, made = Trainer(kind, {k: v for k, v in options.items() if k != "capturable"}), Trainer(kind, options)
    step = dynamo.compile(made.optimizer.step, backend="inductor" if case in NATIVE else "aot_eager", fullgraph=True)
    places = [p.data_ptr() for p in made.params]
    counts = []
    for steps, decays in ((range(2), False), (range(2, 3), True), (range(3, 6), True)):
        plain.run(steps, plain.optimizer.step, decays)
        made.run(steps, step, decays)
        agree(made, plain)
        counts.append(len(api.statistics().graphs))
    first = 2 if case == "dampened" else 1  # the first step of a dampened momentum has no buffer to damp
    assert counts == [first, first, first + (case != "rprop")]
    assert [p.data_ptr() for p in made.params] == places
    for t in (plain, made):
        t.optimizer.load_state_dict(t.optimizer.state_dict())
    plain.run(range(6, 8), plain.optimizer.step, True, absent=(0, 3))
    made.run(range(6, 8), step, True, absent=(0, 3))
    agree(made, plain)
    assert len(api.statistics().graphs) <= counts[-1] + 1


@pytest.mark.parametrize("of_module", [False, True])
def test_a_training_step_breaks_only_at_backward(of_module: bool) -> None:
    dynamo.reset()
    models: list[Any] = []
    for _ in range(2):
        torch.manual_seed(0)
        models.append(torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2)))
    optimizers = [torch.optim.AdamW(m.parameters(), lr=0.02) for m in models]
    x = torch.linspace(-1, 1, 24).reshape(6, 4)

    def train(model: Any, optimizer: Any) -> Any:
        (model if of_module else optimizer).zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    compiled = dynamo.compile(train)
    for _ in range(5):
        assert torch.allclose(compiled(models[0], optimizers[0]), train(models[1], optimizers[1]), rtol=1e-5)
        found = api.statistics()
        assert {b.cause.id for b in found.breaks} == {"autograd-call"} and not found.fallbacks
        assert len(found.graphs) == 2  # of the first step too, which finds no gradients to drop
    for p, q in zip(models[0].parameters(), models[1].parameters(), strict=True):
        assert torch.allclose(p, q, rtol=1e-4, atol=1e-6)


def test_a_rate_in_a_tensor_needs_no_recompilation() -> None:
    dynamo.reset()
    rate = torch.tensor(0.05)
    params = [torch.nn.Parameter(torch.ones(3)) for _ in range(2)]
    made, plain = torch.optim.NAdam(params[:1], lr=rate), torch.optim.NAdam(params[1:], lr=rate)
    step = dynamo.compile(made.step, backend="aot_eager", fullgraph=True)
    for k in range(4):
        for p in params:
            p.grad = torch.tensor([1.0, -2.0, 0.5]) * (k + 1)
        step()
        plain.step()
        rate.mul_(0.5)
    assert torch.allclose(*params) and len(api.statistics().graphs) == 1


def test_a_gradient_that_the_captured_code_drops_is_not_used() -> None:
    dynamo.reset()
    p, q = (torch.nn.Parameter(torch.ones(3)) for _ in range(2))
    optimizer = torch.optim.Adam([p, q], lr=0.1)

    def drop_and_step() -> bool:
        p.grad = None
        optimizer.step()
        return p.grad is None

    for _ in range(2):
        p.grad, q.grad = torch.ones(3), torch.ones(3)
        before = p.detach().clone()
        assert dynamo.compile(drop_and_step, backend="aot_eager", fullgraph=True)()
        assert p.grad is None and torch.equal(p, before) and not optimizer.state.get(p)
    assert float(q[0]) < 0.85


@pytest.mark.parametrize("kind", ["LBFGS", "SparseAdam"])
def test_optimizers_that_are_not_captured_run_eagerly(kind: str) -> None:
    dynamo.reset()
    found = []
    for compiles in (False, True):
        torch.manual_seed(0)
        table = torch.nn.Embedding(5, 3, sparse=kind == "SparseAdam")
        optimizer = getattr(torch.optim, kind)(table.parameters(), lr=0.1)
        step = dynamo.compile(optimizer.step) if compiles else optimizer.step

        def closure(table: Any = table, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            loss = table(torch.tensor([1, 2])).square().mean()
            loss.backward()
            return loss

        for _ in range(2):
            step(closure)
        found.append(table.weight.detach())
    assert torch.equal(*found)
    assert not api.statistics().fallbacks


@pytest.mark.parametrize("dtype", [torch.complex64, torch.bfloat16, torch.float64], ids=str)
def test_compiled_steps_of_other_dtypes_and_layouts(dtype: Any) -> None:
    dynamo.reset()
    found = []
    for compiles in (False, True):
        torch.manual_seed(0)
        params = [torch.nn.Parameter(torch.randn(*size, dtype=dtype)) for size in ((4, 3), (0, 2))]
        params += [torch.nn.Parameter(torch.randn(4, 3, dtype=dtype).t()), torch.nn.Parameter(torch.randn(6, dtype=dtype)[::2])]
        optimizer = torch.optim.Adam(params, lr=0.1, amsgrad=True, weight_decay=0.1)
        step = dynamo.compile(optimizer.step, fullgraph=True) if compiles else optimizer.step
        for _ in range(2):
            for p in params:
                p.grad = torch.randn_like(p)
            step()
        found.append([*params, *(optimizer.state[p]["exp_avg"] for p in params)])
    for a, b in zip(*found, strict=True):
        assert a.stride() == b.stride() and torch.allclose(a, b, rtol=1e-2 if dtype is torch.bfloat16 else 1e-5, atol=1e-6)
