"""State that a function may read, and changes of this state between two calls.

Each entry makes a fresh `State`: a function over one tensor, and the changes of its state. The tests call the function
compiled and eagerly after every change, in several orders (tests/dynamo/guards/test_stale_state.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import eager as torch


class State(NamedTuple):
    """read: the compiled function. changes: each may be applied at any time, any number of times, in any order.

    close: restores the state of the process.
    """

    read: Callable[..., Any]
    changes: tuple[Callable[[], Any], ...]
    close: Callable[[], Any] = lambda: None


STATES: dict[str, Callable[[], State]] = {}


def state(make: Callable[[], State]) -> Callable[[], State]:
    """Register `make` under its name."""
    STATES[make.__name__] = make
    return make


def namespace(source: str, **names: Any) -> dict[str, Any]:
    """The globals of a separate module in which `source` has run."""
    made: dict[str, Any] = {"torch": torch, "__name__": "state_of_a_test", **names}
    exec(compile(source, "<state>", "exec"), made)
    return made


def setter(where: Any, name: str, value: Any) -> Callable[[], None]:
    return lambda: setattr(where, name, value)
