"""Generator frames: they run step by step inside the frame that consumes them."""

from __future__ import annotations

from dynamo.bytecode.decode import Instruction
from dynamo.frames.frame import Frame
from dynamo.frames.handlers import Yield, op
from dynamo.report import causes
from dynamo.report.errors import Unsupported
from dynamo.values.base import NONE, Constant
from dynamo.values.functions import GeneratorValue
from dynamo.values.iterators import Iterator
from dynamo.values.protocols import Value


@op("RETURN_GENERATOR")
def return_generator(frame: Frame, ins: Instruction) -> None:
    # The call made the generator object; the first step starts here, with the value that send() passed.
    frame.push(NONE)


@op("YIELD_VALUE")
def yield_value(frame: Frame, ins: Instruction) -> Yield:
    return Yield(frame.pop())


@op("GET_YIELD_FROM_ITER")
def get_yield_from_iter(frame: Frame, ins: Instruction) -> None:
    frame.push(frame.cap.iteration.iter(frame.pop()))


@op("SEND")
def send(frame: Frame, ins: Instruction) -> None:
    value = frame.pop()
    receiver = frame.cap.realize(frame.stack[-1])
    found, returned = _step(frame, receiver, value)
    if found is not None:
        frame.push(found)
        return
    _finish_send(frame, returned)
    frame.pc = ins.target


def _step(frame: Frame, receiver: Value, value: Value) -> tuple[Value | None, Value]:
    if isinstance(receiver, GeneratorValue):
        return receiver.send(frame.cap, value), receiver.returned
    if isinstance(receiver, Iterator) and isinstance(value, Constant) and value.holds(None):
        return frame.cap.iteration.next(receiver), NONE
    raise Unsupported(causes.GENERATOR, f"yield from {receiver.describe()}")


def _finish_send(frame: Frame, returned: Value) -> None:
    """The delegate is exhausted. CPython 3.11 pops it here; later versions pop it in END_SEND."""
    if frame.pops_delegate:
        frame.pop_raw()
    frame.push(returned)


@op("END_SEND")
def end_send(frame: Frame, ins: Instruction) -> None:
    value = frame.pop_raw()
    frame.pop_raw()
    frame.push(value)


@op("CLEANUP_THROW")
def cleanup_throw(frame: Frame, ins: Instruction) -> None:
    raise Unsupported(causes.GENERATOR, "throw() into a generator that delegates")
