"""Compare what wrong values of keywords do in eager and in torch.

`python -m tests.keywords` compares with the stored outcomes of torch 2.13; `--torch PYTHON` runs that interpreter's
torch; `--store` stores its outcomes.
"""
from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from collections import Counter
from json import dump, load
from pathlib import Path

import eager
from tests.keywords.compare import STORED, Outcomes, findings, plan, store, stored
from tests.keywords.excused import excused
from tests.keywords.outcomes import outcomes, to_data


def run_torch(python: str) -> Outcomes:
    with tempfile.TemporaryDirectory() as folder:
        chosen, result = Path(folder) / "plan.json", Path(folder) / "result.json"
        with chosen.open("w") as file:
            dump(to_data(plan()), file)
        command = [python, "-m", "tests.keywords.outcomes", str(chosen), str(result), "torch"]
        subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": os.getcwd()})
        with result.open() as file:
            return load(file)  # type: ignore[no-any-return]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.keywords", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--torch", metavar="PYTHON", help="an interpreter that has torch")
    parser.add_argument("--all", action="store_true", help="also print excused findings")
    parser.add_argument("--store", action="store_true", help=f"write torch's outcomes to {STORED.name}")
    options = parser.parse_args()
    theirs = run_torch(options.torch) if options.torch else stored()
    if options.store:
        store(theirs)
    found = list(findings(outcomes(eager, plan()), theirs))
    for finding in (f for f in found if options.all or excused(f) is None):
        print(finding)
    print(", ".join(f"{n} {kind}" for kind, n in Counter(f.kind for f in found).most_common()) or "no difference")


if __name__ == "__main__":
    main()
