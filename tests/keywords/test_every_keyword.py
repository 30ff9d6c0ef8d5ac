"""Every keyword of every public function, method, layer, optimizer and schedule refuses a wrong value, or acts on it."""
from __future__ import annotations

import warnings

import pytest

import eager
from tests.keywords.compare import Finding, findings, plan, stored
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


def test_the_calls_cover_the_public_functions() -> None:
    called = {call.name for call, _ in plan()}
    assert len(called) > 1350
    assert {"T.softmax", "Tensor.sum", "F.conv2d", "nn.Linear", "optim.AdamW", "optim.lr_scheduler.StepLR"} <= called


@pytest.mark.parametrize("option", ["fullgraph", "dynamic", "backend", "mode", "options", "disable"])
@pytest.mark.parametrize("value", ["bogus", -17, object()], ids=["str", "int", "object"])
def test_options_of_compile_refuse_wrong_values(option: str, value: object) -> None:
    with pytest.raises((TypeError, ValueError, RuntimeError, NotImplementedError)):
        eager.compile(lambda x: x + 1, **{option: value})(eager.ones(2))  # type: ignore[arg-type]
