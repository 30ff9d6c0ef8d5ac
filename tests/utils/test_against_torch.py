"""The cases of this folder have torch's results, which `make_reference.py` stored."""
from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import eager

from . import checkpoint_cases, data_cases, pytree_cases

SUITES = {"data_cases": data_cases, "pytree_cases": pytree_cases, "checkpoint_cases": checkpoint_cases}
REFERENCE = json.loads((Path(__file__).parent / "reference.json").read_text())
CASES: dict[str, Callable[[Any], Any]] = {f"{suite}.{n}": fn for suite, m in SUITES.items() for n, fn in m.CASES.items()}


@pytest.mark.filterwarnings("ignore:Length of split at index")
@pytest.mark.parametrize("name", CASES)
def test_case_has_torchs_result(name: str) -> None:
    importlib.import_module("eager.utils.data.distributed")
    got = json.loads(json.dumps(CASES[name](eager)))
    assert got == REFERENCE[name]


def test_every_recorded_case_is_run() -> None:
    recorded = {name for name in REFERENCE if not name.startswith("programs.")}
    assert recorded - {"torch"} == set(CASES)
