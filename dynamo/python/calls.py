"""Calls by kind of callee: functions are followed, classes make objects, instances run `__call__`, the table answers
for builtins.

A call that cannot be followed breaks the graph; the hook decides whether the frame of the callee is then captured
separately.
"""

from __future__ import annotations

import enum
import types
from typing import Any, Final

from dynamo.guards.sources import type_attribute
from dynamo.policy import callees, signatures
from dynamo.policy.callees import Action, Callee
from dynamo.python.attributes import namespace_held
from dynamo.report import causes
from dynamo.report.errors import GiveUp, Unsupported
from dynamo.values.base import Constant, Opaque
from dynamo.values.builtin_subclasses import SCALAR_BASES, ContainerObject, text_of_scalar, value_of_scalar
from dynamo.values.functions import FunctionValue
from dynamo.values.iterators import Iterator
from dynamo.values.mappings import DictValue, DictView, SetValue
from dynamo.values.objects import BuiltinValue, ClassValue, UserObject
from dynamo.values.protocols import Machine, NotConstant, Value
from dynamo.values.sequences import RangeValue, Sequence, SliceValue, TupleValue
from dynamo.values.tensor import TensorValue
from dynamo.values.trees import host_arguments
from eager._storage.tensor_types import tensortype
from eager.nn import Module

_BUILTIN: Final = (Sequence, DictValue, SetValue, DictView, RangeValue, SliceValue, Iterator)  # values whose methods are functions of C
_METHOD_OWNERS: Final = frozenset({str, bytes, int, float, frozenset, set, dict, list, tuple})


class Calls:
    """Calls captured values. chain: the calling instruction only pushes the result of the current call."""

    def __init__(self, cap: Machine) -> None:
        self.cap = cap
        self.chain = False

    def call(self, value: Value, args: list[Value], kwargs: dict[str, Value], chain: bool = False) -> Value:
        """value(*args, **kwargs). chain: the calling instruction only pushes the result."""
        value = self.cap.realize(value)
        self.chain = chain
        return value.call(self.cap, args, kwargs)

    def call_method(self, value: Value, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """value.name(*args, **kwargs)"""
        value = self.cap.realize(value)
        self.chain = False
        if isinstance(value, Constant):
            return self._constant_method(value, name, args, kwargs)
        if isinstance(value, _BUILTIN) and not signatures.method_takes(value.python_type(), name, len(args), kwargs):
            raise Unsupported(causes.UNKNOWN_CALL, f"{value.describe()}.{name}() with arguments that it does not take")
        return value.call_method(self.cap, name, args, kwargs)

    def _constant_method(self, value: Constant, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if isinstance(value.value, str) and name == "join" and len(args) == 1:
            args = [self._as_list(args[0])]
        if isinstance(value.value, str) and name == "format":
            for arg in map(self.cap.realize, (*args, *kwargs.values())):
                if isinstance(arg, TensorValue):
                    raise Unsupported(causes.DATA_DEPENDENT_VALUE, "the text of a tensor")
                if isinstance(arg, ContainerObject) and arg.is_scalar:
                    text_of_scalar(self.cap, arg)
        try:
            given = [self.cap.operators.object_constant(a) for a in args]
            named = {k: self.cap.operators.object_constant(v) for k, v in kwargs.items()}
        except NotConstant:
            raise Unsupported(causes.OPAQUE_OBJECT, f"{value.describe()}.{name}(...)") from None
        if name == "__iter__" and not given and not named:
            return value.iterate(self.cap)
        method = type_attribute(type(value.value), name, None)
        if isinstance(method, types.MethodDescriptorType):  # as in the interpreter: errors name the method
            given, method = [value.value, *given], method
        elif hasattr(value.value, name):
            method = getattr(value.value, name)
        else:
            raise Unsupported(causes.OPAQUE_OBJECT, f"{value.describe()}.{name}()")
        return self.cap.world.wrap_new(self.cap.host(method, *given, **named))

    def _as_list(self, value: Value) -> Value:
        return TupleValue(self.cap.iteration.unpack(value))

    # -- functions ---------------------------------------------------------------------------------------------
    def of_function(self, fn: FunctionValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """Follow the call, or apply the treatment in the record of the callee."""
        chain, self.chain = self.chain, False
        if fn.real is None:
            if not callees.may_inline(fn.code):
                raise Unsupported(causes.UNKNOWN_CALL, f"{fn.describe()}()")
        else:
            callee = callees.resolve(fn.real, kwargs)
            if callee.original is not None:
                self.chain = chain
            if callee.action is not Action.FOLLOW or callee.original is not None:
                return self._by_record(callee, args, kwargs)
        return self.cap.frames.follow(fn, args, kwargs, chain)

    def _by_record(self, callee: Callee, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """The call of a callee that is not followed, or of its substitute."""
        cap, target = self.cap, callee.target
        if callee.original is not None:
            return self._substitute(callee.original, args, kwargs)
        if callee.action is Action.NODE:
            return cap.recorder.call(target, args, kwargs)
        if callee.action is Action.CONSTANT:
            given = [cap.operators.object_constant(a) for a in args]
            named = {k: cap.operators.object_constant(v) for k, v in kwargs.items()}
            return cap.world.wrap_static(cap.host(target, *given, **named))
        if callee.row is not None:
            if not callee.takes(len(args), kwargs):
                raise Unsupported(causes.UNKNOWN_CALL, f"{callees.name_of(target)} with arguments that it does not take")
            return callee.row(cap, args, kwargs)
        assert callee.cause is not None
        if callee.cause is causes.EXPLICIT or callee.cause is causes.SKIPPED:
            message = [cap.realize(a).as_constant() for a in (*args, *kwargs.values())]
            steer = Unsupported if callee.cause is causes.EXPLICIT else GiveUp
            raise steer(callee.cause, str(message[0]) if message and message[0] else "no reason given")
        raise Unsupported(callee.cause, callee.detail)

    def _substitute(self, known: callees.Substitute, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """The call of the replacement that `substitute_in_graph` registered, or of the original if all arguments are
        constants.
        """
        cap = self.cap
        if known.folds:
            try:
                given, named = host_arguments(cap, args, kwargs)
            except NotConstant:
                pass
            else:
                return cap.world.wrap_static(cap.host(known.original, *given, **named))
        return cap.world.wrap_static(known.replacement).call(cap, args, kwargs)

    # -- classes -----------------------------------------------------------------------------------------------
    def of_class(self, value: ClassValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """cls(*args, **kwargs)"""
        self.chain = False
        cap, cls, meta = self.cap, value.cls, type(value.cls)
        callee = callees.resolve(cls)
        if callee.action is not Action.FOLLOW:
            return self._by_record(callee, args, kwargs)
        if issubclass(cls, enum.Enum):
            if kwargs or len(args) != 1:
                raise Unsupported(causes.UNKNOWN_CALL, f"{value.describe()}() makes a new class")
            return cap.world.wrap_static(cap.host(cls, cap.operators.object_constant(args[0])))
        if isinstance(cls, tensortype):
            return cap.recorder.call(cls, args, kwargs)
        if isinstance(cap.classes.lookup(meta, "__call__"), types.FunctionType):
            return cap.call(cap.classes.special_method(value, "__call__"), args, kwargs)
        return cap.classes.make_instance(value, args, kwargs)

    # -- instances and builtins --------------------------------------------------------------------------------
    def of_instance(self, obj: UserObject, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """obj(*args, **kwargs). A call of a module without hooks calls its forward directly."""
        chain, self.chain = self.chain, False
        if type_attribute(obj.cls, callees.DISABLED, False) or (namespace_held(obj.real) or {}).get(callees.DISABLED):
            raise Unsupported(causes.DISABLED_CALL, f"{obj.describe()} is marked with disable")
        if isinstance(obj.real, Module) and _is_modules_call(self.cap.classes.lookup(obj.cls, "__call__"), "__call__"):
            return self._call_module(obj, args, kwargs, chain)
        if not self.cap.classes.has(obj.cls, "__call__"):
            self.cap.raise_(TypeError, f"'{obj.cls.__name__}' object is not callable")
        method = self.cap.classes.special_method(obj, "__call__")
        self.chain = chain
        return method.call(self.cap, args, kwargs)

    def _call_module(self, obj: UserObject, args: list[Value], kwargs: dict[str, Value], chain: bool) -> Value:
        replaced = not _is_modules_call(self.cap.classes.lookup(obj.cls, "_call_impl"), "_call_impl")
        if self.cap.attributes.module_has_hooks(obj) or replaced:
            method = self.cap.classes.special_method(obj, "_call_impl")
        else:
            method = self.cap.realize(obj.getattr(self.cap, "forward"))
        self.chain = chain
        return method.call(self.cap, args, kwargs)

    def of_builtin(self, value: BuiltinValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """fn(*args, **kwargs) for a C function or a descriptor of one, or for another callable in the tables."""
        self.chain = False
        fn = value.fn
        callee = callees.resolve(fn, kwargs)
        if callee.action is not Action.FOLLOW or callee.original is not None:
            return self._by_record(callee, args, kwargs)
        if type(getattr(fn, "__self__", None)) in _METHOD_OWNERS:  # keyword.iskeyword is a method of a frozenset
            return self.cap.call_method(self.cap.world.wrap_static(fn.__self__), fn.__name__, args, kwargs)
        if isinstance(fn, types.MethodDescriptorType | types.WrapperDescriptorType) and args:
            owner = self.cap.realize(args[0])
            if issubclass(owner.python_type(), fn.__objclass__) and not isinstance(owner, Opaque):
                return self._descriptor(fn, owner, args[1:], kwargs)
        raise Unsupported(causes.UNKNOWN_CALL, f"{value.describe()}()")

    def _descriptor(self, fn: Any, owner: Value, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """cls.method(obj, ...) of a C class."""
        name = fn.__name__
        if not signatures.takes(fn, 1 + len(args), kwargs):
            raise Unsupported(causes.UNKNOWN_CALL, f"{fn.__objclass__.__name__}.{name}() with arguments that it does not take")
        if isinstance(owner, ContainerObject) and fn.__objclass__ is not object:
            return owner.base_method(self.cap, fn.__objclass__, name, args, kwargs)
        if isinstance(owner, UserObject) and fn.__objclass__ in SCALAR_BASES:  # a member of an enum of numbers or of texts
            if not isinstance(value := value_of_scalar(self.cap, owner), Constant):
                raise Unsupported(causes.UNKNOWN_CALL, f"{fn.__objclass__.__name__}.{name}() of {owner.describe()}")
            return self.cap.call_method(value, name, args, kwargs)
        if isinstance(owner, UserObject):
            return self.cap.attributes.object_method(owner, name, args, kwargs)
        if isinstance(owner, (*_BUILTIN, Constant)) and type_attribute(owner.python_type(), name, None) is not fn:
            raise Unsupported(causes.UNKNOWN_CALL, f"{fn.__objclass__.__name__}.{name}() of {owner.describe()}, which has another")
        return self.cap.call_method(owner, name, args, kwargs)



def _is_modules_call(raw: Any, name: str) -> bool:
    """Whether the entry `name` of a class is Module's: the program may have replaced it."""
    return isinstance(raw, types.FunctionType) and raw.__code__.co_qualname == f"HookedModule.{name}" and callees.is_own(raw.__code__)
