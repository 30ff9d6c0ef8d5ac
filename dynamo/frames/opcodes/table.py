"""The table of instruction handlers, and the signals that a handler can send to the frame that runs it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from dynamo.values.base import Value

if TYPE_CHECKING:
    from dynamo.bytecode.decode import Instruction
    from dynamo.frames.frame import Frame


@dataclass(frozen=True, slots=True)
class Return:
    """The frame returned `value`."""

    value: Value


@dataclass(frozen=True, slots=True)
class Yield:
    """The generator frame yielded `value`."""

    value: Value


Signal: TypeAlias = "Return | Yield | None"
Handler: TypeAlias = "Callable[[Frame, Instruction], Signal]"

HANDLERS: Final[dict[str, Handler]] = {}


def op(*names: str) -> Callable[[Handler], Handler]:
    """Register a handler for instructions of these names."""

    def register(handler: Handler) -> Handler:
        for name in names:
            assert name not in HANDLERS, name
            HANDLERS[name] = handler
        return handler

    return register
