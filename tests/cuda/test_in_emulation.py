"""Runs the tests of files that need an emulated device in a process in which CUDA is emulated."""
from __future__ import annotations

import pytest

from tests.cuda.conftest import emulated


@pytest.mark.parametrize("file", ["test_device.py", "test_float8.py", "test_other_dtypes.py"])
def test_the_file_passes_on_the_emulated_device(file: str) -> None:
    run = emulated("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", f"tests/cuda/{file}")
    assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-2000:]
    assert " passed" in run.stdout or run.stdout.strip().endswith("[100%]")
    assert "skipped" not in run.stdout, run.stdout[-500:]
