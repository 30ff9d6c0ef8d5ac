"""Counts of the compiler's decisions during a block, from its own log.

Owns the counting. A count is the number of messages of one artifact, so that the table always agrees with
`TORCH_LOGS=graph_breaks`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from eager.base import logs

_ARTIFACTS = ("graph_code", "graph_breaks", "recompiles", "cache")


@dataclass(slots=True)
class Counts:
    """graphs captured, graph breaks (by place), recompilations, graphs found on disk, and warnings."""

    graphs: int = 0
    breaks: int = 0
    recompiles: int = 0
    cache_hits: int = 0
    warnings: list[str] = field(default_factory=list)


@contextmanager
def counting() -> Iterator[Counts]:
    """Count until the block ends; afterwards the fields hold the counts."""
    counts = Counts()
    with logs.capture(*_ARTIFACTS) as records:
        yield counts
    for record in records:
        counts.graphs += record.name == "graph_code"
        counts.breaks += record.name == "graph_breaks"
        counts.recompiles += record.name == "recompiles"
        counts.cache_hits += record.name == "cache" and record.message.startswith("hit")
    artifacts = {log.name for log in logs.artifacts()}
    counts.warnings = [r.message for r in records if r.name not in artifacts]
