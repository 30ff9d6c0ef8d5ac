"""Behaviour of modules, line by line, against torch's stored outcomes (tests/data/make_behaviours.py)."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import eager

from . import behaviours

REFERENCE: dict[str, Any] = json.loads((Path(__file__).parents[1] / "data" / "nn_behaviours.json").read_text())
# Lines whose text differs (the class of error is the same), and lines that differ altogether, with the reason.
OTHER_TEXT = {
    "m.get_extra_state()", "m.set_extra_state(1)",  # without the address of torch's issue tracker
    "nn.Parameter(3)",  # our text adds the allowed types
    "nn.Conv2d(3, 4, 3, padding='x')",  # a set, in any order
    "fa.flex_attention(x[:, :, :3], x, x, block_mask=bm)", "fa.flex_attention(x, x[:, :1], x[:, :1])",
}  # fmt: skip
OTHER: dict[str, str] = {}


def alike(got: Any, want: Any) -> bool:
    """Whether the outcomes are equal. Numbers are equal within the four stored digits."""
    if isinstance(got, list) and isinstance(want, list):
        return len(got) == len(want) and all(map(alike, got, want))
    if isinstance(got, float) and isinstance(want, float):
        return abs(got - want) <= 2e-4 * max(1.0, abs(want)) or (got != got and want != want)
    return bool(got == want)


@pytest.mark.parametrize("group", list(behaviours.GROUPS))
def test_behaves_as_torch(group: str) -> None:
    eager.manual_seed(0)
    got = json.loads(json.dumps(behaviours.outcomes(eager, group)).replace("eager.", "torch."))
    assert [g[0] for g in got] == [w[0] for w in REFERENCE[group]]
    wrong = []
    for g, w in zip(got, REFERENCE[group], strict=True):
        line, result, warned = g
        if line in OTHER:
            continue
        want = w[1]
        if line in OTHER_TEXT and isinstance(result, dict):
            same = isinstance(want, dict) and result["error"] == want["error"]
        else:
            same = alike(result, want)
        if not same or warned != w[2]:
            wrong.append(f"{line}\n    torch: {want} {w[2]}\n    here:  {result} {warned}")
    assert not wrong, "\n".join(wrong)
