"""Optimizers and schedules against runs that torch made (tests/data/make_optim_reference.py)."""
from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eager

from . import reference_cases

REFERENCE: dict[str, Any] = json.loads((Path(__file__).parents[1] / "data" / "optim_reference.json").read_text())


def same(got: Any, want: Any, tolerance: float, what: str) -> None:
    """Equal structures, with numbers alike within the tolerance."""
    if isinstance(want, dict):
        assert isinstance(got, dict) and set(got) == set(want), f"{what}: keys {sorted(got)} for {sorted(want)}"
        for key in want:
            same(got[key], want[key], tolerance, f"{what}.{key}")
    elif isinstance(want, list):
        assert isinstance(got, list) and len(got) == len(want), f"{what}: {got} for {want}"
        if want and all(isinstance(v, float) for v in want):
            np.testing.assert_allclose(np.array(got, float), np.array(want, float), rtol=tolerance, atol=tolerance, err_msg=what)
        else:
            for i, (g, w) in enumerate(zip(got, want, strict=True)):
                same(g, w, tolerance, f"{what}[{i}]")
    elif isinstance(want, float):
        assert got == pytest.approx(want, rel=tolerance, abs=tolerance), what
    else:
        assert got == want, what


def test_every_case_has_a_reference() -> None:
    assert set(REFERENCE) == set(reference_cases.CASES)


@pytest.mark.parametrize("name", sorted(reference_cases.CASES))
def test_agrees_with_torch(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got = json.loads(json.dumps(reference_cases.run(eager, name)).replace("eager.", "torch."))
    want = REFERENCE[name]
    single = "float32" in name
    # float32 and float32 rates; bfloat16 inside Muon; Rprop's steps near a minimum follow the sign of rounding errors
    tolerance = 2e-5 if single else 2e-2 if name.startswith("Muon") else 1e-5 if "tensor_lr" in name or "Rprop" in name else 1e-7
    same(got["params"], want["params"], tolerance, "params")
    for key in set(want) - {"params", "text"}:
        same(got[key], want[key], 1e-4 if single else tolerance, key)
    if "tensor_lr" not in name:  # there it shows all digits of a float32
        assert got["text"] == want["text"]
