"""`torch.fx.symbolic_trace`: runs a program on proxies and records its operations on them as a graph.

Unlike capture (dynamo) it sees no control flow and makes no guards: the graph is one run of the program. It exists for code
that rewrites models as graphs; `compile()` does not use it.
"""

from __future__ import annotations

import builtins
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any

from eager._tensor.tensor import Tensor
from eager.nn import Module, Parameter, Sequential
from fxir.ir.graph import Graph
from fxir.ir.graph_module import GraphModule
from fxir.ir.leaves import LEAVES
from fxir.ir.node import Argument
from fxir.torchfx.proxy import Attribute, Proxy, TracerBase, holds_proxy

_MISSING = object()


class PHBase:
    """The class of `PH`."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()  # a value in `concrete_args`: this argument stays an input


def _set_methods(cls: type, **methods: Callable[..., Any]) -> None:
    for name, method in methods.items():
        setattr(cls, name, method)


def check_concrete(given: Any, traced: Any, name: str) -> None:
    """Raises: AssertionError if an argument differs from its value in the trace (`concrete_args`)."""
    if given is not traced and (type(given) is not type(traced) or given != traced):
        raise AssertionError(f"{name} has been specialized to have value {traced!r} but got another value")


class Tracer(TracerBase):
    """Traces a Module or function into a Graph. A subclass decides which modules are leaves (`is_leaf_module`)."""

    def __init__(self, autowrap_modules: tuple[Any, ...] = (), autowrap_functions: tuple[Callable[..., Any], ...] = (),
                 param_shapes_constant: bool = False) -> None:  # fmt: skip
        if param_shapes_constant:
            raise NotImplementedError("Tracer: param_shapes_constant=True: the shape of a parameter is a node; allowed: False")
        self._wrapped = [(m, name) for m in autowrap_modules for name in dir(m) if isinstance(getattr(m, name), FunctionType)]
        self._wrapped += [(sys.modules[f.__module__], f.__name__) for f in autowrap_functions]
        self.root: Module = Module()
        self.graph = Graph()

    # -- what subclasses change --------------------------------------------------------------------------------
    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Whether calls of `m` become nodes: true of modules of torch.nn except Sequential."""
        return type(m).__module__.startswith(("eager.nn", "torch.nn")) and not isinstance(m, Sequential)

    def path_of_module(self, mod: Module) -> str:
        """The name of `mod` in the root. Raises: NameError if the root does not contain the module."""
        for name, module in self.root.named_modules(remove_duplicate=False):
            if module is mod:
                return name
        raise NameError("module is not installed as a submodule")

    def call_module(self, m: Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a call of the module `m`: a node for a leaf, else the result of its forward."""
        name = self.path_of_module(m)
        if self.is_leaf_module(m, name):
            return self.create_proxy("call_module", name, args, kwargs)
        return forward(*args, **kwargs)

    def create_arg(self, a: Any) -> Argument:
        """`a` as an argument of a node; a tensor becomes a read from the root."""
        if isinstance(a, Tensor):
            return self.create_node("get_attr", self._name_of(a), (), {})
        return super().create_arg(a)

    # -- tracing -----------------------------------------------------------------------------------------------
    def trace(self, root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None) -> Graph:
        """The graph of `root`. concrete_args: parameters that are not traced, with their values; calls may omit them.

        Raises: TraceError if the program branches on a traced value; any error that the program raises.
        """
        self.root = root if isinstance(root, Module) else Module()
        self.graph = Graph()
        self.graph._tracer_cls = type(self)
        fn = type(root).forward if isinstance(root, Module) else root
        first = (root,) if isinstance(root, Module) else ()
        args, kwargs = self._arguments(fn, len(first), concrete_args or {})
        with self._patched():
            result = fn(*first, *args, **kwargs)
        self.graph.output(self.create_arg(result))
        return self.graph

    def _arguments(self, fn: Any, skip: int, concrete: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for p in list(inspect.signature(fn).parameters.values())[skip:]:
            if p.name in concrete and concrete[p.name] is not PH:
                value = concrete[p.name]
                given = self.create_proxy("placeholder", p.name, (value,), {})
                self.create_proxy("call_function", check_concrete, (given, value, p.name), {})
            elif p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
                continue  # no value is passed, since a graph has a fixed number of inputs
            else:
                value = self.create_proxy("placeholder", p.name, () if p.default is p.empty else (p.default,), {})
            if p.kind is p.KEYWORD_ONLY:
                kwargs[p.name] = value
            else:
                args.append(value)
        return args, kwargs

    def _name_of(self, t: Tensor) -> str:
        for found in (self.root.named_parameters(), self.root.named_buffers()):
            for name, value in found:
                if value is t:
                    return name
        for name, value in vars(self.root).items():
            if value is t:
                return name
        k = 0
        while hasattr(self.root, f"_tensor_constant{k}"):
            k += 1
        setattr(self.root, f"_tensor_constant{k}", t)
        return f"_tensor_constant{k}"

    @contextmanager
    def _patched(self) -> Iterator[None]:
        """In the block, calls of modules, reads of parameters and wrapped functions are recorded by this tracer."""
        tracer, call, read = self, Module.__call__, Module.__getattr__
        proxies: dict[int, Proxy] = {}
        names = {id(p): name for name, p in self.root.named_parameters()}

        def module_getattr(module: Module, name: str) -> Any:
            """A parameter is read in the graph, once, so that computations on parameters alone are part of the graph."""
            value = read(module, name)
            if id(value) not in names:
                return value
            if id(value) not in proxies:
                proxies[id(value)] = tracer.create_proxy("get_attr", names[id(value)], (), {})
            return proxies[id(value)]

        def module_call(module: Module, *args: Any, **kwargs: Any) -> Any:
            return tracer.call_module(module, lambda *a, **k: call(module, *a, **k), args, kwargs)

        places = [*self._wrapped_places()]
        before = [space.get(name, _MISSING) for space, name in places]
        for (space, name), old in zip(places, before, strict=True):
            space[name] = self._keeping_whole(getattr(builtins, name, None) if old is _MISSING else old)
        _set_methods(Module, __call__=module_call, __getattr__=module_getattr)
        try:
            yield
        finally:
            _set_methods(Module, __call__=call, __getattr__=read)
            for (space, name), old in zip(places, before, strict=True):
                if old is _MISSING:
                    del space[name]
                else:
                    space[name] = old

    def _wrapped_places(self) -> Iterator[tuple[dict[str, Any], str]]:
        for module, name in LEAVES:
            if module in sys.modules:
                yield vars(sys.modules[module]), name
        for module, name in self._wrapped:
            yield vars(module), name

    def _keeping_whole(self, fn: Any) -> Callable[..., Any]:
        def kept(*args: Any, **kwargs: Any) -> Any:
            if holds_proxy((args, kwargs)):
                return self.create_proxy("call_function", fn, args, kwargs)
            return fn(*args, **kwargs)

        return kept


def symbolic_trace(root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None) -> GraphModule:
    """The GraphModule of a Module or function: its operations on its inputs, without its control flow.

    concrete_args: parameters with a fixed value.
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else getattr(root, "__name__", "GraphModule")
    return GraphModule(tracer.root, graph, name)


__all__ = ["Attribute", "Parameter", "Proxy", "Tracer", "symbolic_trace"]
