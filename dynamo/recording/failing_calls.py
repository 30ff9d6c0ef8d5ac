"""Calls that may refuse their data (see `Op.fallible`), and code that would notice: an `except`, a `finally`, a `with`.

The graph runs before the program's own effects are replayed, so a refusal comes at the wrong place. Where nothing handles it,
that is made good by running the program once more, without the graph, for the error at its line. The same gives what a
handler makes of it, as long as the graph writes to nothing outside. A graph that does, and is not handled, has written
nothing yet where it was compiled to write at its end; the version of the first tensor that it writes to shows this.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from dynamo.bytecode.decode import Handler
from dynamo.policy.callees import is_own_module
from dynamo.values.functions import BoundMethod
from dynamo.values.protocols import Frame, Value


def is_handled(frames: Iterable[Frame]) -> bool:
    """Whether an exception at the instruction that is being followed would come past code of the program."""
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
    """Whether an `__exit__` is known to let exceptions pass, and to do nothing that would show."""
    if not isinstance(leave, BoundMethod):
        return False
    manager = leave.self_value.python_type()
    return manager is contextlib.nullcontext or is_own_module(manager.__module__)
