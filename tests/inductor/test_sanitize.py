"""Generated code under AddressSanitizer and UBSan (FRAMEJIT_SANITIZE=1): an error of a kernel ends the process with a report."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from eager.base import settings
from inductor.base.toolchain import toolchain
from tests.sanitized import CHANGED, OPTIONS, OWN_ENVIRONMENT, library

ROOT = Path(__file__).parents[2]
# Runs a printed kernel, which writes 4096 floats, on memory for 4096 and then for argv[2] floats; argv[1]: the folder of its library.
PROGRAM = """
import ctypes, sys
from pathlib import Path
import numpy as np
from eager.base import dtypes
from inductor.artifact.format import SourceUnit
from inductor.base.toolchain import build, toolchain
from inductor.cpp.loops import print_kernel
from inductor.cpp.prelude import prelude
from inductor.cpp.units import Place
from inductor.ir import definitions as ir
from inductor.loops import build as loops

of, n = dtypes.float32, 4096
x = ir.load("x", ir.axis(0, n), of)
y = ir.Buffer("y", ir.row_major((n,), of), ir.Pointwise((n,), ir.make_op("mul", (x, x), of)))
made = print_kernel(loops.build([y], {"x": of}), {"x": Place(0, 0, of), "y": Place(1, 0, of)}, 1 << 60, "")
entry = 'extern "C" __attribute__((visibility("default")))'
text = f"{prelude()}{made.code.inside('k').text}{entry} void run(char** bufs) {{ const Runtime* rt = 0; {made.run('k')} }}\\n"
text += f"{entry} int next(int i) {{ return i + 1; }}\\n"
target = Path(sys.argv[1]) / "kernel.so"
build([SourceUnit("unit", text)], target, toolchain())
kernel, x = ctypes.CDLL(str(target)), np.ones(n, np.float32)
for size in (n, int(sys.argv[2])):
    y = np.zeros(size, np.float32)
    kernel.run((ctypes.c_void_p * 2)(x.ctypes.data, y.ctypes.data))
    print("sum", y.sum(), flush=True)
print(kernel.next(2**31 - 1), flush=True)
"""


@pytest.mark.parametrize(("size", "report"), [(4095, "heap-buffer-overflow"), (4096, "signed integer overflow")])
def test_an_error_of_a_kernel_ends_the_process_with_a_report(tmp_path: Path, size: int, report: str) -> None:
    runtime = library("libasan.so")
    if runtime is None or library("libubsan.so") is None or "clang" in toolchain().version.lower():
        pytest.skip("no libasan and libubsan beside g++")
    environment = {**os.environ, "LD_PRELOAD": runtime, "ASAN_OPTIONS": OPTIONS, "FRAMEJIT_SANITIZE": "1"}
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path), str(size)], cwd=ROOT, env=environment,
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert done.stdout.splitlines() == ["sum 4096.0"] * (1 if size < 4096 else 2), done.stderr
    assert done.returncode != 0 and report in done.stderr and "unit.cpp:" in done.stderr, done.stderr


def test_sanitized_code_has_separate_entries_in_the_cache() -> None:
    plain = toolchain()
    with settings.scope(cpu_sanitize=not plain.sanitize):
        other = toolchain()
    assert other.key() != plain.key() and other.sanitize is not plain.sanitize


@pytest.mark.parametrize("name", [*OWN_ENVIRONMENT, *CHANGED])
def test_every_test_that_the_sanitized_run_leaves_out_exists(name: str) -> None:
    file, _, function = name.partition("::")
    assert f"def {function}(" in (ROOT / file).read_text()
