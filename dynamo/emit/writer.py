"""From the end of a capture to the source of a function that does the same.

The generated function fetches what it needs (before anything changes), runs the compiled graph, replays the effects,
and returns, or performs the instruction of a graph break and goes on in a continuation. It is ordinary Python, compiled
with the user's file name and line, so that a traceback through it reads like eager's.

Owns text only. What is captured comes from `capture`; where continuations live is the compiler's business (`Plan`).
"""

from __future__ import annotations

import ast
import builtins
import itertools
import keyword
import math
import re
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol

from dynamo.bytecode.tracebacks import GENERATED, Generated, location_table
from dynamo.emit.break_instructions import Outcome, Performed, perform
from dynamo.emit.prune import prune
from dynamo.emit.runtime import HELPERS
from dynamo.frames.capture import Capture, Finished, Stop
from dynamo.guards.sources import ConstSource, Source
from dynamo.python.finalizers import holds_aloud, leads_to, may_be_watched
from dynamo.report import causes
from dynamo.report.errors import GiveUp, Restart
from dynamo.values.base import NULL, Value
from dynamo.values.constant import NONE, Constant, is_plain_literal
from dynamo.values.objects import ExceptionValue, Passed, TracebackValue, UserObject
from dynamo.values.symbolic import SymbolicText, SymbolicValue
from dynamo.values.writer import Captured, Writer
from dynamo.world.wrap import is_exception_class
from eager.base.symfloat import SymFloat
from eager.base.symint import SymInt
from fxir.expr.printing import PYTHON, to_source
from fxir.expr.rules import Expr, Sym
from fxir.symbols.floats import FloatExpr, to_text
from fxir.symbols.shapes import plain, symbols_in
from fxir.symbols.unbacked import AssumptionFailed

if TYPE_CHECKING:
    from dynamo.frames.frame import Frame
    from fxir.ir.node import Node

_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z_0-9]*\Z")
_PARSING: Final = threading.Lock()


def _parsed(text: str) -> ast.Module:
    """CPython 3.11 and 3.12 count the depth of a tree in one place for all threads, and refuse one made while another was."""
    with _PARSING:
        try:
            return ast.parse(text)
        except SystemError:  # somebody else's
            return ast.parse(text)


class Plan(Protocol):
    """What generated code needs from the compiler."""

    region: Any

    def compile_graph(self, cap: Capture, outputs: list[Node]) -> Callable[..., Any]:
        """The compiled graph: takes the capture's used inputs in order, gives a tuple of the outputs."""

    @property
    def writes_at_end(self) -> bool:
        """Whether a compiled graph that refuses its data has written to no input."""

    def continuation(self, frame: Frame, index: int, slots: list[int], nulls: tuple[bool, ...]) -> Callable[..., Any]:
        """What goes on in `frame` at instruction `index` with these locals and a stack of this pattern."""

    def reenter(self, frame: Frame) -> Callable[..., Any]:
        """(offset, locals, stack, exc, handled): the original frame in plain Python from there to its end."""

    is_continuation: bool  # whether the function that is written goes on in the middle of another

    def on_refusal(self) -> Callable[..., Any]:
        """As `on_graph_error`, for AssumptionFailed: the program runs uncompiled."""

    def on_graph_error(self, may_refuse: bool) -> Callable[..., Any] | None:
        """(error, slots): what to do when the compiled graph raises; None: let it rise. may_refuse: it may refuse its data."""


class _Cycle(Exception):
    """A container is part of itself."""


class CodeGen:
    """Builds one function. Expressions handed out are names, literals or pure."""

    def __init__(self, cap: Capture, plan: Plan, n_slots: int, slot_names: tuple[str, ...]) -> None:
        self.cap = cap
        self.plan = plan
        self.n_slots = n_slots
        self.namespace: dict[str, Any] = {}
        self.prologue: list[str] = []
        self.body: list[tuple[str, int]] = []
        self.mark = 1  # how many of the inlined frames a traceback through the next statements shows
        self.held: tuple[tuple[tuple[str, str], ...], ...] = ()  # for each of them: variables of the user's, and ours for them
        self.outputs: list[Node] = []
        self.raised: dict[int, ExceptionValue] = {}  # those that are given tracebacks
        self.running: tuple[Frame, ...] = ()
        self.own_function = ""  # what stands for a weak reference to the function itself, where it is needed
        self.owners: dict[int, str] = {}  # by id of a frame that is running: what stands for it in tracebacks
        self._names = itertools.count()
        self._slot_names = self._arguments(slot_names)
        self._bound: dict[int, str] = {}
        self._sources: dict[Source, str] = {}
        self._values: dict[int, str | None] = {}  # None: being built
        self._keep: list[Any] = []
        self._fills: list[Callable[[], None]] = []
        self._depth = 0
        self._filling = False
        self._indent = ""

    def _arguments(self, names: tuple[str, ...]) -> list[str]:
        """Parameters by the user's names; others where these would hide what the generated text calls by name."""
        taken: set[str] = set(HELPERS) | set(vars(builtins))
        out = []
        for i, name in enumerate(names):
            ok = _IDENTIFIER.match(name) and not keyword.iskeyword(name) and not name.startswith("_")
            candidates = itertools.chain((name, f"{name}_{i}") if ok else (), (f"s{i}_{k}" for k in itertools.count()))
            chosen = next(c for c in candidates if c not in taken)
            taken.add(chosen)
            out.append(chosen)
        return out

    # -- names -------------------------------------------------------------------------------------------------
    def fresh(self, hint: str) -> str:
        return f"_{hint}{next(self._names)}"

    def helper(self, name: str) -> str:
        """A function of runtime.HELPERS."""
        self.namespace[f"__{name}"] = HELPERS[name]
        return f"__{name}"

    def bind(self, obj: Any, label: str) -> str:
        """A global of the generated function that holds `obj`."""
        if id(obj) not in self._bound:
            safe = re.sub(r"\W", "_", label) or "object"
            name = f"_{safe}_{next(self._names)}"
            self._bound[id(obj)] = name
            self._keep.append(obj)
            self.namespace[name] = obj
        return self._bound[id(obj)]

    def slot_name(self, index: int) -> str:
        if index == self.n_slots:
            self.uses_function = True
            return "_fn"
        return self._slot_names[index]

    uses_function = False

    def constant(self, value: Any) -> str:
        if is_plain_literal(value):  # others are bound, so that each stays the object that it is
            return f"({value!r})" if isinstance(value, int | float) and not isinstance(value, bool) else repr(value)
        return self.bind(value, type(value).__name__)

    @property
    def grad_mode(self) -> bool:
        """Whether grad mode is on where the captured program ends."""
        return self.cap.modes.grad

    # -- statements --------------------------------------------------------------------------------------------
    def statement(self, text: str) -> None:
        self.body.append((self._indent + text, self.mark))

    def assign(self, expression: str) -> str:
        if _IDENTIFIER.match(expression):
            return expression
        name = self.fresh("t")
        self.statement(f"{name} = {expression}")
        return name

    def in_region(self, *parts: str) -> str:
        """A call whose callees may be captured."""
        return f"{self.helper('call_in_region')}({self.bind(self.plan.region, 'region')}, {', '.join(parts)})"

    # -- values ------------------------------------------------------------------------------------------------
    def source(self, source: Source) -> str:
        """A variable that holds what is at `source` before anything is changed."""
        if source not in self._sources:
            expression = source.reconstruct(self)
            if not _IDENTIFIER.match(expression):
                name = self.fresh("x")
                self.prologue.append(f"{name} = {expression}")
                expression = name
            self._sources[source] = expression
        return self._sources[source]

    def source_of(self, value: Captured) -> str:
        assert value.source is not None
        return self.source(value.source)

    def value(self, value: Captured) -> str:
        """An expression for `value`; the same object each time it is asked for."""
        if value is NULL:
            return self.helper("NULL")
        if isinstance(value, Constant) and value.source is None and not isinstance(value, SymbolicValue | SymbolicText):
            return self.constant(value.value)
        key = id(value)
        if key in self._values:
            known = self._values[key]
            if known is None:
                raise _Cycle
            return known
        self._keep.append(value)
        self._values[key] = None
        self._depth += 1
        try:
            text = value.reconstruct(self)
        except BaseException:
            self._values.pop(key, None)
            raise
        finally:
            self._depth -= 1
        if self._values.get(key) is None:
            self._values[key] = text if value.source is not None else self.assign(text)
        if self._depth == 0 and not self._filling:
            self._fill_all()
        found = self._values[key]
        assert found is not None
        return found

    def is_made(self, value: Value) -> bool:
        """Whether the generated function has an object for this new value."""
        return id(value) in self._values

    def variables(self) -> list[str]:
        """The parameters, and what is assigned before the instruction of a break. Some are no names."""
        given = (f"_g{i}" for i in range(len(self.outputs)))
        return [*self._slot_names, *self._sources.values(), *(v for v in self._values.values() if v), *given]

    def _fill_all(self) -> None:
        before, self._filling = self._filling, True
        while self._fills:
            self._fills.pop(0)()
        self._filling = before

    def filled(self, value: Captured) -> str:
        """As `value`, for something that is about to be iterated over: a container that is made has all its items."""
        text = self.value(value)
        self._fill_all()
        return text

    def container(
        self, value: Captured, make: str | None, fill: Callable[[str], None], literal: Callable[[Writer], str] | None,
        make_with: Callable[[Writer], str] | None = None,
    ) -> str:  # fmt: skip
        """A new mutable object: as one expression, or made empty and filled later when it is part of itself."""
        if literal is not None:
            known, lines, fills = set(self._values), len(self.body), len(self._fills)
            try:
                return literal(self)
            except _Cycle:
                for key in set(self._values) - known:
                    del self._values[key]
                del self.body[lines:], self._fills[fills:]
        text = make_with(self) if make_with is not None else make
        assert text is not None
        name = self.assign(text)
        self._values[id(value)] = name
        self._fills.append(lambda: fill(name))
        return name

    def set_attributes(self, obj: Captured, var: str) -> None:
        """Write the pending attributes of a new object onto the variable `var`."""
        assert isinstance(obj, Value)
        self.cap.effects.fill_new(self, obj, var)

    def new_object(self, obj: Captured) -> str:
        """An instance that the captured program makes."""
        assert isinstance(obj, UserObject)
        cls = self.bind(obj.cls, obj.cls.__name__)
        if isinstance(obj, ExceptionValue):
            return self._new_exception(obj, cls)
        make = f"{self.helper('object_new')}({cls})"
        return self.container(obj, make, lambda var: self.set_attributes(obj, var), None)

    def _new_exception(self, obj: ExceptionValue, cls: str) -> str:
        if not is_exception_class(obj.cls):
            self.impossible(obj, obj.describe())
        make = f"{self.helper('exception_new')}({cls}, {self.value(obj.args_tuple())}, {obj.initialized})"
        return self.container(obj, make, lambda var: self._fill_exception(obj, var), None)

    def _fill_exception(self, obj: ExceptionValue, var: str) -> None:
        given = self.traceback(obj) if self._leads_to_running(obj.passed) else self.value(obj.traceback())
        context = f"{self.helper('exc_info')}()[1]" if obj.raised_bare and obj.context is NONE else self.value(obj.context)
        links = f"{self.value(obj.cause)}, {context}, {obj.suppress}, {given}"
        self.statement(f"{self.helper('exception_link')}({var}, {links})")
        self.set_attributes(obj, var)
        self.raised[id(obj)] = obj

    def traceback(self, value: Captured, after: str = "None") -> str:
        """An expression for a traceback: entries for the frames that the exception passed, in front of `after`.

        Each entry holds the variables of its frame, as the frame left them. A frame that is still running gets its entry when it
        continues. The first entry holds the callers of its frame.
        """
        assert isinstance(value, ExceptionValue | TracebackValue)
        if isinstance(value, TracebackValue) and self._leads_to_running(value.passed):  # an entry cannot move to another frame
            self.impossible(value, "a traceback, of a frame that is running,")
        passed = value.passed
        bound = ((p, self._variables_of(p.frame.bound())) for p in passed)
        entries = "".join(f"({self.bind(p.place, 'place')}, {variables}, {self._owner(p.frame)}), " for p, variables in bound)
        callers = "".join(map(self._held_caller, passed[0].callers))
        if value.source is not None and isinstance(value, ExceptionValue):
            self.raised[id(value)] = value
        return f"{self.helper('traceback_of')}(({entries}), {after}{f', ({callers})' if callers else ''})"

    def _held_caller(self, frame: Frame) -> str:
        """What keeps of a frame that no entry shows what ends aloud: the frame, if that is running, or those variables."""
        bound = frame.bound()
        if not any(holds_aloud(v, frame) for v in bound.values()):
            return ""
        if frame in self.running:
            return f"{self._owner(frame)}, "
        kept = {name: v for name, v in bound.items() if holds_aloud(v, frame) or leads_to(v, frame)}
        return f"{self._variables_of(kept)}, "

    def _leads_to_running(self, passed: Sequence[Passed]) -> bool:
        """Whether one of the frames is running, and takes its entry over when it goes on."""
        return any(p.frame in self.running for p in passed)

    def _variables_of(self, bound: Mapping[str, Value]) -> str:
        return f"{{{', '.join(f'{name!r}: {self.filled(v)}' for name, v in bound.items())}}}"  # cells tell what they hold

    def _owner(self, frame: Frame) -> str:
        """What stands for a frame that is running, in the entries that it is to get."""
        if frame not in self.running:
            return "None"
        if id(frame) not in self.owners:
            self.owners[id(frame)] = name = self.fresh("owner")
            self.prologue.append(f"{name} = {self.helper('owner')}()")
        return self.owners[id(frame)]

    def symbolic(self, value: SymInt | SymFloat) -> str:
        """An expression for a number that is one of symbols."""
        known = self.cap.symbols.shapes.symbols
        e = plain(value)
        names = {s: self._told(s) if known[s].source is None else self.source(known[s].source) for s in symbols_in(e)}
        if isinstance(e, Expr):
            return to_source(e, PYTHON.with_symbols(names.__getitem__))
        self.namespace["math"] = math
        return to_text(e, names.__getitem__) if isinstance(e, FloatExpr) else self.constant(e)

    def _told(self, s: Sym) -> str:
        """An expression for a number that data tells: the graph gives it, or the tensor that has it for a size."""
        told = self.cap.data.calls.told[s]
        name = self.graph_output(told.node)
        return name if told.dim is None else f"{name}.shape[{told.dim}]"

    def is_in_main_graph(self, node: Node) -> bool:
        """Whether `node` belongs to the main graph. A node of a nested graph has no value when the graph has run."""
        return node.graph is self.cap.graphs.main

    def graph_output(self, node: Node) -> str:
        """The variable of what a node of the graph gives."""
        self.outputs.append(node)
        return f"_g{len(self.outputs) - 1}"

    def impossible(self, value: Captured, what: str) -> NoReturn:
        """`value` cannot be rebuilt: break the graph where it was made, so that a real one exists."""
        if value.born > 0:
            raise Restart(value.born, causes.GENERATOR, what)
        raise GiveUp(causes.GENERATOR, what)

    # -- the function ------------------------------------------------------------------------------------------
    def finish(self, end: Finished | Stop) -> tuple[FunctionType, bool]:
        """The generated function, and whether it takes the function object as one more argument."""
        self.running = end.frames if isinstance(end, Stop) else ()
        for generator in self.cap.frames.generators:
            if generator.has_unfinished_business and not generator.closes_quietly(self.cap):
                self.impossible(generator, f"{generator.describe()} is left inside a try or with block")
        try:
            self.cap.effects.replay(self)
            if self.cap.modes.forbidden is not self.cap.modes.initial_forbidden:
                self.statement(f"{self.helper('forbid')}({self.cap.modes.forbidden})")
            if isinstance(end, Finished):
                self._hold_in_cycles()
                self.statement(f"return {self.value(end.value)}")
            else:
                _BreakWriter(self, end).write()
        except _Cycle:
            raise GiveUp(causes.EXCEPTION, "an object that is part of what it is made from") from None
        graph = self._graph_call()
        lines = [*((line, 1) for line in (*self.prologue, *graph)), *self.body]
        return self._compile(lines, end), self.uses_function

    def _hold_in_cycles(self) -> None:
        """Variables that hold an exception whose traceback leads to the frame: they and it outlive the call."""
        if any(v is not None and holds_aloud(v, self.root) for v in self.root.locals):
            for value in self.root.locals:
                if value is not None and leads_to(value, self.root):
                    self.value(value)

    def _graph_call(self) -> list[str]:
        cap = self.cap
        nodes = list(self.outputs)
        prune(cap, nodes)
        switched = {n.target for n in cap.recorder.effect_nodes}
        lines: list[str] = []
        if any(n.op not in ("placeholder", "output") for n in cap.graphs.graph.nodes) or nodes:
            cap.recorder.inputs[:] = [v for v in cap.recorder.inputs if v.node.users or v.node in nodes]
            for node in cap.graphs.graph.placeholders:
                if not node.users and node not in nodes:
                    cap.graphs.graph.erase_node(node)
            # the sources are fetched now, in the prologue
            args = ", ".join([*self._graph_arguments(), *self._graph_symbols()])
            try:
                HELPERS["set_inference_mode"](False)  # what a backend keeps of its traces is for calls in any mode
                compiled = self.plan.compile_graph(cap, nodes)
            finally:  # a graph that was run to be traced leaves the last block of no_grad or autocast open
                HELPERS["set_inference_mode"](cap.modes.initial_inference)
                HELPERS["set_grad_enabled"](cap.modes.initial_grad)
                HELPERS["switch_autocast"](cap.modes.initial_autocast)
            targets = "".join(f"_g{i}, " for i in range(len(nodes)))
            call = f"{self.bind(compiled, 'graph')}({args})"
            lines = self._guarded_call(f"({targets}) = {call}" if nodes else call)
            if cap.modes.switches_inference:
                lines = [f"{self.helper('set_inference_mode')}(False)", *lines, *self._inference_marks(nodes)]
        if HELPERS["set_grad_enabled"] in switched or cap.modes.grad != cap.modes.initial_grad:
            lines.append(f"{self.helper('set_grad_enabled')}({cap.modes.grad})")
        if HELPERS["switch_autocast"] in switched or cap.modes.autocast != cap.modes.initial_autocast:
            lines.append(f"{self.helper('switch_autocast')}({cap.modes.autocast})")
        if cap.modes.switches_inference:
            lines.append(f"{self.helper('set_inference_mode')}({cap.modes.inference})")
        return lines

    def _inference_marks(self, nodes: list[Node]) -> list[str]:
        """Statements that mark the outputs of a graph in which the program switched inference mode. It runs outside of the mode."""
        fakes = {v.node: v.fake for v in self.cap.recorder.fakes.values()}
        made = [(i, fakes.get(n)) for i, n in enumerate(nodes) if n.op != "placeholder"]
        return [f"_g{i}._is_inference = True" for i, fake in made if fake is not None and fake.is_inference()]

    def _graph_arguments(self) -> Iterator[str]:
        """Expressions of the graph's inputs. Constant ones in a row, a module's parameters, are one tuple."""
        for constant, run in itertools.groupby(self.cap.recorder.inputs, lambda v: isinstance(v.source, ConstSource)):
            values = list(run)
            if constant and len(values) > 3:
                yield "*" + self.bind(tuple(v.source.value for v in values), "constants")  # type: ignore[union-attr]
            else:
                yield from (self.source_of(v) for v in values)

    def _graph_symbols(self) -> list[str]:
        """Further inputs of the graph, numbers: symbols that its tensors do not tell."""
        cap, graph = self.cap, self.cap.graphs.graph
        if not cap.symbols.shapes.symbols:
            return []
        graph.shapes = cap.symbols.shapes
        cap.symbols.number_inputs = sorted(graph.settle_symbols() - cap.symbols.shapes.unbacked.symbols, key=lambda s: s.name)
        for s in cap.symbols.number_inputs:
            graph.add_number_input(s, "float" if isinstance(cap.symbols.shapes.symbols[s].hint, float) else "int")
        return [self.source(cap.symbols.shapes.symbols[s].source) for s in cap.symbols.number_inputs]

    def _guarded_call(self, call: str) -> list[str]:
        cap = self.cap
        handler = self.plan.on_graph_error(cap.recorder.may_refuse) if cap.recorder.may_refuse or not cap.recorder.written else None
        caught = "Exception"
        before, check = self._unwritten() if handler is not None and cap.recorder.written else ([], [])
        if cap.recorder.is_refusal_handled:
            handler = self.plan.on_refusal()
        elif handler is None and cap.data.calls.nodes:
            handler, caught = self.plan.on_refusal(), self.bind(AssumptionFailed, "AssumptionFailed")
        if handler is None:
            return [call]
        for used, read, restore in ((cap.recorder.uses_generators, "generators_at", "generators_back"),
                                    (cap.data.draws, "random_state", "set_random_state")):  # fmt: skip
            if used:  # it draws the same numbers then
                state = self.fresh("state")
                before.append(f"{state} = {self.helper(read)}()")
                check.append(f"    {self.helper(restore)}({state})")
        slots = "".join(n + ", " for n in self._slot_names)
        self.uses_function = self.uses_function or not self.plan.is_continuation
        name = self.bind(handler, "on_graph_error")
        leave = f"{self.helper('set_inference_mode')}({cap.modes.initial_inference}); " if cap.modes.switches_inference else ""
        initial = (f"{leave}{self.helper('set_grad_enabled')}({cap.modes.initial_grad}); "
                   f"{self.helper('switch_autocast')}({cap.modes.initial_autocast})")  # fmt: skip
        return [*before, "try:", "    " + call, f"except {caught} as _error:", *check, "    " + initial,
                # Behind the block: what the program raises now was not raised while `_error` was handled.
                f"    return {self.helper('tail')}({name}, _error, ({slots}){', _fn' * (not self.plan.is_continuation)})"]  # fmt: skip

    def _unwritten(self) -> tuple[list[str], list[str]]:
        """What stands before a graph that writes to its inputs, and behind its failure: the program can run once more as long as
        nothing was written to, or when that is undone."""
        if not self.plan.writes_at_end:
            memory = self.fresh("memory")
            inputs = ", ".join(self.source_of(v) for v in self.cap.recorder.written)
            return [f"{memory} = {self.helper('before_writes')}({inputs})"], [f"    {memory}.undo()"]
        first, version = self.fresh("written"), self.fresh("version")
        before = [f"{first} = {self.source_of(self.cap.recorder.written[0])}", f"{version} = {first}._version"]
        return before, [f"    if {first}._version != {version}:", "        raise"]

    def _compile(self, lines: list[tuple[str, int]], end: Finished | Stop) -> FunctionType:
        frames = end.frames if isinstance(end, Stop) else (self.root,)
        code = frames[0].code
        parameters = ", ".join([*self._slot_names, "_fn"] if self.uses_function else self._slot_names)
        name = code.co_name if _IDENTIFIER.match(code.co_name) and not keyword.iskeyword(code.co_name) else "compiled"
        self.text = f"def {name}({parameters}):\n" + "\n".join("    " + line for line, _ in lines or [("pass", 1)])
        tree = _parsed(self.text)
        marks = [1, 1, *(mark for _, mark in lines), 1]
        for node in ast.walk(tree):
            if hasattr(node, "lineno"):
                node.col_offset = node.end_col_offset = marks[node.lineno]  # type: ignore[attr-defined]
        for key in ("__name__", "__builtins__"):  # what warnings and imports of callees look at
            if key in frames[0].globals:
                self.namespace[key] = frames[0].globals[key]
        try:
            whole = compile(tree, code.co_filename, "exec")
        except SyntaxError:  # "too many statically nested blocks": one for each frame with a handler
            raise self._too_deep(end) from None
        made = next(c for c in whole.co_consts if isinstance(c, CodeType))
        places = tuple(f.place() for f in frames)
        shown = tuple(p[2] if p[2] is not None else 1 for p in made.co_positions())
        self.namespace[GENERATED] = Generated(places, shown, self.held or ((),) * len(places))
        first = code.co_firstlineno
        table = location_table(len(made.co_code) // 2, first, places[0].position)
        made = made.replace(co_qualname=code.co_qualname, co_firstlineno=first, co_linetable=table)
        function = FunctionType(made, self.namespace, code.co_name)
        if self.own_function:
            self.namespace[self.own_function] = weakref.ref(function)
        return function

    def _too_deep(self, end: Finished | Stop) -> Exception:
        """Break at the outermost call instead: its callee is then captured by itself."""
        detail = "a break under too many frames with handlers"
        if isinstance(end, Stop) and len(end.frames) > 1:
            return Restart(end.frames[0].step_number, causes.INLINE_DEPTH, detail)
        return GiveUp(causes.INLINE_DEPTH, detail)

    root: Frame
    text = ""


class _BreakWriter:
    """Writes what follows the graph at a break: state, instruction, continuations, one frame inside another."""

    def __init__(self, cg: CodeGen, stop: Stop) -> None:
        self.cg = cg
        self.stop = stop
        self.frames = stop.frames
        inner = stop.frames[-1]
        inner.kw_before = stop.kw_names
        self.performed: Performed | None = None
        # Who looks at frames must find the user's: the original code goes on, with every variable it has.
        self.looked_at = stop.cause is causes.FRAME_INTROSPECTION
        if inner.handled is None and not self.looked_at:
            self.performed = perform(cg, inner, stop.instruction)
        self._state: dict[int, tuple[dict[int, str], list[str]]] = {}
        self._aloud: dict[int, int] = {}  # masks of slots that are handed on although nothing reads them
        self._modules = [f.globals.get("__name__") for f in stop.frames]

    def _stand_for(self, k: int) -> None:
        """Callees may ask for the module that calls them, as namedtuple does: from here on it is that of frame k. From CPython
        3.12 on they are told that of the function."""
        if len(set(self._modules)) > 1:
            self.cg.own_function = self.cg.own_function or self.cg.fresh("own_function")
            self.cg.statement(f"__name__ = {self.cg.own_function}().__module__ = {self.cg.constant(self._modules[k])}")

    def write(self) -> None:
        # Everything that any frame will need exists before the instruction runs.
        known = -1
        while known != len(self.cg.owners):  # what a frame needs may be an exception, whose traceback shows another frame
            known = len(self.cg.owners)
            if self._is_shown(len(self.frames) - 1):
                self.performed = None
            for k, frame in enumerate(self.frames):
                self._state[k] = self._collect(k, frame)
            for k, frame in enumerate(self.frames):
                self._hand_on_watched(k, frame)
        self.cg.held = tuple(map(self._variables, range(len(self.frames))))
        if len(set(self._modules)) > 1:
            self.cg.statement("global __name__")
        result = self._frame(0)
        self.cg.statement(f"return {result}")

    def _is_shown(self, k: int) -> bool:
        """Whether the traceback of an exception that lives on leads to frame k, which then goes on in its own code: its
        variables live as long as the traceback."""
        return id(self.frames[k]) in self.cg.owners

    def _shown_by(self, k: int) -> list[str]:
        """The exceptions whose tracebacks lead to frame k, which is going on."""
        return [self.cg.value(e) for e in self.cg.raised.values() if any(p.frame is self.frames[k] for p in e.passed)]

    def _collect(self, k: int, frame: Frame) -> tuple[dict[int, str], list[str]]:
        inner = k == len(self.frames) - 1
        indices = [] if inner else [frame.pc]
        if inner and self.performed is not None:
            indices = [o.index for o in self.performed.outcomes]
        if (inner and self.performed is None) or frame.decoded.handler(frame.ins.index) is not None:
            indices.append(frame.ins.index)
        bound = {slot: value for slot, value in enumerate(frame.locals) if value is not None}
        aloud = {slot for slot, value in bound.items() if holds_aloud(value, frame) or leads_to(value, *self.frames)}
        self._aloud[k] = sum(1 << slot for slot in aloud)
        live = sorted({slot for index in indices for slot in frame.live_locals(index)} | aloud)
        if (inner and self.looked_at) or self._is_shown(k):
            live = list(bound)
        stack = [self.cg.value(v) for v in frame.stack]
        if frame.handled is not None:
            self.cg.value(frame.handled)
        return {slot: self.cg.value(frame.locals[slot]) for slot in live}, stack  # type: ignore[arg-type]

    def _hand_on_watched(self, k: int, frame: Frame) -> None:
        """Variables that nothing reads, of what the instruction or a callee may make a weak reference to: what somebody gets
        to see lives as long as its variable."""
        state = self._state[k][0]
        for slot, value in enumerate(frame.locals):
            if value is not None and slot not in state and may_be_watched(value, frame, self.cg.is_made):
                state[slot] = self.cg.value(value)
                self._aloud[k] |= 1 << slot

    def _variables(self, k: int) -> tuple[tuple[str, str], ...]:
        """Variables of frame k and those that have their values in the generated function."""
        names = self.frames[k].decoded.slots
        return tuple((names[slot], text) for slot, text in self._state[k][0].items() if self._is_local(text))

    def _is_local(self, text: str) -> bool:
        return bool(_IDENTIFIER.match(text)) and text not in self.cg.namespace and (text[0] == "_" or text in self.cg._slot_names)

    def _frame(self, k: int) -> str:
        """Write the rest of frame k; returns the variable of its result."""
        frame, cg = self.frames[k], self.cg
        result = cg.fresh("result")
        inner = k == len(self.frames) - 1
        if inner and self.performed is None:
            self._resume(k, result, self._reenter(k, frame.ins.start, self._state[k][1], "None"), ())
            return result
        handler = frame.decoded.handler(frame.ins.index)
        if handler is None:
            self._step(k, result, inner)
            return result
        done = cg.fresh("error")
        cg.statement(f"{done} = None")
        cg.statement("try:")
        outer = cg._indent
        cg._indent += "    "
        outcomes = self._inner(k, inner)
        cg._indent = outer
        error = cg.fresh("e")
        cg.statement(f"except BaseException as {error}:")
        cg.statement(f"    {done} = {cg.helper('caught')}({error}, {k})")
        cg.statement(f"if {done} is not None:")
        stack = self._state[k][1]
        cg._indent += "    "
        self._resume(k, result, self._reenter(k, frame.ins.start, stack, done), (done,))
        cg._indent = outer
        cg.statement("else:")
        cg._indent += "    "
        self._go_on(k, result, outcomes)
        cg._indent = outer
        return result

    def _shown(self, frames: int, statement: str) -> None:
        """A statement through which a traceback shows so many of the frames."""
        self.cg.mark, before = frames, self.cg.mark
        self.cg.statement(statement)
        self.cg.mark = before

    def _resume(self, k: int, result: str, tail: str, names: tuple[str, ...]) -> None:
        """Go on in frame k. The outermost goes on when the generated function has returned, and what it held is gone; for
        one inside, the function lets go of everything but what the frames around it need. names: variables of this way on."""
        self._shown(k, f"{result} = {tail}")
        if k == 0:
            return
        outer = set().union(*map(self._names_of, range(k)))
        local = [n for n in {*self.cg.variables(), *names} - outer if self._is_local(n)]
        if local:
            self._shown(k, f"{' = '.join(sorted(local))} = None")
        self._stand_for(k - 1)
        self._shown(k, f"{result} = {self.cg.helper('drive')}({result})")

    def _names_of(self, k: int) -> set[str]:
        """The variables that frame k needs."""
        locals_, stack = self._state[k]
        handled = self.frames[k].handled
        texts = {*locals_.values(), *stack, *([self.cg.value(handled)] if handled is not None else ())}
        return {text for text in (*texts, *self._shown_by(k)) if _IDENTIFIER.match(text)}

    def _step(self, k: int, result: str, inner: bool) -> None:
        self._go_on(k, result, self._inner(k, inner))

    def _inner(self, k: int, inner: bool) -> tuple[int, tuple[Outcome, ...]]:
        """Run the instruction, or the frame that it called. Returns what it pops and the ways on."""
        if inner:
            assert self.performed is not None
            self._stand_for(k)
            for statement in self.performed.statements:
                self._shown(len(self.frames), statement)
            return self.performed.pops, self.performed.outcomes
        value = self._frame(k + 1)
        return 0, (Outcome(None, self.frames[k].pc, (value,)),)

    def _go_on(self, k: int, result: str, ways: tuple[int, tuple[Outcome, ...]]) -> None:
        pops, outcomes = ways
        cg = self.cg
        for outcome in outcomes:
            indent = cg._indent
            if outcome.condition is not None:
                cg.statement(f"if {outcome.condition}:")
                cg._indent += "    "
            elif len(outcomes) > 1:
                cg.statement("else:")
                cg._indent += "    "
            self._continue(k, result, pops, outcome)
            cg._indent = indent

    def _continue(self, k: int, result: str, pops: int, outcome: Outcome) -> None:
        frame, cg = self.frames[k], self.cg
        locals_, stack = self._state[k]
        locals_ = {slot: text for slot, text in {**locals_, **outcome.stores}.items() if text}
        nulls = [v is NULL for v in frame.stack]
        kept = list(zip(stack, nulls, strict=True))[: len(stack) - pops]
        null = cg.helper("NULL")
        whole = [*kept, *((p, p == null) for p in outcome.pushes)]
        short = self._returns_at_once(frame, outcome.index, [text for text, _ in whole])
        if short is not None:
            self._shown(k, f"{result} = {short}")
            return
        if k < len(self.frames) - 1 and (frame.handled is not None or self._is_shown(k)):
            start = frame.decoded.instructions[outcome.index].start
            self._resume(k, result, self._reenter(k, start, [text for text, _ in whole], "None"), outcome.pushes)
            return
        live = frame.decoded.live_slots(outcome.index) | self._aloud[k] & ~sum(1 << slot for slot in outcome.stores)
        slots = [i for i in sorted(locals_) if live >> i & 1]
        target = cg.plan.continuation(frame, outcome.index, slots, tuple(n for _, n in whole))
        args = [locals_[i] for i in slots] + [text for text, n in whole if not n]
        tail = f"{cg.helper('tail')}({', '.join([cg.bind(target, 'continuation'), *args])})"
        self._resume(k, result, tail, outcome.pushes)

    def _returns_at_once(self, frame: Frame, index: int, stack: list[str]) -> str | None:
        """The returned expression if nothing but a return follows."""
        instructions = frame.decoded.instructions
        if instructions[index].name == "POP_TOP" and stack:
            stack, index = stack[:-1], index + 1
            if instructions[index].name == "LOAD_CONST" and instructions[index + 1].name == "RETURN_VALUE":
                return self.cg.value(frame.constant(frame.code.co_consts[instructions[index].arg]))
        ins = instructions[index]
        if ins.name == "RETURN_VALUE" and stack:
            return stack[-1]
        if ins.name == "RETURN_CONST":
            return self.cg.value(frame.constant(frame.code.co_consts[ins.arg]))
        return None

    def _reenter(self, k: int, offset: int, stack: list[str], exc: str) -> str:
        """A tail: the original frame in plain Python from `offset` on."""
        frame, cg = self.frames[k], self.cg
        locals_ = self._state[k][0]
        null = cg.helper("NULL")
        every = "".join(locals_.get(i, null) + ", " for i in range(len(frame.decoded.slots)))
        items = f"[{', '.join(stack)}]"  # lists: re-entry empties them
        handled = null
        if frame.handled is not None:
            handled = f"[{cg.value(frame.handled)}]"
            items = f"{cg.helper('with_tracebacks')}({cg.value(frame.handled)}, {items})"
        reenter = cg.bind(cg.plan.reenter(frame), "reenter")
        shown = f"[{', '.join([cg.owners[id(frame)], *self._shown_by(k)])}]" if self._is_shown(k) else "()"
        return f"{cg.helper('tail')}({reenter}, {offset}, [{every}], {items}, [{exc}], {handled}, {shown})"
