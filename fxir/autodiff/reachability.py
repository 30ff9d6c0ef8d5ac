"""Facts from autograd's own graph of a traced program: which results depend on which inputs, and which share saved tensors.

Autograd sees a compiled region as one node. With these facts the region returns None, and raises for a freed graph, exactly
when eager does.
"""

from __future__ import annotations

from collections.abc import Sequence

from eager._tensor.tensor import Tensor
from eager.autograd.function import DifferentiatedTwice
from eager.base.records import dataclass
from eager.tape.engine import reachable
from eager.tape.node import Node, edge_of


@dataclass(frozen=True, slots=True)
class Reach:
    """Sets of outputs, as bit masks.

    inputs: per input the outputs that depend on it. conflicts: per output the outputs that cannot be differentiated after it
    without retain_graph, for both free the same saved tensors (including itself, if it frees any). feeding: outputs that other
    outputs depend on. released: outputs whose graph is already freed. twice: outputs of a `once_differentiable` backward.
    """

    inputs: tuple[int, ...]
    conflicts: tuple[int, ...]
    feeding: int
    released: int
    twice: int


def reach(outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> Reach:
    """Follow the histories of `outputs`; all of `inputs` require grad."""
    masks: dict[Node, int] = {}
    for i, y in enumerate(outputs):
        edge = edge_of(y)
        if edge is not None:
            masks[edge[0]] = masks.get(edge[0], 0) | 1 << i
    own = dict(masks)
    _spread(masks)
    feeding = sum(mask for node, mask in own.items() if masks[node] != mask)
    conflicts = [0] * len(outputs)
    released = twice = 0
    for node, mask in masks.items():
        if node.is_released:
            released |= mask
        if node.holds_tensors:
            for i in range(len(outputs)):
                if mask >> i & 1:
                    conflicts[i] |= mask
        if isinstance(node, DifferentiatedTwice):
            twice |= mask
    targets = [edge_of(x) for x in inputs]
    found = tuple(0 if t is None else masks.get(t[0], 0) for t in targets)
    return Reach(found, tuple(conflicts), feeding, released, twice)


def _spread(masks: dict[Node, int]) -> None:
    """Propagate the masks of the roots to every node that they depend on."""
    waiting, order = reachable(list(masks))
    ready = [n for n in order if not waiting[n]]
    while ready:
        node = ready.pop()
        for edge in node.edges:
            if edge is None:
                continue
            child = edge[0]
            masks[child] = masks.get(child, 0) | masks[node]
            waiting[child] -= 1
            if not waiting[child]:
                ready.append(child)
