"""The frame executor: one captured frame, its locals, stack and handlers, executed instruction by instruction; and the stack of frames.

Owns control flow within a frame (the program counter, the exception table, the restart and break protocol), the running frames of
one capture, and the generators that the captured program started. `opcodes/` has the meaning of instructions, `values/` the
behaviour of values, `capture.Capture` the state that all frames share.
"""

from __future__ import annotations

import linecache
import sys
from types import CodeType
from typing import Any, Final, NoReturn, Protocol

from dynamo.bytecode.decode import CO_GENERATOR_LIKE, Decoded, Handler, Instruction, Place, decode
from dynamo.frames.handlers import HANDLERS, Return, Yield
from dynamo.python.exceptions import Exceptions
from dynamo.python.finalizers import drops_iterator, return_is_visible
from dynamo.recording.recorder import Recorder
from dynamo.report import causes
from dynamo.report.causes import Cause
from dynamo.report.errors import Restart, Unsupported
from dynamo.values.base import NULL, Constant, Lazy
from dynamo.values.functions import FunctionValue, GeneratorValue, bind, unbound
from dynamo.values.protocols import Machine, NotConstant, Raised, Value
from dynamo.world.side_effects import Effects
from eager.base import logs
from fxir.base.origin import Origin
from fxir.symbols.shapes import GuardOnDataDependentSymNode

TRACE_BYTECODE: Final = logs.artifact("trace_bytecode")
TRACE_SOURCE: Final = logs.artifact("trace_source")
_CO_GENERATOR: Final = 0x20


class Executor(Machine, Protocol):
    """The capture, as its frames see it.

    restart: where to break, if an earlier attempt found an instruction that it cannot capture.
    """

    steps: int
    restart: Restart | None

    @property
    def exceptions(self) -> Exceptions: ...
    @property
    def effects(self) -> Effects: ...
    @property
    def recorder(self) -> Recorder: ...
    def stop(self, frame: Frame, cause: Cause, detail: str) -> NoReturn:
        """End the graph before the current instruction of `frame`."""
        ...

    def check_forced(self) -> None:
        """Raises: Unsupported if a test forces a break at this call."""
        ...


class Frame:
    """One frame of the captured program.

    locals: by localsplus slot, None for unbound. chainable: the calling instruction only pushes the result, so that a
    graph break inside can return into the caller. handled: the value of sys.exc_info() when the frame called a callee.
    """

    pops_delegate: Final = sys.version_info < (3, 12)

    def __init__(
        self, cap: Executor, code: CodeType, global_ns: dict[str, Any], locals_: list[Value | None],
        stack: list[Value] | None = None, pc: int = 0, fn: FunctionValue | None = None, chainable: bool = True,
    ) -> None:  # fmt: skip
        self.cap = cap
        self.code = code
        self.decoded: Decoded = decode(code)
        self.globals = global_ns
        self.locals: list[Value | None] = locals_ + [None] * (len(self.decoded.slots) - len(locals_))
        self.stack: list[Value] = stack if stack is not None else []
        self.pc = pc
        self.fn = fn
        self.chainable = chainable
        self.kw_names: tuple[str, ...] = ()
        self.ins: Instruction = self.decoded.instructions[pc]
        self.step_number = 0  # number of the current instruction in the whole capture
        self.stack_before: list[Value] = []
        self.kw_before: tuple[str, ...] = ()
        self.mutations_before = 0
        self.handled: Value | None = None
        self._line = -1

    # -- stack -------------------------------------------------------------------------------------------------
    def push(self, value: Value) -> None:
        self.stack.append(value)

    def pop_raw(self) -> Value:
        """Pop a value without realizing it."""
        return self.stack.pop()

    def pop(self) -> Value:
        """Pop a value and realize it."""
        value = self.stack.pop()
        return value.realize(self.cap) if isinstance(value, Lazy) else value

    def pop_many(self, n: int) -> list[Value]:
        if n == 0:
            return []
        items = self.stack[-n:]
        del self.stack[-n:]
        return items

    def at(self, depth: int) -> Value:
        """The value `depth` below the top (1 is the top), realized."""
        return self.cap.realize(self.stack[-depth])

    def constant(self, value: Any) -> Value:
        """A value of co_consts."""
        if isinstance(value, tuple | frozenset):
            return self.cap.world.wrap_static(value, "constant")  # the same object at each call
        return self.cap.world.wrap_new(value)

    def bind_closure(self) -> None:
        """COPY_FREE_VARS: put the cells of the function into their slots."""
        assert self.fn is not None
        first = len(self.decoded.slots) - len(self.code.co_freevars)
        self.locals[first:] = self.fn.closure(self.cap)

    def bound(self) -> dict[str, Value]:
        """The user's variables that have values, by name."""
        return {n: v for n, v in zip(self.decoded.slots, self.locals, strict=True) if v is not None and v is not NULL}

    def release(self) -> None:
        """Drop the values of the frame at the end of the capture."""
        self.locals, self.stack, self.stack_before, self.handled = [], [], [], None

    # -- running -----------------------------------------------------------------------------------------------
    def run(self) -> Return | Yield:
        """Execute until the frame returns or yields. Raises Raised when an exception leaves it."""
        cap = self.cap
        instructions = self.decoded.instructions
        while True:
            ins = self.ins = instructions[self.pc]
            self._begin_step(cap)
            if ins.line != self._line:
                self._line = ins.line
                if TRACE_SOURCE.enabled:
                    TRACE_SOURCE.log(f"TRACE {self.code.co_filename}:{ins.line} in {self.code.co_qualname}")
            if TRACE_BYTECODE.enabled:
                TRACE_BYTECODE.log(f"{ins.offset:5} {ins.name} {ins.arg} {self.stack[-4:]}")
            self.pc += 1
            try:
                handler = HANDLERS.get(ins.name)
                if handler is None:
                    raise Unsupported(causes.INSTRUCTION, ins.name)
                signal = handler(self, ins)
            except Raised as error:
                if self._drops_iterators():
                    cap.stop(self, causes.GENERATOR, "an exception ends the loop over an iterator from outside")
                if self.decoded.handler(self.ins.index) is None and return_is_visible(self, error.value):
                    cap.stop(self, causes.GENERATOR, f"an exception leaves {self.code.co_qualname}, whose variables live as long as it")
                if not self._unwind(error):
                    raise
            except Unsupported as error:
                cap.stop(self, error.cause, error.detail)
            except GuardOnDataDependentSymNode as error:
                cap.stop(self, causes.DATA_DEPENDENT_BRANCH, str(error))
            except NotConstant as error:
                cap.stop(self, causes.OPAQUE_OBJECT, f"a constant is needed, and {error.args[0].describe()} is not one")
            else:
                if signal is not None:
                    return signal

    def _begin_step(self, cap: Executor) -> None:
        """Save the state to which a break before this instruction returns; break here if a restart requires it."""
        cap.steps += 1
        self.step_number = cap.steps
        self.stack_before = list(self.stack)
        self.kw_before = self.kw_names
        self.mutations_before = cap.effects.mutations
        if cap.restart is not None and cap.steps == cap.restart.at:
            cap.stop(self, cap.restart.cause, cap.restart.detail)

    def _drops_iterators(self) -> bool:
        """Whether the exception drops the last reference to an iterator from outside.

        If the iterator is a generator that is suspended in a try or with block, its code would run then.
        """
        handler = self.decoded.handler(self.ins.index)
        dropped = self.stack_before[handler.depth if handler is not None else 0 :]
        return any(drops_iterator(self, v) for v in dropped)

    def resume_with(self, exception: Value) -> Return | Yield:
        """Raise `exception` at the current instruction, and continue."""
        if not self._unwind(Raised(exception)):
            raise Raised(exception)
        return self.run()

    def _unwind(self, error: Raised) -> bool:
        """Jump to the handler of the current instruction; False if the exception leaves the frame."""
        bare = self.ins.name == "RAISE_VARARGS" and self.ins.arg == 0 and error.value is self.cap.frames.handled
        if not bare and self.ins.name != "RERAISE":
            self.cap.exceptions.passes(error.value, self)
        handler = self.decoded.handler(self.ins.index)
        self.kw_names = ()
        if handler is None:
            return False
        self.enter_handler(handler, error.value)
        return True

    def enter_handler(self, handler: Handler, exception: Value) -> None:
        """Set the stack and the program counter to the start of a handler."""
        del self.stack[handler.depth :]
        if handler.push_lasti:
            self.push(Constant(self.ins.offset // 2))
        self.push(exception)
        self.pc = handler.target

    @property
    def in_block(self) -> bool:
        """Whether a handler that the user wrote covers the current instruction."""
        handler = self.decoded.handler(self.ins.index)
        # 3.12+ wraps every generator in a handler that converts StopIteration.
        return handler is not None and self.decoded.instructions[handler.target].name != "CALL_INTRINSIC_1"

    # -- reporting ---------------------------------------------------------------------------------------------
    def place(self) -> Place:
        """The position of the frame, for tracebacks."""
        return Place(self.code, self.globals, self.ins.offset)

    @property
    def line(self) -> int:
        return self.ins.line

    def origin(self, stack: tuple[tuple[str, int, str], ...] = ()) -> Origin:
        """The user's line at the current instruction."""
        code = self.code
        source = linecache.getline(code.co_filename, self.ins.line).strip()
        return Origin(code.co_filename, self.ins.line, source, code.co_qualname, stack)

    def live_locals(self, index: int) -> list[int]:
        """Bound slots that may be read at or after instruction `index`."""
        mask = self.decoded.live_slots(index)
        return [i for i, value in enumerate(self.locals) if value is not None and mask >> i & 1]


class FrameStack:
    """Owns the running frames, outermost first, the exception that they handle, and every generator of the captured program.

    deepest: the limit of nested frames. passed: the frames that exceptions have passed; the tracebacks of these exceptions hold them.
    """

    def __init__(self, cap: Executor, deepest: int) -> None:
        self.cap = cap
        self.deepest = deepest
        self.running: list[Frame] = []
        self.generators: list[GeneratorValue] = []
        self.handled: Value | None = None
        self.passed: list[Frame] = []

    def run(self, frame: Frame) -> Return | Yield:
        """Run `frame` on top of the running frames."""
        caller = self.running[-1] if self.running else None
        if caller is not None:
            caller.handled = self.handled
        self.running.append(frame)
        try:
            return frame.run()
        finally:
            self.running.pop()

    def follow(self, fn: FunctionValue, args: list[Value], kwargs: dict[str, Value], chain: bool) -> Value:
        """fn(*args, **kwargs): executes the frame of the function.

        chain: the calling instruction only pushes the result.
        """
        if fn.code.co_flags & CO_GENERATOR_LIKE:
            return self._generator(fn, args, kwargs)
        if len(self.running) > self.deepest:
            raise Unsupported(causes.INLINE_DEPTH, f"more than {self.deepest} nested calls")
        slots = bind(self.cap, fn, args, kwargs)
        signal = self.run(Frame(self.cap, fn.code, fn.globals, slots, fn=fn, chainable=chain))
        assert isinstance(signal, Return)
        return signal.value

    def _generator(self, fn: FunctionValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if not fn.code.co_flags & _CO_GENERATOR:
            raise Unsupported(causes.GENERATOR, f"{fn.describe()} is a coroutine")
        slots = bind(self.cap, fn, args, kwargs)
        given = unbound(fn.code, slots)
        frame = Frame(self.cap, fn.code, fn.globals, slots, fn=fn, chainable=False)
        made = GeneratorValue(frame, fn, *given, self.cap.steps)
        self.generators.append(made)
        return made

    def step(self, frame: Frame, exception: Value | None) -> tuple[bool, Value]:
        """One step of a generator's frame. Returns (whether it yielded, the value)."""
        outer = self.handled
        self.running.append(frame)
        try:
            signal = frame.run() if exception is None else frame.resume_with(exception)
        finally:
            self.running.pop()
            self.handled = outer
        return isinstance(signal, Yield), signal.value

    def release(self) -> None:
        """Drop the values of the frames. Frames and the exceptions that passed them may refer to each other."""
        self.generators.clear()
        self.running.clear()
        for frame in self.passed:
            frame.release()
        self.passed.clear()
        self.handled = None
