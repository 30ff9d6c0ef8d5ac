"""The zoo against torch's stored results, and compiled against eager.

The native backend compiles the cases marked so; with FRAMEJIT_TEST_ZOO=all in the environment, every one.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import eager
from dynamo.api import compile as api
from eager import as_torch
from tests.zoo.agreement import agree, floors, kind
from tests.zoo.summary import differ, summarize

as_torch.install()
from tests.zoo import runner  # noqa: E402 - models are written for torch

CASES = runner.cases()
as_torch.uninstall()

REFERENCE = np.load(Path(__file__).parents[1] / "data" / "zoo_reference.npz")
NAMES: dict[str, list[str]] = json.loads(REFERENCE["index"].tobytes())["names"]
WARNING = re.compile(r"^[WE]\d{4} .*", re.MULTILINE)  # a line of the compiler's log of level warning or error
NATIVE = [n for n, c in CASES.items() if c.compiled or os.environ.get("FRAMEJIT_TEST_ZOO") == "all"]


@pytest.fixture(autouse=True)
def _alone() -> Iterator[None]:
    eager._dynamo.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecations that torch has too
        yield
    eager._dynamo.reset()


@pytest.mark.parametrize("name", [n for n, c in CASES.items() if not c.draws])
def test_eager_agrees_with_torch(name: str) -> None:
    found = runner.run(name, CASES[name])
    expected = {n: r.astype(np.float64) for n, r in zip(NAMES[name], REFERENCE[name], strict=True)}
    # torch returns zeros for a derivative that is zero everywhere; this project returns no gradient.
    missing = [n for n in expected if n not in found and not (".input_grad" in n and expected[n][1] == 0)]
    assert not missing
    assert not [n for n in found if n not in expected]
    floor = floors({n: float(r[1]) for n, r in expected.items()})
    errors = [(n, e) for n in found if (e := differ(summarize(found[n]), expected[n], CASES[name].rtol, floor.get(kind(n), 0)))]
    assert not errors, errors[:5]


def compiled_agrees(name: str, backend: str, capfd: pytest.CaptureFixture[str]) -> None:
    case = CASES[name]
    expected = runner.run(name, case)
    found = runner.run(name, case, lambda model: eager.compile(model, backend=backend))
    agree(found, expected, case.rtol)
    statistics = api.statistics()
    assert len(statistics.breaks) <= case.breaks, "\n".join(b.describe() for b in statistics.breaks)
    assert not statistics.fallbacks, "\n".join(statistics.fallbacks)
    assert not WARNING.findall(capfd.readouterr().err)


@pytest.mark.parametrize("name", list(CASES))
def test_captured_agrees_with_eager(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    compiled_agrees(name, "aot_eager", capfd)


@pytest.mark.parametrize("name", NATIVE)
def test_compiled_agrees_with_eager(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    compiled_agrees(name, "inductor", capfd)
