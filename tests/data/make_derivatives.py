"""Writes tests/data/derivatives.json.gz: torch's errors in half precision and its second derivatives (derivative_calls.py).

Run with a Python that has torch 2.13: `python -m tests.data.make_derivatives`.
"""
from __future__ import annotations

import gzip
import json
import warnings
from pathlib import Path

import torch

from tests.data.derivative_calls import half_errors, second_derivatives, second_texts, texts

PATH = Path(__file__).parent / "derivatives.json.gz"


def main() -> None:
    """Run every call and write the file."""
    warnings.simplefilter("ignore")
    halves = {text: {code: [None if e is None else round(e, 1) for e in errors] for code in ("f2", "bf")
                     if (errors := half_errors(torch, text, code)) is not None} for text in texts(random=False)}  # fmt: skip
    second = {text: pattern for text in second_texts() if (pattern := second_derivatives(torch, text)) is not None}
    stored = {"halves": {text: found for text, found in halves.items() if found}, "second": second}
    PATH.write_bytes(gzip.compress(json.dumps(stored, separators=(",", ":")).encode(), 9, mtime=0))


if __name__ == "__main__":
    main()
