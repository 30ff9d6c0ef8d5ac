"""From a call that no compiled variant matches to a new variant: capture, restart, generate, guard, install.

Owns the compiled regions (one per `compile()`), their sites (a function, a hooked frame, a continuation), the variants
of each site, the recompile limit and the reports. Errors of the capture itself surface here.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from types import CellType, CodeType, FunctionType
from typing import Any, Final, cast
from weakref import WeakSet

from dynamo import _native
from dynamo.bytecode.decode import CO_GENERATOR_LIKE, KIND_CELL, KIND_FREE, Decoded, argument_count, decode
from dynamo.bytecode.tracebacks import forget_frames
from dynamo.emit.prune import graph_module
from dynamo.emit.writer import CodeGen
from dynamo.frames.capture import Capture, Finished, Limits, Stop
from dynamo.frames.frame import Frame
from dynamo.guards import explain
from dynamo.guards.explain import Failure
from dynamo.guards.program import LOG as GUARDS_LOG
from dynamo.guards.program import Guard, build_program
from dynamo.guards.sources import AttrSource, SlotSource, Source, is_a
from dynamo.policy import callees
from dynamo.policy.dynamic_sizes import Dynamic
from dynamo.python.attributes import InstanceDict, namespace_held
from dynamo.recording.recorder import FakeMode
from dynamo.recording.symbolic_inputs import StaticAgain
from dynamo.report import causes as breaks
from dynamo.report.causes import BreakRecord
from dynamo.report.errors import (
    BackendFailed,
    CaptureError,
    FailOnRecompile,
    GiveUp,
    InternalCaptureError,
    RecompileLimitExceeded,
    Restart,
    UnsupportedUnderFullgraph,
    describe,
)
from dynamo.utils import counters
from dynamo.values.base import NULL, Lazy, Value
from dynamo.values.functions import FunctionValue
from dynamo.values.mappings import DictValue, SetValue
from dynamo.values.objects import UserObject
from dynamo.values.sequences import ListValue
from dynamo.values.tensor import TensorValue
from eager import Tensor
from eager.base import logs, thread_state
from eager.base import settings as _settings
from eager.base.spec import TensorSpec, spec_of
from eager.base.symint import is_symbolic
from eager.nn import Module
from eager.tape.state import saved_hooks_off
from fxir import backends
from fxir.backends import Backend
from fxir.base.example_inputs import fakes_like
from fxir.base.gc_pause import full_collections_postponed
from fxir.base.options import CompileOptions
from fxir.ir.listing import format_spec
from fxir.ir.node import Node
from fxir.region import repro
from fxir.region.data_dependent import CannotStage, Compile, staged
from fxir.symbols.shapes import NeedsStatic
from fxir.symbols.unbacked import AssumptionFailed

RECOMPILES: Final = logs.artifact("recompiles")
RECOMPILES_VERBOSE: Final = logs.artifact("recompiles_verbose")
GRAPH_CODE: Final = logs.artifact("graph_code")
GRAPH: Final = logs.artifact("graph")
GRAPH_SIZES: Final = logs.artifact("graph_sizes")
BYTECODE: Final = logs.artifact("bytecode")
COMPONENT: Final = logs.component("dynamo")
_MAX_RESTARTS: Final = 64
_UNROLLED_TO_WARN: Final = 200  # iterations, and
_CALLS_TO_WARN: Final = 1000  # calls: from here on a backend needs long enough for a user to wonder


@dataclass(slots=True)
class Statistics:
    """What happened in a region since it was made or reset. graphs: what was compiled, in order."""

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

    slot_names: of the flat inputs. function_slot: whether one more input, the function object, follows them.
    attempts: compilations tried; over: the limit was reached; looked_at: an eager call was seen before any compilation.
    shown: the user's code, where `code` only calls it.
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
        return len(self.slot_names) + self.function_slot

    @property
    def place(self) -> str:
        """Its label, file and first line, for messages."""
        code = self.shown or self.code
        return f"{self.label} ({code.co_filename}:{code.co_firstlineno})"

    def look_at(self, slots: tuple[Any, ...]) -> None:
        """Note the sizes and numbers of a call that is not compiled: others at the next one are symbols then."""
        self.looked_at = True
        for name, value in zip(self.slot_names, slots, strict=False):
            if isinstance(value, Tensor):
                self.dynamic.see(name, value)
            elif type(value) is int:
                self.dynamic.int_is_symbolic(name, value)
            elif type(value) is float:
                self.dynamic.float_is_symbolic(name, value)


_frame_numbers = itertools.count()


_regions: Final[WeakSet[CompiledRegion]] = WeakSet()  # all that there are
_regions_lock: Final = Lock()


def all_regions() -> list[CompiledRegion]:
    """Those of this moment: other threads may be making more."""
    with _regions_lock:
        return list(_regions)


class CompiledRegion:
    """Everything compiled on behalf of one `compile()` call."""

    def __init__(self, backend: Backend, backend_name: str, options: CompileOptions) -> None:
        self.backend = backend
        self.backend_name = backend_name
        self.options = options
        self.region = _native.Region(self._frame_miss)
        self.statistics = Statistics()
        self._sites_of: dict[CodeType, list[Site]] = {}
        self._continuations: dict[Any, _native.Dispatcher] = {}
        self._frame_sites: dict[CodeType, Site] = {}
        self._function_sites: list[tuple[_native.CompiledFunction, Site]] = []
        with _regions_lock:
            _regions.add(self)

    # -- entries -----------------------------------------------------------------------------------------------
    def function(self, fn: Any, shown: CodeType | None = None) -> _native.CompiledFunction:
        """The compiled form of a plain Python function. shown: the code that messages name instead of its own."""
        site = self._site(fn.__code__, _argument_names(fn.__code__), True, shown=shown)

        def miss(compiled: _native.CompiledFunction, slots: tuple[Any, ...]) -> Any:
            actual = compiled.__wrapped__
            if actual.__code__ is not site_box[0].code:
                site_box[0] = self._site(actual.__code__, _argument_names(actual.__code__), True)
            root = _FunctionRoot(cast(FunctionType, actual), slots, fixed=True)
            return self._compile_site(site_box[0], root, (*slots, actual), compiled.add_entry)

        site_box = [site]
        compiled = _native.CompiledFunction(fn, miss, self.region)
        self._function_sites.append((compiled, site))
        return compiled

    @property
    def function_sites(self) -> list[tuple[_native.CompiledFunction, Site]]:
        """The functions compiled here, each with its site."""
        return self._function_sites

    def reset(self) -> None:
        """Forget every compiled variant. A capture that another thread is in goes on with the memory that it began with."""
        for compiled, site in self._function_sites:
            compiled.clear_entries()
            site.variants.clear()
            site.attempts, site.over, site.skip, site.looked_at = 0, False, False, False
            site.dynamic = self._dynamic()
        self._sites_of = {s.code: [s] for _, s in self._function_sites}
        self.region.clear()
        self._frame_sites.clear()
        self._continuations.clear()
        self.statistics = Statistics()

    def _site(
        self, code: CodeType, names: tuple[str, ...], function_slot: bool, label: str = "", shown: CodeType | None = None
    ) -> Site:
        label = label or (shown or code).co_qualname
        site = Site(code, label, names, function_slot, next(_frame_numbers), shown=shown, dynamic=self._dynamic())
        self._sites_of.setdefault(code, []).append(site)
        return site

    def _dynamic(self) -> Dynamic:
        """What a new site knows of sizes: nothing but what compile() or the settings say of all of them."""
        assumed = None if _settings.current().capture.assume_static else True
        return Dynamic(assumed if self.options.dynamic is None else self.options.dynamic)

    def _frame_miss(self, code: CodeType, func: FunctionType, slots: tuple[Any, ...]) -> Any:
        """A frame that the hook met: a callee of a call at a graph break."""
        if code.co_flags & CO_GENERATOR_LIKE or not callees.may_capture(code) or not _worth_a_look(func, slots):
            self.region.skip(code)
            return None
        site = self._frame_sites.get(code)
        if site is None:
            site = self._frame_sites[code] = self._site(code, _argument_names(code), True)
        root = _FunctionRoot(func, slots, fixed=False)
        dispatcher = self.region.dispatcher(code)
        found = self._compile_site(site, root, (*slots, func), dispatcher.add_entry)
        if site.skip or site.over:
            self.region.skip(code)
        return found

    def continuation(self, frame: Frame, index: int, slots: list[int], nulls: tuple[bool, ...]) -> _native.Dispatcher:
        """What goes on in the middle of `frame`'s code, with these locals and stack."""
        key = (id(frame.code), id(frame.globals), index, tuple(slots), nulls)
        found = self._continuations.get(key)
        if found is None:
            layout = _Layout(frame.code, frame.globals, index, tuple(slots), nulls)
            site = self._site(frame.code, layout.names(), False, f"{frame.code.co_qualname}, continued at line "
                              f"{layout.decoded.instructions[index].line}")  # fmt: skip

            def miss(dispatcher: _native.Dispatcher, values: tuple[Any, ...]) -> Any:
                return self._compile_site(site, _ContinuationRoot(layout, values), values, dispatcher.add_entry)

            found = _native.Dispatcher(miss, layout.fallback(self.region), layout)
            self._continuations[key] = found
        return found

    # -- compiling ---------------------------------------------------------------------------------------------
    def _compile_site(self, site: Site, root: Any, slots: tuple[Any, ...], add: Callable[..., Any]) -> Any:
        """A new variant for `slots`, installed; or None to run plainly."""
        settings = _settings.current().capture
        if site.skip or site.over or settings.disable:
            return None
        if site.code.co_flags & CO_GENERATOR_LIKE:  # it makes a generator or coroutine, whose frame cannot be re-entered
            site.skip = True
            return None
        if thread_state.intercepting():
            return None
        if _stance.name == "eager_then_compile" and not site.looked_at and not site.attempts:
            site.look_at(slots)
            return None
        frame_id = logs.FrameId(site.number, site.attempts)
        started = time.perf_counter()
        try:
            self._explain_recompile(site, slots)
            name = self._reached_limit(site, settings)
            if name is not None:
                return self._over_limit(site, name, settings)
            site.attempts += 1
            with logs.frame(frame_id), saved_hooks_off(), full_collections_postponed():
                return self._attempt(site, root, slots, add)
        except CaptureError:
            raise
        except Exception as error:  # noqa: BLE001 - told, or raised as InternalCaptureError
            return self._internal_error(site, error)
        finally:
            self.statistics.compile_time_s += time.perf_counter() - started

    def _internal_error(self, site: Site, error: Exception) -> Any:
        what, why = f"compile: the capture of {site.place} failed", describe(error)
        if self.options.fullgraph or not _settings.current().capture.suppress_errors:
            how = ("without fullgraph and with TORCHDYNAMO_SUPPRESS_ERRORS=1, the default, it runs eagerly; "
                   "FRAMEJIT_FULL_TRACEBACK=1 shows its frames")  # fmt: skip
            raise InternalCaptureError(f"{what} (a bug of the compiler; {how}): {why}") from error
        logs.warn_once(f"capture-failed {site.number}",
                           f"{what}; it runs eagerly (TORCHDYNAMO_SUPPRESS_ERRORS=0 raises the error): {why}")  # fmt: skip
        self.statistics.fallbacks.append(f"{what}: {why}")
        site.skip = True
        return None

    def _attempt(self, site: Site, root: Any, slots: tuple[Any, ...], add: Callable[..., Any]) -> Any:
        restart: Restart | None = None
        for _ in range(_MAX_RESTARTS):
            cap = Capture(_limits(self.options.fullgraph), restart, site.dynamic)
            cap.shown = site.shown
            job = Job(self, site, cap, root)
            try:
                return job.run(slots, add)
            except StaticAgain:
                continue
            except Restart as again:
                forget_frames(again)
                if restart is not None and again.at >= restart.at:
                    return self._give_up(job, GiveUp(again.cause, again.detail), slots, add)
                restart = again
            except GiveUp as reason:
                forget_frames(reason)
                return self._give_up(job, reason, slots, add)
            except RecursionError:
                return self._give_up(job, GiveUp(breaks.INLINE_DEPTH, "values nested too deep to rebuild"), slots, add)
            finally:
                cap.release()
        raise InternalCaptureError(f"compile: the capture of {site.label} restarted {_MAX_RESTARTS} times")

    def _give_up(self, job: Job, reason: GiveUp, slots: tuple[Any, ...], add: Callable[..., Any]) -> Any:
        """Run plainly, for calls that look the same as this one."""
        expected = reason.cause is breaks.EXCEPTION
        if self.options.fullgraph and not expected:
            raise UnsupportedUnderFullgraph(f"compile(fullgraph=True): {job.site.label}: {reason.cause.title}: {reason.detail}. "
                                            f"Hint: {reason.cause.hint}")  # fmt: skip
        text = f"{job.site.label} runs eagerly: {reason.cause.title}: {reason.detail}"
        COMPONENT.log(text)
        self.statistics.fallbacks.append(text)
        variant = job.variant()
        job.site.variants.append(variant)
        return add(variant.program, None)

    def _reached_limit(self, site: Site, settings: _settings.Capture) -> str | None:
        """The setting whose limit another variant would pass; None if there is room.

        A function and each of its continuations after graph breaks may have as many variants as the limit says, as in torch:
        three dtypes are three variants of each. When one of them would pass it, the others get no more variants either.
        """
        if not site.variants:
            return None
        if len(site.variants) >= settings.recompile_limit or any(s.over for s in self.sites_of(site.code)):
            return "recompile_limit"
        alike = (s for region in all_regions() for s in region.sites_of(site.code) if s.shown is site.shown)
        return "accumulated_recompile_limit" if sum(len(s.variants) for s in alike) >= settings.accumulated_recompile_limit else None

    def sites_of(self, code: CodeType) -> list[Site]:
        """The sites in this code."""
        return self._sites_of.get(code, [])

    def _over_limit(self, site: Site, name: str, settings: _settings.Capture) -> Any:
        site.over = True
        recompiles = self.statistics.recompiles  # a reset in another thread puts another list there
        reason = recompiles[-1] if recompiles else None
        remedy = "" if reason is None else reason.remedy()
        text = (f"compile: {site.place} hit torch._dynamo.config.{name} ({getattr(settings, name)}): it, or a part of it between "
                f"graph breaks, was compiled that many times; other calls run eagerly. Last reason: {reason}. {remedy} "
                "TORCH_LOGS=recompiles logs every reason")  # fmt: skip
        if self.options.fullgraph or settings.fail_on_recompile_limit:
            raise RecompileLimitExceeded(text)
        if callees.may_capture(site.code):  # code of libraries is nothing that a user can change
            logs.warn_once(f"recompile-limit {id(site.code)}", text)  # once for all its sites
        self.statistics.fallbacks.append(text)
        return None

    def _explain_recompile(self, site: Site, slots: tuple[Any, ...]) -> None:
        failures = [explain.explain_failure(v.guards, v.program, slots) for v in site.variants if v.program is not None]
        if failures and _settings.current().capture.error_on_recompile:
            raise FailOnRecompile(f"torch._dynamo.config.error_on_recompile: {site.place} would be compiled again: {failures[-1]}")
        if _stance.name == "fail_on_recompile" and (failures or site.code not in self._frame_sites):
            why = f"its guard failed: {failures[-1]}" if failures else "it was not compiled before"
            raise FailOnRecompile("Detected recompile when torch.compile stance is 'fail_on_recompile'. filename: "
                                  f"'{site.code.co_filename}', function name: '{site.label}', line number: {site.code.co_firstlineno}: "
                                  f"{why}")  # fmt: skip
        if not failures:
            return
        newest = failures[-1]
        self.statistics.recompiles.append(newest)
        text = f"Recompiling {site.place}: {newest}"
        frame_id = logs.FrameId(site.number, site.attempts)
        RECOMPILES.log(text, frame_id=frame_id)
        if RECOMPILES_VERBOSE.enabled:
            every = "\n".join(f"  variant {i}: {f}" for i, f in enumerate(failures))
            RECOMPILES_VERBOSE.log(f"{text}\n{every}", frame_id=frame_id)


class Job:
    """One attempt at one variant: the plan that generated code asks."""

    def __init__(self, owner: CompiledRegion, site: Site, cap: Capture, root: Any) -> None:
        self.owner = owner
        self.site = site
        self.cap = cap
        self.root = root
        self.region = owner.region
        self.is_continuation = not site.function_slot
        self.falls_back = False  # the backend failed on the graph, which runs as it was captured

    def run(self, slots: tuple[Any, ...], add: Callable[..., Any]) -> Any:
        """Capture and install. Raises: Restart, GiveUp."""
        owner, site, cap = self.owner, self.site, self.cap
        frame = self.root.frame(cap)
        counters["frames"]["total"] += 1
        end = cap.run(frame)
        if isinstance(end, Stop):
            self._report(end)
        if isinstance(end, Finished) and not _has_work(cap) and self.is_hooked:
            site.skip = True
            return None
        cg = CodeGen(cap, self, len(site.slot_names), site.slot_names)
        cg.root = frame
        target, takes_function = cg.finish(end)
        variant = self.variant()
        if BYTECODE.enabled:
            BYTECODE.log(f"{site.label}: generated\n{cg.text}")
        if GUARDS_LOG.enabled:
            GUARDS_LOG.log(f"{site.label}:\n{explain.describe(variant.guards)}")
        owner.statistics.guards.extend(variant.guards)
        site.variants.append(variant)
        counters["frames"]["ok"] += 1
        if isinstance(end, Stop):
            record = end.record()
            owner.statistics.breaks.append(record)
            counters["graph_break"][f"{record.cause.title}: {record.detail}"] += 1
        if self.is_continuation:
            return add(variant.program, target)
        return add(variant.program, target, pass_function=takes_function)

    @property
    def is_hooked(self) -> bool:
        return isinstance(self.root, _FunctionRoot) and not self.root.fixed

    def _report(self, end: Stop) -> None:
        record = end.record()
        if self.owner.options.fullgraph or self.cap.modes.forbidden:
            who = "compile(fullgraph=True)" if self.owner.options.fullgraph else "error_on_graph_break(True)"
            raise UnsupportedUnderFullgraph(f"{who}: " + record.describe())
        breaks.report(record)

    def variant(self) -> Variant:
        """The guards of the capture as they stand, and their program."""
        cap = self.cap
        cap.world.guards.add("grad_mode", (), cap.modes.initial_grad | cap.modes.initial_inference << 1)
        cap.world.guards.add("ambient", (), cap.modes.ambient)
        add_relations(cap)
        cap.symbols.add_guards()
        found = list(cap.world.guards.guards)
        return Variant(found, build_program(found, self.site.n_slots))

    # -- what generated code asks ------------------------------------------------------------------------------
    def compile_graph(self, cap: Capture, outputs: list[Node]) -> Callable[..., Any]:
        gm = graph_module(cap, outputs)
        self._log_graph(gm)
        calls = sum(n.op.startswith("call") for n in gm.graph.nodes)
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
        except Exception as error:  # noqa: BLE001 - told, or raised as InternalCaptureError
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
        """The region's options; without fullgraph, a graph of a long unrolled loop gets less time in the C++ compiler."""
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
            lines = [f"{n.name}: {format_spec(n.info.spec)}" for n in gm.graph.nodes if n.info.spec is not None]
            GRAPH_SIZES.log(f"{self.site.label}\n" + "\n".join(lines))

    @property
    def writes_at_end(self) -> bool:
        return not self.falls_back and getattr(self.owner.backend, "writes_at_end", False)

    def continuation(self, frame: Frame, index: int, slots: list[int], nulls: tuple[bool, ...]) -> Callable[..., Any]:
        return self.owner.continuation(frame, index, slots, nulls)

    def reenter(self, frame: Frame) -> Callable[..., Any]:
        return _reentry(frame.code, frame.globals, self.region)

    def on_refusal(self) -> Callable[..., Any]:
        """What to call where an assumption about data fails, or a handled call refuses data, with the error and the slots."""
        if not self.is_continuation:
            return _eager_instead
        plainly = self.root.layout.fallback(self.region)
        return lambda error, slots: plainly(*slots)

    def on_graph_error(self, may_refuse: bool) -> Callable[..., Any] | None:
        if self.is_continuation:
            return self.on_refusal() if may_refuse else None
        return _eager_again


def _eager_instead(error: Exception, slots: tuple[Any, ...], fn: FunctionType) -> Any:
    """What the original gives, or raises at the user's line, for a call in whose graph `error` was raised."""
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
    """As `_eager_instead`; a result where nothing explains the error is a fault of the compiler."""
    result = _eager_instead(error, slots, fn)
    if isinstance(error, AssumptionFailed):
        return result
    text = f"compile: the compiled graph of {fn.__qualname__} failed where eager does not: {describe(error)}"
    if not _settings.current().capture.suppress_errors:
        raise InternalCaptureError(text) from error
    logs.warn_once(f"graph-error {fn.__qualname__}", text)
    return result


def _reentry(code: CodeType, namespace: dict[str, Any], region: _native.Region) -> Callable[..., Any]:
    """(offset, locals, stack, exc, handled): runs the original code from the offset on, its callees captured.

    No Python function: the frame's caller is to be the user's.
    """
    return functools.partial(_native.call_in_region, region, _native.resume, _twin(code, namespace))


def _twin(code: CodeType, namespace: dict[str, Any]) -> FunctionType:
    """A function of this code; its closure is never read, since re-entry passes the cells."""
    closure = tuple(_native.make_cell() for _ in code.co_freevars)
    return FunctionType(code, namespace, code.co_name, None, closure)


@dataclass(frozen=True, slots=True, eq=False)
class _Layout:
    """A point in a code object and what stands in its slots and on its stack."""

    code: CodeType
    namespace: dict[str, Any]
    index: int
    slots: tuple[int, ...]
    nulls: tuple[bool, ...]

    @property
    def decoded(self) -> Decoded:
        return decode(self.code)

    def names(self) -> tuple[str, ...]:
        names = [self.decoded.slots[i] for i in self.slots]
        return (*names, *(f"stack_{k}" for k, null in enumerate(self.nulls) if not null))

    def fallback(self, region: _native.Region) -> Callable[..., Any]:
        """Plain Python from here to the end of the frame."""
        reenter = _reentry(self.code, self.namespace, region)
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


class _FunctionRoot:
    """A function from its beginning. fixed: the function object is always the same one."""

    def __init__(self, fn: FunctionType, slots: tuple[Any, ...], fixed: bool) -> None:
        self.fn = fn
        self.slots = slots
        self.fixed = fixed

    def frame(self, cap: Capture) -> Frame:
        fn, code = self.fn, self.fn.__code__
        source = SlotSource(len(self.slots), fn.__qualname__)
        if not self.fixed:
            if fn.__closure__:
                cap.world.guard("is", AttrSource(source, "__globals__"), fn.__globals__)
            else:
                cap.world.guard("is", source, fn)
        names = _argument_names(code)
        locals_: list[Value | None] = [Lazy(cap, v, SlotSource(i, names[i])) for i, v in enumerate(self.slots)]
        return Frame(cap, code, fn.__globals__, locals_, fn=FunctionValue(code, fn.__globals__, fn, source))


class _ContinuationRoot:
    """A frame in the middle."""

    def __init__(self, layout: _Layout, values: tuple[Any, ...]) -> None:
        self.layout = layout
        self.values = values

    def frame(self, cap: Capture) -> Frame:
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
                # In a comprehension that CPython 3.12 inlines, the variable is no cell, and the cell of its name waits here.
                stack.append(cap.world.wrap_cell(real, source, names[at]) if type(real) is CellType else Lazy(cap, real, source))
                at += 1
        return Frame(cap, layout.code, layout.namespace, locals_, stack, layout.index)


def _argument_names(code: CodeType) -> tuple[str, ...]:
    return code.co_varnames[: argument_count(code)]


def _symbolic_spec(v: TensorValue) -> TensorSpec | None:
    spec = spec_of(v.fake)
    return spec if is_symbolic(spec.shape) or is_symbolic(spec.strides) else None


def _has_work(cap: Capture) -> bool:
    return any(n.op not in ("placeholder", "output") for n in cap.graphs.graph.nodes)


def _worth_a_look(fn: FunctionType, slots: tuple[Any, ...]) -> bool:
    """Whether a hooked frame may compute with tensors: one is at hand, or a module or closure may hold one."""
    return any(_may_hold_tensors(v, 3) for v in slots) or bool(fn.__closure__)


def _may_hold_tensors(value: Any, depth: int) -> bool:
    if is_a(value, (Tensor, Module)):
        return True
    if depth and is_a(value, (tuple, list)):
        return any(_may_hold_tensors(v, depth - 1) for v in value[:16])
    if depth and is_a(value, dict):
        return any(_may_hold_tensors(v, depth - 1) for v in list(value.values())[:16])
    namespace = namespace_held(value) if depth else None
    return any(_may_hold_tensors(v, depth - 1) for v in list((namespace or {}).values())[:16])


def add_relations(cap: Capture) -> None:
    """Guards between inputs that the capture took for different objects, where the difference matters."""
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
        _tell_apart(cap, [v for v in cap.world.by_id.values() if isinstance(v, kind) and not isinstance(v, InstanceDict)])
    dicts: list[Value] = [v for v in cap.world.by_id.values() if isinstance(v, DictValue) and not isinstance(v, InstanceDict)]
    is_written = {id(v) for v in written}
    for space in [v for v in cap.world.by_id.values() if isinstance(v, InstanceDict)]:
        _tell_apart(cap, [space, *(v for v in dicts if id(v) in is_written or id(space.obj) in is_written)])


def _tell_apart(cap: Capture, values: list[Any]) -> None:
    """Guard that existing objects are different ones."""
    sources = tuple(v.source for v in values if v.source is not None)
    if len(sources) > 1 and not all(s.is_constant_rooted for s in sources):
        cap.world.guards.add("distinct", sources)


def _limits(fullgraph: bool) -> Limits:
    settings = _settings.current().capture
    return Limits(min(settings.inline_depth, 60), settings.unroll_limit, settings.force_break, settings.scalar_outputs or fullgraph)


@dataclass(slots=True)
class Stance:
    """What the process does about calls that are not compiled. Set by `api.set_stance`."""

    name: str = "default"


_stance = Stance()


def stance() -> Stance:
    return _stance


