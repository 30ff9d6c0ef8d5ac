"""The log: the TORCH_LOGS language, set_logs, the lines themselves."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from eager.base import logs
from eager.base.logs import FrameId
from fxir.base.compilation import compiling

ROOT = Path(__file__).resolve().parents[2]
REQUIRED = [
    "graph_breaks", "recompiles", "recompiles_verbose", "guards", "bytecode", "graph", "graph_code",
    "graph_sizes", "aot_graphs", "aot_joint_graph", "trace_source", "trace_bytecode", "output_code",
    "kernel_code", "schedule", "fusion", "perf_hints", "cudagraphs", "autotuning", "cache", "compile_time",
]  # fmt: skip


def _on() -> set[str]:
    return {a.name for a in logs.artifacts() if a.enabled} | {c.name for c in logs.components() if c.enabled}


def test_the_promised_artifacts_and_components_exist() -> None:
    assert {a.name for a in logs.artifacts()} >= set(REQUIRED)
    assert {c.name for c in logs.components()} == {"dynamo", "aot", "inductor", "dynamic"}


@pytest.mark.parametrize(
    ("spec", "on", "off"),
    [
        ("", set(), {"dynamo", "graph_breaks"}),
        ("graph_breaks, recompiles", {"graph_breaks", "recompiles"}, {"guards", "dynamo"}),
        ("dynamo", {"dynamo"}, {"graph_breaks", "aot"}),
        ("+dynamo", {"dynamo", "graph_breaks", "guards"}, {"bytecode", "output_code", "inductor"}),
        ("+dynamo,-guards", {"graph_breaks"}, {"guards"}),
        ("-guards,+dynamo", {"graph_breaks"}, {"guards"}),
        ("all,-fusion", {"dynamo", "output_code", "guards"}, {"fusion", "bytecode"}),
        ("+all", {"bytecode", "trace_bytecode", "inductor"}, set()),
    ],
)
def test_the_language_of_torch_logs(spec: str, on: set[str], off: set[str]) -> None:
    logs.apply(spec)
    assert on <= _on()
    assert not off & _on()


def test_a_minus_silences_the_warnings_of_a_component(capsys: pytest.CaptureFixture[str]) -> None:
    logs.apply("-dynamo")
    logs.component("dynamo").warning("silenced")
    logs.apply("")
    logs.component("dynamo").warning("spoken")
    printed = capsys.readouterr().err
    assert "spoken" in printed and "silenced" not in printed


def test_a_misspelt_name_is_refused_with_the_nearest_and_changes_nothing() -> None:
    logs.apply("fusion")
    with pytest.raises(ValueError, match="unknown name 'grph_breaks'; did you mean 'graph_breaks'"):
        logs.apply("guards,grph_breaks")
    assert _on() == {"fusion"}


def test_set_logs_replaces_the_earlier_choice() -> None:
    logs.set_logs(fusion=True)
    logs.set_logs(dynamo=logging.DEBUG, guards=False)
    assert "graph_breaks" in _on() and not {"fusion", "guards"} & _on()
    with pytest.raises(ValueError, match="did you mean 'guards'"):
        logs.set_logs(guard=True)
    with pytest.raises(TypeError, match="allowed for an artifact"):
        logs.set_logs(guards=3)


def test_each_line_carries_the_frame_id_and_the_name(capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_logs(graph_breaks=True)
    log = logs.artifact("graph_breaks")
    with compiling(FrameId(3, 1)):
        log.log("first\nsecond")
        log.log("third", frame_id=FrameId(4, 0, 2))
    log.log("fourth")
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(" ", 2)[2] for line in lines] == [
        "[3/1] [__graph_breaks] first",
        "[3/1] [__graph_breaks] second",
        "[4/0_2] [__graph_breaks] third",
        "[__graph_breaks] fourth",
    ]
    assert all(line[0] == "V" for line in lines)


def test_nothing_is_written_while_an_artifact_is_off(capsys: pytest.CaptureFixture[str]) -> None:
    logs.artifact("guards").log("unseen")
    logs.component("dynamo").log("unseen")
    assert capsys.readouterr().err == ""


def test_warn_once_warns_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert logs.warn_once("key", "mind the gap")
    assert not logs.warn_once("key", "mind the gap")
    assert capsys.readouterr().err.count("mind the gap") == 1


def test_capture_collects_and_restores(capsys: pytest.CaptureFixture[str]) -> None:
    with logs.capture("guards") as records:
        logs.artifact("guards").log("seen", frame_id="0/0")
        logs.component("aot").warning("also seen")
    assert [(r.name, r.frame_id, r.message) for r in records] == [("guards", "0/0", "seen"), ("aot", "", "also seen")]
    assert not logs.artifact("guards").enabled
    assert capsys.readouterr().err == ""


def test_the_environment_sets_the_log_and_a_file(tmp_path: Path) -> None:
    out = tmp_path / "log"
    code = "from eager.base import logs as l; l.set_logs(fusion=True); l.artifact('guards').log('to both')"
    environment = {**os.environ, "TORCH_LOGS": "guards", "TORCH_LOGS_OUT": str(out)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, cwd=ROOT)
    assert "set_logs: ignored" in done.stderr
    assert "[__guards] to both" in done.stderr and "[__guards] to both" in out.read_text()


def test_help_lists_everything() -> None:
    environment = {**os.environ, "TORCH_LOGS": "help"}
    command = [sys.executable, "-c", "import eager"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, cwd=ROOT)
    for name in [*REQUIRED, *(c.name for c in logs.components())]:
        assert f"\n  {name}" in done.stderr
