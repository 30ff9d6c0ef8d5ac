"""`torch.fx.wrap` and `has_side_effect`: functions that a symbolic tracer does not enter, and calls that a graph keeps.

The capture of bytecode (dynamo) needs no such marks: it follows a marked function like any other function, as torch.compile
does. The marks serve the user's own tracers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

SIDE_EFFECTS: Final[set[Callable[..., Any]]] = set()  # functions whose calls stay in a graph without users
LEAVES: Final[set[tuple[str, str]]] = set()  # (module, name)


def wrap(fn_or_name: str | Callable[..., Any]) -> str | Callable[..., Any]:
    """Mark a function of the calling module, itself or by name. Returns the argument, so that it can be a decorator.

    Raises: RuntimeError for an argument that is neither a callable nor a string; NotImplementedError if it is not called at the
    top level of a module.
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    caller = sys._getframe(1)
    if caller.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    LEAVES.add((caller.f_globals.get("__name__", "?"), name))
    return fn_or_name


def has_side_effect(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function whose calls dead code elimination keeps. Returns the function, so that it can be a decorator."""
    SIDE_EFFECTS.add(fn)
    return fn
