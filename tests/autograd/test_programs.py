"""Random programs of views, writes and no_grad blocks have the results that torch gave them.

The file stores torch's results, so that the tests need no torch.
"""
from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import eager
from tests.data.make_autograd_programs import FILE, run

REFERENCE = json.loads(FILE.read_text())


def _close(actual: Any, expected: Any) -> None:
    assert len(actual) == len(expected)
    for a, b in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("seed", range(len(REFERENCE)))
def test_a_program_gives_what_torch_gives(seed: int) -> None:
    expected, actual = REFERENCE[seed], run(eager, seed)
    for key in ("steps", "unreadable", "flags", "error"):
        assert actual.get(key) == expected.get(key), f"{key} after {expected['steps']}"
    for key in ("values", "first", "second"):
        assert (key in actual) == (key in expected)
        if key in expected:
            _close(actual[key], expected[key])
