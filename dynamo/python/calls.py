"""Calls by kind of callee: functions are followed, classes make objects, instances run `__call__`, the table answers for builtins.

A call that cannot be followed ends the graph; the hook decides whether the callee's frame is then captured by itself.
"""

from __future__ import annotations

import enum
import types
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeAlias

from dynamo.guards.sources import type_attribute
from dynamo.policy import callees, signatures
from dynamo.python.attributes import namespace_held
from dynamo.report import causes
from dynamo.report.errors import GiveUp, Unsupported
from dynamo.values.base import Opaque
from dynamo.values.builtin_subclasses import SCALAR_BASES, ContainerObject, text_of_scalar, value_of_scalar
from dynamo.values.constant import Constant
from dynamo.values.functions import FunctionValue
from dynamo.values.iterators import Iterator
from dynamo.values.mappings import DictValue, DictView, SetValue
from dynamo.values.objects import BuiltinValue, ClassValue, UserObject
from dynamo.values.protocols import Machine, NotConstant, Value
from dynamo.values.sequences import RangeValue, Sequence, SliceValue, TupleValue
from dynamo.values.tensor import TensorValue
from eager._storage.tensor_types import tensortype
from eager.nn import Module

DISABLED: Final = "_framejit_disabled"
_BUILTIN: Final = (Sequence, DictValue, SetValue, DictView, RangeValue, SliceValue, Iterator)  # what has methods of C
_METHOD_OWNERS: Final = frozenset({str, bytes, int, float, frozenset, set, dict, list, tuple})

Row: TypeAlias = "Callable[[Machine, list[Value], dict[str, Value]], Value]"


class Answers(Protocol):
    """The table of callees that the capture answers itself: a row for each, None for all others."""

    def function(self, fn: Any) -> Row | None:
        """Of a function of C."""
        ...

    def made(self, kind: type) -> Row | None:
        """Of a class that is called."""
        ...

    def special(self, fn: Any) -> Row | None:
        """Of a Python function that is not followed."""
        ...

    def of_code(self, fn: types.FunctionType) -> Row | None:
        """Of a Python function that is known by its code."""
        ...

    def of_type(self, fn: Any) -> Row | None:
        """Of a callable that is known by its class."""
        ...


class Calls:
    """Calls captured values.

    answers: the table of builtins. chain: the result of the call that is being made is just pushed by the calling instruction.
    """

    def __init__(self, cap: Machine, answers: Answers) -> None:
        self.cap = cap
        self.answers = answers
        self.chain = False

    def call(self, value: Value, args: list[Value], kwargs: dict[str, Value], chain: bool = False) -> Value:
        """value(*args, **kwargs). chain: the result is just pushed by the calling instruction."""
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
        if isinstance(method, types.MethodDescriptorType):  # as the interpreter calls it, which errors tell
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
        """Follow the call, or make it a node, or end the graph."""
        chain, self.chain = self.chain, False
        if fn.real is not None:
            decided = self._without_following(fn, args, kwargs, chain)
            if decided is not None:
                return decided
        elif not callees.may_inline(fn.code):
            raise Unsupported(causes.UNKNOWN_CALL, f"{fn.describe()}()")
        return self.cap.frames.follow(fn, args, kwargs, chain)

    def _without_following(self, fn: FunctionValue, args: list[Value], kwargs: dict[str, Value], chain: bool) -> Value | None:
        real = fn.real
        assert real is not None
        callees.refuse_forbidden(real)
        if mark := getattr(real, DISABLED, False):
            if mark is causes.EXPLICIT or mark is causes.SKIPPED:
                message = [self.cap.realize(a).as_constant() for a in (*args, *kwargs.values())]
                steer = Unsupported if mark is causes.EXPLICIT else GiveUp
                raise steer(mark, str(message[0]) if message and message[0] else "no reason given")
            reason = f" ({mark})" if isinstance(mark, str) else ""
            raise Unsupported(causes.DISABLED_CALL, f"{fn.name} is marked with disable{reason}")
        if callees.is_disallowed(real):
            raise Unsupported(causes.DISABLED_CALL, f"{fn.name} is marked with disallow_in_graph")
        special = self.answers.special(real)
        if special is not None:
            if not signatures.function_takes(real, len(args), kwargs):
                raise Unsupported(causes.UNKNOWN_CALL, f"{fn.describe()} with arguments that it does not take")
            return special(self.cap, args, kwargs)
        transformed = self.answers.of_code(real)
        if transformed is not None:
            return transformed(self.cap, args, kwargs)
        substitute = callees.substitute_of(real)
        if substitute is not None:
            self.chain = chain
            return self.call_substitute(substitute, args, kwargs)
        if callees.is_constant_result(real):
            given = [self.cap.operators.object_constant(a) for a in args]
            named = {k: self.cap.operators.object_constant(v) for k, v in kwargs.items()}
            return self.cap.world.wrap_static(self.cap.host(real, *given, **named))
        if callees.is_allowed(real) or callees.is_library_function(real):
            return self.cap.recorder.call(real, args, kwargs)
        if not callees.may_inline(fn.code):
            module = fn.globals.get("__name__", "?")
            if callees.is_own(fn.code) and real.__name__ in callees.DATA_DEPENDENT:
                raise Unsupported(causes.DATA_DEPENDENT_VALUE, f"{real.__name__}() of a tensor: what it gives depends on the data")
            looks = callees.looks_at_callers(real) or (module == "logging" and "stacklevel" in kwargs)
            cause = causes.FRAME_INTROSPECTION if looks else causes.UNKNOWN_CALL
            raise Unsupported(cause, f"{fn.describe()}() of {module}")
        return None

    def call_substitute(self, substitute: callees.Substitute, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """What `substitute_in_graph` put in the place of a function."""
        constants = self._constants(args, kwargs) if substitute.folds else None
        if constants is not None:
            given, named = constants
            return self.cap.world.wrap_static(self.cap.host(substitute.original, *given, **named))
        return self.cap.world.wrap_static(substitute.replacement).call(self.cap, args, kwargs)

    def _constants(self, args: list[Value], kwargs: dict[str, Value]) -> tuple[list[Any], dict[str, Any]] | None:
        """The arguments as Python's values, or None where one is no constant."""
        try:
            return [self.cap.realize(a).as_constant() for a in args], {k: self.cap.realize(v).as_constant() for k, v in kwargs.items()}
        except NotConstant:
            return None

    # -- classes -----------------------------------------------------------------------------------------------
    def of_class(self, value: ClassValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """cls(*args, **kwargs)"""
        self.chain = False
        cls, meta = value.cls, type(value.cls)
        if not issubclass(cls, Module) and (mark := type_attribute(cls, DISABLED, False)):
            reason = f" ({mark})" if isinstance(mark, str) else ""
            raise Unsupported(causes.DISABLED_CALL, f"{value.describe()} is marked with disable{reason}")
        known = self.answers.made(cls)
        if known is not None:
            if not signatures.function_takes(cls, len(args), kwargs):
                raise Unsupported(causes.UNKNOWN_CALL, f"{value.describe()} with arguments that it does not take")
            return known(self.cap, args, kwargs)
        if issubclass(cls, enum.Enum):
            if kwargs or len(args) != 1:
                raise Unsupported(causes.UNKNOWN_CALL, f"{value.describe()}() makes a new class")
            return self.cap.world.wrap_static(self.cap.host(cls, *(self.cap.operators.object_constant(a) for a in args)))
        if isinstance(cls, tensortype):
            return self.cap.recorder.call(cls, args, kwargs)
        if isinstance(self.cap.classes.lookup(meta, "__call__"), types.FunctionType):
            return self.cap.call(self.cap.classes.special_method(value, "__call__"), args, kwargs)
        return self.cap.classes.make_instance(value, args, kwargs)

    # -- instances and builtins --------------------------------------------------------------------------------
    def of_instance(self, obj: UserObject, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """obj(*args, **kwargs). A module without hooks goes straight to its forward."""
        chain, self.chain = self.chain, False
        if type_attribute(obj.cls, DISABLED, False) or (namespace_held(obj.real) or {}).get(DISABLED):
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
        """A C function by the table, or as a node, or a break."""
        self.chain = False
        fn = value.fn
        callees.refuse_forbidden(fn)
        if getattr(fn, DISABLED, False) is True:
            raise Unsupported(causes.DISABLED_CALL, f"{value.describe()} is marked with disable")
        if callees.is_disallowed(fn):
            raise Unsupported(causes.DISABLED_CALL, f"{value.describe()} is marked with disallow_in_graph")
        substitute = callees.substitute_of(fn)
        if substitute is not None:
            return self.call_substitute(substitute, args, kwargs)
        known = self.answers.function(fn)
        if known is not None:
            if not signatures.function_takes(fn, len(args), kwargs):
                raise Unsupported(causes.UNKNOWN_CALL, f"{value.describe()} with arguments that it does not take")
            return known(self.cap, args, kwargs)
        if callees.is_allowed(fn):
            return self.cap.recorder.call(fn, args, kwargs)
        of_type = self.answers.of_type(fn)
        if of_type is not None:
            return of_type(self.cap, args, kwargs)
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

    # -- questions ---------------------------------------------------------------------------------------------
def _is_none(value: Value) -> bool:
    return isinstance(value, Constant) and value.holds(None)


def _is_modules_call(raw: Any, name: str) -> bool:
    """Whether a class's entry `name` is the one that Module brings: a program may have put another in its place."""
    return isinstance(raw, types.FunctionType) and raw.__code__.co_qualname == f"HookedModule.{name}" and callees.is_own(raw.__code__)
