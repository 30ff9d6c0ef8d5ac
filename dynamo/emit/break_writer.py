"""The code behind the graph at a graph break: the state of the frames, the instruction, and the continuation of each frame.

The innermost frame runs the instruction and continues; the frame around it then continues with its result, and so on outwards.
`BreakWriter` first plans every frame (`plan.FramePlan`), then prints the plans.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamo.emit.break_instructions import perform
from dynamo.emit.plan import Branch, Continue, FramePlan, FrameState, Operand, Outcome, Performed, Reenter, Return, Way
from dynamo.emit.writer import CodeGen
from dynamo.frames.capture import Stop
from dynamo.python.finalizers import leads_to, may_be_watched, value_end_is_visible
from dynamo.report import causes

if TYPE_CHECKING:
    from dynamo.frames.frame import Frame


class BreakWriter:
    """Writes the rest of every frame at a graph break."""

    def __init__(self, cg: CodeGen, stop: Stop) -> None:
        self.cg = cg
        self.stop = stop
        self.frames = stop.frames
        inner = stop.frames[-1]
        inner.kw_before = stop.kw_names
        self.performed: Performed | None = None
        # A callee that inspects frames must find the user's frame: the original code continues, with all of its variables.
        self.is_inspected = stop.cause is causes.FRAME_INTROSPECTION
        if inner.handled is None and not self.is_inspected:
            self.performed = perform(cg, inner, stop.instruction)
        self._states: list[FrameState] = []
        self._modules = [f.globals.get("__name__") for f in stop.frames]

    def write(self) -> None:
        """Write the statements, with the return of the outermost frame."""
        self._make_states()
        self.cg.held = tuple(map(self._variables, range(len(self.frames))))
        plan = self._plan(0)
        if len(set(self._modules)) > 1:
            self.cg.statement("global __name__")
        self._print(plan)
        self.cg.statement(f"return {plan.result}")

    # -- the state of the frames -------------------------------------------------------------------------------------
    def _make_states(self) -> None:
        """Make every value that a frame will need, before the instruction runs. A value may be an exception whose traceback
        contains another frame, which then needs all of its variables: repeat until no frame is added."""
        known = -1
        while known != len(self.cg.owners):
            known = len(self.cg.owners)
            if self._is_in_traceback(self.frames[-1]):
                self.performed = None
            states = [self._state(k, frame) for k, frame in enumerate(self.frames)]
            self._states = [self._with_watched(state, frame) for state, frame in zip(states, self.frames, strict=True)]

    def _state(self, k: int, frame: Frame) -> FrameState:
        """The locals and the stack that frame k still needs."""
        inner = k == len(self.frames) - 1
        indices = [] if inner else [frame.pc]
        if inner and self.performed is not None:
            indices = [o.index for o in self.performed.outcomes]
        if (inner and self.performed is None) or frame.decoded.handler(frame.ins.index) is not None:
            indices.append(frame.ins.index)
        bound = {slot: value for slot, value in enumerate(frame.locals) if value is not None}
        kept = {slot for slot, value in bound.items() if value_end_is_visible(value, frame) or leads_to(value, *self.frames)}
        live = sorted({slot for index in indices for slot in frame.live_locals(index)} | kept)
        if (inner and self.is_inspected) or self._is_in_traceback(frame):
            live = list(bound)
        stack = tuple(self.cg.operand(v) for v in frame.stack)
        if frame.handled is not None:
            self.cg.value(frame.handled)
        return FrameState({slot: self.cg.operand(bound[slot]) for slot in live}, stack, sum(1 << slot for slot in kept))

    def _with_watched(self, state: FrameState, frame: Frame) -> FrameState:
        """The state with the unread variables whose values the instruction or a callee may reference weakly: a value that code can
        observe lives as long as its variable."""
        locals_, kept = dict(state.locals), state.kept
        for slot, value in enumerate(frame.locals):
            if value is not None and slot not in locals_ and may_be_watched(value, frame, self.cg.is_made):
                locals_[slot] = self.cg.operand(value)
                kept |= 1 << slot
        return FrameState(locals_, state.stack, kept)

    def _is_in_traceback(self, frame: Frame) -> bool:
        """Whether the traceback of a living exception contains the frame. The frame then continues in its own code, because its
        variables live as long as the traceback."""
        return id(frame) in self.cg.owners

    def _exceptions_through(self, frame: Frame) -> list[Operand]:
        """The exceptions whose tracebacks contain the frame, which is still running."""
        return [self.cg.operand(e) for e in self.cg.raised.values() if any(p.frame is frame for p in e.passed)]

    def _variables(self, k: int) -> tuple[tuple[str, str], ...]:
        """(variable of frame k, variable of the generated function) of the locals that the generated function holds."""
        names = self.frames[k].decoded.slots
        return tuple((names[slot], value.text) for slot, value in self._states[k].locals.items() if value.is_variable)

    def _needed_by(self, k: int) -> set[Operand]:
        """The operands that frame k needs."""
        state, frame = self._states[k], self.frames[k]
        handled = [self.cg.operand(frame.handled)] if frame.handled is not None else []
        return {*state.locals.values(), *state.stack, *handled, *self._exceptions_through(frame)}

    # -- the plan ----------------------------------------------------------------------------------------------------
    def _plan(self, k: int) -> FramePlan:
        """The plan of frame k and of the frames inside it."""
        frame, cg = self.frames[k], self.cg
        result = cg.local("result")
        if k < len(self.frames) - 1:
            inner: FramePlan | None = self._plan(k + 1)
            assert inner is not None
            step = Performed(0, (), (Outcome(None, frame.pc, (inner.result,)),))
        elif self.performed is not None:
            inner, step = None, self.performed
        else:
            way = self._reenter(k, frame.ins.start, self._states[k].stack)
            return FramePlan(k, result, None, (), (Branch(None, way, ()),))
        branches = tuple(self._branch(k, step.pops, outcome) for outcome in step.outcomes)
        if frame.decoded.handler(frame.ins.index) is None:
            return FramePlan(k, result, inner, step.statements, branches)
        error = cg.local("error")
        on_error = self._reenter(k, frame.ins.start, self._states[k].stack, error)
        return FramePlan(k, result, inner, step.statements, branches, on_error, error)

    def _branch(self, k: int, pops: int, outcome: Outcome) -> Branch:
        """The continuation of frame k after an outcome."""
        frame, state = self.frames[k], self._states[k]
        stack = (*state.stack[: len(state.stack) - pops], *outcome.pushes)
        return Branch(outcome.condition, self._way(k, frame, outcome, stack), outcome.pushes)

    def _way(self, k: int, frame: Frame, outcome: Outcome, stack: tuple[Operand, ...]) -> Way:
        returned = self._returned(frame, outcome.index, stack)
        if returned is not None:
            return Return(returned)
        if k < len(self.frames) - 1 and (frame.handled is not None or self._is_in_traceback(frame)):
            return self._reenter(k, frame.decoded.instructions[outcome.index].start, stack)
        state = self._states[k]
        locals_ = {slot: value for slot, value in {**state.locals, **outcome.stores}.items() if value is not None}
        live = frame.decoded.live_slots(outcome.index) | state.kept & ~sum(1 << slot for slot in outcome.stores)
        slots = [i for i in sorted(locals_) if live >> i & 1]
        target = self.cg.compiler.continuation(frame, outcome.index, slots, tuple(item.is_null for item in stack))
        arguments = (*(locals_[i] for i in slots), *(item for item in stack if not item.is_null))
        return Continue(self.cg.global_(target, "continuation"), arguments)

    def _returned(self, frame: Frame, index: int, stack: tuple[Operand, ...]) -> Operand | None:
        """The returned operand if only a return follows."""
        instructions = frame.decoded.instructions
        if instructions[index].name == "POP_TOP" and stack:
            stack, index = stack[:-1], index + 1
            if instructions[index].name == "LOAD_CONST" and instructions[index + 1].name == "RETURN_VALUE":
                return self.cg.operand(frame.constant(frame.code.co_consts[instructions[index].arg]))
        ins = instructions[index]
        if ins.name == "RETURN_VALUE" and stack:
            return stack[-1]
        if ins.name == "RETURN_CONST":
            return self.cg.operand(frame.constant(frame.code.co_consts[ins.arg]))
        return None

    def _reenter(self, k: int, offset: int, stack: tuple[Operand, ...], error: Operand | None = None) -> Reenter:
        """The original frame in plain Python from `offset` on."""
        frame, cg = self.frames[k], self.cg
        locals_ = self._states[k].locals
        every = tuple(locals_.get(i, cg.null) for i in range(len(frame.decoded.slots)))
        handled = cg.operand(frame.handled) if frame.handled is not None else None
        shown = (cg.owners[id(frame)], *self._exceptions_through(frame)) if self._is_in_traceback(frame) else ()
        return Reenter(cg.global_(cg.compiler.reenter(frame), "reenter"), offset, every, stack, error, handled, shown)

    # -- printing ----------------------------------------------------------------------------------------------------
    def _print(self, plan: FramePlan) -> None:
        """Write the rest of a frame, which ends with its result in `plan.result`."""
        cg = self.cg
        if plan.on_error is None:
            self._print_step(plan)
            self._print_branches(plan)
            return
        cg.statement(f"{plan.error} = None")
        cg.statement("try:")
        with cg.indented():
            self._print_step(plan)
        error = cg.fresh("e")
        cg.statement(f"except BaseException as {error}:")
        cg.statement(f"    {plan.error} = {cg.helper('caught')}({error}, {plan.depth})")
        cg.statement(f"if {plan.error} is not None:")
        with cg.indented():
            assert plan.error is not None
            self._print_way(plan, plan.on_error, (plan.error,))
        cg.statement("else:")
        with cg.indented():
            self._print_branches(plan)

    def _print_step(self, plan: FramePlan) -> None:
        """Write the instruction, or the rest of the frame that this one called."""
        if plan.inner is not None:
            self._print(plan.inner)
        elif plan.statements:
            self._set_module(plan.depth)
            for statement in plan.statements:
                self._marked(len(self.frames), statement)

    def _print_branches(self, plan: FramePlan) -> None:
        cg = self.cg
        for branch in plan.branches:
            if branch.condition is None and len(plan.branches) == 1:
                self._print_way(plan, branch.way, branch.names)
                continue
            cg.statement(f"if {branch.condition}:" if branch.condition is not None else "else:")
            with cg.indented():
                self._print_way(plan, branch.way, branch.names)

    def _print_way(self, plan: FramePlan, way: Way, names: tuple[Operand, ...]) -> None:
        """Write one branch.

        The outermost frame continues after the generated function has returned and has released its variables; before
        an inner frame continues, the function releases every variable that no frame around it needs.

        names: the variables of this branch.
        """
        k, cg = plan.depth, self.cg
        if isinstance(way, Return):
            self._marked(k, f"{plan.result} = {way.value}")
            return
        self._marked(k, f"{plan.result} = {self._tail(way)}")
        if k == 0:
            return
        needed = set().union(*map(self._needed_by, range(k)))
        released = {*cg.variables(), *(name for name in names if name.is_variable)} - needed
        if released:
            self._marked(k, f"{' = '.join(sorted(name.text for name in released))} = None")
        self._set_module(k - 1)
        self._marked(k, f"{plan.result} = {cg.helper('drive')}({plan.result})")

    def _tail(self, way: Continue | Reenter) -> str:
        """The expression of a tail: the code and the arguments with which a frame continues."""
        cg = self.cg
        if isinstance(way, Continue):
            return f"{cg.helper('tail')}({', '.join(map(str, (way.target, *way.arguments)))})"
        items = f"[{', '.join(map(str, way.stack))}]"  # lists: re-entry empties them
        handled = cg.null.text
        if way.handled is not None:
            handled = f"[{way.handled}]"
            items = f"{cg.helper('with_tracebacks')}({way.handled}, {items})"
        shown = f"[{', '.join(map(str, way.shown))}]" if way.shown else "()"
        locals_ = "".join(f"{value}, " for value in way.locals)
        return f"{cg.helper('tail')}({way.target}, {way.offset}, [{locals_}], {items}, [{way.error}], {handled}, {shown})"

    def _marked(self, frames: int, statement: str) -> None:
        """Write a statement through which a traceback shows so many of the frames."""
        self.cg.mark, before = frames, self.cg.mark
        self.cg.statement(statement)
        self.cg.mark = before

    def _set_module(self, k: int) -> None:
        """Write the statement that makes the module of frame k the module of the caller: a callee may read it, as namedtuple does.
        From CPython 3.12 on, a callee reads the module of the function."""
        if len(set(self._modules)) > 1:
            self.cg.own_function = self.cg.own_function or self.cg.fresh("own_function")
            self.cg.statement(f"__name__ = {self.cg.own_function}().__module__ = {self.cg.constant(self._modules[k])}")
