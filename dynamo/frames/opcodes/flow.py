"""Jumps, loops and pattern matching."""

from __future__ import annotations

from typing import Final

from dynamo.bytecode.decode import VERSION, Instruction
from dynamo.frames.frame import Frame
from dynamo.frames.handlers import op
from dynamo.report import causes
from dynamo.report.errors import Unsupported
from dynamo.values.base import NONE, Constant, is_none
from dynamo.values.mappings import DictValue
from dynamo.values.objects import ClassValue, UserObject
from dynamo.values.protocols import Value
from dynamo.values.sequences import TupleValue


@op("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT")
def jump(frame: Frame, ins: Instruction) -> None:
    frame.pc = ins.target


@op("POP_JUMP_IF_TRUE", "POP_JUMP_FORWARD_IF_TRUE", "POP_JUMP_BACKWARD_IF_TRUE")
def pop_jump_if_true(frame: Frame, ins: Instruction) -> None:
    if frame.cap.truth(frame.pop()):
        frame.pc = ins.target


@op("POP_JUMP_IF_FALSE", "POP_JUMP_FORWARD_IF_FALSE", "POP_JUMP_BACKWARD_IF_FALSE")
def pop_jump_if_false(frame: Frame, ins: Instruction) -> None:
    if not frame.cap.truth(frame.pop()):
        frame.pc = ins.target


@op("POP_JUMP_IF_NONE", "POP_JUMP_FORWARD_IF_NONE", "POP_JUMP_BACKWARD_IF_NONE")
def pop_jump_if_none(frame: Frame, ins: Instruction) -> None:
    if is_none(frame.pop()):
        frame.pc = ins.target


@op("POP_JUMP_IF_NOT_NONE", "POP_JUMP_FORWARD_IF_NOT_NONE", "POP_JUMP_BACKWARD_IF_NOT_NONE")
def pop_jump_if_not_none(frame: Frame, ins: Instruction) -> None:
    if not is_none(frame.pop()):
        frame.pc = ins.target


@op("JUMP_IF_TRUE_OR_POP")
def jump_if_true_or_pop(frame: Frame, ins: Instruction) -> None:
    if frame.cap.truth(frame.stack[-1]):
        frame.pc = ins.target
    else:
        frame.pop_raw()


@op("JUMP_IF_FALSE_OR_POP")
def jump_if_false_or_pop(frame: Frame, ins: Instruction) -> None:
    if not frame.cap.truth(frame.stack[-1]):
        frame.pc = ins.target
    else:
        frame.pop_raw()


@op("GET_ITER")
def get_iter(frame: Frame, ins: Instruction) -> None:
    frame.push(frame.cap.iteration.iter(frame.pop()))


@op("FOR_ITER")
def for_iter(frame: Frame, ins: Instruction) -> None:
    item = frame.cap.iteration.next(frame.stack[-1])
    if item is not None:
        frame.push(item)
        return
    frame.pop_raw()
    frame.pc = for_exit(ins)


def for_exit(ins: Instruction) -> int:
    """The instruction after the loop: FOR_ITER jumps there when the iterator ends, and pops the iterator."""
    return ins.target + VERSION.for_exit_skip


@op("GET_LEN")
def get_len(frame: Frame, ins: Instruction) -> None:
    frame.push(frame.cap.operators.length(frame.stack[-1]))


# --- match -----------------------------------------------------------------------------------------------------


_SEQUENCE: Final = 1 << 5  # Py_TPFLAGS_SEQUENCE and MAPPING
_MAPPING: Final = 1 << 6


@op("MATCH_SEQUENCE")
def match_sequence(frame: Frame, ins: Instruction) -> None:
    value = frame.cap.realize(frame.stack[-1])
    frame.push(Constant(bool(value.python_type().__flags__ & _SEQUENCE)))


@op("MATCH_MAPPING")
def match_mapping(frame: Frame, ins: Instruction) -> None:
    value = frame.cap.realize(frame.stack[-1])
    frame.push(Constant(bool(value.python_type().__flags__ & _MAPPING)))


@op("MATCH_KEYS")
def match_keys(frame: Frame, ins: Instruction) -> None:
    keys, subject = frame.cap.realize(frame.stack[-1]), frame.cap.realize(frame.stack[-2])
    if not isinstance(subject, DictValue):
        raise Unsupported(causes.INSTRUCTION, f"a mapping pattern on {subject.describe()}")
    wanted = frame.cap.iteration.unpack(keys)
    hashed = [frame.cap.operators.hash_key(k) for k in wanted]
    for i, key in enumerate(hashed):
        if key in hashed[:i]:
            text = frame.cap.formatting.text(wanted[i], repr).as_constant()
            frame.cap.raise_(ValueError, f"mapping pattern checks duplicate key ({text})")
    found = [subject.get(frame.cap, key) for key in wanted]
    if any(v is None for v in found):
        frame.push(NONE)
    else:
        frame.push(TupleValue([v for v in found if v is not None]))


@op("MATCH_CLASS")
def match_class(frame: Frame, ins: Instruction) -> None:
    cap = frame.cap
    names, cls, subject = frame.pop(), frame.pop(), frame.pop()
    if not isinstance(cls, ClassValue):
        raise Unsupported(causes.INSTRUCTION, f"a class pattern with {cls.describe()}")
    if not cap.classes.isinstance(subject, cls):
        frame.push(NONE)
        return
    found: list[Value] = []
    keys = [cap.realize(n).as_constant() for n in cap.iteration.unpack(names)]
    if ins.arg and cls.cls in (bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple):
        if ins.arg > 1:
            cap.raise_(TypeError, f"{cls.cls.__name__}() accepts 1 positional sub-pattern ({ins.arg} given)")
        found.append(subject)
    elif ins.arg:
        keys = [*_match_args(frame, cls, ins.arg), *keys]
    for i, key in enumerate(keys):
        if key in keys[:i]:
            cap.raise_(TypeError, f"{cls.cls.__name__}() got multiple sub-patterns for attribute {key!r}")
        if isinstance(subject, UserObject) and not cap.attributes.has(subject, key):
            frame.push(NONE)
            return
        found.append(subject.getattr(cap, key))
    frame.push(TupleValue(found))


def _match_args(frame: Frame, cls: ClassValue, n: int) -> list[str]:
    cap = frame.cap
    given_names: list[Value] = []
    if cap.attributes.has(cls, "__match_args__"):
        given = cap.realize(cls.getattr(cap, "__match_args__"))
        if not isinstance(given, TupleValue):
            cap.raise_(TypeError, f"{cls.cls.__name__}.__match_args__ must be a tuple (got {given.python_type().__name__})")
        given_names = given.items
    if n > len(given_names):
        plural = "" if len(given_names) == 1 else "s"
        cap.raise_(TypeError, f"{cls.cls.__name__}() accepts {len(given_names)} positional sub-pattern{plural} ({n} given)")
    names: list[str] = []
    for item in given_names[:n]:
        kind = cap.realize(item).python_type()
        if kind is not str:
            cap.raise_(TypeError, f"__match_args__ elements must be strings (got {kind.__name__})")
        names.append(cap.realize(item).as_constant())
    return names
