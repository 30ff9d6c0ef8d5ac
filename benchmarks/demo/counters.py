"""What the compiler did while a block ran, counted from its own log.

Owns: the counting. A count is the number of messages of one artifact, so the table and
`TORCH_LOGS=graph_breaks` can never tell two stories.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from eager.base import logs

_ARTIFACTS = ("graph_code", "graph_breaks", "recompiles", "cache")


@dataclass(slots=True)
class Counts:
    """graphs captured, graph breaks (by place), recompilations, graphs found on disk, and warnings said."""

    graphs: int = 0
    breaks: int = 0
    recompiles: int = 0
    cache_hits: int = 0
    warnings: list[str] = field(default_factory=list)


@contextmanager
def counting() -> Iterator[Counts]:
    """Count until the block ends; the figures are there afterwards."""
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
