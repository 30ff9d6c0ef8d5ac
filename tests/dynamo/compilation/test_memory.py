"""Compilation, reset and calls leak no memory. `python -m tests.dynamo.memory` is the long form.

The test runs in a separate process: after thousands of other tests, a fragmented heap grows and shrinks at any time.
"""

from __future__ import annotations

import subprocess
import sys


def test_cycles_calls_and_gradients_leak_no_memory() -> None:
    run = subprocess.run([sys.executable, "-m", "tests.dynamo.memory", "80", "10000"], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.count("the second half leaves") == 3
