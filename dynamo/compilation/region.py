"""Compiled regions: the compiled code of one call of `compile()`, and the reaction to a call that no compiled variant matches.

Owns the regions and their sites, the recompile limit, restarts of a capture, the stance, and the reports of recompilations and of
errors of the compiler. `attempt` compiles one variant of a site.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from contextlib import nullcontext
from types import CodeType, FunctionType
from typing import Any, Final, cast
from weakref import ref

from dynamo import _native
from dynamo.bytecode.decode import CO_GENERATOR_LIKE
from dynamo.bytecode.tracebacks import forget_frames
from dynamo.compilation.attempt import (
    COMPONENT,
    Attempt,
    ContinuationRoot,
    FunctionRoot,
    Layout,
    Root,
    Site,
    Statistics,
    argument_names,
)
from dynamo.frames.capture import Capture, Limits
from dynamo.frames.frame import Frame
from dynamo.guards.explain import explain_failure
from dynamo.guards.sources import is_a
from dynamo.policy import callees
from dynamo.policy.dynamic_sizes import Dynamic
from dynamo.python.attributes import namespace_held
from dynamo.recording.symbolic_inputs import StaticAgain
from dynamo.report import causes
from dynamo.report.errors import (
    CaptureError,
    FailOnRecompile,
    GiveUp,
    InternalCaptureError,
    RecompileLimitExceeded,
    Restart,
    UnsupportedUnderFullgraph,
    describe,
)
from eager import Tensor
from eager.base import logs, thread_state
from eager.base import settings as _settings
from eager.base.records import dataclass
from eager.nn import Module
from eager.tape.state import per_thread, saved_hooks_off
from fxir.backends import Backend
from fxir.base.compilation import compiling
from fxir.base.options import CompileOptions

RECOMPILES: Final = logs.artifact("recompiles")
RECOMPILES_VERBOSE: Final = logs.artifact("recompiles_verbose")
_MAX_RESTARTS: Final = 64

_frame_numbers = itertools.count()


_region_numbers = itertools.count()
_regions: Final[dict[int, ref[CompiledRegion]]] = {}  # every region of the process, by number


def all_regions() -> list[CompiledRegion]:
    """A snapshot of the regions of the process. Other threads, and finalizers, may add and drop regions meanwhile."""
    return [region for known in list(_regions.values()) if (region := known()) is not None]


class CompiledRegion:
    """Everything compiled for one `compile()` call."""

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
        number = next(_region_numbers)
        _regions[number] = ref(self, lambda _: _regions.pop(number, None))

    # -- entries -----------------------------------------------------------------------------------------------
    def function(self, fn: Any, shown: CodeType | None = None) -> _native.CompiledFunction:
        """The compiled form of a plain Python function. shown: the code that messages name instead of the function's own."""
        site = self._site(fn.__code__, argument_names(fn.__code__), True, shown=shown)

        def miss(compiled: _native.CompiledFunction, slots: tuple[Any, ...]) -> Any:
            actual = compiled.__wrapped__
            if actual.__code__ is not site_box[0].code:
                site_box[0] = self._site(actual.__code__, argument_names(actual.__code__), True)
            root = FunctionRoot(cast(FunctionType, actual), slots, fixed=True)
            return self._compile_site(site_box[0], root, (*slots, actual), compiled.add_entry)

        site_box = [site]
        compiled = _native.CompiledFunction(fn, miss, self.region)
        self._function_sites.append((compiled, site))
        return compiled

    @property
    def function_sites(self) -> list[tuple[_native.CompiledFunction, Site]]:
        """The functions compiled in this region, each with its site."""
        return self._function_sites

    def reset(self) -> None:
        """Forget every compiled variant. A capture that runs in another thread keeps the records that it started with."""
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
        """The record of dynamic sizes for a new site: only the rule of compile() or of the settings for all sizes."""
        assumed = None if _settings.current().capture.assume_static else True
        return Dynamic(assumed if self.options.dynamic is None else self.options.dynamic)

    def _frame_miss(self, code: CodeType, func: FunctionType, slots: tuple[Any, ...]) -> Any:
        """Compile a frame that the hook met: a callee of the call at a graph break."""
        if code.co_flags & CO_GENERATOR_LIKE or not callees.may_capture(code) or not _worth_a_look(func, slots):
            self.region.skip(code)
            return None
        site = self._frame_sites.get(code)
        if site is None:
            site = self._frame_sites[code] = self._site(code, argument_names(code), True)
        root = FunctionRoot(func, slots, fixed=False)
        dispatcher = self.region.dispatcher(code)
        found = self._compile_site(site, root, (*slots, func), dispatcher.add_entry)
        if site.skip or site.over:
            self.region.skip(code)
        return found

    def continuation(self, frame: Frame, index: int, slots: list[int], nulls: tuple[bool, ...]) -> _native.Dispatcher:
        """The code that continues in `frame` at instruction `index`, with these locals and a stack of this pattern."""
        key = (id(frame.code), id(frame.globals), index, tuple(slots), nulls)
        found = self._continuations.get(key)
        if found is None:
            layout = Layout(frame.code, frame.globals, index, tuple(slots), nulls)
            site = self._site(frame.code, layout.names(), False, f"{frame.code.co_qualname}, continued at line "
                              f"{layout.decoded.instructions[index].line}")  # fmt: skip

            def miss(dispatcher: _native.Dispatcher, values: tuple[Any, ...]) -> Any:
                return self._compile_site(site, ContinuationRoot(layout, values), values, dispatcher.add_entry)

            found = _native.Dispatcher(miss, layout.fallback(self.region), layout)
            self._continuations[key] = found
        return found

    # -- compiling ---------------------------------------------------------------------------------------------
    def _compile_site(self, site: Site, root: Root, slots: tuple[Any, ...], add: Callable[..., Any]) -> Any:
        """Install a new variant for `slots` and return its entry; None: run plainly."""
        settings = _settings.current().capture
        if site.skip or site.over or settings.disable:
            return None
        if site.code.co_flags & CO_GENERATOR_LIKE:  # the frame of a generator or coroutine cannot be re-entered
            site.skip = True
            return None
        if thread_state.interceptors():
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
            no_hooks = saved_hooks_off() if per_thread.saved_hooks else nullcontext()
            with compiling(frame_id), no_hooks:
                return self._attempt(site, root, slots, add)
        except CaptureError:
            raise
        except Exception as error:  # noqa: BLE001 - logged, or raised as InternalCaptureError
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

    def _attempt(self, site: Site, root: Root, slots: tuple[Any, ...], add: Callable[..., Any]) -> Any:
        restart: Restart | None = None
        for _ in range(_MAX_RESTARTS):
            cap = Capture(_limits(self.options.fullgraph), restart, site.dynamic)
            cap.shown = site.shown
            attempt = Attempt(self, site, cap, root)
            try:
                return attempt.run(slots, add)
            except StaticAgain:
                continue
            except Restart as again:
                forget_frames(again)
                if restart is not None and again.at >= restart.at:
                    return self._give_up(attempt, GiveUp(again.cause, again.detail), slots, add)
                restart = again
            except GiveUp as reason:
                forget_frames(reason)
                return self._give_up(attempt, reason, slots, add)
            except RecursionError:
                return self._give_up(attempt, GiveUp(causes.INLINE_DEPTH, "values nested too deep to rebuild"), slots, add)
            finally:
                cap.release()
        raise InternalCaptureError(f"compile: the capture of {site.label} restarted {_MAX_RESTARTS} times")

    def _give_up(self, attempt: Attempt, reason: GiveUp, slots: tuple[Any, ...], add: Callable[..., Any]) -> Any:
        """Install a variant that runs plainly, for calls that pass the same guards."""
        expected = reason.cause is causes.EXCEPTION
        if self.options.fullgraph and not expected:
            raise UnsupportedUnderFullgraph(f"compile(fullgraph=True): {attempt.site.label}: {reason.cause.title}: {reason.detail}. "
                                            f"Hint: {reason.cause.hint}")  # fmt: skip
        text = f"{attempt.site.label} runs eagerly: {reason.cause.title}: {reason.detail}"
        COMPONENT.log(text)
        self.statistics.fallbacks.append(text)
        variant = attempt.variant()
        attempt.site.variants.append(variant)
        return add(variant.program, None)

    def _reached_limit(self, site: Site, settings: _settings.Capture) -> str | None:
        """The setting whose limit another variant would exceed; None if there is room.

        The limit counts the variants of a function and of each of its continuations separately, as in torch: three dtypes are three
        variants of each. When one of them reaches the limit, the others get no more variants either.
        """
        if not site.variants:
            return None
        if len(site.variants) >= settings.recompile_limit or any(s.over for s in self.sites_of(site.code)):
            return "recompile_limit"
        alike = (s for region in all_regions() for s in region.sites_of(site.code) if s.shown is site.shown)
        return "accumulated_recompile_limit" if sum(len(s.variants) for s in alike) >= settings.accumulated_recompile_limit else None

    def sites_of(self, code: CodeType) -> list[Site]:
        """The sites in a code object."""
        return self._sites_of.get(code, [])

    def _over_limit(self, site: Site, name: str, settings: _settings.Capture) -> Any:
        site.over = True
        recompiles = self.statistics.recompiles  # a reset in another thread replaces the list
        reason = recompiles[-1] if recompiles else None
        remedy = "" if reason is None else reason.remedy()
        text = (f"compile: {site.place} hit torch._dynamo.config.{name} ({getattr(settings, name)}): it, or a part of it between "
                f"graph breaks, was compiled that many times; other calls run eagerly. Last reason: {reason}. {remedy} "
                "TORCH_LOGS=recompiles logs every reason")  # fmt: skip
        if self.options.fullgraph or settings.fail_on_recompile_limit:
            raise RecompileLimitExceeded(text)
        if callees.may_capture(site.code):  # a user cannot change the code of a library
            logs.warn_once(f"recompile-limit {id(site.code)}", text)  # once for all sites of the code
        self.statistics.fallbacks.append(text)
        return None

    def _explain_recompile(self, site: Site, slots: tuple[Any, ...]) -> None:
        failures = [explain_failure(v.guards, v.program, slots) for v in site.variants if v.program is not None]
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


def _worth_a_look(fn: FunctionType, slots: tuple[Any, ...]) -> bool:
    """Whether a hooked frame may compute with tensors: an argument is or may contain a tensor, or the function has a closure."""
    return any(_may_hold_tensors(v, 3) for v in slots) or bool(fn.__closure__)


def _may_hold_tensors(value: Any, depth: int) -> bool:
    """Whether a tensor or a module is reachable from `value` through at most `depth` containers."""
    if is_a(value, (Tensor, Module)):
        return True
    if depth and is_a(value, (tuple, list)):
        return any(_may_hold_tensors(v, depth - 1) for v in value[:16])
    if depth and is_a(value, dict):
        return any(_may_hold_tensors(v, depth - 1) for v in list(value.values())[:16])
    namespace = namespace_held(value) if depth else None
    return any(_may_hold_tensors(v, depth - 1) for v in list((namespace or {}).values())[:16])


def _limits(fullgraph: bool) -> Limits:
    """The limits of a capture under the current settings."""
    settings = _settings.current().capture
    return Limits(min(settings.inline_depth, 60), settings.unroll_limit, settings.force_break, settings.scalar_outputs or fullgraph)


@dataclass(slots=True)
class Stance:
    """The reaction of the process to a call that is not compiled. `api.set_stance` sets it."""

    name: str = "default"


_stance = Stance()


def stance() -> Stance:
    """The stance of the process."""
    return _stance


