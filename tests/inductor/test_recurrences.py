"""Recurrent layers are one loop over time in a kernel: values, gradients, code size, and the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import eager as torch
from eager import nn
from eager.base.spec import fake_like
from eager.optable.table import OPS
from fxir.base.options import CompileOptions, GraphKind
from fxir.trace.trace import trace
from inductor.driver.backend import compile_graph
from inductor.ir import definitions as ir
from inductor.loops.build import build
from inductor.loops.interpret import interpret
from inductor.lowering import lower
from inductor.plan.heuristics import schedule_recurrence

LAYERS = {
    "lstm": lambda i, h, **kw: nn.LSTM(i, h, **kw), "gru": lambda i, h, **kw: nn.GRU(i, h, **kw),
    "tanh": lambda i, h, **kw: nn.RNN(i, h, **kw), "relu": lambda i, h, **kw: nn.RNN(i, h, nonlinearity="relu", **kw),
}  # fmt: skip
SIZES = [(6, 3, 7, 2, True, True), (1, 3, 7, 1, False, True), (2, 1, 1, 1, True, False), (9, 4, 16, 1, False, True)]


def _states(out: Any) -> tuple[Any, ...]:
    y, state = out
    return (y, *state) if isinstance(state, tuple) else (y, state)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("kind", LAYERS)
def test_values_and_gradients(kind: str, sizes: tuple[int, int, int, int, bool, bool]) -> None:
    steps, n, h, layers, both, bias = sizes
    torch.manual_seed(0)
    module = LAYERS[kind](5, h, num_layers=layers, bidirectional=both, bias=bias).double()
    x = torch.randn(steps, n, 5, dtype=torch.float64, requires_grad=True)
    results = []
    for run in (module, torch.compile(module, fullgraph=True)):
        out = _states(run(x))
        loss = sum(((k + 1) * t * t).sum() for k, t in enumerate(out))
        with torch.no_grad():
            again = _states(run(x))
        results.append((*out, *torch.autograd.grad(loss, [x, *module.parameters()]), *again))
    for got, want in zip(*results, strict=True):
        assert got.shape == want.shape and got.stride() == want.stride()
        assert torch.allclose(got, want, rtol=1e-11, atol=1e-12)


def test_a_training_step_packs_the_weight_again_after_each_update() -> None:
    torch.manual_seed(0)
    module = nn.LSTM(5, 40)
    compiled, x = torch.compile(module, fullgraph=True), torch.randn(6, 20, 5)
    for _ in range(3):
        y, want = compiled(x)[0], module(x)[0]
        assert torch.allclose(y, want, rtol=1e-4, atol=1e-5)
        gradients = torch.autograd.grad(want.square().sum(), [*module.parameters()])
        y.square().sum().backward()
        assert all(torch.allclose(p.grad, g, rtol=1e-4, atol=1e-3) for p, g in zip(module.parameters(), gradients, strict=True))
        with torch.no_grad():
            for weight in module.parameters():
                weight.sub_(weight.grad, alpha=0.01)
                weight.grad = None


def _compiled(steps: int) -> Any:
    module = nn.LSTM(4, 6).requires_grad_(False)
    graph = trace(lambda x: _states(module(x)), [fake_like(torch.zeros(steps, 2, 4))])
    return compile_graph(graph, GraphKind.INFERENCE, CompileOptions(options={"test": steps}))


def test_the_code_does_not_grow_with_time() -> None:
    short, long = ("".join(_compiled(steps).artifact.entry.sources().values()) for steps in (5, 70))
    assert abs(len(long) - len(short)) < len(short) // 20


def test_a_result_that_nothing_reads_holds_one_step() -> None:
    module = nn.LSTM(4, 6).requires_grad_(False)
    graph = trace(lambda x: module(x)[0], [fake_like(torch.zeros(50, 2, 4))])
    run = compile_graph(graph, GraphKind.INFERENCE, CompileOptions())
    of_input, of_steps = 50 * 2 * 24 * 4, (2 * 24 + 4 * 2 * 6) * 4
    assert run.arena_bytes <= of_input + 4 * of_steps + 1024


def test_the_number_of_steps_may_be_a_symbol() -> None:
    module = nn.GRU(3, 5)
    run = torch.compile(module, dynamic=True, fullgraph=True)
    for steps in (4, 9, 2):
        x = torch.randn(steps, 2, 3)
        for got, want in zip(_states(run(x)), _states(module(x)), strict=True):
            assert torch.allclose(got, want, rtol=1e-5, atol=1e-6)


def test_the_interpreter_runs_a_scheduled_recurrence() -> None:
    torch.manual_seed(0)
    module = nn.LSTM(3, 4)
    x = torch.randn(5, 2, 3)
    gx = nn.functional.linear(x, module.weight_ih_l0, module.bias_ih_l0)
    zero = torch.zeros(2, 4)
    given = [gx.detach(), zero, zero, module.weight_hh_l0.detach(), module.bias_hh_l0.detach()]

    program = lower(trace(lambda *a: OPS["lstm_layer"](*a, False), [fake_like(t) for t in given]))
    b = next(b for b in program.buffers.values() if isinstance(b.definition, ir.Recurrence))
    d = b.definition
    assert isinstance(d, ir.Recurrence)
    dtypes = {n: x.layout.dtype for n, x in program.buffers.items()}
    kernel, _ = schedule_recurrence(build([b], {n: dtypes[n] for n in (*d.reads, *d.results)}))
    memory = {n: t.numpy().reshape(-1).copy() for n, t in zip(program.inputs, given, strict=True)}
    memory |= {n: np.full(program.buffers[n].layout.numel, np.nan, np.float32) for n in d.results}
    interpret(kernel, memory)
    for n, want in zip(d.results, OPS["lstm_layer"](*given, False), strict=True):
        assert np.allclose(memory[n], want.numpy().reshape(-1), rtol=1e-5, atol=1e-6)
