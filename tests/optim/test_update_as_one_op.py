"""The update of a parameter as one op: one node in captured graphs, with the values of the rule in ops."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

import dynamo
import eager as torch
from dynamo.api import compile as api
from eager.optable.table import OPS
from eager.optim._rule import Rule
from fxir.base.options import CompileOptions, GraphKind
from fxir.ir.graph import Graph
from fxir.ir.graph_module import GraphModule
from fxir.region.aot import aot_compile, interpret
from inductor.driver.backend import KEPT
from inductor.lowering.expansion import expand

KINDS = ("Adam", "AdamW", "SGD", "NAdam", "RAdam", "Adamax", "Adagrad", "Adadelta", "ASGD", "RMSprop", "Rprop", "Adafactor")
DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.complex64)
UPDATE = OPS["optimizer_update_"]


def options_of(kind: str, draw: random.Random) -> dict[str, Any]:
    """Random settings of an optimizer, each absent or of another value than the default."""
    choices: dict[str, list[Any]] = {"lr": [0.03, 1, torch.tensor(0.02)], "weight_decay": [0.1, 0, 1e-2], "maximize": [True, False]}
    if kind in ("Adam", "AdamW"):
        choices |= {"betas": [(0.8, 0.99), (0.5, 0.6)], "eps": [1e-4], "amsgrad": [True], "fused": [True, False], "capturable": [True]}
    if kind in ("NAdam", "RAdam"):
        choices |= {"decoupled_weight_decay": [True], "betas": [(0.8, 0.9), [0.7, 0.9]], "capturable": [True]}
    if kind in ("SGD", "RMSprop"):
        choices |= {"momentum": [0.9, 0.5]}
    if kind == "SGD":
        choices |= {"dampening": [0.1]}
    if kind == "RMSprop":
        choices |= {"centered": [True], "alpha": [0.5]}
    if kind == "Rprop":
        del choices["weight_decay"]
    if kind == "Adafactor":
        choices |= {"d": [1.5], "beta2_decay": [-0.5]}
    found = {name: draw.choice(values) for name, values in choices.items() if draw.random() < 0.6}
    if kind == "SGD" and found.get("momentum") and "dampening" not in found:
        found["nesterov"] = draw.random() < 0.5
    return found


def trained(kind: str, options: dict[str, Any], dtype: Any, step_of: Callable[[Any], Callable[[], Any]], steps: int = 3) -> list[Any]:
    """The parameters and their state after some steps."""
    torch.manual_seed(0)
    sizes = ((3, 4), (5,), (3, 4), (0, 2)) if kind == "Adafactor" else ((3, 4), (5,), (3, 4), (), (0, 2))
    params = [torch.nn.Parameter(torch.randn(size, dtype=dtype)) for size in sizes]
    params += [torch.nn.Parameter(torch.randn(4, 3, dtype=dtype).t()), torch.nn.Parameter(torch.randn(8, dtype=dtype)[::2])]
    copied = {k: v.clone() if isinstance(v, torch.Tensor) else v for k, v in options.items()}
    optimizer = getattr(torch.optim, kind)(params, **copied)
    step = step_of(optimizer)
    for _ in range(steps):
        for p in params:
            p.grad = torch.randn_like(p)
        step()
    return [*params, *(t for p in params for t in optimizer.state[p].values())]


def by_ops(optimizer: Any) -> Callable[[], Any]:
    """The step compiled from the ops of the rule."""
    type(optimizer)._name = None
    return torch.compile(optimizer.step, fullgraph=True)


@pytest.mark.parametrize("kind", KINDS)
def test_values_are_bitwise_equal_to_the_ops_of_the_rule(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cls = getattr(torch.optim, kind)
    for seed in range(4):
        draw = random.Random(f"{kind} {seed}")
        dtype = draw.choice(DTYPES[:-1] if kind == "Adafactor" else DTYPES)
        options = options_of(kind, draw)
        dynamo.reset()
        with monkeypatch.context() as patch:
            patch.setattr(cls, "_name", cls._name)  # restores it
            want = trained(kind, options, dtype, by_ops)
        dynamo.reset()
        got = trained(kind, options, dtype, lambda o: torch.compile(o.step, fullgraph=True))
        for a, b in zip(got, want, strict=True):
            assert a.dtype is b.dtype and a.stride() == b.stride(), (seed, dtype, options)
            assert torch.equal(a.nan_to_num(), b.nan_to_num()), (seed, dtype, options, a, b)


class Recorder:
    """A backend that runs graphs op by op and keeps them."""

    def __init__(self) -> None:
        self.graphs: list[GraphModule] = []

    def __call__(self, gm: GraphModule, inputs: list[Any]) -> Any:
        self.graphs.append(gm)
        return gm.forward


@pytest.mark.parametrize("kind", KINDS)
def test_a_captured_step_has_one_call_for_each_parameter(kind: str) -> None:
    dynamo.reset()
    recorder = Recorder()
    params = [torch.nn.Parameter(torch.ones(3, n)) for n in (2, 3, 2)]
    optimizer = getattr(torch.optim, kind)(params, lr=0.1)
    for p in params[:2]:
        p.grad = torch.ones_like(p)
    dynamo.compile(optimizer.step, backend=recorder, fullgraph=True)()
    (gm,) = recorder.graphs
    calls = [n for n in gm.graph.in_order() if n.op == "call_function" and isinstance(n.target, type(UPDATE))]
    assert [n.target for n in calls] == [UPDATE, UPDATE]


def test_a_call_that_runs_outside_of_compiled_code_has_the_values_of_eager() -> None:
    """The op runs the rule on real tensors, so that the native kernel computes it."""
    dynamo.reset()
    for kind, options in (("AdamW", {"maximize": True}), ("SGD", {"momentum": 0.9, "weight_decay": 0.1}), ("RAdam", {})):
        want = trained(kind, {"lr": 0.1, **options}, torch.float32, lambda o: o.step, steps=7)
        got = trained(kind, {"lr": 0.1, **options}, torch.float32, lambda o: dynamo.compile(o.step, backend=Recorder()), steps=7)
        assert all(torch.equal(a, b) for a, b in zip(got, want, strict=True))


def graphs_of(kind: str, options: dict[str, Any], params: list[Any]) -> list[Graph]:
    """The graphs of one step that the compiler receives."""
    found: list[Graph] = []

    def keep(graph: Graph, kind: GraphKind, options: CompileOptions) -> Callable[..., Any]:
        found.append(graph.copy())
        return interpret(graph, kind, options)

    dynamo.reset()
    optimizer = getattr(torch.optim, kind)(params, **options)
    for p in params:
        p.grad = torch.ones_like(p)
    dynamo.compile(optimizer.step, backend=lambda gm, inputs: aot_compile(gm, inputs, keep, None, KEPT), fullgraph=True)()
    return found


def test_the_compiler_gets_whole_updates_and_expands_equal_updates_once() -> None:
    (graph,) = graphs_of("AdamW", {}, [torch.nn.Parameter(torch.ones(n, 3)) for n in (4, 4, 5, 4)])
    updates = [n for n in graph.in_order() if n.op == "call_function" and n.target is OPS["optimizer_update"]]
    others = [n for n in graph.in_order() if n.op == "call_function" and n.target is not OPS["optimizer_update"]]
    assert len(updates) == 4 and {n.target.__name__ for n in others} == {"getitem"}
    known: dict[str, Any] = {}
    expansions = [expand(OPS["optimizer_update"], tuple(n.args), known) for n in updates]
    assert len(known) == 2 and expansions[0] is expansions[1] is expansions[3]
    assert expansions[0] is not None and len(expansions[0].results) == 4


def test_a_parameter_without_dims_is_updated_by_the_ops_of_the_rule() -> None:
    (graph,) = graphs_of("AdamW", {}, [torch.nn.Parameter(torch.tensor(2.0))])
    assert all(n.target is not OPS["optimizer_update"] for n in graph.in_order())


@pytest.mark.parametrize("name", ["lr", "weight_decay", "momentum", "betas"])
def test_a_setting_that_varies_becomes_an_input(name: str) -> None:
    dynamo.reset()
    kind = "SGD" if name == "momentum" else "AdamW"
    found = []
    for compiles in (False, True):
        torch.manual_seed(0)
        params = [torch.nn.Parameter(torch.randn(3, n)) for n in (2, 3, 2)]
        optimizer = getattr(torch.optim, kind)(params, lr=0.1, weight_decay=0.1, **({"momentum": 0.9} if kind == "SGD" else {}))
        step = torch.compile(optimizer.step, fullgraph=True) if compiles else optimizer.step
        for k in range(5):
            for p in params:
                p.grad = torch.randn_like(p)
            step()
            value = 0.1 + 0.05 * k
            optimizer.param_groups[0][name] = (value, 0.99) if name == "betas" else value
        found.append(params)
    assert len(api.statistics().graphs) == 2
    assert all(torch.allclose(a, b, rtol=1e-5) for a, b in zip(*found, strict=True))


def test_a_pair_of_settings_may_be_a_list() -> None:
    options: dict[str, Any] = {"betas": [0.8, 0.99]}
    want = trained("RAdam", options, torch.float32, lambda o: o.step)
    got = trained("RAdam", options, torch.float32, lambda o: torch.compile(o.step, fullgraph=True))
    assert all(torch.allclose(a, b, rtol=1e-5, atol=1e-6) for a, b in zip(got, want, strict=True))


def test_a_setting_that_becomes_zero_compiles_the_rule_without_it() -> None:
    dynamo.reset()
    found = []
    for compiles in (False, True):
        torch.manual_seed(0)
        p = torch.nn.Parameter(torch.randn(3, 4))
        optimizer = torch.optim.SGD([p], lr=0.1, momentum=0.9, weight_decay=0.1)
        step = torch.compile(optimizer.step, fullgraph=True) if compiles else optimizer.step
        for decay in (0.1, 0.2, 0.3, 0, 0.0, 0.4):
            optimizer.param_groups[0]["weight_decay"] = decay
            p.grad = torch.randn_like(p)
            step()
        found.append(p)
    assert torch.allclose(*found, rtol=1e-5)


class Halved(torch.optim.SGD):
    """A rule of a program, which replaces a part of a rule of the library."""

    @classmethod
    def _apply(cls, p: Any, g: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        super()._apply(p, g * 0.5, state, group)


class Named(torch.optim.SGD):
    """A subclass that keeps the rule."""

    def __init__(self, params: Any, label: str) -> None:
        super().__init__(params, lr=1.0)
        self.label = label


def test_a_rule_of_the_program_is_captured_op_by_op() -> None:
    for made, name in ((lambda p: Halved([p], lr=1.0), None), (lambda p: Named([p], "a"), "SGD")):
        dynamo.reset()
        recorder, p = Recorder(), torch.nn.Parameter(torch.ones(3))
        optimizer = made(p)
        assert isinstance(optimizer, Rule) and optimizer._name == name
        p.grad = torch.ones(3)
        dynamo.compile(optimizer.step, backend=recorder, fullgraph=True)()
        assert torch.equal(p, torch.full((3,), 0.5 if name is None else 0.0))
        assert any(n.target is UPDATE for n in recorder.graphs[0].graph.in_order()) is (name is not None)


def test_a_differentiable_step_is_captured_op_by_op() -> None:
    dynamo.reset()
    recorder = Recorder()
    p = torch.nn.Parameter(torch.ones(3)).clone()
    p.retain_grad()
    optimizer = torch.optim.SGD([p], lr=0.1, differentiable=True)
    p.grad = torch.ones(3)
    dynamo.compile(optimizer.step, backend=recorder)()
    assert all(n.target is not UPDATE for gm in recorder.graphs for n in gm.graph.in_order())
    assert torch.allclose(p, torch.full((3,), 0.9))


@pytest.mark.parametrize("compiles", [False, True])
def test_errors_of_a_rule_are_raised_as_in_eager(compiles: bool) -> None:
    dynamo.reset()
    p = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.Adam([p], lr=0.1)
    step = torch.compile(optimizer.step) if compiles else optimizer.step
    p.grad = torch.ones(3)
    step()
    optimizer.state[p]["exp_avg"] = torch.ones(4)
    with pytest.raises(RuntimeError, match="size"):
        step()


def test_the_op_refuses_to_record_a_gradient_through_its_writes() -> None:
    args = next(iter(UPDATE.samples(make_sample)))  # type: ignore[misc]
    args[1].requires_grad_()
    with pytest.raises(NotImplementedError, match="optimizer_update"):
        UPDATE(*args)
    with torch.no_grad():
        assert UPDATE(*args) is args[0]


def make_sample(*shape: int, **kwargs: Any) -> Any:
    return torch.ones(*shape)
