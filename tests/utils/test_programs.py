"""Training programs written for torch run unmodified under the alias, with torch's losses, with and without workers."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
REFERENCE = json.loads((HERE / "reference.json").read_text())


def run(program: str, workers: int, start: str, how: str) -> list[str]:
    script = HERE / "programs" / f"{program}.py"
    command = [sys.executable, "-m", "eager.as_torch", str(script), str(workers), start, how]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=HERE.parents[1],
                          env={**os.environ, "PYTHONPATH": str(HERE.parents[1])})  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize(("program", "workers", "start", "how"), [
    ("classifier", 0, "fork", "plain"), ("classifier", 2, "fork", "compiled"), ("classifier", 2, "spawn", "plain"),
    ("language_model", 0, "fork", "plain"), ("language_model", 2, "fork", "plain"),
])  # fmt: skip
def test_losses_equal_torchs(program: str, workers: int, start: str, how: str) -> None:
    assert run(program, workers, start, how) == REFERENCE[f"programs.{program}.{workers}"]
