"""The end of a captured graph, and its call in generated code.

Unused nodes are erased, and the graph becomes a module. The call has arguments, modes after it, and an eager run after an error.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dynamo.emit.runtime import HELPERS
from dynamo.emit.writer import CodeGen
from dynamo.guards.sources import ConstSource
from dynamo.policy.callees import CAPTURED_GRAPH
from fxir.ir.graph_module import GraphModule
from fxir.symbols.unbacked import AssumptionFailed

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
    for node in reversed(cap.graphs.graph.in_order()):
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


def graph_call(cg: CodeGen) -> list[str]:
    """Compile the graph and return the statements that call it, with the modes of the program's end behind the call.

    Called after every value is written, so that `cg.outputs` is complete. The arguments may add statements to the prologue.
    """
    cap = cg.cap
    nodes = list(cg.outputs)
    prune(cap, nodes)
    switched = {n.target for n in cap.recorder.effect_nodes}
    lines: list[str] = []
    if any(n.op not in ("placeholder", "output") for n in cap.graphs.graph.in_order()) or nodes:
        cap.recorder.inputs[:] = [v for v in cap.recorder.inputs if v.node.users or v.node in nodes]
        for node in cap.graphs.graph.placeholders:
            if not node.users and node not in nodes:
                cap.graphs.graph.erase_node(node)
        args = ", ".join([*_graph_arguments(cg), *_graph_symbols(cg)])
        try:
            HELPERS["set_inference_mode"](False)  # traces that a backend keeps must be valid for calls in any mode
            compiled = cg.compiler.compile_graph(cap, nodes)
        finally:  # a backend that traces the graph by running it may leave a block of no_grad or autocast open
            HELPERS["set_inference_mode"](cap.modes.initial_inference)
            HELPERS["set_grad_enabled"](cap.modes.initial_grad)
            HELPERS["switch_autocast"](cap.modes.initial_autocast)
        targets = "".join(f"_g{i}, " for i in range(len(nodes)))
        call = f"{cg.bind(compiled, 'graph')}({args})"
        lines = _guarded_call(cg, f"({targets}) = {call}" if nodes else call)
        if cap.modes.switches_inference:
            lines = [f"{cg.helper('set_inference_mode')}(False)", *lines, *_inference_marks(cg, nodes)]
    if HELPERS["set_grad_enabled"] in switched or cap.modes.grad != cap.modes.initial_grad:
        lines.append(f"{cg.helper('set_grad_enabled')}({cap.modes.grad})")
    if HELPERS["switch_autocast"] in switched or cap.modes.autocast != cap.modes.initial_autocast:
        lines.append(f"{cg.helper('switch_autocast')}({cap.modes.autocast})")
    if cap.modes.switches_inference:
        lines.append(f"{cg.helper('set_inference_mode')}({cap.modes.inference})")
    return lines


def _inference_marks(cg: CodeGen, nodes: list[Node]) -> list[str]:
    """Statements that mark the outputs made in inference mode. A graph in which the program switches the mode runs outside the mode."""
    fakes = {v.node: v.fake for v in cg.cap.recorder.fakes.values()}
    made = [(i, fakes.get(n)) for i, n in enumerate(nodes) if n.op != "placeholder"]
    return [f"_g{i}._is_inference = True" for i, fake in made if fake is not None and fake.is_inference()]


def _graph_arguments(cg: CodeGen) -> Iterator[str]:
    """Expressions of the inputs of the graph. More than three constants in a row, as parameters of a module, become one bound tuple."""
    for constant, run in itertools.groupby(cg.cap.recorder.inputs, lambda v: isinstance(v.source, ConstSource)):
        values = list(run)
        if constant and len(values) > 3:
            yield "*" + cg.bind(tuple(v.source.value for v in values), "constants")  # type: ignore[union-attr]
        else:
            yield from (cg.source_of(v) for v in values)


def _graph_symbols(cg: CodeGen) -> list[str]:
    """Expressions of the number inputs: symbols that no size of an input tensor gives."""
    cap, graph = cg.cap, cg.cap.graphs.graph
    if not cap.symbols.shapes.symbols:
        return []
    graph.shapes = cap.symbols.shapes
    cap.symbols.number_inputs = sorted(graph.settle_symbols() - cap.symbols.shapes.unbacked.symbols, key=lambda s: s.name)
    for s in cap.symbols.number_inputs:
        graph.add_number_input(s, "float" if isinstance(cap.symbols.shapes.symbols[s].hint, float) else "int")
    return [cg.source(cap.symbols.shapes.symbols[s].source) for s in cap.symbols.number_inputs]


def _guarded_call(cg: CodeGen, call: str) -> list[str]:
    """The call of the graph.

    If the program can run a second time, the call is followed by a handler that runs it eagerly after an error.
    """
    cap = cg.cap
    handler = cg.compiler.on_graph_error(cap.recorder.may_refuse) if cap.recorder.may_refuse or not cap.recorder.written else None
    caught = "Exception"
    before, check = _unwritten(cg) if handler is not None and cap.recorder.written else ([], [])
    if cap.recorder.is_refusal_handled:
        handler = cg.compiler.on_refusal()
    elif handler is None and cap.data.calls.nodes:
        handler, caught = cg.compiler.on_refusal(), cg.bind(AssumptionFailed, "AssumptionFailed")
    if handler is None:
        return [call]
    for used, read, restore in ((cap.recorder.uses_generators, "generators_at", "generators_back"),
                                (cap.data.draws, "random_state", "set_random_state")):  # fmt: skip
        if used:  # the eager run draws the same numbers
            state = cg.fresh("state")
            before.append(f"{state} = {cg.helper(read)}()")
            check.append(f"    {cg.helper(restore)}({state})")
    slots = "".join([f"{p.text}, " for p in cg.parameters])
    cg.uses_function = cg.uses_function or not cg.compiler.is_continuation
    name = cg.bind(handler, "on_graph_error")
    leave = f"{cg.helper('set_inference_mode')}({cap.modes.initial_inference}); " if cap.modes.switches_inference else ""
    initial = (f"{leave}{cg.helper('set_grad_enabled')}({cap.modes.initial_grad}); "
               f"{cg.helper('switch_autocast')}({cap.modes.initial_autocast})")  # fmt: skip
    return [*before, "try:", "    " + call, f"except {caught} as _error:", *check, "    " + initial,
            # Behind the handler, so that an error of the eager run does not get `_error` as its context.
            f"    return {cg.helper('tail')}({name}, _error, ({slots}){', _fn' * (not cg.compiler.is_continuation)})"]  # fmt: skip


def _unwritten(cg: CodeGen) -> tuple[list[str], list[str]]:
    """Statements before a graph that writes to its inputs, and at the start of its error handler.

    The program can run once more if the graph has written nothing, or after the writes are undone.
    """
    if not cg.compiler.writes_at_end:
        memory = cg.fresh("memory")
        inputs = ", ".join(cg.source_of(v) for v in cg.cap.recorder.written)
        return [f"{memory} = {cg.helper('before_writes')}({inputs})"], [f"    {memory}.undo()"]
    first, version = cg.fresh("written"), cg.fresh("version")
    before = [f"{first} = {cg.source_of(cg.cap.recorder.written[0])}", f"{version} = {first}._version"]
    return before, [f"    if {first}._version != {version}:", "        raise"]

