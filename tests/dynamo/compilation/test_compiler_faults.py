"""A fault in any stage of the compiler leaves eager's results and the user's state, and is reported once for each
function.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import eager as torch
from dynamo.report.errors import BackendFailed, CaptureError, InternalCaptureError
from eager.base import logs, settings

# One step of each stage: (module, name, whether the whole capture fails, or only its graph).
CAPTURE, GRAPH, BACKWARD = "the capture of", "backend inductor failed on", "the backward graph was not compiled"
FAULTS = [
    ("dynamo.world.wrap", "World.wrap", CAPTURE),
    ("dynamo.frames.frame", "Frame.constant", CAPTURE),
    ("dynamo.compilation.attempt", "build_program", CAPTURE),
    ("dynamo.compilation.attempt", "add_relations", CAPTURE),
    ("dynamo.compilation.attempt", "Attempt.on_graph_error", CAPTURE),
    ("dynamo.emit.function", "_parsed", CAPTURE),
    ("dynamo.compilation.region", "explain_failure", CAPTURE),
    ("fxir.ir.graph", "Graph.output", CAPTURE),
    ("fxir.region.aot", "run_passes", GRAPH),
    ("fxir.region.aot", "add_gradients", GRAPH),
    ("fxir.region.aot", "partition", GRAPH),
    ("inductor.driver.backend", "graph_hash", GRAPH),
    ("inductor.driver.compile", "lower", GRAPH),
    ("inductor.driver.compile", "schedule", GRAPH),
    ("inductor.driver.compile", "print_kernel", GRAPH),
    ("inductor.driver.compile", "plan_arena", GRAPH),
    ("inductor.base.toolchain", "run_compiler", GRAPH),
    ("inductor.runtime.loader", "load", GRAPH),
]


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path: Path) -> Iterator[None]:
    """Every graph is compiled: no artifact of another test is found on disk."""
    with settings.scope(cache_dir=tmp_path):
        yield


class Injected(RuntimeError):
    pass


def _raise(*_: Any, **__: Any) -> None:
    raise Injected("on purpose")


def _break(monkeypatch: pytest.MonkeyPatch, module: str, name: str, fault: Callable[..., Any] = _raise) -> None:
    import_module("inductor.driver.compile")  # the compiler is loaded when it is first needed
    owner: Any = import_module(module)
    *path, last = name.split(".")
    for part in path:
        owner = getattr(owner, part)
    monkeypatch.setattr(owner, last, fault)


def step(x: torch.Tensor, w: torch.Tensor, seen: list[int]) -> torch.Tensor:
    y = torch.relu(x @ w)
    seen.append(len(seen))
    with torch.no_grad():
        scale = y.amax() + 1
    print(end="")  # a graph break
    return (y / scale).softmax(dim=-1).square().sum()


def _results(fn: Callable[..., Any]) -> list[Any]:
    torch.manual_seed(0)
    seen: list[int] = []
    w = torch.randn(3, 4, requires_grad=True)
    found: list[Any] = []
    for n in (5, 5, 6):  # the last call is compiled again
        loss = fn(torch.randn(n, 3), w, seen)
        loss.backward()
        found.append(loss.detach())
    return [*found, w.grad, seen, torch.is_grad_enabled()]


def _assert_same(found: list[Any], wanted: list[Any]) -> None:
    for a, b in zip(found, wanted, strict=True):
        if isinstance(b, torch.Tensor):
            torch.testing.assert_close(a, b)
        else:
            assert a == b


@contextlib.contextmanager
def _warnings() -> Iterator[list[str]]:
    found: list[str] = []
    with settings.scope(capture_suppress_errors=True), logs.capture() as records:
        yield found
    found += [r.message for r in records if r.level >= 30]


@pytest.mark.parametrize(("module", "name", "told"), FAULTS, ids=[f"{m}.{n}" for m, n, _ in FAULTS])
def test_a_fault_of_any_stage_leaves_eager_results_and_one_warning_a_function(
    monkeypatch: pytest.MonkeyPatch, module: str, name: str, told: str
) -> None:
    wanted = _results(step)
    _break(monkeypatch, module, name)
    with _warnings() as warnings:
        _assert_same(_results(torch.compile(step)), wanted)
    assert warnings and all(told in w and "Injected: on purpose (at " in w for w in warnings)
    assert len(warnings) == len(set(warnings)) <= 2  # the function, and its continuation after the break
    assert all(Path(__file__).name in w for w in warnings)


def test_a_faulty_backward_graph_runs_op_by_op(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = _results(step)
    graphs = import_module("inductor.driver.backend")

    def fault(graph: Any, kind: Any, options: Any, devices: Any, whole: Callable[..., Any] = graphs._compile_part) -> Any:
        return whole(graph, kind, options, devices) if kind.value != "backward" else _raise()

    _break(monkeypatch, "inductor.driver.backend", "_compile_part", fault)
    with _warnings() as warnings:
        _assert_same(_results(torch.compile(step)), wanted)
    assert warnings and all(w.startswith(BACKWARD) and "Injected: on purpose" in w for w in warnings)


@pytest.mark.parametrize(("module", "name", "error"), [
    ("dynamo.emit.function", "_parsed", InternalCaptureError),
    ("inductor.driver.compile", "schedule", BackendFailed),
])  # fmt: skip
def test_without_suppression_a_fault_is_raised_with_its_cause(
    monkeypatch: pytest.MonkeyPatch, module: str, name: str, error: type[CaptureError]
) -> None:
    _break(monkeypatch, module, name)
    with (
        settings.scope(capture_suppress_errors=False),
        pytest.raises(error, match=rf"step \(.*{Path(__file__).name}:\d+\)") as caught,
    ):
        _results(torch.compile(step))
    found = caught.value.inner_exception if isinstance(caught.value, BackendFailed) else caught.value.__cause__
    assert isinstance(found, Injected) and "on purpose" in str(caught.value)
    assert torch.is_grad_enabled()


def test_graph_that_fails_when_it_runs_is_reported_and_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    def double(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    def failing(gm: Any, inputs: Any) -> Callable[..., Any]:
        return _raise

    with _warnings() as warnings:
        compiled = torch.compile(double, backend=failing)
        assert compiled(torch.ones(2)).tolist() == compiled(torch.ones(2)).tolist() == [2.0, 2.0]
    (warning,) = warnings
    assert "double failed where eager does not: Injected: on purpose (at " in warning
    with settings.scope(capture_suppress_errors=False), pytest.raises(InternalCaptureError, match="on purpose"):
        torch.compile(double, backend=failing)(torch.ones(2))
