"""Gradients of thousands of calls, and the tensors that backward needs unchanged, against torch's stored outcomes.

The calls are in tests/data/gradients.py.
"""
from __future__ import annotations

import gzip
import json
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import eager
from eager import nn  # noqa: F401 - calls reach it as `T.nn`
from tests.data import gradients
from tests.data.call_differences import MatchedDifferences
from tests.data.compare_calls import close
from tests.data.gradient_differences import CHANGED, GRADIENTS

STORED = Path(gradients.__file__).parent / "torch_gradients.json.gz"
_RTOL = {"float32": 2e-4, "complex64": 2e-4}
_FAMILIES = sorted({family for family, _ in gradients.differentiable_calls()})


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture(scope="module")
def torchs() -> dict[str, dict[str, Any]]:
    return json.loads(gzip.decompress(STORED.read_bytes()))  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def matched() -> MatchedDifferences:
    return MatchedDifferences(GRADIENTS)


def _differs(ours: Any, theirs: Any) -> str | None:
    """The first difference between the gradients of one call, or None. Here None as a gradient counts as zeros.

    A result may be differentiable in eager that is not differentiable in torch.
    """
    if ours is None:
        return "fails"
    if any(b and not a for a, b in zip(ours[0], theirs[0], strict=True)):
        return f"requires_grad: {ours[0]} against torch's {theirs[0]}"
    for a, b in zip(ours[1], theirs[1], strict=True):
        if b is None:
            continue
        values = a[2] if a else [0.0] * len(b[2])
        if a and a[:2] != b[:2]:
            return f"spec: {a[:2]} against torch's {b[:2]}"
        wrong = [(x, y) for x, y in zip(values, b[2], strict=True) if not close(x, y, _RTOL.get(b[0], 1e-6))]
        if wrong:
            return f"values: {wrong[0][0]} against torch's {wrong[0][1]}"
    return None


@pytest.mark.parametrize("family", _FAMILIES)
def test_gradients_agree_with_torch(family: str, torchs: Any, matched: MatchedDifferences) -> None:
    theirs = torchs["gradients"]
    texts = [text for of, text in gradients.differentiable_calls() if of == family and text in theirs]
    found = ((text, None, _differs(gradients.gradients(eager, text), theirs[text])) for text in texts)
    matched.check(family, ((text, what, how) for text, what, how in found if how))


def test_every_listed_difference_occurs(matched: MatchedDifferences) -> None:
    if set(matched.reasons) != set(_FAMILIES):
        pytest.skip("not every family was compared in this run")
    assert not matched.stale(), f"differences that no longer occur: {matched.stale()}"


def test_backward_accepts_every_in_place_write_that_torch_accepts(torchs: Any) -> None:
    """`y = a / b; y += 1` is allowed. `y = a.exp(); y += 1` makes backward fail, because backward reads the saved `y`."""
    refused, compared = [], 0
    for text in gradients.one_each():
        theirs = torchs["changed"].get(text)
        if theirs is None or CHANGED.intersection(re.findall(r"\w+", text)):
            continue
        ours = gradients.changed(eager, text)
        compared += ours is not None
        if ours is not None and any(a != "0" and b == "0" for a, b in zip(ours, theirs, strict=True)):
            refused.append(f"{text}: {ours} against torch's {theirs}")
    assert compared > 1000 and not refused, "\n".join(refused)
