"""The table of instruction handlers, and the signals that a handler sends to the frame that runs it.

The modules of `frames.opcodes` fill the table when they are imported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias, TypeVar

from dynamo.bytecode.decode import Instruction
from dynamo.values.protocols import Value
from eager.base.records import dataclass


@dataclass(frozen=True, slots=True)
class Return:
    """The frame returned `value`."""

    value: Value


@dataclass(frozen=True, slots=True)
class Yield:
    """The generator frame yielded `value`."""

    value: Value


Signal: TypeAlias = "Return | Yield | None"
Handler: TypeAlias = "Callable[[Any, Instruction], Signal]"  # of the frame and the instruction
H = TypeVar("H", bound=Handler)

HANDLERS: Final[dict[str, Handler]] = {}


def op(*names: str) -> Callable[[H], H]:
    """Register a handler for instructions of these names."""

    def register(handler: H) -> H:
        for name in names:
            assert name not in HANDLERS, name
            HANDLERS[name] = handler
        return handler

    return register
