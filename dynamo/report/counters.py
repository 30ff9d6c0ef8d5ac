"""Counts of compilations, as `torch._dynamo.utils.counters` shows them."""

from __future__ import annotations

import collections
from typing import Final

# "frames": total, ok. "stats": unique_graphs, calls_captured. "graph_break": one count for each reason.
# `counters.clear()` resets the counts; `dynamo.reset()` does not.
counters: Final[collections.defaultdict[str, collections.Counter[str]]] = collections.defaultdict(collections.Counter)
