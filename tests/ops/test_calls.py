"""Thousands of calls, over dtypes, layouts and wrong arguments, against torch's stored outcomes (tests/data/calls.py)."""
from __future__ import annotations

from typing import Any

import pytest

from tests.data.call_differences import DIFFERENCES, excused
from tests.data.calls import calls
from tests.data.compare_calls import all_differences, difference, stored

FAMILIES = sorted(calls())


@pytest.fixture(scope="module")
def torch_outcomes() -> dict[str, dict[str, Any]]:
    return stored()


@pytest.fixture(scope="module")
def used() -> set[str]:
    """Reasons of the differences that were met."""
    return set()


@pytest.mark.parametrize("family", FAMILIES)
def test_calls_agree_with_torch(family: str, torch_outcomes: Any, used: set[str]) -> None:
    unexpected = []
    for found_in, text, found in all_differences(torch_outcomes, [family]):
        if found_in != family:
            continue
        reason = excused(text, torch_outcomes[family].get(text), found)
        if reason is None:
            unexpected.append(f"{text}\n    {found}")
        else:
            used.add(reason.why)
    assert not unexpected, f"{len(unexpected)} calls differ:\n" + "\n".join(unexpected[:20])


def test_every_listed_difference_is_met(used: set[str]) -> None:
    if not used:
        pytest.skip("the comparison itself was not run")
    stale = [d.why for d in DIFFERENCES if d.why not in used]
    assert not stale, f"differences that no longer occur: {stale}"


def test_comparison_sees_what_differs() -> None:
    tensor = {"d": "float32", "n": [2], "s": [1], "o": 0, "a": -1, "v": [1.0, 2.0]}
    error = {"error": ["IndexError", "LookupError", "Exception"], "text": "x"}
    assert difference(tensor, dict(tensor)) is None
    for change in ({"d": "float64"}, {"n": [1, 2], "s": [2, 1]}, {"s": [2]}, {"a": 0}, {"v": [1.0, 2.001]}, {"v": [1.0, float("nan")]}):
        assert difference({**tensor, **change}, tensor)
    assert difference(error, tensor) and difference(tensor, error) and difference([tensor], tensor)
    assert difference({**error, "error": ["ValueError", "Exception"]}, error)
    assert difference(error, {**error, "error": ["LookupError", "Exception"]}) is None  # a subclass is caught alike
