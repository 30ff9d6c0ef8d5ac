"""Public functions in half precision, forward and backward: an error at most one rounding above torch's (stored)."""
from __future__ import annotations

import gzip
import json
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eager as torch
from eager import nn  # noqa: F401 - calls reach it as `T.nn`
from tests.data import calls, derivative_calls
from tests.data.derivative_calls import half_errors

F = nn.functional
STORED = Path(derivative_calls.__file__).parent / "derivatives.json.gz"
# Parts of the text of calls that fail or whose errors are larger, each with its reason.
KNOWN = {
    ".logical_": "an in-place form on a leaf that requires grad, which torch accepts", "T.complex(": "float16 is not supported",
}  # fmt: skip


@cache
def stored() -> Any:
    return json.loads(gzip.decompress(STORED.read_bytes()))["halves"]


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _difference(text: str, code: str, theirs: list[float | None]) -> str | None:
    ours = half_errors(torch, text, code)
    if ours is None or len(ours) != len(theirs):
        return f"{text} {code}: fails"
    worse = [(i, a, b) for i, (a, b) in enumerate(zip(ours, theirs, strict=True))
             if a is not None and b is not None and a > max(b, 0.5) + 1.05]  # fmt: skip
    return f"{text} {code}: result, error, torch's error: {worse}" if worse else None


def test_errors_are_within_one_rounding_of_torch() -> None:
    met, bad = set(), []
    for text, by_code in stored().items():
        known = next((part for part in KNOWN if part in text), None)
        for code, theirs in by_code.items():
            found = _difference(text, code, theirs)
            if found and known:
                met.add(known)
            elif found:
                bad.append(found)
    assert not bad, "\n".join(bad)
    assert met == set(KNOWN), f"no longer different: {set(KNOWN) - met}"


def _compositions(x: Any, y: Any, z: Any, i: Any) -> list[Any]:
    """Results of functions that decompose into several ops. x, y, z: (6, 8), floating; i: (6,), indices below 8."""
    sign = (i > 3) * 2 - 1
    return [
        F.cosine_similarity(x, y), F.cosine_embedding_loss(x, y, sign), F.pairwise_distance(x, y), F.triplet_margin_loss(x, y, z),
        F.normalize(x), torch.cdist(x, y), torch.renorm(x, 2, 0, 1.0), torch.std_mean(x, 0)[0], torch.addr(x, y[:, 0], z[0]), F.glu(x),
        F.kl_div(x, y), F.mse_loss(x, y), F.linear_cross_entropy(x, y, i % 6), F.softmax(x, 1), F.prelu(x, y[0]), torch.logsumexp(x, 0),
        F.batch_norm(x, y[0], z[0].square(), z[1], y[1]), torch.ldexp(x, y), torch.baddbmm(x[None], y[None, :, :6], z[None]),
    ]  # fmt: skip


@pytest.mark.parametrize(("backend", "code"), [("eager", "f2"), ("eager", "bf"), ("aot_eager", "bf"), ("inductor", "f2")])
def test_compositions_round_once(backend: str, code: str) -> None:
    """The error is at most three roundings of the half type: the gradient, the result, and the result that a formula reads."""
    dtype = {"f2": torch.float16, "bf": torch.bfloat16}[code]
    i = torch.tensor([1, 7, 0, 3, 4, 2])

    def run(wide: bool) -> list[tuple[Any, ...]]:
        given = [torch.from_numpy(calls._values("f8", (6, 8), seed)).to(dtype) for seed in (1.0, 1.3, 1.6)]
        leaves = [(x.double() if wide else x).requires_grad_() for x in given]
        fn = torch.compile(_compositions, backend=backend, fullgraph=True) if backend != "eager" and not wide else _compositions
        found = []
        for y in fn(*leaves, i):
            weights = derivative_calls.weights(torch, y)
            found.append((y, *torch.autograd.grad(y, leaves, weights, allow_unused=True, retain_graph=True)))
        return found

    bad = []
    for number, (ours, exact) in enumerate(zip(run(False), run(True), strict=True)):
        for k, (a, b) in enumerate(zip(ours, exact, strict=True)):
            assert (a is None) == (b is None)
            error = derivative_calls.error(*(None if t is None else t.detach().double().numpy() for t in (a, b)), code)
            if error is not None and error > 3:
                bad.append((number, k, error))
    assert not bad


@pytest.mark.parametrize("masking", ["none", "causal", "added"])
@pytest.mark.parametrize("code", ["f2", "bf"])
def test_gradients_of_attention_round_once(code: str, masking: str) -> None:
    dtype = {"f2": torch.float16, "bf": torch.bfloat16}[code]
    rng = np.random.default_rng(3)
    q, k, v, g = (torch.from_numpy(rng.standard_normal((2, 2, 16, 32))).to(dtype) for _ in range(4))
    mask = torch.from_numpy(rng.standard_normal((16, 16))).to(dtype) if masking == "added" else None
    found = []
    for wide in (False, True):
        leaves = [(x.double() if wide else x).requires_grad_() for x in (q, k, v)]
        added = mask.double() if wide and mask is not None else mask
        y = torch.nn.functional.scaled_dot_product_attention(*leaves, attn_mask=added, is_causal=masking == "causal")
        found.append(torch.autograd.grad(y, leaves, g.to(y.dtype)))
    rounding = 2.0**-11 if code == "f2" else 2.0**-8
    for ours, exact in zip(*found, strict=True):
        relative = (ours.double() - exact).abs() / (exact.abs() + 1e-2 * exact.abs().max())
        assert relative.max().item() < 1.5 * rounding
