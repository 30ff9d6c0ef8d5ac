"""Captured programs give what eager gives: results, effects in order, aliasing, errors; also with breaks forced."""

from __future__ import annotations

import pytest

import dynamo
from tests.dynamo import support
from tests.dynamo.programs import (
    arrays,
    classes,
    containers,
    exceptions,
    flow,
    functions,
    library,
    objects,
    runtime,
    surroundings,
)

TABLES = (flow, functions, containers, exceptions, objects, classes, runtime, surroundings, library, arrays)
PROGRAMS = [pytest.param(p, id=f"{t.__name__.rpartition('.')[2]}-{p.name}") for t in TABLES for p in t.PROGRAMS]


@pytest.mark.parametrize("mode", ["none", "call", "leaf", "traced"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_captured_program_agrees_with_eager(program: support.Program, mode: str) -> None:
    """none: only the necessary breaks.

    call, leaf: at every call, in every inlined callee. traced: settrace starts later.
    """
    support.check(program, "none" if mode == "traced" else mode, traced=mode == "traced")


@pytest.mark.parametrize("program", [pytest.param(p, id=p.name) for p in library.PROGRAMS])
def test_library_calls_of_models_are_captured_whole(program: support.Program) -> None:
    compiled = dynamo.compile(program.make(), backend="eager", fullgraph=True)
    for make_args in program.inputs:
        compiled([], *make_args())
