"""Graphs inside the graph, for functions that run at another time, such as the backward of a custom function.

While a nested graph is open, calls are recorded into it, and a tensor from outside becomes one of its inputs. Other
graphs see a value of the nested graph only through the call of the finished graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Protocol

from dynamo.report import causes
from dynamo.report.errors import Unsupported
from dynamo.values.protocols import Machine, Value, next_serial
from dynamo.values.symbolic import SymbolicValue, SymFloatValue, SymIntValue
from dynamo.values.tensor import TensorValue
from eager import Tensor
from eager.base.spec import TensorSpec
from eager.base.symfloat import SymFloat
from fxir.ir.graph import Graph
from fxir.ir.graph_module import GraphModule
from fxir.ir.node import Node, NodeInfo
from fxir.symbols.shapes import ShapeEnv, plain, symbols_in


class InGraph(Protocol):
    """A value that a node holds. fake: a tensor, or a function."""

    node: Node
    fake: Any


class SubGraph:
    """A graph under construction. captured: values from outside; they become inputs after the first inputs."""

    def __init__(self, name: str, step: int, shapes: ShapeEnv) -> None:
        self.shapes = shapes
        self.name = name
        self.step = step  # the instruction to break before if a value of the graph is used outside it
        self.graph = Graph()
        self.inputs: list[TensorValue] = []
        self.captured: list[InGraph | SymbolicValue] = []
        self._placeholders: dict[int, Node] = {}
        self._foreign: set[int] = set()  # storages of tensors from outside

    def add_input(self, cap: Machine, stand_in: Tensor, spec: TensorSpec) -> TensorValue:
        """Add an input that `stand_in` represents during the capture."""
        value = TensorValue(self._placeholder(f"x{len(self.inputs)}", NodeInfo(spec)), stand_in)
        value.born = self.step
        self.inputs.append(value)
        self._foreign.add(id(stand_in.untyped_storage().root))
        cap.recorder.fakes[id(stand_in)] = value
        return value

    def capture(self, value: InGraph) -> Node:
        """The input for a value from outside."""
        found = self._placeholders.get(id(value))
        if found is None:
            found = self._placeholders[id(value)] = self._placeholder(f"c{len(self.captured)}", value.node.info)
            self.captured.append(value)
            if isinstance(value.fake, Tensor):
                self._foreign.add(id(value.fake.untyped_storage().root))
        return found

    def _placeholder(self, name: str, info: NodeInfo) -> Node:
        last = self.graph.placeholders[-1:] or [self.graph._sentinel]
        with self.graph.inserting_after(last[0]):
            return self.graph.placeholder(name, info=info)

    def refuse_writes(self, written: list[Tensor]) -> None:
        """Refuse writes to memory from outside: they would have to happen when the function runs."""
        if any(id(t.untyped_storage().root) in self._foreign for t in written):
            raise Unsupported(causes.AUTOGRAD, f"{self.name} writes to a tensor from outside of it")

    def finish(self, outputs: tuple[Any, ...]) -> GraphModule:
        """The graph from inputs and captured values to `outputs` (nodes and constants).

        Symbols from outside are inputs after the captured tensors.
        """
        self.graph.output(outputs)
        used = {s for n in self.graph.nodes for s in symbols_in((plain(n.args), plain(n.kwargs)))}
        for s in sorted(used, key=lambda s: s.name):
            number = self.shapes.argument(s)
            self.graph.add_number_input(s, "float" if isinstance(number, SymFloat) else "int")
            self.captured.append(SymFloatValue(number) if isinstance(number, SymFloat) else SymIntValue(number))
        return GraphModule(self.graph.root, self.graph, "SubGraph")


class NestedGraphs:
    """Owns the graph of the captured program (`main`), the graph that receives calls (`graph`) and the open nested
    graphs (`levels`, outermost first).

    frozen_since: values older than this serial number must not change, because the code that is followed runs at
    another time.
    """

    def __init__(self, cap: Machine) -> None:
        self.cap = cap
        self.graph = self.main = Graph()
        self.levels: list[SubGraph] = []
        self.frozen_since: int | None = None

    @contextmanager
    def recording(self, name: str, grad_mode: bool, *, later: bool) -> Iterator[SubGraph]:
        """Record calls into a new graph.

        later: the graph runs at another time, so it may change only its own values, and autocast is off.
        """
        step = self.levels[0].step if self.levels else self.cap.steps
        level = SubGraph(name, step, self.cap.symbols.shapes)
        before = self.graph, self.frozen_since
        self.levels.append(level)
        self.graph = level.graph
        if later and self.frozen_since is None:
            self.frozen_since = next_serial()
        try:
            with self.cap.modes.entered(grad_mode, 0 if later else None):
                yield level
        finally:
            self.graph, self.frozen_since = before
            self.levels.pop()

    def node_of(self, value: InGraph) -> Node:
        """The node of `value` in the current graph."""
        if value.node.graph is self.graph:
            return value.node
        known = {id(self.main), *(id(level.graph) for level in self.levels)}
        if id(value.node.graph) not in known:
            raise Unsupported(causes.AUTOGRAD, "a tensor of a function that runs at another time is used outside of it")
        if self.frozen_since is not None and not isinstance(value.fake, Tensor):
            self.refuse_later("calls a function that a transform returned")
        return self.levels[-1].capture(value)

    def refuse_later(self, what: str) -> None:
        """Break the graph: code that runs at another time has an effect outside."""
        if self.frozen_since is not None:
            raise Unsupported(causes.AUTOGRAD, f"{self.levels[-1].name} {what}")

    def check_change(self, value: Value) -> None:
        """Whether `value` may change now."""
        if self.frozen_since is not None and value.serial < self.frozen_since:
            self.refuse_later(f"changes {value.describe()}, which is older")

    def at_start(self) -> AbstractContextManager[Any]:
        """A context in which new nodes are inserted after the present inputs and before all other nodes."""
        first = next((n for n in self.main.nodes if n.op != "placeholder"), None)
        return self.main.inserting_before(first) if first is not None else nullcontext()
