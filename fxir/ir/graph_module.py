"""A callable graph: `GraphModule` compiles the printed source once, and again after each edit of the graph.

`Interpreter` runs the graph node by node instead. A subclass overrides one method per node kind to change what a node does.
"""

from __future__ import annotations

import itertools
import linecache
import os
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from types import MethodType
from typing import Any, Final

from eager._tensor.tensor import Tensor
from eager.nn import Module, Parameter
from fxir.expr.rules import Sym
from fxir.ir.folder import write_folder
from fxir.ir.graph import CodeGen, Graph
from fxir.ir.node import Argument, Node, map_nodes, walk_nodes
from fxir.ir.pickling import pack, unpack
from fxir.ir.printer import PythonCode, print_python
from fxir.ir.verifier import verify
from fxir.symbols.shapes import bound

_serial = itertools.count()


class _Carried(dict[str, Any]):
    """The values of a graph over a Module: every attribute path of the module is a key."""

    def __init__(self, owner: Module) -> None:
        super().__init__()
        self._owner = weakref.ref(owner)

    def __missing__(self, key: str) -> Any:
        value: Any = self._owner()
        for part in key.split("."):
            value = getattr(value, part, None)
        if value is None:
            raise KeyError(key)
        return value

    def __contains__(self, key: object) -> bool:
        if not isinstance(key, str):
            return False
        try:
            self[key]
        except KeyError:
            return False
        return True


class _Parts(Module):
    """The parts of a GraphModule over a Module, for pickling."""

    def __init__(self, owner: Module) -> None:
        super().__init__()
        for registry in ("_modules", "_parameters", "_buffers"):
            getattr(self, registry).update(getattr(owner, registry))
        kept = {k: v for k, v in vars(owner).items() if k not in vars(self) and k not in _OWN}
        self.__dict__.update(kept, training=owner.training)


_OWN: Final = frozenset("_graph name _code _forward _version".split())


def _unpickled(root: Any, nodes: Any, name: str, codegen: CodeGen | None = None) -> GraphModule:
    graph = unpack(nodes, {} if isinstance(root, Module) else root)
    if codegen is not None:
        graph.set_codegen(codegen)
    return GraphModule(root, graph, name)


class GraphModule(Module):
    """A graph with the values it carries, callable with one argument per placeholder.

    root: the values that get_attr and call_module nodes name, as a dict by key (which becomes `graph.root`), or as a Module,
    whose parts become parts of this module. The printed source is in `code` (and in linecache, so that tracebacks show it). An
    edit of the graph takes effect at the next call without `recompile()`.
    """

    def __init__(self, root: dict[str, Any] | Module, graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        # These attributes bypass Module.__setattr__: they change no compiled function that runs this module.
        self.__dict__.update(_graph=graph, name=class_name, _code=None, _forward=None, _version=-1)
        if isinstance(root, Module):
            self._adopt(root)
            graph.root = _Carried(self)
        else:
            graph.root = root

    def _adopt(self, root: Module) -> None:
        for node in self._graph.in_order():
            if node.op not in ("get_attr", "call_module"):
                continue
            name = str(node.target).partition(".")[0]
            for registry in ("_modules", "_parameters", "_buffers"):
                entries = getattr(root, registry)
                if name in entries:
                    getattr(self, registry)[name] = entries[name]
                    break
            else:
                self.__dict__[name] = getattr(root, name)
        self.__dict__["training"] = root.training

    @property
    def graph(self) -> Graph:
        graph: Graph = self.__dict__["_graph"]
        return graph

    @graph.setter
    def graph(self, graph: Graph) -> None:
        if "_graph" not in self.__dict__:  # of a subclass that creates its parts itself
            self.__dict__.update(_graph=graph, name=type(self).__name__, _code=None, _forward=None)
            graph.root = _Carried(self)
        carried = self.graph.root
        graph.root = _Carried(self) if isinstance(carried, _Carried) else {**carried, **graph.root}
        self.__dict__.update(_graph=graph, _version=-1)

    @property
    def root(self) -> dict[str, Any]:
        return self.graph.root

    @property
    def code(self) -> str:
        """The source of the compiled function."""
        self._compiled()
        code: PythonCode = self._code
        return code.source

    @property
    def forward(self) -> Callable[..., Any]:  # type: ignore[override]
        """The compiled function, bound: it takes one argument per placeholder."""
        return MethodType(self._compiled(), self)

    def _compiled(self) -> Callable[..., Any]:
        if self._forward is None or self._version != self.graph.version:
            self.recompile()
        forward: Callable[..., Any] = self._forward
        return forward

    def recompile(self) -> PythonCode:
        """Print and compile the current graph."""
        code = print_python(self.graph, free=True)
        filename = f"<{self.name}.{next(_serial)}>"
        linecache.cache[filename] = (len(code.source), None, code.source.splitlines(True), filename)
        namespace: dict[str, Any] = dict(code.globals)
        exec(compile(code.source, filename, "exec"), namespace)
        forward = namespace["forward"]
        self.__dict__.update(_code=code, _forward=forward, _version=self.graph.version)
        weakref.finalize(forward, linecache.cache.pop, filename, None).atexit = False
        return code

    def readable(self) -> str:
        """The source with specs and the user's lines as comments."""
        return print_python(self.graph, annotate=True).source

    def print_readable(self, print_output: bool = True, **style: Any) -> str:
        """Print `readable()` (unless print_output is False), and return it. style: torch's options, which have no effect here."""
        text = f"# {self.name}\n{self.readable()}"
        if print_output:
            print(text)
        return text

    def to_folder(self, folder: str | os.PathLike[str], module_name: str = "FxModule") -> None:
        """Write the module as a package: `from folder import FxModule` gives its class, which loads the values it carries.

        Warns of submodules that are stored as pickles. Raises: NotImplementedError if the source reads a value without an
        importable name.
        """
        code = print_python(self.graph, attributes=isinstance(self.graph.root, _Carried))
        write_folder(self, code, None if isinstance(self.graph.root, _Carried) else dict(self.graph.root), Path(folder), module_name)

    def add_submodule(self, target: str, m: Module) -> bool:
        """Add `m` under the dotted name `target`, for call_module nodes. Result: False if part of the path is not a Module."""
        if not isinstance(self.graph.root, _Carried):
            self.graph.root[target] = m
            return True
        *path, name = target.split(".")
        owner: Any = self
        for part in path:
            owner = owner._modules.setdefault(part, Module()) if isinstance(owner, Module) else None
        if not isinstance(owner, Module):
            return False
        owner.add_module(name, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Delete the submodule with that dotted name. Result: False if it does not exist."""
        if not isinstance(self.graph.root, _Carried):
            return isinstance(self.graph.root.get(target), Module) and self.graph.root.pop(target) is not None
        parent, _, name = target.rpartition(".")
        try:
            owner = self.get_submodule(parent)
        except AttributeError:
            return False
        if not isinstance(owner._modules.get(name), Module):
            return False
        delattr(owner, name)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Delete every submodule that no node names and that contains no module or tensor that a node names."""
        used = [str(n.target) for n in self.graph.in_order() if n.op in ("call_module", "get_attr")]
        for name in [n for n, _ in self.named_modules() if n]:
            if not any(f"{target}.".startswith(f"{name}.") or f"{name}.".startswith(f"{target}.") for target in used):
                self.delete_submodule(name)

    def lint(self) -> None:
        """Raise GraphError if the graph is not well formed."""
        verify(self.graph)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            root = self.__dict__["_graph"].root if "_graph" in self.__dict__ else {}
            if isinstance(root, _Carried) or name not in root:
                raise
            return root[name]

    def __setattr__(self, name: str, value: Any) -> None:
        root = self.__dict__["_graph"].root if "_graph" in self.__dict__ else None
        if name == "graph":
            object.__setattr__(self, name, value)
        elif root is None or isinstance(root, _Carried) or not isinstance(value, Module | Parameter):
            super().__setattr__(name, value)
        else:
            root[name] = value

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphModule:
        new = GraphModule(dict(self.graph.root), self.graph.copy(), self.name)
        if isinstance(self.graph.root, _Carried):
            new._adopt(self)
            new.graph.root = _Carried(new)
        return new

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled by the nodes and the values they name, and by the module's own parts if it has any."""
        root = self.graph.root
        carried: Any = _Parts(self) if isinstance(root, _Carried) else dict(root)
        codegen = self.graph._codegen
        own = () if type(codegen) is CodeGen and codegen._body_transformer is None else (codegen,)
        return _unpickled, (carried, pack(self.graph), self.name, *own)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._compiled()(self, *args, **kwargs)

    def __repr__(self) -> str:
        return f"GraphModule({self.name}, {len(self.graph)} nodes, {len(self.root)} carried values)"


# torch.fx's names, which subclasses in other libraries use.

_USER_PRESERVED_ATTRIBUTES_KEY: Final = "_user_preserved_attributes"  # keys of `meta` that a copy keeps


class _CodeOnlyModule(Module):
    """A module with these attributes only: the source from which unpickling and copying make a GraphModule."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__ = body


def _copy_attr(from_module: Module, to_module: Module, target: str) -> None:
    """Set the attribute `target` ("part.of.it") of `from_module` on `to_module`, creating empty modules on the path."""
    *path, name = target.split(".")
    for part in path:
        from_module = getattr(from_module, part)
        if not isinstance(getattr(to_module, part, None), Module):
            setattr(to_module, part, Module())
        to_module = getattr(to_module, part)
    value = getattr(from_module, name)
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        to_module.register_buffer(name, value)
    else:
        setattr(to_module, name, value)


# -- node by node --------------------------------------------------------------------------------------------------
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
