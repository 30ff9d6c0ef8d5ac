"""Ints that are not one number: sizes of tensors with symbolic shapes, and int arguments that vary.

A `SymIntValue` is a Constant whose value is known only at a price: whoever asks for `.value` gets the number that it
is now, and the compiled code is guarded to be used for that number alone. What can compute with the expression uses
`symbolic` (see `host_value`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dynamo.sources import Source
from dynamo.values.constant import Constant
from eager.symint import SymInt

if TYPE_CHECKING:
    from dynamo.capture import Capture
    from dynamo.codegen import CodeGen
    from dynamo.values.base import Value


class SymIntValue(Constant):
    """An int known as an expression. source: where the very object lives, if it is an argument."""

    def __init__(self, symbolic: SymInt, source: Source | None = None) -> None:
        self.symbolic = symbolic
        self.source = source

    @property
    def value(self) -> int:  # type: ignore[override]
        return int(self.symbolic)

    def __repr__(self) -> str:
        return f"SymIntValue({self.symbolic!r})"

    def python_type(self) -> type:
        return int

    def as_constant(self) -> int:
        return self.value

    def holds(self, singleton: Any) -> bool:
        return False

    def describe(self) -> str:
        return f"a symbolic int {self.symbolic!r}"

    def truth(self, cap: Capture) -> bool:
        return bool(self.symbolic)

    def same_object(self, cap: Capture, other: Value) -> bool:
        if self is other:
            return True
        return Constant(self.value, self.source).same_object(cap, other)

    def reconstruct(self, cg: CodeGen) -> str:
        return cg.source(self.source) if self.source is not None else cg.symbolic(self.symbolic)


def host_value(value: Value) -> Any:
    """What Python computes with: the number, or the SymInt."""
    return value.symbolic if isinstance(value, SymIntValue) else value.as_constant()
