"""In-place ops and `out=` refuse a target that lies over part of an input, as torch does; eager and compiled."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import eager as torch

PARTLY = "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location"
ITSELF = "unsupported operation: more than one element of the written-to tensor refers to a single memory location"


def line() -> Any:
    return torch.arange(4.0)


def positions(n: int) -> Any:
    return torch.arange(n)


REFUSED: dict[str, Callable[[Any], Any]] = {
    **{name: lambda x, name=name: getattr(x[1:], name)(x[:-1]) for name in
       "add_ sub_ mul_ div_ copy_ fmod_ atan2_ eq_ logical_and_ pow_ hypot_".split()},
    "+=": lambda x: x[1:].__iadd__(x[:-1]),
    "part": lambda x: x.add_(x[:1]),
    "element": lambda x: x.div_(x[0]),
    "bound": lambda x: x.clamp_(max=x[0]),
    "addcmul_": lambda x: x[1:].addcmul_(x[:-1], x[1:]),
    "lerp_": lambda x: x[1:].lerp_(x[:-1], 0.5),
    "data": lambda x: x.data[1:].add_(x[:-1]),
    "foreach": lambda x: torch._foreach_add_([x[1:]], [x[:-1]]),
    "setitem": lambda x: x.__setitem__(slice(1, None), x[:-1]),
    "index_add_": lambda x: x.index_add_(0, positions(4), x),
    "index_copy_": lambda x: x[1:].index_copy_(0, positions(3), x[:-1]),
    "index_put_": lambda x: x.index_put_((positions(4),), x),
    "scatter_": lambda x: x.scatter_(0, positions(4), x),
    "out": lambda x: torch.add(x[1:], 1, out=x[:-1]),
    "cumsum out": lambda x: torch.cumsum(x[1:], 0, out=x[:-1]),
    "cat out": lambda x: torch.cat([x[:2], x[2:]], out=x),
}  # fmt: skip
ALLOWED: dict[str, Callable[[Any], Any]] = {
    "itself": lambda x: x.add_(x),
    "the same elements": lambda x: x.add_(x.view(4)),
    "apart": lambda x: x[:2].add_(x[2:]),
    "with gaps": lambda x: x[::2].add_(x[1:3]),
    "a copy": lambda x: x[1:].add_(x[:-1].clone()),
    "a sum": lambda x: x.div_(x.max()),
    "fill_": lambda x: x.fill_(x[1]),
    "masked_fill_": lambda x: x.masked_fill_(x > 1, x[1]),
    "setitem of apart": lambda x: x.__setitem__(0, x[1]),
    "out of itself": lambda x: torch.exp(x, out=x),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_target_over_part_of_an_input_is_refused(name: str) -> None:
    x = line()
    with pytest.raises(RuntimeError, match=PARTLY):
        REFUSED[name](x)
    assert x.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("name", ALLOWED)
def test_other_writes_are_not(name: str) -> None:
    ALLOWED[name](line())


@pytest.mark.parametrize("size", [4, 100_000])
def test_sizes_of_all_kernels(size: int) -> None:
    x = torch.ones(size)
    for write in (lambda: x[1:].add_(x[:-1]), lambda: x.mul_(x[3]), lambda: x[1:].copy_(x[:-1]), lambda: x[1:].clamp_(min=x[:-1])):
        with pytest.raises(RuntimeError, match=PARTLY):
            write()


def test_expanded_targets() -> None:
    for write in (lambda x: x.add_(1), lambda x: x.copy_(torch.ones(3)), lambda x: x.__setitem__(slice(None), 1)):
        with pytest.raises(RuntimeError, match=ITSELF):
            write(torch.ones(1).expand(3))
    assert torch.ones(1).expand(3).fill_(2).tolist() == [2, 2, 2]


@pytest.mark.parametrize("name", ["add_", "setitem", "index_add_", "element", "lerp_"])
def test_compiled(name: str) -> None:
    write = REFUSED[name]

    @torch.compile(backend="aot_eager")
    def step(x: Any) -> Any:
        x = x * 1
        write(x)
        return x

    with pytest.raises(RuntimeError, match=PARTLY):
        step(line())
