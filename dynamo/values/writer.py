"""The protocol between captured values and the code generator.

Owns the two interfaces only. A value writes its own expression through `Writer`; the code generator reads a value through
`Captured`. Neither side imports the other: the implementation of `Writer` is `dynamo.emit.writer.CodeGen`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn, Protocol

from dynamo.guards.sources import Source, SourceWriter

if TYPE_CHECKING:
    from eager.base.symfloat import SymFloat
    from eager.base.symint import SymInt
    from fxir.ir.node import Node


class Captured(Protocol):
    """A value of the captured program, as the code generator sees the value."""

    born: int

    @property
    def source(self) -> Source | None:
        """The place of an existing object; None for an object that the captured program makes."""

    def reconstruct(self, cg: Writer) -> str:
        """Write the statements that make the value; return an expression for the value."""


class Writer(SourceWriter, Protocol):
    """Writes one generated function. Every returned expression is a name, a literal, or free of side effects."""

    @property
    def grad_mode(self) -> bool:
        """Whether grad mode is on where the captured program ends."""

    def value(self, value: Captured) -> str:
        """An expression for `value`; every use of one value gets the same object."""

    def filled(self, value: Captured) -> str:
        """As `value`, after every container under construction has received its items."""

    def source_of(self, value: Captured) -> str:
        """A variable that holds an existing value."""

    def new_object(self, obj: Captured) -> str:
        """An expression for an instance that the captured program makes."""

    def set_attributes(self, obj: Captured, var: str) -> None:
        """Write the pending attributes of a new object onto the variable `var`."""

    def container(
        self, value: Captured, make: str | None, fill: Callable[[str], None], literal: Callable[[Writer], str] | None,
        make_with: Callable[[Writer], str] | None = None,
    ) -> str:  # fmt: skip
        """An expression for a new mutable object.

        literal: writes the whole object as one expression. It does not apply to an object that contains itself: then `make`
        (or `make_with`) gives an empty object, and `fill` writes the contents onto the variable of the object.
        """

    def traceback(self, value: Captured, after: str = "None") -> str:
        """An expression for the traceback of an exception, or for a traceback value, in front of the entries in `after`."""

    def symbolic(self, value: SymInt | SymFloat) -> str:
        """An expression for a symbolic number."""

    def is_in_main_graph(self, node: Node) -> bool:
        """Whether `node` belongs to the main graph. A node of a nested graph has no value when the graph has run."""

    def graph_output(self, node: Node) -> str:
        """The variable that holds the value of `node` after the graph has run."""

    def assign(self, expression: str) -> str:
        """Write `name = expression`; return the name. A name is returned unchanged."""

    def statement(self, text: str) -> None:
        """Write one statement."""

    def impossible(self, value: Captured, what: str) -> NoReturn:
        """Report that no generated code can make `value`. Raises: Restart, GiveUp."""
