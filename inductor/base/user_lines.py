"""The user's lines behind the steps of a plan, which several programs may share.

A cache key contains no lines, so a plan and its code name nodes of the graph by number: `mul#3` in a comment is the op `mul` of
node 3. Each program that uses the plan inserts its own lines.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import groupby
from typing import Final

__all__ = ["Lines", "with_lines"]

Lines = Mapping[int, str]  # number of a node -> "file:line"

_CALLS: Final = re.compile(r"\b\w+#\d+(?:, \w+#\d+)*")


def with_lines(text: str, lines: Lines) -> str:
    """`text` with node numbers replaced by lines: `mul#3, add#4, sum#7` becomes `mul, add (f.py:1), sum (f.py:2)`."""
    return _CALLS.sub(lambda m: _filled(m.group(), lines), text)


def _filled(calls: str, lines: Lines) -> str:
    pairs = [call.rsplit("#", 1) for call in calls.split(", ")]
    parts = []
    for line, group in groupby(pairs, key=lambda pair: lines.get(int(pair[1]), "")):
        parts.append(", ".join(op for op, _ in group) + (f" ({line})" if line else ""))
    return ", ".join(parts)
