"""The stack, constants, local variables, names, attributes, items, operators and imports."""

from __future__ import annotations

import importlib.util
import operator
import sys
from types import ModuleType
from typing import Any, Final

from dynamo.bytecode.decode import VERSION, Instruction
from dynamo.frames.frame import Frame
from dynamo.frames.handlers import op
from dynamo.guards.sources import ConstSource, DictItemSource, is_a
from dynamo.policy import callees
from dynamo.python.finalizers import cell_drop_is_visible, drop_is_visible, drops_iterator
from dynamo.report import causes
from dynamo.report.errors import Unsupported
from dynamo.values.base import NULL, Constant
from dynamo.values.functions import BoundMethod, CellValue
from dynamo.values.objects import DELETED, BuiltinMethod, ClassValue, PythonModule, SuperValue
from dynamo.values.protocols import Value
from dynamo.values.sequences import SliceValue
from dynamo.world.wrap import BUILTINS_NAMESPACE


# -- the stack, local variables and constants -----------------------------------------------------------------------
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
    value = frame.code.co_consts[ins.arg]
    # From CPython 3.13 on, the names of keyword arguments are on the stack. Only CALL_KW, which follows, reads them.
    is_names = frame.decoded.instructions[frame.pc].name == "CALL_KW"
    frame.push(Constant(value) if is_names else frame.constant(value))


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


# -- global names, attributes and items -----------------------------------------------------------------------------
_IMPORT: Final = BUILTINS_NAMESPACE["__import__"]

# --- names -----------------------------------------------------------------------------------------------------


def load_name(frame: Frame, name: str) -> Value:
    """Push a global or a builtin. The guards ensure that no later entry hides it."""
    cap, namespace = frame.cap, frame.globals
    pending = cap.effects.global_write(namespace, name)
    if pending is not None and pending is not DELETED:
        return pending
    held = ConstSource(namespace, "globals")
    if name in namespace and pending is not DELETED:
        return cap.world.wrap(namespace[name], DictItemSource(held, name))
    builtins_namespace = namespace.get("__builtins__", BUILTINS_NAMESPACE)
    if not isinstance(builtins_namespace, dict):
        builtins_namespace = vars(builtins_namespace)
    if pending is not DELETED:
        cap.world.guard("dict_absent", held, name)
    if name not in builtins_namespace:
        return cap.exceptions.raise_name_error(name)
    return cap.world.wrap(builtins_namespace[name], DictItemSource(ConstSource(builtins_namespace, "builtins"), name))


@op("LOAD_GLOBAL")
def load_global(frame: Frame, ins: Instruction) -> None:
    value = load_name(frame, frame.code.co_names[ins.arg >> 1])
    _push_callable(frame, value, bool(ins.arg & 1))


def _push_callable(frame: Frame, value: Value, with_null: bool) -> None:
    if not with_null:
        frame.push(value)
    elif VERSION.callable_first:
        frame.push(value)
        frame.push(NULL)
    else:
        frame.push(NULL)
        frame.push(value)


@op("STORE_GLOBAL")
def store_global(frame: Frame, ins: Instruction) -> None:
    frame.cap.effects.change(None)
    frame.cap.graphs.refuse_later("changes a global")
    frame.cap.effects.set_global(frame.globals, frame.code.co_names[ins.arg], frame.pop_raw())


@op("DELETE_GLOBAL")
def delete_global(frame: Frame, ins: Instruction) -> None:
    name = frame.code.co_names[ins.arg]
    pending = frame.cap.effects.global_write(frame.globals, name)
    if pending is DELETED or (pending is None and name not in frame.globals):
        frame.cap.exceptions.raise_name_error(name)
    load_name(frame, name)
    frame.cap.effects.change(None)
    frame.cap.graphs.refuse_later("changes a global")
    frame.cap.effects.set_global(frame.globals, name, DELETED)


@op("LOAD_ASSERTION_ERROR")
def load_assertion_error(frame: Frame, ins: Instruction) -> None:
    frame.push(frame.cap.world.wrap_static(AssertionError))


@op("LOAD_BUILD_CLASS")
def load_build_class(frame: Frame, ins: Instruction) -> None:
    frame.push(frame.cap.world.wrap_static(BUILTINS_NAMESPACE["__build_class__"]))


@op("LOAD_COMMON_CONSTANT")
def load_common_constant(frame: Frame, ins: Instruction) -> None:
    known: tuple[Any, ...] = (AssertionError, NotImplementedError, tuple, all, any)
    frame.push(frame.cap.world.wrap_static(known[ins.arg]))


# --- attributes ------------------------------------------------------------------------------------------------


@op("LOAD_ATTR")
def load_attr(frame: Frame, ins: Instruction) -> None:
    if VERSION.attr_method_bit:
        name, method = frame.code.co_names[ins.arg >> 1], bool(ins.arg & 1)
    else:
        name, method = frame.code.co_names[ins.arg], False
    value = frame.cap.attributes.read(frame.pop(), name)
    if method:
        push_method(frame, value)
    else:
        frame.push(value)


@op("LOAD_METHOD")
def load_method(frame: Frame, ins: Instruction) -> None:
    push_method(frame, frame.cap.attributes.read(frame.pop(), frame.code.co_names[ins.arg]))


def push_method(frame: Frame, value: Value) -> None:
    """The two stack items that begin a method call. A bound method stays one value, which can be rebuilt alone."""
    if isinstance(value, BuiltinMethod | BoundMethod):
        value.is_called = True
    _push_callable(frame, value, True)


@op("STORE_ATTR")
def store_attr(frame: Frame, ins: Instruction) -> None:
    owner, value = frame.pop(), frame.pop_raw()
    owner.setattr(frame.cap, frame.code.co_names[ins.arg], value)


@op("DELETE_ATTR")
def delete_attr(frame: Frame, ins: Instruction) -> None:
    frame.pop().delattr(frame.cap, frame.code.co_names[ins.arg])


@op("LOAD_SUPER_ATTR")
def load_super_attr(frame: Frame, ins: Instruction) -> None:
    obj, cls, fn = frame.pop(), frame.pop(), frame.pop()
    name = frame.code.co_names[ins.arg >> 2]
    if fn.is_constant and fn.as_constant() is super and isinstance(cls, ClassValue):
        value = SuperValue(cls.cls, obj).getattr(frame.cap, name)
    else:
        args = [cls, obj] if ins.arg & 2 else []
        value = frame.cap.realize(frame.cap.call(fn, args, {})).getattr(frame.cap, name)
    if ins.arg & 1:
        push_method(frame, value)
    else:
        frame.push(value)


# --- items -----------------------------------------------------------------------------------------------------


@op("BINARY_SUBSCR")
def binary_subscr(frame: Frame, ins: Instruction) -> None:
    key, owner = frame.pop(), frame.pop()
    frame.push(frame.cap.operators.getitem(owner, key))


@op("STORE_SUBSCR")
def store_subscr(frame: Frame, ins: Instruction) -> None:
    key, owner, value = frame.pop(), frame.pop(), frame.pop_raw()
    frame.cap.call_method(owner, "__setitem__", [key, value], {})


@op("DELETE_SUBSCR")
def delete_subscr(frame: Frame, ins: Instruction) -> None:
    key, owner = frame.pop(), frame.pop()
    frame.cap.call_method(owner, "__delitem__", [key], {})


@op("BINARY_SLICE")
def binary_slice(frame: Frame, ins: Instruction) -> None:
    stop, start, owner = frame.pop(), frame.pop(), frame.pop()
    frame.push(frame.cap.operators.getitem(owner, SliceValue(start, stop, Constant(None))))


@op("STORE_SLICE")
def store_slice(frame: Frame, ins: Instruction) -> None:
    stop, start, owner, value = frame.pop(), frame.pop(), frame.pop(), frame.pop_raw()
    frame.cap.call_method(owner, "__setitem__", [SliceValue(start, stop, Constant(None)), value], {})


@op("BUILD_SLICE")
def build_slice(frame: Frame, ins: Instruction) -> None:
    step = frame.pop() if ins.arg == 3 else Constant(None)
    stop, start = frame.pop(), frame.pop()
    frame.push(SliceValue(start, stop, step))


# --- operators -------------------------------------------------------------------------------------------------

_NAMES: Final = "add and_ floordiv lshift matmul mul mod or_ pow rshift sub truediv xor".split()
_BINARY_OPS: Final = [getattr(operator, n) for n in _NAMES]
_INPLACE_OPS: Final = [getattr(operator, "i" + n.strip("_")) for n in _NAMES]
_COMPARISONS: Final = (operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge)
BINARY_SUBSCRIPT: Final = 26  # NB_SUBSCR, 3.14


@op("BINARY_OP")
def binary_op(frame: Frame, ins: Instruction) -> None:
    b, a = frame.pop(), frame.pop()
    if ins.arg == BINARY_SUBSCRIPT:
        frame.push(frame.cap.operators.getitem(a, b))
    elif ins.arg < len(_BINARY_OPS):
        frame.push(frame.cap.operators.binary(_BINARY_OPS[ins.arg], a, b))
    else:
        frame.push(frame.cap.operators.inplace(_INPLACE_OPS[ins.arg - len(_BINARY_OPS)], a, b))


def comparison(arg: int) -> Any:
    """The operator function of a COMPARE_OP argument."""
    return _COMPARISONS[arg >> VERSION.compare_shift]


@op("COMPARE_OP")
def compare_op(frame: Frame, ins: Instruction) -> None:
    b, a = frame.pop(), frame.pop()
    value = frame.cap.operators.compare(comparison(ins.arg), a, b)
    if VERSION.compare_to_bool and ins.arg & VERSION.compare_to_bool:
        value = Constant(frame.cap.truth(value))
    frame.push(value)


@op("IS_OP")
def is_op(frame: Frame, ins: Instruction) -> None:
    b, a = frame.pop(), frame.pop()
    frame.push(Constant(frame.cap.operators.same_object(a, b) != bool(ins.arg)))


@op("CONTAINS_OP")
def contains_op(frame: Frame, ins: Instruction) -> None:
    container, item = frame.pop(), frame.pop()
    frame.push(Constant(frame.cap.operators.contains(container, item) != bool(ins.arg)))


@op("UNARY_NOT")
def unary_not(frame: Frame, ins: Instruction) -> None:
    value = frame.pop()
    frame.push(Constant(not frame.cap.truth(value)))


@op("TO_BOOL")
def to_bool(frame: Frame, ins: Instruction) -> None:
    frame.push(Constant(frame.cap.truth(frame.pop())))


@op("UNARY_NEGATIVE")
def unary_negative(frame: Frame, ins: Instruction) -> None:
    frame.push(frame.cap.operators.unary(operator.neg, frame.pop()))


@op("UNARY_POSITIVE")
def unary_positive(frame: Frame, ins: Instruction) -> None:
    frame.push(frame.cap.operators.unary(operator.pos, frame.pop()))


@op("UNARY_INVERT")
def unary_invert(frame: Frame, ins: Instruction) -> None:
    frame.push(frame.cap.operators.unary(operator.invert, frame.pop()))


# --- imports ---------------------------------------------------------------------------------------------------


@op("IMPORT_NAME")
def import_name(frame: Frame, ins: Instruction) -> None:
    fromlist, level = frame.pop(), frame.pop()
    name = frame.code.co_names[ins.arg]
    depth = level.as_constant()
    package = frame.globals.get("__package__") or ""
    if depth:
        absolute = importlib.util.resolve_name("." * depth + name, package)
    else:
        absolute = name
    module = sys.modules.get(absolute)
    if module is None:
        module = _import_now(frame, absolute)
    if not is_a(module, ModuleType):  # a module stand-in may run code of the program
        raise Unsupported(causes.IMPORT, f"import {absolute}, which is not a module")
    names = fromlist.as_constant() or ()
    missing = [n for n in names if n != "*" and not hasattr(module, n)]
    if missing and hasattr(module, "__path__"):
        raise Unsupported(causes.IMPORT, f"from {absolute} import {missing[0]}")  # a submodule, not loaded yet
    if not names and not depth:
        module = sys.modules[absolute.partition(".")[0]]
        absolute = absolute.partition(".")[0]
    held = ConstSource(sys.modules, "sys.modules")
    frame.push(frame.cap.world.wrap(module, DictItemSource(held, absolute)))


def _import_now(frame: Frame, name: str) -> ModuleType:
    """Import a module at capture, on behalf of this call: later calls find it imported.

    The code of the module must see the same state as in eager execution. So the graph breaks if the program has changed
    anything before, except for a module of this project, and if the module cannot be imported.
    """
    cap = frame.cap
    changed = (cap.effects.outside or cap.recorder.writes_inputs or cap.recorder.effect_nodes) and not callees.is_own_module(name)
    if changed or BUILTINS_NAMESPACE["__import__"] is not _IMPORT or importlib.util.find_spec(name.partition(".")[0]) is None:
        raise Unsupported(causes.IMPORT, f"import {name}")
    try:
        return importlib.import_module(name)
    except Exception as error:
        raise Unsupported(causes.IMPORT, f"import {name}") from error


@op("IMPORT_FROM")
def import_from(frame: Frame, ins: Instruction) -> None:
    module = frame.cap.realize(frame.stack[-1])
    name = frame.code.co_names[ins.arg]
    if not isinstance(module, PythonModule) or not hasattr(module.module, name):
        raise Unsupported(causes.IMPORT, f"from {module.describe()} import {name}")
    frame.push(module.getattr(frame.cap, name))
