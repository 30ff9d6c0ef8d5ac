"""Attributes of instances by Python's rules: instances of user classes, slots, properties, `__dict__`, hooks of modules.

A read through an instance looks in this order: data descriptor of the class, the instance's dict (pending writes first), other
attributes of the class, `__getattr__`. `classes` has the attributes of classes, modules and super().
"""

from __future__ import annotations

import functools
import types
from typing import Any, Final

from dynamo.guards.sources import (
    AttrSource,
    ConstSource,
    DictAttrSource,
    DictItemSource,
    module_of,
    type_attribute,
)
from dynamo.python.classes import ABSENT, OWN_GETATTRIBUTE, is_data_descriptor
from dynamo.report import causes
from dynamo.report.errors import Unsupported
from dynamo.values.base import NONE, TRUE, Constant, Lazy, type_name
from dynamo.values.builtin_subclasses import ContainerObject
from dynamo.values.functions import BoundMethod
from dynamo.values.mappings import DictValue
from dynamo.values.objects import (
    DELETED,
    BuiltinMethod,
    ExceptionValue,
    PythonModule,
    UserObject,
    bind_descriptor,
)
from dynamo.values.protocols import Machine, Raised, Value
from dynamo.values.sequences import TupleValue
from dynamo.values.writer import Writer
from eager import Tensor
from eager.nn import Module
from eager.nn._base import buffer_registration_hooks
from eager.nn._hooks import GLOBAL_CALL_HOOKS

_METHOD_DESCRIPTORS: Final = (
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.ClassMethodDescriptorType,
)
_HIDDEN: Final = frozenset({"__dict__", "__weakref__"})


class InstanceDict(DictValue):
    """The __dict__ of an object, existing or new: always its current attributes.

    A look-up of one entry is a look-up of the attribute, so that only its presence is guarded; a read of the whole dict
    guards all names. Entries can be stored; other changes break the graph.
    """

    def __init__(self, cap: Any, obj: Value) -> None:
        self._cap = cap
        self.obj = obj
        super().__init__(dict, AttrSource(obj.source, "__dict__") if obj.source is not None else None)

    @property
    def entries(self) -> dict[Any, tuple[Value, Value]]:
        cap = self._cap
        found: dict[Any, tuple[Value, Value]] = {}
        for name, value in cap.attributes.instance_entries(self.obj).items():
            key = Constant(name)
            found[cap.operators.hash_key(key)] = (key, value)
        return found

    @entries.setter
    def entries(self, value: Any) -> None:
        assert not value, "an object's __dict__ is made of its attributes"

    def get(self, cap: Any, key: Value) -> Value | None:
        name = cap.realize(key)
        if isinstance(name, Constant) and type(name.value) is str and not _is_slot(self.obj.python_type(), name.value):
            return cap.attributes.instance_entry(self.obj, name.value)
        return super().get(cap, key)

    def set(self, cap: Any, key: Value, value: Value) -> None:
        name = cap.realize(key)
        plain = isinstance(name, Constant) and type(name.value) is str and not issubclass(self.obj.python_type(), Module)
        if not plain or is_data_descriptor(cap.classes.lookup(self.obj.python_type(), name.value)):
            self.changed(cap)
        cap.effects.set_attribute(self.obj, name.value, value)

    def changed(self, cap: Any) -> None:
        raise Unsupported(causes.MUTATION, "a write into an object's __dict__")

    def reconstruct(self, cg: Writer) -> str:
        if self.source is not None:
            return cg.source(self.source)
        return f"{cg.value(self.obj)}.__dict__"


class Attributes:
    """Reads, writes and deletes attributes of instances.

    namespaces: values of the `__dict__` of objects, by id of the object's value. overlays: values that replace entries
    of modules' registries during a functional_call, by id of the registry and name.
    """

    def __init__(self, cap: Machine) -> None:
        self.cap = cap
        self.namespaces: dict[int, InstanceDict] = {}
        self.overlays: dict[tuple[int, str], Value] = {}

    # -- classes -----------------------------------------------------------------------------------------------
    # -- reading an instance -----------------------------------------------------------------------------------
    def instance_attribute(self, obj: Value, cls: type, name: str) -> Value:
        """obj.name for an instance of a Python class."""
        getattribute = self.cap.classes.lookup(cls, "__getattribute__")
        if getattribute not in OWN_GETATTRIBUTE and not isinstance(getattribute, types.FunctionType):
            raise Unsupported(causes.ATTRIBUTE, f"{obj.describe()}.{name} (its class defines __getattribute__)")
        try:
            if getattribute not in OWN_GETATTRIBUTE:
                found = self.cap.classes.wrap(cls, "__getattribute__", getattribute)
                return self.cap.call(found, [obj, Constant(name)], {})
            return self.generic_attribute(obj, cls, name)
        except Raised as error:
            fallback = self.cap.classes.lookup(cls, "__getattr__")
            if fallback is ABSENT or not self.cap.exceptions.is_instance_of(error.value, AttributeError):
                raise
            return self._getattr_hook(obj, cls, name, fallback)

    def _getattr_hook(self, obj: Value, cls: type, name: str, fallback: Any) -> Value:
        if isinstance(obj, UserObject) and isinstance(obj.real, Module) and fallback is Module.__getattr__:
            found = self._registered(obj, name)
            if found is not None:
                return found
            self.cap.raise_(AttributeError, f"'{type_name(cls)}' object has no attribute '{name}'")
        hook = self.cap.classes.wrap(cls, "__getattr__", fallback)
        return self.cap.call(hook, [obj, Constant(name)], {})

    def generic_attribute(self, obj: Value, cls: type, name: str) -> Value:
        """object.__getattribute__(obj, name)"""
        if name == "__class__" and type_attribute(cls, name) is object.__dict__[name]:
            return self.cap.classes.of(obj, cls)
        raw = self.cap.classes.lookup(cls, name) if name not in _HIDDEN else ABSENT
        if name == "__weakref__" and type_attribute(cls, name, None) is not None:
            raise Unsupported(causes.ATTRIBUTE, f"{obj.describe()}.__weakref__")
        if raw is not ABSENT and is_data_descriptor(raw) and hasattr(type(raw), "__get__"):
            return self.read_descriptor(obj, cls, name, raw)
        found = self.instance_entry(obj, name)
        if found is not None:
            return found
        if raw is not ABSENT:
            return self.bind(obj, cls, name, raw)
        if name == "__dict__":
            return self.instance_dict(obj)
        if isinstance(obj, ExceptionValue) and obj.source is None and hasattr(BaseException, name):
            raise Unsupported(causes.EXCEPTION, f"{obj.describe()}.{name}")
        return self.cap.raise_(AttributeError, f"'{type_name(cls)}' object has no attribute '{name}'")

    def instance_dict(self, obj: Value) -> Value:
        """obj.__dict__: the same value each time."""
        real = getattr(obj, "real", None)
        if not isinstance(obj, UserObject) and (real is None or obj.source is None):
            raise Unsupported(causes.ATTRIBUTE, f"{obj.describe()}.__dict__")
        if not obj.python_type().__dictoffset__ if real is None else namespace_of(real) is None:
            return self.cap.raise_(AttributeError, f"'{obj.python_type().__name__}' object has no attribute '__dict__'")
        if obj.source is not None:
            self.meet_namespace(obj)
        known = self.namespaces.get(id(obj))
        if known is None:
            known = self.namespaces[id(obj)] = InstanceDict(self.cap, obj)
        return known

    def meet_namespace(self, obj: Value) -> dict[str, Any] | None:
        """The dict of an existing object's attributes, before a read or a write of it; None without a dict.

        From now on, the dict itself is known as this object's, wherever the program holds it. Breaks the graph if the
        program already uses it as an ordinary dict.
        """
        existing: Any = obj
        namespace = namespace_of(existing.real)
        if namespace is None or isinstance(obj, PythonModule):
            return namespace
        known = self.cap.world.by_id.get(id(namespace))
        if known is None:
            known = self.cap.world.by_id[id(namespace)] = self.namespaces.setdefault(id(obj), InstanceDict(self.cap, obj))
            self.cap.world.keep.append(namespace)
        if isinstance(known, DictValue) and not isinstance(known, InstanceDict):
            raise Unsupported(causes.ATTRIBUTE, f"an attribute of {obj.describe()}, whose __dict__ is in use as an ordinary dict")
        return namespace

    def instance_entries(self, obj: Value) -> dict[str, Value]:
        """All entries of obj.__dict__, pending writes included."""
        found: dict[str, Value] = {}
        real = getattr(obj, "real", None)
        if real is not None and obj.source is not None:
            namespace = self.meet_namespace(obj) or {}
            self.cap.world.guard("dict_keys", AttrSource(obj.source, "__dict__"), tuple(namespace))
            found = {k: self.cap.world.lazy(v, DictAttrSource(obj.source, k)) for k, v in namespace.items()}
        for key, pending in self.cap.effects.attributes_of(obj).items():
            if _is_slot(obj.python_type(), key):
                continue
            if pending is DELETED:
                found.pop(key, None)
            else:
                found[key] = pending
        return found

    def instance_entry(self, obj: Value, name: str) -> Value | None:
        """The entry of the instance's dict, pending writes first; None without an entry."""
        pending = self.cap.effects.attributes_of(obj).get(name)
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
            return self.cap.world.wrap(namespace[name], DictAttrSource(obj.source, name))
        self.cap.world.guard("dict_absent", AttrSource(obj.source, "__dict__"), name)
        return None

    def _registered(self, obj: UserObject, name: str) -> Value | None:
        """A parameter, buffer or submodule."""
        for registry in ("_parameters", "_buffers", "_modules"):
            entries = obj.real.__dict__.get(registry)
            if entries is None:
                continue
            assert obj.source is not None
            source = DictAttrSource(obj.source, registry)
            self.cap.world.guard("is", source, entries)
            overlaid = self.overlays.get((id(entries), name))
            if overlaid is not None:
                return self.cap.realize(overlaid)
            written = self._written_registry(entries)
            if written is not None:
                found = written.entries.get(self.cap.operators.hash_key(Constant(name)))
                if found is not None:
                    return self.cap.realize(found[1])
                continue
            held = ConstSource(entries, source.name)
            if name in entries:
                return self.cap.world.wrap(entries[name], DictItemSource(ConstSource(entries, obj.source.name), name))
            self.cap.world.guard("dict_absent", held, name)
        return None

    def _written_registry(self, entries: Any) -> DictValue | None:
        """A registry of a module as the captured program has changed it; None if it is unchanged."""
        known = self.cap.world.by_id.get(id(entries))
        return known if isinstance(known, DictValue) and known.mutated else None

    # -- descriptors -------------------------------------------------------------------------------------------
    def read_descriptor(self, obj: Value, cls: type, name: str, raw: Any) -> Value:
        if isinstance(raw, property):
            if raw.fget is None:
                return self.cap.raise_(AttributeError, f"property '{name}' of '{cls.__qualname__}' object has no getter")
            return self.cap.call(self.cap.world.wrap(raw.fget, ConstSource(raw.fget, f"{cls.__name__}.{name}")), [obj], {})
        if isinstance(raw, types.MemberDescriptorType):
            return self._read_slot(obj, name, raw)
        if type(raw).__name__ == "_tuplegetter" and isinstance(obj, ContainerObject):
            held = obj.contents(self.cap)
            assert isinstance(held, TupleValue)
            return held.items[raw.__reduce__()[1][0]]
        if isinstance(raw, types.GetSetDescriptorType) or type(raw).__name__ == "_tuplegetter":
            return self._read_c_attribute(obj, name)
        if isinstance(type_attribute(type(raw), "__get__", None), types.FunctionType):
            return self._call_get(obj, cls, name, raw)
        raise Unsupported(causes.ATTRIBUTE, f"{obj.describe()}.{name} ({type(raw).__name__})")

    def _call_get(self, obj: Value, cls: type, name: str, raw: Any) -> Value:
        descriptor = self.cap.classes.wrap(cls, name, raw)
        return self.cap.call(self.cap.classes.special_method(descriptor, "__get__"), [obj, self.cap.classes.of(obj, cls)], {})

    def _read_slot(self, obj: Value, name: str, raw: Any) -> Value:
        pending = self.cap.effects.attributes_of(obj).get(name)
        if pending is not None and pending is not DELETED:
            return pending
        if isinstance(obj, ExceptionValue) and obj.source is None:
            return self._exception_slot(obj, raw)
        real = getattr(obj, "real", None)
        if pending is None and real is not None and obj.source is not None:
            try:
                value = raw.__get__(real)
            except AttributeError:
                self.cap.world.guard("no_attr", obj.source, name)
            else:
                return self.cap.world.wrap(value, AttrSource(obj.source, name))
        return self.cap.host(raw.__get__, object.__new__(obj.python_type()))

    def _exception_slot(self, obj: ExceptionValue, raw: Any) -> Value:
        """An attribute that the C base of a new exception computes from the args of its __init__."""
        made = self.cap.host(raw.__objclass__, *(self.cap.realize(a).as_constant() for a in obj.args)) if obj.initialized else None
        if made is None:
            raise Unsupported(causes.EXCEPTION, f"{obj.describe()}.{raw.__name__}")
        return self.cap.world.wrap_new(self.cap.host(raw.__get__, made))

    def _read_c_attribute(self, obj: Value, name: str) -> Value:
        real = getattr(obj, "real", None)
        if isinstance(obj, ExceptionValue) and obj.source is None:
            pending = self.cap.effects.attributes_of(obj).get(name)
            return pending if isinstance(pending, Value) else self._exception_slot(obj, type_attribute(obj.cls, name))
        if real is None or obj.source is None:
            raise Unsupported(causes.ATTRIBUTE, f"{obj.describe()}.{name}")
        return self.cap.world.wrap(self.cap.host(getattr, real, name), AttrSource(obj.source, name))

    def bind(self, obj: Value, cls: type, name: str, raw: Any) -> Value:
        """A class attribute read through an instance, by the kind of attribute."""
        if isinstance(raw, staticmethod):
            return self.cap.world.wrap(raw.__func__, ConstSource(raw.__func__, f"{cls.__name__}.{name}"))
        if isinstance(raw, classmethod):
            return self.cap.classes.method_of(self.cap.classes.of(obj, cls), cls, name, raw.__func__)
        if isinstance(raw, functools.cached_property):
            return self._cached_property(obj, cls, name, raw)
        if isinstance(raw, property):
            return self.read_descriptor(obj, cls, name, raw)
        if isinstance(raw, types.FunctionType):
            func = self.cap.classes.wrap(cls, name, raw)
            return BoundMethod(obj, func)
        if isinstance(raw, types.ClassMethodDescriptorType):
            return self.cap.world.wrap_static(raw.__get__(None, obj.python_type()))
        if isinstance(raw, _METHOD_DESCRIPTORS):
            return bind_descriptor(self.cap, self.cap.classes.wrap(cls, name, raw), raw, obj, cls)
        if hasattr(type(raw), "__get__"):
            if isinstance(type_attribute(type(raw), "__get__", None), types.FunctionType):
                return self._call_get(obj, cls, name, raw)
            if type(raw).__name__ not in ("builtin_function_or_method", "type", "Op") and not isinstance(raw, type):
                raise Unsupported(causes.ATTRIBUTE, f"{obj.describe()}.{name} ({type(raw).__name__})")
        return self.cap.classes.wrap(cls, name, raw)

    def _cached_property(self, obj: Value, cls: type, name: str, raw: Any) -> Value:
        func = self.cap.world.wrap(raw.func, ConstSource(raw.func, f"{cls.__name__}.{name}"))
        value = self.cap.call(func, [obj], {})
        self.cap.effects.set_attribute(obj, raw.attrname, value)
        return value

    # -- writing an instance -----------------------------------------------------------------------------------
    def set_instance_attribute(self, obj: UserObject, name: str, value: Value) -> None:
        """obj.name = value by the class's own __setattr__."""
        setter = self.cap.classes.lookup(obj.cls, "__setattr__")
        if isinstance(obj.real, Module) and setter is Module.__setattr__:
            self._set_module_attribute(obj, name, value)
        elif isinstance(setter, types.FunctionType):
            hook = self.cap.classes.wrap(obj.cls, "__setattr__", setter)
            self.cap.call(hook, [obj, Constant(name), value], {})
        else:
            self.generic_set(obj, name, value)

    def generic_set(self, obj: Value, name: str, value: Value) -> None:
        """object.__setattr__(obj, name, value)"""
        cls = obj.python_type()
        raw = self.cap.classes.lookup(cls, name)
        if name in ("__class__", "__dict__"):
            raise Unsupported(causes.ATTRIBUTE, f"{obj.describe()}.{name} = ...")
        if isinstance(raw, property):
            if raw.fset is None:
                self.cap.raise_(AttributeError, f"property '{name}' of '{cls.__qualname__}' object has no setter")
            self.cap.call(self.cap.world.wrap(raw.fset, ConstSource(raw.fset, f"{cls.__name__}.{name}")), [obj, value], {})
            return
        if raw is not ABSENT and not isinstance(raw, types.MemberDescriptorType) and is_data_descriptor(raw):
            if not isinstance(type_attribute(type(raw), "__set__", None), types.FunctionType):
                raise Unsupported(causes.ATTRIBUTE, f"{obj.describe()}.{name} = ... ({type(raw).__name__})")
            descriptor = self.cap.classes.wrap(cls, name, raw)
            self.cap.call(self.cap.classes.special_method(descriptor, "__set__"), [obj, value], {})
            return
        if raw is ABSENT and not cls.__dictoffset__:
            self.cap.raise_(AttributeError, f"'{type_name(cls)}' object has no attribute '{name}'")
        self.cap.effects.set_attribute(obj, name, value)

    def _set_module_attribute(self, obj: UserObject, name: str, value: Value) -> None:
        value = self.cap.realize(value)
        registries = [obj.real.__dict__.get(r, {}) for r in ("_parameters", "_modules", "_buffers")]
        homes = [r for r in registries if self._has_entry(r, name)]
        if len(homes) == 1 and homes[0] is registries[2] and self._set_buffer(obj, homes[0], name, value):
            return
        is_module = isinstance(value, UserObject) and issubclass(value.cls, Module)
        from_class = self.cap.classes.lookup(obj.cls, name)
        if homes or is_module or value.python_type().__name__ in ("Parameter", "Buffer") or is_data_descriptor(from_class):
            raise Unsupported(causes.MUTATION, f"{obj.describe()}.{name} = ... (a registered part of a module)")
        self.cap.effects.set_attribute(obj, name, value)

    def _has_entry(self, entries: Any, name: str) -> bool:
        """Whether a registry of a module has an entry `name`, now or at the beginning of the capture."""
        written = self._written_registry(entries)
        return name in entries or (written is not None and self.cap.operators.hash_key(Constant(name)) in written.entries)

    def _set_buffer(self, obj: UserObject, entries: Any, name: str, value: Value) -> bool:
        """module.name = value that replaces a buffer: an entry of the registry `entries`.

        False if another rule applies.
        """
        allowed = value.python_type() is Tensor or (isinstance(value, Constant) and value.value is None)
        if not allowed or self.has_hooks(buffer_registration_hooks):
            return False
        assert obj.source is not None
        buffers, key = self.cap.world.wrap(entries, DictAttrSource(obj.source, "_buffers")), Constant(name)
        if not isinstance(buffers, DictValue) or buffers.get(self.cap, key) is None:
            return False
        buffers.set(self.cap, key, value)
        return True

    def delete_instance_attribute(self, obj: UserObject, name: str) -> None:
        """del obj.name"""
        deleter = self.cap.classes.lookup(obj.cls, "__delattr__")
        if isinstance(obj.real, Module):
            raise Unsupported(causes.MUTATION, f"del {obj.describe()}.{name}")
        if isinstance(deleter, types.FunctionType):
            hook = self.cap.classes.wrap(obj.cls, "__delattr__", deleter)
            self.cap.call(hook, [obj, Constant(name)], {})
            return
        self.generic_delete(obj, name)

    def generic_delete(self, obj: UserObject, name: str) -> None:
        """object.__delattr__(obj, name)"""
        raw = self.cap.classes.lookup(obj.cls, name)
        if isinstance(raw, property):
            if raw.fdel is None:
                self.cap.raise_(AttributeError, f"property '{name}' of '{obj.cls.__qualname__}' object has no deleter")
            self.cap.call(self.cap.world.wrap(raw.fdel, ConstSource(raw.fdel, f"{obj.cls.__name__}.{name}")), [obj], {})
            return
        is_slot = isinstance(raw, types.MemberDescriptorType)
        if not is_slot and raw is not ABSENT and is_data_descriptor(raw):
            raise Unsupported(causes.ATTRIBUTE, f"del {obj.describe()}.{name} ({type(raw).__name__})")
        present = self._read_or_none(obj, name, raw if is_slot else None)
        if present is None:
            self.cap.raise_(AttributeError, name if is_slot else f"'{type_name(obj.cls)}' object has no attribute '{name}'")
        self.cap.effects.delete_attribute(obj, name)

    def _read_or_none(self, obj: UserObject, name: str, slot: Any) -> Value | None:
        if slot is None:
            return self.instance_entry(obj, name)
        try:
            return self._read_slot(obj, name, slot)
        except Raised:
            return None

    # -- classes, modules, super -------------------------------------------------------------------------------
    # -- containers and constants ------------------------------------------------------------------------------
    def builtin_method(self, owner: Value, name: str) -> Value:
        """owner.name for a container: a method, or AttributeError."""
        kind = owner.python_type()
        if name == "__class__":
            return self.cap.world.wrap_static(kind)
        if type_attribute(kind, name, ABSENT) is ABSENT:
            return self.cap.raise_(AttributeError, f"'{type_name(kind)}' object has no attribute '{name}'")
        if name in ("__doc__", "__module__"):
            return self.cap.world.wrap_static(getattr(kind, name))
        if not callable(getattr(kind, name)):
            raise Unsupported(causes.ATTRIBUTE, f"{owner.describe()}.{name}")
        return BuiltinMethod(owner, name)

    def of_constant(self, owner: Constant, name: str) -> Value:
        """constant.name"""
        real = owner.value
        if name == "__class__":
            return self.cap.world.wrap_static(type(real))
        if not hasattr(real, name):
            return self.cap.raise_(AttributeError, f"'{type_name(type(real))}' object has no attribute '{name}'")
        found = getattr(real, name)
        if callable(found) and not isinstance(found, type):
            return BuiltinMethod(owner, name)
        return self.cap.world.wrap_static(found)

    def has(self, value: Value, name: str) -> bool:
        """hasattr(value, name)"""
        try:
            self.cap.realize(value).getattr(self.cap, name)
        except Raised as error:
            if self.cap.exceptions.is_instance_of(error.value, AttributeError):
                return False
            raise
        return True

    def read(self, owner: Value, name: str) -> Value:
        """owner.name as in the interpreter: an AttributeError records the object and the name."""
        owner = self.cap.realize(owner)
        try:
            return owner.getattr(self.cap, name)
        except Raised as error:
            value = error.value
            if isinstance(value, ExceptionValue) and value.source is None and issubclass(value.cls, AttributeError):
                known = self.cap.effects.attributes_of(value)
                if "name" not in known and "obj" not in known:
                    self.cap.exceptions.preset(value, "name", Constant(name))
                    self.cap.exceptions.preset(value, "obj", owner)
            raise

    def get(self, value: Value, name: str, default: Value | None) -> Value:
        """getattr(value, name[, default])"""
        try:
            return self.read(value, name)
        except Raised as error:
            if default is not None and issubclass(error.value.python_type(), AttributeError):
                return default
            raise

    # -- methods of object, hooks ------------------------------------------------------------------------------
    def object_method(self, owner: UserObject, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """object.<name>(owner, ...): the target of super() and of explicit calls of the base class."""
        cap = self.cap
        if name == "__setattr__" and not isinstance(owner.real, Module):
            cap.attributes.generic_set(owner, attribute_name(cap, args[0]), args[1])
            return NONE
        if name == "__getattribute__":
            return cap.attributes.generic_attribute(owner, owner.cls, attribute_name(cap, args[0]))
        if name == "__delattr__" and not isinstance(owner.real, Module):
            cap.attributes.generic_delete(owner, attribute_name(cap, args[0]))
            return NONE
        if issubclass(owner.cls, types.SimpleNamespace) and name in ("__init__", "__eq__", "__ne__"):
            return self._namespace_method(owner, name, args, kwargs)
        if name == "__init__":
            if isinstance(owner, ExceptionValue):
                if owner.initialized or owner.source is not None:
                    raise Unsupported(causes.EXCEPTION, f"{owner.describe()}.__init__() a second time")
                cap.effects.change(owner)
                owner.args = list(args)
                owner.initialized = True
            return NONE
        if name == "__eq__":
            return TRUE if cap.operators.same_object(owner, args[0]) else Constant(NotImplemented)
        if name == "__ne__":
            equal = cap.realize(cap.call_method(owner, "__eq__", args, {}))
            return equal if isinstance(equal, Constant) and equal.holds(NotImplemented) else Constant(not cap.truth(equal))
        if name == "__init_subclass__":
            return NONE
        raise Unsupported(causes.OPAQUE_OBJECT, f"object.{name} of {owner.describe()}")

    def _namespace_method(self, owner: UserObject, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """SimpleNamespace.<name>(owner, ...)"""
        if name != "__init__" or args:
            raise Unsupported(causes.OPAQUE_OBJECT, f"{name} of {owner.describe()}")
        for attribute, item in kwargs.items():
            self.generic_set(owner, attribute, item)
        return NONE

    def module_has_hooks(self, obj: UserObject) -> bool:
        """Whether the call of a module runs hooks of the module or hooks of all modules. Guarded."""
        cap = self.cap
        found = any(self.has_hooks(registry) for registry in GLOBAL_CALL_HOOKS)
        for name in ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks"):
            hooks = cap.realize(obj.getattr(cap, name))
            found = found or hooks.truth(cap)
        return found

    def has_hooks(self, registry: Any) -> bool:
        """Whether a process-wide registry of hooks has entries. Guarded."""
        cap = self.cap
        return cap.world.wrap_static(registry, "global module hooks").truth(cap)


def namespace_of(real: Any) -> dict[str, Any] | None:
    """The instance dict; None for an instance without a dict."""
    try:
        found = object.__getattribute__(real, "__dict__")
    except AttributeError:
        return None
    return found if isinstance(found, dict) else None


def namespace_held(real: Any) -> dict[str, Any] | None:
    """The instance dict, without making the dict of a partial: partials are merged only if the inner one has no dict."""
    base: Any = partial_base(type(real))
    return namespace_of(real) if base is None else base.__reduce__(real)[2][3]


def partial_base(kind: type) -> type | None:
    """The base of `kind` that is functools.partial, or the partial of another copy of the module; None without one."""
    mro = type.__dict__["__mro__"].__get__(kind)
    return next((base for base in mro if module_of(base) == "functools" and type_name(base) == "partial"), None)


def _is_slot(cls: type, name: str) -> bool:
    """Whether instances of cls keep `name` beside their __dict__."""
    return isinstance(type_attribute(cls, name, None), types.MemberDescriptorType)


def attribute_name(cap: Machine, value: Value) -> str:
    """The name of an attribute. Raises: Unsupported for a name that is not a string, which Python refuses."""
    name = cap.realize(value).as_constant()
    if not isinstance(name, str):
        raise Unsupported(causes.ATTRIBUTE, f"an attribute whose name is {name!r}")
    return name
