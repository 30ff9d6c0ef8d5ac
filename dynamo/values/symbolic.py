"""Numbers that vary between calls: sizes of tensors with symbolic shapes, int and float arguments.

A `SymbolicValue` is a Constant with an expression. A read of `.value` returns the present number, and adds a guard that
limits the compiled code to this number. Code that can compute with the expression reads `symbolic` (see `host_value`).
"""

from __future__ import annotations

from typing import Any

from dynamo.guards.sources import Source
from dynamo.values.base import Constant
from dynamo.values.protocols import Machine, Value
from dynamo.values.writer import Writer
from eager.base.symfloat import SymFloat
from eager.base.symint import SymInt


class SymbolicValue(Constant):
    """A number known as an expression. kind: its Python type. source: the place of the object, if it is an argument."""

    kind: type
    symbolic: SymInt | SymFloat

    def __init__(self, source: Source | None) -> None:
        self.source = source

    @property
    def value(self) -> Any:
        return self.kind(self.symbolic)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.symbolic!r})"

    def python_type(self) -> type:
        return self.kind

    def as_constant(self) -> Any:
        return self.value

    def holds(self, singleton: Any) -> bool:
        return False

    def describe(self) -> str:
        return f"a symbolic {self.kind.__name__} {self.symbolic!r}"

    def truth(self, cap: Machine) -> bool:
        return bool(self.symbolic)

    def same_object(self, cap: Machine, other: Value) -> bool:
        if self is other:
            return True
        return Constant(self.value, self.source).same_object(cap, other)

    def reconstruct(self, cg: Writer) -> str:
        return cg.source(self.source) if self.source is not None else cg.symbolic(self.symbolic)


class SymIntValue(SymbolicValue):
    """An int."""

    kind = int

    def __init__(self, symbolic: SymInt, source: Source | None = None) -> None:
        super().__init__(source)
        self.symbolic: SymInt = symbolic


class SymFloatValue(SymbolicValue):
    """A float."""

    kind = float

    def __init__(self, symbolic: SymFloat, source: Source | None = None) -> None:
        super().__init__(source)
        self.symbolic: SymFloat = symbolic


class SymbolicText(Constant):
    """A text that contains symbolic numbers, like the message of an assertion.

    Only code that reads the text fixes the numbers.

    parts: pieces of text and numbers, in order.
    """

    def __init__(self, parts: list[str | SymbolicValue]) -> None:
        self.parts = parts
        self.source = None

    @property
    def value(self) -> str:
        return "".join(part if isinstance(part, str) else str(part.value) for part in self.parts)

    def python_type(self) -> type:
        return str

    def holds(self, singleton: Any) -> bool:
        return False

    def describe(self) -> str:
        return "text with symbolic numbers in it"

    def reconstruct(self, cg: Writer) -> str:
        template = "".join(part.replace("%", "%%") if isinstance(part, str) else "%s" for part in self.parts)
        numbers = [cg.value(part) for part in self.parts if not isinstance(part, str)]
        return f"({template!r} % ({', '.join(numbers)},))"


def text_parts(value: Value) -> list[str | SymbolicValue]:
    """The pieces of `value`, which is a text."""
    return value.parts if isinstance(value, SymbolicText) else [value.as_constant()]


def host_value(value: Value) -> Any:
    """The operand for Python's operators: the number, or the SymInt or SymFloat."""
    return value.symbolic if isinstance(value, SymbolicValue) else value.as_constant()
