"""Instructions that build containers, strings and functions, and that take containers apart."""

from __future__ import annotations

import operator
from collections.abc import Callable
from types import CodeType
from typing import Any

from dynamo.bytecode.decode import VERSION, Instruction
from dynamo.frames.frame import Frame
from dynamo.frames.handlers import op
from dynamo.report import causes
from dynamo.report.errors import Unsupported
from dynamo.values.base import Constant
from dynamo.values.functions import CellValue, FunctionValue
from dynamo.values.mappings import DictValue, pairs_of
from dynamo.values.objects import UserObject
from dynamo.values.protocols import Value
from dynamo.values.sequences import ListValue, Sequence, TupleValue
from dynamo.values.symbolic import SymbolicText, text_parts


@op("BUILD_TUPLE")
def build_tuple(frame: Frame, ins: Instruction) -> None:
    frame.push(TupleValue(frame.pop_many(ins.arg)))


@op("BUILD_LIST")
def build_list(frame: Frame, ins: Instruction) -> None:
    frame.push(ListValue(frame.pop_many(ins.arg)))


@op("BUILD_SET")
def build_set(frame: Frame, ins: Instruction) -> None:
    frame.push(frame.cap.iteration.set_of(frame.pop_many(ins.arg)))


@op("BUILD_MAP")
def build_map(frame: Frame, ins: Instruction) -> None:
    flat = frame.pop_many(2 * ins.arg)
    new = DictValue()
    new.update(frame.cap, zip(flat[::2], flat[1::2], strict=True))
    frame.push(new)


@op("BUILD_CONST_KEY_MAP")
def build_const_key_map(frame: Frame, ins: Instruction) -> None:
    keys = frame.pop()
    values = frame.pop_many(ins.arg)
    new = DictValue()
    new.update(frame.cap, zip(frame.cap.iteration.unpack(keys), values, strict=True))
    frame.push(new)


@op("LIST_APPEND")
def list_append(frame: Frame, ins: Instruction) -> None:
    value = frame.pop_raw()
    target = frame.at(ins.arg)
    assert isinstance(target, ListValue)
    target.changed(frame.cap)
    target.items.append(value)


@op("SET_ADD")
def set_add(frame: Frame, ins: Instruction) -> None:
    value = frame.pop()
    frame.cap.call_method(frame.at(ins.arg), "add", [value], {})


@op("MAP_ADD")
def map_add(frame: Frame, ins: Instruction) -> None:
    value, key = frame.pop_raw(), frame.pop()
    target = frame.at(ins.arg)
    assert isinstance(target, DictValue)
    target.set(frame.cap, key, value)


@op("LIST_EXTEND")
def list_extend(frame: Frame, ins: Instruction) -> None:
    value = frame.pop()
    target = frame.at(ins.arg)
    assert isinstance(target, ListValue)
    if isinstance(value, UserObject) and not frame.cap.classes.has(value.cls, "__iter__"):
        raise Unsupported(causes.OPAQUE_ITERATOR, f"unpacking of {value.describe()}")
    target.extend(frame.cap, value)


@op("SET_UPDATE")
def set_update(frame: Frame, ins: Instruction) -> None:
    value = frame.pop()
    frame.cap.call_method(frame.at(ins.arg), "update", [value], {})


@op("DICT_UPDATE")
def dict_update(frame: Frame, ins: Instruction) -> None:
    other = frame.pop()
    target = frame.at(ins.arg)
    assert isinstance(target, DictValue)
    if not isinstance(other, DictValue) and not frame.cap.attributes.has(other, "keys"):
        frame.cap.raise_(TypeError, f"'{other.python_type().__name__}' object is not a mapping")
    target.update(frame.cap, pairs_of(frame.cap, other))


@op("DICT_MERGE")
def dict_merge(frame: Frame, ins: Instruction) -> None:
    other = frame.pop()
    target = frame.at(ins.arg)
    assert isinstance(target, DictValue)
    callee = frame.cap.realize(frame.stack[-(ins.arg + 2 + VERSION.callable_first)])
    name = _callee_name(callee)
    if not isinstance(other, DictValue) and not frame.cap.attributes.has(other, "keys"):
        kind = other.python_type().__name__
        frame.cap.raise_(TypeError, f"{name}() argument after ** must be a mapping, not {kind}")
    for key, value in pairs_of(frame.cap, other):
        if target.get(frame.cap, key) is not None:
            frame.cap.raise_(TypeError, f"{name}() got multiple values for keyword argument '{key.as_constant()}'")
        target.set(frame.cap, key, value)


def _callee_name(callee: Value) -> str:
    if isinstance(callee, FunctionValue):
        return f"{callee.globals.get('__name__', '')}.{callee.name}"
    return callee.describe()


@op("LIST_TO_TUPLE")
def list_to_tuple(frame: Frame, ins: Instruction) -> None:
    value = frame.pop()
    assert isinstance(value, ListValue)
    frame.push(TupleValue(list(value.items)))


# --- taking apart ----------------------------------------------------------------------------------------------


@op("UNPACK_SEQUENCE")
def unpack_sequence(frame: Frame, ins: Instruction) -> None:
    value, n = frame.pop(), ins.arg
    cap = frame.cap
    if isinstance(value, UserObject) and not any(cap.classes.has(value.cls, n) for n in ("__iter__", "__getitem__")):
        cap.raise_(TypeError, f"cannot unpack non-iterable {value.cls.__name__} object")
    if isinstance(value, Constant) and not isinstance(value.value, str | bytes):
        cap.raise_(TypeError, f"cannot unpack non-iterable {type(value.value).__name__} object")
    if isinstance(value, Sequence):
        items = list(value.items)
    else:
        items = _take(frame, value, n)
    if len(items) > n:
        cap.raise_(ValueError, f"too many values to unpack (expected {n})")
    if len(items) < n:
        cap.raise_(ValueError, f"not enough values to unpack (expected {n}, got {len(items)})")
    for item in reversed(items):
        frame.push(item)


def _take(frame: Frame, value: Value, n: int) -> list[Value]:
    """At most n + 1 items: Python takes as many from an iterator before it reports an error."""
    cap = frame.cap
    iterator = cap.iteration.iter(value)
    items: list[Value] = []
    while len(items) <= n and (item := cap.iteration.next(iterator)) is not None:
        items.append(item)
    return items


@op("UNPACK_EX")
def unpack_ex(frame: Frame, ins: Instruction) -> None:
    value = frame.pop()
    before, after = ins.arg & 255, ins.arg >> 8
    items = frame.cap.iteration.unpack(value)
    if len(items) < before + after:
        message = f"not enough values to unpack (expected at least {before + after}, got {len(items)})"
        frame.cap.raise_(ValueError, message)
    rest = items[before : len(items) - after]
    for item in reversed([*items[:before], ListValue(rest), *items[len(items) - after :]]):
        frame.push(item)


# --- strings ---------------------------------------------------------------------------------------------------

_CONVERSIONS: dict[int, Callable[[Any], str]] = {1: str, 2: repr, 3: ascii}


@op("FORMAT_VALUE")
def format_value(frame: Frame, ins: Instruction) -> None:
    spec = frame.pop() if ins.arg & 4 else Constant("")
    value = frame.pop()
    if ins.arg & 3:
        value = frame.cap.formatting.text(value, _CONVERSIONS[ins.arg & 3])
    frame.push(frame.cap.formatting.format(value, spec.as_constant()))


@op("CONVERT_VALUE")
def convert_value(frame: Frame, ins: Instruction) -> None:
    frame.push(frame.cap.formatting.text(frame.pop(), _CONVERSIONS[ins.arg]))


@op("FORMAT_SIMPLE")
def format_simple(frame: Frame, ins: Instruction) -> None:
    frame.push(frame.cap.formatting.format(frame.pop(), ""))


@op("FORMAT_WITH_SPEC")
def format_with_spec(frame: Frame, ins: Instruction) -> None:
    spec, value = frame.pop(), frame.pop()
    frame.push(frame.cap.formatting.format(value, spec.as_constant()))


@op("BUILD_STRING")
def build_string(frame: Frame, ins: Instruction) -> None:
    given = [frame.cap.realize(p) for p in frame.pop_many(ins.arg)]
    parts = [piece for value in given for piece in text_parts(value)]
    fixed = [part for part in parts if isinstance(part, str)]
    frame.push(Constant("".join(fixed)) if len(fixed) == len(parts) else SymbolicText(parts))


# --- functions -------------------------------------------------------------------------------------------------


@op("MAKE_FUNCTION")
def make_function(frame: Frame, ins: Instruction) -> None:
    code = frame.pop().as_constant()
    assert isinstance(code, CodeType)
    fn = FunctionValue(code, frame.globals)
    for bit in (8, 4, 2, 1):
        if ins.arg & bit:
            _function_part(frame, fn, bit, frame.pop())
    frame.push(fn)


@op("SET_FUNCTION_ATTRIBUTE")
def set_function_attribute(frame: Frame, ins: Instruction) -> None:
    fn, value = frame.pop(), frame.pop()
    assert isinstance(fn, FunctionValue)
    _function_part(frame, fn, ins.arg, value)
    frame.push(fn)


def _function_part(frame: Frame, fn: FunctionValue, bit: int, value: Value) -> None:
    cap = frame.cap
    if bit == 1:
        fn.new_defaults = cap.iteration.unpack(value)
    elif bit == 2:
        assert isinstance(value, DictValue)
        fn.new_kwdefaults = {k.as_constant(): v for k, v in value.entries.values()}
    elif bit == 4:
        fn.new_annotations = value
    elif bit == 8:
        cells = [cap.realize(c) for c in cap.iteration.unpack(value)]
        fn.new_closure = [c for c in cells if isinstance(c, CellValue)]
        assert len(fn.new_closure) == len(cells)
    else:
        raise Unsupported(causes.INSTRUCTION, f"SET_FUNCTION_ATTRIBUTE {bit}")


@op("CALL_INTRINSIC_1")
def call_intrinsic_1(frame: Frame, ins: Instruction) -> None:
    if ins.arg == 5:  # INTRINSIC_UNARY_POSITIVE
        frame.push(frame.cap.operators.unary(operator.pos, frame.pop()))
    elif ins.arg == 6:  # INTRINSIC_LIST_TO_TUPLE
        list_to_tuple(frame, ins)
    elif ins.arg == 3:  # INTRINSIC_STOPITERATION_ERROR: the generator that runs this frame converts the exception
        return
    else:
        raise Unsupported(causes.INSTRUCTION, f"CALL_INTRINSIC_1 {ins.arg}")
