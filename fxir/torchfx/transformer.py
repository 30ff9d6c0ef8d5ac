"""`torch.fx.Transformer`: an Interpreter over proxies, which makes a new graph from an old graph."""

from __future__ import annotations

from typing import Any

from fxir.ir.graph import Graph
from fxir.ir.graph_module import GraphModule, Interpreter
from fxir.torchfx.proxy import Proxy
from fxir.torchfx.tracer import Tracer


class Transformer(Interpreter):
    """Subclass it and override a method per kind of node; `transform()` returns the new GraphModule."""

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.tracer = Tracer()
        self.new_graph = self.tracer.graph = Graph()

    def placeholder(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return Proxy(self.new_graph.create_node("placeholder", target, args), self.tracer)

    def get_attr(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.tracer.create_proxy("get_attr", target, (), {})

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def call_method(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.tracer.create_proxy("call_method", target, args, kwargs)

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.tracer.create_proxy("call_module", target, args, kwargs)

    def transform(self) -> GraphModule:
        """The new GraphModule, over the same parts."""
        self.new_graph.output(self.tracer.create_arg(self.run()))
        return GraphModule(self.module, self.new_graph, self.module.name)
