"""Native modules and generated code under sanitizers: a copy of the tree, its extensions built so, and their tests run with it.

    python -m tests.sanitized [pytest arguments]

Needs a compiler with libasan (gcc). Without arguments: the tests of the native modules, of eager kernels, of generated code and of
captured programs. The extensions are built with AddressSanitizer, generated code with AddressSanitizer and UBSan
(FRAMEJIT_SANITIZE=1). A read or write out of bounds or after a free, a second free, or an undefined operation of generated code ends
the run with a report. Exit status of
pytest, or 2 without libasan. The run leaves out tests whose child processes have a separate environment: these lack the
sanitizer's runtime, which must be loaded first. It also leaves out tests of the allocator, of peak memory, of speed and of the
vectoriser's report: a sanitizer changes all of these.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SUITES = (
    "tests/eager", "tests/autograd", "tests/inductor", "tests/dynamo/native", "tests/dynamo/guards/test_guard_kinds.py",
    "tests/dynamo/compilation/test_threads.py", "tests/dynamo/programs/test_programs.py",
)  # fmt: skip
OWN_ENVIRONMENT = (
    "tests/inductor/test_runtime.py::test_saved_artifact_runs_without_cache_and_compiler",
    "tests/inductor/test_cache_bundle.py::test_a_bundle_gives_hits_in_an_empty_cache_of_a_machine_without_a_compiler",
    "tests/inductor/test_symbolic.py::test_a_second_process_finds_the_artifact",
    "tests/eager/utils/test_every_flag.py::test_environment_variables_act_or_are_warned_of",
)
CHANGED = (  # measure memory, speed or a report
    "tests/eager/_tensor/test_tensor.py::test_pool_hands_the_same_block_out_again",
    "tests/inductor/test_native.py::test_new_weight_at_the_address_of_a_freed_one_is_packed_again",
    "tests/inductor/test_cpu_autotune.py::test_a_large_kernel_is_measured_in_memory_of_its_size",
    "tests/inductor/test_cpu_autotune.py::test_a_default_that_was_made_worse_is_replaced",
    "tests/inductor/test_modes.py::test_a_large_packed_product_is_measured_in_little_memory",
    "tests/inductor/test_prelude.py::test_a_chain_of_maxima_runs_in_vectors",
)
FLAGS = "-fsanitize=address -fno-omit-frame-pointer -g"
OPTIONS = "detect_leaks=0:allocator_may_return_null=1"
LEFT_OUT = ("*.so", ".git", ".venv*", "build", "*.egg-info", "__pycache__")


def library(name: str) -> str | None:
    """The path of a library of the C compiler, or None."""
    compiler = os.environ.get("CC", "gcc")
    if shutil.which(compiler) is None:
        return None
    found = subprocess.run([compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip()
    return found if os.path.isabs(found) else None


def main(arguments: list[str]) -> int:
    """Build and run. The order of preloading matters: the sanitizer's runtime comes first."""
    runtime, cxx = library("libasan.so"), library("libstdc++.so")
    if runtime is None or cxx is None:
        print("no libasan beside the C compiler: install gcc's (libasan), or name a gcc in CC")
        return 2
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(*LEFT_OUT))
        build = [sys.executable, "-c", "from setuptools import setup; setup()", "-q", "build_ext", "--inplace"]
        subprocess.run(build, cwd=tree, env={**environment, "CFLAGS": FLAGS, "LDFLAGS": "-fsanitize=address"}, check=True)
        # CPython's small-object allocator would hide errors inside its pools. Memory that CPython never frees does not count as a leak.
        environment |= {"LD_PRELOAD": f"{runtime} {cxx}", "PYTHONMALLOC": "malloc", "FRAMEJIT_CACHE_DIR": str(Path(folder) / "cache"),
                        "ASAN_OPTIONS": OPTIONS, "UBSAN_OPTIONS": "print_stacktrace=1", "FRAMEJIT_SANITIZE": "1"}  # fmt: skip
        left_out = [part for name in (*OWN_ENVIRONMENT, *CHANGED) for part in ("--deselect", name)]
        return subprocess.run([sys.executable, "-m", "pytest", *left_out, *(arguments or SUITES)], cwd=tree, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
