"""Every layer, in many configurations, against torch's stored values (tests/data/make_layer_reference.py)."""
from __future__ import annotations

import json
import lzma
import pickle
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eager

from . import layer_cases

REFERENCE: dict[str, Any] = json.loads(lzma.decompress((Path(__file__).parents[1] / "data" / "layer_reference.json.xz").read_bytes()))
OTHER_GRADIENTS = {"CrossMapLRN2d(3, 0.1)": "torch's backward is not the derivative of its forward"}
# Compiled too: one or more of each family.
COMPILED = [name for i, name in enumerate(layer_cases.LAYERS) if i % 5 == 0 and layer_cases.LAYERS[name][1]
            and not any(r in name for r in layer_cases.RANDOM)]  # fmt: skip


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def close(got: list[float] | None, want: list[float] | None, what: str, tolerance: float) -> None:
    if got is None or want is None:
        assert not any(got or want or ()), what
        return
    np.testing.assert_allclose(np.array(got, float), np.array(want, float), rtol=tolerance, atol=tolerance, err_msg=what)


def test_every_layer_has_a_reference() -> None:
    assert set(REFERENCE) == set(layer_cases.LAYERS)


@pytest.mark.parametrize("name", list(layer_cases.LAYERS))
def test_agrees_with_torch(name: str) -> None:
    got, want = json.loads(json.dumps(layer_cases.run(eager, name))), REFERENCE[name]
    for key in ("text", "state", "attributes"):
        assert got[key] == want[key], key
    for mode in ("train", "eval"):
        assert (mode in got) == (mode in want)
        if mode not in got:
            continue
        for key in ("outputs", "buffers") if name in OTHER_GRADIENTS else ("outputs", "grads", "buffers"):
            assert len(got[mode][key]) == len(want[mode][key]), (mode, key)
            for i, (g, w) in enumerate(zip(got[mode][key], want[mode][key], strict=True)):
                if key == "outputs":
                    assert g[:2] == w[:2]
                    g, w = g[2], w[2]
                close(g, w, f"{mode} {key}[{i}]", 1e-5)


@pytest.mark.parametrize("name", [n for n in layer_cases.LAYERS if REFERENCE[n]["bfloat16"]])
def test_bfloat16_is_as_near_as_torchs(name: str) -> None:
    """The dtypes are torch's. The values differ by the rounding of at most a few bfloat16 steps."""
    got = layer_cases.run_low(eager, name)
    assert got is not None
    for (dtype, values), (their_dtype, theirs) in zip(got, REFERENCE[name]["bfloat16"], strict=True):
        assert dtype == their_dtype
        if not dtype.startswith("torch.int"):  # the place of a maximum may differ where rounding makes two equal
            close(values, theirs, "bfloat16", 0.04)


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_layer_gives_the_same(name: str) -> None:
    module, inputs = layer_cases.build(eager, name, eager.float32)
    module.eval()
    compiled = eager.compile(module)
    for _ in range(2):
        want, got = layer_cases._flat(eager, module(*inputs)), layer_cases._flat(eager, compiled(*inputs))
        for w, g in zip(want, got, strict=True):
            assert w.dtype is g.dtype and tuple(w.shape) == tuple(g.shape)
            close(layer_cases.numbers(g), layer_cases.numbers(w), name, 2e-5)


@pytest.mark.parametrize("name", [n for n in layer_cases.LAYERS if "Lazy" not in n][::7])
def test_copies_are_equal_and_apart(name: str) -> None:
    module, _ = layer_cases.build(eager, name, eager.float32)
    twin = pickle.loads(pickle.dumps(module))
    assert repr(twin) == repr(module) and vars(twin).keys() == vars(module).keys()
    for (k, a), (j, b) in zip(module.state_dict().items(), twin.state_dict().items(), strict=True):
        assert k == j and eager.equal(a, b) and a.data_ptr() != b.data_ptr()
