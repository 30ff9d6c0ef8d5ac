"""Calls of built-in classes: numbers, text, containers, iterators, partials; and calls of their __new__.

Part of the builtin table; importing this module adds its rows.
"""

from __future__ import annotations

import collections
import functools
import operator
import types

import eager
from dynamo.builtins.registry import Args, Kwargs, Row, answers, of_symbolic, on_constants, symbolic
from dynamo.policy.callees import ANSWERS
from dynamo.report import causes
from dynamo.report.errors import Unsupported
from dynamo.values.base import FALSE, NONE, Constant, is_none, type_name
from dynamo.values.builtin_subclasses import SCALAR_BASES, ContainerObject, container_base, new_container
from dynamo.values.functions import CellValue, PartialValue
from dynamo.values.getters import GETTERS, GetterValue
from dynamo.values.iterators import (
    EnumerateIterator,
    FilterIterator,
    MapIterator,
    ReversedIterator,
    ZipIterator,
)
from dynamo.values.mappings import DictValue, ProxyValue, SetValue, constants_of, history_of
from dynamo.values.objects import ClassValue, SuperValue, UserObject
from dynamo.values.protocols import Machine, Value
from dynamo.values.sequences import ListValue, RangeValue, SliceValue, TupleValue
from dynamo.values.set_order import History
from dynamo.values.tensor import TensorValue
from dynamo.world.wrap import is_named_tuple
from eager.base.symfloat import as_float


@answers(object)
def _object(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    return UserObject(object, born=cap.steps)


@answers(type)
def _type(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    return cap.world.wrap_static(cap.realize(args[0]).python_type())


@answers(super)
def _super(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    if args:
        owner = cap.realize(args[0])
        if not isinstance(owner, ClassValue) or len(args) < 2:
            raise Unsupported(causes.ATTRIBUTE, "super() of this kind")
        return SuperValue(owner.cls, cap.realize(args[1]))
    owner, first = _caller_of_super(cap)
    return SuperValue(owner.cls, first)


def _caller_of_super(cap: Machine) -> tuple[ClassValue, Value]:
    """The class and object of `super()` without arguments, by CPython's checks in CPython's order."""
    frame = cap.frames.running[-1]
    slots, code = frame.decoded.slots, frame.code
    if not code.co_argcount:
        return cap.raise_(RuntimeError, "super(): no arguments")
    first = frame.locals[0]
    if first is not None and code.co_varnames[0] in code.co_cellvars:
        own = cap.realize(first)
        assert isinstance(own, CellValue)
        first = own.load(cap)
    if first is None:
        return cap.raise_(RuntimeError, "super(): arg[0] deleted")
    if "__class__" not in code.co_freevars:
        return cap.raise_(RuntimeError, "super(): __class__ cell not found")
    cell = cap.realize(frame.locals[slots.index("__class__")])
    assert isinstance(cell, CellValue)
    contents = cell.load(cap)
    if contents is None:
        return cap.raise_(RuntimeError, "super(): empty __class__ cell")
    owner = cap.realize(contents)
    if not isinstance(owner, ClassValue):
        return cap.raise_(RuntimeError, f"super(): __class__ is not a type ({owner.python_type().__name__})")
    return owner, cap.realize(first)


@answers(bool)
def _bool(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    return Constant(cap.truth(args[0])) if args else FALSE


def _number(kind: type, method: str) -> Row:
    def row(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
        first = cap.realize(args[0]) if args else NONE
        if isinstance(first, TensorValue):
            found = cap.data.number_of(first, kind) if kind in (int, float) else None
            if found is not None:
                return found
            raise Unsupported(causes.DATA_DEPENDENT_VALUE, f"{kind.__name__}() of {first.describe()}")
        made = isinstance(first, UserObject) and (first.real is None or isinstance(first, ContainerObject))
        if made and len(args) == 1 and not kwargs and cap.classes.has(first.python_type(), method):
            found = cap.realize(cap.call_method(first, method, [], {}))
            if found.python_type() is not kind:
                given = type_name(found.python_type())
                raise Unsupported(causes.OPAQUE_OBJECT, f"{kind.__name__}() of an object whose {method} returns a {given}")
            return found
        return on_constants(kind)(cap, args, kwargs)

    return row


_plain_int = _number(int, "__int__")
ANSWERS[int] = lambda cap, args, kwargs: symbolic(cap, args) or _plain_int(cap, args, kwargs)
_plain_float = _number(float, "__float__")


ANSWERS[float] = of_symbolic(as_float, _plain_float)
ANSWERS[complex] = _number(complex, "__complex__")
ANSWERS[bytes] = on_constants(bytes)
ANSWERS[eager.device] = on_constants(eager.device)


@answers(str)
def _str(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    if len(args) == 1 and not kwargs:
        return cap.formatting.text(args[0], str)
    return on_constants(str)(cap, args, kwargs)


@answers(list)
def _list(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    return ListValue(cap.iteration.unpack(args[0]) if args else [])


@answers(tuple)
def _tuple(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    if args:
        first = cap.realize(args[0])
        if isinstance(first, TupleValue) and first.cls is tuple:
            return first
    return TupleValue(cap.iteration.unpack(args[0]) if args else [])


@answers(eager.finfo)
def _finfo(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    if not args and not kwargs:
        cap.recorder.depend_on_defaults()
    return on_constants(eager.finfo)(cap, args, kwargs)


ANSWERS[eager.iinfo] = on_constants(eager.iinfo)


@answers(eager.Tensor)
def _tensor(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    return cap.recorder.call(eager.Tensor, args, kwargs)


@answers(eager.Size)
def _size(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    items = cap.iteration.unpack(args[0]) if args else []
    for i, item in enumerate(items):
        kind = item.python_type()
        if issubclass(kind, str | float | complex | list | tuple | dict | types.NoneType):
            return cap.raise_(TypeError, f"torch.Size() takes an iterable of 'int' (item {i} is '{kind.__name__}')")
    return TupleValue(items, None, eager.Size)


@answers(collections.deque)
def _deque(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    limit = args[1] if len(args) > 1 else kwargs.get("maxlen", NONE)
    maxlen = cap.operators.index_constant(limit)
    cap.host(collections.deque, (), maxlen)  # raises the errors of the call
    new = ListValue([], None, collections.deque, maxlen)
    if args:
        new.extend(cap, args[0])
    return new


def _dict_like(kind: type) -> Row:
    def row(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
        factory = None
        if kind is collections.defaultdict:
            factory, args = (args[0], args[1:]) if args else (NONE, args)
            if not is_none(cap.realize(factory)) and not cap.classes.has(cap.realize(factory).python_type(), "__call__"):
                raise Unsupported(causes.UNKNOWN_CALL, "defaultdict() of a factory that cannot be called")
        new = DictValue(kind, None, factory)
        cap.call_method(new, "update", args[:1], kwargs)
        return new

    return row


for _kind in (dict, collections.OrderedDict, collections.defaultdict):
    ANSWERS[_kind] = _dict_like(_kind)


@answers(collections.Counter)
def _counter(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    new = DictValue(collections.Counter)
    first = cap.realize(args[0]) if args else NONE
    if isinstance(first, DictValue):
        new.update(cap, zip(first.keys(), first.values(), strict=True))
        items = []
    else:
        items = [] if first is NONE else cap.iteration.unpack(first)
    for item in items:
        old = new.get(cap, item)
        new.set(cap, item, cap.operators.binary(operator.add, Constant(0) if old is None else old, Constant(1)))
    counted = bool(new.entries)
    for name, count in kwargs.items():
        old = new.get(cap, Constant(name)) or Constant(0)
        new.set(cap, Constant(name), cap.operators.binary(operator.add, count, old) if counted else count)
    return new


def _set_like(kind: type) -> Row:
    def row(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
        new = SetValue(kind)
        if args:
            source = cap.realize(args[0])
            if kind is frozenset and isinstance(source, SetValue) and source.cls is frozenset:
                return source
            items = list(source.entries.values()) if isinstance(source, SetValue) else cap.iteration.exhaust(cap.iteration.iter(source))
            for item in map(cap.realize, items):
                new.entries.setdefault(cap.operators.hash_key(item), item)
            known = source.history if isinstance(source, SetValue) else constants_of(cap, items)
            if isinstance(source, DictValue):
                known = history_of(cap, source)
            new.made = None if known is None else History(kind, (known,))
        else:
            new.made = History(kind)
        new.born = cap.steps
        return new

    return row


ANSWERS[set] = _set_like(set)
ANSWERS[frozenset] = _set_like(frozenset)


@answers(range)
def _range(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    return RangeValue(cap.host(range, *(cap.operators.index_constant(a) for a in args)))


@answers(slice)
def _slice(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    start, stop, step = (NONE, args[0], NONE) if len(args) == 1 else (*args, NONE)[:3]
    return SliceValue(cap.realize(start), cap.realize(stop), cap.realize(step))


@answers(enumerate)
def _enumerate(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    start = args[1] if len(args) > 1 else kwargs.get("start", Constant(0))
    first = cap.host(operator.index, cap.operators.index_constant(start))
    return EnumerateIterator(cap.iteration.iter(args[0] if args else kwargs["iterable"]), first)


@answers(zip)
def _zip(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    strict = "strict" in kwargs and cap.truth(kwargs["strict"])
    return ZipIterator([cap.iteration.iter(a) for a in args], strict)


@answers(map)
def _map(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    return MapIterator(args[0], [cap.iteration.iter(a) for a in args[1:]])


@answers(filter)
def _filter(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    return FilterIterator(cap.realize(args[0]), cap.iteration.iter(args[1]))


@answers(reversed)
def _reversed(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    value = cap.realize(args[0])
    if isinstance(value, RangeValue):
        return cap.iteration.range_iterator(value.value[::-1])
    if isinstance(value, ListValue | TupleValue) and value.family in (list, tuple):
        return ReversedIterator(value)
    if isinstance(value, Constant) and isinstance(value.value, str | bytes):
        return cap.iteration.text_iterator(value, True)
    if isinstance(value, TensorValue):
        raise Unsupported(causes.OPAQUE_ITERATOR, "reversed() of a tensor")
    if isinstance(value, UserObject) and not cap.classes.has(value.cls, "__reversed__"):
        # Reading all elements of this library's module containers at once has no visible effect.
        if getattr(getattr(value.cls, "__getitem__", None), "__module__", "") != eager.nn.ModuleList.__module__:
            raise Unsupported(causes.OPAQUE_ITERATOR, f"reversed() of {value.describe()}")
        count = cap.call_method(value, "__len__", [], {}).as_constant()
        return cap.iteration.sequence_iterator([cap.operators.getitem(value, Constant(i)) for i in reversed(range(count))], NONE)
    if isinstance(value, ListValue):
        raise Unsupported(causes.OPAQUE_ITERATOR, "reversed() of a deque")
    return cap.call_method(value, "__reversed__", [], {})


@answers(types.MappingProxyType)
def _proxy(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    inner = cap.realize(args[0] if args else kwargs["mapping"])
    if not isinstance(inner, DictValue):
        raise Unsupported(causes.UNKNOWN_CALL, f"a mappingproxy of {inner.describe()}")
    return ProxyValue(inner, None)


@answers(functools.partial)
def _partial(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    fn = cap.realize(args[0])
    if isinstance(fn, PartialValue) and fn.source is None:
        return PartialValue(fn.fn, TupleValue([*fn.args.items, *args[1:]]), {**fn.kwargs, **kwargs})
    return PartialValue(fn, TupleValue(list(args[1:])), dict(kwargs))


def _getter(kind: type) -> Row:
    def row(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
        if not args or (kwargs and kind is not operator.methodcaller):
            raise Unsupported(causes.UNKNOWN_CALL, f"{kind.__name__}() with these arguments")
        names = args if kind is operator.attrgetter else args[:1]
        if kind is not operator.itemgetter:
            cap.host(kind, *(cap.realize(n).as_constant() for n in names))  # TypeError for a name that is not a str
        return GetterValue(kind, list(args), dict(kwargs))

    return row


ANSWERS.update((kind, _getter(kind)) for kind in GETTERS)




def fromkeys(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    """dict.fromkeys(keys, value)"""
    new = DictValue()
    for key in cap.iteration.unpack(args[0]):
        new.set(cap, key, args[1] if len(args) > 1 else NONE)
    return new


def _tuple_new(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    kind = cap.realize(args[0]).as_constant() if args else None
    if not isinstance(kind, type):
        raise Unsupported(causes.UNKNOWN_CALL, "tuple.__new__() without a class")
    if container_base(kind) is tuple and not is_named_tuple(kind):
        return new_container(cap, kind, tuple, args[1:], kwargs)
    if kind is not tuple and not is_named_tuple(kind):
        raise Unsupported(causes.UNKNOWN_CALL, f"tuple.__new__({kind.__name__})")
    return TupleValue(cap.iteration.unpack(args[1]) if len(args) > 1 else [], None, kind)


def _container_new(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    kind = cap.realize(args[0]).as_constant() if args else None
    base = container_base(kind) if isinstance(kind, type) else None
    if kind is None or base is None:
        raise Unsupported(causes.UNKNOWN_CALL, f"{getattr(kind, '__name__', kind)}.__new__()")
    return new_container(cap, kind, base, args[1:], kwargs)


ANSWERS[tuple.__new__] = _tuple_new
for _base in (dict, collections.OrderedDict, list, *SCALAR_BASES):
    ANSWERS[_base.__new__] = _container_new
ANSWERS[type.__call__] = lambda cap, a, k: cap.classes.make_instance(cap.realize(a[0]), a[1:], k)
ANSWERS[dict.fromkeys] = fromkeys
ANSWERS[object.__new__] = lambda cap, a, k: cap.classes.new_object(cap.realize(a[0]).as_constant(), a[1:], k)
