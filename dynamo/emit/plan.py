"""The decisions of the code generator, before any of them is printed.

Owns: an expression with its kind (`Operand`); the plan of the code that follows a graph break, as frozen records; and
the protocol by which the generator queries the compiler (`Compiler`). The generator never parses its own text to find a
kind or an outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final, Protocol

from eager.base.records import dataclass

if TYPE_CHECKING:
    from dynamo import _native
    from dynamo.frames.capture import Capture
    from dynamo.frames.frame import Frame
    from fxir.ir.node import Node


class OperandKind(Enum):
    """Where the value of an expression comes from."""

    LOCAL = auto()  # a variable of the generated function
    PARAMETER = auto()
    GLOBAL = auto()  # a name of the function's namespace
    NULL = auto()  # the sentinel of an empty stack item or an unbound local
    CONSTANT = auto()  # a literal
    EXPRESSION = auto()  # anything else


_VARIABLES: Final = frozenset({OperandKind.LOCAL, OperandKind.PARAMETER})


@dataclass(frozen=True, slots=True)
class Operand:
    """An expression of generated code and its kind. `str()` gives the text."""

    kind: OperandKind
    text: str

    @property
    def is_variable(self) -> bool:
        """Whether the operand is a variable of one call, which the call can let go of."""
        return self.kind in _VARIABLES

    @property
    def is_null(self) -> bool:
        return self.kind is OperandKind.NULL

    def __str__(self) -> str:
        return self.text


# --- the instruction at a graph break ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Outcome:
    """One outcome of the instruction.

    condition: an expression; None: always. index: the next instruction. pushes: the items that the instruction leaves
    on the stack. stores: the variables that the instruction binds, by slot; None for a variable that it unbinds.
    """

    condition: str | None
    index: int
    pushes: tuple[Operand, ...]
    stores: Mapping[int, Operand | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Performed:
    """The instruction in plain Python. pops: how many stack items it takes. The last outcome has no condition."""

    pops: int
    statements: tuple[str, ...]
    outcomes: tuple[Outcome, ...]


# --- the frames behind it --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FrameState:
    """The values of a frame when the instruction runs.

    locals: by slot. stack: from the bottom. kept: slots that are handed on although no instruction reads them, as a bit mask.
    """

    locals: Mapping[int, Operand]
    stack: tuple[Operand, ...]
    kept: int


@dataclass(frozen=True, slots=True)
class Return:
    """The frame returns at once."""

    value: Operand


@dataclass(frozen=True, slots=True)
class Continue:
    """A compiled continuation runs the rest of the frame. target: a global; arguments: its slots."""

    target: Operand
    arguments: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Reenter:
    """The original code runs the rest of the frame in plain Python.

    target: a global. offset: in bytes. locals: one operand a slot. error: raised at the offset; None: nothing is raised.
    handled: the exception that sys.exc_info() shows. shown: the owner of the frame's traceback entries, then the exceptions
    whose tracebacks contain the frame.
    """

    target: Operand
    offset: int
    locals: tuple[Operand, ...]
    stack: tuple[Operand, ...]
    error: Operand | None
    handled: Operand | None
    shown: tuple[Operand, ...]


Way = Return | Continue | Reenter


@dataclass(frozen=True, slots=True)
class Branch:
    """A tail with its condition. names: variables of this branch, which die before the frame continues."""

    condition: str | None
    way: Way
    names: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class FramePlan:
    """The rest of one frame.

    inner: the plan of the frame that this one called; None for the innermost frame. statements: the instruction, for the
    innermost frame. branches: the last one has no condition. on_error: the way on after an exception, which a handler of the
    frame may catch; `error` is the variable of that exception.
    """

    depth: int
    result: Operand
    inner: FramePlan | None
    statements: tuple[str, ...]
    branches: tuple[Branch, ...]
    on_error: Reenter | None = None
    error: Operand | None = None


class Compiler(Protocol):
    """The part of the compiler that the code generator queries."""

    is_continuation: bool  # the generated function continues in the middle of another
    region: _native.Region

    def compile_graph(self, cap: Capture, outputs: list[Node]) -> Callable[..., Any]:
        """The compiled graph: takes the used inputs of the capture in order, returns a tuple of the outputs."""

    @property
    def writes_at_end(self) -> bool:
        """Whether a compiled graph that raises an error has not written to any input."""

    def continuation(self, frame: Frame, index: int, slots: list[int], nulls: tuple[bool, ...]) -> Callable[..., Any]:
        """The code that continues in `frame` at instruction `index`, with these locals and a stack of this pattern."""

    def reenter(self, frame: Frame) -> Callable[..., Any]:
        """(offset, locals, stack, exc, handled): the original frame in plain Python from the offset to its end."""

    def on_refusal(self) -> Callable[..., Any]:
        """(error, slots): the eager run after an assumption about data fails."""

    def on_graph_error(self, may_refuse: bool) -> Callable[..., Any] | None:
        """(error, slots): the eager run after the compiled graph raises; None: the error propagates. may_refuse: the graph contains
        a call that may raise because of its data."""
