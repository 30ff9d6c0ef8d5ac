"""Launches, copies and CUDA graphs of the native runtime, against a driver that runs nothing."""
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cuda.conftest import emulated
from tests.cuda.fake_driver import SCENARIOS, WITH_TRITON


@pytest.mark.parametrize("name", [s.__name__ for s in SCENARIOS])
def test_the_native_runtime(name: str) -> None:
    root = Path(__file__).parent.parent.parent
    done = subprocess.run([sys.executable, "-m", "tests.cuda.fake_driver", name], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.gpu
@pytest.mark.parametrize("name", [s.__name__ for s in WITH_TRITON])
def test_machine_code(name: str) -> None:
    pytest.importorskip("triton", reason="compiles a kernel: needs the gpu extra")
    done = emulated("-m", "tests.cuda.fake_driver", name)
    assert done.returncode == 0, done.stderr[-3000:]
