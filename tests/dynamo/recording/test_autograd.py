"""Gradients through compiled functions agree with eager: values, None where eager has None, aliasing, errors."""

from __future__ import annotations

import pytest

import eager as torch
from tests.dynamo.recording.autograd import (
    functions,
    hooks,
    idioms,
    inside,
    modules,
    regions,
    second_order,
    support,
    surroundings,
    transforms,
)

FAMILIES = (second_order, functions, idioms, regions, hooks, inside, transforms, surroundings, modules)
CASES = [
    pytest.param(p, backend, id=f"{family.__name__.rpartition('.')[2]}-{p.name}-{backend}")
    for family in FAMILIES
    for p in family.PROGRAMS
    for backend in p.backends
]


@pytest.mark.parametrize(("program", "backend"), CASES)
def test_a_compiled_program_sees_the_gradients_of_eager(program: support.Program, backend: str) -> None:
    support.check(program, backend)


def test_a_region_that_writes_to_a_large_input_names_its_limit() -> None:
    large = torch.zeros(1 << 17)

    def f(x):
        large.add_(1)
        h = x * large[0]
        return h, h.exp()

    x = support.leaf(3)
    h, z = torch.compile(f)(x)
    z.sum().backward(retain_graph=True)
    h.register_hook(lambda g: g * 2)
    with pytest.raises(RuntimeError, match="cannot be run again: it writes to large inputs"):
        z.sum().backward()
    h.sum().backward()  # nothing comes through another result
    assert x.grad is not None
