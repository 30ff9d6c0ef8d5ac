"""Instructions that move values between the stack, constants and local variables."""

from __future__ import annotations

from dynamo.bytecode.decode import Instruction
from dynamo.frames.frame import Frame
from dynamo.frames.handlers import op
from dynamo.python.finalizers import cell_drop_is_visible, drop_is_visible, drops_iterator
from dynamo.report import causes
from dynamo.report.errors import Unsupported
from dynamo.values.base import NULL
from dynamo.values.functions import CellValue
from dynamo.values.protocols import Value


@op("NOP", "RESUME", "RESUME_CHECK", "NOT_TAKEN")
def nop(frame: Frame, ins: Instruction) -> None:
    return None


@op("POP_TOP", "END_FOR")
def pop_top(frame: Frame, ins: Instruction) -> None:
    value = frame.pop_raw()
    if drops_iterator(frame, value) or drop_is_visible(frame, value):
        raise Unsupported(causes.GENERATOR, f"{value.describe()} is dropped, which may run code")


@op("PUSH_NULL")
def push_null(frame: Frame, ins: Instruction) -> None:
    frame.push(NULL)


@op("COPY")
def copy(frame: Frame, ins: Instruction) -> None:
    frame.push(frame.stack[-ins.arg])


@op("SWAP")
def swap(frame: Frame, ins: Instruction) -> None:
    stack = frame.stack
    stack[-1], stack[-ins.arg] = stack[-ins.arg], stack[-1]


@op("LOAD_CONST")
def load_const(frame: Frame, ins: Instruction) -> None:
    frame.push(frame.constant(frame.code.co_consts[ins.arg]))


@op("LOAD_SMALL_INT")
def load_small_int(frame: Frame, ins: Instruction) -> None:
    frame.push(frame.constant(ins.arg))


def _load(frame: Frame, slot: int) -> Value:
    value = frame.locals[slot]
    if value is None:
        name = frame.decoded.slots[slot]
        frame.cap.raise_(UnboundLocalError, f"cannot access local variable '{name}' where it is not associated with a value")
        raise AssertionError
    return value


@op("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW")
def load_fast(frame: Frame, ins: Instruction) -> None:
    frame.push(_load(frame, ins.arg))


@op("LOAD_CLOSURE")
def load_closure(frame: Frame, ins: Instruction) -> None:
    value = frame.locals[ins.arg]
    assert value is not None
    frame.push(value)


@op("LOAD_FAST_AND_CLEAR")
def load_fast_and_clear(frame: Frame, ins: Instruction) -> None:
    value = frame.locals[ins.arg]
    frame.push(NULL if value is None else value)
    frame.locals[ins.arg] = None


def _store(frame: Frame, slot: int, value: Value | None) -> None:
    """Bind a variable, or unbind it."""
    before = frame.locals[slot]
    frame.locals[slot] = value
    if before is not None and drop_is_visible(frame, before):
        frame.locals[slot] = before
        raise Unsupported(causes.GENERATOR, f"{before.describe()} is dropped, which may run code")


@op("STORE_FAST", "STORE_FAST_MAYBE_NULL")
def store_fast(frame: Frame, ins: Instruction) -> None:
    value = frame.pop_raw()
    _store(frame, ins.arg, None if value is NULL else value)


@op("DELETE_FAST")
def delete_fast(frame: Frame, ins: Instruction) -> None:
    _load(frame, ins.arg)
    _store(frame, ins.arg, None)


@op("LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW")
def load_fast_load_fast(frame: Frame, ins: Instruction) -> None:
    frame.push(_load(frame, ins.arg >> 4))
    frame.push(_load(frame, ins.arg & 15))


@op("STORE_FAST_LOAD_FAST")
def store_fast_load_fast(frame: Frame, ins: Instruction) -> None:
    _store(frame, ins.arg >> 4, frame.pop_raw())
    frame.push(_load(frame, ins.arg & 15))


@op("STORE_FAST_STORE_FAST")
def store_fast_store_fast(frame: Frame, ins: Instruction) -> None:
    first = frame.locals[ins.arg >> 4]
    _store(frame, ins.arg >> 4, frame.pop_raw())
    try:
        _store(frame, ins.arg & 15, frame.pop_raw())
    except Unsupported:
        frame.locals[ins.arg >> 4] = first
        raise


@op("MAKE_CELL")
def make_cell(frame: Frame, ins: Instruction) -> None:
    frame.locals[ins.arg] = CellValue(frame.locals[ins.arg], None, frame.decoded.slots[ins.arg])


@op("COPY_FREE_VARS")
def copy_free_vars(frame: Frame, ins: Instruction) -> None:
    frame.bind_closure()


def cell_at(frame: Frame, slot: int) -> CellValue:
    """The cell in a cell or free-variable slot."""
    held = frame.locals[slot]
    assert held is not None
    cell = frame.cap.realize(held)
    assert isinstance(cell, CellValue), cell
    return cell


def _store_cell(frame: Frame, slot: int, value: Value | None) -> None:
    cell = cell_at(frame, slot)
    if cell_drop_is_visible(frame, cell):
        raise Unsupported(causes.GENERATOR, f"the contents of {cell.name} are dropped, which may run code")
    cell.store(frame.cap, value)


def load_cell(frame: Frame, slot: int) -> Value:
    """Contents of a cell. Raises NameError or UnboundLocalError in the captured program."""
    value = cell_at(frame, slot).load(frame.cap)
    if value is None:
        name = frame.decoded.slots[slot]
        if frame.decoded.kinds[slot] & 0x80:
            message = f"cannot access free variable '{name}' where it is not associated with a value in enclosing scope"
            frame.cap.raise_(NameError, message)
        frame.cap.raise_(UnboundLocalError, f"cannot access local variable '{name}' where it is not associated with a value")
        raise AssertionError
    return value


@op("LOAD_DEREF")
def load_deref(frame: Frame, ins: Instruction) -> None:
    frame.push(load_cell(frame, ins.arg))


@op("STORE_DEREF")
def store_deref(frame: Frame, ins: Instruction) -> None:
    _store_cell(frame, ins.arg, frame.pop_raw())


@op("DELETE_DEREF")
def delete_deref(frame: Frame, ins: Instruction) -> None:
    load_cell(frame, ins.arg)
    _store_cell(frame, ins.arg, None)
