"""`torch._dynamo.utils`: what was counted while compiling."""

from __future__ import annotations

import collections
from typing import Final

# "frames": total, ok. "stats": unique_graphs, calls_captured. "graph_break": one count for each reason.
# Counts go up until `counters.clear()`; `reset()` leaves them.
counters: Final[collections.defaultdict[str, collections.Counter[str]]] = collections.defaultdict(collections.Counter)
