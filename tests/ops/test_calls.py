"""Thousands of calls, over dtypes, layouts and wrong arguments, against torch's stored outcomes (tests/data/calls.py)."""
from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

import eager
from eager import nn  # noqa: F401 - calls reach it as `T.nn`
from tests.data.call_differences import DIFFERENCES, MatchedDifferences
from tests.data.calls import calls, names
from tests.data.compare_calls import all_differences, difference, stored

FAMILIES = sorted(calls())


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture(scope="module")
def torch_outcomes() -> dict[str, dict[str, Any]]:
    return stored()


@pytest.fixture(scope="module")
def matched() -> MatchedDifferences:
    return MatchedDifferences(DIFFERENCES)


@pytest.mark.parametrize("family", FAMILIES)
def test_calls_agree_with_torch(family: str, torch_outcomes: Any, matched: MatchedDifferences) -> None:
    differences = all_differences(torch_outcomes, [family])
    matched.check(family, ((text, torch_outcomes[family].get(text), found) for of, text, found in differences if of == family))


def test_every_listed_difference_occurs(matched: MatchedDifferences) -> None:
    if set(matched.reasons) != set(FAMILIES):
        pytest.skip("not every family was compared in this run")
    assert not matched.stale(), f"differences that no longer occur: {matched.stale()}"


# Errors of calls whose results depend on data, and calls that also make tensors on the CPU.
NEEDS_DATA = "depends on data|Cannot copy out of meta tensor|item\\(\\) cannot be called on meta"
MAKES_ITS_OWN = re.compile("out=|T\\.(empty|zeros|ones|tensor|eye|full|hann|text)|text|shown\\(")


def _specs(result: Any) -> Any:
    """Dtype, shape and strides of a tensor, or a list of them for several tensors. None for other results."""
    if isinstance(result, eager.Tensor):
        return result.dtype, tuple(result.shape), result.stride()
    several = isinstance(result, (tuple, list)) and all(isinstance(r, eager.Tensor) for r in result)
    return [_specs(r) for r in result] if several else None


@pytest.mark.parametrize("family", [f for f in FAMILIES if f not in ("printing", "meta")])
def test_meta_tensors_have_the_dtypes_shapes_and_strides_of_real_results(family: str) -> None:
    wrong, compared = [], 0
    for text in calls()[family][:: 1 if family not in ("unary", "binary") else 3]:
        if MAKES_ITS_OWN.search(text):
            continue
        try:
            expected = _specs(eval(text, names(eager)))  # noqa: S307 - our own table
        except Exception:  # noqa: S112 - test_calls_agree_with_torch compares errors
            continue
        if expected is None:
            continue
        compared += 1
        try:
            found = _specs(eval(text, names(eager, "meta")))  # noqa: S307
        except Exception as error:
            found = expected if re.search(NEEDS_DATA, str(error)) else f"{type(error).__name__}: {error}"
        if found != expected:
            wrong.append(f"{text}\n    {found} on the meta device, {expected} on the CPU")
    assert compared
    assert not wrong, f"{len(wrong)} calls differ:\n" + "\n".join(wrong[:20])


def test_the_comparison_reports_each_kind_of_difference() -> None:
    tensor = {"d": "float32", "n": [2], "s": [1], "o": 0, "a": -1, "v": [1.0, 2.0]}
    error = {"error": ["IndexError", "LookupError", "Exception"], "text": "x"}
    assert difference(tensor, dict(tensor)) is None
    for change in ({"d": "float64"}, {"n": [1, 2], "s": [2, 1]}, {"s": [2]}, {"a": 0}, {"v": [1.0, 2.001]}, {"v": [1.0, float("nan")]}):
        assert difference({**tensor, **change}, tensor)
    assert difference(error, tensor) and difference(tensor, error) and difference([tensor], tensor)
    assert difference({**error, "error": ["ValueError", "Exception"]}, error)
    assert difference(error, {**error, "error": ["LookupError", "Exception"]}) is None  # a subclass of the expected class


def test_the_direction_of_a_complex_number_without_dims() -> None:
    assert eager.sgn(eager.tensor(3 + 4j)).item() == pytest.approx(0.6 + 0.8j)
    assert eager.sgn(eager.tensor(0j)).item() == 0
