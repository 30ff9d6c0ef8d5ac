"""The joint graph: a program's forward and the gradients of its outputs, in one graph.

The gradients are computed on fakes while the trace is active: the vjp rules call ops, which the trace records.
"""

from __future__ import annotations

from collections.abc import Sequence

from eager._tensor.tensor import Tensor
from eager.base.records import dataclass
from eager.base.spec import fake_like, spec_of
from eager.optable.registry import Kind
from eager.optable.table import Op
from eager.tape import engine
from fxir.ir.graph import Graph
from fxir.ir.node import Node, NodeInfo
from fxir.trace.trace import TraceMode


@dataclass(slots=True)
class Joint:
    """graph: placeholders are primals, then tangents; outputs are forward_outputs, then the grads that are not None.

    forward_outputs: new values of `mutated_inputs` (positions in primals), then the program's results.
    grads: one per input that requires a gradient, None if the outputs do not depend on it.
    forward_effects, backward_effects: calls that run even if their value is unused, by the pass that they are part of.
    may_write: see GraphSignature.
    """

    graph: Graph
    primals: list[Node]
    tangents: list[Node]
    forward_outputs: list[Node]
    grads: list[Node | None]
    mutated_inputs: tuple[int, ...] = ()
    parameters: tuple[int, ...] = ()
    forward_effects: tuple[Node, ...] = ()
    backward_effects: tuple[Node, ...] = ()
    may_write: bool = False

    def refresh(self) -> None:
        """Read outputs and effects from the graph again, after passes replaced nodes."""
        n = len(self.forward_outputs)
        outputs = list(self.graph.outputs)
        self.forward_outputs = outputs[:n]
        rest = iter(outputs[n:])
        self.grads = [None if g is None else next(rest) for g in self.grads]
        self.forward_effects = tuple(e for e in self.forward_effects if not e._erased)
        self.backward_effects = tuple(e for e in self.backward_effects if not e._erased)


def effects(graph: Graph) -> tuple[Node, ...]:
    """Calls with an effect beside their result, in order."""
    return tuple(n for n in graph.in_order() if isinstance(n.target, Op) and n.target.kind is Kind.EFFECT)


def add_gradients(
    mode: TraceMode, outputs: Sequence[Tensor], inputs: Sequence[Tensor]
) -> tuple[list[Node], list[Node | None]]:
    """Record d(outputs)/d(inputs) into the graph of `mode`: (placeholders of the tangents, gradients).

    Autograd's graph behind `outputs` is freed.

    outputs: traced fakes that require grad. Each gets a tangent with its spec. A gradient is None if no output depends on the
    input.
    Raises: RuntimeError as `backward()` does, e.g. for a saved tensor that was written to.
    """
    graph = mode.graph
    anchor = next((n for n in graph.in_order() if n.op != "placeholder"), None)
    tangents: list[Tensor] = []
    nodes: list[Node] = []
    for k, y in enumerate(outputs):
        tangent = fake_like(y, requires_grad=False)
        with graph.inserting_before(anchor if anchor is not None else graph._sentinel):
            node = graph.placeholder(f"tangent{k}", info=NodeInfo(mode.note(spec_of(y))))
        mode.memory.define(tangent, node)
        tangents.append(tangent)
        nodes.append(node)
    with mode:
        grads = engine.grad(list(outputs), list(inputs), tangents, allow_unused=True)
    return nodes, [None if g is None else mode.value(g) for g in grads]
