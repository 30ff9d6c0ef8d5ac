"""One capture: what all frames share, and how it ends.

Owns: the graph being built, guards, effects, the stack of frames, step counting, and the protocol of graph breaks.

How a capture ends:
- the root frame returns: `Finished`;
- an instruction cannot be captured and every frame down to it can be returned into: `Stop`, with the frames as they
  stand before that instruction;
- it cannot be captured deeper inside (in a generator, under a special method, half-way through an instruction with
  effects): `Restart` at the instruction of the innermost frame that can be returned into;
- an exception leaves the root frame, or nothing helps: `GiveUp`; the call runs in plain Python.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from types import CodeType
from typing import Any

import eager
from dynamo.builtins import (
    autograd,
    classes,
    copy_,
    eager_functions,
    functions,
    itertools_,
    random_,
    stdlib,
    transforms,
)
from dynamo.builtins.numpy import table
from dynamo.builtins.numpy.calls import NumpyCalls
from dynamo.builtins.registry import Builtins
from dynamo.bytecode.decode import Instruction
from dynamo.frames.frame import Frame
from dynamo.frames.opcodes.table import Return
from dynamo.guards.program import GuardSet
from dynamo.policy.dynamic_sizes import Dynamic
from dynamo.python.attributes import AttributeAccess, InstanceDict
from dynamo.python.calls import Calls
from dynamo.python.exceptions import Exceptions
from dynamo.python.formatting import Texts
from dynamo.python.operators import Operations
from dynamo.recording.data_dependent import DataDependent
from dynamo.recording.gathered_items import ItemsOfData
from dynamo.recording.nested_graphs import SubGraph, SubGraphs
from dynamo.recording.recorder import FakeMode, TensorCalls
from dynamo.recording.symbolic_inputs import Symbols
from dynamo.recording.temporary_modules import MadeModules
from dynamo.report import causes
from dynamo.report.causes import BreakRecord, Cause
from dynamo.report.errors import BreakFound, GiveUp, Raised, Restart, Unsupported
from dynamo.values.base import Value
from dynamo.values.constant import Constant
from dynamo.values.functions import GeneratorValue
from dynamo.values.tensor import TensorValue
from dynamo.world.side_effects import Effects
from dynamo.world.wrap import Wrapping
from eager import _native as eager_native
from eager.base import thread_state
from eager.startup.places import ROOT
from fxir.base.origin import Origin
from fxir.ir.graph import Graph
from fxir.ir.node import Node, NodeInfo

_OWN_DIRS = (os.path.join(ROOT, "eager", ""), os.path.join(ROOT, "dynamo", ""))


@dataclass(frozen=True, slots=True)
class Limits:
    """What one capture may do before it breaks the graph. force: "none", "call" or "leaf" (tests). scalar_outputs: numbers
    that data tells may be symbols."""

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
    """A graph break: the frames, outermost first, and the instruction of the innermost that was not executed."""

    frames: tuple[Frame, ...]
    instruction: Instruction
    kw_names: tuple[str, ...]
    cause: Cause
    detail: str

    def record(self) -> BreakRecord:
        """What is reported of it."""
        inner = self.frames[-1]
        stack = tuple((f.code.co_filename, f.ins.line, f.code.co_qualname) for f in self.frames)
        return BreakRecord(self.cause, self.detail, inner.code.co_filename, inner.ins.line, inner.code.co_qualname, stack)


class Capture(  # type: ignore[misc]
    Wrapping, AttributeAccess, Operations, Texts, TensorCalls, SubGraphs, Symbols, DataDependent, ItemsOfData, Exceptions, Calls,
    MadeModules, NumpyCalls, Builtins
):
    """The state of one capture. `break_at`: number of the executed instruction to break before (see Restart)."""

    TABLES = (functions, classes, eager_functions, copy_, itertools_, table, autograd, random_,
              stdlib, transforms)  # fmt: skip

    def __init__(self, limits: Limits, restart: Restart | None = None, dynamic: Dynamic | None = None) -> None:
        self.begin_symbols(dynamic or Dynamic())
        self.begin_data()
        self.items_of_data = []
        self.limits = limits
        self.restart = restart
        self.graph = self.main = Graph()
        self.levels: list[SubGraph] = []
        self.frozen_since: int | None = None
        self.transforming = False  # within a function transform, whose modes are entered
        self.overlays: dict[tuple[int, str], Value] = {}
        self.guards = GuardSet()
        self.effects = Effects()
        self.inputs: list[TensorValue] = []
        self.by_id: dict[int, Value] = {}
        self.fakes: dict[int, TensorValue] = {}
        self.keep: list[Any] = []
        self.namespaces: dict[int, InstanceDict] = {}  # by id of the value
        self.frames: list[Frame] = []
        self.generators: list[GeneratorValue] = []
        self.mode = FakeMode()
        self.handled: Value | None = None
        self.passed_frames: list[Frame] = []  # by exceptions
        self.steps = 0
        self.mutations = 0
        self.outside = 0  # of them, changes to what is not the captured program's own
        self.unrolled = 0
        self.written: list[TensorValue] = []  # of the inputs
        self.became: list[TensorValue] = []  # took the geometry of views of themselves, in place
        self.effect_nodes: set[Node] = set()
        self.may_refuse = False  # one of the calls may refuse its data
        self.uses_generators = False  # one of the calls draws from a default generator
        self.is_refusal_handled = False  # the program has an `except` or its like around one of the following
        self.fallible: dict[Node, Node] = {}  # calls that may refuse data, each with a tensor that shows it was made
        self.grad_mode: bool = eager.is_grad_enabled()
        self.initial_grad_mode = self.grad_mode
        self.inference: bool = eager_native.inference_mode()
        self.initial_inference = self.inference
        self.switches_inference = False
        self.ambient: int = thread_state.word()
        self.autocast: int = thread_state.autocast_number()
        self.initial_autocast = self.autocast
        self.shown: CodeType | None = None
        self.forbidden = self.initial_forbidden = causes.forbidding()
        self._chain = False
        self._origin: Origin | None = None
        self._origin_key: Any = None

    # -- running -----------------------------------------------------------------------------------------------
    def run(self, root: Frame) -> Finished | Stop:
        """Execute from the root frame's state. Raises: Restart, GiveUp."""
        try:
            signal = self.run_frame(root)
        except BreakFound as found:
            return found.stop  # type: ignore[no-any-return]
        except Raised as error:
            raise GiveUp(causes.EXCEPTION, f"{error.value.python_type().__name__} leaves the captured code") from error
        finally:
            eager_native.set_grad_enabled(self.initial_grad_mode)
            eager_native.set_inference_mode(self.initial_inference)
            thread_state.switch_autocast(self.initial_autocast)
        assert isinstance(signal, Return)
        return Finished(signal.value)

    def begin_step(self, frame: Frame) -> None:
        """Called before each instruction: note the state to come back to; break here if a restart asked for it."""
        self.steps += 1
        frame.step_number = self.steps
        frame.stack_before = list(frame.stack)
        frame.kw_before = frame.kw_names
        frame.mutations_before = self.mutations
        if self.restart is not None and self.steps == self.restart.at:
            self.stop(frame, self.restart.cause, self.restart.detail)

    def stop(self, frame: Frame, cause: Cause, detail: str) -> None:
        """The instruction that `frame` is at cannot be captured. Always raises."""
        for k, candidate in enumerate(self.frames):
            if k and not candidate.chainable:
                raise Restart(self.frames[k - 1].step_number, cause, detail)
        if len(self.frames) > 1 and (cause is causes.FRAME_INTROSPECTION or any(f.decoded.looks_at_callers for f in self.frames[1:])):
            # What looks at its callers, now or after the break, must find them: the outermost call runs as an ordinary one.
            raise Restart(self.frames[0].step_number, cause, detail)
        if self.mutations != frame.mutations_before:
            raise Restart(frame.step_number, cause, detail)
        frame.stack = frame.stack_before
        frame.handled = self.handled
        raise BreakFound(Stop(tuple(self.frames), frame.ins, frame.kw_before, cause, detail))

    def release(self) -> None:
        """The capture is over: drop the user's objects that it held, now and not when cycles are collected."""
        self.by_id.clear()
        self.keep.clear()
        self.namespaces.clear()
        self.inputs.clear()
        self.fakes.clear()
        self.generators.clear()
        self.frames.clear()
        for frame in self.passed_frames:  # they and their exceptions may hold each other
            frame.release()
        self.passed_frames.clear()
        self.handled = None
        self.effects = Effects()
        self.handled = None

    def mutating(self, value: Value | None) -> None:
        """Something changes: an instruction that fails after this cannot simply be undone."""
        self.mutations += 1
        if value is None or value.source is not None:
            self.outside += 1
        if value is not None:
            self.check_change(value)
            self.effects.touch(value)

    def count_unrolled(self) -> None:
        """One more iteration of some loop."""
        self.unrolled += 1
        if self.unrolled > self.limits.unroll:
            raise Unsupported(causes.UNROLL_LIMIT, f"more than {self.limits.unroll} iterations")

    def check_depth(self) -> None:
        if len(self.frames) > self.limits.inline_depth:
            raise Unsupported(causes.INLINE_DEPTH, f"more than {self.limits.inline_depth} nested calls")

    def check_forced(self, frame: Frame) -> None:
        """Tests force a break at every call, or at every call in an inlined function."""
        force = self.limits.force
        if force == "call" or (force == "leaf" and len(self.frames) > 1):
            raise Unsupported(causes.FORCED, "a break at this call was asked for")

    # -- where we are ------------------------------------------------------------------------------------------
    @property
    def origin(self) -> Origin | None:  # type: ignore[override]
        """The user's line: the innermost frame that is not ours."""
        if not self.frames:
            return None
        key = (len(self.frames), self.frames[-1].ins)
        if self._origin_key != key:
            stack = tuple((f.code.co_filename, f.line, f.code.co_qualname) for f in self.frames)
            theirs = next((f for f in reversed(self.frames) if not f.code.co_filename.startswith(_OWN_DIRS)), None)
            self._origin_key = key
            self._origin = self._shown_origin(stack) if theirs is None else theirs.origin(stack)
        return self._origin

    def _shown_origin(self, stack: tuple[tuple[str, int, str], ...]) -> Origin:
        """Where a capture is that has frames of this library alone: at the user's code that its root stands for, if at any."""
        shown = self.shown
        if shown is None or shown.co_filename.startswith(_OWN_DIRS):
            return self.frames[-1].origin(stack)
        return Origin(shown.co_filename, shown.co_firstlineno, "", shown.co_qualname, stack)

    # -- global state ------------------------------------------------------------------------------------------
    def set_grad_mode(self, on: bool) -> bool:
        """Switch the recording of gradients from here on; returns what it was."""
        before = self.grad_mode
        self.mutating(None)
        node = self.graph.call_function(eager_native.set_grad_enabled, (on,), info=NodeInfo(None, self.origin))
        self.effect_nodes.add(node)
        eager_native.set_grad_enabled(on)
        self.grad_mode = on
        return before

    def set_inference_mode(self, on: bool) -> bool:
        """Switch inference mode from here on; returns what it was. The graph runs outside of the mode, and its outputs are
        marked with what their fakes are."""
        before = self.inference
        self.mutating(None)
        self.refuse_later("switches inference mode")
        self.switches_inference = self.switches_inference or on != before
        eager_native.set_inference_mode(on)
        self.inference = on
        return before

    def switch_autocast(self, number: int) -> int:
        """Open or close a block of autocast from here on; returns the number of what it was."""
        before = self.autocast
        self.mutating(None)
        node = self.graph.call_function(thread_state.switch_autocast, (number,), info=NodeInfo(None, self.origin))
        self.effect_nodes.add(node)
        thread_state.switch_autocast(number)
        self.autocast = number
        return before

    def default_dtype(self) -> Value:
        """eager.get_default_dtype(), guarded."""
        found = eager.get_default_dtype()
        self.depend_on_defaults()
        return Constant(found)


