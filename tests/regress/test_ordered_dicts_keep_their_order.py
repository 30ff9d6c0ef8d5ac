"""OrderedDicts that captured code makes or changes: they keep a list of their keys beside the table."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest

import eager as torch


def made(x: torch.Tensor) -> Any:
    found = OrderedDict()
    found["out"] = x * 2
    found["in"] = x
    return found


def made_of_pairs(x: torch.Tensor) -> Any:
    return OrderedDict([(k, v) for k, v in zip("ab", (x, x + 1), strict=True)])


def kept_over_a_break(x: torch.Tensor) -> Any:
    found = OrderedDict(a=x)
    torch._dynamo.graph_break()
    found["b"] = x * 2
    found.move_to_end("a")
    return found


@pytest.mark.parametrize("fn", [made, made_of_pairs, kept_over_a_break])
def test_ordered_dicts_list_their_keys(fn: Callable[[torch.Tensor], Any]) -> None:
    x = torch.ones(2)
    expected, found = fn(x), torch.compile(fn, backend="eager")(x)
    assert type(found) is OrderedDict
    assert list(found) == list(expected) == [k for k, _ in found.items()]
    assert list(reversed(found)) == list(reversed(expected))
    assert all(torch.equal(found[k], expected[k]) for k in expected)


def test_ordered_dicts_from_outside_are_written_whole() -> None:
    def fn(x: torch.Tensor, d: OrderedDict[str, torch.Tensor]) -> None:
        d["first"] = x
        d["new"] = x * 2
        d.move_to_end("first")

    ours: OrderedDict[str, torch.Tensor] = OrderedDict(first=torch.zeros(1), last=torch.zeros(1))
    torch.compile(fn, backend="eager")(torch.ones(2), ours)
    assert list(ours) == ["last", "new", "first"]
    assert torch.equal(ours["first"], torch.ones(2))
