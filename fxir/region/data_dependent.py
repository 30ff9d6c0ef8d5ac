"""Graphs with data-dependent sizes, as a chain of graphs without them.

A call that computes a size or a number from data (`x.nonzero()`, `n.item()`) runs uncompiled, between compiled graphs. Its
results are inputs of the graphs after it, with symbolic sizes: an unbacked symbol (`fxir.symbols.shapes`) is a size of an
input of the next stage. So a backend for symbolic sizes compiles these graphs too, and gradients, writes and aliasing are as in
consecutive calls.

Owns the cut (`staged`) and running the chain (`Staged`). An assumption about a symbol is checked as soon as the symbol is
known; AssumptionFailed then makes the caller run the program uncompiled.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import field
from typing import Any, Final

from eager import _native
from eager._tensor.tensor import Tensor
from eager.base import thread_state
from eager.base.logs import component
from eager.base.records import dataclass
from eager.base.spec import TensorSpec
from fxir.base.safe_repr import text
from fxir.expr.rules import Sym
from fxir.ir.graph import Graph
from fxir.ir.graph_module import GraphModule
from fxir.ir.node import Node, map_nodes, walk_nodes
from fxir.symbols.shapes import (
    MOST,
    AssumptionFailed,
    GuardOnDataDependentSymNode,
    NeedsStatic,
    ShapeEnv,
    SymbolSource,
    bound,
)

LOG: Final = component("dynamic")
Compile = Callable[[GraphModule, list[Any]], Callable[..., Any]]


class CannotStage(Exception):
    """A graph cannot be cut at its data-dependent calls: the capture must break the graph there."""


@dataclass(frozen=True, slots=True)
class SymbolPlace:
    """The place of an unbacked symbol's value: size `dim` of the result of `node`; the result itself, a number, if dim is None."""

    node: Node
    dim: int | None = None

    def read(self, value: Any) -> Any:
        return value if self.dim is None else value.shape[self.dim]


@dataclass(slots=True)
class DataCalls:
    """The calls of a graph that compute sizes or numbers from data. fakes: their tensor results, by node."""

    nodes: set[Node] = field(default_factory=set)
    places: dict[Sym, SymbolPlace] = field(default_factory=dict)
    fakes: dict[Node, Tensor] = field(default_factory=dict)


@dataclass(slots=True)
class _Step:
    """A run of nodes. graph: the compiled graph; None: the nodes run one by one.

    inputs, symbols: the arguments of the compiled graph. outputs: nodes whose values it returns. dead: nodes without readers
    after the step. grad, autocast: the modes to run in, None for the caller's modes. checks: assumptions to check after the
    step.
    """

    nodes: list[Node]
    data: bool
    grad: bool | None
    autocast: int | None
    graph: Callable[..., Any] | None = None
    inputs: list[Node] = field(default_factory=list)
    symbols: list[Sym] = field(default_factory=list)
    outputs: list[Node] = field(default_factory=list)
    dead: list[Node] = field(default_factory=list)
    places: list[tuple[Sym, SymbolPlace]] = field(default_factory=list)
    checks: list[Any] = field(default_factory=list)


def staged(
    gm: GraphModule, examples: Sequence[Any], calls: DataCalls, compile_: Compile, faking: Callable[[], AbstractContextManager[Any]]
) -> Staged:  # fmt: skip
    """`gm` cut at its data-dependent calls; `compile_(gm, examples)` compiles the parts between them.

    examples: as for a backend. faking: a context in which ops return fakes. Raises: errors of compile_; CannotStage.
    """
    cut = _Cut(gm, calls)
    env: dict[Node, Any] = dict(zip(gm.graph.placeholders, examples, strict=True))
    shapes = gm.graph.shapes
    assert shapes is not None
    values: dict[Sym, Any] = {s: shapes.argument(s) for s in shapes.symbols}
    for step in cut.steps:
        if step.data:
            env.update((n, calls.fakes[n]) for n in step.nodes if n in calls.fakes)
            continue
        with _modes(step), shapes.unbacked.assuming():
            inner = cut.graph(step)
            given = [*(env[n] for n in step.inputs), *(shapes.argument(s) for s in step.symbols)]
            step.graph = _compiled(inner, given, compile_, shapes)
            with faking():
                for n in step.nodes:
                    env[n] = _run(n, env, values, gm.root)
    cut.place_checks(shapes)
    return Staged(gm, cut.steps, cut.sources(shapes))


def _compiled(inner: GraphModule, given: list[Any], compile_: Compile, shapes: ShapeEnv) -> Callable[..., Any]:
    try:
        return compile_(inner, given)
    except (NotImplementedError, GuardOnDataDependentSymNode) as refusal:
        # The part between two calls may share memory in ways that inputs cannot, or may need the number itself.
        LOG.log(f"a part of the graph runs uncompiled: {refusal}")
        return inner.forward
    except NeedsStatic as refusal:
        if shapes.unbacked.symbols.isdisjoint(refusal.symbols):
            raise
        LOG.log(f"a part of the graph runs uncompiled: {refusal}")
        return inner.forward


class _Cut:
    """The steps of a graph, in order."""

    def __init__(self, gm: GraphModule, calls: DataCalls) -> None:
        self.gm, self.calls = gm, calls
        self.steps: list[_Step] = []
        self.results = walk_nodes(gm.graph.output_node.args)
        parts = set(calls.nodes)
        grad: bool | None = None
        autocast: int | None = None
        for n in gm.graph.nodes:
            if n.op in ("placeholder", "output", "get_attr"):
                continue
            data = n in parts or (n.target is operator.getitem and n.args[0] in parts and not _is_tensor(n.args[0]))
            if data:
                parts.add(n)
            if not self.steps or self.steps[-1].data != data:
                self.steps.append(_Step([], data, grad, autocast))
            self.steps[-1].nodes.append(n)
            if n.target is _native.set_grad_enabled:
                grad = n.args[0]
            elif n.target is thread_state.switch_autocast:
                autocast = n.args[0]
        self._connect()

    def _connect(self) -> None:
        """The values that each step takes and returns, and the step after which each value is dropped."""
        last: dict[Node, int] = {}
        for k, step in enumerate(self.steps):
            inside = set(step.nodes)
            for n in step.nodes:
                for used in walk_nodes((n.args, n.kwargs)):
                    last[used] = k
                    if used not in inside and used.op != "get_attr" and used not in step.inputs:
                        step.inputs.append(used)
        kept = set(self.results)
        for k, step in enumerate(self.steps):
            inside = set(step.nodes)
            step.outputs = [n for n in step.nodes if n in kept or last.get(n, -1) > k]
            step.dead = [n for n, at in last.items() if at == k and n not in kept and (n not in inside or step.data)]
            step.places = [(s, t) for s, t in self.calls.places.items() if t.node in inside]

    def graph(self, step: _Step) -> GraphModule:
        """The nodes of a step as a separate graph."""
        graph = Graph(self.gm.root)
        graph.shapes = self.gm.graph.shapes
        env: dict[Node, Node] = {n: graph.placeholder(n.name, info=n.info) for n in step.inputs}
        for n in step.nodes:
            for used in walk_nodes((n.args, n.kwargs)):
                if used not in env:
                    env[used] = graph.copy_node(used, env.__getitem__)
            env[n] = graph.copy_node(n, env.__getitem__)
        graph.output(tuple(env[n] for n in step.outputs))
        step.symbols = sorted(graph.settle_symbols(), key=lambda s: s.name)
        assert graph.shapes is not None
        for s in step.symbols:
            graph.add_number_input(s, "float" if isinstance(graph.shapes.hints[s], float) else "int")
        return GraphModule(graph.root, graph, self.gm.name)

    def place_checks(self, shapes: ShapeEnv) -> None:
        """Place each assumption behind the step that gives the last of its symbols. A symbol that no step gives is used only
        inside the call that creates it, which runs uncompiled.
        """
        at = {s: k for k, step in enumerate(self.steps) for s, _ in step.places}
        for r in shapes.unbacked.assumed:
            unbacked = r.symbols & shapes.unbacked.symbols
            if unbacked <= at.keys():
                self.steps[max(at[s] for s in unbacked)].checks.append(r)

    def sources(self, shapes: ShapeEnv) -> dict[Sym, SymbolSource]:
        """The sources of the other symbols that a step needs."""
        sources = self.gm.graph.input_symbols()
        needed = {s for step in self.steps for r in step.checks for s in r.symbols}
        missing = needed - sources.keys() - shapes.unbacked.symbols
        if missing:
            raise CannotStage(f"no input gives {', '.join(s.name for s in missing)}")
        return sources


@dataclass(slots=True, eq=False)
class Staged:
    """A chain of compiled graphs and data-dependent calls. It is called like `gm`."""

    gm: GraphModule
    steps: list[_Step]
    sources: dict[Sym, SymbolSource]

    def __call__(self, *args: Any) -> Any:
        try:
            return self._run(args)
        except AssumptionFailed as failed:
            LOG.log(f"the call runs uncompiled, since an assumption about its data failed: {failed}")
            raise

    def _run(self, args: tuple[Any, ...]) -> Any:
        env: dict[Node, Any] = dict(zip(self.gm.graph.placeholders, args, strict=True))
        values: dict[Sym, Any] = {s: source.read(args) for s, source in self.sources.items()}
        for step in self.steps:
            with _modes(step):
                if step.graph is None:
                    for n in step.nodes:
                        env[n] = _run(n, env, values, self.gm.root)
                    _learn(step, env, values)
                else:
                    numbers = [values[s] for s in step.symbols]
                    found = step.graph(*(env[n] for n in step.inputs), *numbers)
                    env.update(zip(step.outputs, found, strict=True))
            for n in step.dead:
                env.pop(n, None)
        return map_nodes(self.gm.graph.output_node.args[0], env.__getitem__)


def _learn(step: _Step, env: Mapping[Node, Any], values: dict[Sym, Any]) -> None:
    """Read the values of the symbols that a step gives, and check the assumptions about them."""
    for s, place in step.places:
        value = values[s] = place.read(env[place.node])
        if isinstance(value, int) and not s.lo <= value <= s.hi:
            raise AssumptionFailed(f"{s.name} = {text(value)}, which is not in {s.lo}..{s.hi}")
    for n in step.nodes:
        if _is_tensor(n) and n in env:
            t, wanted = env[n], bound(n.info.spec, values)
            if t.shape != wanted.shape or t.stride() != wanted.strides or t.dtype is not wanted.dtype:
                raise AssumptionFailed(f"{n.name} has shape {list(t.shape)} and strides {t.stride()}; expected {wanted}")
    for r in step.checks:
        if not r.holds(values):
            raise AssumptionFailed(f"{r} does not hold" + (f", needed at {r.origin}" if r.origin else ""))


def _run(n: Node, env: Mapping[Node, Any], values: Mapping[Sym, Any], root: Mapping[str, Any]) -> Any:
    def value(x: Node) -> Any:
        return root[str(x.target)] if x.op == "get_attr" else env[x]

    args = map_nodes(bound(n.args, values), value)
    kwargs = map_nodes(bound(n.kwargs, values), value)
    if n.op == "call_method":
        return getattr(args[0], str(n.target))(*args[1:], **kwargs)
    assert callable(n.target)
    return n.target(*args, **kwargs)


@contextmanager
def _switched(step: _Step) -> Any:
    grad, autocast = _native.grad_enabled(), thread_state.autocast_number()
    try:
        if step.grad is not None:
            _native.set_grad_enabled(step.grad)
        if step.autocast is not None:
            thread_state.switch_autocast(step.autocast)
        yield
    finally:
        _native.set_grad_enabled(grad)
        thread_state.switch_autocast(autocast)


def _modes(step: _Step) -> AbstractContextManager[Any]:
    """Enter the modes of a step. The caller's modes are restored after a step that switches them or runs in other modes."""
    return _switched(step) if step.grad is not None or step.autocast is not None or _switches(step) else nullcontext()


def _switches(step: _Step) -> bool:
    return any(n.target in (_native.set_grad_enabled, thread_state.switch_autocast) for n in step.nodes)


def _is_tensor(n: Any) -> bool:
    return isinstance(n, Node) and isinstance(n.info.spec, TensorSpec)


__all__ = ["MOST", "CannotStage", "DataCalls", "Staged", "SymbolPlace", "staged"]
