"""Where eager differs from torch 2.13 on purpose, with the reason. Read by compare_calls.py and test_calls.py."""
from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Difference:
    """Calls that match `call`, where torch's error text matches `torch` or what differs matches `found`."""

    why: str
    call: str = ""
    torch: str | None = None
    found: str = ""

    def covers(self, text: str, theirs: Any, found: str) -> bool:
        error = theirs if isinstance(theirs, dict) and "error" in theirs else None
        raised = self.torch is None or (error is not None and bool(re.search(self.torch, error["text"])))
        return raised and bool(re.search(self.call, text)) and bool(re.search(self.found, found))


DIFFERENCES = [
    Difference("torch has no kernel for the dtype; eager's rule serves every dtype", found="^no error",
               torch="not implemented for|not support|not currently supported|only supports|unsupported"),
]  # fmt: skip


def excused(text: str, theirs: Any, found: str) -> Difference | None:
    """The entry that covers this difference, or None."""
    return next((d for d in DIFFERENCES if d.covers(text, theirs, found)), None)
