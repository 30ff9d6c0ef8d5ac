"""The code generator: writes the statements and expressions of one generated function.

Owns: names of the function, the statements before and behind the graph, and one expression for each source and each value. Values
and sources write themselves through this class (see `dynamo.values.writer`). `function` puts the whole function together.
"""

from __future__ import annotations

import builtins
import contextlib
import itertools
import keyword
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn

from dynamo.emit.plan import Compiler, Operand, OperandKind
from dynamo.emit.runtime import HELPERS
from dynamo.frames.capture import Capture
from dynamo.guards.sources import Source
from dynamo.python.finalizers import leads_to, value_end_is_visible
from dynamo.report import causes
from dynamo.report.errors import GiveUp, Restart
from dynamo.values.base import NONE, NULL, Constant, Value, is_plain_literal
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

if TYPE_CHECKING:
    from dynamo.frames.frame import Frame
    from fxir.ir.node import Node

_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z_0-9]*\Z")


def is_name(text: str) -> bool:
    """Whether a name of the user's program can name a variable or a function of generated code."""
    return bool(_IDENTIFIER.match(text)) and not keyword.iskeyword(text)


class Cycle(Exception):
    """An object contains itself."""


class CodeGen:
    """Writes one function. Every returned expression is a name, a literal, or free of side effects.

    prologue: statements that fetch sources, before the graph runs. body: (statement, mark) behind the graph. mark: number of
    inlined frames that a traceback through the next statements shows. held: for each of these frames, (variable of the user,
    variable of the generated function). outputs: nodes whose values the graph returns. raised: exceptions that have a traceback.
    running: the frames at a graph break. owners: for each running frame, by id, the variable that owns its traceback entries.
    own_function: the global that holds a weak reference to the function itself; "" if no statement needs it.
    """

    def __init__(self, cap: Capture, compiler: Compiler, root: Frame, slot_names: tuple[str, ...]) -> None:
        self.cap = cap
        self.compiler = compiler
        self.root = root
        self.namespace: dict[str, Any] = {}
        self.prologue: list[str] = []
        self.body: list[tuple[str, int]] = []
        self.mark = 1
        self.held: tuple[tuple[tuple[str, str], ...], ...] = ()
        self.outputs: list[Node] = []
        self.raised: dict[int, ExceptionValue] = {}
        self.running: tuple[Frame, ...] = ()
        self.own_function = ""
        self.owners: dict[int, Operand] = {}
        self.uses_function = False
        self._names = itertools.count()
        self._issued = {text: Operand(OperandKind.CONSTANT, text) for text in ("None", "True", "False")}
        self.parameters = [self._issue(OperandKind.PARAMETER, name) for name in _parameter_names(slot_names)]
        self._bound: dict[int, Operand] = {}
        self._sources: dict[Source, Operand] = {}
        self._values: dict[int, Operand | None] = {}  # None: under construction
        self._keep: list[Any] = []
        self._fills: list[Callable[[], None]] = []
        self._depth = 0
        self._filling = False
        self._indent = ""

    # -- names -------------------------------------------------------------------------------------------------
    def _issue(self, kind: OperandKind, text: str) -> Operand:
        """Issue a name of the function, with its kind."""
        self._issued[text] = operand = Operand(kind, text)
        return operand

    def _operand(self, expression: str) -> Operand:
        """An expression as an operand: a name that this class has issued, or any other expression."""
        return self._issued.get(expression) or Operand(OperandKind.EXPRESSION, expression)

    def fresh(self, hint: str) -> str:
        """A name that no other part of the function uses."""
        return f"_{hint}{next(self._names)}"

    def local(self, hint: str) -> Operand:
        """A fresh variable."""
        return self._issue(OperandKind.LOCAL, self.fresh(hint))

    def helper(self, name: str) -> str:
        """A global of the function that holds a helper of `runtime.HELPERS`."""
        text = f"__{name}"
        if text not in self.namespace:
            self.namespace[text] = HELPERS[name]
            self._issue(OperandKind.NULL if name == "NULL" else OperandKind.GLOBAL, text)
        return text

    def global_(self, obj: Any, label: str) -> Operand:
        """A global of the function that holds `obj`. label: part of its name."""
        known = self._bound.get(id(obj))
        if known is None:
            safe = re.sub(r"\W", "_", label) or "object"
            known = self._bound[id(obj)] = self._issue(OperandKind.GLOBAL, f"_{safe}_{next(self._names)}")
            self._keep.append(obj)
            self.namespace[known.text] = obj
        return known

    def bind(self, obj: Any, label: str) -> str:
        """The name of `global_`."""
        return self.global_(obj, label).text

    def slot_name(self, index: int) -> str:
        """The parameter that holds slot `index` of the call; the function object follows the last slot."""
        if index == len(self.parameters):
            self.uses_function = True
            return self._issue(OperandKind.PARAMETER, "_fn").text
        return self.parameters[index].text

    def constant(self, value: Any) -> str:
        """An expression for a constant. A constant without a literal is bound, so that it stays the same object."""
        if is_plain_literal(value):
            return f"({value!r})" if isinstance(value, int | float) and not isinstance(value, bool) else repr(value)
        return self.bind(value, type(value).__name__)

    @property
    def null(self) -> Operand:
        """The sentinel of an empty stack item or an unbound local."""
        return self._issued[self.helper("NULL")]

    @property
    def grad_mode(self) -> bool:
        """Whether grad mode is on where the captured program ends."""
        return self.cap.modes.grad

    # -- statements --------------------------------------------------------------------------------------------
    def statement(self, text: str) -> None:
        """Write one statement."""
        self.body.append((self._indent + text, self.mark))

    @contextlib.contextmanager
    def indented(self) -> Iterator[None]:
        """A block of statements one level further in."""
        outer, self._indent = self._indent, self._indent + "    "
        yield
        self._indent = outer

    def assign(self, expression: str) -> str:
        """Write `name = expression`; return the name. A name is returned unchanged."""
        if expression in self._issued:
            return expression
        name = self.local("t").text
        self.statement(f"{name} = {expression}")
        return name

    def in_region(self, *parts: str) -> str:
        """A call whose callees are captured. parts: the function, then its arguments."""
        return f"{self.helper('call_in_region')}({self.bind(self.compiler.region, 'region')}, {', '.join(parts)})"

    # -- values ------------------------------------------------------------------------------------------------
    def source(self, source: Source) -> str:
        """A variable that holds the object at `source`, fetched before the program changes anything."""
        known = self._sources.get(source)
        if known is None:
            expression = source.reconstruct(self)
            known = self._issued.get(expression)
            if known is None:
                known = self.local("x")
                self.prologue.append(f"{known} = {expression}")
            self._sources[source] = known
        return known.text

    def source_of(self, value: Captured) -> str:
        """A variable that holds an existing value."""
        assert value.source is not None
        return self.source(value.source)

    def value(self, value: Captured) -> str:
        """An expression for `value`; every use of one value gets the same object."""
        return self.operand(value).text

    def operand(self, value: Captured) -> Operand:
        """As `value`, with the kind of the expression. Raises: Cycle for a value whose parts contain the value."""
        if value is NULL:
            return self.null
        if isinstance(value, Constant) and value.source is None and not isinstance(value, SymbolicValue | SymbolicText):
            text = self.constant(value.value)
            return self._issued.get(text) or Operand(OperandKind.CONSTANT, text)
        key = id(value)
        if key in self._values:
            known = self._values[key]
            if known is None:
                raise Cycle
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
            self._values[key] = self._operand(text if value.source is not None else self.assign(text))
        if self._depth == 0 and not self._filling:
            self._fill_all()
        found = self._values[key]
        assert found is not None
        return found

    def is_made(self, value: Value) -> bool:
        """Whether the generated function has an object for this new value."""
        return id(value) in self._values

    def variables(self) -> set[Operand]:
        """Every variable that is assigned before the instruction of a break, with the parameters."""
        outputs = (self._issued[f"_g{i}"] for i in range(len(self.outputs)))
        every = (*self.parameters, *self._sources.values(), *(v for v in self._values.values() if v is not None), *outputs)
        return {operand for operand in every if operand.is_variable}

    def _fill_all(self) -> None:
        """Fill every container that is made and still empty."""
        before, self._filling = self._filling, True
        while self._fills:
            self._fills.pop(0)()
        self._filling = before

    def filled(self, value: Captured) -> str:
        """As `value`, after every container under construction has received its items."""
        text = self.value(value)
        self._fill_all()
        return text

    def container(
        self, value: Captured, make: str | None, fill: Callable[[str], None], literal: Callable[[Writer], str] | None,
        make_with: Callable[[Writer], str] | None = None,
    ) -> str:  # fmt: skip
        """An expression for a new mutable object: one expression, or an empty object that is filled later if it contains itself.

        See `dynamo.values.writer.Writer.container`.
        """
        if literal is not None:
            known, lines, fills = set(self._values), len(self.body), len(self._fills)
            try:
                return literal(self)
            except Cycle:
                for key in set(self._values) - known:
                    del self._values[key]
                del self.body[lines:], self._fills[fills:]
        text = make_with(self) if make_with is not None else make
        assert text is not None
        name = self.assign(text)
        self._values[id(value)] = self._operand(name)
        self._fills.append(lambda: fill(name))
        return name

    def set_attributes(self, obj: Captured, var: str) -> None:
        """Write the pending attributes of a new object onto the variable `var`."""
        assert isinstance(obj, Value)
        self.cap.effects.fill_new(self, obj, var)

    def new_object(self, obj: Captured) -> str:
        """An expression for an instance that the captured program makes."""
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

    # -- tracebacks --------------------------------------------------------------------------------------------
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
        """A traceback entry that keeps the objects with a visible finalizer of a frame outside the traceback; "" without such objects.

        A running frame keeps them itself; of another frame the entry holds their variables.
        """
        bound = frame.bound()
        if not any(value_end_is_visible(v, frame) for v in bound.values()):
            return ""
        if frame in self.running:
            return f"{self._owner(frame)}, "
        kept = {name: v for name, v in bound.items() if value_end_is_visible(v, frame) or leads_to(v, frame)}
        return f"{self._variables_of(kept)}, "

    def _leads_to_running(self, passed: Sequence[Passed]) -> bool:
        """Whether one of the frames is running. A running frame takes over its entry when it continues."""
        return any(p.frame in self.running for p in passed)

    def _variables_of(self, bound: Mapping[str, Value]) -> str:
        """A dict of the variables of a frame. The values are filled, because a cell shows its contents."""
        return f"{{{', '.join(f'{name!r}: {self.filled(v)}' for name, v in bound.items())}}}"

    def _owner(self, frame: Frame) -> str:
        """The variable that owns the traceback entries of a running frame; "None" for any other frame."""
        if frame not in self.running:
            return "None"
        if id(frame) not in self.owners:
            self.owners[id(frame)] = name = self.local("owner")
            self.prologue.append(f"{name} = {self.helper('owner')}()")
        return self.owners[id(frame)].text

    # -- graph ---------------------------------------------------------------------------------------------------
    def symbolic(self, value: SymInt | SymFloat) -> str:
        """An expression for a symbolic number."""
        known = self.cap.symbols.shapes.symbols
        e = plain(value)
        names = {s: self._unbacked(s) if known[s].source is None else self.source(known[s].source) for s in symbols_in(e)}
        if isinstance(e, Expr):
            return to_source(e, PYTHON.with_symbols(names.__getitem__))
        self.namespace["math"] = math
        return to_text(e, names.__getitem__) if isinstance(e, FloatExpr) else self.constant(e)

    def _unbacked(self, s: Sym) -> str:
        """An expression for a number that depends on data: an output of the graph, or a size of one."""
        told = self.cap.data.calls.places[s]
        name = self.graph_output(told.node)
        return name if told.dim is None else f"{name}.shape[{told.dim}]"

    def is_in_main_graph(self, node: Node) -> bool:
        """Whether `node` belongs to the main graph. A node of a nested graph has no value when the graph has run."""
        return node.graph is self.cap.graphs.main

    def graph_output(self, node: Node) -> str:
        """The variable that holds the value of `node` after the graph has run."""
        self.outputs.append(node)
        return self._issue(OperandKind.LOCAL, f"_g{len(self.outputs) - 1}").text

    def impossible(self, value: Captured, what: str) -> NoReturn:
        """Report that no generated code can make `value`: the graph breaks before the instruction that made the value, so that the
        value exists. Raises: Restart, GiveUp."""
        if value.born > 0:
            raise Restart(value.born, causes.GENERATOR, what)
        raise GiveUp(causes.GENERATOR, what)


def _parameter_names(slot_names: tuple[str, ...]) -> Iterator[str]:
    """The names of the user's variables, or other names where these would hide a name that generated code uses."""
    taken: set[str] = set(HELPERS) | set(vars(builtins))
    for i, name in enumerate(slot_names):
        ok = is_name(name) and not name.startswith("_")
        candidates = itertools.chain((name, f"{name}_{i}") if ok else (), (f"s{i}_{k}" for k in itertools.count()))
        chosen = next(c for c in candidates if c not in taken)
        taken.add(chosen)
        yield chosen
