"""`python -m tests.accuracy [--torch-python PYTHON] [--store] [--table NAME]`: the accuracy tables.

Exits with status 1 if a row is worse than allowed.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util

import eager
from tests.accuracy.table import MODES, print_table, rows, store_figures, stored_figures, torch_figures

TABLES = [name for name in ("reductions", "functions") if importlib.util.find_spec(f"tests.accuracy.{name}")]


def main() -> int:
    """Measure, compare and print. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.accuracy", description=__doc__)
    parser.add_argument("--torch-python", metavar="PYTHON", help="a Python that has torch, which measures torch's errors")
    parser.add_argument("--store", action="store_true", help="keep torch's errors in tests/data/accuracy_torch.json")
    parser.add_argument("--table", choices=TABLES, action="append", help="print this table only (may be repeated)")
    given = parser.parse_args()
    names = given.table or TABLES
    torch = torch_figures(given.torch_python, names) if given.torch_python else stored_figures()
    if given.store and given.torch_python:
        store_figures(torch)
    worse = 0
    for name in names:
        half = importlib.import_module(f"tests.accuracy.{name}")
        worse += print_table(half, rows({mode: half.measure(eager, mode) for mode in MODES}, torch.get(name, {})))
    return 1 if worse else 0


if __name__ == "__main__":
    raise SystemExit(main())
