"""`torch._ops`: operators under the names of torch's libraries, `torch.ops.aten.add.Tensor`, `torch.ops.mylib.op`.

Owns the namespaces, packets and overloads, and the registry of the operators that `torch.library` makes. The modules
`aten` and `libraries` beside this file define the operators of torch's own libraries.
"""
from __future__ import annotations

import os
import types
from collections.abc import Callable, Iterator
from typing import Any, Final, NoReturn

from eager._ops import aten, libraries
from eager._ops.schema import FunctionSchema, parse_schema
from eager._ops.tags import Tag
from eager._tensor.torch_function import ask, overrides, state, taking_part

__all__ = ["HigherOrderOperator", "OpOverload", "OpOverloadPacket", "OperatorBase", "Tag", "declare_overload", "ops"]

_Overloads = dict[str, tuple[Callable[..., Any], str, tuple[Tag, ...]]]  # overload name -> function, schema and tags
_DECLARED: Final[dict[tuple[str, str], _Overloads]] = {}  # user-defined operators, by namespace and name


class OperatorBase:
    """Base class of operators: callable, and copied by reference."""

    __name__: str
    __qualname__: str

    def __init__(self, name: str, path: str, op: Callable[..., Any]) -> None:
        self.__name__ = name
        self.__module__, self.__qualname__ = "eager", f"ops.{path}"  # the import path, for pickle and printed graphs
        self._op = op

    @property
    def op(self) -> Callable[..., Any]:
        """The Python function that computes the operator."""
        return self._op

    def __str__(self) -> str:
        return self.__qualname__.removeprefix("ops.")

    def __deepcopy__(self, memo: Any) -> OperatorBase:
        return self

    def __reduce__(self) -> str:
        return self.__qualname__


class OpOverload(OperatorBase):
    """One overload of an operator, with one schema."""

    def __init__(self, packet: OpOverloadPacket, overload: str, op: Callable[..., Any], schema: str, tags: tuple[Tag, ...]) -> None:
        super().__init__(f"{packet.__name__}.{overload}", f"{packet}.{overload}", op)
        self.overloadpacket = packet
        self.namespace = packet._namespace
        self.tags = list(tags)
        self._opname, self._overloadname = packet.__name__, overload
        self._schema: FunctionSchema = parse_schema(schema)

    def name(self) -> str:
        """The name of the operator, "aten::add.Tensor"; the default overload has no suffix."""
        return f"{self._schema.name}.{self._overloadname}" if self._overloadname != "default" else self._schema.name

    @property
    def is_view(self) -> bool:
        """Whether a result shares the memory of an argument that the call does not write to."""
        reads = [a.alias_info for a in self._schema.arguments if a.alias_info is not None]
        return bool(reads) and not reads[0].is_write and any(r.alias_info is not None for r in self._schema.returns)

    def has_kernel_for_dispatch_key(self, key: Any) -> NoReturn:
        """Raises NotImplementedError: ops are not dispatched by key."""
        raise NotImplementedError(f"{self}.has_kernel_for_dispatch_key: ops are not dispatched by key in framejit")

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        given, named = self._schema.bind(args, kwargs)
        values = (*given, *named.values())
        if state.modes or any(map(overrides, _flat(values))):
            overriding = taking_part(values)
            if (not state.off and overriding) or (state.modes and not state.modes_off):
                return ask(self, overriding, args, kwargs)
        return self._op(*given, **named)

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.overloadpacket}', overload='{self._overloadname}')>"


class OpOverloadPacket(OperatorBase):
    """All overloads of a name.

    A call runs the first overload whose schema fits; an attribute is an overload by name.
    """

    def __init__(self, namespace: str, name: str, overloads: _Overloads) -> None:
        super().__init__(name, f"{namespace}.{name}", next(iter(overloads.values()))[0])
        self._namespace = namespace
        self._qualified_op_name = f"{namespace}::{name}"
        self._declared = overloads

    def __getattr__(self, name: str) -> OpOverload:
        if name.startswith("__") or name not in (self.__dict__.get("_declared") or ()):
            raise AttributeError(f"The underlying op of '{self}' has no overload name '{name}'")
        overload = OpOverload(self, name, *self._declared[name])
        found: OpOverload = self.__dict__.setdefault(name, overload)  # another thread may have made one meanwhile
        return found

    def overloads(self) -> list[str]:
        """The names of the overloads."""
        return list(self._declared)

    def __iter__(self) -> Iterator[str]:
        return iter(self._declared)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._declared]

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        refusals = []
        for name in self._declared:
            overload: OpOverload = getattr(self, name)
            try:
                overload._schema.bind(args, kwargs)
            except RuntimeError as error:
                refusals.append(error)
                continue
            return overload(*args, **kwargs)
        if len(refusals) == 1:
            raise refusals[0]
        listed = "".join(f"{error}\n\n" for error in refusals)
        raise RuntimeError(f"Overloaded torch operator invoked from Python failed to match any schema:\n{listed}")

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"


class HigherOrderOperator(OperatorBase):
    """An operator that takes functions, of `torch.ops.higher_order`."""

    def __init__(self, name: str, op: Callable[..., Any]) -> None:
        super().__init__(name, f"higher_order.{name}", op)
        self.namespace = "higher_order"

    def name(self) -> str:
        """The name of the operator."""
        return self.__name__

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._op(*args, **kwargs)

    def __str__(self) -> str:
        return self.__name__

    __repr__ = __str__


class _OpNamespace(types.ModuleType):
    """The operators of one library as attributes. Raises: AttributeError for an unknown name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"torch.ops.{name}", f"Operators of the library {name!r}.")
        self.name = name
        self._dir: list[str] = []

    def __getattr__(self, name: str) -> OperatorBase:
        if name.startswith("__"):
            raise AttributeError(f"'_OpNamespace' '{self.name}' object has no attribute '{name}'")
        made = _packet(self.name, name)
        if made is None:
            raise AttributeError(f"'_OpNamespace' '{self.name}' object has no attribute '{name}'")
        found: OperatorBase = self.__dict__.setdefault(name, made)  # another thread may have made one meanwhile
        if found is made:
            self._dir.append(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._dir))

    def __repr__(self) -> str:
        return f"<module 'torch.ops.{self.name}' from 'torch.ops'>"


class _Ops(types.ModuleType):
    """`torch.ops`: a namespace for every library, created at its first use."""

    __file__ = "_ops.py"

    def __init__(self) -> None:
        super().__init__("torch.ops")
        self.loaded_libraries: set[str] = set()
        self._dir: list[str] = []

    def __getattr__(self, name: str) -> _OpNamespace:
        if name.startswith("__"):
            raise AttributeError(f"module 'torch.ops' has no attribute '{name}'")
        namespace = _OpNamespace(name)
        found: _OpNamespace = self.__dict__.setdefault(name, namespace)  # another thread may have made one meanwhile
        if found is namespace:
            self._dir.append(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._dir))

    def import_module(self, module: str) -> None:
        """Import a module that declares operators."""
        __import__(module)

    def load_library(self, path: os.PathLike[str] | str) -> NoReturn:
        """Raises OSError: libraries of torch operators link against libtorch, which does not exist here."""
        raise OSError(f"torch.ops.load_library: {os.fspath(path)}: no libtorch, which libraries of operators are linked with; "
                      "torch.library.custom_op adds an op that is written in Python")  # fmt: skip

    def __repr__(self) -> str:
        return "<module 'torch.ops' from '_ops.py'>"


def declare_overload(namespace: str, name: str, overload: str, op: Callable[..., Any], schema: str, tags: Any = None) -> OpOverload:
    """Register `op` as the overload `namespace::name.overload`, replacing an earlier one of that name."""
    given = (tags,) if isinstance(tags, Tag) else tuple(tags or ())
    _DECLARED.setdefault((namespace, name), {})[overload] = op, schema, (*given, Tag.pt2_compliant_tag)
    library = getattr(ops, namespace)
    library.__dict__.pop(name, None)
    return getattr(getattr(library, name), overload)


def _packet(namespace: str, name: str) -> OperatorBase | None:
    declared: _Overloads = {}
    if namespace == "higher_order":
        found = libraries.higher_order(name)
        return None if found is None else HigherOrderOperator(name, found)
    if namespace == "aten":
        op = aten.find(name)
        if op is not None:
            declared = {overload: (op, schema, tags) for overload, (schema, tags) in aten.schemas(name).items()}
    else:
        declared = {overload: (op, schema, ()) for overload, (op, schema) in libraries.find(namespace, name).items()}
    declared |= _DECLARED.get((namespace, name), {})
    return OpOverloadPacket(namespace, name, declared) if declared else None


def _flat(values: tuple[Any, ...]) -> Iterator[Any]:
    for value in values:
        if type(value) in (list, tuple):
            yield from value
        else:
            yield value


ops: Final = _Ops()
