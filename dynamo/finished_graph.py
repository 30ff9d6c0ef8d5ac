"""The captured graph when the capture is over: what nobody needs is taken out, and it becomes a module.

Must not know how the code around it is written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamo.runtime import HELPERS
from fxir.graph_module import GraphModule

if TYPE_CHECKING:
    from dynamo.capture import Capture
    from fxir.node import Node


def prune(cap: Capture, outputs: list[Node]) -> None:
    """Erase nodes that nobody needs and that have no effect; switches of grad mode and autocast with nothing after them, too."""
    keep = set(outputs)
    switches = {HELPERS["set_grad_enabled"], HELPERS["switch_autocast"]}
    trailing = set(switches)  # those with nothing after them
    for node in reversed(cap.graph):
        if node.op == "placeholder" or node in keep or node.users:
            if node.op != "placeholder":
                trailing.clear()
            continue
        if node.op == "call_function" and node.target in switches:
            if node.target in trailing:
                cap.graph.erase_node(node)
            else:
                trailing.add(node.target)  # of two switches in a row only the later one counts
            continue
        if node in cap.effect_nodes:
            trailing.clear()
            continue
        cap.graph.erase_node(node)


def graph_module(cap: Capture, outputs: list[Node]) -> GraphModule:
    """The captured graph, ended by a tuple of its outputs."""
    cap.graph.output(tuple(outputs))
    return GraphModule(cap.graph.root, cap.graph, "CapturedGraph")
