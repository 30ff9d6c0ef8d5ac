"""Gradients through compiled functions are those of eager: values, None where eager has None, aliasing, errors."""

from __future__ import annotations

import pytest

from tests.dynamo.autograd import (
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
