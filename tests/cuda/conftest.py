"""A CUDA device for the tests of this folder: a GPU if one is found, else the emulated device in a separate process."""
from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from eager.base import settings

ROOT = Path(__file__).parents[2]
Run = Callable[..., "subprocess.CompletedProcess[str]"]


def emulated(*command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """The finished process of `python ...` in which CUDA is emulated."""
    own = {k: v for k, v in os.environ.items() if k != "PYTEST_ADDOPTS"}  # options of this run change what a nested run prints
    environment = own | {"FRAMEJIT_EMULATE_CUDA": "1"} | variables
    return subprocess.run([sys.executable, *command], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)


def check_emulated(module: str, name: str, **variables: str) -> None:
    """Fails unless `python -m module name` succeeds where CUDA is emulated. Skips the test without Triton."""
    pytest.importorskip("triton", reason="kernels run in Triton's interpreter: needs the gpu extra")
    done = emulated("-m", module, name, **variables)
    assert done.returncode == 0, done.stderr[-4000:]


@functools.cache
def has_gpu() -> bool:
    """Whether CuPy finds a GPU. Does not initialise CUDA in this process."""
    code = "import eager; print(eager.cuda.is_available())"
    environment = {k: v for k, v in os.environ.items() if k != "FRAMEJIT_EMULATE_CUDA"}
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
    return found.stdout.strip() == "True"


@pytest.fixture
def on_emulated_device() -> None:
    """Skips the test unless CUDA is emulated in this process: `test_in_emulation.py` runs it in one where it is."""
    if not settings.current().gpu.emulate:
        pytest.skip("runs where FRAMEJIT_EMULATE_CUDA=1; see test_in_emulation.py")
