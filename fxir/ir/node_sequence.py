"""The data of a graph: nodes linked in program order, the values they name, and the sources of their symbols.

Owns `NodeSequence`, which the printer and the verifier read, `GraphSignature`, and `CodeGen`, the form of a graph as a function.
`graph.Graph` makes nodes and adds torch.fx's methods.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

from eager.base.records import dataclass
from eager.base.spec import TensorSpec
from fxir.expr.rules import Sym
from fxir.ir.leaves import SIDE_EFFECTS
from fxir.ir.listing import listing
from fxir.ir.node import Argument, Node, NodeNames, Target
from fxir.symbols.shapes import ShapeEnv, SymbolSource, symbols_in

# -- the form as a function ----------------------------------------------------------------------------------------
TransformCode: TypeAlias = Callable[[list[str]], list[str]]


class CodeGen:
    """The form of a graph as a function, torch.fx's hook for programs that print `forward` in another form.

    This default form, which the project uses throughout, writes `def forward(self, x, ...):` and `return ...`; runs take one
    argument per placeholder. A subclass changes the definition line, the output line, or the layout of the inputs and outputs
    of a run; `Graph.set_codegen` installs it.
    """

    _body_transformer: TransformCode | None = None
    _func_name = "forward"

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """The definition line, and lines that read the placeholders from the arguments, indented by four spaces.

        free_vars: the placeholders as parameters; "self" is inserted before them.
        """
        if not free_vars or free_vars[0] != "self":
            free_vars.insert(0, "self")
        return f"def {self._func_name}({', '.join(free_vars)}){maybe_return_annotation}:"

    def generate_output(self, output_args: Any) -> str:
        """The line that returns the graph's output. The repr of `output_args` is its source."""
        return f"return {output_args!r}"

    def process_inputs(self, *args: Any) -> Any:
        """Convert the arguments of a run to the values of the placeholders."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """Convert the graph's output to the result of a run."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Names that the printed lines use, with their values."""
        return []


class Source:
    """Source text as an argument of `CodeGen.generate_output`: its repr is the text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


# -- the nodes -----------------------------------------------------------------------------------------------------
# Among callables that declare no effect only Python's operators are known to be pure; every other call stays in the graph.
_PURE_FUNCTIONS: Final[frozenset[Any]] = frozenset(
    [
        *(operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow),
        *(operator.matmul, operator.neg, operator.pos, operator.abs, operator.invert, operator.and_, operator.or_),
        *(operator.xor, operator.lshift, operator.rshift, operator.eq, operator.ne, operator.lt, operator.le),
        *(operator.gt, operator.ge, operator.getitem, operator.not_, operator.truth, operator.is_, operator.is_not),
        *(operator.contains, operator.index, getattr),
    ]
)
_EFFECT_KINDS: Final = frozenset({"INPLACE", "EFFECT"})

@dataclass(frozen=True, slots=True)
class GraphSignature:
    """How the flat inputs and outputs of a functional graph map to the inputs and outputs of the captured program.

    mutated_inputs: output k (for k < len(mutated_inputs)) is the new value of placeholder mutated_inputs[k].
    n_user_outputs: the number of outputs for the caller, which follow. n_saved: the number of outputs for the backward graph,
    which come last.
    parameters: placeholders that are nn.Parameters (their storage lives as long as the compiled call).

    may_write: a backend may write the mutated inputs itself. The callable it returns then has an attribute `writes_inputs =
    True`: it copies each new value into its input, increments the input's version counter, and omits the new values from its
    result.
    """

    mutated_inputs: tuple[int, ...] = ()
    n_user_outputs: int = 0
    n_saved: int = 0
    parameters: tuple[int, ...] = ()
    may_write: bool = False

    @property
    def unwritten(self) -> set[int]:
        """The placeholders that are the same in most calls: parameters that the graph does not write."""
        return set(self.parameters).difference(self.mutated_inputs)


class NodeSequence:
    """An ordered list of Nodes. Every node reads only nodes before it; a finished sequence ends in one output node.

    root: the values that "get_attr" and "call_module" nodes name (real tensors, modules).
    signature: set on functional graphs (see `GraphSignature`), None otherwise.
    symbols: the input that each symbol (in specs and arguments) is read from. shapes: the facts about symbols while passes
    run, None for a graph without symbols.
    version: grows with every edit, so that a cache of a derived value can detect an edit.
    """

    def __init__(self, root: dict[str, Any] | None = None) -> None:
        self.root: dict[str, Any] = {} if root is None else root
        self.signature: GraphSignature | None = None
        self.symbols: dict[Sym, SymbolSource] = {}
        self.shapes: ShapeEnv | None = None
        self.version = 0
        self._tracer_cls: type | None = None  # the class of the tracer that made the graph
        self._codegen = CodeGen()
        self._names = NodeNames()
        self._len = 0
        self._sentinel = Node.__new__(Node)
        self._sentinel.graph = self
        self._sentinel.name = "<end>"
        self._sentinel._prev = self._sentinel._next = self._sentinel
        self._sentinel._erased = False
        self._cursor = self._sentinel  # the insertion point: new nodes are linked before this node

    @property
    def nodes(self) -> NodeList:
        """Nodes in order. During iteration it is safe to erase the current node and to insert nodes anywhere."""
        return NodeList(self)

    def in_order(self) -> list[Node]:
        """The nodes in order, as a list of the moment: a pass visits every node once."""
        found, end = [], self._sentinel
        node = end._next
        while node is not end:
            found.append(node)
            node = node._next
        return found

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
        """The input nodes, in order."""
        return self.find("placeholder")

    @property
    def output_node(self) -> Node:
        """The output node. Raises: ValueError if the graph has no output node."""
        last = self._sentinel._prev
        if last is self._sentinel or last.op != "output":
            raise ValueError("Graph: there is no output node yet; call graph.output(value) last")
        return last

    @property
    def outputs(self) -> tuple[Argument, ...]:
        """The flat outputs: the items of the output value if it is a tuple or list, else a tuple of the value."""
        value = self.output_node._args[0]
        return tuple(value) if isinstance(value, tuple | list) else (value,)

    def find(self, op: str, target: Target | None = None) -> list[Node]:
        """Nodes of one kind, in order; if `target` is given, only those with that target."""
        return [n for n in self.in_order() if n.op == op and (target is None or n.target == target)]

    def is_effectful(self, node: Node) -> bool:
        """Whether a program could notice that `node`, which has no users, was erased.

        Ops declare effects by their kind (in-place, effect); methods by a trailing underscore; modules by `_is_impure`, as in
        torch.fx.
        """
        op, target = node.op, node.target
        if op in ("placeholder", "output"):
            return True
        if op == "get_attr":
            return False
        if op == "call_method":
            return str(target).endswith("_")
        if op == "call_module":
            return target not in self.root or bool(getattr(self.root[str(target)], "_is_impure", False))
        if target in SIDE_EFFECTS:
            return True
        schema = getattr(target, "_schema", None)
        if schema is not None:  # an overload of torch.ops
            return bool(schema.is_mutable)
        kind = getattr(target, "kind", None)
        if kind is not None and hasattr(kind, "name"):
            return kind.name in _EFFECT_KINDS
        return target not in _PURE_FUNCTIONS

    def used_symbols(self) -> set[Sym]:
        """The symbols in specs and arguments."""
        found: set[Sym] = set()
        for node in self.in_order():
            found |= symbols_in(node.info.spec) | symbols_in(node.args) | symbols_in(node.kwargs)
        return found

    def input_symbols(self) -> dict[Sym, SymbolSource]:
        """Every symbol that can be read from a placeholder, used or not."""
        found = {s: source for s, source in self.symbols.items() if source.is_number}
        for i, node in enumerate(self.placeholders):
            spec = node.info.spec
            if not isinstance(spec, TensorSpec):
                continue
            for dim, value in enumerate(spec.shape):
                if isinstance(value, Sym):
                    found.setdefault(value, SymbolSource("size", i, dim))
            for dim, (size, value) in enumerate(zip(spec.shape, spec.strides, strict=True)):
                # A dim of one element may have any stride, so that its stride is not evidence of the symbol's value.
                if isinstance(value, Sym) and (size if isinstance(size, int) else size.lo) > 1:
                    found.setdefault(value, SymbolSource("stride", i, dim))
        return found

    def touch(self) -> None:
        """Record an edit (see `version`)."""
        self.version += 1

    def move_before(self, node: Node, anchor: Node) -> None:
        """Move `node` directly before `anchor`."""
        if node is anchor:
            return
        node._prev._next, node._next._prev = node._next, node._prev
        self._len -= 1
        self._link(node, anchor)

    def erase_node(self, node: Node) -> None:
        """Remove a node that has no users. Raises: RuntimeError if it has users."""
        if node.users:
            readers = ", ".join(u.name for u in node.users)
            raise RuntimeError(f"Graph.erase_node: {node.name} is used by {readers}; replace those uses first")
        if node._erased:
            return
        node._set_arguments((), {})
        node._prev._next, node._next._prev = node._next, node._prev
        node._erased = True
        # node._next stays set, so that an iteration that is at this node can continue.
        if self._cursor is node:
            self._cursor = node._next
        self._len -= 1
        self._names.release(node.name)
        self.touch()

    @contextmanager
    def inserting_before(self, n: Node | None = None) -> Iterator[None]:
        """While the context is open, insert new nodes directly before `n` (None: before all nodes)."""
        previous, self._cursor = self._cursor, self._sentinel._next if n is None else n
        try:
            yield
        finally:
            self._cursor = previous

    @contextmanager
    def inserting_after(self, n: Node | None = None) -> Iterator[None]:
        """While the context is open, insert new nodes after `n` (None: after all nodes), in the order of creation."""
        with self.inserting_before(self._sentinel if n is None else n._next):
            yield

    def _link(self, node: Node, before: Node) -> None:
        node._prev, node._next = before._prev, before
        before._prev._next = node
        before._prev = node
        self._len += 1
        self.touch()

    def __str__(self) -> str:
        """A listing for logs, one node a line; `fxir.ir.printer` makes the runnable form."""
        return listing(self)


class NodeList:
    """A live view of a graph's nodes: it can be iterated, reversed and counted."""

    __slots__ = ("_graph",)

    def __init__(self, graph: NodeSequence) -> None:
        self._graph = graph

    def __iter__(self) -> Iterator[Node]:
        return iter(self._graph)

    def __reversed__(self) -> Iterator[Node]:
        return reversed(self._graph)

    def __len__(self) -> int:
        return len(self._graph)

    def __contains__(self, node: object) -> bool:
        return any(n is node for n in self._graph)
