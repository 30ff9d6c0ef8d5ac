"""Sources: where an existing object of the captured program is found.

A source has a name for logs, an expression that fetches the object in generated code, and instructions that fetch it in a guard
program. Sources are immutable and compare by value.

A source is *constant-rooted* if its path starts at an object that the compiled entry holds (`ConstSource`), and *slot-rooted* if the
path starts at a slot of the call. A guard on a constant-rooted object can watch the containers on the path (see `program`); a guard
on a slot-rooted object runs at each call.
"""

from __future__ import annotations

from typing import Any, Protocol

from dynamo import _native
from eager import _native as eager_native
from eager.base.records import dataclass
from fxir.base.safe_repr import text


class SourceWriter(Protocol):
    """The part of the code generator that writes the expression of a source."""

    def slot_name(self, index: int) -> str:
        """The parameter of the generated function that holds slot `index` of the call."""

    def source(self, source: Source) -> str:
        """A variable that holds the object at `source`, fetched before the program changes anything."""

    def bind(self, obj: Any, label: str) -> str:
        """A global of the generated function that holds `obj`. label: part of its name."""

    def constant(self, value: Any) -> str:
        """An expression for a constant."""

    def helper(self, name: str) -> str:
        """A global of the generated function that holds a helper of `dynamo.emit.runtime`."""


class GuardProgram(Protocol):
    """The part of a guard program under construction that fetches a source."""

    def slot(self, source: Source) -> int:
        """The slot that holds the object at `source`; emits the fetch at the first call for a source."""

    def emit_fetch(self, op: str, *operands: Any) -> int:
        """Emit a fetch instruction; returns the slot of its result."""


class Source:
    """Base class. A root has no parent. is_constant_rooted: the path starts at an object that the compiled entry holds."""

    __slots__ = ()
    is_constant_rooted: bool = False

    @property
    def name(self) -> str:
        """The name in logs."""
        raise NotImplementedError

    @property
    def root(self) -> Source:
        """The start of the path."""
        return self

    def fetch(self, builder: GuardProgram) -> int:
        """Emit the instructions that fetch the object in a guard program; return the slot that holds the object."""
        raise NotImplementedError

    def reconstruct(self, cg: SourceWriter) -> str:
        """An expression that fetches the object, over variables of the generated function."""
        raise NotImplementedError

    def read(self, slots: tuple[Any, ...]) -> Any:
        """Fetch the object in Python, for reports of failed guards. Raises: any error of the fetch."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class SlotSource(Source):
    """Slot `index` of the call: an argument, or a local or stack item of a continuation."""

    index: int
    label: str

    @property
    def name(self) -> str:
        return self.label

    def fetch(self, builder: GuardProgram) -> int:
        return self.index

    def reconstruct(self, cg: SourceWriter) -> str:
        return cg.slot_name(self.index)

    def read(self, slots: tuple[Any, ...]) -> Any:
        return slots[self.index]


@dataclass(frozen=True, slots=True, eq=False)
class ConstSource(Source):
    """An object that the compiled entry holds. A guard at the place `label` checks its identity. of_module: the object is part of
    the state of an nn.Module."""

    value: Any
    label: str
    of_module: bool = False
    is_constant_rooted = True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ConstSource) and other.value is self.value

    def __hash__(self) -> int:
        return hash(("const", id(self.value)))

    @property
    def name(self) -> str:
        return self.label

    def fetch(self, builder: GuardProgram) -> int:
        return builder.emit_fetch("const", self.value)

    def reconstruct(self, cg: SourceWriter) -> str:
        return cg.bind(self.value, self.label)

    def read(self, slots: tuple[Any, ...]) -> Any:
        return self.value


@dataclass(frozen=True, slots=True, eq=False)
class WeakSource(Source):
    """The referent of a weak reference that the compiled entry holds. A dead referent is a failed guard."""

    reference: Any
    label: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WeakSource) and other.reference is self.reference

    def __hash__(self) -> int:
        return hash(("weak", id(self.reference)))

    @property
    def name(self) -> str:
        return self.label

    def fetch(self, builder: GuardProgram) -> int:
        return builder.emit_fetch("weak", self.reference)

    def reconstruct(self, cg: SourceWriter) -> str:
        return f"{cg.bind(self.reference, 'reference')}()"

    def read(self, slots: tuple[Any, ...]) -> Any:
        return self.reference()


@dataclass(frozen=True, slots=True)
class LiveSource(Source):
    """The object at the constant-rooted `place` at each call: a tensor that the program replaces, so that no entry holds it."""

    place: Source

    @property
    def name(self) -> str:
        return self.place.name

    def fetch(self, builder: GuardProgram) -> int:
        return builder.slot(self.place)

    def reconstruct(self, cg: SourceWriter) -> str:
        return cg.source(self.place)

    def read(self, slots: tuple[Any, ...]) -> Any:
        return self.place.read(slots)


class ChildSource(Source):
    """An object reached from `parent` by `key`. Subclasses give the guard instruction and the expression."""

    __slots__ = ("_hash", "is_constant_rooted", "key", "parent", "root")

    def __init__(self, parent: Source, key: Any) -> None:
        self.parent: Source = parent
        self.key = key
        self.root: Source = parent.root
        self.is_constant_rooted: bool = parent.is_constant_rooted
        self._hash = hash((type(self), parent, _key_identity(key)))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(self) is not type(other):
            return False
        assert isinstance(other, ChildSource)
        return _key_identity(self.key) == _key_identity(other.key) and self.parent == other.parent

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


def _key_identity(key: Any) -> Any:
    """A key that compares without running user code: by type and value if it is plain, else by identity."""
    return (type(key), key) if isinstance(key, str | int | float | bool | bytes | None) else id(key)


class DictAttrSource(ChildSource):
    """An entry of the instance `__dict__`."""

    __slots__ = ()

    @property
    def name(self) -> str:
        return f"{self.parent.name}.{self.key}"

    def fetch(self, builder: GuardProgram) -> int:
        return builder.emit_fetch("dict_attr", builder.slot(self.parent), self.key)

    def reconstruct(self, cg: SourceWriter) -> str:
        return f"{cg.source(self.parent)}.__dict__[{self.key!r}]"

    def read(self, slots: tuple[Any, ...]) -> Any:
        return self.parent.read(slots).__dict__[self.key]


class AttrSource(ChildSource):
    """An attribute by ordinary lookup, on objects whose lookup runs no user code (slots, functions, modules)."""

    __slots__ = ()

    @property
    def name(self) -> str:
        return f"{self.parent.name}.{self.key}"

    def fetch(self, builder: GuardProgram) -> int:
        return builder.emit_fetch("generic_attr", builder.slot(self.parent), self.key)

    def reconstruct(self, cg: SourceWriter) -> str:
        return f"{cg.source(self.parent)}.{self.key}"

    def read(self, slots: tuple[Any, ...]) -> Any:
        return getattr(self.parent.read(slots), self.key)


class TypeAttrSource(ChildSource):
    """An entry found along the MRO of the class `parent`, not bound."""

    __slots__ = ()

    @property
    def name(self) -> str:
        return f"{self.parent.name}.{self.key}"

    def fetch(self, builder: GuardProgram) -> int:
        return builder.emit_fetch("type_attr", builder.slot(self.parent), self.key)

    def reconstruct(self, cg: SourceWriter) -> str:
        return f"{cg.helper('type_attribute')}({cg.source(self.parent)}, {self.key!r})"

    def read(self, slots: tuple[Any, ...]) -> Any:
        return type_attribute(self.parent.read(slots), self.key)


class ItemSource(ChildSource):
    """Item `key` of a list or tuple, key >= 0."""

    __slots__ = ()

    @property
    def name(self) -> str:
        return f"{self.parent.name}[{self.key}]"

    def fetch(self, builder: GuardProgram) -> int:
        return builder.emit_fetch("item", builder.slot(self.parent), self.key)

    def reconstruct(self, cg: SourceWriter) -> str:
        return f"{cg.source(self.parent)}[{self.key}]"

    def read(self, slots: tuple[Any, ...]) -> Any:
        return self.parent.read(slots)[self.key]


class ContentSource(ItemSource):
    """Stored item `key` of an instance of a subclass of list or tuple; its own __getitem__ does not run."""

    __slots__ = ()

    def reconstruct(self, cg: SourceWriter) -> str:
        return f"{cg.helper('content_item')}({cg.source(self.parent)}, {self.key})"

    def read(self, slots: tuple[Any, ...]) -> Any:
        return content_item(self.parent.read(slots), self.key)


def content_item(holder: Any, index: int) -> Any:
    """holder[index] by the lookup of list or tuple."""
    return (list if isinstance(holder, list) else tuple).__getitem__(holder, index)


class DictItemSource(ChildSource):
    """Value under `key` of a dict, by the lookup of dict. For a global, the parent is the namespace.

    position: of the key in the dict. It distinguishes the names of keys that are objects without a text.
    """

    __slots__ = ("position",)

    def __init__(self, parent: Source, key: Any, position: int | None = None) -> None:
        super().__init__(parent, key)
        self.position = position

    @property
    def name(self) -> str:
        if isinstance(self.parent, ConstSource) and self.parent.label == "globals":
            return str(self.key)
        if type(self.key) is str:
            return f"{self.parent.name}[{self.key!r}]"
        shown = text(self.key)
        if self.position is not None and shown.startswith("<"):
            shown = f"{shown[:-1]} #{self.position}>"
        return f"{self.parent.name}[{shown}]"

    def fetch(self, builder: GuardProgram) -> int:
        return builder.emit_fetch("dict_item", builder.slot(self.parent), self.key)

    def reconstruct(self, cg: SourceWriter) -> str:
        return f"{cg.helper('dict_getitem')}({cg.source(self.parent)}, {cg.constant(self.key)})"

    def read(self, slots: tuple[Any, ...]) -> Any:
        return dict.__getitem__(self.parent.read(slots), self.key)


class CellContentsSource(ChildSource):
    """The contents of a cell object; key is the name of the variable."""

    __slots__ = ()

    @property
    def name(self) -> str:
        return str(self.key)

    def fetch(self, builder: GuardProgram) -> int:
        return builder.emit_fetch("cell", builder.slot(self.parent))

    def reconstruct(self, cg: SourceWriter) -> str:
        return f"{cg.source(self.parent)}.cell_contents"

    def read(self, slots: tuple[Any, ...]) -> Any:
        return self.parent.read(slots).cell_contents


class IteratorOwnerSource(ChildSource):
    """The object that a built-in iterator iterates over: a list, a dict, an inner iterator, or the tuple of iterators of zip; or the
    dict of a view. key is unused."""

    __slots__ = ()

    @property
    def name(self) -> str:
        return f"{self.parent.name}.<owner>"

    def fetch(self, builder: GuardProgram) -> int:
        return builder.emit_fetch("iterator_owner", builder.slot(self.parent))

    def reconstruct(self, cg: SourceWriter) -> str:
        return f"{cg.helper('iterator_owner')}({cg.source(self.parent)})"

    def read(self, slots: tuple[Any, ...]) -> Any:
        return _native.iterator_owner(self.parent.read(slots))


class ArrayMemorySource(ChildSource):
    """A tensor over the memory of the ndarray `parent`; each fetch makes a new tensor. key is unused."""

    __slots__ = ()

    @property
    def name(self) -> str:
        return f"from_numpy({self.parent.name})"

    def fetch(self, builder: GuardProgram) -> int:
        return builder.emit_fetch("made", builder.slot(self.parent), eager_native.tensor_from_array)

    def reconstruct(self, cg: SourceWriter) -> str:
        return f"{cg.helper('tensor_from_array')}({cg.source(self.parent)})"

    def read(self, slots: tuple[Any, ...]) -> Any:
        return eager_native.tensor_from_array(self.parent.read(slots))


class ClosureCellSource(ChildSource):
    """Cell object `key` of a function's closure (an int)."""

    __slots__ = ()

    @property
    def name(self) -> str:
        return f"{self.parent.name}.__closure__[{self.key}]"

    def fetch(self, builder: GuardProgram) -> int:
        closure = AttrSource(self.parent, "__closure__")
        return builder.emit_fetch("item", builder.slot(closure), self.key)

    def reconstruct(self, cg: SourceWriter) -> str:
        return f"{cg.source(self.parent)}.__closure__[{self.key}]"

    def read(self, slots: tuple[Any, ...]) -> Any:
        return self.parent.read(slots).__closure__[self.key]


class GeometrySource(ChildSource):
    """A size or a stride of dim `dim` of a tensor, or its storage offset. Only shape checks read this number."""

    __slots__ = ("dim", "kind")

    def __init__(self, parent: Source, kind: str, dim: int = 0) -> None:
        super().__init__(parent, f"{kind}({dim})" if kind != "offset" else "storage_offset()")
        self.kind = kind
        self.dim = dim

    @property
    def name(self) -> str:
        return f"{self.parent.name}.{self.key}"

    def fetch(self, builder: GuardProgram) -> int:
        raise NotImplementedError(f"{self.name}: only shape checks read it")

    def reconstruct(self, cg: SourceWriter) -> str:
        return f"{cg.source(self.parent)}.{self.key}"

    def read(self, slots: tuple[Any, ...]) -> Any:
        tensor = self.parent.read(slots)
        return tensor.storage_offset() if self.kind == "offset" else getattr(tensor, self.kind)(self.dim)


_ABSENT = object()


def module_of(cls: type) -> Any:
    """cls.__module__, without a lookup in the metaclass."""
    return type.__dict__["__module__"].__get__(cls)


def is_a(real: Any, kinds: type | tuple[type, ...]) -> bool:
    """isinstance(real, kinds) by the class alone: reading `__class__` of the object may run code of the user."""
    return issubclass(type(real), kinds)


def type_attribute(cls: type, name: str, default: Any = _ABSENT) -> Any:
    """The raw entry `name` along the MRO of cls, not bound. Raises: AttributeError if no class has the entry."""
    for base in type.__dict__["__mro__"].__get__(cls):
        namespace = type.__dict__["__dict__"].__get__(base)
        if name in namespace:
            return namespace[name]
    if default is _ABSENT:
        raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}")
    return default
