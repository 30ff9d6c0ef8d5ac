"""The pretrained encoder against sentence-transformers (values by tests/data/make_models_reference.py)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import eager as torch
from benchmarks.demo import minilm

REFERENCE = json.loads((Path(__file__).parents[1] / "data" / "minilm_reference.json").read_text())
EXPECTED = np.array(REFERENCE["embeddings"], dtype=np.float64)
TOLERANCE = 1e-5

pytestmark = pytest.mark.skipif(minilm.missing() is not None, reason=f"MiniLM's weights: {minilm.missing()}")


@pytest.fixture(scope="module")
def model() -> minilm.MiniLM:
    return minilm.load()


def _embed(call: object, length: int = 64) -> np.ndarray:
    ids, mask = minilm.Tokenizer(length)(REFERENCE["sentences"])
    with torch.no_grad():
        y = call(torch.from_numpy(ids), torch.from_numpy(mask))  # type: ignore[operator]
    assert y.dtype is torch.float32 and tuple(y.shape) == EXPECTED.shape
    return y.numpy().astype(np.float64)


def _assert_agrees(vectors: np.ndarray) -> None:
    norms = np.linalg.norm(vectors, axis=1) * np.linalg.norm(EXPECTED, axis=1)
    cosine = (vectors * EXPECTED).sum(axis=1) / norms
    np.testing.assert_array_less(1 - cosine, TOLERANCE)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_the_reference_embeddings_differ_between_sentences() -> None:
    cosines = EXPECTED @ EXPECTED.T
    assert EXPECTED.shape == (5, 384)
    assert tuple(REFERENCE["sentences"]) == minilm.SENTENCES  # the sentences that `benchmarks models` measures
    assert (cosines[~np.eye(5, dtype=bool)] < 0.9).all()


def test_eager_agrees_with_the_reference(model: minilm.MiniLM) -> None:
    _assert_agrees(_embed(model))


@pytest.mark.parametrize("mode", ["default", "reduce-overhead", "max-autotune"])
def test_compiled_agrees_with_the_reference(model: minilm.MiniLM, mode: str) -> None:
    compiled = torch.compile(model, mode=mode, fullgraph=True)
    first = _embed(compiled)
    _assert_agrees(first)
    np.testing.assert_array_equal(_embed(compiled), first)  # a warm call repeats itself
