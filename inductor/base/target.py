"""Targets: the numbers of a processor that schedules depend on.

A pass reads a record, never a name, so that one more target is one more record.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Target(NamedTuple):
    """One processor.

    vector_bytes: widest load or store of a thread. registers: vector registers of a CPU core, or 32-bit registers of a GPU thread.
    caches: bytes, the nearest first, of a core or multiprocessor; the last is shared by all. matrix_unit: the instruction that
    multiplies matrices, "" without one. cores: cores or multiprocessors, 0 where the machine decides. threads: of a core, that run
    at once. lanes: threads that run in step. shared_bytes: memory that the threads of one program share, 0 on a CPU.
    """

    name: str
    vector_bytes: int
    registers: int
    caches: tuple[int, ...]
    matrix_unit: str
    cores: int
    threads: int
    lanes: int
    shared_bytes: int

    @property
    def is_gpu(self) -> bool:
        """Whether kernels are programs over tiles."""
        return self.shared_bytes > 0

    @property
    def multiplies_shared(self) -> bool:
        """Whether the matrix unit reads tiles from shared memory, to which the device copies blocks by descriptors of matrices."""
        return self.matrix_unit in ("wgmma", "tcgen05")


AVX2: Final = Target("avx2", 32, 16, (32 << 10, 256 << 10, 8 << 20), "", 0, 1, 1, 0)
AVX512: Final = Target("avx512", 64, 32, (32 << 10, 1 << 20, 16 << 20), "", 0, 1, 1, 0)
NEON: Final = Target("neon", 16, 32, (64 << 10, 1 << 20, 16 << 20), "", 0, 1, 1, 0)
# A device without a record uses the record of the next lower capability: sm_89 uses the record of sm_86.
# shared_bytes: of one program at most. Source: CUDA C++ Programming Guide, table of compute capabilities.
SM_80: Final = Target("sm_80", 16, 255, (192 << 10, 40 << 20), "mma", 108, 2048, 32, 163 << 10)
SM_86: Final = Target("sm_86", 16, 255, (128 << 10, 6 << 20), "mma", 84, 1536, 32, 99 << 10)
SM_90: Final = Target("sm_90", 16, 255, (256 << 10, 50 << 20), "wgmma", 132, 2048, 32, 227 << 10)
SM_100: Final = Target("sm_100", 16, 255, (256 << 10, 126 << 20), "tcgen05", 148, 2048, 32, 227 << 10)
SM_120: Final = Target("sm_120", 16, 255, (128 << 10, 96 << 20), "mma", 170, 1536, 32, 99 << 10)
TARGETS: Final = {t.name: t for t in (AVX2, AVX512, NEON, SM_80, SM_86, SM_90, SM_100, SM_120)}
