"""A graph one can call: `GraphModule` compiles the printed source once and again after each edit."""

from __future__ import annotations

import itertools
import linecache
import weakref
from collections.abc import Callable
from typing import Any

from fxir.graph import Graph
from fxir.printer import PythonCode, print_python

_serial = itertools.count()


class GraphModule:
    """A graph with the values it carries, callable with one argument per placeholder.

    root: what get_attr and call_module nodes name; the same dict as `graph.root`.
    The printed source is in `code` (and in linecache, so tracebacks show it).
    """

    def __init__(self, root: dict[str, Any], graph: Graph, name: str = "GraphModule") -> None:
        graph.root = root
        self.graph = graph
        self.name = name
        self._code: PythonCode | None = None
        self._forward: Callable[..., Any] | None = None
        self._version = -1

    @property
    def root(self) -> dict[str, Any]:
        return self.graph.root

    @property
    def code(self) -> str:
        """The source that runs. An edit of the graph shows at once."""
        if self._code is None or self._version != self.graph.version:
            self.recompile()
        assert self._code is not None
        return self._code.source

    @property
    def forward(self) -> Callable[..., Any]:
        """The compiled function; its first argument is this GraphModule."""
        if self._forward is None or self._version != self.graph.version:
            self.recompile()
        assert self._forward is not None
        return self._forward

    def recompile(self) -> PythonCode:
        """Print and compile the graph as it is now."""
        self._version = self.graph.version
        self._code = print_python(self.graph, free=True)
        filename = f"<{self.name}.{next(_serial)}>"
        source = self._code.source
        linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
        namespace: dict[str, Any] = dict(self._code.globals)
        exec(compile(source, filename, "exec"), namespace)
        self._forward = namespace["forward"]
        weakref.finalize(self._forward, linecache.cache.pop, filename, None).atexit = False
        return self._code

    def readable(self) -> str:
        """The source with specs and the user's lines as comments."""
        return print_python(self.graph, annotate=True).source

    def print_readable(self) -> str:
        """Print `readable()`, and return it."""
        text = f"# {self.name}\n{self.readable()}"
        print(text)
        return text

    def __call__(self, *args: Any) -> Any:
        return self.forward(self, *args)

    def __repr__(self) -> str:
        return f"GraphModule({self.name}, {len(self.graph)} nodes, {len(self.root)} carried values)"
