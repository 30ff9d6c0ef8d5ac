"""A write to a part of a view whose elements share places (`expand`, `unfold`): compiled, the parts not written won."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

import dynamo
import eager as torch

WRITES: dict[str, Callable[[Any], Any]] = {
    "a row": lambda x: x.expand(2, 3)[0].add_(1), "the last row": lambda x: x.expand(2, 3)[1].mul_(2),
    "some columns": lambda x: x.expand(2, 3)[0, 1:].fill_(7), "the diagonal": lambda x: x.expand(3, 3).diagonal().copy_(x.flip(0) + 1),
    "one window": lambda x: x.unfold(0, 2, 1)[0].add_(5), "turned": lambda x: x.expand(2, 3).t()[:, 0].neg_(),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("of_input", [True, False])
def test_written_values_reach_the_base(name: str, of_input: bool) -> None:
    def fn(x: Any) -> Any:
        y = x if of_input else x * 1
        WRITES[name](y)
        return y + 0

    given, expected = torch.arange(1.0, 4.0), torch.arange(1.0, 4.0)
    assert torch.equal(dynamo.compile(fn, backend="aot_eager")(given), fn(expected))
    assert torch.equal(given, expected)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_an_expanded_argument_is_filled(backend: str) -> None:
    def fn(x: Any) -> Any:
        x.fill_(3)
        return x * 2

    start = torch.ones(3)
    assert dynamo.compile(fn, backend=backend)(start.expand(2, 3)).tolist() == [[6.0] * 3] * 2 and start.tolist() == [3.0] * 3


@pytest.mark.parametrize("write", [
    lambda x: x[1:].fill_(3.0), lambda x: x[0].zero_(), lambda x: x.view(-1)[0].fill_(2.0), lambda x: x.squeeze()[-1:].zero_(),
    lambda x: x.diagonal().zero_(),
])  # fmt: skip
def test_a_write_to_a_part_of_an_expanded_input_shows_in_all_of_it(write: Any) -> None:
    """torch allows fills there, since each place gets one value."""

    def fn(x: Any) -> Any:
        y = x * 2
        write(x)
        return y, x + 1, x

    written = 0
    for shape, sizes in (((1, 3), (4, 3)), ((2, 1), (2, 4)), ((), (3, 3))):
        made = [torch.arange(float(max(1, math.prod(shape)))).reshape(shape).expand(sizes) for _ in range(2)]
        try:
            expected = fn(made[0])
        except RuntimeError:  # no such view
            continue
        written += 1
        for a, b in zip(expected, dynamo.compile(fn)(made[1]), strict=True):
            assert torch.equal(a, b)
    assert written
