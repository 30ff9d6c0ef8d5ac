"""Findings: wrong values of keywords that eager accepts and torch refuses, or keywords with an effect only in torch."""
from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final

import eager
from tests.keywords.calls import functions, keywords, objects
from tests.keywords.outcomes import CHANGED, SAME, VALUES, Plan

Outcomes = dict[str, dict[str, list[str]]]
STORED: Final = Path(__file__).parents[1] / "data" / "keywords_torch.json.gz"
_ACCEPTED: Final = (SAME, CHANGED)
# The classes of refusals. A wrong value that ends in another class got past the checks.
_CLASSES: Final = ("TypeError", "RuntimeError", "ValueError", "NotImplementedError", "IndexError", "AssertionError")


@dataclass(frozen=True, slots=True)
class Finding:
    """A wrong value of one keyword with a different outcome in eager than in torch.

    kind: "taken" if only torch refuses the value; "refused" if only eager refuses it; "ignored" if it has an effect in torch
    only, or if eager ignores it in a function that torch lacks; "class" if eager raises an error of an unexpected class.
    """

    kind: str
    call: str
    keyword: str
    value: str
    ours: str
    theirs: str

    @property
    def where(self) -> str:
        return f"{self.kind}: {self.call}({self.keyword}={self.value})"

    def __str__(self) -> str:
        return f"{self.where}: {self.ours}; torch: {self.theirs}"


def plan() -> Plan:
    return [(c, keywords(eager, c)) for c in chain(functions(eager), objects(eager))]


def findings(ours: Outcomes, theirs: Outcomes) -> Iterator[Finding]:
    for call, by_keyword in ours.items():
        for keyword, results in by_keyword.items():
            reference = theirs.get(call, {}).get(keyword, ["unknown"] * len(VALUES))
            for value, a, b in zip(VALUES, results, reference, strict=True):
                kind = _kind(a, b)
                if kind is not None:
                    yield Finding(kind, call, keyword, repr(value), a, b)


def _kind(ours: str, theirs: str) -> str | None:
    if ours in _ACCEPTED:
        if theirs not in (*_ACCEPTED, "unknown"):
            return "taken"
        return "ignored" if ours == SAME and theirs in (CHANGED, "unknown") else None
    if theirs in _ACCEPTED:
        return "refused"
    return None if ours == theirs or ours in _CLASSES else "class"


def stored() -> Outcomes:
    return json.loads(gzip.decompress(STORED.read_bytes()))  # type: ignore[no-any-return]


def store(outcomes: Outcomes) -> None:
    text = json.dumps(outcomes, sort_keys=True, separators=(",", ":"))
    STORED.write_bytes(gzip.compress(text.encode(), mtime=0))
