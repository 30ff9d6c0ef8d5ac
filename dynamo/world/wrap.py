"""From a real object and its source to a captured value, with guards for the facts that the value depends on.

Owns the table by type. Structural objects (functions, classes, modules, nn.Modules, enum members) are guarded by
identity and are constants of the compiled entry from then on. Data is guarded by type and size; its parts are guarded
when the program uses them.
"""

from __future__ import annotations

import builtins
import collections
import enum
import functools
import gc
import re
import types
import weakref
from typing import Any, Final

import numpy as np

from dynamo import _native
from dynamo.guards.program import GuardSet
from dynamo.guards.sources import (
    ArrayMemorySource,
    AttrSource,
    CellContentsSource,
    ChildSource,
    ConstSource,
    ContentSource,
    DictAttrSource,
    DictItemSource,
    ItemSource,
    IteratorOwnerSource,
    LiveSource,
    Source,
    TypeAttrSource,
    is_a,
    module_of,
    type_attribute,
)
from dynamo.policy import callees
from dynamo.report import causes
from dynamo.report.errors import GiveUp
from dynamo.values.base import CONSTANT_TYPES, NONE, Constant, Lazy, Opaque, guard_constant, told_by_equality
from dynamo.values.builtin_subclasses import (
    SCALAR_BASES,
    ContainerObject,
    Contents,
    container_base,
    is_made_in_c,
    plain_scalar,
)
from dynamo.values.functions import BoundMethod, CellValue, FunctionValue, PartialValue
from dynamo.values.getters import GETTERS, GetterValue
from dynamo.values.mappings import DICT_TYPES, DictValue, DictView, ProxyValue, SetValue
from dynamo.values.ndarray import NdArrayValue
from dynamo.values.objects import BuiltinValue, ClassValue, ExceptionValue, PythonModule, UserObject
from dynamo.values.protocols import Machine, Value
from dynamo.values.sequences import ListValue, RangeValue, SliceValue, TupleValue
from dynamo.values.set_order import History
from dynamo.values.symbolic import SymFloatValue, SymIntValue
from dynamo.values.tensor import TENSOR_TYPES
from dynamo.values.weak import WeakReference
from dynamo.world.existing_iterators import EXISTING_TYPES, wrap_iterator
from eager import Size, Tensor
from eager import _native as eager_native
from eager.base.symfloat import SymFloat
from eager.base.symint import SymInt
from eager.nn import Module
from eager.nn._base import Registry
from eager.nn.parameter import Parameter

BUILTIN_FUNCTION_TYPES: Final = (
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.MethodWrapperType,
    types.ClassMethodDescriptorType,
    np.ufunc,
    type(np.prod),
    type(functools.lru_cache(lambda: None)),
)
_HEAP_TYPE: Final = 1 << 9
_IMMUTABLE_TYPE: Final = 1 << 8
# Iterators that pure functions of constants return.
_FINISHED_ITERATORS: Final = frozenset(map(type, (iter(""), iter(""" """), iter("\u00e9"), iter(b""), re.finditer("", ""))))
_NAMED_TUPLE_FILE: Final = collections.namedtuple.__code__.co_filename


def is_named_tuple(cls: type) -> bool:
    """Whether namedtuple made cls, so that it behaves like a tuple: a class made by typing.NamedTuple may define
    methods.
    """
    if not (issubclass(cls, tuple) and hasattr(cls, "_fields") and hasattr(cls, "_make") and cls.__bases__ == (tuple,)):
        return False
    return not any(isinstance(v, types.FunctionType) and hasattr(tuple, n) and v.__code__.co_filename != _NAMED_TUPLE_FILE
                   for n, v in vars(cls).items())  # fmt: skip


def is_python_class(cls: type) -> bool:
    """Whether Python code defines the behaviour of cls: its only C bases are object, SimpleNamespace and exceptions."""
    if not cls.__flags__ & _HEAP_TYPE and cls is not types.SimpleNamespace:
        return False
    for base in cls.__mro__:
        if base in (object, types.SimpleNamespace) or issubclass(base, BaseException):
            continue
        if not base.__flags__ & _HEAP_TYPE:
            return module_of(base) in ("abc", "typing", "collections.abc")
        if is_made_in_c(base):
            return False
    return True


def _changes_class(real: Any) -> bool:
    """Whether __class__ of the object can be set: CPython's rule (object_set_class in Objects/typeobject.c)."""
    return not type(real).__flags__ & _IMMUTABLE_TYPE or issubclass(type(real), types.ModuleType)


class World:
    """Owns the values of real objects, by their ids, and their guards.

    by_id: the value of each real object that was wrapped. keep: these objects, so that no id is reused.
    """

    def __init__(self, cap: Machine) -> None:
        self.cap = cap
        self.guards = GuardSet()
        self.by_id: dict[int, Value] = {}
        self.keep: list[Any] = []

    def release(self) -> None:
        """Drop the program's objects."""
        self.by_id.clear()
        self.keep.clear()

    # -- guards ------------------------------------------------------------------------------------------------
    def guard(self, kind: str, sources: Any, *operands: Any) -> None:
        """Make the compiled entry depend on a fact.

        Facts about constant objects are watched instead of checked at each call.
        """
        where = (sources,) if isinstance(sources, Source) else tuple(sources)
        first = where[0]
        constant = isinstance(sources, Source) and first.is_constant_rooted
        if constant and isinstance(first, ConstSource) and (kind == "is" or (kind == "type" and not _changes_class(first.value))):
            return
        if not self.guards.new(kind, where, operands):
            return  # most facts are recorded many times
        watch, epoch = _watched(kind, first, operands) if constant else (None, False)
        self.guards.append(kind, where, operands, self.cap.origin, watch, epoch)

    def tell_apart(self, a: Value, b: Value) -> bool:
        """`is` between two existing values.

        Each object has one value, so two values are two objects; guard that they stay different.
        """
        assert a.source is not None and b.source is not None
        if not (a.source.is_constant_rooted and b.source.is_constant_rooted):
            self.guards.add("distinct", (a.source, b.source), origin=self.cap.origin)
        return False

    # -- wrapping ----------------------------------------------------------------------------------------------
    def lazy(self, real: Any, source: Source) -> Value:
        """A value that is wrapped and guarded when the program first uses it."""
        return Lazy(self.cap, real, source)

    def wrap_static(self, real: Any, label: str = "") -> Value:
        """An object that the capture itself knows: no guard is needed."""
        return self.wrap(real, ConstSource(real, label or getattr(real, "__name__", type(real).__name__)))

    def wrap_new(self, real: Any) -> Value:
        """A host result as a new value of the captured program: a constant, or a container of constants."""
        if type(real) in CONSTANT_TYPES:
            return Constant(real)
        if type(real) is SymInt:
            return SymIntValue(real)
        if type(real) is SymFloat:
            return SymFloatValue(real)
        if type(real) in (tuple, Size) or is_named_tuple(type(real)):
            return TupleValue([self.wrap_new(v) for v in real], None, type(real))
        if type(real) is list:
            return ListValue([self.wrap_new(v) for v in real])
        if type(real) is dict:
            new = DictValue()
            for k, v in real.items():
                key = self.wrap_new(k)
                new.entries[self.cap.operators.hash_key(key)] = (key, self.wrap_new(v))
            return new
        if type(real) is range:
            return RangeValue(real)
        if type(real) is slice:
            return SliceValue(self.wrap_new(real.start), self.wrap_new(real.stop), self.wrap_new(real.step))
        if type(real) in _FINISHED_ITERATORS:
            return self.cap.iteration.sequence_iterator([self.wrap_new(v) for v in real], NONE)
        if type(real) is np.ndarray:
            return self.cap.arrays.constant(real)  # a new array at each call
        return self.wrap_static(real)

    def wrap(self, real: Any, source: Source) -> Value:
        """The value of the existing object `real`, found at `source`."""
        kind = type(real)
        if kind in (int, float) and not isinstance(source, ConstSource):
            symbolic = self.cap.symbols.wrap_int(real, source) if kind is int else self.cap.symbols.wrap_float(real, source)
            if symbolic is not None:
                return symbolic
        if kind in CONSTANT_TYPES and (isinstance(source, ConstSource) or told_by_equality(real)):
            if not isinstance(source, ConstSource):
                guard_constant(self.cap, real, source)
            return Constant(real, source if not isinstance(source, ConstSource) else None)
        if kind in TENSOR_TYPES:
            source = self._tensor_place(real, source)
        known = self.by_id.get(id(real))
        if known is not None and known.source is not None:
            if known.source != source and not (source.is_constant_rooted and known.source.is_constant_rooted):
                self.guards.add("same", (known.source, source), origin=self.cap.origin)
            elif known.source != source and not isinstance(source, ConstSource):
                self.guard("is", source, real)
            return known
        value = self._wrap_object(real, kind, source)
        if isinstance(value, Opaque):
            self.guard("type", source, kind)  # isinstance() and `is None` use this type
        self.by_id[id(real)] = value
        self.keep.append(real)
        return value

    def wrap_contents(self, real: Any, base: type, source: Source) -> Contents:
        """The contents of an instance of a user class that derives from the built-in container `base`."""
        if issubclass(base, dict):
            value = DictValue(base, source)
            keys = tuple(base.__iter__(real))
            self.guard("dict_keys", source, keys)
            for key in keys:
                wrapped = self.wrap_static(key)
                item = dict.__getitem__(real, key)
                value.entries[self.cap.operators.hash_key(wrapped)] = (wrapped, self.lazy(item, DictItemSource(source, key)))
            return value
        if base in SCALAR_BASES:
            plain = plain_scalar(real, base)
            self.guard("content_eq", source, plain)
            return Constant(plain)
        own: Any = base  # not by methods of the instance's class, which would run code of the program
        self.guard("len", source, own.__len__(real))
        items = [self.lazy(v, ContentSource(source, i)) for i, v in enumerate(own.__iter__(real))]
        return ListValue(items, source) if base is list else TupleValue(items, source)

    def held(self, real: Any, source: Source) -> Source:
        """Guard the identity of `real`, which becomes a constant of the entry."""
        if isinstance(source, ConstSource):
            return source
        self.guard("is", source, real)
        return ConstSource(real, source.name, is_module_state(source))

    def _tensor_place(self, real: Tensor, source: Source) -> Source:
        """The source of a tensor: the place instead of the object, if the program replaces the tensor there."""
        held = isinstance(source, ConstSource) or not source.is_constant_rooted
        return source if held or self.cap.symbols.dynamic.keeps(hash(source), real) else LiveSource(source)

    def _wrap_object(self, real: Any, kind: type, source: Source) -> Value:
        if source.is_constant_rooted and kind is not types.CellType:
            source = self.held(real, source)
        if kind in TENSOR_TYPES:
            return self.cap.recorder.wrap_tensor(real, source)
        if issubclass(kind, Module):  # isinstance would read the object's __class__
            held = self.held(real, source)
            self.guard("type", held, kind)
            self.guard("is", AttrSource(held, "__dict__"), vars(real))
            return UserObject(kind, real, held)
        if kind is types.FunctionType:
            return self._wrap_function(real, source)
        if issubclass(kind, type | types.ModuleType):
            held = self.held(real, source)
            self.guard("type", held, kind)
            return ClassValue(real, held) if issubclass(kind, type) else PythonModule(real, held)
        maker = _MAKERS.get(kind)
        if maker is not None:
            return maker(self.cap, real, source)
        if issubclass(kind, BUILTIN_FUNCTION_TYPES) or callees.is_allowed(real):
            return self._wrap_builtin(real, source)
        return self._wrap_instance(real, kind, source)

    def _wrap_function(self, real: types.FunctionType, source: Source) -> Value:
        if real.__closure__ and not source.is_constant_rooted:
            self.guard("is", AttrSource(source, "__code__"), real.__code__)
            self.guard("is", AttrSource(source, "__globals__"), real.__globals__)
            return FunctionValue(real.__code__, real.__globals__, real, source)
        held = self.held(real, source)
        if not callees.is_own(real.__code__):
            self.guard("is", AttrSource(held, "__code__"), real.__code__)
        return FunctionValue(real.__code__, real.__globals__, real, held)

    def _wrap_builtin(self, real: Any, source: Source) -> Value:
        owner = getattr(real, "__self__", None)
        if isinstance(real, types.BuiltinFunctionType) and owner is not None and not isinstance(owner, types.ModuleType | type):
            if source.is_constant_rooted:
                return BuiltinValue(real, source)
            self.guard("type", source, type(real))
            self.guard("str_eq", AttrSource(source, "__name__"), real.__name__)
            from_source = self.wrap(owner, AttrSource(source, "__self__"))
            return BoundMethod(from_source, BuiltinMethodName(real.__name__, source), source)
        return BuiltinValue(real, self.held(real, source))

    def _wrap_instance(self, real: Any, kind: type, source: Source) -> Value:
        if issubclass(kind, enum.Enum):
            held = self.held(real, source)
            self.guard("type", held, kind)
            return UserObject(kind, real, held)
        if kind is _native.CompiledFunction:
            return self.wrap(real.__wrapped__, ConstSource(real.__wrapped__, self.held(real, source).name))
        if is_named_tuple(kind):
            return _tuple(self.cap, real, source)
        if issubclass(kind, BaseException) and is_exception_class(kind):
            self.guard("type", source, kind)
            return ExceptionValue(kind, [], real, source)
        base = container_base(kind)
        if base is not None:
            self.guard("type", source, kind)
            return ContainerObject(kind, base, None, real, source)
        if is_python_class(kind) and not issubclass(kind, Tensor | BaseException):
            self.guard("type", source, kind)
            return UserObject(kind, real, source)
        return Opaque(real, source)

    def wrap_cell(self, cell: Any, source: Source, name: str) -> CellValue:
        """The value of an existing cell object. Its contents are wrapped when the program reads them."""
        known = self.by_id.get(id(cell))
        if isinstance(known, CellValue):
            assert known.source is not None
            if known.source != source and not (source.is_constant_rooted and known.source.is_constant_rooted):
                self.guards.add("same", (known.source, source), origin=self.cap.origin)
            return known
        value = ExistingCell(cell, source, name)
        self.by_id[id(cell)] = value
        self.keep.append(cell)
        return value


class BuiltinMethodName(Value):
    """The unbound half of an existing bound C method such as `items.append`."""

    def __init__(self, name: str, source: Source) -> None:
        self.name = name
        self.source: Source = source

    def python_type(self) -> type:
        return types.MethodDescriptorType

    def call(self, cap: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return cap.call_method(args[0], self.name, args[1:], kwargs)


class ExistingCell(CellValue):
    """A cell from outside; its contents are guarded when they are read."""

    def __init__(self, cell: Any, source: Source, name: str) -> None:
        super().__init__(None, source, name)
        self.real = cell
        self._loaded = False

    def load(self, cap: Any) -> Value | None:
        if not self._loaded:
            self._loaded = True
            assert self.source is not None
            try:
                real = self.real.cell_contents
            except ValueError:
                cap.world.guard("cell_empty", self.source)
                return None
            self.contents = cap.world.wrap(real, CellContentsSource(self.source, self.name))
        return self.contents

    def store(self, cap: Any, value: Value | None) -> None:
        self._loaded = True
        super().store(cap, value)


def _watched(kind: str, source: Source, operands: tuple[Any, ...]) -> tuple[tuple[Any, ...] | None, bool]:
    """(containers to watch, whether the epoch matters) of a fact about a constant-rooted source."""
    if isinstance(source, ConstSource):
        value = source.value
        if kind == "dict_keys" and is_a(value, collections.OrderedDict):
            return None, False  # its order can change without a change of the dict
        if kind in ("len", "dict_keys", "dict_absent") and is_a(value, dict):
            return (value,), is_a(value, Registry)
        if kind in ("type_absent", "plain_new"):
            return (value,), issubclass(value, Module)
        if kind == "no_attr" and isinstance(type_attribute(type(value), operands[0], None), types.MemberDescriptorType):
            return None, False  # a slot is not in a dict that could be watched
        if kind == "no_attr":
            return (_namespace(value), type(value)), is_a(value, Module)
        if (kind == "tensor" and isinstance(value, Parameter)) or (kind == "type" and is_a(value, Module)):
            return (), True
        return None, False
    parent = getattr(source, "parent", None)
    if not isinstance(parent, ConstSource):
        return None, False
    owner = parent.value
    if isinstance(source, AttrSource) and source.key == "__dict__":
        if kind == "is":
            return ((), True) if is_a(owner, Module) else (None, False)
        return (_namespace(owner),), is_a(owner, Module)
    if isinstance(source, AttrSource) and source.key == "__mro__" and is_a(owner, type):
        return (owner,), issubclass(owner, Module)
    if isinstance(source, DictAttrSource):
        return (_namespace(owner),), is_a(owner, Module)
    if isinstance(source, TypeAttrSource):
        return (owner,), issubclass(owner, Module)
    if isinstance(source, DictItemSource) and is_a(owner, dict):
        return (owner,), is_a(owner, Registry)
    return None, False


def _namespace(owner: Any) -> Any:
    """The objects to watch for an attribute: the epoch covers that a module's __dict__ stays the same dict."""
    return vars(owner) if is_a(owner, Module) else owner


def is_module_state(source: Source) -> bool:
    """Whether the object at `source` was reached through an nn.Module that the entry holds."""
    root = source.root
    return isinstance(root, ConstSource) and (root.of_module or isinstance(root.value, Module))


def is_exception_class(kind: type) -> bool:
    """Whether class, arguments and attributes describe an instance of kind completely."""
    return issubclass(kind, Exception | GeneratorExit | KeyboardInterrupt | SystemExit) and not issubclass(
        kind, BaseExceptionGroup
    )


# --- makers by exact type -------------------------------------------------------------------------------------


def _part(value: Any, place: ChildSource) -> Source:
    """The place of a part of an immutable object.

    An entry that holds the object holds its parts, which need no guard.
    """
    return ConstSource(value, place.name) if isinstance(place.parent, ConstSource) else place


def _tuple(cap: Any, real: Any, source: Source) -> Value:
    cap.world.guard("type", source, type(real))
    if not isinstance(source, ConstSource):
        cap.world.guard("len", source, len(real))
    items = (tuple.__getitem__(real, i) for i in range(tuple.__len__(real)))
    return TupleValue([Lazy(cap, v, _part(v, ItemSource(source, i))) for i, v in enumerate(items)], source, type(real))


def _list(cap: Any, real: Any, source: Source) -> Value:
    cap.world.guard("type", source, list)
    cap.world.guard("len", source, len(real))
    return ListValue([Lazy(cap, v, ItemSource(source, i)) for i, v in enumerate(real)], source)


def _deque(cap: Any, real: Any, source: Source) -> Value:
    cap.world.guard("type", source, collections.deque)
    cap.world.guard("len", source, len(real))
    cap.world.guard("const_eq", AttrSource(source, "maxlen"), real.maxlen)
    items: list[Value] = [Lazy(cap, v, ItemSource(source, i)) for i, v in enumerate(real)]
    return ListValue(items, source, collections.deque, real.maxlen)


def _dict(cap: Any, real: Any, source: Source) -> Value:
    if type(real) is dict and "__builtins__" in real:
        return Opaque(real, source)  # namespaces of modules: every `global` statement changes them
    cap.world.guard("type", source, type(real))
    value = DictValue(type(real), source)
    keys = [cap.world.wrap_static(k) for k in real]
    cap.world.guard("dict_keys", source, tuple(real))
    for i, (key, (name, item)) in enumerate(zip(keys, real.items(), strict=True)):
        value.entries[cap.operators.hash_key(key)] = (key, Lazy(cap, item, DictItemSource(source, name, i)))
    if isinstance(real, collections.defaultdict):
        value.factory = cap.world.wrap(real.default_factory, AttrSource(source, "default_factory"))
    return value


def _proxy(cap: Any, real: Any, source: Source) -> Value:
    behind = gc.get_referents(real)[0]  # the dict behind the proxy: no attribute exposes it
    if not isinstance(source, ConstSource) or type(behind) not in DICT_TYPES:
        return Opaque(real, source)
    return ProxyValue(cap.world.wrap(behind, ConstSource(behind, source.name)), source)


def _view(cap: Any, real: Any, source: Source) -> Value:
    behind = _native.iterator_owner(real)
    if type(behind) not in DICT_TYPES or "__builtins__" in behind:
        return Opaque(real, source)
    cap.world.guard("type", source, type(real))
    return DictView(cap.world.wrap(behind, IteratorOwnerSource(source, "")), _VIEWS[type(real)], source)


def _set(cap: Any, real: Any, source: Source) -> Value:
    if not all(type(v) in CONSTANT_TYPES and told_by_equality(v) for v in real):
        return Opaque(real, source)
    if not isinstance(source, ConstSource) or type(real) is set:
        cap.world.guard("type", source, type(real))
        cap.world.guard("set_elements", source, tuple(real))
    value = SetValue(type(real), source)
    value.entries = {cap.operators.hash_key(c): c for c in map(Constant, real)}
    if type(real) is frozenset:
        value.made = History(frozenset, (real,))  # the frozenset itself
    return value


def _range(cap: Any, real: Any, source: Source) -> Value:
    if not isinstance(source, ConstSource):
        cap.world.guard("type", source, range)
        for part in ("start", "stop", "step"):  # ranges with the same numbers are interchangeable
            cap.world.guard("const_eq", AttrSource(source, part), getattr(real, part))
    return RangeValue(real, source)


def _slice(cap: Any, real: Any, source: Source) -> Value:
    cap.world.guard("type", source, slice)
    parts = {p: getattr(real, p) for p in ("start", "stop", "step")}
    start, stop, step = (cap.world.wrap(v, _part(v, AttrSource(source, p))) for p, v in parts.items())
    return SliceValue(start, stop, step, source)


def _method(cap: Any, real: Any, source: Source) -> Value:
    cap.world.guard("type", source, types.MethodType)
    self_value = cap.world.wrap(real.__self__, _part(real.__self__, AttrSource(source, "__self__")))
    return BoundMethod(self_value, cap.world.wrap(real.__func__, _part(real.__func__, AttrSource(source, "__func__"))), source)


def _partial(cap: Any, real: Any, source: Source) -> Value:
    cap.world.guard("type", source, functools.partial)
    fn = cap.world.wrap(real.func, AttrSource(source, "func"))
    args = cap.world.wrap(real.args, AttrSource(source, "args"))
    keywords = cap.world.wrap(real.keywords, AttrSource(source, "keywords"))
    kwargs = {k.as_constant(): v for k, v in keywords.entries.values()}
    return PartialValue(fn, args, kwargs, source)


def _ndarray(cap: Any, real: Any, source: Source) -> Value:
    tensor = eager_native.tensor_from_array(real)
    if tensor is None:
        return Opaque(real, source)
    cap.world.guard("type", source, np.ndarray)
    cap.world.keep.append(tensor)
    return NdArrayValue(cap.recorder.wrap_tensor(tensor, ArrayMemorySource(source, "")), source)


def _weak(cap: Any, real: Any, source: Source) -> Value:
    return WeakReference(real, cap.world.held(real, source))


def _getter(cap: Any, real: Any, source: Source) -> Value:
    held = cap.world.held(real, source)
    made, args = real.__reduce__()
    keywords = made.keywords if isinstance(made, functools.partial) else {}
    args = (*made.args, *args) if isinstance(made, functools.partial) else args
    named = {k: cap.world.wrap_static(v) for k, v in keywords.items()}
    return GetterValue(type(real), [cap.world.wrap_static(a) for a in args], named, held)


_VIEWS: Final[dict[type, str]] = {type({}.keys()): "keys", type({}.values()): "values", type({}.items()): "items"}
_MAKERS: Final[dict[type, Any]] = {
    tuple: _tuple,
    Size: _tuple,
    list: _list,
    **dict.fromkeys(DICT_TYPES, _dict),
    Registry: _dict,
    set: _set,
    frozenset: _set,
    range: _range,
    slice: _slice,
    types.MethodType: _method,
    functools.partial: _partial,
    **dict.fromkeys(GETTERS, _getter),
    collections.deque: _deque,
    np.ndarray: _ndarray,
    types.MappingProxyType: _proxy,
    weakref.ReferenceType: _weak,
    **dict.fromkeys(EXISTING_TYPES, wrap_iterator),
    **dict.fromkeys(_VIEWS, _view),
}

BUILTINS_NAMESPACE: Final[dict[str, Any]] = vars(builtins)


def refuse_fakes(real: Tensor) -> None:
    """A compiled function called with fakes (while it is traced) runs plainly."""
    if real.is_fake:
        raise GiveUp(causes.OPAQUE_OBJECT, "an argument is a fake tensor")
