"""The CPU's instruction sets."""
from __future__ import annotations

from functools import lru_cache
from pathlib import Path

# torch's names of the levels, best first, with the instruction sets in /proc/cpuinfo that each requires.
_LEVELS = (("AVX512", {"avx512f", "avx512bw", "avx512dq", "avx512vl", "fma"}), ("AVX2", {"avx2", "fma"}))


@lru_cache(maxsize=1)
def get_cpu_capability() -> str:
    """"AVX512", "AVX2", or "DEFAULT" for all other CPUs."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:  # the system has no procfs
        return "DEFAULT"
    flags = next((set(line.split(":", 1)[1].split()) for line in lines if line.startswith("flags")), set())
    return next((name for name, needed in _LEVELS if needed <= flags), "DEFAULT")
