"""`error_on_graph_break`: a block in which graph breaks are errors, or are not. A capture follows this file like user code."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from dynamo.report import causes


class error_on_graph_break:  # noqa: N801 - torch's name
    """Make graph breaks errors, or not, in a block of a compiled function or in a block that calls compiled functions.

    error: whether a break is an error. The setting applies to the calling thread. `fullgraph=True` takes precedence. Usable as a
    decorator. Raises, at a break: torch._dynamo.exc.Unsupported.
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
