"""Makes programs_reference.json: the losses of the programs of tests/programs_torch, run by torch.

    python -m venv ref && ref/bin/pip install torch==2.13.0 numpy
    ref/bin/python -m tests.data.make_programs_reference
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

PROGRAMS = ("digits", "lstm_text", "transformer", "vae", "karate")
TARGET = Path(__file__).with_name("programs_reference.json")


def main() -> None:
    found = {}
    for name in PROGRAMS:
        losses, score = importlib.import_module(f"tests.programs_torch.{name}").main([])
        found[name] = {"losses": [float(f"{x:.7g}") for x in losses], "score": float(f"{score:.6g}")}
    text = json.dumps({"torch": sys.modules["torch"].__version__, **found}, indent=0)
    TARGET.write_text(text + "\n")


if __name__ == "__main__":
    main()
