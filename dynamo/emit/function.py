"""One generated function, from the end of a capture to a Python function object.

The function fetches its sources before it changes anything, runs the compiled graph, replays the side effects, and returns; or, at a
graph break, it runs the instruction in plain Python and continues in a continuation. It is compiled with the file name and the line
numbers of the user's code, so that a traceback through it reads as in eager. At the end of the capture, unused nodes are erased, and
the graph becomes a module. Its call has arguments, modes after it, and an eager run after an error.
"""

from __future__ import annotations

import ast
import itertools
import weakref
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Final

from dynamo.bytecode.decode import location_table
from dynamo.bytecode.tracebacks import GENERATED, Generated
from dynamo.emit.break_writer import BreakWriter
from dynamo.emit.plan import Compiler
from dynamo.emit.runtime import HELPERS
from dynamo.emit.writer import CodeGen, Cycle, is_name
from dynamo.frames.capture import Capture, Finished, Stop
from dynamo.guards.sources import ConstSource
from dynamo.policy.callees import CAPTURED_GRAPH
from dynamo.python.finalizers import leads_to, value_end_is_visible
from dynamo.report import causes
from dynamo.report.errors import GiveUp, Restart
from eager.base import thread_state
from eager.base.locks import new_lock
from eager.base.records import dataclass
from fxir.ir.graph_module import GraphModule
from fxir.symbols.shapes import AssumptionFailed

if TYPE_CHECKING:
    from dynamo.frames.frame import Frame
if TYPE_CHECKING:
    from dynamo.frames.capture import Capture
    from fxir.ir.node import Node


# -- the call of the graph ------------------------------------------------------------------------------------------
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
            if thread_state.autocast_number() != cap.modes.initial_autocast:
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


# -- the function ---------------------------------------------------------------------------------------------------
_PARSING: Final = new_lock()


def _parsed(text: str) -> ast.Module:
    """The tree of a text. CPython 3.11 and 3.12 share the depth count of trees between threads: a parse may fail beside another."""
    with _PARSING:
        try:
            return ast.parse(text)
        except SystemError:  # from a parse of the user's, in another thread
            return ast.parse(text)


@dataclass(frozen=True, slots=True)
class GeneratedFunction:
    """A generated function and its text. takes_function: its last argument is the function object of the user."""

    function: FunctionType
    takes_function: bool
    text: str


def generate(cap: Capture, compiler: Compiler, root: Frame, slot_names: tuple[str, ...], end: Finished | Stop) -> GeneratedFunction:
    """The function for a capture that started at `root` and ended with `end`. slot_names: of the flat inputs.

    Raises: Restart, GiveUp where no generated code can have the effect of the program.
    """
    cg = CodeGen(cap, compiler, root, slot_names)
    cg.running = end.frames if isinstance(end, Stop) else ()
    for generator in cap.frames.generators:
        if generator.has_unfinished_business and not generator.closes_quietly(cap):
            cg.impossible(generator, f"{generator.describe()} is left inside a try or with block")
    try:
        cap.effects.replay(cg)
        if cap.modes.forbidden is not cap.modes.initial_forbidden:
            cg.statement(f"{cg.helper('forbid')}({cap.modes.forbidden})")
        if isinstance(end, Finished):
            _hold_in_cycles(cg)
            cg.statement(f"return {cg.value(end.value)}")
        else:
            BreakWriter(cg, end).write()
    except Cycle:
        raise GiveUp(causes.EXCEPTION, "an object whose constructor arguments contain the object") from None
    graph = graph_call(cg)
    lines = [*((line, 1) for line in (*cg.prologue, *graph)), *cg.body]
    return _compile(cg, lines, end)


def _hold_in_cycles(cg: CodeGen) -> None:
    """Make the locals that hold an exception whose traceback contains the frame: the traceback keeps the locals after the call."""
    root = cg.root
    if not cg.cap.frames.passed:
        return
    if any(v is not None and value_end_is_visible(v, root) for v in root.locals):
        for value in root.locals:
            if value is not None and leads_to(value, root):
                cg.value(value)


def _compile(cg: CodeGen, lines: list[tuple[str, int]], end: Finished | Stop) -> GeneratedFunction:
    """lines: statements, each with the number of frames that a traceback through the statement shows."""
    frames = end.frames if isinstance(end, Stop) else (cg.root,)
    code = frames[0].code
    parameters = ", ".join([*(p.text for p in cg.parameters), *(["_fn"] if cg.uses_function else [])])
    name = code.co_name if is_name(code.co_name) else "compiled"
    text = f"def {name}({parameters}):\n" + "\n".join("    " + line for line, _ in lines or [("pass", 1)])
    tree = _parsed(text)
    marks = [1, 1, *(mark for _, mark in lines), 1]
    alike = all(mark == 1 for mark in marks)
    for node in () if alike else ast.walk(tree):
        if hasattr(node, "lineno"):
            node.col_offset = node.end_col_offset = marks[node.lineno]  # type: ignore[attr-defined]
    namespace = cg.namespace
    for key in ("__name__", "__builtins__"):  # warnings and imports of callees read these globals
        if key in frames[0].globals:
            namespace[key] = frames[0].globals[key]
    try:
        whole = compile(tree, code.co_filename, "exec")
    except SyntaxError:  # "too many statically nested blocks": one block for each frame with a handler
        raise _too_deep(end) from None
    made = next(c for c in whole.co_consts if isinstance(c, CodeType))
    places = tuple(f.place() for f in frames)
    shown = (1,) * (len(made.co_code) // 2) if alike else tuple(p[2] if p[2] is not None else 1 for p in made.co_positions())
    namespace[GENERATED] = Generated(places, shown, cg.held or ((),) * len(places))
    first = code.co_firstlineno
    table = location_table(len(made.co_code) // 2, first, places[0].position)
    made = made.replace(co_qualname=code.co_qualname, co_firstlineno=first, co_linetable=table)
    function = FunctionType(made, namespace, code.co_name)
    if cg.own_function:
        namespace[cg.own_function] = weakref.ref(function)
    return GeneratedFunction(function, cg.uses_function, text)


def _too_deep(end: Finished | Stop) -> Exception:
    """The break at the outermost call instead: its callee is then captured separately."""
    detail = "a break under too many frames with handlers"
    if isinstance(end, Stop) and len(end.frames) > 1:
        return Restart(end.frames[0].step_number, causes.INLINE_DEPTH, detail)
    return GiveUp(causes.INLINE_DEPTH, detail)
