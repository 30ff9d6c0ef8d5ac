"""The frames that are running within one capture, and the generators that were started in it."""

from __future__ import annotations

from typing import Final

from dynamo.bytecode.decode import CO_GENERATOR_LIKE
from dynamo.frames.frame import Executor, Frame
from dynamo.frames.handlers import Return, Yield
from dynamo.report import causes
from dynamo.report.errors import Unsupported
from dynamo.values.functions import FunctionValue, GeneratorValue, bind, unbound
from dynamo.values.protocols import Value

_CO_GENERATOR: Final = 0x20


class FrameStack:
    """Owns the running frames, outermost first, and every generator of the captured program.

    deepest: the limit of nested frames.
    """

    def __init__(self, cap: Executor, deepest: int) -> None:
        self.cap = cap
        self.deepest = deepest
        self.running: list[Frame] = []
        self.generators: list[GeneratorValue] = []

    def run(self, frame: Frame) -> Return | Yield:
        """Run `frame` on top of the running frames."""
        caller = self.running[-1] if self.running else None
        if caller is not None:
            caller.handled = self.cap.exceptions.handled
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
        outer = self.cap.exceptions.handled
        self.running.append(frame)
        try:
            signal = frame.run() if exception is None else frame.resume_with(exception)
        finally:
            self.running.pop()
            self.cap.exceptions.handled = outer
        return isinstance(signal, Yield), signal.value

    def release(self) -> None:
        """Drop the values of the frames."""
        self.generators.clear()
        self.running.clear()
