"""A stored exception keeps the frames of its traceback and, by f_back, their callers: objects in the variables of these
frames live exactly as long as in plain Python."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import dynamo

LOG: list[Any] = []


def guarded() -> Iterator[int]:
    try:
        yield 1
    finally:
        LOG.append("closed")


def begun() -> Iterator[int]:
    held = guarded()
    next(held)
    return held


def keeps_own_error(n=1):
    try:
        return n / LOG
    except TypeError as e:
        LOG.append(e)


def keeps():
    try:
        raise ValueError(3)
    except ValueError as e:
        LOG.append(e)


def gives():
    try:
        raise ValueError(3)
    except ValueError as e:
        return e


def caller():
    held = begun()
    keeps()
    LOG.append(type(held))


def error_of_an_operator():
    held = begun()
    keeps_own_error()
    return type(held)


def error_of_a_statement():
    held = begun()
    keeps()
    return type(held)


def continues_after_a_break():
    held = begun()
    keeps()
    print(end="")
    LOG.append(type(held))


def caller_has_returned():
    caller()
    LOG.append(5)


def caller_has_returned_before_a_break():
    caller()
    print(end="")
    LOG.append(5)


def the_caller_has_the_error():  # a cycle, which the collector finds
    held = begun()
    err = gives()
    LOG.append(type(held))
    return type(err)


def variable_is_emptied():
    held = begun()
    keeps()
    LOG.append(8)
    held = None
    LOG.append(held)


def variable_is_emptied_after_a_break():
    held = begun()
    keeps()
    LOG.append(8)
    print(end="")
    held = None
    LOG.append(held)


def in_a_loop():
    held = begun()
    for i in range(2):
        keeps()
        print(end="")
        held = None if i else held
        LOG.append(i)


PROGRAMS = (error_of_an_operator, error_of_a_statement, continues_after_a_break, caller_has_returned,
            caller_has_returned_before_a_break, the_caller_has_the_error, variable_is_emptied,
            variable_is_emptied_after_a_break, in_a_loop)  # fmt: skip


def logged(fn: Callable[[], Any]) -> list[list[str]]:
    """The entries of the log after the call, after its exceptions are dropped, and after a collection of garbage."""
    seen = []
    LOG.clear()
    fn()
    for step in (lambda: None, LOG.clear, gc.collect):
        step()
        seen.append([*map(repr, LOG)])
    return seen


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_a_kept_exception_keeps_the_variables_of_its_frames_and_callers(program: Callable[[], Any]) -> None:
    gc.collect()
    gc.disable()
    try:
        expected = logged(program)
        assert any("'closed'" in step for step in expected)
        compiled = dynamo.compile(program, backend="eager")
        assert [logged(compiled) for _ in range(2)] == [expected, expected]
    finally:
        gc.enable()
