"""copy.copy() and copy.deepcopy() of captured values, with the steps of the copy module.

Owns copies of plain containers, and of instances of user classes that `object.__reduce_ex__` describes: a new instance
without `__init__`, and the entries of its `__dict__`. The graph breaks at the call of copy() or deepcopy() if any part
cannot be copied here, and not inside the copy module.
"""

from __future__ import annotations

import copy
import copyreg
import enum
import types
from typing import Final

from dynamo.builtins.registry import Args, Kwargs
from dynamo.policy.callees import ANSWERS
from dynamo.report import causes
from dynamo.report.errors import Unsupported
from dynamo.values.base import Constant
from dynamo.values.functions import FunctionValue
from dynamo.values.mappings import DictValue
from dynamo.values.objects import BuiltinValue, ClassValue, UserObject
from dynamo.values.protocols import Machine, Value
from dynamo.values.sequences import ListValue, TupleValue
from eager.nn import Module

_AS_THEY_ARE: Final = (Constant, FunctionValue, ClassValue, BuiltinValue)
# Attributes by which a class defines how it is copied.
_OWN_WAYS: Final = (
    "__new__ __reduce__ __reduce_ex__ __getstate__ __setstate__ __getnewargs__ __getnewargs_ex__ __deepcopy__ __copy__".split()
)

_slot_names: Final = getattr(copyreg, "_slotnames")  # noqa: B009 - the type stub leaves it out


def _copy(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    value = cap.realize(args[0])
    if isinstance(value, (TupleValue, *_AS_THEY_ARE)):
        return value
    if isinstance(value, ListValue | DictValue) and value.python_type() in (list, dict):
        return cap.call_method(value, "copy", [], {})
    if isinstance(value, UserObject) and not isinstance(value.real, enum.Enum):
        made, state = _new_of(cap, value, "copy")
        _give(cap, made, state)
        return made
    raise Unsupported(causes.UNKNOWN_CALL, f"copy.copy() of {value.describe()}")


def _deepcopy(cap: Machine, args: Args, kwargs: Kwargs) -> Value:
    if len(args) != 1 or kwargs:
        raise Unsupported(causes.UNKNOWN_CALL, "copy.deepcopy() with a memo")
    return _deep(cap, args[0], {})


def _deep(cap: Machine, part: Value, memo: dict[int, Value]) -> Value:
    value = cap.realize(part)
    if isinstance(value, _AS_THEY_ARE):
        return value
    if id(value) in memo:
        return memo[id(value)]
    if isinstance(value, ListValue) and value.cls is list:
        made = memo[id(value)] = ListValue([])
        made.items += [_deep(cap, item, memo) for item in value.items]
        return made
    if isinstance(value, DictValue) and value.cls is dict:
        new = memo[id(value)] = DictValue()
        for key, item in list(value.entries.values()):
            new.set(cap, _deep(cap, key, memo), _deep(cap, item, memo))
        return new
    if isinstance(value, TupleValue) and value.cls is tuple:
        items = [_deep(cap, item, memo) for item in value.items]
        changed = any(new is not cap.realize(old) for new, old in zip(items, value.items, strict=True))
        return memo.setdefault(id(value), TupleValue(items) if changed else value)
    if isinstance(value, UserObject):
        if isinstance(value.real, enum.Enum):
            return _member(cap, value)
        instance, state = _new_of(cap, value, "deepcopy")
        memo[id(value)] = instance
        _give(cap, instance, {name: _deep(cap, item, memo) for name, item in state.items()})
        return instance
    raise Unsupported(causes.UNKNOWN_CALL, f"copy.deepcopy() of {value.describe()}")


def _member(cap: Machine, value: UserObject) -> Value:
    """A copy of an enum member is the member itself, unless its class defines a method for copies."""
    for name in ("__deepcopy__", "__reduce_ex__", "__reduce__"):
        way = cap.classes.lookup(value.cls, name)
        if isinstance(way, types.FunctionType) and way.__module__ != "enum":
            raise Unsupported(causes.UNKNOWN_CALL, f"copy.deepcopy() of {value.describe()}, whose class defines {name}")
    return value


def _new_of(cap: Machine, value: UserObject, how: str) -> tuple[UserObject, dict[str, Value]]:
    """A new instance of the class of `value` without attributes, and the entries for its `__dict__`."""
    cls = value.cls
    refusal = Unsupported(causes.UNKNOWN_CALL, f"copy.{how}() of {value.describe()}")
    if type(value) is not UserObject or issubclass(cls, Module) or cls in copyreg.dispatch_table:
        raise refusal
    if any(cap.classes.has(cls, name) and cap.classes.lookup(cls, name) is not vars(object).get(name) for name in _OWN_WAYS):
        raise refusal
    if _slot_names(cls):
        raise refusal
    entries = cap.attributes.instance_entries(value)
    if any(name in entries for name in _OWN_WAYS):
        raise refusal
    _read_attributes(cap, value, (f"__{how}__", "__reduce_ex__", "__reduce__", "__getstate__", "__dict__"))
    made = cap.classes.new_object(cls, [], {})
    assert isinstance(made, UserObject)
    if entries:
        _read_attributes(cap, made, ("__setstate__", "__dict__"))
    return made, entries


def _read_attributes(cap: Machine, value: UserObject, names: tuple[str, ...]) -> None:
    """Read these attributes if the class has code that runs for them.

    Break the graph if a result is not the one of `object`.
    """
    if cap.classes.lookup(value.cls, "__getattribute__") is object.__getattribute__ and not cap.classes.has(value.cls, "__getattr__"):
        return
    for name in names:
        if cap.attributes.has(value, name) is not (name == "__dict__" or hasattr(object, name)):
            raise Unsupported(causes.UNKNOWN_CALL, f"a copy of {value.describe()}, whose __getattribute__ or __getattr__ answers {name}")


def _give(cap: Machine, made: UserObject, state: dict[str, Value]) -> None:
    for name, item in state.items():
        cap.effects.set_attribute(made, name, item)


ANSWERS[copy.copy] = _copy
ANSWERS[copy.deepcopy] = _deepcopy
