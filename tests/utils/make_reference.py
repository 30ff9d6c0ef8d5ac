"""Writes `reference.json` beside this file: torch's results for the cases. Run it with a Python that has torch.

    python tests/utils/make_reference.py
"""
from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
SUITES = ("data_cases", "pytree_cases", "checkpoint_cases")


def main() -> None:
    sys.path.insert(0, str(HERE))
    torch = importlib.import_module("torch")
    for module in ("utils.data.distributed", "utils._pytree", "utils.checkpoint", "utils.data._utils.collate"):
        importlib.import_module(f"torch.{module}")
    found = {}
    for suite in SUITES:
        if (HERE / f"{suite}.py").exists():
            cases = importlib.import_module(suite).CASES
            found |= {f"{suite}.{name}": fn(torch) for name, fn in cases.items()}
    for program in ("classifier", "language_model"):
        for workers in ("0", "2"):
            command = [sys.executable, "-W", "ignore", str(HERE / "programs" / f"{program}.py"), workers, "fork", "plain"]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            found[f"programs.{program}.{workers}"] = done.stdout.splitlines()
    (HERE / "reference.json").write_text(json.dumps({"torch": torch.__version__, **found}, indent=1) + "\n")
    print(f"{len(found)} cases with torch {torch.__version__}")  # noqa: T201


if __name__ == "__main__":
    main()
