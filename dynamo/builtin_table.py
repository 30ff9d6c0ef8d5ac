"""Builtins, and the C functions of the standard library that captured code may call, as a table by identity.

A row is a function of (capture, args, kwargs). What is not here ends the graph when it is called with captured values.
Part of Capture: `Builtins` looks rows up.
"""

from __future__ import annotations

import builtins
import collections
import functools
import gc
import importlib
import math
import operator
import sys
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import eager
from dynamo import breaks
from dynamo.errors import Raised, Unsupported
from dynamo.operations import BINARY, COMPARE, INPLACE, UNARY
from dynamo.set_history import History
from dynamo.sources import ConstSource
from dynamo.values.base import NotConstant, Value
from dynamo.values.constant import FALSE, NONE, TRUE, Constant
from dynamo.values.containers import container_base, new_container
from dynamo.values.functions import CellValue, PartialValue
from dynamo.values.iterators import (
    CallIterator,
    EnumerateIterator,
    FilterIterator,
    MapIterator,
    ReversedIterator,
    ZipIterator,
)
from dynamo.values.mappings import DictValue, SetValue, constants_of, history_of
from dynamo.values.objects import BuiltinMethod, ClassValue, ExceptionValue, SuperValue, UserObject
from dynamo.values.sequences import ListValue, RangeValue, SliceValue, TupleValue
from dynamo.values.symint import SymbolicValue, SymIntValue, host_value
from dynamo.values.tensor import TensorMethod, TensorValue
from dynamo.wrap import is_named_tuple
from eager import _native as eager_native
from eager import ambient
from eager.amp import autocast_mode
from eager.nn import Module
from eager.symfloat import as_float, square_root

if TYPE_CHECKING:
    from dynamo.capture import Capture

Args: TypeAlias = "list[Value]"
Kwargs: TypeAlias = "dict[str, Value]"
Row: TypeAlias = "Callable[[Capture, Args, Kwargs], Value]"

FUNCTIONS: Final[dict[Any, Row]] = {}
CLASSES: Final[dict[type, Row]] = {}
ZERO: Final = Constant(0)
ONE: Final = Constant(1)
SPECIAL: Final[dict[Any, Row]] = {}  # Python functions that are answered rather than followed


def function(*fns: Any) -> Callable[[Row], Row]:
    """Register the row of C functions."""

    def register(row: Row) -> Row:
        for fn in fns:
            FUNCTIONS[fn] = row
        return row

    return register


def cls(kind: type) -> Callable[[Row], Row]:
    """Register what calling a class does."""

    def register(row: Row) -> Row:
        CLASSES[kind] = row
        return row

    return register


class Builtins:
    """Part of Capture: the look-up."""

    def builtin_function(self, fn: Any) -> Row | None:
        if isinstance(getattr(fn, "__self__", None), type) and fn.__name__ == "__subclasses__":
            return _asked(fn)  # another object each time
        try:
            return FUNCTIONS.get(fn)
        except TypeError:  # not hashable: not in the table
            return None

    def builtin_class(self, kind: type) -> Row | None:
        return CLASSES.get(kind)

    def special_function(self, fn: Any) -> Row | None:
        return SPECIAL.get(fn)

    def object_method(self, owner: UserObject, name: str, args: Args, kwargs: Kwargs) -> Value:
        """object.<name>(owner, ...): what super() and explicit base calls reach."""
        cap: Capture = self  # type: ignore[assignment]
        if name == "__setattr__" and not isinstance(owner.real, Module):
            cap.generic_set(owner, args[0].as_constant(), args[1])
            return NONE
        if name == "__getattribute__":
            return cap.generic_attribute(owner, owner.cls, args[0].as_constant())
        if name == "__delattr__" and not isinstance(owner.real, Module):
            cap.generic_delete(owner, args[0].as_constant())
            return NONE
        if name == "__init__":
            if isinstance(owner, ExceptionValue) and owner.source is None:
                if owner.initialized:
                    raise Unsupported(breaks.EXCEPTION, f"{owner.describe()}.__init__() a second time")
                cap.mutating(owner)
                owner.args = list(args)
                owner.initialized = True
            return NONE
        if name == "__eq__":
            return TRUE if cap.same_object(owner, args[0]) else Constant(NotImplemented)
        if name == "__ne__":
            return FALSE if cap.same_object(owner, args[0]) else Constant(NotImplemented)
        if name == "__init_subclass__":
            return NONE
        raise Unsupported(breaks.OPAQUE_OBJECT, f"object.{name} of {owner.describe()}")

    def module_has_hooks(self, obj: UserObject) -> bool:
        """Whether the call of a module runs hooks, or was compiled in place."""
        cap: Capture = self  # type: ignore[assignment]
        found = False
        for name in ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks"):
            hooks = cap.realize(obj.getattr(cap, name))
            found = found or hooks.truth(cap)
        return found


def constants(cap: Capture, args: Args, kwargs: Kwargs) -> tuple[list[Any], dict[str, Any]]:
    """Host values of constant arguments. Raises: NotConstant."""
    return [cap.realize(a).as_constant() for a in args], {k: cap.realize(v).as_constant() for k, v in kwargs.items()}


def on_constants(fn: Any) -> Row:
    """A row for a pure function: it runs on constants at capture."""

    def row(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
        try:
            given, named = constants(cap, args, kwargs)
        except NotConstant:
            for arg in args:
                if isinstance(cap.realize(arg), TensorValue):
                    raise Unsupported(breaks.DATA_DEPENDENT_VALUE, f"{getattr(fn, '__name__', fn)}() of {arg.describe()}") from None
            raise Unsupported(breaks.UNKNOWN_CALL, f"{getattr(fn, '__name__', fn)}() of values that are not constant") from None
        return cap.wrap_new(cap.host(fn, *given, **named))

    return row


# --- operators and pure functions ------------------------------------------------------------------------------

for _fn in BINARY:
    FUNCTIONS[_fn] = lambda cap, a, k, fn=_fn: cap.binary(fn, a[0], a[1])  # type: ignore[misc]
for _fn in INPLACE:
    FUNCTIONS[_fn] = lambda cap, a, k, fn=_fn: cap.inplace(fn, a[0], a[1])  # type: ignore[misc]
for _fn in COMPARE:
    FUNCTIONS[_fn] = lambda cap, a, k, fn=_fn: cap.compare(fn, a[0], a[1])  # type: ignore[misc]
for _fn in UNARY:
    FUNCTIONS[_fn] = lambda cap, a, k, fn=_fn: cap.unary(fn, a[0])  # type: ignore[misc]
FUNCTIONS[operator.abs] = FUNCTIONS[abs]
for _name, _fn in vars(math).items():
    if callable(_fn):
        FUNCTIONS[_fn] = on_constants(_fn)
for _fn in (bin, chr, hex, oct, ord, ascii, round, pow, sys.intern):
    FUNCTIONS[_fn] = on_constants(_fn)


def _asked(fn: Any) -> Row:
    """A question about the process, which is asked again at each call."""

    def row(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
        answer = cap.host(fn)
        cap.guards.add("call_eq", (), fn, answer, origin=cap.origin)
        return cap.wrap_new(answer)

    return row


for _fn in (sys.getrecursionlimit, gc.isenabled):
    FUNCTIONS[_fn] = _asked(_fn)
for _fn in (eager.get_num_threads, eager.get_num_interop_threads):
    SPECIAL[_fn] = _asked(_fn)


def _or_tensor(fn: Any, method: str) -> Row:
    plain = on_constants(fn)

    def row(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
        first = cap.realize(args[0]) if args else NONE
        if any(isinstance(cap.realize(a), TensorValue) for a in args):
            return cap.tensor_call(fn, args, kwargs)
        if isinstance(first, UserObject) and cap.class_has(first.cls, method):
            return cap.call_method(first, method, args[1:], kwargs)
        return plain(cap, args, kwargs)

    return row


FUNCTIONS[pow] = _or_tensor(pow, "__pow__")
FUNCTIONS[round] = _or_tensor(round, "__round__")
_plain_divmod = _or_tensor(divmod, "__divmod__")


@function(divmod)
def _divmod(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    if any(isinstance(cap.realize(a), SymIntValue) for a in args) and len(args) == 2:
        return TupleValue([cap.binary(operator.floordiv, *args), cap.binary(operator.mod, *args)])
    return _plain_divmod(cap, args, kwargs)


FUNCTIONS[operator.index] = lambda cap, a, k: _symbolic(cap, a) or cap.wrap_new(cap.host(operator.index, cap.index_constant(a[0])))


def _symbolic(cap: Capture, args: Args) -> SymIntValue | None:
    """The only argument, if it is an int known as an expression."""
    first = cap.realize(args[0]) if len(args) == 1 else None
    return SymIntValue(first.symbolic) if isinstance(first, SymIntValue) else None


def _named(fn: Any, cause: breaks.Cause) -> Row:
    def row(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
        raise Unsupported(cause, f"builtin {fn.__name__}()")

    return row


for _fn in (print, input, open):
    FUNCTIONS[_fn] = _named(_fn, breaks.UNKNOWN_CALL)
_FRAMES_LOOKED_AT: Final = ("_getframe", "_getframemodulename", "_current_frames")  # the second from 3.12 on
for _fn in (breakpoint, vars, locals, dir, eval, exec, compile, *(getattr(sys, n) for n in _FRAMES_LOOKED_AT if hasattr(sys, n))):
    FUNCTIONS[_fn] = _named(_fn, breaks.FRAME_INTROSPECTION)


@function(id)
def _id(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    value = cap.realize(args[0])
    if isinstance(value.source, ConstSource):
        return Constant(id(value.source.value))  # the entry holds the object, so the number stays its own
    raise Unsupported(breaks.IDENTITY, f"id of {cap.realize(args[0]).describe()}")


@function(hash)
def _hash(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    value = cap.realize(args[0])
    if isinstance(value, UserObject) and isinstance(getattr(value.cls, "__hash__", None), types.FunctionType):
        return cap.call_method(value, "__hash__", [], {})
    if value.is_constant and isinstance(value, Constant | TupleValue):
        return Constant(cap.host(hash, value.as_constant()))
    raise Unsupported(breaks.IDENTITY, f"hash of {value.describe()}")


@function(globals)
def _globals(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    raise Unsupported(breaks.FRAME_INTROSPECTION, "globals()")


@function(len)
def _len(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    return cap.length(args[0])


@function(isinstance)
def _isinstance(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    return Constant(cap.isinstance(args[0], args[1]))


@function(issubclass)
def _issubclass(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    first = cap.realize(args[0])
    if isinstance(first, UserObject):
        raise Unsupported(breaks.UNKNOWN_CALL, f"issubclass() of {first.describe()}")  # its __bases__ may do for a class
    if not isinstance(first, ClassValue):
        return cap.raise_type_error("issubclass() arg 1 must be a class")  # type: ignore[no-any-return]
    wanted = cap.realize(args[1])
    classes = [cap.realize(c) for c in wanted.items] if isinstance(wanted, TupleValue) else [wanted]
    return Constant(any(cap.is_subclass(first.cls, c.as_constant()) for c in classes))


@function(callable)
def _callable(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    value = cap.realize(args[0])
    return Constant(cap.class_has(value.python_type(), "__call__") or isinstance(value, BuiltinMethod | TensorMethod))


@function(getattr)
def _getattr(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    name = cap.realize(args[1]).as_constant()
    return cap.get_attribute(args[0], name, args[2] if len(args) > 2 else None)


@function(hasattr)
def _hasattr(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    return Constant(cap.has_attribute(args[0], cap.realize(args[1]).as_constant()))


@function(setattr)
def _setattr(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    cap.realize(args[0]).setattr(cap, cap.realize(args[1]).as_constant(), args[2])
    return NONE


@function(delattr)
def _delattr(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    cap.realize(args[0]).delattr(cap, cap.realize(args[1]).as_constant())
    return NONE


@function(repr)
def _repr(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    return cap.to_text(args[0], repr)


@function(format)
def _format(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    return cap.format(args[0], cap.realize(args[1]).as_constant() if len(args) > 1 else "")


@function(iter)
def _iter(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    if len(args) == 2:
        return CallIterator(args[0], args[1])
    return cap.iterate(args[0])


@function(next)
def _next(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    iterator = cap.realize(args[0])
    try:
        found = cap.next(iterator)
    except Raised as error:
        if len(args) > 1 and issubclass(error.value.python_type(), StopIteration):
            return args[1]
        raise
    if found is not None:
        return found
    if len(args) > 1:
        return args[1]
    returned = getattr(iterator, "returned", NONE)
    return cap.raise_values(StopIteration, [] if returned is NONE else [returned])


@function(all)
def _all(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    iterator = cap.iterate(args[0])
    while (item := cap.next(iterator)) is not None:
        if not cap.truth(item):
            return FALSE
    return TRUE


@function(any)
def _any(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    iterator = cap.iterate(args[0])
    while (item := cap.next(iterator)) is not None:
        if cap.truth(item):
            return TRUE
    return FALSE


@function(sum)
def _sum(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    total = cap.realize(args[1] if len(args) > 1 else kwargs.get("start", ZERO))
    iterator = cap.iterate(args[0])
    front: list[Any] | None = [] if isinstance(total, Constant) else None  # constants, which Python's own sum adds best
    while (item := cap.next(iterator)) is not None:
        item = cap.realize(item)
        if front is not None and isinstance(item, Constant):
            front.append(host_value(item))
            continue
        if front is not None:
            total, front = cap.wrap_new(cap.host(sum, front, host_value(total))), None
        total = cap.realize(cap.binary(operator.add, total, item))
    return total if front is None else cap.wrap_new(cap.host(sum, front, host_value(total)))


def _extreme(fn: Any, better: Any) -> Row:
    def row(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
        items = cap.exhaust(cap.iterate(args[0])) if len(args) == 1 else list(args)
        if not items:
            if "default" in kwargs:
                return kwargs["default"]
            name = fn.__name__
            message = f"{name}() arg is an empty sequence" if sys.version_info < (3, 12) else f"{name}() iterable argument is empty"
            return cap.raise_(ValueError, message)
        key = kwargs.get("key")
        use_key = key is not None and not _is_none(cap.realize(key))
        best = items[0]
        best_key = cap.call(key, [best], {}) if use_key and key is not None else best
        for item in items[1:]:
            item_key = cap.call(key, [item], {}) if use_key and key is not None else item
            if cap.truth(cap.compare(better, item_key, best_key)):
                best, best_key = item, item_key
        return best

    return row


FUNCTIONS[max] = _extreme(max, operator.gt)
FUNCTIONS[min] = _extreme(min, operator.lt)


@function(sorted)
def _sorted(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    return ListValue(cap.sorted(cap.unpack(args[0]), kwargs))


@function(operator.getitem)
def _op_getitem(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    return cap.getitem(args[0], args[1])


@function(operator.setitem)
def _op_setitem(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    return cap.call_method(args[0], "__setitem__", args[1:], {})


@function(operator.not_)
def _op_not(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    return Constant(not cap.truth(args[0]))


@function(operator.truth)
def _op_truth(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    return Constant(cap.truth(args[0]))


@function(operator.is_)
def _op_is(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    return Constant(cap.same_object(args[0], args[1]))


@function(operator.is_not)
def _op_is_not(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    return Constant(not cap.same_object(args[0], args[1]))


@function(operator.contains)
def _op_contains(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    return Constant(cap.contains(args[0], args[1]))


@function(functools.reduce)
def _reduce(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    iterator = cap.iterate(args[1])
    total = args[2] if len(args) > 2 else cap.next(iterator)
    if total is None:
        return cap.raise_type_error("reduce() of empty iterable with no initial value")  # type: ignore[no-any-return]
    while (item := cap.next(iterator)) is not None:
        total = cap.call(args[0], [total, item], {})
    return total


@function(sys.exc_info)
def _exc_info(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    if cap.handled is None:
        return TupleValue([NONE, NONE, NONE])
    raise Unsupported(breaks.EXCEPTION, "sys.exc_info() in a handler")


# --- eager's own -----------------------------------------------------------------------------------------------


@function(eager_native.set_grad_enabled)
def _set_grad_enabled(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    return Constant(cap.set_grad_mode(cap.truth(args[0])))


@function(eager_native.inference_mode)
def _inference_mode(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    return Constant(eager_native.inference_mode())


@function(eager_native.set_inference_mode)
def _set_inference_mode(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    # Compiled code makes ordinary tensors; of inference mode it keeps that nothing is recorded.
    return Constant(eager_native.inference_mode())


@function(eager_native.grad_enabled)
def _grad_enabled(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    return Constant(cap.grad_mode)


@function(ambient.switch_autocast)
def _switch_autocast(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    return Constant(cap.switch_autocast(cap.realize(args[0]).as_constant()))


@function(autocast_mode._number)
def _autocast_number(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    return Constant(autocast_mode._number(*(cap.realize(a).as_constant() for a in args)))


@function(autocast_mode._settings)
def _autocast_settings(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    given = [cap.realize(a).as_constant() for a in args]
    if given[1] is None:
        cap.guards.add("call_eq", (), autocast_mode.default_dtypes, autocast_mode.default_dtypes(), origin=cap.origin)
    return TupleValue([Constant(v) for v in autocast_mode._settings(*given)])


@function(autocast_mode.is_autocast_enabled)
def _is_autocast_enabled(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    return Constant(autocast_mode.is_autocast_enabled(*(cap.realize(a).as_constant() for a in (*args, *kwargs.values()))))


SPECIAL[ambient.switch_autocast] = _switch_autocast
SPECIAL[autocast_mode._number] = _autocast_number
SPECIAL[autocast_mode._settings] = _autocast_settings
SPECIAL[autocast_mode.is_autocast_enabled] = _is_autocast_enabled
SPECIAL[eager.is_grad_enabled] = _grad_enabled
FUNCTIONS[eager.is_grad_enabled] = _grad_enabled


def _is_compiling(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    return TRUE


for _name in ("is_compiling", "is_dynamo_compiling"):
    SPECIAL[getattr(eager.compiler, _name)] = _is_compiling


SPECIAL[eager.compiler.is_exporting] = lambda cap, a, k: FALSE


def _is_tensor(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    return Constant(isinstance(cap.realize(args[0]), TensorValue))


SPECIAL[eager.is_tensor] = _is_tensor


def _tensor_question(name: str) -> Row:
    def row(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
        return cap.call_method(args[0], name, args[1:], kwargs)

    return row


SPECIAL[eager.is_floating_point] = _tensor_question("is_floating_point")
SPECIAL[eager.numel] = _tensor_question("numel")
for _fn in (eager.get_default_dtype,):
    SPECIAL[_fn] = lambda cap, a, k: cap.default_dtype()


def pure_own(fn: Any) -> None:
    """Functions of ours on dtypes and numbers."""
    SPECIAL[fn] = on_constants(fn)


for _fn in (eager.promote_types, eager.can_cast):
    if isinstance(_fn, types.FunctionType):
        pure_own(_fn)

# --- classes ---------------------------------------------------------------------------------------------------


def _is_none(value: Value) -> bool:
    return isinstance(value, Constant) and value.holds(None)


@cls(object)
def _object(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    return UserObject(object, born=cap.steps)


@cls(type)
def _type(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    if len(args) != 1:
        raise Unsupported(breaks.UNKNOWN_CALL, "type() with three arguments")
    return cap.wrap_static(cap.realize(args[0]).python_type())


@cls(super)
def _super(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    if args:
        owner = cap.realize(args[0])
        if not isinstance(owner, ClassValue) or len(args) < 2:
            raise Unsupported(breaks.ATTRIBUTE, "super() of this kind")
        return SuperValue(owner.cls, cap.realize(args[1]))
    owner, first = _caller_of_super(cap)
    return SuperValue(owner.cls, first)


def _caller_of_super(cap: Capture) -> tuple[ClassValue, Value]:
    """What `super()` without arguments takes from the running function, with CPython's checks in CPython's order."""
    frame = cap.frames[-1]
    slots, code = frame.decoded.slots, frame.code
    if not code.co_argcount:
        return cap.raise_(RuntimeError, "super(): no arguments")
    first = frame.locals[0]
    if first is not None and code.co_varnames[0] in code.co_cellvars:
        first = cap.realize(first).load(cap)  # type: ignore[attr-defined]
    if first is None:
        return cap.raise_(RuntimeError, "super(): arg[0] deleted")
    if "__class__" not in code.co_freevars:
        return cap.raise_(RuntimeError, "super(): __class__ cell not found")
    cell = cap.realize(frame.locals[slots.index("__class__")])  # type: ignore[arg-type]
    assert isinstance(cell, CellValue)
    contents = cell.load(cap)
    if contents is None:
        return cap.raise_(RuntimeError, "super(): empty __class__ cell")
    owner = cap.realize(contents)
    if not isinstance(owner, ClassValue):
        return cap.raise_(RuntimeError, f"super(): __class__ is not a type ({owner.python_type().__name__})")
    return owner, cap.realize(first)


@cls(bool)
def _bool(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    return Constant(cap.truth(args[0])) if args else FALSE


def _number(kind: type, method: str) -> Row:
    def row(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
        first = cap.realize(args[0]) if args else NONE
        if isinstance(first, TensorValue):
            raise Unsupported(breaks.DATA_DEPENDENT_VALUE, f"{kind.__name__}() of {first.describe()}")
        if isinstance(first, UserObject) and cap.class_has(first.cls, method) and first.real is None:
            return cap.call_method(first, method, [], {})
        return on_constants(kind)(cap, args, kwargs)

    return row


_plain_int = _number(int, "__int__")
CLASSES[int] = lambda cap, args, kwargs: _symbolic(cap, args) or _plain_int(cap, args, kwargs)
_plain_float = _number(float, "__float__")


def _of_symbolic(fn: Callable[[Any], Any], plain: Row) -> Row:
    """A row of one argument: `fn` where that is a symbolic number."""

    def row(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
        first = cap.realize(args[0]) if len(args) == 1 and not kwargs else NONE
        return cap.wrap_new(cap.host(fn, first.symbolic)) if isinstance(first, SymbolicValue) else plain(cap, args, kwargs)

    return row


CLASSES[float] = _of_symbolic(as_float, _plain_float)
FUNCTIONS[math.sqrt] = _of_symbolic(square_root, FUNCTIONS[math.sqrt])
CLASSES[complex] = _number(complex, "__complex__")
CLASSES[bytes] = on_constants(bytes)
CLASSES[eager.device] = on_constants(eager.device)


@cls(str)
def _str(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    if len(args) == 1 and not kwargs:
        return cap.to_text(args[0], str)
    return on_constants(str)(cap, args, kwargs)


@cls(list)
def _list(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    return ListValue(cap.unpack(args[0]) if args else [])


@cls(tuple)
def _tuple(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    if args:
        first = cap.realize(args[0])
        if isinstance(first, TupleValue) and first.cls is tuple:
            return first
    return TupleValue(cap.unpack(args[0]) if args else [])


@cls(eager.finfo)
def _finfo(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    if not args and not kwargs:
        cap.depend_on_defaults()
    return on_constants(eager.finfo)(cap, args, kwargs)


CLASSES[eager.iinfo] = on_constants(eager.iinfo)


@cls(eager.Tensor)
def _tensor(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    return cap.tensor_call(eager.Tensor, args, kwargs)


@cls(eager.Size)
def _size(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    return TupleValue(cap.unpack(args[0]) if args else [], None, eager.Size)


@cls(collections.deque)
def _deque(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    limit = args[1] if len(args) > 1 else kwargs.get("maxlen", NONE)
    maxlen = cap.index_constant(limit)
    new = ListValue([], None, collections.deque, maxlen)
    if args:
        new.extend(cap, args[0])
    return new


def _dict_like(kind: type) -> Row:
    def row(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
        factory = None
        if kind is collections.defaultdict:
            factory, args = (args[0], args[1:]) if args else (NONE, args)
        new = DictValue(kind, None, factory)
        cap.call_method(new, "update", args[:1], kwargs)
        return new

    return row


for _kind in (dict, collections.OrderedDict, collections.defaultdict):
    CLASSES[_kind] = _dict_like(_kind)


@cls(collections.Counter)
def _counter(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    new = DictValue(collections.Counter)
    first = cap.realize(args[0]) if args else NONE
    if isinstance(first, DictValue) or kwargs:
        raise Unsupported(breaks.UNKNOWN_CALL, "Counter() of a mapping")
    for item in cap.unpack(first) if args else []:
        old = new.get(cap, item)
        new.set(cap, item, cap.binary(operator.add, Constant(0) if old is None else old, Constant(1)))
    return new


def _set_like(kind: type) -> Row:
    def row(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
        new = SetValue(kind)
        if args:
            source = cap.realize(args[0])
            if kind is frozenset and isinstance(source, SetValue) and source.cls is frozenset:
                return source
            items = list(source.entries.values()) if isinstance(source, SetValue) else cap.exhaust(cap.iterate(source))
            for item in map(cap.realize, items):
                new.entries.setdefault(cap.hash_key(item), item)
            known = source.history if isinstance(source, SetValue) else constants_of(cap, items)
            if isinstance(source, DictValue):
                known = history_of(cap, source)
            new.made = None if known is None else History(kind, (known,))
        else:
            new.made = History(kind)
        new.born = cap.steps
        return new

    return row


CLASSES[set] = _set_like(set)
CLASSES[frozenset] = _set_like(frozenset)


@cls(range)
def _range(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    return RangeValue(cap.host(range, *(cap.index_constant(a) for a in args)))


@cls(slice)
def _slice(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    start, stop, step = (NONE, args[0], NONE) if len(args) == 1 else (*args, NONE)[:3]
    return SliceValue(cap.realize(start), cap.realize(stop), cap.realize(step))


@cls(enumerate)
def _enumerate(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    start = args[1] if len(args) > 1 else kwargs.get("start", Constant(0))
    return EnumerateIterator(cap.iterate(args[0] if args else kwargs["iterable"]), cap.index_constant(start))


@cls(zip)
def _zip(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    strict = "strict" in kwargs and cap.truth(kwargs["strict"])
    return ZipIterator([cap.iterate(a) for a in args], strict)


@cls(map)
def _map(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    return MapIterator(args[0], [cap.iterate(a) for a in args[1:]])


@cls(filter)
def _filter(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    return FilterIterator(cap.realize(args[0]), cap.iterate(args[1]))


@cls(reversed)
def _reversed(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    value = cap.realize(args[0])
    if isinstance(value, RangeValue):
        return cap.range_iterator(value.value[::-1])
    if isinstance(value, ListValue | TupleValue) and value.family in (list, tuple):
        return ReversedIterator(value)
    if isinstance(value, Constant) and isinstance(value.value, str | bytes):
        return cap.sequence_iterator(cap.unpack(value)[::-1], NONE)
    if isinstance(value, TensorValue):
        raise Unsupported(breaks.OPAQUE_ITERATOR, "reversed() of a tensor")
    if isinstance(value, UserObject) and not cap.class_has(value.cls, "__reversed__"):
        count = cap.call_method(value, "__len__", [], {}).as_constant()
        return cap.sequence_iterator([cap.getitem(value, Constant(i)) for i in reversed(range(count))], NONE)
    return cap.call_method(value, "__reversed__", [], {})


@cls(functools.partial)
def _partial(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    fn = cap.realize(args[0])
    if isinstance(fn, PartialValue):
        return PartialValue(fn.fn, [*fn.args, *args[1:]], {**fn.kwargs, **kwargs})
    return PartialValue(fn, list(args[1:]), dict(kwargs))


SPECIAL[importlib.import_module] = _named(importlib.import_module, breaks.IMPORT)
FUNCTIONS[builtins.__import__] = _named(builtins.__import__, breaks.IMPORT)


def fromkeys(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    """dict.fromkeys(keys, value)"""
    new = DictValue()
    for key in cap.unpack(args[0]):
        new.set(cap, key, args[1] if len(args) > 1 else NONE)
    return new


def _tuple_new(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    kind = cap.realize(args[0]).as_constant()
    if container_base(kind) is tuple and not is_named_tuple(kind):
        return new_container(cap, kind, tuple, args[1:], kwargs)
    if kind is not tuple and not is_named_tuple(kind):
        raise Unsupported(breaks.UNKNOWN_CALL, f"tuple.__new__({kind.__name__})")
    return TupleValue(cap.unpack(args[1]) if len(args) > 1 else [], None, kind)


def _container_new(cap: Capture, args: Args, kwargs: Kwargs) -> Value:
    kind = cap.realize(args[0]).as_constant()
    base = container_base(kind)
    if base is None:
        raise Unsupported(breaks.UNKNOWN_CALL, f"{kind.__name__}.__new__()")
    return new_container(cap, kind, base, args[1:], kwargs)


FUNCTIONS[tuple.__new__] = _tuple_new
for _base in (dict, collections.OrderedDict, list):
    FUNCTIONS[_base.__new__] = _container_new
FUNCTIONS[type.__call__] = lambda cap, a, k: cap.make_instance(cap.realize(a[0]), a[1:], k)  # type: ignore[arg-type]
FUNCTIONS[dict.fromkeys] = fromkeys
FUNCTIONS[object.__new__] = lambda cap, a, k: cap.new_object(cap.realize(a[0]).as_constant(), a[1:], k)
