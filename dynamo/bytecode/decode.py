"""Code objects as uniform instructions: names, merged arguments, jump targets, handlers, liveness, places in the source.

Owns the decoding, the table of a code object's places, and the differences between interpreter versions as data (`Version`). Does not
know captured values. Instruction indices, not byte offsets, are the executor's program counter; offsets serve re-entry.
"""

from __future__ import annotations

import dis
import sys
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType
from typing import Any, Final

from bytecode import ConcreteBytecode

from dynamo._native import localsplus_kinds, localsplus_names
from eager.base.records import dataclass
from eager.base.tracebacks import OUR_DIRS, handler_offset

CO_GENERATOR_LIKE: Final = 0x20 | 0x80 | 0x200  # CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR
CO_VARARGS: Final = 0x04
CO_VARKEYWORDS: Final = 0x08
KIND_LOCAL, KIND_CELL, KIND_FREE = 0x20, 0x40, 0x80


@dataclass(frozen=True, slots=True)
class Version:
    """Differences between interpreters in the meaning of instructions.

    callable_first: CALL sees [callable, self or NULL, ...] (else [NULL, callable, ...] or [method, self, ...]).
    compare_shift: how far COMPARE_OP's operator index is shifted. compare_to_bool: the bit that requests a bool.
    for_exit_skip: instructions after FOR_ITER's target that are skipped when the iterator ends.
    attr_method_bit: the low bit of LOAD_ATTR requests a method. prefixes: instructions that belong to the next one.
    """

    callable_first: bool
    compare_shift: int
    compare_to_bool: int
    for_exit_skip: int
    attr_method_bit: bool
    prefixes: frozenset[str]


_PREFIXES_311 = frozenset({"EXTENDED_ARG", "KW_NAMES", "PRECALL"})
_VERSIONS: Final = {
    (3, 11): Version(False, 0, 0, 0, False, _PREFIXES_311),
    (3, 12): Version(False, 4, 0, 1, True, frozenset({"EXTENDED_ARG", "KW_NAMES"})),
    (3, 13): Version(True, 5, 16, 2, True, frozenset({"EXTENDED_ARG"})),
    (3, 14): Version(True, 5, 16, 2, True, frozenset({"EXTENDED_ARG"})),
}
VERSION: Final = _VERSIONS[sys.version_info[:2]]

_JUMPS: Final = frozenset(dis.opname[op] for op in (*dis.hasjrel, *dis.hasjabs))
_ENDS: Final = frozenset(
    {
        "RETURN_VALUE",
        "RETURN_CONST",
        "RAISE_VARARGS",
        "RERAISE",
        "JUMP_FORWARD",
        "JUMP_BACKWARD",
        "JUMP_BACKWARD_NO_INTERRUPT",
    }
)
_LOADS: Final = frozenset({"LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_AND_CLEAR", "LOAD_DEREF", "LOAD_CLOSURE",
                           "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF", "DELETE_FAST", "DELETE_DEREF", "STORE_DEREF",
                           "MAKE_CELL", "LOAD_FAST_BORROW"})  # fmt: skip
_INTROSPECTION: Final = frozenset({"locals", "vars", "eval", "exec", "dir", "_getframe", "currentframe", "stack"})
_OF_CALLERS: Final = frozenset({"_getframe", "currentframe", "extract_stack", "format_stack", "print_stack", "walk_stack"})


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction without its caches. offset: of the opcode. start: of its first prefix. target: index or -1."""

    index: int
    offset: int
    start: int
    name: str
    arg: int
    target: int
    line: int


@dataclass(frozen=True, slots=True)
class Handler:
    """One row of the exception table, in instruction indices; `stop` is exclusive."""

    start: int
    stop: int
    target: int
    depth: int
    push_lasti: bool


class Decoded:
    """A code object ready for symbolic execution. Made by `decode`; immutable."""

    def __init__(self, code: CodeType) -> None:
        self.code = code
        self.slots: tuple[str, ...] = localsplus_names(code)
        self.kinds: bytes = localsplus_kinds(code)
        concrete = ConcreteBytecode.from_code(code, extended_arg=True)
        # Functions of this library are decoded without the handler that filters tracebacks.
        end = handler_offset(code) if code.co_filename.startswith(OUR_DIRS) else len(code.co_code)
        raw = [ins for ins in _raw_instructions(code, concrete) if ins[0] < end]
        self._index_of = {offset: i for i, (offset, *_) in enumerate(raw)}
        self.instructions: tuple[Instruction, ...] = tuple(self._link(i, raw) for i in range(len(raw)))
        self.handlers: tuple[Handler, ...] = tuple(self._handlers(concrete, end))
        self._starts = [h.start for h in self.handlers]
        self._live: list[int] | None = None

    def _link(self, i: int, raw: list[tuple[int, int, str, int, int, int]]) -> Instruction:
        offset, start, name, arg, line, after = raw[i]
        target = -1
        if name in _JUMPS:
            step = -arg if "BACKWARD" in name else arg
            target = self._index_of_target(after + 2 * step)
        return Instruction(i, offset, start, name, arg, target, line)

    def _index_of_target(self, offset: int) -> int:
        # A jump lands on the first prefix of an instruction. Prefixes are merged, so search forward.
        while offset not in self._index_of:
            offset += 2
        return self._index_of[offset]

    def _handlers(self, concrete: ConcreteBytecode, end: int) -> Iterator[Handler]:
        for entry in concrete.exception_table:
            if entry.target * 2 >= end:
                continue
            yield Handler(
                self._index_of_target(entry.start_offset * 2),
                self._first_after(entry.stop_offset * 2 + 2),
                self._index_of_target(entry.target * 2),
                entry.stack_depth,
                bool(entry.push_lasti),
            )

    def _first_after(self, offset: int) -> int:
        while offset not in self._index_of:
            if offset > self.instructions[-1].offset:
                return len(self.instructions)
            offset += 2
        return self._index_of[offset]

    def handler(self, index: int) -> Handler | None:
        """The handler that covers the instruction at `index`, or None."""
        k = bisect_right(self._starts, index) - 1
        if k >= 0 and index < self.handlers[k].stop:
            return self.handlers[k]
        return None

    @property
    def introspects(self) -> bool:
        """Whether the code may read its own locals by name."""
        return not _INTROSPECTION.isdisjoint(self.code.co_names)

    @property
    def looks_at_callers(self) -> bool:
        """Whether the code names a function that inspects its callers."""
        names = self.code.co_names
        return not _OF_CALLERS.isdisjoint(names) or ("inspect" in names and "stack" in names) or any(
            type(c) is tuple and "stacklevel" in c for c in self.code.co_consts)  # fmt: skip

    def live_slots(self, index: int) -> int:
        """Bit mask of the localsplus slots that may be read at or after instruction `index`."""
        if self._live is None:
            self._live = _liveness(self)
        return self._live[index]


def argument_count(code: CodeType) -> int:
    """Number of argument slots of `code`."""
    n = code.co_argcount + code.co_kwonlyargcount
    return n + bool(code.co_flags & CO_VARARGS) + bool(code.co_flags & CO_VARKEYWORDS)


def _raw_instructions(code: CodeType, units: ConcreteBytecode) -> Iterator[tuple[int, int, str, int, int, int]]:
    """(offset, start, name, arg, line, offset after caches), EXTENDED_ARG merged, CACHE and PRECALL dropped."""
    offset, extended, start = 0, 0, -1
    line = code.co_firstlineno
    pending: tuple[int, int, str, int, int] | None = None
    for unit in units:
        if unit.name == "CACHE":
            offset += 2
            continue
        if pending is not None:
            yield (*pending, offset)
            pending = None
        number = unit.lineno
        if isinstance(number, int):
            line = number
        arg = unit.arg if isinstance(unit.arg, int) else 0
        if start < 0:
            start = offset
        if unit.name == "EXTENDED_ARG":
            extended = (extended | arg) << 8
            offset += 2
            continue
        if unit.name != "PRECALL":
            pending = (offset, start, unit.name, extended | arg, line)
        if unit.name not in VERSION.prefixes:
            start = -1
        extended = 0
        offset += 2
    if pending is not None:
        yield (*pending, offset)


def _touched(ins: Instruction) -> tuple[int, int]:
    """(slots read, slots overwritten without being read) as masks."""
    name, arg = ins.name, ins.arg
    if name in _LOADS:
        return 1 << arg, 0
    if name == "STORE_FAST":
        return 0, 1 << arg
    if name in ("LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW"):
        return (1 << (arg >> 4)) | (1 << (arg & 15)), 0
    if name == "STORE_FAST_LOAD_FAST":
        return (1 << (arg & 15)) & ~(1 << (arg >> 4)), 1 << (arg >> 4)
    if name == "STORE_FAST_STORE_FAST":
        return 0, (1 << (arg >> 4)) | (1 << (arg & 15))
    return 0, 0


def _liveness(decoded: Decoded) -> list[int]:
    """Backward dataflow to a fixed point; an instruction also flows into its handler."""
    instructions = decoded.instructions
    n = len(instructions)
    if decoded.introspects:
        return [(1 << len(decoded.slots)) - 1] * n
    # Cells and free variables may be read by other functions.
    always = sum(1 << i for i, kind in enumerate(decoded.kinds) if kind & (KIND_CELL | KIND_FREE))
    if "__class__" in decoded.slots:
        always |= 1  # super() without arguments reads the first one
    touched = [_touched(ins) for ins in instructions]
    handlers = [decoded.handler(i) for i in range(n)]
    live = [always] * (n + 1)
    changed = True
    while changed:
        changed = False
        for i in range(n - 1, -1, -1):
            ins = instructions[i]
            after = 0 if ins.name in _ENDS else live[i + 1]
            if ins.target >= 0:
                after |= live[ins.target]
            handler = handlers[i]
            read, killed = touched[i]
            value = (after & ~killed) | read | always
            if handler is not None:
                value |= live[handler.target]
            if value != live[i]:
                live[i] = value
                changed = True
    return live[:n]


@lru_cache(maxsize=4096)
def decode(code: CodeType) -> Decoded:
    """Decode `code` once. Equal code objects (not only identical ones) share the result."""
    return Decoded(code)


# -- places in the user's source -----------------------------------------------------------------------------------------
_LONG_LOCATION: Final = 14  # CPython's Objects/locations.md


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """The instruction of the user's code at which a frame was."""

    code: CodeType
    globals: dict[str, Any]
    offset: int

    @property
    def position(self) -> tuple[int, int, int, int]:
        """(line, last line, column, last column); a column is -1 where the code object has no columns."""
        for i, (line, end, column, end_column) in enumerate(self.code.co_positions()):
            if i == self.offset // 2:
                line = self.code.co_firstlineno if line is None else line
                return line, end or line, -1 if column is None else column, -1 if end_column is None else end_column
        return self.code.co_firstlineno, self.code.co_firstlineno, -1, -1


def _varint(value: int) -> Iterator[int]:
    while value >= 64:
        yield 0x40 | (value & 63)
        value >>= 6
    yield value


@lru_cache(maxsize=1024)  # a deep recursion has many entries at one position
def location_table(units: int, first: int, position: tuple[int, int, int, int]) -> bytes:
    """The co_linetable of a code object of `units` code units and first line `first`, all at one position."""
    line, end, column, end_column = position
    delta = line - first
    table = bytearray()
    while units > 0:
        n = min(units, 8)
        table.append(0x80 | (_LONG_LOCATION << 3) | (n - 1))
        table += bytes(_varint((-delta << 1 | 1) if delta < 0 else delta << 1))
        table += bytes([*_varint(end - line), *_varint(column + 1), *_varint(end_column + 1)])
        units, delta = units - n, 0
    return bytes(table)
