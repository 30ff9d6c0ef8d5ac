"""The captured graph when the capture is over: what nobody needs is taken out, and it becomes a module.

Must not know how the code around it is written.
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
    """Erase nodes that nobody needs and that have no effect; switches of grad mode and autocast with nothing after them, too.

    A call that may refuse its data (an index out of range, a matrix that is not positive definite) is needed for that alone:
    what shows that it was made becomes an output.
    """
    keep = set(outputs)
    later: set[Node] = set()  # of those met so far, what is needed
    showing = {shown: call for call, shown in cap.recorder.fallible.items() if call not in cap.recorder.effect_nodes}
    unread: list[Node] = []
    switches = {HELPERS["set_grad_enabled"], HELPERS["switch_autocast"]}
    trailing = set(switches)  # those with nothing after them
    for node in reversed(cap.graphs.graph):
        if node.op == "placeholder":
            continue
        if node in keep or node.users:
            later.add(node)
        elif node.op == "call_function" and node.target in switches:
            if node.target in trailing:
                cap.graphs.graph.erase_node(node)
            else:
                trailing.add(node.target)  # of two switches in a row only the later one counts
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
    """The captured graph, ended by a tuple of its outputs."""
    cap.graphs.graph.output(tuple(outputs))
    return GraphModule(cap.graphs.graph.root, cap.graphs.graph, CAPTURED_GRAPH)
