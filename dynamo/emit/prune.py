"""The end of a captured graph: unused nodes are erased, and the graph becomes a module.

Must not know how the code around the graph is written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamo.emit.runtime import HELPERS
from dynamo.policy.callees import CAPTURED_GRAPH
from fxir.ir.graph_module import GraphModule

if TYPE_CHECKING:
    from dynamo.frames.capture import Capture
    from fxir.ir.node import Node


def prune(cap: Capture, outputs: list[Node]) -> None:
    """Erase nodes without a user and without an effect, and switches of grad mode and autocast behind the last call.

    A call that may raise because of its data (an index out of range, a matrix that is not positive definite) stays: a tensor that
    depends on the call becomes an output.
    """
    keep = set(outputs)
    later: set[Node] = set()  # the needed nodes behind the current one
    showing = {shown: call for call, shown in cap.recorder.fallible.items() if call not in cap.recorder.effect_nodes}
    unread: list[Node] = []
    switches = {HELPERS["set_grad_enabled"], HELPERS["switch_autocast"]}
    trailing = set(switches)  # the switches behind the last call
    for node in reversed(cap.graphs.graph):
        if node.op == "placeholder":
            continue
        if node in keep or node.users:
            later.add(node)
        elif node.op == "call_function" and node.target in switches:
            if node.target in trailing:
                cap.graphs.graph.erase_node(node)
            else:
                trailing.add(node.target)  # of two switches in a row only the later one has an effect
            continue
        elif node in cap.recorder.effect_nodes:
            written = cap.recorder.fallible.get(node)
            if written is not None and written.op != "placeholder" and written not in keep and later.isdisjoint(written.users):
                unread.append(written)
        elif node in showing and all(user is node for user in showing[node].users):
            unread.append(node)
        else:
            cap.graphs.graph.erase_node(node)
            continue
        trailing.clear()
    outputs += [cap.graphs.graph.call_method("detach", (n,), info=n.info) for n in dict.fromkeys(unread)]


def graph_module(cap: Capture, outputs: list[Node]) -> GraphModule:
    """The captured graph as a module that returns a tuple of the outputs."""
    cap.graphs.graph.output(tuple(outputs))
    return GraphModule(cap.graphs.graph.root, cap.graphs.graph, CAPTURED_GRAPH)
