"""One attempt to compile one variant of a site: capture, generate code, build guards, install.

A site is a place where compiled code can start: the beginning of a function, or the middle of a code object after a graph break.
Owns: a site and its variants; the state that a capture starts from; plain Python re-entered in the middle of a frame; the plan that
the code generator queries (`Attempt`), the call of the backend, the guards between inputs, and the eager run that replaces a compiled
graph that fails.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import field
from types import CellType, CodeType, FunctionType
from typing import Any, Final, Protocol

from dynamo import _native
from dynamo.bytecode.decode import KIND_CELL, KIND_FREE, Decoded, argument_count, decode
from dynamo.emit.function import generate, graph_module
from dynamo.frames.capture import Capture, Finished, Stop
from dynamo.frames.frame import Frame
from dynamo.guards.explain import Failure
from dynamo.guards.explain import describe as describe_guards
from dynamo.guards.program import LOG as GUARDS_LOG
from dynamo.guards.program import Guard, build_program
from dynamo.guards.sources import AttrSource, SlotSource, Source
from dynamo.policy.dynamic_sizes import Dynamic
from dynamo.python.attributes import InstanceDict
from dynamo.recording.recorder import FakeMode
from dynamo.recording.symbolic_inputs import StaticAgain
from dynamo.report import causes
from dynamo.report.causes import BreakRecord
from dynamo.report.counters import counters
from dynamo.report.errors import BackendFailed, InternalCaptureError, UnsupportedUnderFullgraph, describe
from dynamo.values.base import NULL, Lazy, Value
from dynamo.values.functions import FunctionValue
from dynamo.values.mappings import DictValue, SetValue
from dynamo.values.objects import UserObject
from dynamo.values.sequences import ListValue
from dynamo.values.tensor import TensorValue
from eager import Tensor
from eager.base import logs
from eager.base import settings as _settings
from eager.base.records import dataclass
from eager.base.spec import TensorSpec, spec_of
from eager.base.symint import SymInt
from fxir import backends
from fxir.backends import Backend
from fxir.base.options import CompileOptions
from fxir.ir.listing import format_spec
from fxir.ir.node import Node
from fxir.region import repro
from fxir.region.data_dependent import CannotStage, Compile, staged
from fxir.symbols.shapes import AssumptionFailed, NeedsStatic
from fxir.trace.trace import fakes_like


# -- where compiled code can start ----------------------------------------------------------------------------------
@dataclass(slots=True)
class Statistics:
    """Events of a region since its creation or its last reset. graphs: the compiled graphs in order."""

    graphs: list[Any] = field(default_factory=list)
    breaks: list[BreakRecord] = field(default_factory=list)
    recompiles: list[Failure] = field(default_factory=list)
    guards: list[Guard] = field(default_factory=list)
    compile_time_s: float = 0.0
    fallbacks: list[str] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Variant:
    """One compiled version of a site."""

    guards: list[Guard]
    program: _native.GuardProgram | None


@dataclass(slots=True, eq=False)
class Site:
    """A place where compiled code can start.

    slot_names: names of the flat inputs. function_slot: one more input, the function object, follows them.
    attempts: number of compilations. over: the site has reached the recompile limit. skip: the site always runs plainly.
    looked_at: `look_at` has recorded an eager call. shown: the code that messages name, where `code` is a wrapper of it.
    """

    code: CodeType
    label: str
    slot_names: tuple[str, ...]
    function_slot: bool
    number: int
    variants: list[Variant] = field(default_factory=list)
    attempts: int = 0
    over: bool = False
    skip: bool = False
    looked_at: bool = False
    shown: CodeType | None = None
    dynamic: Dynamic = field(default_factory=Dynamic)

    @property
    def n_slots(self) -> int:
        """Number of input slots of the site's guard programs."""
        return len(self.slot_names) + self.function_slot

    @property
    def place(self) -> str:
        """Label, file and first line, for messages."""
        code = self.shown or self.code
        return f"{self.label} ({code.co_filename}:{code.co_firstlineno})"

    def look_at(self, slots: tuple[Any, ...]) -> None:
        """Record the sizes and numbers of an eager call: a size or a number that differs at the next call becomes a symbol."""
        self.looked_at = True
        for name, value in zip(self.slot_names, slots, strict=False):
            if isinstance(value, Tensor):
                self.dynamic.see(name, value)
            elif type(value) is int:
                self.dynamic.int_is_symbolic(name, value)
            elif type(value) is float:
                self.dynamic.float_is_symbolic(name, value)


def reentry(code: CodeType, namespace: dict[str, Any], region: _native.Region) -> Callable[..., Any]:
    """(offset, locals, stack, exc, handled): runs the original code from the offset on; its callees are captured.

    The result is not a Python function, so that the caller of the re-entered frame is the user's frame.
    """
    return functools.partial(_native.call_in_region, region, _native.resume, _twin(code, namespace))


def _twin(code: CodeType, namespace: dict[str, Any]) -> FunctionType:
    """A function of this code. Re-entry passes the cells, so the closure of the function is never read."""
    closure = tuple(_native.make_cell() for _ in code.co_freevars)
    return FunctionType(code, namespace, code.co_name, None, closure)


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """A point in a code object: instruction `index`, the bound locals, and the pattern of the stack.

    slots: localsplus indices of the locals that the continuation takes. nulls: for each stack item, whether it is NULL.
    """

    code: CodeType
    namespace: dict[str, Any]
    index: int
    slots: tuple[int, ...]
    nulls: tuple[bool, ...]

    @property
    def decoded(self) -> Decoded:
        """The decoded code object."""
        return decode(self.code)

    def names(self) -> tuple[str, ...]:
        """Names of the flat inputs: the locals, then the stack items that are not NULL."""
        names = [self.decoded.slots[i] for i in self.slots]
        return (*names, *(f"stack_{k}" for k, null in enumerate(self.nulls) if not null))

    def fallback(self, region: _native.Region) -> Callable[..., Any]:
        """Plain Python from this point to the end of the frame."""
        reenter = reentry(self.code, self.namespace, region)
        offset = self.decoded.instructions[self.index].start
        n, slots, nulls = len(self.decoded.slots), self.slots, self.nulls

        def run(*values: Any) -> Any:
            locals_ = [_native.NULL] * n
            for slot, value in zip(slots, values, strict=False):
                locals_[slot] = value
            rest = iter(values[len(slots) :])
            stack = [_native.NULL if null else next(rest) for null in nulls]
            return _native.tail(reenter, offset, locals_, stack, None, _native.NULL)

        return run


class Root(Protocol):
    """The state that a capture starts from."""

    def frame(self, cap: Capture) -> Frame:
        """The root frame of a capture."""

    def fallback(self, region: _native.Region) -> Callable[..., Any] | None:
        """Plain Python for the slots of the root; None for a function, which can be called again."""


class FunctionRoot:
    """A function from its beginning. fixed: every call has the same function object."""

    def __init__(self, fn: FunctionType, slots: tuple[Any, ...], fixed: bool) -> None:
        self.fn = fn
        self.slots = slots
        self.fixed = fixed

    def fallback(self, region: _native.Region) -> None:
        """None: the caller calls the function again."""

    def frame(self, cap: Capture) -> Frame:
        """The root frame of a capture."""
        fn, code = self.fn, self.fn.__code__
        source = SlotSource(len(self.slots), fn.__qualname__)
        if not self.fixed:
            if fn.__closure__:
                cap.world.guard("is", AttrSource(source, "__globals__"), fn.__globals__)
            else:
                cap.world.guard("is", source, fn)
        names = argument_names(code)
        locals_: list[Value | None] = [Lazy(cap, v, SlotSource(i, names[i])) for i, v in enumerate(self.slots)]
        return Frame(cap, code, fn.__globals__, locals_, fn=FunctionValue(code, fn.__globals__, fn, source))


class ContinuationRoot:
    """A frame from a point in the middle of its code."""

    def __init__(self, layout: Layout, values: tuple[Any, ...]) -> None:
        self.layout = layout
        self.values = values

    def fallback(self, region: _native.Region) -> Callable[..., Any]:
        """Plain Python from the layout's point to the end of the frame."""
        return self.layout.fallback(region)

    def frame(self, cap: Capture) -> Frame:
        """The root frame of a capture."""
        layout = self.layout
        decoded, names = layout.decoded, layout.names()
        locals_: list[Value | None] = [None] * len(decoded.slots)
        for k, slot in enumerate(layout.slots):
            source = SlotSource(k, names[k])
            real = self.values[k]
            is_cell = decoded.kinds[slot] & (KIND_CELL | KIND_FREE) and type(real) is CellType
            locals_[slot] = cap.world.wrap_cell(real, source, decoded.slots[slot]) if is_cell else Lazy(cap, real, source)
        stack: list[Value] = []
        at = len(layout.slots)
        for null in layout.nulls:
            if null:
                stack.append(NULL)
            else:
                real, source = self.values[at], SlotSource(at, names[at])
                # CPython 3.12 inlines comprehensions: the variable is then not a cell, and the cell of its name lies on the stack.
                stack.append(cap.world.wrap_cell(real, source, names[at]) if type(real) is CellType else Lazy(cap, real, source))
                at += 1
        return Frame(cap, layout.code, layout.namespace, locals_, stack, layout.index)


def argument_names(code: CodeType) -> tuple[str, ...]:
    """Names of the argument slots of a code object."""
    return code.co_varnames[: argument_count(code)]


# -- one attempt to compile -----------------------------------------------------------------------------------------
GRAPH_CODE: Final = logs.artifact("graph_code")
GRAPH: Final = logs.artifact("graph")
GRAPH_SIZES: Final = logs.artifact("graph_sizes")
BYTECODE: Final = logs.artifact("bytecode")
COMPONENT: Final = logs.component("dynamo")
_UNROLLED_TO_WARN: Final = 200  # iterations, and
_CALLS_TO_WARN: Final = 1000  # calls: the compilation takes noticeably long


class Owner(Protocol):
    """The part of a compiled region that an attempt needs."""

    backend: Backend
    backend_name: str
    options: CompileOptions
    region: _native.Region
    statistics: Statistics

    def continuation(self, frame: Frame, index: int, slots: list[int], nulls: tuple[bool, ...]) -> _native.Dispatcher:
        """The compiled code that continues in `frame` at instruction `index`."""


class Attempt:
    """One attempt to compile one variant: the plan that the code generator queries.

    Raises, from `run`: Restart, StaticAgain and GiveUp steer the region; CaptureError reaches the user.
    """

    def __init__(self, owner: Owner, site: Site, cap: Capture, root: Root) -> None:
        self.owner = owner
        self.site = site
        self.cap = cap
        self.root = root
        self.region = owner.region
        self.is_continuation = not site.function_slot
        self.falls_back = False  # the backend failed, and the captured graph runs uncompiled

    def run(self, slots: tuple[Any, ...], add: Callable[..., Any]) -> Any:
        """Capture, generate code, and install the variant with `add`. Returns the installed entry; None: run the frame plainly."""
        owner, site, cap = self.owner, self.site, self.cap
        frame = self.root.frame(cap)
        counters["frames"]["total"] += 1
        end = cap.run(frame)
        if isinstance(end, Stop):
            self._report(end)
        if isinstance(end, Finished) and not _has_work(cap) and self.is_hooked:
            site.skip = True
            return None
        made = generate(cap, self, frame, site.slot_names, end)
        variant = self.variant()
        if BYTECODE.enabled:
            BYTECODE.log(f"{site.label}: generated\n{made.text}")
        if GUARDS_LOG.enabled:
            GUARDS_LOG.log(f"{site.label}:\n{describe_guards(variant.guards)}")
        owner.statistics.guards.extend(variant.guards)
        site.variants.append(variant)
        counters["frames"]["ok"] += 1
        if isinstance(end, Stop):
            record = end.record()
            owner.statistics.breaks.append(record)
            counters["graph_break"][f"{record.cause.title}: {record.detail}"] += 1
        if self.is_continuation:
            return add(variant.program, made.function)
        return add(variant.program, made.function, pass_function=made.takes_function)

    @property
    def is_hooked(self) -> bool:
        """Whether the frame hook started the attempt, and not a call of a compiled function."""
        return isinstance(self.root, FunctionRoot) and not self.root.fixed

    def _report(self, end: Stop) -> None:
        record = end.record()
        if self.owner.options.fullgraph or self.cap.modes.forbidden:
            who = "compile(fullgraph=True)" if self.owner.options.fullgraph else "error_on_graph_break(True)"
            raise UnsupportedUnderFullgraph(f"{who}: " + record.describe())
        causes.report(record)

    def variant(self) -> Variant:
        """The guards of the capture so far, and their program."""
        cap = self.cap
        cap.world.guards.add("grad_mode", (), cap.modes.initial_grad | cap.modes.initial_inference << 1)
        cap.world.guards.add("ambient", (), cap.modes.ambient)
        if cap.recorder.uses_cuda:
            cap.recorder.depend_on_arithmetic()
        add_relations(cap)
        cap.symbols.add_guards()
        found = list(cap.world.guards.guards)
        return Variant(found, build_program(found, self.site.n_slots))

    # -- the plan of the code generator --------------------------------------------------------------------------
    def compile_graph(self, cap: Capture, outputs: list[Node]) -> Callable[..., Any]:
        """The compiled graph: takes the used inputs of the capture in order, returns a tuple of the outputs."""
        gm = graph_module(cap, outputs)
        self._log_graph(gm)
        calls = sum(n.op.startswith("call") for n in gm.graph.in_order())
        counters["stats"]["unique_graphs"] += 1
        counters["stats"]["calls_captured"] += calls
        if COMPONENT.enabled:
            tensors = len(cap.recorder.inputs)
            COMPONENT.log(f"{self.site.label}: captured {calls} calls over {tensors} tensors for {self.owner.backend_name}")
        self.owner.statistics.graphs.append(gm)
        is_long = cap.iteration.unrolled >= _UNROLLED_TO_WARN and calls >= _CALLS_TO_WARN
        if is_long:
            logs.warn_once(f"unrolled {self.site.number}",
                               f"compile: {self.site.place}: loops of {cap.iteration.unrolled} iterations were unrolled into {calls} "
                               "calls, which takes long to compile; a compiler run of more than FRAMEJIT_UNROLL_TIMEOUT_S is given up. "
                               "Hint: move the loop out of the compiled function, or set "
                               "FRAMEJIT_UNROLL_LIMIT to a smaller number of iterations: longer loops then run eagerly")  # fmt: skip
        examples: list[Any] = []
        try:
            inputs = [v for v in cap.recorder.inputs if v.real is not None]
            examples = fakes_like([v.real for v in inputs], [_symbolic_spec(v) for v in inputs])
            examples += [cap.symbols.shapes.argument(s) for s in cap.symbols.number_inputs]
            compiled = self._by_backend(cap, gm, examples, self._options(is_long))
        except NeedsStatic as refusal:
            cap.symbols.make_static(refusal)
            raise
        except CannotStage as refusal:
            cap.symbols.dynamic.data = False
            COMPONENT.log(f"{self.site.label}: breaks at data-dependent calls: {refusal}")
            raise StaticAgain from None
        except Exception as error:  # noqa: BLE001 - logged, or raised as BackendFailed
            name = self.owner.backend_name
            if self.owner.options.fullgraph or not _settings.current().capture.suppress_errors:
                failed = BackendFailed(name, error, self.site.place, name in backends.BUILT_IN)
                before = None if error.__suppress_context__ else error.__context__
                raise failed.with_traceback(error.__traceback__) from (error.__cause__ or before)
            what, why = f"compile: backend {name} failed on {self.site.place}", describe(error, name in backends.BUILT_IN)
            logs.warn_once(f"backend {type(error).__name__} {self.site.number}",
                               f"{what}; the graph runs uncompiled (TORCHDYNAMO_SUPPRESS_ERRORS=0 raises the error): {why}")  # fmt: skip
            self.owner.statistics.fallbacks.append(f"{what}: {why}")
            self.falls_back = True
            return self._compiled(cap, gm, examples, lambda part, _: part.forward)
        if not callable(compiled):
            raise TypeError(f"compile: backend {self.owner.backend_name} returned a {type(compiled).__name__}; allowed: a callable")
        return compiled

    def _by_backend(self, cap: Capture, gm: Any, examples: list[Any], options: CompileOptions) -> Callable[..., Any]:
        owner = self.owner

        def compile_() -> Callable[..., Any]:
            return self._compiled(cap, gm, examples, lambda part, given: owner.backend(part, given, options))

        if _settings.current().debug.repro_after != "dynamo":
            return compile_()
        real = [v.real for v in cap.recorder.inputs if v.real is not None]
        real += [cap.symbols.shapes.hints[s] for s in cap.symbols.number_inputs]
        backend: Any = owner.backend_name
        if backend not in backends.BUILT_IN:
            backend = inspect.unwrap(backends.lookup(backend) if backend in backends.list_backends() else owner.backend)
        return repro.after_dynamo(gm, real, compile_, backend, options)

    def _options(self, is_long: bool) -> CompileOptions:
        """The options of the region. Without fullgraph, the C++ compiler gets less time for a graph of a long unrolled loop."""
        options, settings = self.owner.options, _settings.current()
        if not is_long or options.fullgraph:
            return options
        limits = (settings.cpu.compile_timeout_s, settings.capture.unroll_timeout_s)
        return options.with_(compiler_timeout_s=min(filter(None, limits), default=None))  # 0: no limit

    def _compiled(self, cap: Capture, gm: Any, examples: list[Any], compile_: Compile) -> Callable[..., Any]:
        return staged(gm, examples, cap.data.calls, compile_, FakeMode) if cap.data.calls.nodes else compile_(gm, examples)

    def _log_graph(self, gm: Any) -> None:
        if GRAPH_CODE.enabled:
            GRAPH_CODE.log(f"{self.site.label}\n{gm.readable()}")
        if GRAPH.enabled:
            GRAPH.log(f"{self.site.label}\n{gm.graph}")
        if GRAPH_SIZES.enabled:
            lines = [f"{n.name}: {format_spec(n.info.spec)}" for n in gm.graph.in_order() if n.info.spec is not None]
            GRAPH_SIZES.log(f"{self.site.label}\n" + "\n".join(lines))

    @property
    def writes_at_end(self) -> bool:
        """Whether a compiled graph that raises an error has not written to any input."""
        return not self.falls_back and getattr(self.owner.backend, "writes_at_end", False)

    def continuation(self, frame: Frame, index: int, slots: list[int], nulls: tuple[bool, ...]) -> Callable[..., Any]:
        """The code that continues in `frame` at instruction `index`, with these locals and a stack of this pattern."""
        return self.owner.continuation(frame, index, slots, nulls)

    def reenter(self, frame: Frame) -> Callable[..., Any]:
        """(offset, locals, stack, exc, handled): the original frame in plain Python from the offset to its end."""
        return reentry(frame.code, frame.globals, self.region)

    def on_refusal(self) -> Callable[..., Any]:
        """(error, slots): the eager run after an assumption about data fails, or after a call inside `try` raises."""
        plainly = self.root.fallback(self.region)
        return _eager_instead if plainly is None else lambda error, slots: plainly(*slots)

    def on_graph_error(self, may_refuse: bool) -> Callable[..., Any] | None:
        """(error, slots): the eager run after the compiled graph raises; None: the error propagates. may_refuse: the graph contains
        a call that may raise because of its data."""
        if self.is_continuation:
            return self.on_refusal() if may_refuse else None
        return _eager_again


def _symbolic_spec(v: TensorValue) -> TensorSpec | None:
    """The spec of an input with symbolic sizes or strides; None for a static input."""
    spec = spec_of(v.fake)
    return spec if SymInt in map(type, (*spec.shape, *spec.strides)) else None


def _has_work(cap: Capture) -> bool:
    """Whether the graph contains a call."""
    return any(n.op not in ("placeholder", "output") for n in cap.graphs.graph.in_order())


def _eager_instead(error: Exception, slots: tuple[Any, ...], fn: FunctionType) -> Any:
    """The result of the original function, run eagerly because the compiled graph raised `error`. Errors show the user's line."""
    code = fn.__code__
    n_pos, n_kw = code.co_argcount, code.co_kwonlyargcount
    args = list(slots[:n_pos])
    kwargs = dict(zip(code.co_varnames[n_pos : n_pos + n_kw], slots[n_pos : n_pos + n_kw], strict=True))
    rest = list(slots[n_pos + n_kw :])
    if code.co_flags & 0x04:
        args += rest.pop(0)
    if code.co_flags & 0x08:
        kwargs.update(rest.pop(0))
    return _native.call_outside(fn, *args, **kwargs)


def _eager_again(error: Exception, slots: tuple[Any, ...], fn: FunctionType) -> Any:
    """As `_eager_instead`. Where eager does not raise and no assumption failed, the error of the graph is a bug of the compiler."""
    result = _eager_instead(error, slots, fn)
    if isinstance(error, AssumptionFailed):
        return result
    text = f"compile: the compiled graph of {fn.__qualname__} failed where eager does not: {describe(error)}"
    if not _settings.current().capture.suppress_errors:
        raise InternalCaptureError(text) from error
    logs.warn_once(f"graph-error {fn.__qualname__}", text)
    return result


def add_relations(cap: Capture) -> None:
    """Add guards between inputs that the capture treated as different objects or different memory, where a write depends on it."""
    if cap.recorder.writes_inputs and len(cap.recorder.inputs) > 1:
        by_memory: dict[int, list[Source]] = {}
        for v in cap.recorder.inputs:
            if v.source is not None and v.real is not None:
                by_memory.setdefault(id(v.real.untyped_storage().root), []).append(v.source)
        for first, *others in by_memory.values():
            for other in others:
                cap.world.guards.add("alias", (first, other))
        if len(by_memory) > 1:
            cap.world.guards.add("not_alias", tuple(sources[0] for sources in by_memory.values()))
    written = cap.effects.written()
    for kind in (ListValue, DictValue, SetValue, UserObject):
        if not any(isinstance(v, kind) for v in written):
            continue
        _Distinct([v for v in cap.world.by_id.values() if isinstance(v, kind) and not isinstance(v, InstanceDict)]).guard(cap)
    dicts: list[Value] = [v for v in cap.world.by_id.values() if isinstance(v, DictValue) and not isinstance(v, InstanceDict)]
    is_written = {id(v) for v in written}
    every, changed = _Distinct(dicts), _Distinct([v for v in dicts if id(v) in is_written])
    for space in [v for v in cap.world.by_id.values() if isinstance(v, InstanceDict)]:
        (every if id(space.obj) in is_written else changed).guard(cap, space)


class _Distinct:
    """Existing objects that must be pairwise different. Objects that the entry holds need no guard among each other."""

    def __init__(self, values: list[Any]) -> None:
        self._sources = tuple(v.source for v in values if v.source is not None)
        self._held = all(s.is_constant_rooted for s in self._sources)

    def guard(self, cap: Capture, *more: Any) -> None:
        """Guard that `more` and these objects are pairwise different."""
        others = tuple(v.source for v in more if v.source is not None)
        if len(others) + len(self._sources) > 1 and not (self._held and all(s.is_constant_rooted for s in others)):
            cap.world.guards.add("distinct", (*others, *self._sources))
