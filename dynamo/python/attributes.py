"""Attribute access by Python's rules: instances, classes, modules, super(), slots and properties.

Order of a read through an instance: data descriptor of the class, the instance's dict (pending writes first), other
class attributes, `__getattr__`. Part of Capture.
"""

from __future__ import annotations

import enum
import functools
import sys
import types
from abc import ABCMeta
from typing import TYPE_CHECKING, Any, Final

from dynamo import _native
from dynamo.guards.sources import (
    AttrSource,
    ConstSource,
    DictAttrSource,
    DictItemSource,
    Source,
    TypeAttrSource,
    module_of,
    type_attribute,
)
from dynamo.policy import callees
from dynamo.report import causes
from dynamo.report.errors import Raised, Unsupported
from dynamo.values.base import Lazy, Value, type_name
from dynamo.values.builtin_subclasses import CONTAINER_BASES, ContainerObject
from dynamo.values.constant import Constant
from dynamo.values.functions import BoundMethod
from dynamo.values.mappings import DictValue
from dynamo.values.objects import (
    DELETED,
    BuiltinMethod,
    ClassValue,
    ExceptionValue,
    PythonModule,
    SuperValue,
    UserObject,
    bind_descriptor,
)
from dynamo.values.sequences import TupleValue
from eager import Tensor
from eager.nn import Module
from eager.nn._base import buffer_registration_hooks

if TYPE_CHECKING:
    from dynamo.values.writer import Writer
    from dynamo.world.side_effects import Effects

_ABSENT: Final = object()
_OWN_GETATTRIBUTE: Final = frozenset(
    {object.__getattribute__, BaseException.__getattribute__, type.__getattribute__, types.ModuleType.__getattribute__,
     types.SimpleNamespace.__getattribute__,
     *(base.__getattribute__ for base in CONTAINER_BASES)}
)  # fmt: skip
# Callables whose `__get__` gives a method, as a function's does.
_BOUND_AS_METHODS: Final = (types.FunctionType, functools._lru_cache_wrapper, _native.CompiledFunction)
_METHOD_DESCRIPTORS: Final = (
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.ClassMethodDescriptorType,
)
_HIDDEN: Final = frozenset({"__dict__", "__weakref__"})


class InstanceDict(DictValue):
    """The __dict__ of an object, existing or new: always what its attributes are now.

    One entry is looked up as an attribute is, so that only its presence is guarded; to see all of them guards all names.
    Entries can be stored; other changes end the graph.
    """

    def __init__(self, cap: Any, obj: Value) -> None:
        self._cap = cap
        self.obj = obj
        super().__init__(dict, AttrSource(obj.source, "__dict__") if obj.source is not None else None)

    @property
    def entries(self) -> dict[Any, tuple[Value, Value]]:  # type: ignore[override]
        cap = self._cap
        found: dict[Any, tuple[Value, Value]] = {}
        for name, value in cap.instance_entries(self.obj).items():
            key = Constant(name)
            found[cap.hash_key(key)] = (key, value)
        return found

    @entries.setter
    def entries(self, value: Any) -> None:
        assert not value, "an object's __dict__ is made of its attributes"

    def get(self, cap: Any, key: Value) -> Value | None:
        name = cap.realize(key)
        if isinstance(name, Constant) and type(name.value) is str and not _is_slot(self.obj.python_type(), name.value):
            return cap.instance_entry(self.obj, name.value)  # type: ignore[no-any-return]
        return super().get(cap, key)

    def set(self, cap: Any, key: Value, value: Value) -> None:
        name = cap.realize(key)
        plain = isinstance(name, Constant) and type(name.value) is str and not issubclass(self.obj.python_type(), Module)
        if not plain or is_data_descriptor(cap.class_lookup(self.obj.python_type(), name.value)):
            self.changed(cap)
        cap.effects.set_attribute(cap, self.obj, name.value, value)

    def changed(self, cap: Any) -> None:
        raise Unsupported(causes.MUTATION, "a write into an object's __dict__")

    def reconstruct(self, cg: Writer) -> str:
        if self.source is not None:
            return cg.source(self.source)
        return f"{cg.value(self.obj)}.__dict__"


class AttributeAccess:
    """Part of Capture: attribute reads and writes."""

    effects: Effects
    by_id: dict[int, Value]
    namespaces: dict[int, InstanceDict]
    keep: list[Any]
    overlays: dict[tuple[int, str], Value]  # in place of entries of modules' registries, for the time of a functional_call

    if TYPE_CHECKING:

        def lazy(self, real: Any, source: Source) -> Value: ...
        def guard(self, kind: str, sources: Any, *operands: Any) -> None: ...
        def wrap(self, real: Any, source: Source) -> Value: ...
        def wrap_static(self, real: Any, label: str = "") -> Value: ...
        def wrap_new(self, real: Any) -> Value: ...
        def realize(self, value: Value) -> Value: ...
        def call(self, value: Value, args: list[Value], kwargs: dict[str, Value], chain: bool = False) -> Value: ...
        def raise_(self, cls: type, *args: Any) -> Any: ...
        def host(self, fn: Any, *args: Any) -> Any: ...
        def mutating(self, value: Value) -> None: ...
        def is_instance_of(self, value: Value, cls: type) -> bool: ...
        def hash_key(self, value: Value) -> Any: ...
        def has_hooks(self, registry: Any) -> bool: ...

    # -- classes -----------------------------------------------------------------------------------------------
    def class_has(self, cls: type, name: str) -> bool:
        """Whether instances of cls have the special method `name`. Guarded, as every look-up in a class is."""
        return self.class_lookup(cls, name) is not _ABSENT

    def class_lookup(self, cls: type, name: str) -> Any:
        """The raw class attribute, its presence or absence guarded; _ABSENT if there is none."""
        raw = type_attribute(cls, name, _ABSENT)
        if module_of(cls) in ("builtins", "enum"):
            return raw
        held = ConstSource(cls, cls.__name__)
        if raw is _ABSENT:
            self.guard("type_absent", held, name)
        else:
            self.guard("is", TypeAttrSource(held, name), raw)
        return raw

    def wrap_class_attribute(self, cls: type, name: str, raw: Any) -> Value:
        """The value of a raw class attribute (its identity is guarded by class_lookup)."""
        return self.wrap(raw, ConstSource(raw, f"{cls.__name__}.{name}"))

    def special_method(self, obj: Value, name: str) -> Value:
        """type(obj).name bound to obj: how Python finds special methods."""
        cls = obj.python_type()
        raw = self.class_lookup(cls, name)
        if raw is _ABSENT:
            return self.raise_(AttributeError, f"'{type_name(cls)}' object has no attribute '{name}'")  # type: ignore[no-any-return]
        if raw is None:
            raise Unsupported(causes.OPAQUE_OBJECT, f"{name} of {obj.describe()}, which its class has set to None")
        return self.bind_class_attribute(obj, cls, name, raw)

    # -- reading an instance -----------------------------------------------------------------------------------
    def instance_attribute(self, obj: Value, cls: type, name: str) -> Value:
        """obj.name for an instance of a Python class."""
        getattribute = self.class_lookup(cls, "__getattribute__")
        if getattribute not in _OWN_GETATTRIBUTE and not isinstance(getattribute, types.FunctionType):
            raise Unsupported(causes.ATTRIBUTE, f"{obj.describe()}.{name} (its class has a __getattribute__ of its own)")
        try:
            if getattribute not in _OWN_GETATTRIBUTE:
                found = self.wrap_class_attribute(cls, "__getattribute__", getattribute)
                return self.call(found, [obj, Constant(name)], {})
            return self.generic_attribute(obj, cls, name)
        except Raised as error:
            fallback = self.class_lookup(cls, "__getattr__")
            if fallback is _ABSENT or not self.is_instance_of(error.value, AttributeError):
                raise
            return self._getattr_hook(obj, cls, name, fallback)

    def _getattr_hook(self, obj: Value, cls: type, name: str, fallback: Any) -> Value:
        if isinstance(obj, UserObject) and isinstance(obj.real, Module) and fallback is Module.__getattr__:
            found = self._registered(obj, name)
            if found is not None:
                return found
            self.raise_(AttributeError, f"'{type_name(cls)}' object has no attribute '{name}'")
        hook = self.wrap_class_attribute(cls, "__getattr__", fallback)
        return self.call(hook, [obj, Constant(name)], {})

    def generic_attribute(self, obj: Value, cls: type, name: str) -> Value:
        """What object.__getattribute__ gives."""
        if name == "__class__" and type_attribute(cls, name) is object.__dict__[name]:
            return self.wrap_class(obj, cls)
        raw = self.class_lookup(cls, name) if name not in _HIDDEN else _ABSENT
        if name == "__weakref__" and type_attribute(cls, name, None) is not None:
            raise Unsupported(causes.ATTRIBUTE, f"{obj.describe()}.__weakref__")
        if raw is not _ABSENT and is_data_descriptor(raw) and hasattr(type(raw), "__get__"):
            return self._read_descriptor(obj, cls, name, raw)
        found = self.instance_entry(obj, name)
        if found is not None:
            return found
        if raw is not _ABSENT:
            return self.bind_class_attribute(obj, cls, name, raw)
        if name == "__dict__":
            return self.instance_dict(obj)
        if isinstance(obj, ExceptionValue) and obj.source is None and hasattr(BaseException, name):
            raise Unsupported(causes.EXCEPTION, f"{obj.describe()}.{name}")
        return self.raise_(AttributeError, f"'{type_name(cls)}' object has no attribute '{name}'")  # type: ignore[no-any-return]

    def wrap_class(self, obj: Value, cls: type) -> Value:
        """type(obj)"""
        return self.wrap(cls, ConstSource(cls, cls.__name__))

    def instance_dict(self, obj: Value) -> Value:
        """obj.__dict__: the same value each time."""
        real = getattr(obj, "real", None)
        if not isinstance(obj, UserObject) and (real is None or obj.source is None):
            raise Unsupported(causes.ATTRIBUTE, f"{obj.describe()}.__dict__")
        if not obj.python_type().__dictoffset__ if real is None else namespace_of(real) is None:
            return self.raise_(AttributeError, f"'{obj.python_type().__name__}' object has no attribute '__dict__'")  # type: ignore[no-any-return]
        if obj.source is not None:
            self.meet_namespace(obj)
        known = self.namespaces.get(id(obj))
        if known is None:
            known = self.namespaces[id(obj)] = InstanceDict(self, obj)
        return known

    def meet_namespace(self, obj: Value) -> dict[str, Any] | None:
        """The dict of an existing object's attributes, which are about to be read or written; None if it has none.

        From here on the dict itself, wherever the program holds it, is known as the object's. Ends the graph where it is
        already known as a dict like any other.
        """
        namespace = namespace_of(obj.real)  # type: ignore[attr-defined]
        if namespace is None or isinstance(obj, PythonModule):
            return namespace
        known = self.by_id.get(id(namespace))
        if known is None:
            known = self.by_id[id(namespace)] = self.namespaces.setdefault(id(obj), InstanceDict(self, obj))
            self.keep.append(namespace)
        if isinstance(known, DictValue) and not isinstance(known, InstanceDict):
            raise Unsupported(causes.ATTRIBUTE, f"an attribute of {obj.describe()}, whose __dict__ is in use beside it")
        return namespace

    def instance_entries(self, obj: Value) -> dict[str, Value]:
        """All entries of obj.__dict__, pending writes included."""
        found: dict[str, Value] = {}
        real = getattr(obj, "real", None)
        if real is not None and obj.source is not None:
            namespace = self.meet_namespace(obj) or {}
            self.guard("dict_keys", AttrSource(obj.source, "__dict__"), tuple(namespace))
            found = {k: self.lazy(v, DictAttrSource(obj.source, k)) for k, v in namespace.items()}
        for key, pending in self.effects.attributes_of(obj).items():
            if _is_slot(obj.python_type(), key):
                continue
            if pending is DELETED:
                found.pop(key, None)
            else:
                found[key] = pending
        return found

    def instance_entry(self, obj: Value, name: str) -> Value | None:
        """The entry of the instance's dict, pending writes first; None if there is none."""
        pending = self.effects.attributes_of(obj).get(name)
        if pending is DELETED:
            return None
        if pending is not None:
            return pending
        real = getattr(obj, "real", None)
        if real is None or obj.source is None or isinstance(obj, Lazy):
            return None
        namespace = self.meet_namespace(obj)
        if namespace is None:
            return None
        if name in namespace:
            return self.wrap(namespace[name], DictAttrSource(obj.source, name))
        self.guard("dict_absent", AttrSource(obj.source, "__dict__"), name)
        return None

    def _registered(self, obj: UserObject, name: str) -> Value | None:
        """A parameter, buffer or submodule."""
        for registry in ("_parameters", "_buffers", "_modules"):
            entries = obj.real.__dict__.get(registry)
            if entries is None:
                continue
            assert obj.source is not None
            source = DictAttrSource(obj.source, registry)
            self.guard("is", source, entries)
            overlaid = self.overlays.get((id(entries), name))
            if overlaid is not None:
                return self.realize(overlaid)
            written = self._written_registry(entries)
            if written is not None:
                found = written.entries.get(self.hash_key(Constant(name)))
                if found is not None:
                    return self.realize(found[1])
                continue
            held = ConstSource(entries, source.name)
            if name in entries:
                return self.wrap(entries[name], DictItemSource(ConstSource(entries, obj.source.name), name))
            self.guard("dict_absent", held, name)
        return None

    def _written_registry(self, entries: Any) -> DictValue | None:
        """A module's registry as the captured program has changed it, if it has."""
        known = self.by_id.get(id(entries))
        return known if isinstance(known, DictValue) and known.mutated else None

    # -- descriptors -------------------------------------------------------------------------------------------
    def _read_descriptor(self, obj: Value, cls: type, name: str, raw: Any) -> Value:
        if isinstance(raw, property):
            if raw.fget is None:
                return self.raise_(AttributeError, f"property '{name}' of '{cls.__qualname__}' object has no getter")  # type: ignore[no-any-return]
            return self.call(self.wrap(raw.fget, ConstSource(raw.fget, f"{cls.__name__}.{name}")), [obj], {})
        if isinstance(raw, types.MemberDescriptorType):
            return self._read_slot(obj, name, raw)
        if type(raw).__name__ == "_tuplegetter" and isinstance(obj, ContainerObject):
            return obj.contents(self).items[raw.__reduce__()[1][0]]  # type: ignore[arg-type,union-attr]
        if isinstance(raw, types.GetSetDescriptorType) or type(raw).__name__ == "_tuplegetter":
            return self._read_c_attribute(obj, name)
        if isinstance(type_attribute(type(raw), "__get__", None), types.FunctionType):
            return self._call_get(obj, cls, name, raw)
        raise Unsupported(causes.ATTRIBUTE, f"{obj.describe()}.{name} ({type(raw).__name__})")

    def _call_get(self, obj: Value, cls: type, name: str, raw: Any) -> Value:
        descriptor = self.wrap_class_attribute(cls, name, raw)
        return self.call(self.special_method(descriptor, "__get__"), [obj, self.wrap_class(obj, cls)], {})

    def _read_slot(self, obj: Value, name: str, raw: Any) -> Value:
        pending = self.effects.attributes_of(obj).get(name)
        if pending is not None and pending is not DELETED:
            return pending
        if isinstance(obj, ExceptionValue) and obj.source is None:
            return self._exception_slot(obj, raw)
        real = getattr(obj, "real", None)
        if pending is None and real is not None and obj.source is not None:
            try:
                value = raw.__get__(real)
            except AttributeError:
                self.guard("no_attr", obj.source, name)
            else:
                return self.wrap(value, AttrSource(obj.source, name))
        return self.host(raw.__get__, object.__new__(obj.python_type()))  # type: ignore[no-any-return]

    def _exception_slot(self, obj: ExceptionValue, raw: Any) -> Value:
        """An attribute that the C base of a new exception keeps: what its __init__ makes of the args."""
        made = self.host(raw.__objclass__, *(self.realize(a).as_constant() for a in obj.args)) if obj.initialized else None
        if made is None:
            raise Unsupported(causes.EXCEPTION, f"{obj.describe()}.{raw.__name__}")
        return self.wrap_new(self.host(raw.__get__, made))

    def _read_c_attribute(self, obj: Value, name: str) -> Value:
        real = getattr(obj, "real", None)
        if isinstance(obj, ExceptionValue) and obj.source is None:
            pending = self.effects.attributes_of(obj).get(name)
            return pending if isinstance(pending, Value) else self._exception_slot(obj, type_attribute(obj.cls, name))
        if real is None or obj.source is None:
            raise Unsupported(causes.ATTRIBUTE, f"{obj.describe()}.{name}")
        return self.wrap(self.host(getattr, real, name), AttrSource(obj.source, name))

    def bind_class_attribute(self, obj: Value, cls: type, name: str, raw: Any) -> Value:
        """A class attribute read through an instance, by the kind of attribute."""
        if isinstance(raw, staticmethod):
            return self.wrap(raw.__func__, ConstSource(raw.__func__, f"{cls.__name__}.{name}"))
        if isinstance(raw, classmethod):
            return self._class_method(self.wrap_class(obj, cls), cls, name, raw.__func__)
        if isinstance(raw, functools.cached_property):
            return self._cached_property(obj, cls, name, raw)
        if isinstance(raw, property):
            return self._read_descriptor(obj, cls, name, raw)
        if isinstance(raw, types.FunctionType):
            func = self.wrap_class_attribute(cls, name, raw)
            return BoundMethod(obj, func)
        if isinstance(raw, types.ClassMethodDescriptorType):
            return self.wrap_static(raw.__get__(None, obj.python_type()))
        if isinstance(raw, _METHOD_DESCRIPTORS):
            return bind_descriptor(self, self.wrap_class_attribute(cls, name, raw), raw, obj, cls)  # type: ignore[arg-type]
        if hasattr(type(raw), "__get__"):
            if isinstance(type_attribute(type(raw), "__get__", None), types.FunctionType):
                return self._call_get(obj, cls, name, raw)
            if type(raw).__name__ not in ("builtin_function_or_method", "type", "Op") and not isinstance(raw, type):
                raise Unsupported(causes.ATTRIBUTE, f"{obj.describe()}.{name} ({type(raw).__name__})")
        return self.wrap_class_attribute(cls, name, raw)

    def _cached_property(self, obj: Value, cls: type, name: str, raw: Any) -> Value:
        func = self.wrap(raw.func, ConstSource(raw.func, f"{cls.__name__}.{name}"))
        value = self.call(func, [obj], {})
        self.effects.set_attribute(self, obj, raw.attrname, value)
        return value

    # -- writing an instance -----------------------------------------------------------------------------------
    def set_instance_attribute(self, obj: UserObject, name: str, value: Value) -> None:
        """obj.name = value by the class's own __setattr__."""
        setter = self.class_lookup(obj.cls, "__setattr__")
        if isinstance(obj.real, Module) and setter is Module.__setattr__:
            self._set_module_attribute(obj, name, value)
        elif isinstance(setter, types.FunctionType):
            hook = self.wrap_class_attribute(obj.cls, "__setattr__", setter)
            self.call(hook, [obj, Constant(name), value], {})
        else:
            self.generic_set(obj, name, value)

    def generic_set(self, obj: Value, name: str, value: Value) -> None:
        """What object.__setattr__ does."""
        cls = obj.python_type()
        raw = self.class_lookup(cls, name)
        if name in ("__class__", "__dict__"):
            raise Unsupported(causes.ATTRIBUTE, f"{obj.describe()}.{name} = ...")
        if isinstance(raw, property):
            if raw.fset is None:
                self.raise_(AttributeError, f"property '{name}' of '{cls.__qualname__}' object has no setter")
            self.call(self.wrap(raw.fset, ConstSource(raw.fset, f"{cls.__name__}.{name}")), [obj, value], {})
            return
        if raw is not _ABSENT and not isinstance(raw, types.MemberDescriptorType) and is_data_descriptor(raw):
            if not isinstance(type_attribute(type(raw), "__set__", None), types.FunctionType):
                raise Unsupported(causes.ATTRIBUTE, f"{obj.describe()}.{name} = ... ({type(raw).__name__})")
            descriptor = self.wrap_class_attribute(cls, name, raw)
            self.call(self.special_method(descriptor, "__set__"), [obj, value], {})
            return
        if raw is _ABSENT and not cls.__dictoffset__:
            self.raise_(AttributeError, f"'{type_name(cls)}' object has no attribute '{name}'")
        self.effects.set_attribute(self, obj, name, value)

    def _set_module_attribute(self, obj: UserObject, name: str, value: Value) -> None:
        value = self.realize(value)
        registries = [obj.real.__dict__.get(r, {}) for r in ("_parameters", "_modules", "_buffers")]
        homes = [r for r in registries if self._has_entry(r, name)]
        if len(homes) == 1 and homes[0] is registries[2] and self._set_buffer(obj, homes[0], name, value):
            return
        is_module = isinstance(value, UserObject) and issubclass(value.cls, Module)
        from_class = self.class_lookup(obj.cls, name)
        if homes or is_module or value.python_type().__name__ in ("Parameter", "Buffer") or is_data_descriptor(from_class):
            raise Unsupported(causes.MUTATION, f"{obj.describe()}.{name} = ... (a registered part of a module)")
        self.effects.set_attribute(self, obj, name, value)

    def _has_entry(self, entries: Any, name: str) -> bool:
        """Whether a module's registry has an entry `name`, now or at the beginning."""
        written = self._written_registry(entries)
        return name in entries or (written is not None and self.hash_key(Constant(name)) in written.entries)

    def _set_buffer(self, obj: UserObject, entries: Any, name: str, value: Value) -> bool:
        """module.name = value where a buffer is replaced: an entry of the registry `entries`. False if another rule applies."""
        allowed = value.python_type() is Tensor or (isinstance(value, Constant) and value.value is None)
        if not allowed or self.has_hooks(buffer_registration_hooks):
            return False
        buffers, key = self.wrap(entries, DictAttrSource(obj.source, "_buffers")), Constant(name)  # type: ignore[arg-type]
        if not isinstance(buffers, DictValue) or buffers.get(self, key) is None:  # type: ignore[arg-type]
            return False
        buffers.set(self, key, value)  # type: ignore[arg-type]
        return True

    def delete_instance_attribute(self, obj: UserObject, name: str) -> None:
        """del obj.name"""
        deleter = self.class_lookup(obj.cls, "__delattr__")
        if isinstance(obj.real, Module):
            raise Unsupported(causes.MUTATION, f"del {obj.describe()}.{name}")
        if isinstance(deleter, types.FunctionType):
            hook = self.wrap_class_attribute(obj.cls, "__delattr__", deleter)
            self.call(hook, [obj, Constant(name)], {})
            return
        self.generic_delete(obj, name)

    def generic_delete(self, obj: UserObject, name: str) -> None:
        """What object.__delattr__ does."""
        raw = self.class_lookup(obj.cls, name)
        if isinstance(raw, property):
            if raw.fdel is None:
                self.raise_(AttributeError, f"property '{name}' of '{obj.cls.__qualname__}' object has no deleter")
            self.call(self.wrap(raw.fdel, ConstSource(raw.fdel, f"{obj.cls.__name__}.{name}")), [obj], {})
            return
        is_slot = isinstance(raw, types.MemberDescriptorType)
        if not is_slot and raw is not _ABSENT and is_data_descriptor(raw):
            raise Unsupported(causes.ATTRIBUTE, f"del {obj.describe()}.{name} ({type(raw).__name__})")
        present = self._read_or_none(obj, name, raw if is_slot else None)
        if present is None:
            self.raise_(AttributeError, name if is_slot else f"'{type_name(obj.cls)}' object has no attribute '{name}'")
        self.effects.delete_attribute(self, obj, name)

    def _read_or_none(self, obj: UserObject, name: str, slot: Any) -> Value | None:
        if slot is None:
            return self.instance_entry(obj, name)
        try:
            return self._read_slot(obj, name, slot)
        except Raised:
            return None

    # -- classes, modules, super -------------------------------------------------------------------------------
    def class_attribute(self, value: ClassValue, name: str) -> Value:
        """cls.name"""
        cls, meta = value.cls, type(value.cls)
        if name in ("__name__", "__qualname__", "__module__", "__doc__"):
            return self.wrap_static(getattr(cls, name))
        if name == "__class__":
            return self.wrap_static(meta)
        if name in ("__mro__", "__bases__", "__base__", "__dict__", "__annotations__"):
            if name in ("__mro__", "__bases__"):
                return TupleValue([self.wrap_static(c) for c in getattr(cls, name)])
            raise Unsupported(causes.ATTRIBUTE, f"{value.describe()}.{name}")
        if name == "__subclasses__" and meta in (type, ABCMeta):
            return self.wrap_static(type.__subclasses__.__get__(cls))
        raw = self.class_lookup(cls, name)
        of_type = meta is type and is_data_descriptor(vars(type).get(name))
        if of_type and (raw is not _ABSENT or hasattr(cls, name)):  # it goes before what the class has
            raise Unsupported(causes.ATTRIBUTE, f"{value.describe()}.{name}")
        from_meta = self.class_lookup(meta, name) if meta is not type else _ABSENT
        if meta is not type and self.class_lookup(meta, "__getattribute__") is not type.__getattribute__:
            raise Unsupported(causes.ATTRIBUTE, f"{value.describe()}.{name} (its metaclass has __getattribute__)")
        overrides = is_data_descriptor(from_meta) and hasattr(type(from_meta), "__get__")
        if from_meta is not _ABSENT and (raw is _ABSENT or overrides):
            return self.bind_class_attribute(value, meta, name, from_meta)
        if raw is _ABSENT:
            return self._missing_class_attribute(value, name)
        return self._class_entry(value, name, raw)

    def _class_method(self, owner: Value, cls: type, name: str, func: Any) -> Value:
        """What a classmethod of `func` gives for the class `owner`. Before 3.13 it asks `func` in turn, where that is a
        descriptor: another classmethod, a property, a bound method, which need not give a method of the class."""
        asked = sys.version_info < (3, 13) and hasattr(type(func), "__get__") and not isinstance(func, _BOUND_AS_METHODS)
        if asked or not callable(func):
            raise Unsupported(causes.ATTRIBUTE, f"{cls.__name__}.{name} (a classmethod of a {type(func).__name__})")
        return BoundMethod(owner, self.wrap(func, ConstSource(func, f"{cls.__name__}.{name}")))

    def _class_entry(self, value: ClassValue, name: str, raw: Any) -> Value:
        cls = value.cls
        if isinstance(raw, staticmethod):
            return self.wrap(raw.__func__, ConstSource(raw.__func__, f"{cls.__name__}.{name}"))
        if isinstance(raw, classmethod):
            return self._class_method(value, cls, name, raw.__func__)
        if isinstance(raw, types.ClassMethodDescriptorType):
            return self.wrap_static(getattr(cls, name))
        if type(raw) is enum.property:
            return self.wrap_static(self.host(getattr, cls, name))
        if isinstance(raw, types.DynamicClassAttribute):
            raise Unsupported(causes.ATTRIBUTE, f"{value.describe()}.{name} ({type(raw).__name__})")
        if hasattr(type(raw), "__get__") and isinstance(type_attribute(type(raw), "__get__", None), types.FunctionType):
            descriptor = self.wrap_class_attribute(cls, name, raw)
            return self.call(self.special_method(descriptor, "__get__"), [Constant(None), value], {})
        return self.wrap_class_attribute(cls, name, raw)

    def _missing_class_attribute(self, value: ClassValue, name: str) -> Value:
        cls = value.cls
        if hasattr(cls, name):  # of type itself: cls.mro, cls.__call__
            return BuiltinMethod(value, name)
        if isinstance(self.class_lookup(type(cls), "__getattr__"), types.FunctionType):
            raise Unsupported(causes.ATTRIBUTE, f"{value.describe()}.{name} (its metaclass has __getattr__)")
        return self.raise_(AttributeError, f"type object '{cls.__name__}' has no attribute '{name}'")  # type: ignore[no-any-return]

    def module_attribute(self, value: PythonModule, name: str) -> Value:
        """module.name"""
        module, cls = value.module, type(value.module)
        raw = self._module_class_attribute(value, cls, name) if cls is not types.ModuleType else _ABSENT
        if raw is not _ABSENT and is_data_descriptor(raw):
            return self._read_descriptor(value, cls, name, raw)
        namespace = module.__dict__
        pending = self.effects.global_write(namespace, name)
        if pending is not None and pending is not DELETED:
            return pending
        held = ConstSource(namespace, value.name)
        if name not in namespace and raw is not _ABSENT:
            self.guard("dict_absent", held, name)
            return self.bind_class_attribute(value, cls, name, raw)
        if name not in namespace:
            return self._missing_module_attribute(module, held, name)
        return self.wrap(namespace[name], DictItemSource(held, name))

    def _module_class_attribute(self, value: PythonModule, cls: type, name: str) -> Any:
        """What a class of modules adds to types.ModuleType under `name`; _ABSENT if nothing."""
        if self.class_lookup(cls, "__getattribute__") not in _OWN_GETATTRIBUTE:
            raise Unsupported(causes.ATTRIBUTE, f"{value.describe()}.{name} (its class has a __getattribute__ of its own)")
        raw = self.class_lookup(cls, name)
        if raw is type_attribute(types.ModuleType, name, _ABSENT):
            return _ABSENT
        if isinstance(raw, types.MemberDescriptorType | types.GetSetDescriptorType):
            raise Unsupported(causes.ATTRIBUTE, f"{value.describe()}.{name} ({type(raw).__name__})")
        return raw

    def _missing_module_attribute(self, module: types.ModuleType, held: Source, name: str) -> Value:
        hook = module.__dict__.get("__getattr__", _ABSENT)
        if type(module) is types.ModuleType and isinstance(hook, types.FunctionType) and not callees.is_own(hook.__code__):
            self.guard("dict_absent", held, name)
            return self.call(self.wrap(hook, DictItemSource(held, "__getattr__")), [Constant(name)], {})
        try:
            found = getattr(module, name)
        except AttributeError as error:
            self.guard("dict_absent", held, name)
            return self.raise_(AttributeError, *error.args)  # type: ignore[no-any-return]
        if name in module.__dict__:
            return self.wrap(found, DictItemSource(held, name))
        self.guard("dict_absent", held, name)  # a module that makes its attributes when they are read
        return self.wrap_static(found, name)

    def super_attribute(self, value: SuperValue, name: str) -> Value:
        """super(cls, obj).name"""
        obj = value.obj
        start = obj.cls if isinstance(obj, ClassValue) and issubclass(obj.cls, value.cls) else obj.python_type()
        mro = start.__mro__
        if value.cls not in mro:
            raise Unsupported(causes.ATTRIBUTE, f"super({value.cls.__name__}, ...).{name} of {obj.describe()}")
        self.guard("is", AttrSource(ConstSource(start, start.__name__), "__mro__"), mro)
        for base in mro[mro.index(value.cls) + 1 :]:
            self.class_lookup(base, name)
            if name in base.__dict__:
                raw = base.__dict__[name]
                if isinstance(obj, ClassValue) and start is obj.cls and not isinstance(raw, classmethod):
                    return self._class_entry(ClassValue(base, obj.source), name, raw)
                if isinstance(raw, classmethod):
                    owner = obj if isinstance(obj, ClassValue) else self.wrap_static(start)
                    return self._class_method(owner, base, name, raw.__func__)
                if is_data_descriptor(raw) and not isinstance(raw, property):
                    raise Unsupported(causes.ATTRIBUTE, f"super().{name}")
                return self.bind_class_attribute(obj, base, name, raw)
        return self.raise_(AttributeError, f"'super' object has no attribute '{name}'")  # type: ignore[no-any-return]

    # -- containers and constants ------------------------------------------------------------------------------
    def builtin_method(self, owner: Value, name: str) -> Value:
        """owner.name for a container: a method, or AttributeError."""
        kind = owner.python_type()
        if name == "__class__":
            return self.wrap_static(kind)
        if type_attribute(kind, name, _ABSENT) is _ABSENT:
            return self.raise_(AttributeError, f"'{type_name(kind)}' object has no attribute '{name}'")  # type: ignore[no-any-return]
        if name in ("__doc__", "__module__"):
            return self.wrap_static(getattr(kind, name))
        if not callable(getattr(kind, name)):
            raise Unsupported(causes.ATTRIBUTE, f"{owner.describe()}.{name}")
        return BuiltinMethod(owner, name)

    def wrap_constant_attribute(self, owner: Constant, name: str) -> Value:
        """constant.name"""
        real = owner.value
        if name == "__class__":
            return self.wrap_static(type(real))
        if not hasattr(real, name):
            return self.raise_(AttributeError, f"'{type_name(type(real))}' object has no attribute '{name}'")  # type: ignore[no-any-return]
        found = getattr(real, name)
        if callable(found) and not isinstance(found, type):
            return BuiltinMethod(owner, name)
        return self.wrap_static(found)

    def has_attribute(self, value: Value, name: str) -> bool:
        """hasattr(value, name)"""
        try:
            self.realize(value).getattr(self, name)  # type: ignore[arg-type]
        except Raised as error:
            if self.is_instance_of(error.value, AttributeError):
                return False
            raise
        return True


def namespace_of(real: Any) -> dict[str, Any] | None:
    """The instance dict, or None when instances have none."""
    try:
        found = object.__getattribute__(real, "__dict__")
    except AttributeError:
        return None
    return found if isinstance(found, dict) else None


def namespace_held(real: Any) -> dict[str, Any] | None:
    """The same, but a partial is not given one: it unites with another only if that has none."""
    base: Any = partial_base(type(real))
    return namespace_of(real) if base is None else base.__reduce__(real)[2][3]


def partial_base(kind: type) -> type | None:
    """functools.partial, or that of another copy of the module, if kind derives from one."""
    mro = type.__dict__["__mro__"].__get__(kind)
    return next((base for base in mro if module_of(base) == "functools" and type_name(base) == "partial"), None)


def _is_slot(cls: type, name: str) -> bool:
    """Whether instances of cls keep `name` beside their __dict__."""
    return isinstance(type_attribute(cls, name, None), types.MemberDescriptorType)


def is_data_descriptor(raw: Any) -> bool:
    kind = type(raw)
    return hasattr(kind, "__set__") or hasattr(kind, "__delete__")

