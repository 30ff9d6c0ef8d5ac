"""The machine that native code runs on: its threads and its BLAS, chosen in one place."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

import numpy as np

from eager import _native
from eager.base import logs, settings

__all__ = ["blas_path", "configure", "has_blas", "threads"]

_COMPONENT = logs.component("inductor")
_PATTERNS = ("libscipy_openblas64_*.so*", "libscipy_openblas*.so*", "libopenblas64_*.so*", "libopenblas*.so*")


def threads() -> int:
    """How many threads native loops use: the setting, or the cores this process may run on."""
    return settings.current().cpu.threads or min(len(os.sched_getaffinity(0)), _quota())


@lru_cache(maxsize=1)
def _quota() -> int:
    """Cores that a container's limit comes to: more threads than that are put to sleep in turns."""
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return max(1, round(int(quota) / int(period)))
    except (OSError, ValueError):  # no cgroup v2, or "max"
        return os.cpu_count() or 1


def configure() -> None:
    """Bring the native runtime in line with the settings. Cheap when nothing changed."""
    wanted = threads()
    if _native.threads() != wanted:
        _native.set_threads(wanted)
    limit = settings.current().cpu.allocator_limit_bytes
    if _native.memory_stats()["limit_bytes"] != limit:
        _native.set_memory_limit(limit)
    _load_blas()


def has_blas() -> bool:
    """Whether `rt->gemm` is a BLAS, not the plain loops that replace a missing BLAS."""
    return bool(_native.has_blas())


@lru_cache(maxsize=1)
def blas_path() -> Path | None:
    """The CBLAS inside numpy's wheel, or None if numpy was built with another BLAS."""
    # The file name carries a hash; the folder is the wheel tool's convention (auditwheel).
    folder = Path(np.__file__).parent.parent / "numpy.libs"
    for pattern in _PATTERNS:
        for path in sorted(folder.glob(pattern)):
            return path
    return None


@lru_cache(maxsize=1)
def _load_blas() -> bool:
    asked = settings.current().cpu.blas
    if asked == "none":
        return False
    path = Path(asked) if asked else blas_path()
    if path is None:
        _COMPONENT.log("numpy has no bundled OpenBLAS: matrix products use the generated template")
        return False
    try:
        _native.load_blas(str(path))
    except OSError as error:
        _COMPONENT.log(f"{error}: matrix products use the emitted template")
        return False
    return True
