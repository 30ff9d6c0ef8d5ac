"""Every distribution, divergence, transform and error text against torch 2.13's results, which tests/data stores."""

from __future__ import annotations

import functools
import json
import math
import runpy
import warnings
from pathlib import Path
from typing import Any

import pytest

import eager

DATA = Path(__file__).resolve().parents[1] / "data"
REFERENCE = json.loads((DATA / "distributions_reference.json").read_text())

# Where this library differs, and why.
KNOWN = {
    ("distributions", "Kumaraswamy", "mode"): "torch's formula takes the logarithm of a negative number where the mode exists",
    ("distributions", "Weibull", "mode"): "0 for concentrations below 1, where torch raises a negative number to a power",
    ("distributions", "LogitRelaxedBernoulli", "has_rsample"): "it has an rsample, which torch does not declare",
    ("distributions", "VonMises", "entropy"): "torch does not implement the entropy",
    ("distributions", "VonMises", "variance"): "torch's Bessel functions have errors of 1e-5 here, ours of 1e-15",
    ("distributions", "VonMises", "stddev"): "as the variance",
}
# The maps are equal, but torch adds zero to the exponential and reports the real numbers as the codomain.
CODOMAINS = {"D.biject_to(D.constraints.positive)", "D.biject_to(D.constraints.independent(D.constraints.positive, 1))"}


@functools.cache
def ours() -> dict[str, Any]:
    module = runpy.run_path(str(DATA / "make_distributions_reference.py"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return json.loads(json.dumps(module["collect"](eager)))


def agree(got: Any, wanted: Any, where: str) -> None:
    if isinstance(wanted, dict) and "values" in wanted:
        assert "values" in got, f"{where}: {got}"
        assert (got["shape"], got["dtype"]) == (wanted["shape"], wanted["dtype"]), where
        for a, b in zip(map(float, got["values"]), map(float, wanted["values"]), strict=True):
            same = a == b or (math.isnan(a) and math.isnan(b))
            assert same or abs(a - b) <= 1e-9 + 1e-7 * abs(b), f"{where}: {got['values']} against {wanted['values']}"
    elif isinstance(wanted, dict):
        assert got.get("error") == wanted["error"], f"{where}: {got}"
    else:
        assert got == wanted, where


@pytest.mark.parametrize("name", REFERENCE["distributions"])
def test_distributions_agree_with_torch(name: str) -> None:
    got = ours()["distributions"][name]
    for what, wanted in REFERENCE["distributions"][name].items():
        if ("distributions", name, what) not in KNOWN:
            agree(got[what], wanted, f"{name}.{what}")


@pytest.mark.parametrize("p", sorted({pair.partition(",")[0] for pair in REFERENCE["kl"]}))
def test_divergences_agree_with_torch(p: str) -> None:
    pairs = [pair for pair in REFERENCE["kl"] if pair.startswith(f"{p},")]
    assert len(pairs) > 30
    for pair in pairs:
        agree(ours()["kl"][pair], REFERENCE["kl"][pair], pair)


@pytest.mark.parametrize("expression", REFERENCE["transforms"])
def test_transforms_agree_with_torch(expression: str) -> None:
    got = ours()["transforms"][expression]
    for what, wanted in REFERENCE["transforms"][expression].items():
        if not (what == "codomain" and expression in CODOMAINS):
            agree(got[what], wanted, f"{expression} {what}")


@pytest.mark.parametrize("expression", REFERENCE["errors"])
def test_wrong_arguments_raise_torchs_errors(expression: str) -> None:
    got, wanted = ours()["errors"][expression], REFERENCE["errors"][expression]
    assert got["error"] == wanted["error"], got
    if wanted["text"]:  # torch's NotImplementedErrors are empty; ours name the missing function
        assert " ".join(got["text"].split()) == " ".join(wanted["text"].split())


def test_every_known_difference_occurs() -> None:
    for section, name, what in KNOWN:
        with pytest.raises(AssertionError):
            agree(ours()[section][name][what], REFERENCE[section][name][what], name)
