"""Writes tests/data/corner_gradients.json.gz: torch's gradients of the cases of tests/ops/corners.py.

Run with a Python that has torch 2.13: `python -m tests.data.make_corner_gradients`.
"""
from __future__ import annotations

import gzip
import json
from pathlib import Path

import torch

from tests.ops.corners import GROUPS, gradients, inputs

PATH = Path(__file__).parent / "corner_gradients.json.gz"


def main() -> None:
    """Run every case and write the file."""
    found = {group: {name: [gradients(torch, case, columns) for columns in inputs(group)] for name, case in cases.items()}
             for group, cases in GROUPS.items()}  # fmt: skip
    PATH.write_bytes(gzip.compress(json.dumps(found).encode(), mtime=0))


if __name__ == "__main__":
    main()
