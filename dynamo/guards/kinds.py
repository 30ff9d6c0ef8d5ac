"""The one table of guard kinds: name, operands, meaning, and the words of logs and reports.

A guard program is a flat list of instructions. An instruction is a tuple: the name of its kind, one item for each operand, and
an optional note. `KINDS` describes every kind, and `STEPS` every step of a "shape" check. Three more files come from the tables:

- `dynamo/native/guard_kinds.h`: the C enum, and the operands that `guard_build.c` checks;
- the list of instructions in `dynamo/_native.pyi`;
- the notes and reports of `dynamo.guards.program` and `dynamo.guards.explain`.

`python -m dynamo.guards.kind_files` writes the first two; `tests/dynamo/test_guard_kinds.py` holds them against the tables. To add a
kind: add a line to the table, write the files, and add a `case` to `fetch` or `check` in `dynamo/native/guards.c`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any, Final

from dynamo.guards import wording
from dynamo.guards.wording import Operands
from eager.base.records import dataclass


class Phase(Enum):
    """The place and the purpose of an instruction in a program. The value is the heading of the list in the stub."""

    FETCH = "Fetches. ``src`` is a slot, ``dst`` a temporary"
    CHECK = "Checks"
    RELATION = "Relations between slots. They run after all other instructions, and cannot be part of a block"
    BLOCK = "Blocks. Their instructions run only after an item has changed"


class Role(Enum):
    """The use of an operand in `guard_build.c`. The value is the letter of its operand strings."""

    SLOT = "s"  # a slot to read
    SLOTS = "S"  # a tuple of slots to read
    TEMPORARY = "d"  # a temporary to write
    OBJECT = "o"
    BASE = "b"  # a second object
    NAME = "n"  # the name of an attribute
    KEY = "k"  # the key of a dict entry
    INT = "i"  # an int of 64 bits
    FIELD = "f"  # a field of a function
    PARSED = ""  # the code of the kind reads the operand


class Type(Enum):
    """The class that an operand must have. The value is the letter of the operand strings."""

    ANY = ""
    DICT = "D"
    CALLABLE = "C"
    FUNCTION = "F"
    CLASS = "T"
    WEAK_REFERENCE = "W"


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand: its name in the documentation, its role, and the class that it must have."""

    name: str
    role: Role
    type: Type = Type.ANY

    @property
    def letters(self) -> str:
        """The operand in an operand string of `guard_build.c`."""
        return self.role.value + (f":{self.type.value}" if self.type is not Type.ANY else "")


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of instruction.

    name: as in instructions and in `Guard.kind`. operands: in order. meaning: for the stub; no sentence. words: come between the
    sources and the operands of a guard in a note. rank: order among the checks of one depth; cheap and discriminating checks run
    first. remedy: advice about a guard that fails again and again; `{name}` is the source.
    fact: replaces words and operands in a note. expected, actual: texts of a report, from the operands and from the observed value.
    subject, current: of a check without a source, the subject of a report and the state of the process.
    names_sources: a note starts with the names of the sources.
    """

    name: str
    phase: Phase
    operands: tuple[Operand, ...]
    meaning: str
    words: str = ""
    rank: int = 3
    remedy: str = ""
    fact: Callable[[Operands], str] | None = None
    expected: Callable[[Operands], str] = wording.listed
    actual: Callable[[Any], str] = wording.value_text
    subject: str = ""
    current: Callable[[], str] | None = None
    names_sources: bool = True

    @property
    def c_name(self) -> str:
        """The member of the C enum. Both blocks share one member."""
        return "G_BLOCK" if self.phase is Phase.BLOCK else f"G_{self.name.upper()}"

    @property
    def letters(self) -> str:
        """The operand string of `guard_build.c`."""
        return "".join(operand.letters for operand in self.operands)

    def state(self, operands: Operands) -> str:
        """A fact of this kind in words, without its sources."""
        return self.fact(operands) if self.fact is not None else f"{self.words} {wording.listed(operands)}".strip()


# --- operands -------------------------------------------------------------------------------------------------

_SRC = Operand("src", Role.SLOT)
_SRC_A, _SRC_B = Operand("src_a", Role.SLOT), Operand("src_b", Role.SLOT)
_SOURCES = Operand("(src, ...)", Role.SLOTS)
_DST = Operand("dst", Role.TEMPORARY)
_NAME = Operand("name", Role.NAME)
_KEY = Operand("key", Role.KEY)
_INDEX = Operand("index", Role.INT)
_OBJECT = Operand("obj", Role.OBJECT)
_VALUE = Operand("value", Role.OBJECT)
_CLASS = Operand("cls", Role.OBJECT, Type.CLASS)
_ITEMS, _INSTRUCTIONS = Operand("(item, ...)", Role.PARSED), Operand("(instruction, ...)", Role.PARSED)


def _fetch(name: str, *operands: Operand, meaning: str) -> Kind:
    return Kind(name, Phase.FETCH, (*operands, _DST), meaning)


def _check(name: str, *operands: Operand, meaning: str, **more: Any) -> Kind:
    return Kind(name, Phase.CHECK, operands, meaning, **more)


def _relation(name: str, *operands: Operand, meaning: str, **more: Any) -> Kind:
    return Kind(name, Phase.RELATION, operands, meaning, **more)


_NUMBER_REMEDY = "The {} `{{name}}` changes between calls: keep it in a tensor, or pass it as an argument, where it becomes a symbol."

_TABLE: Final = (
    # --- fetches ----------------------------------------------------------------------------------------------
    _fetch("const", _OBJECT, meaning="dst = obj (a strong reference)"),
    _fetch("weak", Operand("ref", Role.OBJECT, Type.WEAK_REFERENCE), meaning="ref(); fails once the referent is dead"),
    _fetch("global", Operand("dict", Role.BASE, Type.DICT), _KEY, meaning="dict[key]; fails if absent"),
    _fetch("attr", _SRC, _NAME, meaning="getattr(src, name), all of Python's semantics"),
    _fetch("generic_attr", _SRC, _NAME, meaning="object.__getattribute__(src, name), without __getattr__"),
    _fetch("dict_attr", _SRC, _NAME, meaning="src.__dict__[name]; runs no other code"),
    _fetch("type_attr", _SRC, _NAME, meaning="the entry along the MRO of the class src, not bound"),
    _fetch("type_of", _SRC, meaning="type(src)"),
    _fetch("dict_item", _SRC, _KEY, meaning="src[key] of a dict or a subclass, by dict's own lookup"),
    _fetch("item", _SRC, _INDEX, meaning="item of a list, tuple or deque; index >= 0"),
    _fetch("cell", _SRC, meaning="contents of a cell; fails if empty"),
    _fetch("closure", _SRC, _INDEX, meaning="contents of a cell of the function src; fails if empty"),
    _fetch("iterator_owner", _SRC, meaning="the object that a built-in iterator iterates over"),
    _fetch("made", _SRC, Operand("fn", Role.OBJECT, Type.CALLABLE), meaning="fn(src)"),
    # --- checks -----------------------------------------------------------------------------------------------
    _check("held_type", Operand("obj", Role.BASE), _CLASS, meaning="type(obj) is cls"),
    _check("function_is", Operand("fn", Role.BASE, Type.FUNCTION), Operand("field", Role.FIELD), _VALUE,
           meaning="fn.field is value; field: __code__, __defaults__, __kwdefaults__"),
    _check("type", _SRC, _CLASS, meaning="type(src) is cls",
           words="has the type", rank=0, expected=wording.class_name, actual=wording.class_of),
    _check("is", _SRC, _OBJECT, meaning="src is obj", words="is the object", rank=0,
           remedy="`{name}` is another object at each call: make it once, outside the compiled function.",
           expected=wording.expected_object, actual=wording.other_object),
    _check("is_not", _SRC, _OBJECT, meaning="src is not obj", words="is not the object", rank=2, actual=wording.other_object),
    _check("int_eq", _SRC, _VALUE, meaning="exactly int, equal; any size", words="==", rank=1,
           remedy=_NUMBER_REMEDY.format("integer")),
    _check("float_eq", _SRC, _VALUE, meaning="exactly float, the same bits (nan, -0.0)", words="==", rank=1,
           remedy=_NUMBER_REMEDY.format("number")),
    _check("str_eq", _SRC, _VALUE, meaning="exactly str, equal", words="==", rank=1,
           remedy="The text `{name}` changes between calls: compile one function for each, or use it outside the compiled function."),
    _check("const_eq", _SRC, _VALUE, meaning="the same exact type, and equal", words="==", rank=1),
    _check("content_eq", _SRC, _VALUE, meaning="a str, int or float or an instance of a subclass, equal by the base's comparison",
           words="==", rank=1),
    _check("len", _SRC, Operand("n", Role.INT), meaning="stored length of a list, tuple, dict, set, str, deque or a subclass",
           words="has the length", rank=2, actual=wording.length,
           remedy="The length of `{name}` changes between calls: pass one tensor instead, or pad it."),
    _check("dict_keys", _SRC, Operand("keys", Role.OBJECT), meaning="keys in order: identical, or the same exact type and equal",
           words="has the keys", rank=4, actual=wording.items,
           remedy="The keys of `{name}` change between calls: keep what changes out of the compiled function."),
    _check("set_elements", _SRC, Operand("elements", Role.OBJECT), meaning="elements of a set in its order, as dict_keys compares keys",
           words="has the elements", rank=4, actual=wording.items),
    _check("no_attr", _SRC, _NAME, meaning="getattr(src, name) raises AttributeError", words="has no attribute", rank=4),
    _check("dict_absent", _SRC, _KEY, meaning="a dict without the key", words="has no entry", rank=4),
    _check("cell_empty", _SRC, meaning="an empty cell", words="is not bound", rank=4),
    _check("tensor", _SRC, _CLASS, Operand("meta", Role.PARSED), Operand("mask", Role.PARSED), Operand("sizes", Role.PARSED),
           Operand("strides", Role.PARSED), meaning="type(src) is cls; (meta word & mask) == (meta & mask); sizes; strides",
           fact=lambda operands: f"is {wording.expected_tensor(operands)}",
           expected=wording.expected_tensor, actual=wording.tensor,
           remedy="The sizes or the kind of `{name}` change between calls: torch._dynamo.mark_dynamic({name}, dim) marks such a size."),
    _check("int_range", _SRC, Operand("low", Role.INT), Operand("high", Role.INT), meaning="exactly int, low <= src <= high",
           words="is an int in the range"),
    _check("grad_mode", Operand("modes", Role.INT), meaning="modes of the thread: 1 gradients are recorded, 2 inference mode", rank=0,
           fact=wording.expected_grad_mode, expected=wording.expected_grad_mode, subject="grad mode", current=wording.current_grad_mode),
    _check("ambient", Operand("word", Role.INT), meaning="autocast state and default device of the thread", rank=0,
           fact=lambda operands: f"surroundings: {wording.expected_ambient(operands)}", expected=wording.expected_ambient,
           subject="autocast and default device", current=wording.current_ambient),
    _check("call_eq", Operand("fn", Role.BASE, Type.CALLABLE), _VALUE, meaning="fn() has the exact type of value and is equal", rank=5,
           fact=lambda operands: f"{wording.value_text(operands[0])}() gives {wording.value_text(operands[1])}"),
    _check("type_absent", _SRC, _NAME, meaning="no class along the MRO of the class src has the name", words="has no attribute", rank=4),
    _check("plain_new", _SRC, meaning="the class src inherits object.__new__", words="inherits object.__new__", rank=4),
    _check("iterator_state", _SRC, _VALUE, meaning="position of a built-in iterator", words="is at position", rank=4),
    # --- relations ----------------------------------------------------------------------------------------------
    _relation("shape", _SOURCES, Operand("(step, ...)", Role.OBJECT), meaning="a relation of sizes, ints and floats in postfix: see below",
              fact=lambda operands: str(operands[0].text), names_sources=False),
    _relation("same", _SRC_A, _SRC_B, meaning="src_a is src_b",
              words="are one object", expected=lambda _: "one object", actual=wording.other_object),
    _relation("distinct", _SOURCES, meaning="pairwise not the same object",
              words="are different objects", expected=lambda _: "different objects", actual=wording.other_object),
    _relation("alias", _SRC_A, _SRC_B, meaning="two tensors share memory", words="share memory", expected=lambda _: "shared memory"),
    _relation("not_alias", _SOURCES, meaning="no two tensors share memory",
              words="share no memory", expected=lambda _: "separate memory"),
    # --- blocks -----------------------------------------------------------------------------------------------
    Kind("watch", Phase.BLOCK, (_ITEMS, _INSTRUCTIONS), "the items are watched"),
    Kind("epoch", Phase.BLOCK, (_ITEMS, _INSTRUCTIONS), "the items and eager's global epoch are watched"),
)  # fmt: skip

KINDS: Final[dict[str, Kind]] = {kind.name: kind for kind in _TABLE}

RANKS: Final = {kind.name: kind.rank for kind in _TABLE}
RELATIONS: Final = frozenset(kind.name for kind in _TABLE if kind.phase is Phase.RELATION)
# Checks of the process, which read no slot; and checks whose first operand is a tuple of slots.
OF_THE_PROCESS: Final = frozenset(kind.name for kind in _TABLE if not any(o.role in (Role.SLOT, Role.SLOTS) for o in kind.operands))
LISTING: Final = frozenset(kind.name for kind in _TABLE if any(o.role is Role.SLOTS for o in kind.operands))


# --- steps of a "shape" check ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the stack machine that checks a "shape" guard.

    parameters: names of the ints that follow the step's name in the program. takes, gives: values that the step pops and pushes.
    """

    name: str
    parameters: tuple[str, ...]
    takes: int
    gives: int
    meaning: str

    @property
    def c_name(self) -> str:
        return f"STEP_{self.name.upper()}"


def _group(names: str, takes: int, gives: int, meaning: str) -> Iterator[Step]:
    yield from (Step(name, (), takes, gives, meaning) for name in names.split())


def _steps() -> Iterator[Step]:
    yield Step("const", ("number",), 0, 1, "push a number; a float is given by its bits")
    yield Step("size", ("k", "dim"), 0, 1, "push a size of source k")
    yield Step("stride", ("k", "dim"), 0, 1, "push a stride of source k")
    yield Step("offset", ("k",), 0, 1, "push the storage offset of source k")
    yield Step("int", ("k",), 0, 1, "push source k, an int")
    yield from _group("add mul floordiv mod min max", 2, 1, "combine two ints")
    yield Step("float", ("k",), 0, 1, "push source k, a float")
    yield Step("to_float", (), 1, 1, "convert an int")
    yield from _group("fadd fsub fmul fdiv", 2, 1, "combine two floats")
    yield Step("fneg", (), 1, 1, "negate a float")
    yield from _group("eq ne lt le", 2, 0, "end: compare two ints")
    yield from _group("feq fne flt fle fnot_lt fnot_le", 2, 0, "end: compare two floats")


STEPS: Final = tuple(_steps())
