"""Runs a graph node by node. A subclass overrides one method per node kind to change what a node does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fxir.expr.rules import Sym
from fxir.ir.graph import Graph
from fxir.ir.graph_module import GraphModule
from fxir.ir.node import Argument, Node, map_nodes, walk_nodes
from fxir.symbols.shapes import bound


class Interpreter:
    """Executes a graph over real (or fake) values.

    A value is dropped after its last use. While a node runs, `self.node` is that node.

    garbage_collect_values: False keeps all values in `self.env` until the next run. graph: the graph to run, by default the
    module's.
    """

    def __init__(
        self, module: GraphModule | Graph, garbage_collect_values: bool = True, graph: Graph | None = None
    ) -> None:
        self.module = module if isinstance(module, GraphModule) else GraphModule(module.root, module)
        self.graph = self.module.graph if graph is None else graph
        self.garbage_collect_values = garbage_collect_values
        self.env: dict[Node, Any] = {}
        self.node: Node | None = None
        self._args: Iterator[Any] = iter(())
        self._symbols: dict[Sym, Any] = {}  # symbol -> value, read from the inputs of this run
        self._dead: dict[Node, list[Node]] = {}
        self._dead_version = -1

    def run(self, *args: Any, initial_env: dict[Node, Any] | None = None, enable_io_processing: bool = True) -> Any:
        """The graph's output for `args`, one per placeholder (a missing argument gets the placeholder's default).

        initial_env: values of nodes that do not need to run. enable_io_processing: whether the graph's CodeGen converts the
        arguments and the result.

        Raises: TypeError for a wrong number of arguments; any error that a node raises.
        """
        if enable_io_processing:
            args = tuple(self.graph.process_inputs(*args))
        n_inputs = len(self.graph.placeholders)
        if len(args) > n_inputs:
            raise TypeError(f"Interpreter.run: the graph takes {n_inputs} arguments, {len(args)} were given")
        if self._dead_version != self.graph.version:
            self._dead = _last_uses(self.graph)
            self._dead_version = self.graph.version
        self._args = iter(args)
        self._symbols = {s: source.read(args) for s, source in self.graph.symbols.items()}
        self.env = {} if initial_env is None else dict(initial_env)
        try:
            for node in self.graph.nodes:
                if node in self.env:
                    continue
                self.node = node
                value = self.run_node(node)
                if node.op == "output":
                    return self.graph.process_outputs(value) if enable_io_processing else value
                self.env[node] = value
                for used in self._dead.get(node, ()) if self.garbage_collect_values else ():
                    del self.env[used]
            return None
        finally:
            if self.garbage_collect_values:
                self.env = {}
            self.node = None

    def run_node(self, node: Node) -> Any:
        """Run a node by its kind, with its arguments replaced by their values."""
        args = tuple(self.fetch(a) for a in node.args)
        kwargs = {k: self.fetch(v) for k, v in node.kwargs.items()}
        return getattr(self, node.op)(node.target, args, kwargs)

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of `n` with nodes replaced by their values."""
        return tuple(map(self.fetch, n.args)), {k: self.fetch(v) for k, v in n.kwargs.items()}

    def fetch_attr(self, target: str) -> Any:
        """The value that the graph carries under `target`."""
        return self.graph.root[target]

    def fetch(self, arg: Argument) -> Any:
        """`arg` with nodes, and expressions of symbols, replaced by their values."""
        if self._symbols:
            arg = bound(arg, self._symbols)
        return map_nodes(arg, self.env.__getitem__)

    # -- one method per node kind ------------------------------------------------------------------------------
    def placeholder(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        for value in self._args:
            return value
        if args:
            return args[0]
        raise TypeError(f"Interpreter.run: no argument was given for input {target!r}, which has no default")

    def get_attr(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.graph.root[target]

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return target(*args, **kwargs)

    def call_method(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return getattr(args[0], target)(*args[1:], **kwargs)

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.graph.root[target](*args, **kwargs)

    def output(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return args[0]


def _last_uses(graph: Graph) -> dict[Node, list[Node]]:
    """For each node, the nodes whose last reader it is (including itself, if it has no readers)."""
    seen: set[Node] = set()
    dead: dict[Node, list[Node]] = {}
    for node in reversed(graph.in_order()):
        if node.op != "output" and not node.users:
            dead.setdefault(node, []).append(node)
        for used in dict.fromkeys(walk_nodes((node.args, node.kwargs))):
            if used not in seen:
                seen.add(used)
                dead.setdefault(node, []).append(used)
    return dead
