"""Captured programs give what eager gives: results, effects in order, aliasing, errors; also with breaks forced."""

from __future__ import annotations

import pytest

from tests.dynamo import support
from tests.dynamo.programs import classes, containers, exceptions, flow, functions, objects, runtime

TABLES = (flow, functions, containers, exceptions, objects, classes, runtime)
PROGRAMS = [pytest.param(p, id=f"{t.__name__.rpartition('.')[2]}-{p.name}") for t in TABLES for p in t.PROGRAMS]


@pytest.mark.parametrize("force", ["none", "call", "leaf"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_captured_program_agrees_with_eager(program: support.Program, force: str) -> None:
    support.check(program, force)
