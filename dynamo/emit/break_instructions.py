"""The instruction at a graph break, as plain Python statements, and the possible outcomes.

Owns the table by instruction name. The interpreter runs an instruction outside the table: the original frame is
re-entered there.
"""

from __future__ import annotations

import inspect
import operator
import sys
import types
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from dynamo.bytecode.decode import VERSION, Instruction
from dynamo.emit.plan import Operand, Outcome, Performed
from dynamo.emit.writer import CodeGen
from dynamo.frames.opcodes.access import cell_at, comparison
from dynamo.frames.opcodes.calls import split_names
from dynamo.frames.opcodes.flow import for_exit
from dynamo.values.base import NULL, Lazy, Value
from dynamo.values.functions import BoundMethod
from dynamo.values.objects import BuiltinMethod

if TYPE_CHECKING:
    from dynamo.frames.frame import Frame


InstructionWriter = Callable[[CodeGen, "Frame", Instruction, list[Value]], Performed | None]
WRITERS: Final[dict[str, InstructionWriter]] = {}


def writer(*names: str) -> Callable[[InstructionWriter], InstructionWriter]:
    """Register the function that writes instructions of these names."""

    def register(fn: InstructionWriter) -> InstructionWriter:
        for name in names:
            WRITERS[name] = fn
        return fn

    return register


def perform(cg: CodeGen, frame: Frame, ins: Instruction) -> Performed | None:
    """The statements that run `ins` on the stack of the frame, and the outcomes; None: the interpreter runs the
    instruction.
    """
    write = WRITERS.get(ins.name)
    return None if write is None else write(cg, frame, ins, frame.stack)


def _one(cg: CodeGen, ins: Instruction, pops: int, expression: str) -> Performed:
    result = cg.local("r")
    return Performed(pops, (f"{result} = {expression}",), (Outcome(None, ins.index + 1, (result,)),))


def _nothing(ins: Instruction, pops: int, statement: str) -> Performed:
    return Performed(pops, (statement,), (Outcome(None, ins.index + 1, ()),))


def _method_call(cg: CodeGen, function: Operand) -> tuple[Operand, Operand]:
    """The two stack items of a method that is ready to be called without an instance."""
    return (function, cg.null) if VERSION.callable_first else (cg.null, function)


# --- calls -----------------------------------------------------------------------------------------------------


_module_of_frame: Any = getattr(sys, "_getframemodulename", sys._getframe)  # 3.12
# These functions inspect the frame of their caller, so only the original frame can call them.
_FRAME_BOUND: Final = frozenset(
    map(id, (super, locals, vars, dir, eval, exec, globals, sys._getframe, _module_of_frame, sys.exc_info, inspect.currentframe,
             warnings.warn))
)  # fmt: skip


def _is_frame_bound(fn: Value) -> bool:
    known = fn.seen if isinstance(fn, Lazy) else fn
    real = getattr(known, "cls", None) or getattr(known, "fn", None) or getattr(known, "real", None)
    return id(real) in _FRAME_BOUND


def _callee(cg: CodeGen, fn: Value) -> list[str]:
    """The callee, and the instance where the interpreter calls a method of its class: error messages name that method."""
    if isinstance(fn, BuiltinMethod) and (method := fn.unbound()) is not None:
        return [cg.bind(method, method.__name__), cg.value(fn.owner)]
    if isinstance(fn, BoundMethod) and fn.is_called and fn.source is None and fn.python_type() is types.BuiltinMethodType:
        return [cg.value(fn.func), cg.value(fn.self_value)]
    return [cg.value(fn)]


def _call(
    cg: CodeGen, ins: Instruction, pops: int, fn: Value, args: list[Value], kwargs: dict[str, Value]
) -> Performed | None:
    if _is_frame_bound(fn):
        return None
    parts = [*_callee(cg, fn), *(cg.value(a) for a in args)]
    if kwargs:
        parts.append("**{" + ", ".join(f"{k!r}: {cg.value(v)}" for k, v in kwargs.items()) + "}")
    return _one(cg, ins, pops, cg.in_region(*parts))


def _callable_at(stack: list[Value], n: int) -> tuple[Value, list[Value]]:
    top, below = stack[-n - 1], stack[-n - 2]
    args = stack[len(stack) - n :]
    if VERSION.callable_first:
        return below, args if top is NULL else [top, *args]
    return (top, args) if below is NULL else (below, [top, *args])


@writer("CALL")
def call(cg: CodeGen, frame: Frame, ins: Instruction, stack: list[Value]) -> Performed | None:
    fn, args = _callable_at(stack, ins.arg)
    return _call(cg, ins, ins.arg + 2, fn, *split_names(args, frame.kw_before))


@writer("CALL_KW")
def call_kw(cg: CodeGen, frame: Frame, ins: Instruction, stack: list[Value]) -> Performed | None:
    names = stack[-1].as_constant()
    fn, args = _callable_at(stack[:-1], ins.arg)
    return _call(cg, ins, ins.arg + 3, fn, *split_names(args, names))


@writer("CALL_FUNCTION_EX")
def call_function_ex(cg: CodeGen, frame: Frame, ins: Instruction, stack: list[Value]) -> Performed:
    n = 1 + (ins.arg & 1)
    fn = stack[-n - (2 if VERSION.callable_first else 1)]
    parts = [cg.value(fn), f"*{cg.value(stack[-n])}"]
    if ins.arg & 1:
        parts.append(f"**{cg.value(stack[-1])}")
    return _one(cg, ins, n + 2, cg.in_region(*parts))


@writer("BEFORE_WITH")
def before_with(cg: CodeGen, frame: Frame, ins: Instruction, stack: list[Value]) -> Performed:
    leave, entered = cg.local("leave"), cg.local("entered")
    statement = f"{leave}, {entered} = {cg.in_region(cg.helper('enter_context'), cg.value(stack[-1]))}"
    return Performed(1, (statement,), (Outcome(None, ins.index + 1, (leave, entered)),))


@writer("IMPORT_NAME")
def import_name(cg: CodeGen, frame: Frame, ins: Instruction, stack: list[Value]) -> Performed:
    name = frame.code.co_names[ins.arg]
    namespace = cg.bind(frame.globals, "globals")
    fromlist, level = cg.value(stack[-1]), cg.value(stack[-2])
    return _one(cg, ins, 2, f"{cg.helper('import_module')}({name!r}, {namespace}, {fromlist}, {level})")


# --- operators -------------------------------------------------------------------------------------------------

_BINARY: Final = "add and_ floordiv lshift matmul mul mod or_ pow rshift sub truediv xor".split()


def _operator(cg: CodeGen, ins: Instruction, stack: list[Value], fn: object, n: int) -> Performed:
    args = [cg.value(v) for v in stack[len(stack) - n :]]
    return _one(cg, ins, n, cg.in_region(cg.bind(fn, getattr(fn, "__name__", "op")), *args))


@writer("BINARY_OP")
def binary_op(cg: CodeGen, frame: Frame, ins: Instruction, stack: list[Value]) -> Performed:
    if ins.arg == 26:  # NB_SUBSCR, 3.14
        return _operator(cg, ins, stack, operator.getitem, 2)
    inplace = ins.arg >= len(_BINARY)
    name = _BINARY[ins.arg % len(_BINARY)]
    return _operator(cg, ins, stack, getattr(operator, "i" + name.strip("_") if inplace else name), 2)


@writer("COMPARE_OP")
def compare_op(cg: CodeGen, frame: Frame, ins: Instruction, stack: list[Value]) -> Performed:
    done = _operator(cg, ins, stack, comparison(ins.arg), 2)
    if VERSION.compare_to_bool and ins.arg & VERSION.compare_to_bool:
        result = done.outcomes[0].pushes[0]
        return Performed(2, (*done.statements, f"{result} = bool({result})"), done.outcomes)
    return done


@writer("CONTAINS_OP")
def contains_op(cg: CodeGen, frame: Frame, ins: Instruction, stack: list[Value]) -> Performed:
    container, item = cg.value(stack[-1]), cg.value(stack[-2])
    text = cg.in_region(cg.bind(operator.contains, "contains"), container, item)
    return _one(cg, ins, 2, f"not {text}" if ins.arg else text)


@writer("IS_OP")
def is_op(cg: CodeGen, frame: Frame, ins: Instruction, stack: list[Value]) -> Performed:
    a, b = cg.value(stack[-2]), cg.value(stack[-1])
    return _one(cg, ins, 2, f"{a} is {'not ' if ins.arg else ''}{b}")


_UNARY: Final = {
    "UNARY_NOT": operator.not_,
    "UNARY_NEGATIVE": operator.neg,
    "UNARY_POSITIVE": operator.pos,
    "UNARY_INVERT": operator.invert,
    "TO_BOOL": bool,
    "GET_ITER": iter,
}


@writer(*_UNARY)
def unary(cg: CodeGen, frame: Frame, ins: Instruction, stack: list[Value]) -> Performed:
    return _operator(cg, ins, stack, _UNARY[ins.name], 1)


# --- items and attributes --------------------------------------------------------------------------------------


@writer("BINARY_SUBSCR")
def binary_subscr(cg: CodeGen, frame: Frame, ins: Instruction, stack: list[Value]) -> Performed:
    return _operator(cg, ins, stack, operator.getitem, 2)


@writer("BINARY_SLICE")
def binary_slice(cg: CodeGen, frame: Frame, ins: Instruction, stack: list[Value]) -> Performed:
    owner, start, stop = (cg.value(v) for v in stack[-3:])
    return _one(cg, ins, 3, cg.in_region(cg.bind(operator.getitem, "getitem"), owner, f"slice({start}, {stop})"))


@writer("STORE_SUBSCR")
def store_subscr(cg: CodeGen, frame: Frame, ins: Instruction, stack: list[Value]) -> Performed:
    value, owner, key = (cg.value(v) for v in stack[-3:])
    return _nothing(ins, 3, cg.in_region(cg.bind(operator.setitem, "setitem"), owner, key, value))


@writer("STORE_SLICE")
def store_slice(cg: CodeGen, frame: Frame, ins: Instruction, stack: list[Value]) -> Performed:
    value, owner, start, stop = (cg.value(v) for v in stack[-4:])
    return _nothing(ins, 4, cg.in_region(cg.bind(operator.setitem, "setitem"), owner, f"slice({start}, {stop})", value))


@writer("DELETE_SUBSCR")
def delete_subscr(cg: CodeGen, frame: Frame, ins: Instruction, stack: list[Value]) -> Performed:
    owner, key = (cg.value(v) for v in stack[-2:])
    return _nothing(ins, 2, cg.in_region(cg.bind(operator.delitem, "delitem"), owner, key))


def _attribute(cg: CodeGen, ins: Instruction, stack: list[Value], name: str, method: bool) -> Performed:
    done = _one(cg, ins, 1, cg.in_region("getattr", cg.value(stack[-1]), repr(name)))
    if not method:
        return done
    return Performed(1, done.statements, (Outcome(None, ins.index + 1, _method_call(cg, done.outcomes[0].pushes[0])),))


@writer("LOAD_ATTR")
def load_attr(cg: CodeGen, frame: Frame, ins: Instruction, stack: list[Value]) -> Performed:
    if VERSION.attr_method_bit:
        return _attribute(cg, ins, stack, frame.code.co_names[ins.arg >> 1], bool(ins.arg & 1))
    return _attribute(cg, ins, stack, frame.code.co_names[ins.arg], False)


@writer("LOAD_METHOD")
def load_method(cg: CodeGen, frame: Frame, ins: Instruction, stack: list[Value]) -> Performed:
    return _attribute(cg, ins, stack, frame.code.co_names[ins.arg], True)


@writer("STORE_ATTR")
def store_attr(cg: CodeGen, frame: Frame, ins: Instruction, stack: list[Value]) -> Performed:
    value, owner = cg.value(stack[-2]), cg.value(stack[-1])
    return _nothing(ins, 2, cg.in_region("setattr", owner, repr(frame.code.co_names[ins.arg]), value))


@writer("DELETE_ATTR")
def delete_attr(cg: CodeGen, frame: Frame, ins: Instruction, stack: list[Value]) -> Performed:
    return _nothing(ins, 1, cg.in_region("delattr", cg.value(stack[-1]), repr(frame.code.co_names[ins.arg])))


# --- containers and text ---------------------------------------------------------------------------------------


@writer("UNPACK_SEQUENCE")
def unpack_sequence(cg: CodeGen, frame: Frame, ins: Instruction, stack: list[Value]) -> Performed:
    names = tuple(cg.local("u") for _ in range(ins.arg))
    targets = "".join(f"{n}, " for n in names) if names else "()"
    statement = f"({targets}) = {cg.value(stack[-1])}" if names else f"() = {cg.value(stack[-1])}"
    return Performed(1, (statement,), (Outcome(None, ins.index + 1, names[::-1]),))


@writer("UNPACK_EX")
def unpack_ex(cg: CodeGen, frame: Frame, ins: Instruction, stack: list[Value]) -> Performed:
    before, after = ins.arg & 255, ins.arg >> 8
    names = [cg.local("u") for _ in range(before + 1 + after)]
    targets = "".join(f"{'*' if i == before else ''}{n}, " for i, n in enumerate(names))
    return Performed(1, (f"({targets}) = {cg.value(stack[-1])}",), (Outcome(None, ins.index + 1, tuple(names[::-1])),))


@writer("LIST_EXTEND", "SET_UPDATE")
def extend(cg: CodeGen, frame: Frame, ins: Instruction, stack: list[Value]) -> Performed:
    target, value = cg.value(stack[-ins.arg - 1]), cg.value(stack[-1])
    method = "extend" if ins.name == "LIST_EXTEND" else "update"
    return _nothing(ins, 1, cg.in_region(f"{target}.{method}", value))


@writer("DICT_UPDATE")
def dict_update(cg: CodeGen, frame: Frame, ins: Instruction, stack: list[Value]) -> Performed:
    target, value = cg.value(stack[-ins.arg - 1]), cg.value(stack[-1])
    return _nothing(ins, 1, cg.in_region(cg.helper("dict_update"), target, value))


_CONVERSIONS: Final = {0: "", 1: "str", 2: "repr", 3: "ascii"}


@writer("FORMAT_VALUE")
def format_value(cg: CodeGen, frame: Frame, ins: Instruction, stack: list[Value]) -> Performed:
    n = 2 if ins.arg & 4 else 1
    spec = cg.value(stack[-1]) if n == 2 else "''"
    value = cg.value(stack[-n])
    if ins.arg & 3:
        value = cg.in_region(_CONVERSIONS[ins.arg & 3], value)
    return _one(cg, ins, n, cg.in_region("format", value, spec))


@writer("CONVERT_VALUE")
def convert_value(cg: CodeGen, frame: Frame, ins: Instruction, stack: list[Value]) -> Performed:
    return _one(cg, ins, 1, cg.in_region(_CONVERSIONS[ins.arg], cg.value(stack[-1])))


@writer("FORMAT_SIMPLE")
def format_simple(cg: CodeGen, frame: Frame, ins: Instruction, stack: list[Value]) -> Performed:
    return _one(cg, ins, 1, cg.in_region("format", cg.value(stack[-1]), "''"))


@writer("FORMAT_WITH_SPEC")
def format_with_spec(cg: CodeGen, frame: Frame, ins: Instruction, stack: list[Value]) -> Performed:
    return _one(cg, ins, 2, cg.in_region("format", cg.value(stack[-2]), cg.value(stack[-1])))


@writer("POP_TOP")
def pop_top(cg: CodeGen, frame: Frame, ins: Instruction, stack: list[Value]) -> Performed:
    return Performed(1, ("pass",), (Outcome(None, ins.index + 1, ()),))  # the value dies with the frame of the generated function


def _stored(
    ins: Instruction, pops: int, stores: Mapping[int, Operand | None], pushes: tuple[Operand, ...] = ()
) -> Performed:
    """An instruction that only binds variables. Their old values die with the frame of the generated function."""
    return Performed(pops, ("pass",), (Outcome(None, ins.index + 1, pushes, stores),))


@writer("STORE_FAST")
def store_fast(cg: CodeGen, frame: Frame, ins: Instruction, stack: list[Value]) -> Performed:
    return _stored(ins, 1, {ins.arg: cg.operand(stack[-1])})


@writer("STORE_FAST_LOAD_FAST")
def store_fast_load_fast(cg: CodeGen, frame: Frame, ins: Instruction, stack: list[Value]) -> Performed | None:
    loaded = stack[-1] if ins.arg >> 4 == ins.arg & 15 else frame.locals[ins.arg & 15]
    return None if loaded is None else _stored(ins, 1, {ins.arg >> 4: cg.operand(stack[-1])}, (cg.operand(loaded),))


@writer("STORE_FAST_STORE_FAST")
def store_fast_store_fast(cg: CodeGen, frame: Frame, ins: Instruction, stack: list[Value]) -> Performed:
    return _stored(ins, 2, {ins.arg >> 4: cg.operand(stack[-1]), ins.arg & 15: cg.operand(stack[-2])})


@writer("DELETE_FAST")
def delete_fast(cg: CodeGen, frame: Frame, ins: Instruction, stack: list[Value]) -> Performed | None:
    return None if frame.locals[ins.arg] is None else _stored(ins, 0, {ins.arg: None})


@writer("STORE_DEREF")
def store_deref(cg: CodeGen, frame: Frame, ins: Instruction, stack: list[Value]) -> Performed:
    cell = cg.value(frame.locals[ins.arg])  # type: ignore[arg-type]
    return _nothing(ins, 1, f"{cell}.cell_contents = {cg.value(stack[-1])}")


@writer("DELETE_DEREF")
def delete_deref(cg: CodeGen, frame: Frame, ins: Instruction, stack: list[Value]) -> Performed | None:
    cell = cell_at(frame, ins.arg)
    return None if cell.load(frame.cap) is None else _nothing(ins, 0, f"{cg.helper('clear_cell')}({cg.value(cell)})")


# --- branches --------------------------------------------------------------------------------------------------


def _branch(cg: CodeGen, ins: Instruction, stack: list[Value], jump_if: bool, keep: bool) -> Performed:
    test = cg.local("test")
    value = cg.operand(stack[-1])
    kept = (value,) if keep else ()
    condition = test.text if jump_if else f"not {test}"
    outcomes = (Outcome(condition, ins.target, kept), Outcome(None, ins.index + 1, ()))
    return Performed(1, (f"{test} = {cg.in_region('bool', value.text)}",), outcomes)


@writer("POP_JUMP_IF_TRUE", "POP_JUMP_FORWARD_IF_TRUE", "POP_JUMP_BACKWARD_IF_TRUE")
def pop_jump_if_true(cg: CodeGen, frame: Frame, ins: Instruction, stack: list[Value]) -> Performed:
    return _branch(cg, ins, stack, True, False)


@writer("POP_JUMP_IF_FALSE", "POP_JUMP_FORWARD_IF_FALSE", "POP_JUMP_BACKWARD_IF_FALSE")
def pop_jump_if_false(cg: CodeGen, frame: Frame, ins: Instruction, stack: list[Value]) -> Performed:
    return _branch(cg, ins, stack, False, False)


@writer("JUMP_IF_TRUE_OR_POP")
def jump_if_true_or_pop(cg: CodeGen, frame: Frame, ins: Instruction, stack: list[Value]) -> Performed:
    return _branch(cg, ins, stack, True, True)


@writer("JUMP_IF_FALSE_OR_POP")
def jump_if_false_or_pop(cg: CodeGen, frame: Frame, ins: Instruction, stack: list[Value]) -> Performed:
    return _branch(cg, ins, stack, False, True)


@writer("FOR_ITER")
def for_iter(cg: CodeGen, frame: Frame, ins: Instruction, stack: list[Value]) -> Performed:
    item, iterator = cg.local("item"), cg.operand(stack[-1])
    ended = cg.helper("ENDED")
    statement = f"{item} = {cg.in_region('next', iterator.text, ended)}"
    outcomes = (Outcome(f"{item} is {ended}", for_exit(ins), ()), Outcome(None, ins.index + 1, (iterator, item)))
    return Performed(1, (statement,), outcomes)


