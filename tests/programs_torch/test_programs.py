"""Complete programs written for torch: the same losses as torch's from the same weights, eager and compiled."""

from __future__ import annotations

import importlib
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eager
from dynamo.api import compile as api
from eager import as_torch
from tests.data.make_programs_reference import PROGRAMS

as_torch.install()
LOADED = {name: importlib.import_module(f"tests.programs_torch.{name}") for name in PROGRAMS}
as_torch.uninstall()
REFERENCE = json.loads((Path(__file__).parents[1] / "data" / "programs_reference.json").read_text())


@pytest.fixture(autouse=True)
def _alone() -> Iterator[None]:
    eager._dynamo.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    eager._dynamo.reset()


def follows(name: str, result: tuple[list[float], Any]) -> None:
    """Rounding grows from step to step: tight at first, then looser."""
    losses, score = result
    expected = REFERENCE[name]["losses"]
    assert len(losses) == len(expected)
    np.testing.assert_allclose(losses[:10], expected[:10], rtol=2e-4)
    np.testing.assert_allclose(losses, expected, rtol=2e-2, atol=2e-3)
    assert expected[-1] < 0.6 * expected[0]
    assert score == pytest.approx(REFERENCE[name]["score"], abs=0.03)


@pytest.mark.parametrize("name", PROGRAMS)
def test_losses_are_torchs(name: str) -> None:
    follows(name, LOADED[name].main([]))


@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_losses_are_torchs(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    follows(name, LOADED[name].main(["--compile"]))
    assert not api.statistics().breaks, "\n".join(b.describe() for b in api.statistics().breaks)
    assert "failed where eager does not" not in capfd.readouterr().err
