"""`torch._dynamo.testing`: backends that count and keep captured graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fxir.backends import lookup
from fxir.base.options import CompileOptions
from fxir.ir.graph_module import GraphModule

__all__ = ["CompileCounter", "CompileCounterWithBackend", "EagerAndRecordGraphs"]


class EagerAndRecordGraphs:
    """A backend that runs graphs unchanged and keeps them in `graphs`."""

    def __init__(self) -> None:
        self.graphs: list[GraphModule] = []

    def __call__(self, gm: GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        self.graphs.append(gm)
        return gm.forward


class CompileCounterWithBackend:
    """The backend `backend` with counts. frame_count: number of compiled graphs; op_count: number of calls in them; graphs: the graphs."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.clear()

    def clear(self) -> None:
        """Start counting again."""
        self.frame_count = 0
        self.op_count: int = 0
        self.graphs: list[GraphModule] = []

    def __call__(self, gm: GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        self.frame_count += 1
        self.op_count += sum(n.op.startswith("call") for n in gm.graph.nodes)
        self.graphs.append(gm)
        return lookup(self.backend)(gm, example_inputs, CompileOptions())


class CompileCounter(CompileCounterWithBackend):
    """`CompileCounterWithBackend("eager")`."""

    def __init__(self) -> None:
        super().__init__("eager")
