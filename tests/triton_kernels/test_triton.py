"""Triton without a GPU: the interpreter agrees with numpy, machine code has our ABI and spills nothing."""
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

triton = pytest.importorskip("triton", reason="the gpu extra (triton) is not installed")

from inductor.triton.compile import compile_kernel, resources  # noqa: E402

from . import programs  # noqa: E402

CASES = {c.name: c for c in programs.cases()}


@pytest.fixture(scope="module")
def interpreted():
    root = Path(__file__).resolve().parents[2]
    env = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join([str(root), *sys.path])}
    run = subprocess.run([sys.executable, str(Path(__file__).parent / "run_interpreter.py")], env=env, capture_output=True,
                         text=True, timeout=300)  # fmt: skip
    assert run.returncode == 0, run.stderr[-3000:]
    return json.loads(run.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", CASES)
def test_interpreter_agrees_with_numpy(interpreted, name):
    assert interpreted[name] <= (0.04 if "bf16" in name else 2e-5)


@pytest.mark.parametrize("capability", [80, 90])
@pytest.mark.parametrize("name", CASES)
def test_machine_code_spills_nothing(name, capability):
    cubin = compile_kernel(CASES[name].kernel, capability)
    used = resources(cubin)
    assert used.local_bytes == 0 and used.stack_bytes == 0, f"{name} spills: {used}"
    assert cubin.shared_bytes <= 227 * 1024 and len(cubin.code) > 0
