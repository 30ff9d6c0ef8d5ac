"""Limits of compilation: recompiles, deep recursion; and the settings and arguments that steer them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

import eager as torch
from dynamo.report.errors import FailOnRecompile, RecompileLimitExceeded
from eager import nn
from eager.base import logs, settings
from fxir.base.options import CompileOptions, GraphKind
from fxir.ir.graph_module import GraphModule
from fxir.region.aot import aot_compile
from inductor.base import toolchain
from inductor.base.toolchain import build
from tests.dynamo.api.test_compiler_names import CompileCounter


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def test_an_endless_recursion_ends_soon() -> None:
    def forever(x: Any, n: int = 0) -> Any:
        return forever(x + 1, n + 1)

    started = time.process_time()
    with pytest.raises(RecursionError):
        torch.compile(forever, backend="eager")(torch.ones(3))
    assert time.process_time() - started < 8  # 24 s while every region walked the whole traceback


def test_a_loop_over_many_rows_is_captured_with_a_warning(capfd: pytest.CaptureFixture[str]) -> None:
    def scan(x: Any) -> Any:
        h = x[0]
        for i in range(x.shape[0]):
            h = torch.tanh(x[i] + h)
        return h

    counter = CompileCounter()
    x = torch.linspace(-1, 1, 1000).reshape(500, 2)
    logs.set_logs()
    torch.testing.assert_close(torch.compile(scan, backend=counter, fullgraph=True)(x), scan(x))
    assert counter.frame_count == 1
    assert "iterations were unrolled into" in capfd.readouterr().err


class Steps(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.step = 0

    def forward(self, x: Any) -> Any:
        self.step += 1
        torch._dynamo.graph_break()
        return x * self.step


def test_a_function_of_many_breaks_has_the_limit_for_each_part(capfd: pytest.CaptureFixture[str]) -> None:
    def f(x: Any) -> Any:
        for _ in range(2):
            x = x + 1
            torch._dynamo.graph_break()
        x = x * 2
        torch._dynamo.graph_break()
        x = x - 1
        torch._dynamo.graph_break()
        return x / 2

    compiled = torch.compile(f, backend="eager")
    kinds = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
    for kind in (*kinds, *kinds):
        x = torch.ones(3, dtype=kind)
        assert torch.equal(compiled(x), f(x))
    assert "recompile_limit" not in capfd.readouterr().err
    with torch._dynamo.config.patch(error_on_recompile=True):
        compiled(torch.ones(3, dtype=torch.float16))


def test_a_part_at_the_limit_stops_compilation_of_the_function_with_one_warning(capfd: pytest.CaptureFixture[str]) -> None:
    counter = CompileCounter()

    def f(x: Any, n: str) -> Any:
        x = x + len(n)
        torch._dynamo.graph_break()
        x = x * len(n)
        torch._dynamo.graph_break()
        return x - len(n)

    compiled = torch.compile(f, backend=counter)
    x = torch.ones(2)
    with torch._dynamo.config.patch(recompile_limit=3):
        for k in range(1, 12):
            assert torch.equal(compiled(x, "a" * k), f(x, "a" * k))
    logs.set_logs()
    assert counter.frame_count == 9
    assert capfd.readouterr().err.count("torch._dynamo.config.recompile_limit (3)") == 1


def test_the_limit_counts_the_sites_of_a_function_together(capfd: pytest.CaptureFixture[str]) -> None:
    net, counter = Steps(), CompileCounter()
    with torch._dynamo.config.patch(recompile_limit=4):
        compiled = torch.compile(net, backend=counter, dynamic=False)
        x = torch.ones(2)
        for _ in range(8):
            assert torch.equal(compiled(x), x * net.step)
    logs.set_logs()
    message = capfd.readouterr().err
    assert "torch._dynamo.config.recompile_limit (4)" in message
    assert "step" in message and "keep it in a tensor" in message
    assert counter.frame_count <= 4


def _recompiled(**config: Any) -> Any:
    with torch._dynamo.config.patch(**config):
        compiled = torch.compile(lambda x, k: x + len(k), backend="eager")
        for k in ("a", "bb", "ccc"):
            compiled(torch.ones(1), k)


def test_settings_turn_recompiles_and_limits_into_errors() -> None:
    with pytest.raises(FailOnRecompile, match="error_on_recompile"):
        _recompiled(error_on_recompile=True)
    with pytest.raises(RecompileLimitExceeded, match="recompile_limit"):
        _recompiled(fail_on_recompile_limit_hit=True, recompile_limit=2)
    with pytest.raises(RecompileLimitExceeded, match="accumulated_recompile_limit"):
        _recompiled(fail_on_recompile_limit_hit=True, accumulated_recompile_limit=2)


@pytest.mark.parametrize(("config", "calls", "graphs"), [
    ({"assume_static_by_default": False}, [(torch.ones(3), 2), (torch.ones(4), 2)], 1),
    ({"assume_static_by_default": True}, [(torch.ones(3), 2), (torch.ones(4), 2)], 2),
    ({"specialize_int": True}, [(torch.ones(3), n) for n in (2, 3, 4, 5)], 4),
    ({"specialize_int": False}, [(torch.ones(3), n) for n in (2, 3, 4, 5)], 2),
    ({"specialize_float": True}, [(torch.ones(3), n) for n in (2.5, 3.5, 4.5, 5.5)], 4),
    ({"specialize_float": False}, [(torch.ones(3), n) for n in (2.5, 3.5, 4.5, 5.5)], 2),
])  # fmt: skip
def test_settings_decide_which_numbers_are_symbolic(config: dict[str, bool], calls: list[tuple[Any, ...]], graphs: int) -> None:
    counter = CompileCounter()
    with torch._dynamo.config.patch(**config):
        compiled = torch.compile(lambda x, n: x * n, backend=counter)
        for x, n in calls:
            assert torch.equal(compiled(x, n), x * n)
    assert counter.frame_count == graphs


@pytest.mark.parametrize("given", [
    {"dynamic": "yes"}, {"dynamic": 1}, {"fullgraph": "no"}, {"fullgraph": 1}, {"disable": "x"}, {"options": "max"}, {"mode": 3},
])  # fmt: skip
def test_arguments_of_compile_of_a_wrong_type_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=f"compile: {next(iter(given))}="):
        torch.compile(lambda x: x, **given)


@pytest.mark.parametrize(("name", "value"), [
    ("reorderable_logging_functions", {print}), ("ignore_logging_functions", {print}), ("allow_unspec_int_on_nn_module", True),
    ("dynamic_shapes", False), ("compiled_autograd", True),
])  # fmt: skip
def test_settings_without_an_implementation_are_refused(name: str, value: Any) -> None:
    with pytest.raises(NotImplementedError, match=name):
        setattr(torch._dynamo.config, name, value)


def _unrolled(x: Any) -> Any:
    for i in range(400):
        x = (x + i) * 2 - x
    return x


def test_a_long_unrolled_loop_has_less_time_in_the_compiler() -> None:
    seen: list[tuple[str, float | None]] = []

    def compile_graph(graph: Any, kind: GraphKind, options: CompileOptions) -> Any:
        seen.append((kind.value, options.compiler_timeout_s))
        return GraphModule(graph.root, graph).forward

    def backend(gm: Any, inputs: Any, options: CompileOptions) -> Any:
        return aot_compile(gm, inputs, compile_graph, options)

    whole = settings.current().cpu.compile_timeout_s
    cases: list[tuple[Any, dict[str, Any]]] = [(_unrolled, {}), (_unrolled, {"fullgraph": True}), (lambda x: x * x, {})]
    for function, options in cases:
        torch.compile(function, backend=backend, **options)(torch.zeros(2, requires_grad=True)).sum().backward()
    assert seen == [(kind, limit) for limit in (30, None, None) for kind in ("forward", "backward")]
    assert settings.current().cpu.compile_timeout_s == whole > 30


@dataclass(frozen=True)
class _Unit:
    name: str
    text: str = ""
    reusable: bool = False
    vector_bits: int = 0


@pytest.mark.parametrize("count", [1, 2])
def test_the_time_limit_of_a_call_reaches_every_compiler_run(tmp_path: Path, count: int) -> None:
    slow = tmp_path / "g++"
    slow.write_text("#!/bin/sh\nexec sleep 20\n")
    slow.chmod(0o755)
    tools = replace(toolchain.toolchain(), cxx=str(slow))
    with pytest.raises(toolchain.CompileError, match=r"the compiler was stopped after 0\.2 s \(FRAMEJIT_UNROLL_TIMEOUT_S\)"):
        build([_Unit(f"unit{i}") for i in range(count)], tmp_path / "library.so", tools, timeout_s=0.2)
