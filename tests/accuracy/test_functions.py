"""Values of elementary and special functions against exact ones, and their zeros, infinities and nan against torch's."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import eager as torch
from tests.accuracy.function_table import BINARY, FUNCTIONS, UNARY
from tests.accuracy.functions import FLOOR, classes, reference, representable, ulp_errors, values
from tests.accuracy.table import ALLOWED, stored_figures

# Where a result's class is not torch's, each with its reason.
DIFFERENT = {
    "modified_bessel_k1": "torch returns nan where the result is subnormal",
    "scaled_modified_bessel_k1": "torch returns nan where x is subnormal",
    "polygamma(1)": "torch rounds the sine of a multiple of pi: its poles below -1 are large numbers, ours are infinite",
    "gelu": "at inf torch returns nan in float32 and bfloat16, inf in float64; ours returns inf in every dtype",
    "pow(0.5)": "torch computes a square root in every dtype except float16; ours in every dtype", "pow(-0.5)": "as pow(0.5)",
    "legendre_polynomial_p": "torch returns 0 for nan in some degrees",
    "laguerre_polynomial_l": "torch returns 0 for nan in some degrees",
    "fmax": "of 0 and -0 torch returns the first, in bfloat16 the second; ours returns the first", "fmin": "as fmax",
    "copysign": "the sign of a bfloat16 nan", "logaddexp2": "the sign of a zero that is a rounding",
}  # fmt: skip


def exact_classes(name: str, dtype: str, keep: np.ndarray) -> np.ndarray:
    """Classes of the exact values after rounding to the dtype; 255 if the exact value is not finite or not stored."""
    if name not in reference():
        return np.full(int(keep.sum()), 255, np.uint8)
    with np.errstate(all="ignore"):
        exact = reference()[name][keep]
        return np.where(np.isfinite(exact), classes(exact.astype(dtype.replace("bfloat16", "float32")).astype(np.float64)), 255)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_zeros_infinities_and_nan_are_torchs(dtype: str) -> None:
    bad = {}
    for name, f in FUNCTIONS.items():
        keep = representable(f, dtype)
        got, theirs = values(torch, f, dtype, "eager", keep), reference()[f"{name}:{dtype}"]
        if got is None and theirs.size:
            bad[name] = [f"no {dtype}"]
        if got is None or name in DIFFERENT or not theirs.size:
            continue
        mine, exact = classes(got), exact_classes(name, dtype, keep)
        right = (mine == theirs) | ((mine == exact) & ((mine < 2) | (mine > 3) | (theirs < 2) | (theirs > 3)))
        if not right.all():
            bad[name] = [(*(x[keep][i] for x in f.inputs), got[i], int(theirs[i])) for i in np.nonzero(~right)[0][:4]]
    assert not bad


def assert_accurate(name: str, dtype: str, got: np.ndarray, keep: np.ndarray) -> str:
    limit = stored_figures()["functions"]
    errors = ulp_errors(got, reference()[name][keep], dtype, FUNCTIONS[name], keep)
    worst, allowed = float(errors.max()), max(FLOOR, ALLOWED * limit[f"{name} | {dtype} | max"])
    return "" if worst <= allowed else f"{name} {dtype}: {worst:.3g} ulp, allowed {allowed:.3g}"


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_errors_are_at_most_twice_torchs(dtype: str) -> None:
    bad = []
    for name, f in FUNCTIONS.items():
        keep = representable(f, dtype)
        got = values(torch, f, dtype, "eager", keep) if name in reference() and reference()[f"{name}:{dtype}"].size else None
        if got is not None:
            bad.append(assert_accurate(name, dtype, got, keep))
    assert not [b for b in bad if b]


COMPILED = "exp exp2 expm1 log log2 log10 log1p sin tan asin atan sinh tanh acosh erf erfc erfinv lgamma digamma sigmoid gelu mish".split()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_compiled_errors_are_at_most_twice_torchs(dtype: str) -> None:
    """One graph computes all the functions. Compiled code evaluates most of them by different formulas than eager kernels."""
    kept = [representable(FUNCTIONS[n], dtype) for n in COMPILED]
    points = [FUNCTIONS[n].inputs[0][k].tolist() for n, k in zip(COMPILED, kept, strict=True)]
    given = [torch.tensor(x, dtype=torch.float64).to(getattr(torch, dtype)) for x in points]

    @torch.compile
    def run(xs: Any) -> Any:
        return [FUNCTIONS[n].call(torch, x) for n, x in zip(COMPILED, xs, strict=True)]

    results = [y.to(torch.float64).numpy() for y in run(given)]
    bad = [assert_accurate(n, dtype, got, k) for n, got, k in zip(COMPILED, results, kept, strict=True)]
    assert not [b for b in bad if b]


def test_erf_is_monotone_and_at_most_one() -> None:
    x = torch.linspace(0.0, 6.0, 200_001)
    y = torch.erf(x)
    assert bool((y[1:] >= y[:-1]).all()) and float(y.max()) == 1.0
    assert torch.nn.functional.gelu(torch.tensor([-1e10, -20.0])).tolist() == [0.0, 0.0]
    assert bool(torch.log(1 - y).isnan().logical_not().all())


def test_every_function_has_points_of_every_class() -> None:
    for f in (*UNARY, *BINARY):
        assert any(np.isnan(x).any() and np.isinf(x).any() and (x == 0).any() for x in f.inputs), f.name
