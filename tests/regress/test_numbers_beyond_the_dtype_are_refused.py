"""Numbers that a dtype does not hold are refused with torch's class, eager and compiled: none wraps or becomes an infinity."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import eager as torch
from eager.nn import functional as F  # noqa: N812 - torch's name

FILLS: dict[str, Callable[[Any, Any], Any]] = {
    "fill_": lambda x, v: x.fill_(v), "full": lambda x, v: torch.full((2,), v, dtype=x.dtype), "new_full": lambda x, v: x.new_full((2,), v),
    "full_like": torch.full_like, "masked_fill": lambda x, v: x.masked_fill(x == x, v), "scatter": lambda x, v: x.scatter(0, AT, v),
    "index_fill": lambda x, v: x.index_fill(0, AT, v), "where": lambda x, v: torch.where(x == x, v, x),
}  # fmt: skip
AT = torch.tensor([0])
INTS: dict[str, Callable[[Any, Any], Any]] = {
    "clamp": lambda x, v: x.clamp(max=v), "where": lambda x, v: torch.where(x > 1, x, v), "pow": lambda x, v: x**v,
    "alpha": lambda x, v: torch.add(x, x, alpha=v), "addcmul": lambda x, v: torch.addcmul(x, x, x, value=v),
    "addmv": lambda x, v: torch.addmv(x, x.expand(2, 2), x, beta=v), "threshold": lambda x, v: F.threshold(x, 1, v),
}  # fmt: skip
HALVES: dict[str, Callable[[Any], Any]] = {
    "clamp": lambda x: x.clamp(min=1e6), "alpha": lambda x: torch.add(x, x, alpha=1e6), "pow": lambda x: x**1e6,
    "lower clamp of float32": lambda x: x.float().clamp(-1e39), "of ints": lambda x: x.int().clamp(0.0, 1e39),
    "fill of complex64": lambda x: x.to(torch.complex64).fill_(complex(0, 1e39)),
    "item of complex64": lambda x: x.to(torch.complex64).__setitem__(0, 1e39),
}  # fmt: skip


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", FILLS)
def test_fill_values_past_64_bits(name: str, compiled: bool) -> None:
    for dtype in (torch.float64, torch.complex64, torch.int16):
        with pytest.raises(OverflowError):
            fn = FILLS[name]
            (torch.compile(lambda x, fn=fn: fn(x, 2**64)) if compiled else lambda x, fn=fn: fn(x, 2**64))(torch.ones(2, dtype=dtype))


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", INTS)
def test_ints_that_int64_does_not_hold(name: str, compiled: bool) -> None:
    def call(x: Any) -> Any:
        return INTS[name](x, 2**63 + 5)

    with pytest.raises(RuntimeError, match="without overflow"):
        (torch.compile(call) if compiled else call)(torch.tensor([1, 2]))


@pytest.mark.parametrize("name", HALVES)
def test_floats_beyond_the_range(name: str) -> None:
    with pytest.raises(RuntimeError, match="without overflow"):
        HALVES[name](torch.ones(2, dtype=torch.float16))


def test_item_assignment_reads_an_int64() -> None:
    x = torch.ones(3)
    for key in (0, slice(None), AT, x > 0):
        for value in (2**63, 2**64, -(2**63) - 1):
            with pytest.raises(ValueError, match="Overflow when unpacking long long"):
                x[key] = value


def test_numbers_in_range_are_accepted() -> None:
    assert torch.full((1,), 2**64 - 1, dtype=torch.uint64).tolist() == [2**64 - 1]
    assert torch.full((1,), float("inf"), dtype=torch.complex64).tolist() == [float("inf")]
    assert torch.tensor([1, 2]).clamp(max=2**63 - 1).tolist() == [1, 2]
    assert torch.where(torch.tensor([True]), 1e39, torch.ones(1).half()).tolist() == [float("inf")]
    fill = torch.compile(lambda x: x.fill_(2 + 0j))
    assert fill(torch.ones(2)).tolist() == [2.0, 2.0]
