"""Gradients at points where a formula divides by zero, ties, has a kink or reads a nan, against torch 2.13's gradients."""
from __future__ import annotations

import gzip
import json
import math
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import eager as torch
from tests.ops.corners import COMPILED, GROUPS, gradients, inputs

STORED = Path(__file__).parent.parent / "data" / "corner_gradients.json.gz"
# Where ours differ, each with its reason.
DIFFERENT = {
    "digamma": "torch rounds the sine of a multiple of pi, so that its gradient at a pole is a large number; ours is infinite",
    "i1": "torch's gradient at nan is 0.5; ours is nan", "i1e": "torch's gradient at nan is 0.5; ours is nan",
    "log_ndtr": "torch's gradient at -inf is nan; ours is the limit, inf",
    "prod": "torch divides the product by each element; ours multiplies the other elements, which is exact beside infinities",
    "prod(0)": "as prod", "amax": "torch's gradient is nan for all elements; ours reaches only the elements that are nan, as for max",
    "amin": "as amax", "amax(0)": "as amax", "aminmax": "as amax",
    "norm(0)": "torch's result has no gradient; ours has a gradient of zeros",
    "kthvalue": "the choice among equal elements is undefined", "mode": "the choice among several nan is undefined",
    "quantile": "torch's gradient of a nan result reaches one element; ours is zero", "renorm": "torch treats a nan norm as a small norm",
}  # fmt: skip


@cache
def stored() -> Any:
    return json.loads(gzip.decompress(STORED.read_bytes()))


def differences(group: str, name: str, found: list[list[list[float]]]) -> list[Any]:
    """The gradients that differ: (number of the argument, arguments, our gradient, torch's gradient)."""
    bad = []
    for columns, ours, theirs in zip(inputs(group), found, stored()[group][name], strict=True):
        for number, (mine, expected) in enumerate(zip(ours, theirs, strict=True)):
            if len(mine) != len(expected):
                bad.append((number, mine, expected))
                continue
            bad += [(number, tuple(c[i] for c in columns), a, b) for i, (a, b) in enumerate(zip(mine, expected, strict=True))
                    if a != pytest.approx(b, rel=1e-6, abs=0, nan_ok=True)]  # fmt: skip
    return bad


@pytest.mark.parametrize("group", GROUPS)
def test_gradients_at_corners_equal_torchs(group: str) -> None:
    bad = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a standard deviation of one element
        for name, case in GROUPS[group].items():
            wrong = differences(group, name, [gradients(torch, case, columns) for columns in inputs(group)])
            if wrong and name not in DIFFERENT:
                bad[name] = wrong[:5]
            if not wrong and name in DIFFERENT:
                bad[name] = "no longer different"  # type: ignore[assignment]
    assert not bad


@pytest.mark.parametrize("group", ["unary", "binary"])
def test_compiled_gradients_at_corners_equal_torchs(group: str) -> None:
    """All cases run in one graph: other ops in the same kernel must not change the gradient of an op."""
    names = COMPILED[group]
    (columns,) = inputs(group)
    leaves = [[torch.tensor(c, dtype=torch.float64, requires_grad=True) for c in columns] for _ in names]

    def forward(leaves: Any) -> Any:
        return [GROUPS[group][name](torch, *args) for name, args in zip(names, leaves, strict=True)]

    results = torch.compile(forward)(leaves)
    bad = {}
    for name, args, y in zip(names, leaves, results, strict=True):
        found: Any = [None] * len(args)
        if y.requires_grad:
            found = torch.autograd.grad(y, args, torch.ones_like(y), allow_unused=True, retain_graph=True)
        ours = [[] if g is None else g.tolist() for g in found]
        theirs = stored()[group][name][0]
        ours = [[0.0] * len(t) if not o and t and not any(t) else o for o, t in zip(ours, theirs, strict=True)]  # None counts as zeros
        if wrong := differences(group, name, [ours]):
            bad[name] = wrong[:5]
    assert not bad


def test_compiled_reductions_equal_eager_at_corners() -> None:
    """One graph computes all reductions and scans of rows with ties, infinities and nan. Values and gradients are compared."""
    names = list(GROUPS["row"])

    def forward(leaves: Any) -> Any:
        return [GROUPS["row"][name](torch, x) for name, x in zip(names, leaves, strict=True)]

    def run(fn: Any, row: Any) -> list[Any]:
        leaves = [torch.tensor(row, dtype=torch.float64, requires_grad=True) for _ in names]
        found: list[Any] = []
        for x, y in zip(leaves, fn(leaves), strict=True):
            grad = torch.autograd.grad(y, x, torch.ones_like(y), allow_unused=True, retain_graph=True)[0] if y.requires_grad else None
            found += [y.detach().flatten().tolist(), torch.zeros(3).tolist() if grad is None else grad.tolist()]
        return found

    compiled, bad = torch.compile(forward), {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a standard deviation of one element
        for (row,) in inputs("row"):
            for k, (found, expected) in enumerate(zip(run(compiled, row), run(forward, row), strict=True)):
                if found != pytest.approx(expected, rel=1e-6, abs=1e-12, nan_ok=True):
                    bad[names[k // 2], row] = found, expected
    assert not bad


@pytest.mark.parametrize("name", ["relu6", "elu", "hardswish", "hardsigmoid", "softshrink"])
def test_halves_have_the_same_corners(name: str) -> None:
    points = [math.nan, 3.0, -3.0, 0.0, 6.0, 0.5, -0.5]
    expected, found = (torch.tensor(points, dtype=d, requires_grad=True) for d in (torch.float32, torch.float16))
    for x in (expected, found):
        getattr(torch.nn.functional, name)(x).backward(torch.ones_like(x))
    assert found.grad.tolist() == pytest.approx(expected.grad.tolist(), rel=1e-3, nan_ok=True)
