"""The graph: makes, copies and erases nodes and keeps symbols consistent.

Owns `Graph`, with torch.fx's methods, and the functions that add op calls with inferred specs to a functional graph; `node_sequence`
owns the links between nodes. A graph is a straight line without control flow.
"""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final, Literal

from eager.base.device import device
from eager.base.spec import TensorSpec, is_contiguous, is_dense
from eager.optable.table import OPS, Op
from fxir.base.origin import Origin
from fxir.expr.rules import Sym
from fxir.ir.listing import table
from fxir.ir.node import NO_INFO, Argument, Node, NodeInfo, Target, map_nodes, name_hint
from fxir.ir.node_sequence import CodeGen, GraphSignature, NodeList, NodeSequence, TransformCode
from fxir.ir.printer import PythonCode, print_python
from fxir.ir.verifier import verify
from fxir.symbols.shapes import ShapeEnv, SymbolSource, lifted, plain, simplified, symbols_in

__all__ = ["FRESH", "CodeGen", "Graph", "GraphSignature", "NodeList", "PythonCode"]

# Root keys of tensors that the trace created (`eager.tensor([1, 2])`): no other code can write to them.
FRESH: Final = "_constant"


class Graph(NodeSequence):
    """An ordered list of Nodes ending in one output node, with torch.fx's methods. `NodeSequence` documents its attributes."""

    # -- torch.fx's readers ------------------------------------------------------------------------------------
    def find_nodes(self, *, op: str, target: Target | None = None, sort: bool = True) -> list[Node]:
        """torch.fx's form of `find`."""
        return self.find(op, target)

    def lint(self) -> None:
        """Raise GraphError if the graph is not well formed.

        The values that nodes name are not checked while `root` is an empty dict: a GraphModule sets them later.
        """
        verify(self, carried=bool(self.root) or type(self.root) is not dict)

    def python_code(self, root_module: str = "self") -> PythonCode:
        """The source of the graph as a function `forward(self, ...)`.

        Raises: NotImplementedError if root_module is not "self".
        """
        if root_module != "self":
            raise NotImplementedError(f"Graph.python_code: root_module={root_module!r}; allowed: 'self'")
        return print_python(self)

    def set_codegen(self, codegen: CodeGen) -> None:
        """Print the graph with `codegen` from now on, and convert the inputs and outputs of its runs with it."""
        self._codegen = codegen
        self.touch()

    def on_generate_code(self, make_transformer: Callable[[TransformCode | None], TransformCode]) -> AbstractContextManager[None]:
        """Install a transformer of the printed function body's lines.

        make_transformer: takes the current transformer or None, returns the new transformer. Result: a context manager whose exit
        restores the previous transformer; without `with` the new transformer stays.
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
        print(table(self))

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
        """Insert a node at the cursor: the end of the graph, unless inside `inserting_before` or `inserting_after`.

        type_expr: the node's `type`.
        """
        node = Node(self, self._names.take(name or name_hint(target)), op, target, args or (), kwargs or {}, info)
        node.type = type_expr
        self._link(node, self._cursor)
        return node

    def placeholder(
        self, name: str, type_expr: Any = None, default_value: Any = inspect.Signature.empty, *, info: NodeInfo = NO_INFO
    ) -> Node:
        """An input. default_value: its default, or `Signature.empty` for none."""
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
        """The node that returns `result`; it becomes the last node wherever the cursor is."""
        with self.inserting_before(self._sentinel):
            return self.create_node("output", "output", (result,), type_expr=type_expr, info=info)

    def add_constant(self, value: Any, hint: str = "_constant") -> str:
        """Add `value` to `root` under a new key that starts with `hint`; returns the key."""
        k = 0
        while f"{hint}{k}" in self.root:
            k += 1
        self.root[f"{hint}{k}"] = value
        self.touch()
        return f"{hint}{k}"

    # -- editing -----------------------------------------------------------------------------------------------
    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> int:
        """Erase nodes that have no users and no effect; returns their number. Inputs and the output stay.

        is_impure_node: decides whether a node has an effect; by default `is_effectful` does.
        """
        erased = 0
        for node in reversed(self.in_order()):
            if is_impure_node is None:
                stays = bool(node.users) or self.is_effectful(node)
            else:
                stays = node.op in ("placeholder", "output") or is_impure_node(node) or bool(node.users)
            if not stays:
                self.erase_node(node)
                erased += 1
        return erased

    def copy_from(self, other: Graph, env: dict[Node, Argument]) -> Argument:
        """Append copies of other's nodes and return other's output value in terms of the copies.

        env: node of `other` -> node here; nodes that it already has are not copied, and each copy is added to it.
        Values in other's `root` are added to this root; a key that already names another value here is renamed.
        """
        renamed: dict[str, str] = {}
        for node in other.in_order():
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
        """Insert a copy of `node` at the cursor, with `fn` applied to its node arguments. Copies no value in `root`."""
        return self.create_node(
            node.op, node.target, map_nodes(node.args, fn), map_nodes(node.kwargs, fn), node.name, node.type, info=node.info
        )

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Argument] = lambda n: n) -> Node:
        """torch.fx's form of `copy_node`: it copies `meta` too."""
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
    def settle_symbols(self) -> set[Sym]:
        """Replace each symbol that is known to equal another expression by that expression, then call `find_symbols`."""
        if self.shapes is None:
            return set()
        for node in self.in_order():
            node.info = node.info.with_(spec=simplified(node.info.spec, self.shapes))
            if symbols_in((node.args, node.kwargs)):
                node._set_arguments(simplified(node.args, self.shapes), simplified(node.kwargs, self.shapes))
        return self.find_symbols()

    def add_number_input(self, s: Sym, kind: Literal["int", "float"]) -> Node:
        """Add a placeholder, after the others, for the number that the symbol `s` stands for."""
        before = self.placeholders
        with self.inserting_before(before[-1].next if before else self._sentinel.next):
            node = self.placeholder(s.name)
        self.symbols[s] = SymbolSource(kind, len(before))
        return node

    def find_symbols(self) -> set[Sym]:
        """Fill `symbols` from the sizes and strides of the placeholders (`add_number_input` enters number inputs).

        Returns the used symbols that no placeholder gives.
        """
        found, used = self.input_symbols(), self.used_symbols()
        self.symbols = {s: source for s, source in found.items() if s in used or source.is_number}
        return used - found.keys()


# -- op calls with inferred specs, and idioms of several ops --------------------------------------------------------
def infer(op: Op, args: tuple[Argument, ...], shapes: ShapeEnv | None = None) -> Any:
    """The spec(s) of op(*args), for nodes by their specs. Raises: the error of the op's meta rule.

    shapes: the environment of the symbols in `args`, if there are any.
    """
    specs = map_nodes(args, lambda n: n.info.spec)
    return op.infer(*specs) if shapes is None else plain(op.infer(*lifted(specs, shapes)))


def emit(graph: Graph, op: Op, *args: Argument, origin: Origin | None = None, name: str | None = None) -> Node:
    """Add a call of `op` at the cursor. args: all arguments, in schema order."""
    if graph.shapes is not None:
        args = plain(args)
    return graph.call_function(op, args, name=name, info=NodeInfo(infer(op, args, graph.shapes), origin))


def specs_of(node: Node) -> list[TensorSpec]:
    """The specs of the tensors that a node results in."""
    found = node.info.spec
    return [s for s in (found if isinstance(found, tuple) else (found,)) if isinstance(s, TensorSpec)]


def devices_of(graph: Graph) -> set[device]:
    """The devices of a graph's tensors."""
    return {s.device for node in graph.in_order() for s in specs_of(node)}


def spec(node: Node) -> TensorSpec:
    """The spec of a node that is one tensor."""
    found = node.info.spec
    if node.graph.shapes is not None:
        found = simplified(found, node.graph.shapes)
    assert isinstance(found, TensorSpec), f"{node.name} has no tensor spec: {found}"
    return found


def emit_reshape(graph: Graph, x: Node, shape: tuple[int, ...]) -> Node:
    """The elements of `x` in row-major order as `shape`: a view if the layout allows it, else a view of a copy."""
    have = spec(x)
    if have.shape == shape:  # symbolic sizes compare as expressions; if equality is not provable, the view's rule decides
        return x
    if not is_contiguous(have.shape, have.strides):
        try:
            return emit(graph, OPS["view"], x, shape)
        except RuntimeError:  # torch's class for "view size is not compatible with the strides"
            x = emit(graph, OPS["clone"], x, "contiguous")
    return emit(graph, OPS["view"], x, shape)


def emit_layout(graph: Graph, x: Node, strides: tuple[int, ...]) -> Node:
    """`x` with the given dense strides: itself, or a copy. Raises NotImplementedError for strides with gaps."""
    have = spec(x)
    if same_layout(have.shape, have.strides, strides):
        return x
    order = _packed_order(have.shape, strides, graph.shapes)
    if order is None:
        shape, wanted = lifted((have.shape, strides), graph.shapes)
        if not is_dense(shape, wanted):
            raise NotImplementedError(f"fxir: a copy of {x.name} with strides {strides}, which are not dense")
        order = _falling(shape, wanted)
    if order == tuple(range(have.ndim)):
        return emit(graph, OPS["clone"], x, "contiguous")
    inverse = tuple(order.index(d) for d in range(have.ndim))
    inner = emit(graph, OPS["clone"], emit(graph, OPS["permute"], x, order), "contiguous")
    return emit(graph, OPS["permute"], inner, inverse)


def _packed_order(shape: tuple[int, ...], strides: tuple[int, ...], shapes: ShapeEnv | None) -> tuple[int, ...] | None:
    """The dims from the outermost in, if the strides are a packed tensor's in this order for all values of the symbols.

    The order is guessed from the current values and then proved, so that no decision is needed. A guard on the order of two
    strides would come too late for a graph that is derived from another graph, and without that it carries no information.
    """
    if shapes is None:
        return None
    order = _falling([shapes.hint(n) for n in shape], [shapes.hint(s) for s in strides])
    step: Any = 1
    for d in reversed(order):
        if strides[d] != step:
            return None
        step = step * shape[d]
    return order


def _falling(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, ...]:
    """Dims by falling stride; among equal strides the larger extent is outer."""
    return tuple(sorted(range(len(shape)), key=lambda d: (-strides[d], -shape[d], d)))


def same_layout(shape: tuple[int, ...], a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """Whether two stride tuples place the elements equally (dims of extent 1, and empty tensors, do not matter)."""
    return math.prod(shape) == 0 or all(n == 1 or x == y for n, x, y in zip(shape, a, b, strict=True))


def physical_root(node: Node) -> Node:
    """The node that owns the memory of `node`: follows view ops to a node that is not a view."""
    while node.op == "call_function" and isinstance(node.target, Op) and node.target.kind.name == "VIEW":
        node = node.args[0]
    return node
