"""Values of a symbolic trace: a Proxy stands for the value of a node, and each operation on a Proxy makes a node."""

from __future__ import annotations

import dis
import operator
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final

import eager.overrides  # noqa: F401 - switches on __torch_function__, through which functions receive proxies
from fxir.ir.graph import Graph
from fxir.ir.node import Argument, Node


class TraceError(ValueError):
    """The program needs the value of a proxy."""


class Proxy:
    """Stands for the value of `node` while a program is traced."""

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.node = node
        if tracer is None:
            assert isinstance(node.graph, Graph)
            tracer = GraphAppendingTracer(node.graph)
        self.tracer: TracerBase = tracer

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, name: str) -> Attribute:
        if name.startswith("__"):
            raise AttributeError(name)
        return Attribute(self, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Proxy]:
        frame = sys._getframe(1)
        instruction = next((i for i in dis.get_instructions(frame.f_code) if i.offset == frame.f_lasti), None)
        if instruction is not None and instruction.opname == "UNPACK_SEQUENCE":
            return iter([operator.getitem(self, i) for i in range(instruction.argval)])
        return self.tracer.iter(self)

    def __bool__(self) -> bool:
        return self.tracer.to_bool(self)

    def keys(self) -> Any:
        return self.tracer.keys(self)

    def __len__(self) -> int:
        raise RuntimeError("'len' is not supported in symbolic tracing by default. If you want this call to be recorded, please call "
                           "torch.fx.wrap('len') at module scope")  # fmt: skip

    def __index__(self) -> int:
        raise TraceError("symbolically traced variables cannot be used as an index")

    @classmethod
    def __torch_function__(cls, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (),
                           kwargs: dict[str, Any] | None = None) -> Any:  # fmt: skip
        tracer = next(p.tracer for p in _proxies((args, kwargs)))
        owner = getattr(func, "__objclass__", None)
        if owner is not None or getattr(func, "__qualname__", "").startswith("Tensor."):
            return tracer.create_proxy("call_method", func.__name__, args, kwargs or {})
        return tracer.create_proxy("call_function", func, args, kwargs or {})


class TracerBase:
    """The maker of nodes for proxies: it adds them to `graph` and decides the value of a proxy where Python needs a value."""

    graph: Graph
    check_mutable_operations: bool = False  # whether a call that writes to an argument raises

    def create_node(self, kind: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], name: str | None = None,
                    type_expr: Any = None) -> Node:  # fmt: skip
        return self.graph.create_node(kind, target, args, kwargs, name, type_expr)

    def proxy(self, node: Node) -> Proxy:
        return Proxy(node, self)

    def create_proxy(self, kind: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], name: str | None = None,
                     type_expr: Any = None, proxy_factory_fn: Callable[[Node], Proxy] | None = None) -> Proxy:  # fmt: skip
        """A new node, and the proxy for its value. proxy_factory_fn: makes the proxy instead of `self.proxy`."""
        if self.check_mutable_operations and _writes(kind, target, kwargs):
            raise RuntimeError(f"Tried to trace mutable operation {getattr(target, '_schema', target)}. FX only supports functional code, "
                               "so operations that mutate operands in-place (e.g. via `out` arguments) are not supported")  # fmt: skip
        node = self.create_node(kind, target, self.create_arg(args), self.create_arg(kwargs), name, type_expr)
        return (proxy_factory_fn or self.proxy)(node)

    def create_arg(self, a: Any) -> Argument:
        """`a` as an argument of a node."""
        if isinstance(a, Proxy):
            return a.node
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return type(a)(*map(self.create_arg, a))
        if isinstance(a, tuple | list):
            return type(a)(map(self.create_arg, a))
        if isinstance(a, dict):
            return {k: self.create_arg(v) for k, v in a.items()}
        if isinstance(a, slice):
            return slice(*map(self.create_arg, (a.start, a.stop, a.step)))
        return a

    def to_bool(self, obj: Proxy) -> bool:
        """`bool(obj)`. Raises: TraceError."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """`iter(obj)`, if the items are not unpacked into a known number of names. Raises: TraceError."""
        raise TraceError("Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or "
                         "**kwargs function argument")  # fmt: skip

    def keys(self, obj: Proxy) -> Any:
        """`obj.keys()`, which a call with **obj evaluates first."""
        return Attribute(obj, "keys")()


def _writes(kind: str, target: Any, kwargs: dict[str, Any]) -> bool:
    """Whether a call writes to an argument: by its schema, its name (`add_`, `__iadd__`), `out=` or `inplace=`."""
    if kind not in ("call_function", "call_method"):
        return False
    schema = getattr(target, "_schema", None)
    if schema is not None:
        return bool(schema.is_mutable)
    name = target if isinstance(target, str) else getattr(target, "__name__", "")
    is_inplace = (name.endswith("_") and not name.startswith("_")) or name in _INPLACE_OPERATORS
    return is_inplace or kwargs.get("out") is not None or kwargs.get("inplace") is True


_INPLACE_OPERATORS: Final = frozenset(
    form for name in "add and concat floordiv lshift matmul mod mul or pow rshift sub truediv xor".split()
    for form in (f"i{name}", f"__i{name}__")
) | {"setitem", "delitem", "__setitem__", "__delitem__"}


class GraphAppendingTracer(TracerBase):
    """The tracer of a proxy that was made by hand: it appends to the graph of the proxy's node."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph


class Attribute(Proxy):
    """An unused attribute of a proxy: a method call makes one node, a read another node."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root = root
        self.attr = attr
        self.tracer = root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


def _proxies(value: Any) -> Iterator[Proxy]:
    if isinstance(value, Proxy):
        yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _proxies(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _proxies(item)
    elif isinstance(value, slice):
        yield from _proxies((value.start, value.stop, value.step))


def holds_proxy(value: Any) -> bool:
    """Whether `value`, or a container in it, contains a proxy."""
    return next(_proxies(value), None) is not None


def _operator(name: str, fn: Callable[..., Any]) -> None:
    def method(self: Proxy, *args: Any) -> Proxy:
        return self.tracer.create_proxy("call_function", fn, (self, *args), {})

    def reflected(self: Proxy, other: Any) -> Proxy:
        return self.tracer.create_proxy("call_function", fn, (other, self), {})

    setattr(Proxy, f"__{name}__", method)
    if name in _REFLECTED:
        setattr(Proxy, f"__r{name}__", reflected)


_REFLECTED: Final = frozenset("add sub mul truediv floordiv mod pow matmul lshift rshift and or xor".split())
for _name in (*_REFLECTED, *"eq ne lt le gt ge neg pos invert abs getitem".split()):
    _operator(_name, getattr(operator, f"{_name}_" if _name in ("and", "or") else _name))
