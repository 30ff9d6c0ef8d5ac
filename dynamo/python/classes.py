"""Classes of the captured program: their attributes, isinstance(), and new instances.

Owns attribute look-up in classes, modules and super(). A look-up guards the attribute that it finds, or the absence of
the attribute.
"""

from __future__ import annotations

import abc
import enum
import functools
import sys
import types
from abc import ABCMeta
from typing import Any, Final

from dynamo import _native
from dynamo.guards.sources import (
    AttrSource,
    ConstSource,
    DictItemSource,
    Source,
    TypeAttrSource,
    module_of,
    type_attribute,
)
from dynamo.policy import callees
from dynamo.recording.temporary_modules import make_module
from dynamo.report import causes
from dynamo.report.errors import Unsupported
from dynamo.values.base import NONE, Constant, Opaque, is_none, type_name
from dynamo.values.builtin_subclasses import CONTAINER_BASES, ContainerObject, container_base, new_container
from dynamo.values.functions import BoundMethod
from dynamo.values.objects import DELETED, BuiltinMethod, ClassValue, PythonModule, SuperValue, UserObject
from dynamo.values.protocols import Machine, Value
from dynamo.values.sequences import TupleValue
from dynamo.values.tensor import TensorValue
from dynamo.world.wrap import is_named_tuple, is_python_class
from eager.nn import Module

ABSENT: Final = object()  # the result for an attribute that a class does not have
OWN_GETATTRIBUTE: Final = frozenset(
    {object.__getattribute__, BaseException.__getattribute__, type.__getattribute__, types.ModuleType.__getattribute__,
     types.SimpleNamespace.__getattribute__,
     *(base.__getattribute__ for base in CONTAINER_BASES)}
)  # fmt: skip
# Callables whose `__get__` returns a bound method, as `__get__` of a function does.
_BOUND_AS_METHODS: Final = (types.FunctionType, functools._lru_cache_wrapper, _native.CompiledFunction)


class Classes:
    """Looks up attributes of classes, modules and super(), answers isinstance(), makes instances. It has no state."""

    def __init__(self, cap: Machine) -> None:
        self.cap = cap

    # -- look-up -----------------------------------------------------------------------------------------------
    def has(self, cls: type, name: str) -> bool:
        """Whether instances of cls have the special method `name`. Guarded like every look-up in a class."""
        return self.lookup(cls, name) is not ABSENT

    def lookup(self, cls: type, name: str) -> Any:
        """The raw class attribute; ABSENT without one. Its presence or absence is guarded."""
        raw = type_attribute(cls, name, ABSENT)
        if module_of(cls) in ("builtins", "enum"):
            return raw
        held = ConstSource(cls, cls.__name__)
        if raw is ABSENT:
            self.cap.world.guard("type_absent", held, name)
        else:
            self.cap.world.guard("is", TypeAttrSource(held, name), raw)
        return raw

    def wrap(self, cls: type, name: str, raw: Any) -> Value:
        """The value of a raw class attribute (its identity is guarded by `lookup`)."""
        return self.cap.world.wrap(raw, ConstSource(raw, f"{cls.__name__}.{name}"))

    def of(self, obj: Value, cls: type) -> Value:
        """type(obj)"""
        return self.cap.world.wrap(cls, ConstSource(cls, cls.__name__))

    def special_method(self, obj: Value, name: str) -> Value:
        """type(obj).name bound to obj: Python's look-up of special methods."""
        cls = obj.python_type()
        raw = self.lookup(cls, name)
        if raw is ABSENT:
            return self.cap.raise_(AttributeError, f"'{type_name(cls)}' object has no attribute '{name}'")
        if raw is None:
            raise Unsupported(causes.OPAQUE_OBJECT, f"{name} of {obj.describe()}, which its class has set to None")
        return self.cap.attributes.bind(obj, cls, name, raw)

    # -- attributes of classes, modules and super() ---------------------------------------------------------------
    def attribute(self, value: ClassValue, name: str) -> Value:
        """cls.name"""
        cls, meta = value.cls, type(value.cls)
        if name in ("__name__", "__qualname__", "__module__", "__doc__"):
            return self.cap.world.wrap_static(getattr(cls, name))
        if name == "__class__":
            return self.cap.world.wrap_static(meta)
        if name in ("__mro__", "__bases__", "__base__", "__dict__", "__annotations__"):
            if name in ("__mro__", "__bases__"):
                return TupleValue([self.cap.world.wrap_static(c) for c in getattr(cls, name)])
            raise Unsupported(causes.ATTRIBUTE, f"{value.describe()}.{name}")
        if name == "__subclasses__" and meta in (type, ABCMeta):
            return self.cap.world.wrap_static(type.__subclasses__.__get__(cls))
        raw = self.lookup(cls, name)
        of_type = meta is type and is_data_descriptor(vars(type).get(name))
        if of_type and (raw is not ABSENT or hasattr(cls, name)):  # it takes precedence over the attribute of the class
            raise Unsupported(causes.ATTRIBUTE, f"{value.describe()}.{name}")
        from_meta = self.lookup(meta, name) if meta is not type else ABSENT
        if meta is not type and self.lookup(meta, "__getattribute__") is not type.__getattribute__:
            raise Unsupported(causes.ATTRIBUTE, f"{value.describe()}.{name} (its metaclass has __getattribute__)")
        overrides = is_data_descriptor(from_meta) and hasattr(type(from_meta), "__get__")
        if from_meta is not ABSENT and (raw is ABSENT or overrides):
            return self.cap.attributes.bind(value, meta, name, from_meta)
        if raw is ABSENT:
            return self._missing_class_attribute(value, name)
        return self._class_entry(value, name, raw)

    def method_of(self, owner: Value, cls: type, name: str, func: Any) -> Value:
        """The method that a classmethod of `func` returns for the class `owner`.

        Before CPython 3.13, a classmethod calls the `__get__` of `func` if `func` is a descriptor: another classmethod,
        a property or a bound method. The result may be another object than a method of the class.
        """
        bound_by_get = sys.version_info < (3, 13) and hasattr(type(func), "__get__") and not isinstance(func, _BOUND_AS_METHODS)
        if bound_by_get or not callable(func):
            raise Unsupported(causes.ATTRIBUTE, f"{cls.__name__}.{name} (a classmethod of a {type(func).__name__})")
        return BoundMethod(owner, self.cap.world.wrap(func, ConstSource(func, f"{cls.__name__}.{name}")))

    def _class_entry(self, value: ClassValue, name: str, raw: Any) -> Value:
        cls = value.cls
        if isinstance(raw, staticmethod):
            return self.cap.world.wrap(raw.__func__, ConstSource(raw.__func__, f"{cls.__name__}.{name}"))
        if isinstance(raw, classmethod):
            return self.method_of(value, cls, name, raw.__func__)
        if isinstance(raw, types.ClassMethodDescriptorType):
            return self.cap.world.wrap_static(getattr(cls, name))
        if type(raw) is enum.property:
            return self.cap.world.wrap_static(self.cap.host(getattr, cls, name))
        if isinstance(raw, types.DynamicClassAttribute):
            raise Unsupported(causes.ATTRIBUTE, f"{value.describe()}.{name} ({type(raw).__name__})")
        if hasattr(type(raw), "__get__") and isinstance(type_attribute(type(raw), "__get__", None), types.FunctionType):
            descriptor = self.wrap(cls, name, raw)
            return self.cap.call(self.special_method(descriptor, "__get__"), [Constant(None), value], {})
        return self.wrap(cls, name, raw)

    def _missing_class_attribute(self, value: ClassValue, name: str) -> Value:
        cls = value.cls
        if hasattr(cls, name):  # of type itself: cls.mro, cls.__call__
            return BuiltinMethod(value, name)
        if isinstance(self.lookup(type(cls), "__getattr__"), types.FunctionType):
            raise Unsupported(causes.ATTRIBUTE, f"{value.describe()}.{name} (its metaclass has __getattr__)")
        return self.cap.raise_(AttributeError, f"type object '{cls.__name__}' has no attribute '{name}'")

    def module_attribute(self, value: PythonModule, name: str) -> Value:
        """module.name"""
        module, cls = value.module, type(value.module)
        raw = self._module_class_attribute(value, cls, name) if cls is not types.ModuleType else ABSENT
        if raw is not ABSENT and is_data_descriptor(raw):
            return self.cap.attributes.read_descriptor(value, cls, name, raw)
        namespace = module.__dict__
        pending = self.cap.effects.global_write(namespace, name)
        if pending is not None and pending is not DELETED:
            return pending
        held = ConstSource(namespace, value.name)
        if name not in namespace and raw is not ABSENT:
            self.cap.world.guard("dict_absent", held, name)
            return self.cap.attributes.bind(value, cls, name, raw)
        if name not in namespace:
            return self._missing_module_attribute(module, held, name)
        return self.cap.world.wrap(namespace[name], DictItemSource(held, name))

    def _module_class_attribute(self, value: PythonModule, cls: type, name: str) -> Any:
        """The attribute that a class of modules adds to types.ModuleType under `name`; ABSENT without one."""
        if self.lookup(cls, "__getattribute__") not in OWN_GETATTRIBUTE:
            raise Unsupported(causes.ATTRIBUTE, f"{value.describe()}.{name} (its class defines __getattribute__)")
        raw = self.lookup(cls, name)
        if raw is type_attribute(types.ModuleType, name, ABSENT):
            return ABSENT
        if isinstance(raw, types.MemberDescriptorType | types.GetSetDescriptorType):
            raise Unsupported(causes.ATTRIBUTE, f"{value.describe()}.{name} ({type(raw).__name__})")
        return raw

    def _missing_module_attribute(self, module: types.ModuleType, held: Source, name: str) -> Value:
        hook = module.__dict__.get("__getattr__", ABSENT)
        if type(module) is types.ModuleType and isinstance(hook, types.FunctionType) and not callees.is_own(hook.__code__):
            self.cap.world.guard("dict_absent", held, name)
            return self.cap.call(self.cap.world.wrap(hook, DictItemSource(held, "__getattr__")), [Constant(name)], {})
        try:
            found = getattr(module, name)
        except AttributeError as error:
            self.cap.world.guard("dict_absent", held, name)
            return self.cap.raise_(AttributeError, *error.args)
        if name in module.__dict__:
            return self.cap.world.wrap(found, DictItemSource(held, name))
        self.cap.world.guard("dict_absent", held, name)  # a module that makes its attributes when they are read
        return self.cap.world.wrap_static(found, name)

    def super_attribute(self, value: SuperValue, name: str) -> Value:
        """super(cls, obj).name"""
        obj = value.obj
        start = obj.cls if isinstance(obj, ClassValue) and issubclass(obj.cls, value.cls) else obj.python_type()
        mro = start.__mro__
        if value.cls not in mro:
            raise Unsupported(causes.ATTRIBUTE, f"super({value.cls.__name__}, ...).{name} of {obj.describe()}")
        self.cap.world.guard("is", AttrSource(ConstSource(start, start.__name__), "__mro__"), mro)
        for base in mro[mro.index(value.cls) + 1 :]:
            self.lookup(base, name)
            if name in base.__dict__:
                raw = base.__dict__[name]
                if isinstance(obj, ClassValue) and start is obj.cls and not isinstance(raw, classmethod):
                    return self._class_entry(ClassValue(base, obj.source), name, raw)
                if isinstance(raw, classmethod):
                    owner = obj if isinstance(obj, ClassValue) else self.cap.world.wrap_static(start)
                    return self.method_of(owner, base, name, raw.__func__)
                if is_data_descriptor(raw) and not isinstance(raw, property):
                    raise Unsupported(causes.ATTRIBUTE, f"super().{name}")
                return self.cap.attributes.bind(obj, base, name, raw)
        return self.cap.raise_(AttributeError, f"'super' object has no attribute '{name}'")

    # -- isinstance() and issubclass() ------------------------------------------------------------------------------
    def isinstance(self, value: Value, cls: Value) -> bool:
        """isinstance(value, cls)"""
        value, cls = self.cap.realize(value), self.cap.realize(cls)
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
            raise Unsupported(causes.OPAQUE_OBJECT, f"isinstance() of {value.describe()}, whose __class__ is computed")
        if isinstance(target, type) and type(target) is type:
            return issubclass(kind, target)
        checker = self.lookup(type(target), "__instancecheck__")
        if isinstance(checker, types.FunctionType) and checker.__module__ == "typing" and not getattr(target, "_is_protocol", False):
            raise Unsupported(causes.UNKNOWN_CALL, f"isinstance(..., {target.__name__})")
        if isinstance(checker, types.FunctionType) and checker.__module__ not in ("typing", "abc"):
            return bool(self.cap.truth(self.cap.call(self.special_method(cls, "__instancecheck__"), [value], {})))
        return self.is_subclass(kind, target)

    def is_subclass(self, kind: type, target: Any) -> bool:
        """issubclass(kind, target). Guarded: a later registration may make a class a subclass of an abstract class."""
        if isinstance(target, types.UnionType):
            return any(self.is_subclass(kind, part) for part in target.__args__)
        if getattr(target, "_is_protocol", False) and target not in kind.__mro__:
            raise Unsupported(causes.OPAQUE_OBJECT, f"isinstance(..., {target.__name__}), which is a protocol")
        found = bool(self.cap.host(issubclass, kind, target))
        if not found and isinstance(target, abc.ABCMeta):
            ask = functools.partial(issubclass, kind, target)
            self.cap.world.guards.add("call_eq", (), ask, False, origin=self.cap.origin, watch=(abc.get_cache_token,))
        return found

    # -- instances ----------------------------------------------------------------------------------------------
    def make_instance(self, value: ClassValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """type.__call__(cls, ...): __new__, then __init__ if the result is an instance."""
        cls = value.cls
        if is_named_tuple(cls):
            return self._make_named_tuple(cls, args, kwargs)
        creator = self.lookup(cls, "__new__")
        if issubclass(cls, BaseException):
            if isinstance(creator, staticmethod | types.FunctionType):
                raise Unsupported(causes.EXCEPTION, f"{cls.__name__}() (it defines __new__)")
            return self.cap.exceptions.make(cls, args, kwargs)
        if issubclass(cls, Module):
            return make_module(self.cap, value, args, kwargs)
        base = container_base(cls)
        if base is None and not is_python_class(cls):
            raise Unsupported(causes.UNKNOWN_CALL, f"{value.describe()}()")
        if type(cls) not in (type, abc.ABCMeta) and not is_python_class(type(cls)) and module_of(type(cls)) != "typing":
            raise Unsupported(causes.UNKNOWN_CALL, f"{value.describe()}() (metaclass {type(cls).__name__})")
        if isinstance(creator, staticmethod | types.FunctionType):
            function = creator.__func__ if isinstance(creator, staticmethod) else creator
            fn = self.cap.world.wrap(function, ConstSource(function, f"{cls.__name__}.__new__"))
            made = self.cap.realize(self.cap.call(fn, [value, *args], kwargs))
            if not issubclass(made.python_type(), cls):
                return made
        elif base is not None:
            made = new_container(self.cap, cls, base, args, kwargs)
        elif issubclass(cls, types.SimpleNamespace):
            made = self.new_object(cls, [], {})
        else:
            made = self.new_object(cls, args, kwargs)
        init = self.lookup(made.python_type(), "__init__")  # the class of the instance, perhaps a subclass
        filled = isinstance(made, ContainerObject) or issubclass(made.python_type(), types.SimpleNamespace)
        fills = filled and getattr(init, "__objclass__", object) is not object
        if isinstance(init, types.FunctionType) or fills:
            result = self.cap.call(self.special_method(made, "__init__"), args, kwargs)
            if self.cap.realize(result) is not NONE and not is_none(self.cap.realize(result)):
                kind = type_name(self.cap.realize(result).python_type())
                self.cap.raise_(TypeError, f"__init__() should return None, not '{kind}'")
        return made

    def new_object(self, cls: type, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """object.__new__(cls, ...)"""
        self.check_creation(cls)
        if args or kwargs:  # CPython decides by its slots whether extra arguments are an error; a deleted __new__ leaves its slot behind
            self.cap.host(object.__new__, cls, *(None for _ in args), **dict.fromkeys(kwargs))
            if container_base(cls) is None:
                self.cap.world.guard("plain_new", ConstSource(cls, cls.__name__))
        if container_base(cls) is not None:
            self.cap.host(object.__new__, cls)
        return UserObject(cls, born=self.cap.steps)

    def check_creation(self, cls: type) -> None:
        """Raise the error for an instance of an abstract class; break the graph if the finalizer of an instance is
        visible.
        """
        if self.has(cls, "__del__"):
            raise Unsupported(causes.OPAQUE_OBJECT, f"{cls.__name__}() defines __del__; when its finalizer runs would be observable")
        if getattr(cls, "__abstractmethods__", None) and container_base(cls) is None:
            self.cap.host(object.__new__, cls)

    def _make_named_tuple(self, cls: type, args: list[Value], kwargs: dict[str, Value]) -> Value:
        fields: tuple[str, ...] = vars(cls)["_fields"]
        positions = dict(enumerate(args))
        places = {k: Constant(i) for i, k in enumerate(fields)}
        markers = self.cap.host(cls, *range(len(args)), **{k: k for k in kwargs})
        items: list[Value] = []
        for name, marker in zip(fields, markers, strict=True):
            if name in kwargs:
                items.append(kwargs[name])
            elif type(marker) is int and positions.get(marker) is not None and places[name].value == marker:
                items.append(positions[marker])
            else:
                items.append(self.cap.world.wrap_static(marker))
        return TupleValue(items, None, cls)


def is_data_descriptor(raw: Any) -> bool:
    """Whether a class attribute takes precedence over the entry of an instance's dict."""
    kind = type(raw)
    return hasattr(kind, "__set__") or hasattr(kind, "__delete__")
