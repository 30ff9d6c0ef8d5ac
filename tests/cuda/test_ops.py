"""Every op of the table on CUDA against the CPU: values, gradients, in-place forms, out=, half precision.

`tests.cuda.report` runs the checks in a separate process: on the emulated device, and on a GPU if one is found.
"""
from __future__ import annotations

import subprocess
import sys

import pytest

from tests.cuda.checks import ordered_ops
from tests.cuda.conftest import ROOT, emulated, has_gpu

# Ops that differ from the CPU on CUDA: name -> reason.
DIFFERENT: dict[str, str] = {}
SHARDS = 4
SECONDS = 60.0  # of each shard; a shard takes about two
GPU_SECONDS = 240.0  # the first run compiles CuPy's kernels


def _failures(text: str) -> list[str]:
    lines = text.splitlines()
    assert lines, "no report"
    assert lines[-1].startswith("# shard"), f"the report has no summary; it ends with {lines[-1]}"
    done, all_ops = lines[-1].split(";")[1].split(" of ")
    assert done.strip() == all_ops.split()[0], f"the time was over before all ops were checked: {lines[-1]}"
    return [line for line in lines[:-1] if line.split("-")[0] not in DIFFERENT]


@pytest.mark.parametrize("shard", range(SHARDS))
def test_ops_on_the_emulated_device_equal_the_cpu(shard: int) -> None:
    run = emulated("-m", "tests.cuda.report", "--seconds", str(SECONDS), "--shard", f"{shard}/{SHARDS}")
    failures = _failures(run.stdout)
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize("shard", range(SHARDS))
def test_ops_on_a_gpu_equal_the_cpu(shard: int) -> None:
    if not has_gpu():
        pytest.skip("no GPU")
    command = [sys.executable, "-m", "tests.cuda.report", "--seconds", str(GPU_SECONDS), "--shard", f"{shard}/{SHARDS}"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=2 * GPU_SECONDS)
    failures = _failures(run.stdout)
    assert not failures, "\n".join(failures)


def test_at_most_two_percent_of_the_ops_differ() -> None:
    names = ordered_ops()
    assert set(DIFFERENT) <= set(names)
    assert len(DIFFERENT) <= 0.02 * len(names)
