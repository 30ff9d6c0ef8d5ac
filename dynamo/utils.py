"""`torch._dynamo.utils`: what was counted while compiling, and whether there is a compiler for a device."""

from __future__ import annotations

import collections
from typing import Final

from eager import cuda

# "frames": total, ok. "stats": unique_graphs, calls_captured. "graph_break": one count for each reason.
# Counts go up until `counters.clear()`; `reset()` leaves them.
counters: Final[collections.defaultdict[str, collections.Counter[str]]] = collections.defaultdict(collections.Counter)


def is_compile_supported(device_type: str) -> bool:
    """Whether `compile` makes kernels for tensors on such a device ("cpu", "cuda", "cuda:1")."""
    kind = device_type.partition(":")[0]
    return kind == "cpu" or (kind == "cuda" and cuda.is_available())
