"""Calls: functions are followed, classes make objects, instances run __call__, builtins are looked up in a table.

Part of Capture. A call that cannot be followed ends the graph; whether the callee's frame is then captured by itself is
the hook's business.
"""

from __future__ import annotations

import abc
import enum
import functools
import operator
import types
from typing import TYPE_CHECKING, Any, Final

from dynamo.builtins.lru_cache import CACHED, call_cached
from dynamo.builtins.transforms import made_outside
from dynamo.bytecode.decode import CO_GENERATOR_LIKE
from dynamo.frames.frame import Frame
from dynamo.frames.opcodes.table import Return, Yield
from dynamo.guards.sources import ConstSource, module_of, type_attribute
from dynamo.policy import callees, signatures
from dynamo.python.attributes import namespace_held
from dynamo.report import causes
from dynamo.report.errors import GiveUp, Raised, Unsupported
from dynamo.values.base import NotConstant, Opaque, Value, type_name
from dynamo.values.builtin_subclasses import (
    SCALAR_BASES,
    ContainerObject,
    container_base,
    new_container,
    text_of_scalar,
    value_of_scalar,
)
from dynamo.values.constant import NONE, Constant
from dynamo.values.functions import FunctionValue, GeneratorValue, bind, unbound
from dynamo.values.iterators import Iterator
from dynamo.values.mappings import DictValue, DictView, ProxyValue, SetValue
from dynamo.values.ndarray import NdArrayValue
from dynamo.values.objects import BuiltinValue, ClassValue, Giving, UserObject
from dynamo.values.sequences import RangeValue, Sequence, SliceValue, TupleValue
from dynamo.values.tensor import TensorValue
from dynamo.world.wrap import is_named_tuple, is_python_class
from eager._storage.tensor_types import tensortype
from eager.nn import Module

if TYPE_CHECKING:
    from dynamo.world.side_effects import Effects

CO_GENERATOR: Final = 0x20
DISABLED: Final = "_framejit_disabled"
_BUILTIN: Final = (Sequence, DictValue, SetValue, DictView, RangeValue, SliceValue, Iterator)  # what has methods of C
_METHOD_OWNERS: Final = frozenset({str, bytes, int, float, frozenset, set, dict, list, tuple})


class Calls:
    """Part of Capture."""

    frames: list[Frame]
    effects: Effects
    generators: list[GeneratorValue]
    _chain: bool

    if TYPE_CHECKING:

        def realize(self, value: Value) -> Value: ...
        def wrap(self, real: Any, source: Any) -> Value: ...
        def wrap_static(self, real: Any, label: str = "") -> Value: ...
        def special_method(self, obj: Value, name: str) -> Value: ...
        def class_has(self, cls: type, name: str) -> bool: ...
        def class_lookup(self, cls: type, name: str) -> Any: ...
        def guard(self, kind: str, source: Any, *operands: Any) -> None: ...

    def call(self, value: Value, args: list[Value], kwargs: dict[str, Value], chain: bool = False) -> Value:
        """value(*args, **kwargs). chain: the result is just pushed by the calling instruction."""
        value = self.realize(value)
        self._chain = chain
        return value.call(self, args, kwargs)  # type: ignore[arg-type]

    def call_method(self, value: Value, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """value.name(*args, **kwargs)"""
        value = self.realize(value)
        self._chain = False
        if isinstance(value, Constant):
            return self._constant_method(value, name, args, kwargs)
        if isinstance(value, _BUILTIN) and not signatures.method_takes(value.python_type(), name, len(args), kwargs):
            raise Unsupported(causes.UNKNOWN_CALL, f"{value.describe()}.{name}() with arguments that it does not take")
        return value.call_method(self, name, args, kwargs)  # type: ignore[arg-type]

    def _constant_method(self, value: Constant, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if isinstance(value.value, str) and name == "join" and len(args) == 1:
            args = [self._as_list(args[0])]
        if isinstance(value.value, str) and name == "format":
            for arg in map(self.realize, (*args, *kwargs.values())):
                if isinstance(arg, TensorValue):
                    raise Unsupported(causes.DATA_DEPENDENT_VALUE, "the text of a tensor")
                if isinstance(arg, ContainerObject) and arg.is_scalar:
                    text_of_scalar(self, arg)  # type: ignore[arg-type]
        try:
            given = [self.object_constant(a) for a in args]  # type: ignore[attr-defined]
            named = {k: self.object_constant(v) for k, v in kwargs.items()}  # type: ignore[attr-defined]
        except NotConstant:
            raise Unsupported(causes.OPAQUE_OBJECT, f"{value.describe()}.{name}(...)") from None
        if name == "__iter__" and not given and not named:
            return value.iterate(self)  # type: ignore[arg-type]
        method = type_attribute(type(value.value), name, None)
        if isinstance(method, types.MethodDescriptorType):  # as the interpreter calls it, which errors tell
            given, method = [value.value, *given], method
        elif hasattr(value.value, name):
            method = getattr(value.value, name)
        else:
            raise Unsupported(causes.OPAQUE_OBJECT, f"{value.describe()}.{name}()")
        return self.wrap_new(self.host(method, *given, **named))  # type: ignore[attr-defined,no-any-return]

    def _as_list(self, value: Value) -> Value:
        return TupleValue(self.unpack(value))  # type: ignore[attr-defined]

    # -- functions ---------------------------------------------------------------------------------------------
    def call_function(self, fn: FunctionValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """Follow the call, or make it a node, or end the graph."""
        chain, self._chain = self._chain, False
        if fn.real is not None:
            decided = self._without_following(fn, args, kwargs, chain)
            if decided is not None:
                return decided
        elif not callees.may_inline(fn.code):
            raise Unsupported(causes.UNKNOWN_CALL, f"{fn.describe()}()")
        return self.inline(fn, args, kwargs, chain)

    def _without_following(self, fn: FunctionValue, args: list[Value], kwargs: dict[str, Value], chain: bool) -> Value | None:
        real = fn.real
        assert real is not None
        callees.refuse_forbidden(real)
        if mark := getattr(real, DISABLED, False):
            if mark is causes.EXPLICIT or mark is causes.SKIPPED:
                message = [self.realize(a).as_constant() for a in (*args, *kwargs.values())]  # type: ignore[attr-defined]
                steer = Unsupported if mark is causes.EXPLICIT else GiveUp
                raise steer(mark, str(message[0]) if message and message[0] else "no reason given")
            reason = f" ({mark})" if isinstance(mark, str) else ""
            raise Unsupported(causes.DISABLED_CALL, f"{fn.name} is marked with disable{reason}")
        if callees.is_disallowed(real):
            raise Unsupported(causes.DISABLED_CALL, f"{fn.name} is marked with disallow_in_graph")
        special = self.special_function(real)  # type: ignore[attr-defined]
        if special is not None:
            if not signatures.function_takes(real, len(args), kwargs):
                raise Unsupported(causes.UNKNOWN_CALL, f"{fn.describe()} with arguments that it does not take")
            return special(self, args, kwargs)  # type: ignore[no-any-return]
        transformed = made_outside(self, real)  # type: ignore[arg-type]
        if transformed is not None:
            return transformed.call(self, args, kwargs)  # type: ignore[arg-type]
        substitute = callees.substitute_of(real)
        if substitute is not None:
            self._chain = chain
            return self.call_substitute(substitute, args, kwargs)
        if callees.is_constant_result(real):
            given = [self.object_constant(a) for a in args]  # type: ignore[attr-defined]
            named = {k: self.object_constant(v) for k, v in kwargs.items()}  # type: ignore[attr-defined]
            return self.wrap_static(self.host(real, *given, **named))  # type: ignore[attr-defined]
        if callees.is_allowed(real) or callees.is_library_function(real):
            return self.tensor_call(real, args, kwargs)  # type: ignore[attr-defined,no-any-return]
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
            return self.wrap_static(self.host(substitute.original, *given, **named))  # type: ignore[attr-defined]
        return self.wrap_static(substitute.replacement).call(self, args, kwargs)  # type: ignore[arg-type]

    def _constants(self, args: list[Value], kwargs: dict[str, Value]) -> tuple[list[Any], dict[str, Any]] | None:
        """The arguments as Python's values, or None where one is no constant."""
        try:
            return [self.realize(a).as_constant() for a in args], {k: self.realize(v).as_constant() for k, v in kwargs.items()}
        except NotConstant:
            return None

    def inline(self, fn: FunctionValue, args: list[Value], kwargs: dict[str, Value], chain: bool) -> Value:
        """Run the callee's frame within this capture."""
        if fn.code.co_flags & CO_GENERATOR_LIKE:
            if not fn.code.co_flags & CO_GENERATOR:
                raise Unsupported(causes.GENERATOR, f"{fn.describe()} is a coroutine")
            return self._make_generator(fn, args, kwargs)
        self.check_depth()  # type: ignore[attr-defined]
        slots = bind(self, fn, args, kwargs)  # type: ignore[arg-type]
        frame = Frame(self, fn.code, fn.globals, slots, fn=fn, chainable=chain)  # type: ignore[arg-type]
        signal = self.run_frame(frame)
        assert isinstance(signal, Return)
        return signal.value

    def run_frame(self, frame: Frame) -> Return | Yield:
        """Run `frame` on top of the frames that are running."""
        caller = self.frames[-1] if self.frames else None
        if caller is not None:
            caller.handled = self.handled  # type: ignore[attr-defined]
        self.frames.append(frame)
        try:
            return frame.run()
        finally:
            self.frames.pop()

    def _make_generator(self, fn: FunctionValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
        slots = bind(self, fn, args, kwargs)  # type: ignore[arg-type]
        given = unbound(fn.code, slots)
        frame = Frame(self, fn.code, fn.globals, slots, fn=fn, chainable=False)  # type: ignore[arg-type]
        made = GeneratorValue(frame, fn, *given, self.steps)  # type: ignore[attr-defined]
        self.generators.append(made)
        return made

    def run_generator(self, frame: Frame, exception: Value | None) -> tuple[bool, Value]:
        """One step of a generator's frame: (it yielded, the value)."""
        outer = self.handled  # type: ignore[attr-defined,has-type]
        self.frames.append(frame)
        try:
            signal = frame.run() if exception is None else frame.resume_with(exception)
        finally:
            self.frames.pop()
            self.handled = outer
        return isinstance(signal, Yield), signal.value

    # -- classes -----------------------------------------------------------------------------------------------
    def call_class(self, value: ClassValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """cls(*args, **kwargs)"""
        self._chain = False
        cls, meta = value.cls, type(value.cls)
        if not issubclass(cls, Module) and (mark := type_attribute(cls, DISABLED, False)):
            reason = f" ({mark})" if isinstance(mark, str) else ""
            raise Unsupported(causes.DISABLED_CALL, f"{value.describe()} is marked with disable{reason}")
        known = self.builtin_class(cls)  # type: ignore[attr-defined]
        if known is not None:
            if not signatures.function_takes(cls, len(args), kwargs):
                raise Unsupported(causes.UNKNOWN_CALL, f"{value.describe()} with arguments that it does not take")
            return known(self, args, kwargs)  # type: ignore[no-any-return]
        if issubclass(cls, enum.Enum):
            if kwargs or len(args) != 1:
                raise Unsupported(causes.UNKNOWN_CALL, f"{value.describe()}() makes a new class")
            return self.wrap_static(self.host(cls, *(self.object_constant(a) for a in args)))  # type: ignore[attr-defined]
        if isinstance(cls, tensortype):
            return self.tensor_call(cls, args, kwargs)  # type: ignore[attr-defined,no-any-return]
        if isinstance(self.class_lookup(meta, "__call__"), types.FunctionType):
            return self.call(self.special_method(value, "__call__"), args, kwargs)
        return self.make_instance(value, args, kwargs)

    def make_instance(self, value: ClassValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """What type.__call__ does: __new__, then __init__ if an instance came out."""
        cls = value.cls
        if is_named_tuple(cls):
            return self._make_named_tuple(cls, args, kwargs)
        creator = self.class_lookup(cls, "__new__")
        if issubclass(cls, BaseException):
            if isinstance(creator, staticmethod | types.FunctionType):
                raise Unsupported(causes.EXCEPTION, f"{cls.__name__}() (it defines __new__)")
            return self.make_exception(cls, args, kwargs)  # type: ignore[attr-defined,no-any-return]
        if issubclass(cls, Module):
            return self.make_module(value, args, kwargs)  # type: ignore[attr-defined,no-any-return]
        base = container_base(cls)
        if base is None and not is_python_class(cls):
            raise Unsupported(causes.UNKNOWN_CALL, f"{value.describe()}()")
        if type(cls) not in (type, abc.ABCMeta) and not is_python_class(type(cls)) and module_of(type(cls)) != "typing":
            raise Unsupported(causes.UNKNOWN_CALL, f"{value.describe()}() (metaclass {type(cls).__name__})")
        if isinstance(creator, staticmethod | types.FunctionType):
            function = creator.__func__ if isinstance(creator, staticmethod) else creator
            fn = self.wrap(function, ConstSource(function, f"{cls.__name__}.__new__"))
            made = self.realize(self.call(fn, [value, *args], kwargs))
            if not issubclass(made.python_type(), cls):
                return made
        elif base is not None:
            made = new_container(self, cls, base, args, kwargs)  # type: ignore[arg-type]
        elif issubclass(cls, types.SimpleNamespace):
            made = self.new_object(cls, [], {})
        else:
            made = self.new_object(cls, args, kwargs)
        init = self.class_lookup(made.python_type(), "__init__")  # of what __new__ gave, perhaps a subclass
        filled = isinstance(made, ContainerObject) or issubclass(made.python_type(), types.SimpleNamespace)
        fills = filled and getattr(init, "__objclass__", object) is not object
        if isinstance(init, types.FunctionType) or fills:
            result = self.call(self.special_method(made, "__init__"), args, kwargs)
            if self.realize(result) is not NONE and not _is_none(self.realize(result)):
                kind = type_name(self.realize(result).python_type())
                self.raise_(TypeError, f"__init__() should return None, not '{kind}'")  # type: ignore[attr-defined]
        return made

    def new_object(self, cls: type, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """object.__new__(cls, ...)"""
        self.check_creation(cls)
        if args or kwargs:  # CPython decides by its slots whether it minds them; a __new__ that was there leaves its slot behind
            self.host(object.__new__, cls, *(None for _ in args), **dict.fromkeys(kwargs))  # type: ignore[attr-defined]
            if container_base(cls) is None:
                self.guard("plain_new", ConstSource(cls, cls.__name__))
        if container_base(cls) is not None:
            self.host(object.__new__, cls)  # type: ignore[attr-defined]
        return UserObject(cls, born=self.steps)  # type: ignore[attr-defined]

    def check_creation(self, cls: type) -> None:
        """Raise what making an instance of an abstract class raises; end the graph where its end would show."""
        if self.class_has(cls, "__del__"):
            raise Unsupported(causes.OPAQUE_OBJECT, f"{cls.__name__}(): its class has a __del__, and when that runs shows")
        if getattr(cls, "__abstractmethods__", None) and container_base(cls) is None:
            self.host(object.__new__, cls)  # type: ignore[attr-defined]

    def _make_named_tuple(self, cls: type, args: list[Value], kwargs: dict[str, Value]) -> Value:
        fields: tuple[str, ...] = cls._fields  # type: ignore[attr-defined]
        positions = dict(enumerate(args))
        places = {k: Constant(i) for i, k in enumerate(fields)}
        markers = self.host(cls, *range(len(args)), **{k: k for k in kwargs})  # type: ignore[attr-defined]
        items: list[Value] = []
        for name, marker in zip(fields, markers, strict=True):
            if name in kwargs:
                items.append(kwargs[name])
            elif type(marker) is int and positions.get(marker) is not None and places[name].value == marker:
                items.append(positions[marker])
            else:
                items.append(self.wrap_static(marker))
        return TupleValue(items, None, cls)

    # -- instances and builtins --------------------------------------------------------------------------------
    def call_instance(self, obj: UserObject, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """obj(*args, **kwargs). A module without hooks goes straight to its forward."""
        chain, self._chain = self._chain, False
        if type_attribute(obj.cls, DISABLED, False) or (namespace_held(obj.real) or {}).get(DISABLED):
            raise Unsupported(causes.DISABLED_CALL, f"{obj.describe()} is marked with disable")
        if isinstance(obj.real, Module) and _is_modules_call(self.class_lookup(obj.cls, "__call__"), "__call__"):
            return self._call_module(obj, args, kwargs, chain)
        if not self.class_has(obj.cls, "__call__"):
            self.raise_(TypeError, f"'{obj.cls.__name__}' object is not callable")  # type: ignore[attr-defined]
        method = self.special_method(obj, "__call__")
        self._chain = chain
        return method.call(self, args, kwargs)  # type: ignore[arg-type]

    def _call_module(self, obj: UserObject, args: list[Value], kwargs: dict[str, Value], chain: bool) -> Value:
        replaced = not _is_modules_call(self.class_lookup(obj.cls, "_call_impl"), "_call_impl")
        if self.module_has_hooks(obj) or replaced:  # type: ignore[attr-defined]
            method = self.special_method(obj, "_call_impl")
        else:
            method = self.realize(obj.getattr(self, "forward"))  # type: ignore[arg-type]
        self._chain = chain
        return method.call(self, args, kwargs)  # type: ignore[arg-type]

    def call_builtin(self, value: BuiltinValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """A C function by the table, or as a node, or a break."""
        self._chain = False
        fn = value.fn
        callees.refuse_forbidden(fn)
        if getattr(fn, DISABLED, False) is True:
            raise Unsupported(causes.DISABLED_CALL, f"{value.describe()} is marked with disable")
        if callees.is_disallowed(fn):
            raise Unsupported(causes.DISABLED_CALL, f"{value.describe()} is marked with disallow_in_graph")
        substitute = callees.substitute_of(fn)
        if substitute is not None:
            return self.call_substitute(substitute, args, kwargs)
        known = self.builtin_function(fn)  # type: ignore[attr-defined]
        if known is not None:
            if not signatures.function_takes(fn, len(args), kwargs):
                raise Unsupported(causes.UNKNOWN_CALL, f"{value.describe()} with arguments that it does not take")
            return known(self, args, kwargs)  # type: ignore[no-any-return]
        if callees.is_allowed(fn):
            return self.tensor_call(fn, args, kwargs)  # type: ignore[attr-defined,no-any-return]
        if isinstance(fn, CACHED):
            return call_cached(self, fn, args, kwargs)  # type: ignore[arg-type]
        if type(getattr(fn, "__self__", None)) in _METHOD_OWNERS:  # keyword.iskeyword is a method of a frozenset
            return self.call_method(self.wrap_static(fn.__self__), fn.__name__, args, kwargs)
        if isinstance(fn, types.MethodDescriptorType | types.WrapperDescriptorType) and args:
            owner = self.realize(args[0])
            if issubclass(owner.python_type(), fn.__objclass__) and not isinstance(owner, Opaque):
                return self._descriptor(fn, owner, args[1:], kwargs)
        raise Unsupported(causes.UNKNOWN_CALL, f"{value.describe()}()")

    def _descriptor(self, fn: Any, owner: Value, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """cls.method(obj, ...) of a C class."""
        name = fn.__name__
        if not signatures.takes(fn, 1 + len(args), kwargs):
            raise Unsupported(causes.UNKNOWN_CALL, f"{fn.__objclass__.__name__}.{name}() with arguments that it does not take")
        if isinstance(owner, ContainerObject) and fn.__objclass__ is not object:
            return owner.base_method(self, fn.__objclass__, name, args, kwargs)  # type: ignore[arg-type]
        if isinstance(owner, UserObject) and fn.__objclass__ in SCALAR_BASES:  # a member of an enum of numbers or of texts
            if not isinstance(value := value_of_scalar(self, owner), Constant):  # type: ignore[arg-type]
                raise Unsupported(causes.UNKNOWN_CALL, f"{fn.__objclass__.__name__}.{name}() of {owner.describe()}")
            return self.call_method(value, name, args, kwargs)
        if isinstance(owner, UserObject):
            return self.object_method(owner, name, args, kwargs)  # type: ignore[attr-defined,no-any-return]
        if isinstance(owner, (*_BUILTIN, Constant)) and type_attribute(owner.python_type(), name, None) is not fn:
            raise Unsupported(causes.UNKNOWN_CALL, f"{fn.__objclass__.__name__}.{name}() of {owner.describe()}, which has another")
        return self.call_method(owner, name, args, kwargs)

    # -- questions ---------------------------------------------------------------------------------------------
    def isinstance(self, value: Value, cls: Value) -> bool:
        """isinstance(value, cls)"""
        value, cls = self.realize(value), self.realize(cls)
        if isinstance(cls, TupleValue):
            return any(self.isinstance(value, c) for c in cls.items)
        if isinstance(cls, ClassValue):
            target: Any = cls.cls
        elif isinstance(cls, Opaque) and isinstance(cls.real, types.UnionType):
            target = cls.real
        else:
            raise Unsupported(causes.OPAQUE_OBJECT, f"isinstance(..., {cls.describe()})")
        if isinstance(value, TensorValue):
            return isinstance(value.fake, target) if value.real is None else isinstance(value.real, target)
        kind = value.python_type()
        if isinstance(value, UserObject) and type_attribute(kind, "__class__") is not object.__dict__["__class__"]:
            raise Unsupported(causes.OPAQUE_OBJECT, f"isinstance() of {value.describe()}, which says itself what its class is")
        if isinstance(target, type) and type(target) is type:
            return issubclass(kind, target)
        checker = self.class_lookup(type(target), "__instancecheck__")
        if isinstance(checker, types.FunctionType) and checker.__module__ == "typing" and not getattr(target, "_is_protocol", False):
            raise Unsupported(causes.UNKNOWN_CALL, f"isinstance(..., {target.__name__})")
        if isinstance(checker, types.FunctionType) and checker.__module__ not in ("typing", "abc"):
            return bool(self.truth(self.call(self.special_method(cls, "__instancecheck__"), [value], {})))  # type: ignore[attr-defined]
        return self.is_subclass(kind, target)

    def is_subclass(self, kind: type, target: Any) -> bool:
        """issubclass(kind, target). What an abstract class denies, a registration may change."""
        if isinstance(target, types.UnionType):
            return any(self.is_subclass(kind, part) for part in target.__args__)
        if getattr(target, "_is_protocol", False) and target not in kind.__mro__:
            raise Unsupported(causes.OPAQUE_OBJECT, f"isinstance(..., {target.__name__}), which is a protocol")
        found = bool(self.host(issubclass, kind, target))  # type: ignore[attr-defined]
        if not found and isinstance(target, abc.ABCMeta):
            ask = functools.partial(issubclass, kind, target)
            self.guards.add("call_eq", (), ask, False, origin=self.origin, watch=(abc.get_cache_token,))  # type: ignore[attr-defined]
        return found

    def length(self, value: Value) -> Value:
        """len(value)"""
        value = self.realize(value)
        if isinstance(value, Constant):
            return Constant(self.host(len, value.value))  # type: ignore[attr-defined]
        if isinstance(value, Sequence | DictValue | SetValue | DictView | ProxyValue | TensorValue | NdArrayValue):
            return self.call_method(value, "__len__", [], {})
        if isinstance(value, RangeValue):
            return Constant(self.host(len, value.value))  # type: ignore[attr-defined]
        if isinstance(value, ClassValue) and issubclass(value.cls, enum.Enum):
            return Constant(len(value.cls))
        if isinstance(value, UserObject):
            if not self.class_has(value.cls, "__len__"):
                self.raise_(TypeError, f"object of type '{value.cls.__name__}' has no len()")  # type: ignore[attr-defined]
            result = self.realize(self.call_method(value, "__len__", [], {}))
            return Constant(self.host(len, Giving(self.index_constant(result))))  # type: ignore[attr-defined]
        raise Unsupported(causes.OPAQUE_OBJECT, f"len of {value.describe()}")

    def length_hint(self, value: Value) -> None:
        """What list() and extend() ask an iterable first. The number does not matter; effects do, and errors but TypeErrors."""
        if not isinstance(value, UserObject):
            return
        try:
            if self.class_has(value.cls, "__len__"):
                self.length(value)
                return
        except Raised as error:
            if not issubclass(error.value.python_type(), TypeError):
                raise
        if not self.class_has(value.cls, "__length_hint__"):
            return
        try:
            hint = self.realize(self.call_method(value, "__length_hint__", [], {}))
        except Raised as error:
            if not issubclass(error.value.python_type(), TypeError):
                raise
            return
        if not hint.is_constant:
            raise Unsupported(causes.OPAQUE_OBJECT, f"{hint.describe()} as a length")
        self.host(operator.length_hint, _Hinted(hint.as_constant()))  # type: ignore[attr-defined]

    def get_attribute(self, value: Value, name: str, default: Value | None) -> Value:
        """getattr(value, name[, default])"""
        try:
            return self.read_attribute(value, name)  # type: ignore[attr-defined,no-any-return]
        except Raised as error:
            if default is not None and issubclass(error.value.python_type(), AttributeError):
                return default
            raise


class _Hinted:
    """operator.length_hint() of it checks a __length_hint__ result as Python does."""

    def __init__(self, hint: Any) -> None:
        self._hint = hint

    def __length_hint__(self) -> Any:
        return self._hint


def _is_none(value: Value) -> bool:
    return isinstance(value, Constant) and value.holds(None)


def _is_modules_call(raw: Any, name: str) -> bool:
    """Whether a class's entry `name` is the one that Module brings: a program may have put another in its place."""
    return isinstance(raw, types.FunctionType) and raw.__code__.co_qualname == f"HookedModule.{name}" and callees.is_own(raw.__code__)
