"""The demo's GPT: its first training steps against torch's, and eager against compiled."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import eager as torch
from benchmarks.demo import gpt, text

REFERENCE = json.loads((Path(__file__).parents[1] / "data" / "gpt_reference.json").read_text())
STEPS = 8
SMALL = gpt.Config(layers=2, width=32, heads=2, context=32, batch=4, steps=60, warmup_steps=5, peak_lr=5e-3)


@pytest.mark.skipif(
    len(text.as_bytes()) != REFERENCE["text_bytes"],
    reason="the reference was made on another Python's documentation",
)
def test_training_follows_torch() -> None:
    """Equal weights, text and schedule give equal losses for the steps before rounding errors have grown."""
    trainer = gpt.Trainer(gpt.Config(), text.as_bytes(), REFERENCE["seed"])
    losses = [trainer.step() for _ in range(STEPS)]
    np.testing.assert_allclose(losses, REFERENCE["losses"][:STEPS], rtol=2e-4)


def test_compiled_training_follows_eager_and_learns() -> None:
    tokens = text.as_bytes()
    plain = gpt.Trainer(SMALL, tokens, seed=3)
    compiled = gpt.Trainer(SMALL, tokens, seed=3, compile=torch.compile)
    for _ in range(SMALL.steps):
        plain.step()
        compiled.step()
    np.testing.assert_allclose(compiled.losses[:15], plain.losses[:15], atol=1e-3)
    assert abs(np.mean(compiled.losses[-10:]) - np.mean(plain.losses[-10:])) < 0.05
    assert np.mean(compiled.losses[-10:]) < 3.6 < plain.losses[0]
    named = zip(plain.model.named_parameters(), compiled.model.named_parameters(), strict=True)
    for (name, _), (_, theirs) in named:
        assert theirs.grad is not None, name
