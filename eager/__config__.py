"""The build configuration and the environment of this installation, as text."""
from __future__ import annotations

import platform

import numpy as np

from eager import version
from eager.backends import cpu
from eager.base import machine, threads

__all__ = ["parallel_info", "show"]


def show() -> str:
    """A paragraph for bug reports."""
    blas = machine.blas_path()
    return "\n".join([
        f"framejit {version.framejit} (as torch {version.__version__}) built with:",
        f"  - {platform.python_implementation()} {platform.python_version()}",
        f"  - numpy {np.__version__}",
        f"  - BLAS {blas.name if blas is not None else 'of the system, by numpy'}",
        f"  - CPU capability usage: {cpu.get_cpu_capability()}",
        "",
    ])  # fmt: skip


def parallel_info() -> str:
    """The number of threads in use."""
    return f"CPU loops and BLAS:\n\tthreads : {threads.get_num_threads()}\n\tinterop threads : {threads.get_num_interop_threads()}\n"
