"""Second derivatives of public functions are absent, zero or not zero as in torch, whose outcomes are stored."""
from __future__ import annotations

import gzip
import json
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

import eager as torch
from eager import nn  # noqa: F401 - calls reach it as `T.nn`
from tests.data import derivative_calls
from tests.data.derivative_calls import second_derivatives

STORED = Path(derivative_calls.__file__).parent / "derivatives.json.gz"
# Names of functions that differ, each with its reason.
KNOWN = {
    **dict.fromkeys("eq_ ge_ greater_ greater_equal_ gt_ le_ less_ less_equal_ lt_ ne_ not_equal_ logical_and_ logical_or_ logical_xor_ "
                    "logical_not_".split(), "a comparison overwrites the operand: its gradient is zeros in torch, None in ours"),
    "slice_inverse": "not implemented",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _agrees(ours: str | None, theirs: str) -> bool:
    """Whether our pattern equals torch's. If torch raises an error, ours may have any value."""
    return ours is not None and len(ours) == len(theirs) and all(b in ("E", a) for a, b in zip(ours, theirs, strict=True))


def test_second_derivatives_exist_wherever_torch_has_them() -> None:
    met, bad = set(), []
    for text, theirs in json.loads(gzip.decompress(STORED.read_bytes()))["second"].items():
        ours = second_derivatives(torch, text)
        if _agrees(ours, theirs):
            continue
        known = next((name for name in KNOWN if f".{name}(" in text), None)
        if known:
            met.add(known)
        else:
            bad.append(f"{text}: {ours} against torch's {theirs}")
    assert not bad, "\n".join(bad)
    assert met == set(KNOWN), f"no longer different: {set(KNOWN) - met}"


def test_second_derivatives_of_piecewise_linear_functions_are_zero_in_compiled_code() -> None:
    functions = [nn.functional.relu6, nn.functional.hardshrink, nn.functional.softshrink, nn.functional.hardsigmoid,
                 lambda x: nn.functional.threshold(x, 0.1, 20.0), lambda x: nn.functional.prelu(x, x.new_ones(1))]  # fmt: skip
    x = torch.linspace(-4, 4, 9, requires_grad=True)

    def slopes(x: torch.Tensor) -> torch.Tensor:
        return torch.stack([torch.autograd.grad(f(x).sum(), x, create_graph=True)[0] for f in functions])

    (g,) = torch.autograd.grad(torch.compile(slopes)(x).square().sum(), x)
    assert not g.any()
