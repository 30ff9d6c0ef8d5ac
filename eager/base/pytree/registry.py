"""Which types are nodes of a tree, and how each is taken apart and put together. Everything else is a leaf."""
from __future__ import annotations

import dataclasses
import inspect
import json
import sys
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable
from typing import Any

from eager.base.records import dataclass

PyTree = Any
Context = Any
DumpableContext = Any
FlattenFn = Callable[[PyTree], tuple[list[Any], Context]]
UnflattenFn = Callable[[Iterable[Any], Context], PyTree]
FlattenWithKeysFn = Callable[[PyTree], tuple[list[tuple[Any, Any]], Context]]
FlattenFunc, UnflattenFunc, FlattenWithKeysFunc = FlattenFn, UnflattenFn, FlattenWithKeysFn
ToDumpableContextFn = Callable[[Context], DumpableContext]
FromDumpableContextFn = Callable[[DumpableContext], Context]


# ---- keys: how a child is reached from its parent ----


@dataclass(frozen=True)
class SequenceKey:
    """`parent[idx]` of a list, tuple or deque."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, parent: Any) -> Any:
        return parent[self.idx]


@dataclass(frozen=True)
class MappingKey:
    """`parent[key]` of a dict."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, parent: Any) -> Any:
        return parent[self.key]


@dataclass(frozen=True)
class GetAttrKey:
    """`parent.name`, of a named tuple or dataclass."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, parent: Any) -> Any:
        return getattr(parent, self.name)


KeyEntry = Any
KeyPath = tuple[KeyEntry, ...]


# ---- the registry ----


@dataclass(frozen=True, slots=True)
class NodeDef:
    """One node type: the children and the context of an instance, and an instance from both."""

    type: Any
    flatten_fn: FlattenFn
    unflatten_fn: UnflattenFn
    flatten_with_keys_fn: FlattenWithKeysFn | None
    serialized_type_name: str | None
    to_dumpable_context: ToDumpableContextFn | None
    from_dumpable_context: FromDumpableContextFn | None


@dataclass(frozen=True)
class ConstantNode:
    """Context of a constant: the value itself."""

    value: Any


SUPPORTED_NODES: dict[Any, NodeDef] = {}
SERIALIZED_NAMES: dict[str, Any] = {}  # serialized name -> type
NAMEDTUPLE_NAMES: dict[type, str] = {}  # named tuple class -> serialized name
CONSTANT_TYPES: set[type] = set()


def register_pytree_node(cls: Any, flatten_fn: FlattenFn, unflatten_fn: UnflattenFn, *, serialized_type_name: str | None = None,
                         to_dumpable_context: ToDumpableContextFn | None = None,
                         from_dumpable_context: FromDumpableContextFn | None = None,
                         flatten_with_keys_fn: FlattenWithKeysFn | None = None) -> None:  # fmt: skip
    """Treat instances of exactly `cls` as nodes.

    flatten_fn: instance -> (list of children, context). unflatten_fn: (children, context) -> instance.
    flatten_with_keys_fn: as flatten_fn, with (key, child) for each child; needed for paths.
    serialized_type_name and the two context functions: for `treespec_dumps`; a context is JSON without them.
    Raises: ValueError if `cls` is registered already, or only one of the context functions is given.
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError(f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or registered.")
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn, serialized_type_name, to_dumpable_context,
                                   from_dumpable_context)  # fmt: skip
    if serialized_type_name is not None:
        SERIALIZED_NAMES[serialized_type_name] = cls


_register_pytree_node = register_pytree_node


def _deregister_pytree_node(cls: Any) -> None:
    """Make `cls` a leaf type again."""
    found = SUPPORTED_NODES.pop(cls)
    CONSTANT_TYPES.discard(cls)
    if found.serialized_type_name is not None:
        del SERIALIZED_NAMES[found.serialized_type_name]


def _register_namedtuple(cls: type, *, serialized_type_name: str) -> None:
    """Give a named tuple class a name for `treespec_dumps`. (It is a node without.)"""
    NAMEDTUPLE_NAMES[cls] = serialized_type_name
    SERIALIZED_NAMES[serialized_type_name] = cls


def register_dataclass(cls: type, *, field_names: list[str] | None = None, drop_field_names: list[str] | None = None,
                       serialized_type_name: str | None = None) -> None:  # fmt: skip
    """Treat a dataclass as a node whose children are its fields; fields that are None go into the context.

    field_names: the fields, all by default; required for a class that is not a dataclass. drop_field_names: the fields that
    field_names omits on purpose.
    Raises: ValueError if the names differ from the parameters of `__init__`.
    """
    dropped = drop_field_names or []
    if dataclasses.is_dataclass(cls):
        of_init = [f.name for f in dataclasses.fields(cls) if f.init]
        names = of_init if field_names is None else field_names
        if set(names) | set(dropped) != set(of_init):
            raise ValueError(f"register_dataclass: field_names {names} and drop_field_names {dropped} of {cls}; allowed: together "
                             f"the fields of its __init__, {of_init}")  # fmt: skip
    elif field_names is None:
        raise ValueError(f"field_names must be specified with a list of all fields used to initialize {cls}, as it is not a "
                         "dataclass.")  # fmt: skip
    else:
        names = field_names

    def split(x: Any) -> tuple[list[str], list[str]]:
        return [n for n in names if getattr(x, n) is not None], [n for n in names if getattr(x, n) is None]

    def flatten(x: Any) -> tuple[list[Any], Context]:
        held, none = split(x)
        return [getattr(x, n) for n in held], [held, none]

    def flatten_with_keys(x: Any) -> tuple[list[tuple[Any, Any]], Context]:
        held, none = split(x)
        return [(GetAttrKey(n), getattr(x, n)) for n in held], [held, none]

    def unflatten(children: Iterable[Any], context: Context) -> Any:
        held, none = context
        return cls(**dict(zip(held, children, strict=True)), **dict.fromkeys(none))

    register_pytree_node(cls, flatten, unflatten, flatten_with_keys_fn=flatten_with_keys, serialized_type_name=serialized_type_name)


def register_constant(cls: type) -> None:
    """Treat instances as nodes without children: part of the structure, compared by `==`.

    Raises: TypeError for a class that compares or hashes by identity, or is a node already.
    """
    plain: Any = object
    if cls.__eq__ is plain.__eq__:
        raise TypeError("register_constant(cls) expects `cls` to have a non-default `__eq__` implementation.")
    if cls.__hash__ is None or cls.__hash__ is plain.__hash__:
        raise TypeError("register_constant(cls) expects `cls` to have a non-default `__hash__` implementation.")
    register_pytree_node(cls, lambda x: ([], ConstantNode(x)), lambda _, context: context.value,
                         flatten_with_keys_fn=lambda x: ([], ConstantNode(x)))  # fmt: skip
    CONSTANT_TYPES.add(cls)


def is_constant_class(cls: type) -> bool:
    return cls in CONSTANT_TYPES


# ---- named tuples ----


def is_namedtuple_class(cls: type) -> bool:
    """Whether `cls` is made by `collections.namedtuple` or `typing.NamedTuple`."""
    if not isinstance(cls, type) or not issubclass(cls, tuple):
        return False
    fields = getattr(cls, "_fields", None)
    return (isinstance(fields, tuple) and all(type(f) is str for f in fields) and callable(getattr(cls, "_make", None))
            and callable(getattr(cls, "_asdict", None)))  # fmt: skip


def is_namedtuple_instance(obj: object) -> bool:
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj: object) -> bool:
    """Whether `obj` is a named tuple, or a class of them."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_structseq_class(cls: type) -> bool:
    """Whether `cls` is a struct sequence of the C API, as `time.struct_time` is."""
    return (isinstance(cls, type) and cls.__bases__ == (tuple,) and not is_namedtuple_class(cls)
            and all(isinstance(getattr(cls, n, None), int) for n in ("n_fields", "n_sequence_fields", "n_unnamed_fields")))  # fmt: skip


def is_structseq_instance(obj: object) -> bool:
    return is_structseq_class(type(obj))


def is_structseq(obj: object) -> bool:
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


# ---- the built-in nodes ----


def _sequence_keys(children: Iterable[Any]) -> list[tuple[Any, Any]]:
    return [(SequenceKey(i), child) for i, child in enumerate(children)]


def _mapping_keys(d: Any) -> list[tuple[Any, Any]]:
    return [(MappingKey(k), child) for k, child in d.items()]


def _class_of(module: str, name: str) -> Any:
    if module not in sys.modules:  # reading a spec runs no code: the module must be loaded already
        raise NotImplementedError(f"Deserializing the factory {module}.{name} of a defaultdict: import {module} first")
    found: Any = sys.modules[module]
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _dump_defaultdict(context: Context) -> DumpableContext:
    factory, keys = context
    if factory is None:
        return {"default_factory_module": None, "default_factory_name": None, "dict_context": keys}
    return {"default_factory_module": factory.__module__, "default_factory_name": factory.__qualname__, "dict_context": keys}


def _load_defaultdict(dumped: DumpableContext) -> Context:
    module, name = dumped["default_factory_module"], dumped["default_factory_name"]
    return [None if module is None else _class_of(module, name), dumped["dict_context"]]


def _dump_namedtuple(context: Context) -> DumpableContext:
    name = NAMEDTUPLE_NAMES.get(context)
    if name is None:
        raise NotImplementedError(f"Can't serialize TreeSpec of namedtuple class {context} because we didn't register a "
                                  "serializated_type_name. Please register using `_register_namedtuple`.")  # fmt: skip
    return json.dumps(name)


def _load_namedtuple(dumped: DumpableContext) -> Context:
    name = json.loads(dumped)
    if name not in SERIALIZED_NAMES:
        raise NotImplementedError(f"Can't deserialize TreeSpec of namedtuple class {name} because we couldn't find a serializated "
                                  "name.")  # fmt: skip
    return SERIALIZED_NAMES[name]


def _register_builtin() -> None:
    add = register_pytree_node
    add(tuple, lambda t: (list(t), None), lambda xs, _: tuple(xs), serialized_type_name="builtins.tuple",
        flatten_with_keys_fn=lambda t: (_sequence_keys(t), None))  # fmt: skip
    add(list, lambda x: (x, None), lambda xs, _: list(xs), serialized_type_name="builtins.list",
        flatten_with_keys_fn=lambda x: (_sequence_keys(x), None))  # fmt: skip
    add(dict, lambda d: (list(d.values()), list(d)), lambda xs, keys: dict(zip(keys, xs, strict=True)),
        serialized_type_name="builtins.dict", flatten_with_keys_fn=lambda d: (_mapping_keys(d), list(d)))  # fmt: skip
    add(namedtuple, lambda t: (list(t), type(t)), lambda xs, cls: cls(*xs), serialized_type_name="collections.namedtuple",
        to_dumpable_context=_dump_namedtuple, from_dumpable_context=_load_namedtuple,
        flatten_with_keys_fn=lambda t: ([(GetAttrKey(n), x) for n, x in zip(t._fields, t, strict=True)], type(t)))  # fmt: skip
    add(OrderedDict, lambda d: (list(d.values()), list(d)), lambda xs, keys: OrderedDict(zip(keys, xs, strict=True)),
        serialized_type_name="collections.OrderedDict", flatten_with_keys_fn=lambda d: (_mapping_keys(d), list(d)))  # fmt: skip
    add(defaultdict, lambda d: (list(d.values()), [d.default_factory, list(d)]),
        lambda xs, context: defaultdict(context[0], zip(context[1], xs, strict=True)),
        serialized_type_name="collections.defaultdict", to_dumpable_context=_dump_defaultdict,
        from_dumpable_context=_load_defaultdict,
        flatten_with_keys_fn=lambda d: (_mapping_keys(d), [d.default_factory, list(d)]))  # fmt: skip
    add(deque, lambda d: (list(d), d.maxlen), lambda xs, n: deque(xs, maxlen=n), serialized_type_name="collections.deque",
        flatten_with_keys_fn=lambda d: (_sequence_keys(d), d.maxlen))  # fmt: skip


_register_builtin()
BUILTIN_TYPES = frozenset(SUPPORTED_NODES)
STANDARD_DICT_TYPES = frozenset({dict, OrderedDict, defaultdict})


def node_type(tree: Any) -> Any:
    """The registered type that `tree` is a node of: its own class, or `namedtuple` for any of those; None for a leaf."""
    kind = type(tree)
    if kind in SUPPORTED_NODES:
        return kind
    return namedtuple if is_namedtuple_class(kind) else None


def describe(fn: Any) -> str:
    """How a type or function is printed within a spec."""
    return fn.__name__ if inspect.isclass(fn) or inspect.isfunction(fn) else repr(fn)
