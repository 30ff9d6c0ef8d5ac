"""Errors in captured code look like eager's: class, message, and the user's lines."""

from __future__ import annotations

import traceback
from typing import Any

import pytest

import dynamo
import eager as torch
from eager.base import settings
from tests.dynamo.api.test_compile import x23


def user_lines(error: BaseException) -> list[tuple[str, int]]:
    """(function, line) of the frames in this file, below the test itself."""
    frames = traceback.extract_tb(error.__traceback__)
    return [(f.name, f.lineno or 0) for f in frames if f.filename == __file__ and not f.name.startswith(("test_", "both"))]


def both(fn, *make) -> tuple[BaseException, BaseException]:
    with pytest.raises(Exception) as eager_error:
        fn(*(m() for m in make))
    compiled = dynamo.compile(fn, backend="eager")
    with pytest.raises(Exception) as first:
        compiled(*(m() for m in make))
    with pytest.raises(Exception) as second:
        compiled(*(m() for m in make))
    for caught in (first, second):
        assert type(caught.value) is type(eager_error.value)
        assert str(caught.value) == str(eager_error.value)
    return eager_error.value, second.value


def test_a_shape_error_is_raised_at_the_users_line() -> None:
    def inner(x):
        return x @ x

    def f(x):
        y = x + 1
        return inner(y)

    eager_error, error = both(f, x23)
    assert user_lines(error) == user_lines(eager_error)


def test_a_raise_statement() -> None:
    def check(x):
        if x.shape[0] == 2:
            raise ValueError(f"rows: {x.shape[0]}")

    def f(x):
        check(x)
        return x

    eager_error, error = both(f, x23)
    assert user_lines(error) == user_lines(eager_error)


def test_an_error_in_a_call_at_a_graph_break() -> None:
    def boom():
        raise OSError("disk")

    def f(x):
        y = x + 1
        print(end="")
        boom()
        return y

    eager_error, error = both(f, x23)
    assert user_lines(error) == user_lines(eager_error)


def test_an_error_of_a_python_callee_that_is_not_captured() -> None:
    class Loud:
        def __str__(self):
            raise KeyError("loud")

    def f(x):
        y = x * 2
        int(Loud())
        return y

    eager_error, error = both(f, x23)
    assert user_lines(error) == user_lines(eager_error)


def test_effects_before_the_error_persist() -> None:
    def f(x, log):
        log.append("one")
        y = x + 1
        print(end="")
        log.append("two")
        return y + torch.ones(7)

    for fn in (f, dynamo.compile(f, backend="eager")):
        log: list[str] = []
        with pytest.raises(RuntimeError):
            fn(x23(), log)
        assert log == ["one", "two"]


def _closes(value: Any) -> None:
    pass


class _Closing:
    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        _closes(1)


def _fails() -> None:
    with _Closing():
        raise KeyError("inner")


def _fails_in_a_handler(broken: bool) -> None:
    try:
        raise TypeError("outer")
    except TypeError:
        if broken:
            dynamo.graph_break()
        _fails()


@pytest.mark.parametrize("force", ["none", "call", "leaf"])
@pytest.mark.parametrize("broken", [False, True])
def test_an_error_handled_outside_the_capture_is_the_context(force: str, broken: bool) -> None:
    compiled = dynamo.compile(_fails_in_a_handler, backend="eager")
    with settings.scope(capture_force_break=force, capture_suppress_errors=False), pytest.raises(KeyError) as found:
        compiled(broken)
    assert type(found.value.__context__) is TypeError and found.value.__context__.__context__ is None


def _counted(texts: Any, letter: str) -> Any:
    lengths = {letter: len(letter) for letter in texts if letter}

    def last() -> str:
        return letter

    return lengths, letter, last()


@pytest.mark.parametrize("force", ["none", "call", "leaf"])
def test_the_variable_of_a_comprehension_may_have_the_name_of_a_cell(force: str) -> None:
    compiled = dynamo.compile(_counted, backend="eager")
    with settings.scope(capture_force_break=force, capture_suppress_errors=False):
        for _ in range(2):
            assert compiled(["ab", "", "c"], "z") == ({"ab": 2, "c": 1}, "z", "z")
