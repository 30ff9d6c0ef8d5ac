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
    Difference("torch has no kernel for the dtype; eager's rule serves every dtype", found="^no error|^[0-9]+ results",
               torch="not implemented for|[Uu]nsupported|not support|not currently supported|only supports"),
    Difference("an operand may be a number in eager wherever it may be a tensor", found="^no error",
               torch="must be Tensor, not (int|float|bool|complex)|received an invalid combination of arguments"),
    Difference("an operand may be a number in eager; this one then fails for its dtype", torch="must be Tensor, not (int|float)",
               found="^(NotImplementedError: .* not implemented for|RuntimeError: .*result type)"),
    Difference("eager writes every function's result into `out=` by one rule; torch has no `out=` here", found="^no error",
               torch="unexpected keyword argument 'out'"),
    Difference("eager has no complex32: float16 with complex numbers is complex64", found="complex32"),
    Difference("torch multiplies by alpha = 1 even where none is given, which makes nan of an infinite part; numpy adds",
               call=r"^(T\.(add|sub)\(|).*special\('c", found="^values"),
]  # fmt: skip


def excused(text: str, theirs: Any, found: str) -> Difference | None:
    """The entry that covers this difference, or None."""
    return next((d for d in DIFFERENCES if d.covers(text, theirs, found)), None)
