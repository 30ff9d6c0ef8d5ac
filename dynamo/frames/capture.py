"""One capture: the state that all frames share, and the end of the capture.

Owns: the graph under construction, guards, effects, the stack of frames, step counting, and the protocol of graph
breaks.

A capture ends in one of these ways:
- the root frame returns: `Finished`;
- an instruction cannot be captured, and a graph break can return into every frame down to it: `Stop`, with the state
  of the frames before that instruction;
- the instruction is in a frame that a break cannot return into (a generator, a special method), or half of its
  effects have happened: `Restart` at the instruction of the innermost frame that a break can return into;
- an exception leaves the root frame, or no other way applies: `GiveUp`; the call runs in plain Python.
"""

from __future__ import annotations

import os
from types import CodeType
from typing import Any, Final, NoReturn

from dynamo.builtins import (
    autograd,
    classes,
    copy_,
    eager_functions,
    functions,
    itertools_,
    lru_cache,
    random_,
    stdlib,
    transforms,
)
from dynamo.builtins.numpy import table
from dynamo.builtins.numpy.calls import Arrays
from dynamo.bytecode.decode import Instruction
from dynamo.frames import opcodes
from dynamo.frames.frame import Frame, FrameStack
from dynamo.frames.handlers import Return
from dynamo.policy.dynamic_sizes import Dynamic
from dynamo.python.attributes import Attributes
from dynamo.python.calls import Calls
from dynamo.python.classes import Classes
from dynamo.python.exceptions import Exceptions
from dynamo.python.formatting import Formatting
from dynamo.python.iteration import Iteration
from dynamo.python.operators import Operators
from dynamo.recording.data_dependent import DataDependence
from dynamo.recording.gathered_items import GatheredItems
from dynamo.recording.nested_graphs import NestedGraphs
from dynamo.recording.recorder import Modes, Recorder
from dynamo.recording.symbolic_inputs import SymbolicInputs
from dynamo.report import causes
from dynamo.report.causes import BreakRecord, Cause
from dynamo.report.errors import BreakFound, GiveUp, Restart, Unsupported
from dynamo.values.base import Lazy
from dynamo.values.protocols import Raised, Value
from dynamo.world.side_effects import Effects
from dynamo.world.wrap import World
from eager.base.records import dataclass
from eager.startup.places import ROOT
from fxir.base.origin import Origin

# Modules that fill the tables of builtins and of instruction handlers when they are imported.
TABLES: Final = (functions, classes, eager_functions, copy_, itertools_, table, autograd, random_, stdlib, transforms, lru_cache, opcodes)
_OWN_DIRS = (os.path.join(ROOT, "eager", ""), os.path.join(ROOT, "dynamo", ""))


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one capture; beyond them it breaks the graph.

    force: "none", "call" or "leaf" (tests). scalar_outputs: numbers that depend on data may be symbols.
    """

    inline_depth: int = 40
    unroll: int = 20_000
    force: str = "none"
    scalar_outputs: bool = False


@dataclass(frozen=True, slots=True)
class Finished:
    """The root frame returned."""

    value: Value


@dataclass(frozen=True, slots=True)
class Stop:
    """A graph break: the frames, outermost first, and the instruction that the innermost frame did not execute."""

    frames: tuple[Frame, ...]
    instruction: Instruction
    kw_names: tuple[str, ...]
    cause: Cause
    detail: str

    def record(self) -> BreakRecord:
        """The record for reports."""
        inner = self.frames[-1]
        stack = tuple((f.code.co_filename, f.ins.line, f.code.co_qualname) for f in self.frames)
        return BreakRecord(self.cause, self.detail, inner.code.co_filename, inner.ins.line, inner.code.co_qualname, stack)


class Capture:
    """One capture: holds its parts, counts the executed instructions, ends the graph.

    steps: number of the instruction that is being executed. restart: where to break, if an earlier attempt found an
    instruction that it cannot capture. shown: the code that reports name instead of this library's frames.
    """

    def __init__(self, limits: Limits, restart: Restart | None = None, dynamic: Dynamic | None = None) -> None:
        self.limits = limits
        self.restart = restart
        self.steps = 0
        self.shown: CodeType | None = None
        self._origin: Origin | None = None
        self._origin_at: Instruction | None = None  # the instruction and the number of frames for which `_origin` holds
        self._origin_depth = 0
        self.world = World(self)
        self.effects = Effects(self)
        self.modes = Modes(self)
        self.graphs = NestedGraphs(self)
        self.symbols = SymbolicInputs(self, dynamic or Dynamic())
        self.data = DataDependence(self, limits.scalar_outputs)
        self.items = GatheredItems(self)
        self.recorder = Recorder(self)
        self.classes = Classes(self)
        self.attributes = Attributes(self)
        self.operators = Operators(self)
        self.iteration = Iteration(self, limits.unroll)
        self.formatting = Formatting(self)
        self.exceptions = Exceptions(self)
        self.calls = Calls(self)
        self.arrays = Arrays(self, table.OPERATORS, table.METHODS)
        self.frames = FrameStack(self, limits.inline_depth)
        self._parts: tuple[Any, ...] = tuple(part for part in vars(self).values() if hasattr(part, "cap"))
        # Methods that all parts call are bound methods of the parts, so that no call is forwarded.
        self.call = self.calls.call
        self.call_method = self.calls.call_method
        self.raise_ = self.exceptions.raise_
        self.host = self.exceptions.host

    def realize(self, value: Value) -> Value:
        """The value behind a lazy value, which the capture depends on from then on. Any other value is returned."""
        return value.realize(self) if isinstance(value, Lazy) else value

    def truth(self, value: Value) -> bool:
        """bool(value)"""
        return self.realize(value).truth(self)

    # -- running -----------------------------------------------------------------------------------------------
    def run(self, root: Frame) -> Finished | Stop:
        """Execute from the root frame's state. Raises: Restart, GiveUp."""
        try:
            signal = self.frames.run(root)
        except BreakFound as found:
            return found.stop
        except Raised as error:
            raise GiveUp(causes.EXCEPTION, f"{error.value.python_type().__name__} leaves the captured code") from error
        finally:
            self.modes.leave()
        assert isinstance(signal, Return)
        return Finished(signal.value)

    def stop(self, frame: Frame, cause: Cause, detail: str) -> NoReturn:
        """End the graph: the current instruction of `frame` cannot be captured. Always raises."""
        running = self.frames.running
        for k, candidate in enumerate(running):
            if k and not candidate.chainable:
                raise Restart(running[k - 1].step_number, cause, detail)
        outermost, *inlined = running
        if inlined and (cause is causes.FRAME_INTROSPECTION or any(f.decoded.looks_at_callers for f in inlined)):
            # Code that inspects its callers, now or after the break, must find them: the outermost call runs as an
            # ordinary call.
            raise Restart(outermost.step_number, cause, detail)
        if self.effects.mutations != frame.mutations_before:
            raise Restart(frame.step_number, cause, detail)
        frame.stack = frame.stack_before
        frame.handled = self.frames.handled
        raise BreakFound(Stop(tuple(running), frame.ins, frame.kw_before, cause, detail))

    def release(self) -> None:
        """Drop the user's objects that the capture held: at its end, not at the next collection of cycles."""
        self.world.release()
        self.attributes.namespaces.clear()
        self.recorder.release()
        self.effects.release()
        self.frames.release()
        for part in self._parts:
            del part.cap  # the capture and its parts hold each other

    def check_forced(self) -> None:
        """Break the graph if a test requests a break at every call, or at every call in an inlined function."""
        force = self.limits.force
        if force == "call" or (force == "leaf" and len(self.frames.running) > 1):
            raise Unsupported(causes.FORCED, "a test forces a break at this call")

    # -- the current line ------------------------------------------------------------------------------------------
    @property
    def origin(self) -> Origin | None:
        """The user's line: the line of the innermost frame outside this library."""
        running = self.frames.running
        if not running:
            return None
        ins, depth = running[-1].ins, len(running)
        if ins is not self._origin_at or depth != self._origin_depth:
            stack = tuple((f.code.co_filename, f.ins.line, f.code.co_qualname) for f in running)
            theirs = next((f for f in reversed(running) if not f.code.co_filename.startswith(_OWN_DIRS)), None)
            self._origin_at, self._origin_depth = ins, depth
            self._origin = self._shown_origin(stack) if theirs is None else theirs.origin(stack)
        return self._origin

    def _shown_origin(self, stack: tuple[tuple[str, int, str], ...]) -> Origin:
        """The origin of a capture whose frames all belong to this library: the user's code that the root frame stands
        for, if any.
        """
        shown = self.shown
        if shown is None or shown.co_filename.startswith(_OWN_DIRS):
            return self.frames.running[-1].origin(stack)
        return Origin(shown.co_filename, shown.co_firstlineno, "", shown.co_qualname, stack)
