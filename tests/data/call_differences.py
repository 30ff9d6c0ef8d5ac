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
        said = theirs.get("text", "") if isinstance(theirs, dict) else ""
        return (bool(re.search(self.call, text)) and bool(re.search(self.found, found))
                and (self.torch is None or ("error" in (theirs if isinstance(theirs, dict) else {}) and bool(re.search(self.torch, said)))))  # fmt: skip


DIFFERENCES = [
    Difference("torch has no kernel for the dtype; eager's rule serves every dtype", found="^no error",
               torch="not implemented for|not support|not currently supported|only supports|unsupported"),
]  # fmt: skip


def excused(text: str, theirs: Any, found: str) -> Difference | None:
    """The entry that covers this difference, or None."""
    return next((d for d in DIFFERENCES if d.covers(text, theirs, found)), None)
