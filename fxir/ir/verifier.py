"""Verification of graphs: `verify` raises `GraphError`, which names the node and the rule that it breaks."""

from __future__ import annotations

import operator
from typing import Any, TypeVar

from fxir.expr.rules import Expr
from fxir.ir.listing import format_spec
from fxir.ir.node import Node, walk_nodes
from fxir.ir.node_sequence import NodeSequence
from fxir.ir.printer import is_op
from fxir.symbols.shapes import lifted, plain

G = TypeVar("G", bound=NodeSequence)


class GraphError(RuntimeError):
    """A graph breaks one of its invariants: a bug in the pass that last edited it."""


def verify(graph: G, *, functional: bool = False, specs: bool = False, carried: bool = True) -> G:
    """Check every invariant of `graph`; returns it, so that a call can wrap a pass.

    functional: also check the contract of graphs that backends receive (targets are Ops, none in place, no kwargs, every node
    has a spec, flat tuple output, a signature that fits the outputs).
    carried: also check that `root` has every value that nodes name.
    specs: also recompute each Op's spec from its arguments; it must be equal, strides included.
    Raises: GraphError.
    """
    _check_links(graph)
    _check_order(graph)
    for node in graph.in_order():
        _check_node(graph, node)
        if carried and node.op in ("get_attr", "call_module") and node.target not in graph.root:
            _fail(node, f"the graph carries no value {node.target!r}")
    if functional:
        _check_functional(graph)
    if specs:
        _check_specs(graph)
    return graph


def _fail(node: Node | None, text: str) -> None:
    raise GraphError(f"verify: {text}" if node is None else f"verify: node {node.name} ({node.op}): {text}")


def _check_links(graph: NodeSequence) -> None:
    count = 0
    names: set[str] = set()
    end = graph._sentinel
    node = end._next
    while node is not end:
        if node._next._prev is not node or node._prev._next is not node:
            _fail(node, "its links to the neighbouring nodes are broken")
        if node._erased:
            _fail(node, "it is erased but still linked")
        if node.graph is not graph:
            _fail(node, "it belongs to another graph")
        if node.name in names:
            _fail(node, "another node has the same name")
        if not node.name.isidentifier():
            _fail(node, "its name is not a Python identifier")
        names.add(node.name)
        count += 1
        node = node._next
    if count != len(graph):
        _fail(None, f"the graph counts {len(graph)} nodes but links {count}")


def _check_order(graph: NodeSequence) -> None:
    seen: set[Node] = set()
    body = False
    outputs = 0
    for node in graph.in_order():
        if outputs:
            _fail(node, "it comes after the output node")
        if node.op == "placeholder":
            if body:
                _fail(node, "a placeholder comes after other nodes")
        else:
            body = True
        outputs += node.op == "output"
        for used in walk_nodes((node.args, node.kwargs)):
            if used.graph is not graph:
                _fail(node, f"it reads {used.name} of another graph")
            if used._erased:
                _fail(node, f"it reads {used.name}, which was erased")
            if used not in seen:
                _fail(node, f"it reads {used.name} before that is computed")
            if used.op == "output":
                _fail(node, "it reads the output node")
        seen.add(node)
    if outputs != 1:
        _fail(None, f"there are {outputs} output nodes; allowed: 1")


def _check_node(graph: NodeSequence, node: Node) -> None:
    if node.inputs != tuple(dict.fromkeys(walk_nodes((node.args, node.kwargs)))):
        _fail(node, "its arguments were changed without the graph's knowledge")
    for used in node.inputs:
        if node not in used.users:
            _fail(node, f"it reads {used.name} but is not among its users")
    for user in node.users:
        if node not in user.inputs:
            _fail(node, f"{user.name} is among its users but does not read it")
    if node.op == "call_function" and not callable(node.target):
        _fail(node, f"target {node.target!r} is not callable")
    if node.op != "call_function" and not isinstance(node.target, str):
        _fail(node, f"target {node.target!r} is not a str")
    if node.op == "call_method" and not node.args:
        _fail(node, "a method call needs the object as its first argument")
    if node.op == "output" and (len(node.args) != 1 or node.kwargs):
        _fail(node, "the output node takes exactly one argument")


def _check_functional(graph: NodeSequence) -> None:
    placeholders = graph.placeholders
    ints = {placeholders[source.input] for source in graph.symbols.values() if source.is_number}
    for node in graph.in_order():
        if node.op in ("call_method", "call_module"):
            _fail(node, "functional graphs hold calls of ops only")
        if node.op == "output":
            continue
        if node.kwargs:
            _fail(node, "functional graphs pass every argument by position")
        if node.info.spec is None and not (node.op == "placeholder" and (node in ints or not node.users)):
            _fail(node, "it has no spec")
        if node.op == "call_function":
            _check_op_call(node)
    value = graph.output_node.args[0]
    if not isinstance(value, tuple) or not all(isinstance(v, Node | Expr) for v in value):
        _fail(graph.output_node, "the output of a functional graph is a flat tuple of nodes (or of sizes)")
    unknown = graph.used_symbols() - graph.symbols.keys()
    if unknown:
        _fail(None, f"no input gives the symbols {', '.join(sorted(s.name for s in unknown))}")
    signature = graph.signature
    if signature is not None:
        total = len(signature.mutated_inputs) + signature.n_user_outputs + signature.n_saved
        if total != len(value):
            _fail(graph.output_node, f"the signature names {total} outputs, there are {len(value)}")
        if any(not 0 <= i < len(graph.placeholders) for i in signature.mutated_inputs):
            _fail(graph.output_node, "the signature names a mutated input that does not exist")


def _check_op_call(node: Node) -> None:
    op: Any = node.target
    if op is operator.getitem:
        return
    if not is_op(op):
        _fail(node, f"target {op!r} is not an op of the table")
    if op.kind.name == "INPLACE":
        _fail(node, f"{op.name} writes its argument")
    if len(node.args) != len(op.schema.params):
        _fail(node, f"{op.name} takes {len(op.schema.params)} arguments, {len(node.args)} are given")


def _check_specs(graph: NodeSequence) -> None:
    from_node = {n: n.info.spec for n in graph.in_order()}
    for node in graph.in_order():
        if node.op != "call_function" or not is_op(node.target):
            continue
        op: Any = node.target
        args = _specs_of(node.args, from_node)
        inferred = op.infer(*args) if graph.shapes is None else plain(op.infer(*lifted(args, graph.shapes)))
        if inferred != node.info.spec:
            _fail(node, f"{op.name} gives {format_spec(inferred)}, the node claims {format_spec(node.info.spec)}")


def _specs_of(args: Any, specs: dict[Node, Any]) -> Any:
    if isinstance(args, Node):
        return specs[args]
    if isinstance(args, tuple):
        return tuple(_specs_of(a, specs) for a in args)
    if isinstance(args, list):
        return [_specs_of(a, specs) for a in args]
    return args
