"""A stand-in for the compiler: every node an extern call, its result in the arena.

With it the tests of the runtime, the cache and the backend need no code generation and see every op.
"""

from __future__ import annotations

import math
from typing import Any

from eager.base.device import device
from eager.base.dtypes import dtype
from eager.base.spec import TensorSpec
from fxir.base.options import GraphKind
from fxir.ir.graph import Graph
from fxir.ir.node import Node
from inductor.artifact.format import (
    Allocation,
    ArtifactPlan,
    BufferView,
    Compiled,
    Constant,
    DeviceArg,
    DtypeArg,
    ExternCall,
    InputAlias,
    Literal,
    NativeSegment,
    NewOutput,
    SourceUnit,
    Spec,
)
from inductor.base.request import Request
from tests.inductor.helpers_runtime import PRELUDE

CALLS: list[Request] = []  # one for each compilation, for tests that count them


def layout(s: TensorSpec) -> Spec:
    return Spec(tuple(s.shape), tuple(s.strides), s.dtype.name, str(s.device))


def nbytes(s: TensorSpec) -> int:
    if 0 in s.shape:
        return 0
    return (1 + sum((n - 1) * step for n, step in zip(s.shape, s.strides, strict=True))) * s.dtype.itemsize


class _Planner:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.inputs = list(graph.placeholders)
        self.constants = list(dict.fromkeys(str(n.target) for n in graph.find("get_attr")))
        self.outputs = [n for n in dict.fromkeys(graph.outputs) if isinstance(n, Node) and n.op == "call_function"]
        self.first_constant = len(self.inputs) + len(self.outputs)
        self.arena = self.first_constant + len(self.constants)
        self.arena_bytes = 0
        self.views: dict[Node, Any] = {}

    def place(self, spec: TensorSpec) -> BufferView:
        at = self.arena_bytes
        self.arena_bytes += math.ceil(max(nbytes(spec), 1) / 64) * 64
        return BufferView(self.arena, at, layout(spec))

    def define(self, node: Node) -> tuple[BufferView, ...]:
        spec = node.info.spec
        if isinstance(spec, tuple):
            self.views[node] = tuple(self.place(s) for s in spec)
            return self.views[node]
        if node in self.outputs:
            self.views[node] = BufferView(len(self.inputs) + self.outputs.index(node), 0, layout(spec))
        else:
            self.views[node] = self.place(spec)
        return (self.views[node],)

    def argument(self, a: Any) -> Any:
        if isinstance(a, Node):
            return self.views[a]
        if isinstance(a, dtype):
            return DtypeArg(a.name)
        if isinstance(a, device):
            return DeviceArg(str(a))
        if isinstance(a, tuple | list):
            return tuple(self.argument(x) for x in a)
        return a

    def steps(self) -> list[Any]:
        found: list[Any] = []
        for node in self.graph.nodes:
            if node.op == "placeholder":
                self.views[node] = BufferView(self.inputs.index(node), 0, layout(node.info.spec))
            elif node.op == "get_attr":
                index = self.constants.index(str(node.target))
                self.views[node] = BufferView(self.first_constant + index, 0, layout(node.info.spec))
            elif node.op == "call_function" and not hasattr(node.target, "schema"):
                self.views[node] = self.views[node.args[0]][node.args[1]]  # operator.getitem
            elif node.op == "call_function":
                args = tuple(self.argument(a) for a in node.args)
                found.append(ExternCall(node.target.name, args, self.define(node)))
        return found

    def output(self, value: Any) -> Any:
        if not isinstance(value, Node):
            return Literal(value)
        if value.op == "placeholder":
            return InputAlias(self.inputs.index(value))
        if value in self.outputs and hasattr(value.target, "schema"):
            return NewOutput(self.outputs.index(value), layout(value.info.spec))
        raise NotImplementedError(f"the stand-in compiler cannot return {value}")


def compile_graph(graph: Graph, kind: GraphKind, request: Request) -> Compiled:
    """`inductor.driver.compile.compile_graph`, with no native code but one empty segment."""
    CALLS.append(request)
    planner = _Planner(graph)
    steps = [NativeSegment("nothing", 1), *planner.steps()]
    plan = ArtifactPlan(
        inputs=tuple(layout(n.info.spec) for n in planner.inputs),
        outputs=tuple(planner.output(v) for v in graph.outputs),
        allocations=tuple(Allocation(nbytes(n.info.spec)) for n in planner.outputs),
        constants=tuple(
            Constant(name, layout(next(n.info.spec for n in graph.find("get_attr", name))))
            for name in planner.constants
        ),
        arena_bytes=planner.arena_bytes,
        steps=tuple(steps),
    )
    unit = SourceUnit("unit", PRELUDE + "EXPORT void nothing(char **bufs, const Runtime *rt) {}")
    return Compiled(plan, (unit,), ("every op is an extern call",))
