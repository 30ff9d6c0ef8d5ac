"""Pools of the emulated device: memory comes back, and is allocated, while a pool counts its blocks."""
from __future__ import annotations

from typing import Any

import numpy as np

from eager.cuda.emulated import memory


def test_a_block_that_comes_back_while_the_free_blocks_are_released_is_kept() -> None:
    pool = memory.MemoryPool()
    held, other = pool.malloc(2048), pool.malloc(512)
    waiting = [held]
    del other, held

    class Interrupted(list[Any]):
        def __len__(self) -> int:
            waiting.clear()  # a finalizer, or another thread, drops the last reference to a block
            return super().__len__()

    pool._free = {size: Interrupted(blocks) for size, blocks in pool._free.items()}
    pool.free_all_blocks()
    assert (pool.total_bytes(), pool.used_bytes(), pool.n_free_blocks()) == (2048, 0, 1)


def test_memory_is_pinned_while_an_address_is_looked_up(monkeypatch: Any) -> None:
    pool = memory.PinnedMemoryPool()
    blocks = [pool.malloc(8) for _ in range(3)]
    size = memory.PinnedMemoryPointer.size

    def pinning(self: memory.PinnedMemoryPointer) -> int:
        if len(blocks) < 8:
            blocks.append(pool.malloc(8))
        return size(self)

    monkeypatch.setattr(memory.PinnedMemoryPointer, "size", pinning)
    assert not pool.holds(np.zeros(8).ctypes.data) and pool.holds(blocks[2].ptr)
