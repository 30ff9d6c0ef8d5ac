"""A graph: nodes in program order, the values it carries, and the edits that keep both consistent.

Owns `Graph` and `GraphSignature`. A graph is a straight line: every node reads only nodes before it.
"""

from __future__ import annotations

import builtins
import copy
import inspect
import keyword
import operator
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Final, Literal

from fxir.expr.rules import Sym
from fxir.ir.codegen import CodeGen, TransformCode
from fxir.ir.leaves import SIDE_EFFECTS
from fxir.ir.node import NO_INFO, Argument, Node, NodeInfo, Target, map_nodes
from fxir.ir.printer import PythonCode, format_spec, print_python
from fxir.ir.verifier import verify
from fxir.symbols.shapes import ShapeEnv, SymbolSource, simplified, symbols_in

# Root keys of tensors made while tracing (`eager.tensor([1, 2])`): nobody else can write to them.
FRESH: Final = "_constant"

# Python's own names, and what printed source refers to.
_RESERVED = frozenset([*keyword.kwlist, *keyword.softkwlist, *dir(builtins), "self", "OPS", "eager"])
_NOT_IDENTIFIER = re.compile(r"\W+", re.ASCII)
_TRAILING_NUMBER = re.compile(r"_\d+$")
_COLUMN = 60  # characters that a column of a listing may take


@dataclass(frozen=True, slots=True)
class GraphSignature:
    """How the flat inputs and outputs of a functional graph map to the program it came from.

    mutated_inputs: output k (for k < len(mutated_inputs)) is the new value of placeholder mutated_inputs[k].
    n_user_outputs: how many outputs follow for the caller. n_saved: how many follow those for the backward graph.
    parameters: placeholders that are nn.Parameters (their storage lives as long as the compiled call).

    may_write: a backend may write the mutated inputs itself. The callable it returns then has an attribute
    `writes_inputs = True`: it copies each new value into its input, bumps the input's version counter, and leaves
    those leading outputs out of what it returns.
    """

    mutated_inputs: tuple[int, ...] = ()
    n_user_outputs: int = 0
    n_saved: int = 0
    parameters: tuple[int, ...] = ()
    may_write: bool = False


class Graph:
    """An ordered list of Nodes ending in one output node.

    root: the values that "get_attr" and "call_module" nodes name (real tensors, modules).
    signature: set on functional graphs (see `GraphSignature`), None otherwise.
    symbols: where each symbol of its expressions (in specs and arguments) comes from. shapes: who decides about them
    while passes still run, None for a graph without symbols.
    version: grows with every edit; whoever caches something made from a graph compares it.
    """

    def __init__(self, root: dict[str, Any] | None = None) -> None:
        self.root: dict[str, Any] = {} if root is None else root
        self.signature: GraphSignature | None = None
        self.symbols: dict[Sym, SymbolSource] = {}
        self.shapes: ShapeEnv | None = None
        self.version = 0
        self._tracer_cls: type | None = None  # who traced it
        self._codegen = CodeGen()
        self._names: set[str] = set()
        self._counters: dict[str, int] = {}
        self._len = 0
        self._sentinel = Node.__new__(Node)
        self._sentinel.graph = self
        self._sentinel.name = "<end>"
        self._sentinel._prev = self._sentinel._next = self._sentinel
        self._sentinel._erased = False
        self._cursor = self._sentinel  # new nodes go in front of it

    # -- reading -----------------------------------------------------------------------------------------------
    @property
    def nodes(self) -> NodeList:
        """Nodes in order. Erasing the node just yielded, and inserting anywhere, are safe while iterating."""
        return NodeList(self)

    def __iter__(self) -> Iterator[Node]:
        node = self._sentinel._next
        while node is not self._sentinel:
            if not node._erased:
                yield node
            node = node._next

    def __reversed__(self) -> Iterator[Node]:
        node = self._sentinel._prev
        while node is not self._sentinel:
            if not node._erased:
                yield node
            node = node._prev

    def __len__(self) -> int:
        return self._len

    @property
    def placeholders(self) -> list[Node]:
        return self.find("placeholder")

    @property
    def output_node(self) -> Node:
        """The output node. Raises: ValueError when the graph has none yet."""
        last = self._sentinel._prev
        if last is self._sentinel or last.op != "output":
            raise ValueError("Graph: there is no output node yet; call graph.output(value) last")
        return last

    @property
    def outputs(self) -> tuple[Argument, ...]:
        """The flat outputs: the output value itself when it is a tuple or list, else a tuple of it."""
        value = self.output_node.args[0]
        return tuple(value) if isinstance(value, tuple | list) else (value,)

    def find(self, op: str, target: Target | None = None) -> list[Node]:
        """Nodes of one kind, and with one target where given, in order."""
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    def find_nodes(self, *, op: str, target: Target | None = None, sort: bool = True) -> list[Node]:
        """torch.fx's form of `find`."""
        return self.find(op, target)

    def lint(self) -> None:
        """Raise GraphError where the graph is not well formed. One made by hand gets its values with its GraphModule."""
        verify(self, carried=bool(self.root) or type(self.root) is not dict)

    def python_code(self, root_module: str = "self") -> PythonCode:
        """The source of the graph as a function `forward(self, ...)`. root_module: "self", the only name there is."""
        if root_module != "self":
            raise NotImplementedError(f"Graph.python_code: root_module={root_module!r}; allowed: 'self'")
        return print_python(self)

    def set_codegen(self, codegen: CodeGen) -> None:
        """Write the graph as `codegen` does from now on, and lay out the inputs and outputs of its runs so."""
        self._codegen = codegen
        self.touch()

    def on_generate_code(self, make_transformer: Callable[[TransformCode | None], TransformCode]) -> AbstractContextManager[None]:
        """Pass the lines of the function's body through what `make_transformer` returns, each time they are written.

        make_transformer: is called with the present transformer, or None. Result: a context manager that sets the present
        one again at its end; without `with` the new one stays.
        """
        codegen, before = self._codegen, self._codegen._body_transformer
        codegen._body_transformer = make_transformer(before)
        self.touch()

        @contextmanager
        def restore() -> Iterator[None]:
            try:
                yield
            finally:
                codegen._body_transformer = before
                self.touch()

        return restore()

    def process_inputs(self, *args: Any) -> Any:
        """The values of the placeholders, from the arguments of a run."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """The result of a run, from the output node's value."""
        return self._codegen.process_outputs(out)

    def print_tabular(self) -> None:
        """Print the nodes as a table: opcode, name, target, args, kwargs."""
        rows = [(n.op, n.name, _target_text(n), str(n.args), str(n.kwargs)) for n in self]
        head = ("opcode", "name", "target", "args", "kwargs")
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        for row in (head, tuple("-" * w for w in widths), *rows):
            print("  ".join(text.ljust(w) for text, w in zip(row, widths, strict=True)).rstrip())

    # -- making nodes ------------------------------------------------------------------------------------------
    def create_node(
        self,
        op: str,
        target: Target,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        name: str | None = None,
        type_expr: Any = None,
        *,
        info: NodeInfo = NO_INFO,
    ) -> Node:
        """Insert a node at the cursor (the end, unless inside `inserting_before`/`inserting_after`). type_expr: its `type`."""
        node = Node(self, self._unique_name(name or _name_hint(op, target)), op, target, args or (), kwargs or {}, info)
        node.type = type_expr
        self._link(node, self._cursor)
        return node

    def placeholder(
        self, name: str, type_expr: Any = None, default_value: Any = inspect.Signature.empty, *, info: NodeInfo = NO_INFO
    ) -> Node:
        """An input, with a default unless that is `Signature.empty`."""
        default = () if default_value is inspect.Signature.empty else (default_value,)
        return self.create_node("placeholder", name, default, None, name, type_expr, info=info)

    def get_attr(self, qualified_name: str, type_expr: Any = None, *, info: NodeInfo = NO_INFO) -> Node:
        """A read of `root[qualified_name]`."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr, info=info)

    def call_function(
        self,
        the_function: Callable[..., Any],
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
        name: str | None = None,
        *,
        info: NodeInfo = NO_INFO,
    ) -> Node:
        """the_function(*args, **kwargs)."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr, info=info)

    def call_method(
        self,
        method_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
        *,
        info: NodeInfo = NO_INFO,
    ) -> Node:
        """args[0].method_name(*args[1:], **kwargs)."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr, info=info)

    def call_module(
        self,
        module_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
        *,
        info: NodeInfo = NO_INFO,
    ) -> Node:
        """root[module_name](*args, **kwargs)."""
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr, info=info)

    def output(self, result: Argument, type_expr: Any = None, *, info: NodeInfo = NO_INFO) -> Node:
        """What the graph returns. Always the last node, whatever the cursor."""
        with self.inserting_before(self._sentinel):
            return self.create_node("output", "output", (result,), type_expr=type_expr, info=info)

    def add_constant(self, value: Any, hint: str = "_constant") -> str:
        """Put `value` in root under a fresh key starting with `hint`; returns the key."""
        k = 0
        while f"{hint}{k}" in self.root:
            k += 1
        self.root[f"{hint}{k}"] = value
        self.touch()
        return f"{hint}{k}"

    @contextmanager
    def inserting_before(self, n: Node | None = None) -> Iterator[None]:
        """New nodes go directly before `n` (None: before all) while the context is open."""
        previous, self._cursor = self._cursor, self._sentinel._next if n is None else n
        try:
            yield
        finally:
            self._cursor = previous

    @contextmanager
    def inserting_after(self, n: Node | None = None) -> Iterator[None]:
        """New nodes go after `n` (None: after all), in the order they are made, while the context is open."""
        with self.inserting_before(self._sentinel if n is None else n._next):
            yield

    # -- editing -----------------------------------------------------------------------------------------------
    def erase_node(self, node: Node) -> None:
        """Remove a node nobody uses. Raises: RuntimeError when it has users."""
        if node.users:
            readers = ", ".join(u.name for u in node.users)
            raise RuntimeError(f"Graph.erase_node: {node.name} is used by {readers}; replace those uses first")
        if node._erased:
            return
        node._set_arguments((), {})
        node._prev._next, node._next._prev = node._next, node._prev
        node._erased = True
        # _next stays, so that an iteration standing on this node can go on.
        if self._cursor is node:
            self._cursor = node._next
        self._len -= 1
        self._names.discard(node.name)
        self.touch()

    def move_before(self, node: Node, anchor: Node) -> None:
        """Take `node` from where it is and put it directly before `anchor`."""
        if node is anchor:
            return
        node._prev._next, node._next._prev = node._next, node._prev
        self._len -= 1
        self._link(node, anchor)

    def is_effectful(self, node: Node) -> bool:
        """Whether erasing a node without users could be noticed."""
        return is_effectful(node)

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> int:
        """Erase nodes whose value nobody uses and whose call has no effect; returns how many.

        is_impure_node: who says which nodes stay for their effect, by default the ops' own declarations. Inputs and the
        output stay.
        """
        erased = 0
        for node in reversed(self):
            stays = is_effectful(node) if is_impure_node is None else node.op in ("placeholder", "output") or is_impure_node(node)
            if not node.users and not stays:
                self.erase_node(node)
                erased += 1
        return erased

    def copy_from(self, other: Graph, env: dict[Node, Argument]) -> Argument:
        """Append other's nodes (those not already in `env`), filling `env`; returns other's output value, mapped.

        Values that `other` carries in root are carried over; a key that names something else here is renamed.
        """
        renamed: dict[str, str] = {}
        for node in other.nodes:
            if node in env:
                continue
            if node.op == "output":
                return map_nodes(node.args[0], env.__getitem__)
            env[node] = self.copy_node(node, env.__getitem__)
            if node.op in ("get_attr", "call_module"):
                key = str(node.target)
                if key not in renamed:
                    value = other.root[key]
                    clash = key in self.root and self.root[key] is not value
                    renamed[key] = self.add_constant(value, f"{key}_") if clash else key
                    self.root[renamed[key]] = value
                env[node].target = renamed[key]
        return None

    def copy_node(self, node: Node, fn: Callable[[Node], Argument]) -> Node:
        """A copy of `node` at the cursor, its node arguments passed through `fn`. Does not copy root values."""
        return self.create_node(
            node.op, node.target, map_nodes(node.args, fn), map_nodes(node.kwargs, fn), node.name, node.type, info=node.info
        )

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Argument] = lambda n: n) -> Node:
        """torch.fx's form of `copy_node`: with the `meta` that others put on the node."""
        new = self.copy_node(node, arg_transform)
        new.meta = dict(node.meta)
        return new

    def graph_copy(self, g: Graph, val_map: dict[Node, Argument], return_output_node: bool = False) -> Argument:
        """torch.fx's form of `copy_from`; with `return_output_node`, also the output node of `g`."""
        value = self.copy_from(g, val_map)
        return (value, g.output_node) if return_output_node else value

    def __deepcopy__(self, memo: dict[int, Any]) -> Graph:
        return self.copy()

    def copy(self) -> Graph:
        """An equal graph of new nodes over a new root dict (the values in it are shared)."""
        new = Graph(dict(self.root))
        env: dict[Node, Argument] = {}
        value = new.copy_from(self, env)
        last = self._sentinel._prev
        if last is not self._sentinel and last.op == "output":
            new.output(value, info=last.info)
        new.signature = self.signature
        new.symbols, new.shapes = dict(self.symbols), self.shapes
        new._codegen = copy.copy(self._codegen)
        return new

    # -- symbols -----------------------------------------------------------------------------------------------
    def used_symbols(self) -> set[Sym]:
        """The symbols in specs and arguments."""
        found: set[Sym] = set()
        for node in self.nodes:
            found |= symbols_in(node.info.spec) | symbols_in(node.args) | symbols_in(node.kwargs)
        return found

    def settle_symbols(self) -> set[Sym]:
        """Replace symbols that were found equal to something by it everywhere, then as `find_symbols`."""
        if self.shapes is None:
            return set()
        for node in self.nodes:
            node.info = node.info.with_(spec=simplified(node.info.spec, self.shapes))
            if symbols_in((node.args, node.kwargs)):
                node._set_arguments(simplified(node.args, self.shapes), simplified(node.kwargs, self.shapes))
        return self.find_symbols()

    def add_number_input(self, s: Sym, kind: Literal["int", "float"]) -> Node:
        """A placeholder after the others for a number that is the symbol `s`."""
        before = self.placeholders
        with self.inserting_before(before[-1].next if before else self._sentinel.next):
            node = self.placeholder(s.name)
        self.symbols[s] = SymbolSource(kind, len(before))
        return node

    def find_symbols(self) -> set[Sym]:
        """Fill `symbols` from the sizes and strides of the placeholders (those of numbers are entered by their maker).

        Returns the symbols in use that no placeholder tells.
        """
        told, used = self.told_symbols(), self.used_symbols()
        self.symbols = {s: source for s, source in told.items() if s in used or source.is_number}
        return used - told.keys()

    def told_symbols(self) -> dict[Sym, SymbolSource]:
        """Every symbol that the placeholders tell, whether or not it is in use."""
        found = {s: source for s, source in self.symbols.items() if source.is_number}
        for i, node in enumerate(self.placeholders):
            if not hasattr(node.info.spec, "shape"):
                continue
            shape, strides = node.info.spec.shape, node.info.spec.strides  # type: ignore[union-attr]
            for dim, value in enumerate(shape):
                if isinstance(value, Sym):
                    found.setdefault(value, SymbolSource("size", i, dim))
            for dim, (size, value) in enumerate(zip(shape, strides, strict=True)):
                # The stride of a dim of one element is whatever it is: nobody who made the tensor was bound to the law.
                if isinstance(value, Sym) and (size if isinstance(size, int) else size.lo) > 1:
                    found.setdefault(value, SymbolSource("stride", i, dim))
        return found

    def touch(self) -> None:
        """Note an edit (see `version`)."""
        self.version += 1

    def _link(self, node: Node, before: Node) -> None:
        node._prev, node._next = before._prev, before
        before._prev._next = node
        before._prev = node
        self._len += 1
        self.touch()

    def _unique_name(self, hint: str) -> str:
        base = _NOT_IDENTIFIER.sub("_", hint.strip("_") if hint.startswith("__") else hint).rstrip("_") or "value"
        if base[0].isdigit():
            base = f"_{base}"
        name = base
        if name in _RESERVED or name in self._names:
            stem = _TRAILING_NUMBER.sub("", base) or base
            count = self._counters.get(stem, 0)
            while True:
                count += 1
                name = f"{stem}_{count}"
                if name not in self._names:
                    break
            self._counters[stem] = count
        self._names.add(name)
        return name

    def __str__(self) -> str:
        """A listing for logs, one node a line; `fxir.ir.printer` makes the runnable form."""
        rows = [_listing(node) for node in self.nodes]
        # What follows no call, on the output's line, does not widen that column.
        widths = [max((len(row[i]) for row in rows if i < 2 or row[3]), default=0) for i in range(3)]
        return "\n".join(_aligned(row, widths) for row in rows)


class NodeList:
    """The nodes of a graph as they are at the moment: to be iterated, reversed, counted."""

    __slots__ = ("_graph",)

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def __iter__(self) -> Iterator[Node]:
        return iter(self._graph)

    def __reversed__(self) -> Iterator[Node]:
        return reversed(self._graph)

    def __len__(self) -> int:
        return len(self._graph)

    def __contains__(self, node: object) -> bool:
        return any(n is node for n in self._graph)


def _target_text(node: Node) -> str:
    return node.target if isinstance(node.target, str) else str(node.target)


def _listing(node: Node) -> tuple[str, str, str, str]:
    """Name, kind, call and what it gives."""
    target = node.target if isinstance(node.target, str) else _name_hint(node.op, node.target)
    if node.op == "placeholder" and not node.args:
        call = target if target != node.name else ""
    else:
        arguments = [repr(a) for a in node.args] + [f"{k}={v!r}" for k, v in node.kwargs.items()]
        call = f"{target}({', '.join(arguments)})"
    return node.name, node.op, call, "" if node.info.spec is None else format_spec(node.info.spec)


def _aligned(row: tuple[str, str, str, str], widths: list[int]) -> str:
    # One long call must not push all specs out of sight.
    name, op, call = (text.ljust(min(width, _COLUMN)) for text, width in zip(row, widths, strict=False))
    return f"{name} = {op} {call}  # {row[3]}" if row[3] else f"{name} = {op} {row[2]}"


def _name_hint(op: str, target: Target) -> str:
    if isinstance(target, str):
        return target.replace(".", "_")
    names = (getattr(target, "name", None), getattr(target, "__name__", None), type(target).__name__)
    return next(name for name in names if isinstance(name, str)).replace(".", "_")


_PURE_FUNCTIONS: frozenset[Any] = frozenset(
    [
        *(operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow),
        *(operator.matmul, operator.neg, operator.pos, operator.abs, operator.invert, operator.and_, operator.or_),
        *(operator.xor, operator.lshift, operator.rshift, operator.eq, operator.ne, operator.lt, operator.le),
        *(operator.gt, operator.ge, operator.getitem, operator.not_, operator.truth, operator.is_, operator.is_not),
        *(operator.contains, operator.index, getattr),
    ]
)
_EFFECT_KINDS = frozenset({"INPLACE", "EFFECT"})


def is_effectful(node: Node) -> bool:
    """Whether erasing `node`, which has no users, could be noticed.

    Ops tell by their kind (in-place and effect ones), methods by their name, modules by their `_is_impure`, as in torch.fx.
    Of other callables only Python's operators are known to be pure; anything else is kept.
    """
    if node.op in ("placeholder", "output"):
        return True
    if node.op == "get_attr":
        return False
    if node.op == "call_method":
        return str(node.target).endswith("_")
    if node.op == "call_module":
        name, root = str(node.target), node.graph.root
        return name not in root or bool(getattr(root[name], "_is_impure", False))
    if node.target in SIDE_EFFECTS:
        return True
    schema = getattr(node.target, "_schema", None)
    if schema is not None:  # an overload of torch.ops
        return bool(schema.is_mutable)
    kind = getattr(node.target, "kind", None)
    if kind is not None and hasattr(kind, "name"):
        return kind.name in _EFFECT_KINDS
    return node.target not in _PURE_FUNCTIONS
