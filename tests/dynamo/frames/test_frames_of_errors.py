"""Debuggers and test runners can inspect the frames of an error: every frame, chain and local."""

from __future__ import annotations

import contextlib
import gc
import io
import logging
import sys
import traceback
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import dynamo
import eager as torch
from eager.base import settings

FORCE = ("none", "call", "leaf")


class Loud(Exception):
    pass


def look(frame: types.FrameType | None) -> list[dict[str, Any]]:
    """Read every attribute of a frame and of its callers; return the variables of each."""
    seen = []
    while frame is not None:
        assert repr(frame) and frame.f_lasti >= -1 and (frame.f_lineno is None or frame.f_lineno >= 0)
        assert isinstance(frame.f_globals, dict) and isinstance(frame.f_builtins, dict)
        seen.append(dict(frame.f_locals))
        frame = frame.f_back
    return seen


def frames_of(error: BaseException | None, seen: set[int]) -> Iterator[types.FrameType]:
    """The frames of an error's traceback, and of the tracebacks of its causes and contexts."""
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        entry = error.__traceback__
        while entry is not None:
            yield entry.tb_frame
            entry = entry.tb_next
        yield from frames_of(error.__cause__, seen)
        error = error.__context__


def in_a_closure() -> Callable[[Any], Any]:
    weight, log = torch.ones(3), []

    def f(x):
        def inner(y):
            log.append(len(log))
            return y + weight + x

        y = inner(x)
        print(end="")
        raise Loud(inner(y))

    return f


def in_a_callee_two_down() -> Callable[[Any], Any]:
    cell = 3

    def last(x):
        dynamo.graph_break()
        x = x + cell
        raise Loud(x)

    def middle(x):
        kept = [x]
        try:
            return last(x * 2) + kept[0]
        finally:
            kept.append(cell)

    def f(x):
        y = x + 1
        return middle(y) + y

    return f


def in_a_handler_of_another() -> Callable[[Any], Any]:
    def fails(x, k):
        y = x + k
        return [y][k]

    def f(x):
        try:
            fails(x, 2)
        except IndexError as e:
            z = x * 2
            print(end="")
            try:
                fails(z, 3)
            finally:
                e.add_note("noted")
                z = z + 1

    return f


def raised_again() -> Callable[[Any], Any]:
    outer = []

    def fails(x):
        raise Loud(x.sum())

    def f(x):
        try:
            fails(x)
        except Loud as e:
            outer.append(e)
            dynamo.graph_break()
            raise ValueError("second") from e

    return f


def in_a_generator() -> Callable[[Any], Any]:
    scale = 2

    def items(x):
        try:
            for i in range(3):
                yield x * scale + i
                if i == 1:
                    raise Loud(i)
        finally:
            print(end="")

    def f(x):
        total = x
        for item in items(x):
            total = total + item
            print(end="")
        return total

    return f


def in_an_escaped_generator() -> Callable[[Any], Any]:
    kept: list[Any] = []

    def items(x):
        y = x + len(kept)
        yield y
        raise Loud(y)

    def f(x):
        made = items(x)
        kept.append(made)
        print(end="")
        next(made)
        return next(made)

    return f


def under_managers() -> Callable[[Any], Any]:
    seen = []

    @contextlib.contextmanager
    def managed(x):
        try:
            yield x + 1
        finally:
            seen.append(x)

    def f(x):
        with managed(x) as a, torch.no_grad(), managed(a) as b:
            print(end="")
            c = a + b
            raise Loud(c)

    return f


def in_a_comprehension() -> Callable[[Any], Any]:
    def f(x):
        limit = 2

        def small(i):
            if i > limit:
                raise Loud(x + i)
            return x + i

        return [small(i) for i in range(5)]

    return f


def of_a_cell_that_is_an_argument() -> Callable[[Any], Any]:
    def f(x):
        def late():
            return x + late_value

        print(end="")
        y = x + 1
        late()
        late_value = y
        return late_value

    return f


def of_the_graph() -> Callable[[Any], Any]:
    other = torch.ones(4)

    def inner(x):
        return x.relu() @ other

    def f(x):
        print(end="")
        return inner(x + 1)

    return f


def of_a_recursion() -> Callable[[Any], Any]:
    def f(x, n=4):
        y = x + n
        if n == 0:
            print(end="")
            raise Loud(y)
        return f(y, n - 1) + y

    return f


def of_a_class_body() -> Callable[[Any], Any]:
    def f(x):
        class Made:
            y = x + 1

            def get(self):
                return __class__.y[self.missing]

        return Made().get()

    return f


PROGRAMS = [in_a_closure, in_a_callee_two_down, in_a_handler_of_another, raised_again, in_a_generator, in_an_escaped_generator,
            under_managers, in_a_comprehension, of_a_cell_that_is_an_argument, of_the_graph, of_a_recursion, of_a_class_body]  # fmt: skip


def fail(fn: Callable[[Any], Any]) -> BaseException:
    with pytest.raises((Loud, IndexError, ValueError, NameError, RuntimeError, AttributeError)) as caught:
        fn(torch.arange(3.0))
    return caught.value


@pytest.mark.parametrize("force", FORCE)
@pytest.mark.parametrize("make", PROGRAMS, ids=lambda f: f.__name__)
def test_every_frame_of_an_error_can_be_read(make: Callable[[], Callable[[Any], Any]], force: str) -> None:
    eager_names = [f.f_code.co_name for f in frames_of(fail(make()), set()) if f.f_code.co_filename == __file__]
    with settings.scope(capture_force_break=force):
        compiled = dynamo.compile(make(), backend="eager")
        errors = [fail(compiled) for _ in range(2)]
    kept = [list(frames_of(error, set())) for error in errors]
    for error, frames in zip(errors, kept, strict=True):
        assert [f.f_code.co_name for f in frames if f.f_code.co_filename == __file__] == eager_names
        assert all(look(f) for f in frames) and "".join(traceback.format_exception(error))
    dynamo.reset()
    gc.collect(0)
    for error, frames in zip(errors, kept, strict=True):  # the frames may have lost their variables, but they can still be read
        for frame in frames:
            look(frame)
        traceback.clear_frames(error.__traceback__)
        for frame in frames:
            look(frame)


@pytest.mark.parametrize("force", FORCE)
def test_frames_kept_by_a_callee_can_be_read_afterwards(force: str) -> None:
    kept: list[types.FrameType] = []

    def spy(x):
        frame = sys._getframe()
        while frame is not None and frame.f_code.co_filename == __file__:
            kept.append(frame)
            look(frame)
            frame = frame.f_back
        return x

    def inner(x, box):
        y = spy(x + 1)
        return [y + box[0], box]

    def f(x):
        box = [x]
        g = lambda: box  # noqa: E731
        return inner(spy(x), g())

    with settings.scope(capture_force_break=force):
        compiled = dynamo.compile(f, backend="eager")
        for _ in range(3):
            compiled(torch.arange(3.0))
    names = {frame.f_code.co_name for frame in kept}
    # A break that is forced in a leaf precedes the check whether the leaf inspects frames.
    assert names >= ({"spy", "f"} if force == "leaf" else {"spy", "inner", "f"})
    gc.collect(0)
    dynamo.reset()
    for frame in kept:
        look(frame)


def _callers(how: str) -> list[Any]:
    if how == "extract":
        return [(f.name, f.lineno) for f in traceback.extract_stack(limit=3)]
    if how == "print":
        text = io.StringIO()
        traceback.print_stack(limit=3, file=text)
        return text.getvalue().splitlines()
    if how == "logging":
        seen: list[Any] = []
        logger, handler = logging.getLogger("framejit.tests.callers"), logging.Handler()
        handler.emit = lambda record: seen.append((record.funcName, record.lineno))  # type: ignore[method-assign]
        logger.addHandler(handler)
        logger.warning("who", stacklevel=2)
        logger.removeHandler(handler)
        return seen
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn("one", stacklevel=1)
        warnings.warn("two", stacklevel=2)
        warnings.warn("three", stacklevel=3)
    return [w.lineno for w in caught]


def _through(x, how):
    y = x + 1
    seen = _callers(how)
    return y * 2, seen


def _outermost(x, how):
    y, seen = _through(x * 3, how)
    return y + 1, seen


@pytest.mark.parametrize("how", ["extract", "print", "logging", "warn"])
def test_code_that_inspects_its_callers_finds_inlined_callers(how: str) -> None:
    x = torch.ones(2)
    compiled = dynamo.compile(_outermost, backend="eager")
    expected = _outermost(x, how)[1]
    for _ in range(2):
        assert compiled(x, how)[1] == expected
