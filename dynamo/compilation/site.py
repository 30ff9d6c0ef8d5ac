"""A place where compiled code can start, and the state that a capture starts from.

Owns: a site and its variants; the frame of a function from its beginning; the frame of a continuation, which starts in the middle
of a code object; and plain Python re-entered in the middle of a frame.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from types import CellType, CodeType, FunctionType
from typing import Any, Protocol

from dynamo import _native
from dynamo.bytecode.decode import KIND_CELL, KIND_FREE, Decoded, argument_count, decode
from dynamo.frames.capture import Capture
from dynamo.frames.frame import Frame
from dynamo.guards.explain import Failure
from dynamo.guards.program import Guard
from dynamo.guards.sources import AttrSource, SlotSource
from dynamo.policy.dynamic_sizes import Dynamic
from dynamo.report.causes import BreakRecord
from dynamo.values.base import NULL, Lazy, Value
from dynamo.values.functions import FunctionValue
from eager import Tensor


@dataclass(slots=True)
class Statistics:
    """Events of a region since its creation or its last reset. graphs: the compiled graphs in order."""

    graphs: list[Any] = field(default_factory=list)
    breaks: list[BreakRecord] = field(default_factory=list)
    recompiles: list[Failure] = field(default_factory=list)
    guards: list[Guard] = field(default_factory=list)
    compile_time_s: float = 0.0
    fallbacks: list[str] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Variant:
    """One compiled version of a site."""

    guards: list[Guard]
    program: _native.GuardProgram | None


@dataclass(slots=True, eq=False)
class Site:
    """A place where compiled code can start.

    slot_names: names of the flat inputs. function_slot: one more input, the function object, follows them.
    attempts: number of compilations. over: the site has reached the recompile limit. skip: the site always runs plainly.
    looked_at: `look_at` has recorded an eager call. shown: the code that messages name, where `code` is a wrapper of it.
    """

    code: CodeType
    label: str
    slot_names: tuple[str, ...]
    function_slot: bool
    number: int
    variants: list[Variant] = field(default_factory=list)
    attempts: int = 0
    over: bool = False
    skip: bool = False
    looked_at: bool = False
    shown: CodeType | None = None
    dynamic: Dynamic = field(default_factory=Dynamic)

    @property
    def n_slots(self) -> int:
        """Number of input slots of the site's guard programs."""
        return len(self.slot_names) + self.function_slot

    @property
    def place(self) -> str:
        """Label, file and first line, for messages."""
        code = self.shown or self.code
        return f"{self.label} ({code.co_filename}:{code.co_firstlineno})"

    def look_at(self, slots: tuple[Any, ...]) -> None:
        """Record the sizes and numbers of an eager call: a size or a number that differs at the next call becomes a symbol."""
        self.looked_at = True
        for name, value in zip(self.slot_names, slots, strict=False):
            if isinstance(value, Tensor):
                self.dynamic.see(name, value)
            elif type(value) is int:
                self.dynamic.int_is_symbolic(name, value)
            elif type(value) is float:
                self.dynamic.float_is_symbolic(name, value)


def reentry(code: CodeType, namespace: dict[str, Any], region: _native.Region) -> Callable[..., Any]:
    """(offset, locals, stack, exc, handled): runs the original code from the offset on; its callees are captured.

    The result is not a Python function, so that the caller of the re-entered frame is the user's frame.
    """
    return functools.partial(_native.call_in_region, region, _native.resume, _twin(code, namespace))


def _twin(code: CodeType, namespace: dict[str, Any]) -> FunctionType:
    """A function of this code. Re-entry passes the cells, so the closure of the function is never read."""
    closure = tuple(_native.make_cell() for _ in code.co_freevars)
    return FunctionType(code, namespace, code.co_name, None, closure)


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """A point in a code object: instruction `index`, the bound locals, and the pattern of the stack.

    slots: localsplus indices of the locals that the continuation takes. nulls: for each stack item, whether it is NULL.
    """

    code: CodeType
    namespace: dict[str, Any]
    index: int
    slots: tuple[int, ...]
    nulls: tuple[bool, ...]

    @property
    def decoded(self) -> Decoded:
        """The decoded code object."""
        return decode(self.code)

    def names(self) -> tuple[str, ...]:
        """Names of the flat inputs: the locals, then the stack items that are not NULL."""
        names = [self.decoded.slots[i] for i in self.slots]
        return (*names, *(f"stack_{k}" for k, null in enumerate(self.nulls) if not null))

    def fallback(self, region: _native.Region) -> Callable[..., Any]:
        """Plain Python from this point to the end of the frame."""
        reenter = reentry(self.code, self.namespace, region)
        offset = self.decoded.instructions[self.index].start
        n, slots, nulls = len(self.decoded.slots), self.slots, self.nulls

        def run(*values: Any) -> Any:
            locals_ = [_native.NULL] * n
            for slot, value in zip(slots, values, strict=False):
                locals_[slot] = value
            rest = iter(values[len(slots) :])
            stack = [_native.NULL if null else next(rest) for null in nulls]
            return _native.tail(reenter, offset, locals_, stack, None, _native.NULL)

        return run


class Root(Protocol):
    """The state that a capture starts from."""

    def frame(self, cap: Capture) -> Frame:
        """The root frame of a capture."""

    def fallback(self, region: _native.Region) -> Callable[..., Any] | None:
        """Plain Python for the slots of the root; None for a function, which can be called again."""


class FunctionRoot:
    """A function from its beginning. fixed: every call has the same function object."""

    def __init__(self, fn: FunctionType, slots: tuple[Any, ...], fixed: bool) -> None:
        self.fn = fn
        self.slots = slots
        self.fixed = fixed

    def fallback(self, region: _native.Region) -> None:
        """None: the caller calls the function again."""

    def frame(self, cap: Capture) -> Frame:
        """The root frame of a capture."""
        fn, code = self.fn, self.fn.__code__
        source = SlotSource(len(self.slots), fn.__qualname__)
        if not self.fixed:
            if fn.__closure__:
                cap.world.guard("is", AttrSource(source, "__globals__"), fn.__globals__)
            else:
                cap.world.guard("is", source, fn)
        names = argument_names(code)
        locals_: list[Value | None] = [Lazy(cap, v, SlotSource(i, names[i])) for i, v in enumerate(self.slots)]
        return Frame(cap, code, fn.__globals__, locals_, fn=FunctionValue(code, fn.__globals__, fn, source))


class ContinuationRoot:
    """A frame from a point in the middle of its code."""

    def __init__(self, layout: Layout, values: tuple[Any, ...]) -> None:
        self.layout = layout
        self.values = values

    def fallback(self, region: _native.Region) -> Callable[..., Any]:
        """Plain Python from the layout's point to the end of the frame."""
        return self.layout.fallback(region)

    def frame(self, cap: Capture) -> Frame:
        """The root frame of a capture."""
        layout = self.layout
        decoded, names = layout.decoded, layout.names()
        locals_: list[Value | None] = [None] * len(decoded.slots)
        for k, slot in enumerate(layout.slots):
            source = SlotSource(k, names[k])
            real = self.values[k]
            is_cell = decoded.kinds[slot] & (KIND_CELL | KIND_FREE) and type(real) is CellType
            locals_[slot] = cap.world.wrap_cell(real, source, decoded.slots[slot]) if is_cell else Lazy(cap, real, source)
        stack: list[Value] = []
        at = len(layout.slots)
        for null in layout.nulls:
            if null:
                stack.append(NULL)
            else:
                real, source = self.values[at], SlotSource(at, names[at])
                # CPython 3.12 inlines comprehensions: the variable is then not a cell, and the cell of its name lies on the stack.
                stack.append(cap.world.wrap_cell(real, source, names[at]) if type(real) is CellType else Lazy(cap, real, source))
                at += 1
        return Frame(cap, layout.code, layout.namespace, locals_, stack, layout.index)


def argument_names(code: CodeType) -> tuple[str, ...]:
    """Names of the argument slots of a code object."""
    return code.co_varnames[: argument_count(code)]


