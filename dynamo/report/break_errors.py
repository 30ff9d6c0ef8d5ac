"""error_on_graph_break: a block in which graph breaks are errors, or are not. Captured functions run it like user code."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from dynamo.report import causes


class error_on_graph_break:  # noqa: N801 - torch's name
    """Whether a graph break is an error: in this block of a compiled function, or while compiled functions are called in it.

    Usable as a decorator. `fullgraph=True` goes before it. For this thread.
    """

    def __init__(self, error: bool) -> None:
        self._error = error
        self._before: list[bool | None] = []

    def __enter__(self) -> None:
        self._before.append(causes.forbid(self._error))

    def __exit__(self, *exc: object) -> None:
        causes.forbid(self._before.pop())

    def __call__(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fn)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with error_on_graph_break(self._error):
                return fn(*args, **kwargs)

        return wrapper
