"""Functions of C that captured code may call: builtins, operators, math, functools.

Part of the builtin table; importing this module adds its rows.
"""

from __future__ import annotations

import enum
import functools
import gc
import math
import operator
import sys
import types
import warnings
from typing import Any

import eager
from dynamo.builtins.registry import (
    ONE,
    ZERO,
    Args,
    Kwargs,
    Row,
    answers,
    of_symbolic,
    on_constants,
    process_query,
    symbolic,
)
from dynamo.guards.sources import ConstSource
from dynamo.policy.callees import ANSWERS
from dynamo.python.attributes import attribute_name
from dynamo.python.operators import BINARY, COMPARE, INPLACE, UNARY
from dynamo.report import causes
from dynamo.report.errors import Unsupported
from dynamo.values.base import FALSE, NONE, TRUE, Constant, is_none, type_name
from dynamo.values.builtin_subclasses import ContainerObject, value_of_scalar
from dynamo.values.iterators import CallIterator
from dynamo.values.objects import BuiltinMethod, ClassValue, Giving, UserObject
from dynamo.values.protocols import Machine, Raised, Value
from dynamo.values.sequences import ListValue, TupleValue
from dynamo.values.symbolic import SymIntValue, host_value
from dynamo.values.tensor import TensorMethod, TensorValue
from eager.base.symfloat import square_root


def _binary(fn: Any) -> Row:
    return lambda cap, args, kwargs: cap.operators.binary(fn, args[0], args[1])


def _inplace(fn: Any) -> Row:
    return lambda cap, args, kwargs: cap.operators.inplace(fn, args[0], args[1])


def _compare(fn: Any) -> Row:
    return lambda cap, args, kwargs: cap.operators.compare(fn, args[0], args[1])


def _unary(fn: Any) -> Row:
    return lambda cap, args, kwargs: cap.operators.unary(fn, args[0])


for _make, _fns in ((_binary, BINARY), (_inplace, INPLACE), (_compare, COMPARE), (_unary, UNARY)):
    ANSWERS.update((_fn, _make(_fn)) for _fn in _fns)
ANSWERS[operator.abs] = ANSWERS[abs]
for _fn in vars(math).values():
    if callable(_fn):
        ANSWERS[_fn] = on_constants(_fn)
ANSWERS[math.sqrt] = of_symbolic(square_root, ANSWERS[math.sqrt])
for _fn in (bin, chr, hex, oct, ord, round, pow):
    ANSWERS[_fn] = on_constants(_fn)


for _fn in (sys.getrecursionlimit, gc.isenabled):
    ANSWERS[_fn] = process_query(_fn)
for _fn in (eager.get_num_threads, eager.get_num_interop_threads):
    ANSWERS[_fn] = process_query(_fn)


def _or_tensor(fn: Any, method: str) -> Row:
    plain = on_constants(fn)

    def row(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
        first = cap.realize(args[0]) if args else NONE
        if any(isinstance(cap.realize(a), TensorValue) for a in args):
            return cap.recorder.call(fn, args, kwargs)
        if isinstance(first, UserObject) and cap.classes.has(first.cls, method):
            found = cap.realize(cap.call_method(first, method, args[1:], kwargs))
            if isinstance(found, Constant) and found.holds(NotImplemented):
                raise Unsupported(causes.UNKNOWN_CALL, f"{fn.__name__}() where {method} returns NotImplemented")
            return found
        return plain(cap, args, kwargs)

    return row


ANSWERS[pow] = _or_tensor(pow, "__pow__")
ANSWERS[round] = _or_tensor(round, "__round__")
_plain_divmod = _or_tensor(divmod, "__divmod__")


@answers(divmod)
def _divmod(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    if any(isinstance(cap.realize(a), SymIntValue) for a in args) and len(args) == 2:
        return TupleValue([cap.operators.binary(operator.floordiv, *args), cap.operators.binary(operator.mod, *args)])
    return _plain_divmod(cap, args, kwargs)




@answers(operator.index)
def _index(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    return symbolic(cap, args) or cap.world.wrap_new(cap.host(operator.index, cap.operators.index_constant(args[0])))



@answers(warnings.warn)
def _warn(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    """Breaks the graph: a warning shows the line of the caller, or the line of one of its callers."""
    level = cap.realize(args[2] if len(args) > 2 else kwargs.get("stacklevel", ONE))
    about_caller = not (isinstance(level, Constant) and level.value == 1)
    raise Unsupported(causes.FRAME_INTROSPECTION if about_caller else causes.UNKNOWN_CALL, "builtin warn()")


@answers(math.prod)
def _prod(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    total = kwargs.get("start", ONE)
    iterator = cap.iteration.iter(args[0])
    while (item := cap.iteration.next(iterator)) is not None:
        total = cap.operators.binary(operator.mul, total, item)
    return total


@answers(vars)
def _vars(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    if not args:
        raise Unsupported(causes.FRAME_INTROSPECTION, "builtin vars()")
    if not cap.attributes.has(args[0], "__dict__"):
        return cap.raise_(TypeError, "vars() argument must have __dict__ attribute")
    return cap.attributes.read(args[0], "__dict__")


@answers(id)
def _id(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    value = cap.realize(args[0])
    if isinstance(value.source, ConstSource):
        return Constant(id(value.source.value))  # the entry keeps the object alive, so no other object gets this id
    raise Unsupported(causes.IDENTITY, f"id of {cap.realize(args[0]).describe()}")


@answers(hash)
def _hash(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    value = cap.realize(args[0])
    if isinstance(value, UserObject) and isinstance(getattr(value.cls, "__hash__", None), types.FunctionType):
        given = cap.realize(cap.call_method(value, "__hash__", [], {}))
        if not given.is_constant:
            raise Unsupported(causes.OPAQUE_OBJECT, f"{given.describe()} as a hash")
        return Constant(cap.host(hash, Giving(given.as_constant())))
    if isinstance(value, ContainerObject) and cap.classes.lookup(value.cls, "__hash__") is value.base.__hash__:
        value = value_of_scalar(cap, value)
    if isinstance(value, UserObject) and issubclass(value.cls, enum.Enum):
        kind, key = cap.operators.hash_key(value)
        if kind == "c":
            return Constant(hash(key))
    if isinstance(value, TupleValue):
        cap.operators.hash_key(value)  # breaks the graph if a part has a hash method of the user
    if value.is_constant and isinstance(value, Constant | TupleValue) and not _holds_nan(value.as_constant()):
        return Constant(cap.host(hash, value.as_constant()))
    raise Unsupported(causes.IDENTITY, f"hash of {value.describe()}")


def _holds_nan(x: Any) -> bool:
    """Whether the hash of a constant depends on the identity of the object, as the hash of NaN does."""
    return any(map(_holds_nan, x)) if isinstance(x, tuple) else isinstance(x, float | complex) and x != x


@answers(len)
def _len(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    return cap.operators.length(args[0])


@answers(isinstance)
def _isinstance(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    return Constant(cap.classes.isinstance(args[0], args[1]))


@answers(issubclass)
def _issubclass(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    first = cap.realize(args[0])
    if isinstance(first, UserObject):
        raise Unsupported(causes.UNKNOWN_CALL, f"issubclass() of {first.describe()}")  # its __bases__ may make it pass as a class
    if not isinstance(first, ClassValue):
        return cap.raise_(TypeError, "issubclass() arg 1 must be a class")
    wanted = cap.realize(args[1])
    classes = [cap.realize(c) for c in wanted.items] if isinstance(wanted, TupleValue) else [wanted]
    return Constant(any(cap.classes.is_subclass(first.cls, c.as_constant()) for c in classes))


@answers(callable)
def _callable(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    value = cap.realize(args[0])
    return Constant(cap.classes.has(value.python_type(), "__call__") or isinstance(value, BuiltinMethod | TensorMethod))


@answers(getattr)
def _getattr(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    return cap.attributes.get(args[0], attribute_name(cap, args[1]), args[2] if len(args) > 2 else None)


@answers(hasattr)
def _hasattr(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    return Constant(cap.attributes.has(args[0], attribute_name(cap, args[1])))


@answers(setattr)
def _setattr(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    cap.realize(args[0]).setattr(cap, attribute_name(cap, args[1]), args[2])
    return NONE


@answers(delattr)
def _delattr(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    cap.realize(args[0]).delattr(cap, attribute_name(cap, args[1]))
    return NONE


@answers(repr)
def _repr(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    return cap.formatting.text(args[0], repr)


@answers(ascii)
def _ascii(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    return cap.formatting.text(args[0], ascii)


@answers(format)
def _format(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    spec = cap.realize(args[1]) if len(args) > 1 else Constant("")
    if not issubclass(spec.python_type(), str):
        return cap.raise_(TypeError, f"format() argument 2 must be str, not {type_name(spec.python_type())}")
    return cap.formatting.format(args[0], spec.as_constant())


@answers(iter)
def _iter(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    if len(args) == 2:
        return CallIterator(args[0], args[1])
    return cap.iteration.iter(args[0])


@answers(next)
def _next(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    iterator = cap.realize(args[0])
    try:
        found = cap.iteration.next(iterator)
    except Raised as error:
        if len(args) > 1 and issubclass(error.value.python_type(), StopIteration):
            return args[1]
        raise
    if found is not None:
        return found
    if len(args) > 1:
        return args[1]
    returned = getattr(iterator, "returned", NONE)
    return cap.exceptions.raise_values(StopIteration, [] if returned is NONE else [returned])


@answers(all)
def _all(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    iterator = cap.iteration.iter(args[0])
    while (item := cap.iteration.next(iterator)) is not None:
        if not cap.truth(item):
            return FALSE
    return TRUE


@answers(any)
def _any(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    iterator = cap.iteration.iter(args[0])
    while (item := cap.iteration.next(iterator)) is not None:
        if cap.truth(item):
            return TRUE
    return FALSE


@answers(sum)
def _sum(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    total = cap.realize(args[1] if len(args) > 1 else kwargs.get("start", ZERO))
    if not isinstance(total, Constant) and issubclass(total.python_type(), str | bytes | bytearray):
        raise Unsupported(causes.UNKNOWN_CALL, "sum() of text or bytes, which Python refuses")
    iterator = cap.iteration.iter(args[0])
    front: list[Any] | None = [] if isinstance(total, Constant) else None  # constants, for which Python's own sum is the fastest
    while (item := cap.iteration.next(iterator)) is not None:
        item = cap.realize(item)
        if front is not None and isinstance(item, Constant):
            front.append(host_value(item))
            continue
        if front is not None:
            total, front = cap.world.wrap_new(cap.host(sum, front, host_value(total))), None
        total = cap.realize(cap.operators.binary(operator.add, total, item))
    return total if front is None else cap.world.wrap_new(cap.host(sum, front, host_value(total)))


def _extreme(fn: Any, better: Any) -> Row:
    def row(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
        if len(args) > 1 and "default" in kwargs:
            return cap.raise_(TypeError, f"Cannot specify a default for {fn.__name__}() with multiple positional arguments")
        items = cap.iteration.exhaust(cap.iteration.iter(args[0])) if len(args) == 1 else list(args)
        if not items:
            if "default" in kwargs:
                return kwargs["default"]
            name = fn.__name__
            message = f"{name}() arg is an empty sequence" if sys.version_info < (3, 12) else f"{name}() iterable argument is empty"
            return cap.raise_(ValueError, message)
        key = kwargs.get("key")
        use_key = key is not None and not is_none(cap.realize(key))
        best = items[0]
        best_key = cap.call(key, [best], {}) if use_key and key is not None else best
        for item in items[1:]:
            item_key = cap.call(key, [item], {}) if use_key and key is not None else item
            if cap.truth(cap.operators.compare(better, item_key, best_key)):
                best, best_key = item, item_key
        return best

    return row


ANSWERS[max] = _extreme(max, operator.gt)
ANSWERS[min] = _extreme(min, operator.lt)


@answers(sorted)
def _sorted(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    return ListValue(cap.iteration.sorted(cap.iteration.unpack(args[0]), kwargs))


@answers(operator.getitem)
def _op_getitem(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    return cap.operators.getitem(args[0], args[1])


@answers(operator.setitem)
def _op_setitem(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    return cap.call_method(args[0], "__setitem__", args[1:], {})


@answers(operator.not_)
def _op_not(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    return Constant(not cap.truth(args[0]))


@answers(operator.truth)
def _op_truth(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    return Constant(cap.truth(args[0]))


@answers(operator.is_)
def _op_is(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    return Constant(cap.operators.same_object(args[0], args[1]))


@answers(operator.is_not)
def _op_is_not(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    return Constant(not cap.operators.same_object(args[0], args[1]))


@answers(operator.contains)
def _op_contains(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    return Constant(cap.operators.contains(args[0], args[1]))


@answers(functools.reduce)
def _reduce(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    iterator = cap.iteration.iter(args[1])
    total = args[2] if len(args) > 2 else cap.iteration.next(iterator)
    if total is None:
        return cap.raise_(TypeError, "reduce() of empty iterable with no initial value")
    while (item := cap.iteration.next(iterator)) is not None:
        total = cap.call(args[0], [total, item], {})
    return total


@answers(sys.exc_info)
def _exc_info(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    if cap.frames.handled is None:
        return TupleValue([NONE, NONE, NONE])
    raise Unsupported(causes.EXCEPTION, "sys.exc_info() in a handler")
