"""Write layouts.json.gz: shapes and strides that torch gives for the calls of layout_calls.py.

Run with a Python that has torch (2.13 made the committed file): `python tests/data/make_layouts.py`.
`strides` lists the different outcomes, each a list of (shape, strides) or the class of an error;
`calls` gives, for each number of dims and each call, the outcome's number for each input that `inputs()` yields;
`gradients` gives the number of the strides of x's gradient likewise.
"""
from __future__ import annotations

import gzip
import json
import sys
import warnings
from pathlib import Path

import torch

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))
from tests.data.layout_calls import Case, calls, inputs  # noqa: E402


def outcome(call: str, layout: str, shape: tuple[int, ...]) -> tuple[str, str]:
    """The geometry of the results and the strides of the gradient, or the classes of errors."""
    try:
        case = Case(torch, call, layout, shape, requires_grad=True)
        results = json.dumps(case.geometry())
    except (RuntimeError, ValueError, NotImplementedError) as error:
        return json.dumps(type(error).__name__), "null"
    try:
        return results, json.dumps(case.gradient())
    except RuntimeError as error:
        return results, json.dumps(type(error).__name__)


def main() -> None:
    warnings.simplefilter("ignore")
    numbers: dict[str, int] = {}
    table: dict[str, dict[str, list[int]]] = {}
    gradients: dict[str, dict[str, list[int]]] = {}
    for ndim, layout, shape in inputs():
        for call in calls(ndim):
            for into, found in zip((table, gradients), outcome(call, layout, shape), strict=True):
                into.setdefault(str(ndim), {}).setdefault(call, []).append(numbers.setdefault(found, len(numbers)))
    text = json.dumps({"strides": [json.loads(key) for key in numbers], "calls": table, "gradients": gradients}, separators=(",", ":"))
    (HERE / "layouts.json.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))


if __name__ == "__main__":
    main()
