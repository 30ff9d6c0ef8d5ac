"""Graphs over the CPU and a CUDA device as two graphs: the host part runs first, then the device part, which reads its 0-d results.

Owns the division of a graph and the callable over both parts. A value goes from the CPU to the device only as a 0-d operand, as
in eager, and no value goes back inside of a graph: a move ends the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Final, TypeAlias

from eager.base.records import dataclass
from eager.optable.table import OPS
from fxir.autodiff.joint import effects
from fxir.ir.graph import Graph, GraphSignature, devices_of, emit, physical_root, specs_of
from fxir.ir.node import Node

_HOST: Final = "cpu"
Compile: TypeAlias = Callable[[Graph], Callable[..., Any]]


def needs_parts(graph: Graph) -> bool:
    """Whether a graph on several devices also computes, returns or carries tensors on the CPU. Inputs that are operands need no host part.

    Raises: NotImplementedError for tensors on two CUDA devices.
    """
    found = devices_of(graph)
    others = sorted(str(d) for d in found if d.type != _HOST)
    if len(others) > 1:
        raise NotImplementedError(f"inductor: a graph with tensors on {', '.join(others)}; allowed: the CPU and one other device")
    roles = _roles(graph)
    outputs = {n for n in graph.outputs if isinstance(n, Node)}
    read = {u for n in graph.in_order() if n not in roles and n.op != "output" for u in n.inputs} & roles
    _check_operands(read, others[0])
    return any(n.op != "placeholder" or n in outputs for n in roles)


def compile_parts(graph: Graph, compile_graph: Compile) -> Callable[..., Any]:
    """A graph of two parts, each compiled by `compile_graph`, as one callable from real tensors to a tuple.

    The callable has `parts`, the compiled parts, and `writes_inputs` (see `GraphSignature`). A host part that only carries constants
    is not compiled.
    Raises: NotImplementedError for a value that goes between the devices in another way than as a 0-d operand.
    """
    may_write = bool(graph.signature and graph.signature.may_write)
    while True:
        divided = _Division(graph, may_write)
        parts = [part for part in (divided.host, divided.device) if part.graph.outputs or effects(part.graph)]
        compiled = {part.name: compile_graph(part.graph) for part in parts}
        writes = {bool(getattr(compiled[part.name], "writes_inputs", False)) for part in parts if part.written}
        if len(writes) < 2:
            return divided.callable(compiled, writes=writes == {True})
        may_write = False  # the caller writes all new values, or none


def _roles(graph: Graph) -> set[Node]:
    """The nodes of the host part: tensors on the CPU, and nodes without tensors that read only such nodes."""
    found: set[Node] = set()
    for node in graph.in_order():
        specs = specs_of(node)
        if node.op == "output" or (node.op == "placeholder" and not specs):
            continue
        if not (all(s.device.type == _HOST for s in specs) if specs else all(n in found for n in node.inputs)):
            continue
        found.add(node)
        moved = [n.name for n in node.inputs if n not in found and (specs_of(n) or n.op != "placeholder")]
        if moved:
            raise NotImplementedError(f"inductor: {node.name} moves {', '.join(moved)} to the CPU inside of a graph")
    return found


def _check_operands(read: Iterable[Node], where: str) -> None:
    for node in read:
        shapes = [tuple(s.shape) for s in specs_of(node)]
        if shapes != [()]:
            raise NotImplementedError(f"inductor: {node.name}, on the CPU and of shape {shapes}, is an operand on {where}; allowed: 0-d")


@dataclass(slots=True)
class _Part:
    """One part, and the name of its result in the source of the callable.

    given: the source of each argument; a number is the position of a value among the values that the host part passes. written: the
    mutated inputs that it computes, by number in the whole. results: the outputs of the whole that it computes, by number there.
    """

    name: str
    graph: Graph
    env: dict[Node, Node] = field(default_factory=dict)
    given: list[str | int] = field(default_factory=list)
    written: list[int] = field(default_factory=list)
    results: list[int] = field(default_factory=list)


class _Division:
    """One graph divided by device. The outputs of the host part are its outputs of the whole, then the values that it passes."""

    def __init__(self, graph: Graph, may_write: bool) -> None:
        self.graph, self.may_write = graph, may_write
        self.on_host = _roles(graph)
        self.numbers = {node: i for i, node in enumerate(graph.placeholders)}
        self.mutated = graph.signature.mutated_inputs if graph.signature else ()
        self.constants: dict[str, Any] = {}
        self.passed: list[Node] = []
        self.host, self.device = self._part("h"), self._part("d")
        self._add_inputs()
        self._add_operands()
        self._add_calls()
        outputs = self._outputs()
        self._finish(self.host, [*outputs["h"], *map(self._snapshot, self.passed)])
        self._finish(self.device, outputs["d"])

    def _part(self, name: str) -> _Part:
        made = Graph({})
        made.shapes = self.graph.shapes
        return _Part(name, made)

    def _of(self, node: Node) -> _Part:
        return self.host if node in self.on_host else self.device

    # ---- inputs ----

    def _add_inputs(self) -> None:
        """Placeholders in order; numbers are inputs of both parts."""
        for node, i in self.numbers.items():
            for part in [self._of(node)] if specs_of(node) else [self.host, self.device]:
                numbers = [s for s, source in self.graph.symbols.items() if source.is_number and source.input == i]
                part.graph.symbols |= {s: replace(self.graph.symbols[s], input=len(part.given)) for s in numbers}
                part.env[node] = part.graph.copy_node(node, lambda n: n)
                part.given.append(f"a{i}")

    def _add_operands(self) -> None:
        """An input of the device part for each node of the host part that it reads."""
        read = dict.fromkeys(u for n in self.graph.in_order() if n not in self.on_host and n.op != "output" for u in n.inputs)
        for node in read:
            if node not in self.on_host:
                continue
            self.device.env[node] = self.device.graph.placeholder(node.name, info=node.info)
            if node.op == "get_attr":
                name = f"c{len(self.constants)}"
                self.constants[name] = self.graph.root[str(node.target)]
                self.device.given.append(name)
            elif node.op == "placeholder" and self.numbers[node] not in self.mutated:
                self.device.given.append(f"a{self.numbers[node]}")
            else:
                self.device.given.append(len(self.passed))
                self.passed.append(node)

    # ---- calls ----

    def _add_calls(self) -> None:
        for node in self.graph.in_order():
            part = self._of(node)
            if node.op == "output" or node in part.env:
                continue
            part.env[node] = part.graph.copy_node(node, part.env.__getitem__)
            if node.op == "get_attr":
                part.graph.root[str(node.target)] = self.graph.root[str(node.target)]

    def _snapshot(self, node: Node) -> Node:
        """The value of a node of the host part in separate memory: the part may overwrite the memory of its inputs."""
        made = self.host.env[node]
        is_given = physical_root(made).op in ("placeholder", "get_attr")
        return emit(self.host.graph, OPS["clone"], made, None, origin=node.info.origin) if is_given else made

    # ---- outputs ----

    def _outputs(self) -> dict[str, list[Any]]:
        """By part, its outputs of the whole. Numbers and None are outputs of the device part."""
        found: dict[str, list[Any]] = {"h": [], "d": []}
        inputs = self.graph.placeholders
        for k, value in enumerate(self.graph.outputs):
            part = self._of(value) if isinstance(value, Node) else self.device
            found[part.name].append(part.env[value] if isinstance(value, Node) else value)
            part.results.append(k)
            if k >= len(self.mutated):
                continue
            target = inputs[self.mutated[k]]
            if self._of(target) is not part:
                raise NotImplementedError(f"inductor: {target.name} is overwritten with a value on another device")
            part.written.append(self.mutated[k])
        return found

    def _finish(self, part: _Part, outputs: Sequence[Any]) -> None:
        graph, whole = part.graph, self.graph.signature
        graph.output(tuple(outputs))
        graph.eliminate_dead_code()
        for key in graph.root.keys() - {str(n.target) for n in graph.find("get_attr")}:
            del graph.root[key]
        places = {given: at for at, given in enumerate(part.given)}
        parameters = tuple(places[f"a{i}"] for i in (whole.parameters if whole else ()) if f"a{i}" in places)
        mutated = tuple(places[f"a{i}"] for i in part.written)
        graph.signature = GraphSignature(mutated, len(outputs) - len(mutated), 0, parameters, self.may_write)
        if graph.shapes is None:
            return
        sources = self.graph.input_symbols()
        for s in sorted(graph.find_symbols(), key=lambda s: s.name):  # no tensor of the part gives it
            graph.add_number_input(s, "int")
            part.given.append(sources[s].text(f"a{sources[s].input}"))

    # ---- the callable ----

    def callable(self, compiled: Mapping[str, Callable[..., Any]], *, writes: bool) -> Callable[..., Any]:
        """The parts as one function. writes: whether they write the mutated inputs, and omit the new values from their results."""
        omitted = {part.name: len(part.written) if writes else 0 for part in (self.host, self.device)}
        first = len(self.host.results) - omitted["h"]
        lines = [f"def compiled({', '.join(f'a{i}' for i in self.numbers.values())}):"]
        places: dict[int, str] = {}
        for part in (self.host, self.device):
            name, skip = part.name, omitted[part.name]
            if name in compiled:
                given = ", ".join(f"h[{first + x}]" if isinstance(x, int) else x for x in part.given)
                lines.append(f"    {name} = run_{name}({given})")
            places |= {k: f"{name}[{at - skip}]" for at, k in enumerate(part.results) if at >= skip}
        lines.append(f"    return ({''.join(f'{places[k]}, ' for k in sorted(places))})")
        source = "\n".join(lines)
        env: dict[str, Any] = {f"run_{name}": run for name, run in compiled.items()} | self.constants
        exec(compile(source, "<parts of a compiled graph>", "exec"), env)
        made: Any = env["compiled"]
        made.parts, made.writes_inputs, made.__doc__ = tuple(compiled.values()), writes, source
        whole: Callable[..., Any] = made
        return whole
