"""The numbers that the schedule of a CPU kernel depends on.

Owns the record and its defaults, which are the rule of thumb of `inductor.plan.heuristics`; `max-autotune` measures others for each kernel.
It decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias


class Choice(NamedTuple):
    """Numbers of one kernel. Kernels with different numbers compute the same values, up to the order of sums.

    vector_bits: preferred width of vectors, 0 for the machine's widest; a compiler flag, on which the code does not depend.
    parallel_ns: least estimated time of a loop that runs on several threads.
    joins: levels of loops, from the root, at which neighbours are joined: at 1, the reductions of a row stay separate.
    unmasked: fewest masks of a loop that a version without masks is printed for.
    pieces: a loop whose conditions change at as many positions or more is not cut there.

    Transposes. register_tiles: iterations of each loop of a tile that is transposed in registers, the first that divides the loop; none:
    no such tiles. tile_run: most tiles that one thread transposes one after another along the lines that it reads. tile_rows,
    tile_columns: iterations of a tile of two loops, the first that divides the loop; none: no tiles.

    Stores. streamed: fewest bytes of a result whose stores go past the caches: a cache of a machine may hold fewer. stream_block: most
    elements that are written to a local and from there past the caches.

    Reductions. lane_bytes: of the running results side by side, at least one vector. stage: elements of one block of a reduction
    without rows. column_bytes: most bytes of the running results of a group of columns: with two totals each they stay in the nearest
    cache. staged: elements of a block of rows that one thread reduces to columns. groups: fewest groups of columns that are enough
    for all threads; with fewer, blocks of rows run in parallel.

    Random numbers. drawn: most elements whose words are drawn before a block of a loop: the words stay in the nearest cache.

    Scans and scatters. scanned: elements of one block of a scan. side_by_side: scans in one loop; more of them do not fit the ports
    for conversions, loads and stores. parts: elements of a part of the innermost loop that a scatter gives to one thread, the first
    that divides it.
    """

    vector_bits: int = 0
    parallel_ns: int = 30_000
    joins: int = 64
    unmasked: int = 2
    pieces: int = 6
    register_tiles: tuple[int, ...] = (16, 8)
    tile_run: int = 16
    tile_rows: tuple[int, ...] = (64, 32, 16)
    tile_columns: tuple[int, ...] = (16, 8)
    streamed: int = 32 << 20
    stream_block: int = 1024
    lane_bytes: int = 64
    stage: int = 8192
    column_bytes: int = 8192
    staged: int = 1 << 15
    groups: int = 8
    drawn: int = 256
    scanned: int = 1 << 15
    side_by_side: int = 2
    parts: tuple[int, ...] = (128, 96, 64)


DEFAULT: Final = Choice()
Choose: TypeAlias = Callable[[Any], Choice]  # of an `inductor.plan.kernels.Unscheduled`

__all__ = ["DEFAULT", "Choice", "Choose"]
