"""Functions, layers, optimizers and schedules against torch's stored values (tests/data/make_nn_reference.py)."""
from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eager

from . import reference_cases

REFERENCE: dict[str, Any] = json.loads((Path(__file__).parents[1] / "data" / "nn_reference.json").read_text())


@pytest.fixture(autouse=True)
def _double() -> Iterator[None]:
    eager.set_default_dtype(eager.float64)
    yield
    eager.set_default_dtype(eager.float32)


def close(got: Any, want: Any, what: str) -> None:
    if want is None:
        assert got is None or not np.any(np.asarray(got)), what
        return
    if got is None:
        assert not np.any(np.asarray(want)), what
        return
    np.testing.assert_allclose(np.asarray(got, float), np.asarray(want, float), rtol=1e-7, atol=1e-9, err_msg=what)


def test_every_case_has_a_reference() -> None:
    assert set(REFERENCE) == set(reference_cases.CASES)


@pytest.mark.parametrize("name", sorted(reference_cases.CASES))
def test_agrees_with_torch(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got = reference_cases.run(eager, name)
    want = REFERENCE[name]
    for key in ("outputs", "grads"):
        assert len(got[key]) == len(want[key]), key
        for i, (g, w) in enumerate(zip(got[key], want[key], strict=True)):
            close(g, w, f"{name} {key}[{i}]")
