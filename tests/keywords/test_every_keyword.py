"""Every keyword of every public function, method, layer, optimizer and schedule refuses a wrong value, or acts on it."""
from __future__ import annotations

import re
import subprocess
import sys
import warnings

import pytest

import eager
from tests.keywords.compare import Finding, findings, plan, stored
from tests.keywords.coverage import UNCALLED, reason
from tests.keywords.excused import excused, unused
from tests.keywords.outcomes import outcomes


@pytest.fixture(scope="module")
def found() -> list[Finding]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(findings(outcomes(eager, plan()), stored()))


def test_no_wrong_value_is_ignored(found: list[Finding]) -> None:
    assert not [str(f) for f in found if excused(f) is None]


def test_every_excuse_is_used(found: list[Finding]) -> None:
    assert not unused(found)


@pytest.fixture(scope="module")
def called() -> set[str]:
    return {call.name for call, _ in plan()}


def test_the_calls_cover_the_public_functions(called: set[str]) -> None:
    assert len(called) > 1600
    command = [sys.executable, "-W", "ignore", "-m", "tests.keywords.coverage"]
    left = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert not [name for name in left if reason(name) is None]
    assert not [pattern for pattern, _ in UNCALLED if not any(re.fullmatch(pattern, name) for name in left)]
    assert {"T.softmax", "Tensor.sum", "F.conv2d", "nn.Linear", "optim.AdamW", "optim.lr_scheduler.StepLR"} <= called


@pytest.mark.parametrize("option", ["fullgraph", "dynamic", "backend", "mode", "options", "disable"])
@pytest.mark.parametrize("value", ["bogus", -17, object()], ids=["str", "int", "object"])
def test_options_of_compile_refuse_wrong_values(option: str, value: object) -> None:
    with pytest.raises((TypeError, ValueError, RuntimeError, NotImplementedError)):
        eager.compile(lambda x: x + 1, **{option: value})(eager.ones(2))  # type: ignore[arg-type]
