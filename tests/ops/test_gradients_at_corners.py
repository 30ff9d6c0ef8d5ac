"""Gradients where a formula divides by zero, ties, meets a kink or a nan: what torch 2.13 gives there."""
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
    "digamma": "at its poles torch's sine of a multiple of pi is rounded, and its gradient a large number; ours is infinite",
    "i1": "torch's gradient at nan is 0.5; ours is nan", "i1e": "torch's gradient at nan is 0.5; ours is nan",
    "log_ndtr": "torch's gradient at -inf is nan; ours is its limit, inf",
    "prod": "torch divides the product by each element; ours multiplies the others, which is exact beside infinities",
    "prod(0)": "as prod", "amax": "torch spreads a nan over all elements; ours goes to those that are nan, as that of max",
    "amin": "as amax", "amax(0)": "as amax", "aminmax": "as amax", "norm(0)": "torch's result has no gradient; ours has one of zeros",
    "kthvalue": "which of equal elements is taken is not defined", "mode": "which of several nan is taken is not defined",
    "quantile": "torch's gradient of a nan result goes to one element; ours is zero", "renorm": "torch takes a nan norm for a small one",
}  # fmt: skip


@cache
def stored() -> Any:
    return json.loads(gzip.decompress(STORED.read_bytes()))


def differences(group: str, name: str, found: list[list[list[float]]]) -> list[Any]:
    """Where gradients are not torch's: arguments, ours, torch's."""
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
def test_gradients_are_torchs(group: str) -> None:
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
def test_compiled_gradients_are_torchs(group: str) -> None:
    """Many cases in one graph: what one kernel holds beside an op may not change its gradient."""
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
        ours = [[0.0] * len(t) if not o and t and not any(t) else o for o, t in zip(ours, theirs, strict=True)]  # none is zero
        if wrong := differences(group, name, [ours]):
            bad[name] = wrong[:5]
    assert not bad


def test_compiled_rows_are_eager() -> None:
    """Reductions and scans of rows with ties, infinities and nan: values and gradients, all in one graph."""
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
