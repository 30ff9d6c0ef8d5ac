"""The distribution of a graph's functions over source units, so that compiler runs share the cores.

A compiler run takes one core; its time is nearly proportional to the text. Functions of a single unit are `static`; functions
spread over several units are hidden symbols of the shared object, declared in every unit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from inductor.artifact.format import PRELUDE_END, SourceUnit

LEAST_CHARS: Final = 48 << 10  # about 0.6 s of compiler: less does not pay for another run, which reads the prelude again
MOST_CHARS: Final = 512 << 10  # about 6 s: far below the time limit of a compiler run
_HEAD: Final = re.compile(r"^static (void \w+\([^{]*\)) \{$", re.MULTILINE)


def spread(head: str, texts: Sequence[str], calls: str, workers: int, after: Callable[[str], str] = lambda text: "") -> list[SourceUnit]:
    """The units of a graph for `workers` simultaneous compiler runs.

    head: the start of every unit. texts: functions, each `static void name(parameters) {` at a line's start.
    calls: the entry points, which call them. after: returns the text that a unit needs after its own text.
    """
    chars = sum(map(len, texts))
    count = min(max(workers, -(-chars // MOST_CHARS)), chars // LEAST_CHARS)
    if count < 2:
        text = "\n".join([*texts, calls])
        return [SourceUnit("graph", head + PRELUDE_END + text + after(text))]
    parts: list[list[str]] = [[] for _ in range(count)]
    sizes = [0] * count
    sizes[-1] = len(calls) // 4  # plain calls: quick to compile
    for text in texts:
        k = sizes.index(min(sizes))
        parts[k].append(text)
        sizes[k] += len(text)
    declared = "".join(f"{prototype};\n" for text in texts for prototype in _HEAD.findall(text))
    parts[-1].append(calls)
    bodies = [_HEAD.sub(r"\1 {", "\n".join(part)) for part in parts]
    return [SourceUnit(f"graph{k}", head + declared + PRELUDE_END + body + after(body)) for k, body in enumerate(bodies)]
