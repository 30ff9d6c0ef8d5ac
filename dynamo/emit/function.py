"""One generated function, from the end of a capture to a Python function object.

The function fetches its sources before it changes anything, runs the compiled graph, replays the side effects, and returns; or, at a
graph break, it runs the instruction in plain Python and continues in a continuation. It is compiled with the file name and the line
numbers of the user's code, so that a traceback through it reads as in eager.
"""

from __future__ import annotations

import ast
import threading
import weakref
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Final

from dynamo.bytecode.tracebacks import GENERATED, Generated, location_table
from dynamo.emit.break_writer import BreakWriter
from dynamo.emit.graph_call import graph_call
from dynamo.emit.plan import Compiler
from dynamo.emit.writer import CodeGen, Cycle, is_name
from dynamo.frames.capture import Capture, Finished, Stop
from dynamo.python.finalizers import leads_to, value_end_is_visible
from dynamo.report import causes
from dynamo.report.errors import GiveUp, Restart

if TYPE_CHECKING:
    from dynamo.frames.frame import Frame

_PARSING: Final = threading.Lock()


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
    if not cg.cap.exceptions.passed_frames:
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
    for node in ast.walk(tree):
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
    shown = tuple(p[2] if p[2] is not None else 1 for p in made.co_positions())
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
