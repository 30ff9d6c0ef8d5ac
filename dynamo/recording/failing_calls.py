"""Calls that may raise because of their data (see `Op.fallible`), and code that would notice: an `except`, a `finally`,
a `with`.

The graph runs before the effects of the program are replayed, so an error of such a call comes too early. Without a
handler, the program runs a second time, without the graph, and raises the error at its line. The second run also gives
the result of a handler, if the graph writes to no input. A graph that writes, without a handler, is compiled to write
at its end: after an error, nothing has been written. The version of the first tensor that the graph writes to shows
this.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from dynamo.bytecode.decode import Handler
from dynamo.policy.callees import is_own_module
from dynamo.values.functions import BoundMethod
from dynamo.values.protocols import Frame, Value


def is_handled(frames: Iterable[Frame]) -> bool:
    """Whether an exception at the current instruction would run a handler of the program."""
    return any(_leads_to_code(f, f.decoded.handler(f.ins.index)) for f in frames if not is_own_module(f.globals.get("__name__", "")))


def _leads_to_code(frame: Frame, handler: Handler | None) -> bool:
    instructions = frame.decoded.instructions
    while handler is not None:
        first, second = instructions[handler.target : handler.target + 2]
        is_with = second.name == "WITH_EXCEPT_START"  # other handlers restore the frame and raise again
        if first.name == "PUSH_EXC_INFO" and not (is_with and _lets_pass(frame.stack[handler.depth - 1])):
            return True
        handler = frame.decoded.handler(handler.target)
    return False


def _lets_pass(leave: Value | None) -> bool:
    """Whether an `__exit__` is known to let exceptions pass, and to have no visible effect."""
    if not isinstance(leave, BoundMethod):
        return False
    manager = leave.self_value.python_type()
    return manager is contextlib.nullcontext or is_own_module(manager.__module__)
