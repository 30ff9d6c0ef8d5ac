"""The demo's text: the language topics of Python's own documentation, which every interpreter contains.

Owns its division into paragraphs for the search, and into bytes for the language model.
"""

from __future__ import annotations

from dataclasses import dataclass
from pydoc_data.topics import topics
from textwrap import dedent

import numpy as np
from numpy.typing import NDArray

MIN_PARAGRAPH_CHARS = 160


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph and its topic."""

    topic: str
    text: str


def paragraphs(limit: int) -> list[Paragraph]:
    """At most `limit` paragraphs of prose, spread evenly over the topics' whole text.

    Short paragraphs, grammars and code are joined to the next paragraph, since alone they contain too little.
    """
    found = [Paragraph(name, text) for name in sorted(topics) for text in _prose(topics[name])]
    found = list({p.text: p for p in found}.values())  # topics quote one another
    if len(found) <= limit:
        return found
    picks = np.linspace(0, len(found) - 1, limit).round().astype(int)
    return [found[i] for i in picks]


def _prose(topic: str) -> list[str]:
    joined: list[str] = []
    pending: list[str] = []
    for block in dedent(topic).split("\n\n"):
        words = " ".join(block.split())
        if not words or set(words) <= set("*=-~^ "):
            continue
        pending.append(words)
        if len(" ".join(pending)) >= MIN_PARAGRAPH_CHARS:
            joined.append(" ".join(pending))
            pending = []
    if pending:
        joined.append(" ".join(pending))
    return joined


def as_bytes() -> NDArray[np.int64]:
    """The whole text as byte tokens, one topic after another. Result: (n,), int64, values 0..255."""
    text = "\n\n\n".join(topics[name] for name in sorted(topics))
    return np.frombuffer(text.encode("utf-8"), dtype=np.uint8).astype(np.int64)
