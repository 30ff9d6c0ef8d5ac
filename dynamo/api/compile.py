"""The public functions of dynamo under torch's names: `compile`, its decorators, and its reports."""

from __future__ import annotations

import functools
import inspect
import traceback
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from dynamo import _native
from dynamo.api import checkpoints
from dynamo.bytecode.decode import argument_count
from dynamo.compilation.module import OptimizedModule, compiled_with
from dynamo.compilation.region import CompiledRegion, all_regions
from dynamo.compilation.region import stance as current_stance
from dynamo.guards.explain import Failure, folded, guard_cost_ns, when
from dynamo.guards.program import Guard
from dynamo.policy import callees
from dynamo.policy.callees import DISABLED
from dynamo.policy.dynamic_sizes import (
    mark_dynamic,
    mark_static,
    mark_static_address,
    mark_unbacked,
    maybe_mark_dynamic,
)
from dynamo.report import causes
from dynamo.report.break_errors import error_on_graph_break
from dynamo.report.causes import BreakRecord
from eager.base import logs, settings
from eager.base.records import dataclass
from eager.compiler import is_compiling
from eager.nn import Module
from fxir import backends
from fxir.backends import lookup
from fxir.backends import register_backend as _register
from fxir.base.options import MODES, CompileOptions

__all__ = [
    "Explanation",
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "disable",
    "disallow_in_graph",
    "error_on_graph_break",
    "explain",
    "explain_guards",
    "forbid_in_graph",
    "graph_break",
    "is_compiling",
    "list_backends",
    "lookup_backend",
    "mark_dynamic",
    "mark_static",
    "mark_static_address",
    "mark_unbacked",
    "maybe_mark_dynamic",
    "nonstrict_trace",
    "optimize",
    "optimize_assert",
    "register_backend",
    "reset",
    "reset_code_caches",
    "run",
    "set_stance",
    "skip_frame",
    "substitute_in_graph",
]

checkpoints.register()


def compile(  # noqa: A001 - torch's name
    model: Any = None, *, fullgraph: bool = False, dynamic: bool | None = None, backend: Any = "inductor",
    mode: str | None = None, options: dict[str, Any] | None = None, disable: bool = False,
) -> Any:  # fmt: skip
    """Compile a function or Module on its first call; without `model`, a decorator.

    fullgraph: raise where the graph would break. dynamic: None lets a dimension that changes become symbolic.
    backend: a name of `list_backends()` or a callable `(graph_module, example_inputs[, options]) -> callable`.
    mode: "default", "reduce-overhead" or "max-autotune". options: switches of the backend; a callable gets them, and a
    mode other than "default", as the keyword arguments `options` and `mode`. disable: return `model` unchanged.
    Raises: RuntimeError for an unknown mode, backend or option, or mode together with options; TypeError for a model that
    cannot be called, and for an argument of another type.
    """
    for name, value in (("fullgraph", fullgraph), ("dynamic", dynamic), ("disable", disable)):
        if not isinstance(value, bool) and not (name == "dynamic" and value is None):
            raise TypeError(f"compile: {name}={value!r}; allowed: True{', False or None' if name == 'dynamic' else ' or False'}")
    if options is not None and not isinstance(options, Mapping):
        raise TypeError(f"compile: options={options!r}; allowed: a dict of the backend's options")
    if mode is not None and not isinstance(mode, str):
        raise TypeError(f"compile: mode={mode!r}; allowed: {', '.join(MODES)}")
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    request = CompileOptions(mode or "default", fullgraph, dynamic, dict(options or {}))
    if model is None:
        return lambda fn: compile(fn, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options,
                                  disable=disable)  # fmt: skip
    if not callable(model):
        raise TypeError(f"compile: got a {type(model).__name__}; allowed: a function, a Module or another callable")
    if disable or settings.current().capture.disable:
        return model
    region = CompiledRegion(*_backend(backend), request)
    if request.options and isinstance(backend, str):
        backends.check_options(backend, request.options)
    return compiled_with(model, region)


def _backend(backend: Any) -> tuple[Any, str]:
    """(backend of three arguments, name)."""
    if isinstance(backend, str):
        return backends.named(backend), backend
    if not callable(backend):
        raise TypeError(f"compile: backend={backend!r}; allowed: a name of list_backends() or a callable")
    name = getattr(backend, "__name__", type(backend).__name__)
    return _adapt(backend), name


def _adapt(backend: Callable[..., Any]) -> Callable[..., Any]:
    """A backend with this project's three arguments, from one of that form or of torch's form.

    The third argument is `options: CompileOptions`. A backend of torch's form takes two arguments, and gets the options and the mode
    of compile() as keywords.
    """
    try:
        parameters = list(inspect.signature(backend).parameters.values())
    except (TypeError, ValueError):  # a C function has no signature: torch's form
        parameters = []
    third = parameters[2] if len(parameters) == 3 else None
    if third is not None and third.name == "options" and third.kind is third.POSITIONAL_OR_KEYWORD and third.default is third.empty:
        return backend

    @functools.wraps(backend, updated=())
    def torch_form(gm: Any, example_inputs: Sequence[Any], options: CompileOptions) -> Any:
        given: dict[str, Any] = {} if options.mode == "default" else {"mode": options.mode}
        if options.options:
            given["options"] = dict(options.options)
        return backend(gm, example_inputs, **given)

    return torch_form


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Never capture `fn`, and with `recursive` none of its callees. Usable as a decorator, with or without arguments.

    A Module is disabled in place. A class is disabled in place too: construction and calls of its instances. reason: shown in the report of
    the break. Raises: TypeError for something that cannot be called.
    """
    if fn is None:
        return lambda f: disable(f, recursive, reason=reason)
    if not callable(fn):
        raise TypeError(f"disable: got a {type(fn).__name__}; allowed: a function, a Module, a class or another callable")
    if isinstance(fn, Module):
        object.__setattr__(fn, DISABLED, True)
        return fn
    if isinstance(fn, type):
        setattr(fn, DISABLED, reason or True)
        for name in ("__init__", "__call__"):
            if isinstance(method := getattr(fn, name), types.FunctionType):
                setattr(fn, name, disable(method, recursive, reason=reason))
        return fn
    inner = fn.__wrapped__ if isinstance(fn, _native.CompiledFunction) else fn

    @functools.wraps(inner)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if recursive:
            return _native.call_disabled(inner, *args, **kwargs)
        return inner(*args, **kwargs)

    setattr(wrapper, DISABLED, reason or True)
    _native.mark_skip(wrapper.__code__)  # type: ignore[attr-defined]
    if not recursive and isinstance(inner, types.FunctionType):
        _native.mark_skip(inner.__code__)
    return wrapper


def lookup_backend(compiler_fn: Any) -> Any:
    """The backend of that name, as registered; a callable is returned unchanged. Raises: RuntimeError for an unknown name."""
    if not isinstance(compiler_fn, str):
        return compiler_fn
    found = lookup(compiler_fn)
    return _registered.get(found, found)


_registered: Final[dict[Any, Any]] = {}  # adapted backend -> argument of register_backend


def list_backends(exclude_tags: Sequence[str] | None = ("debug", "experimental")) -> list[str]:
    """Names that `backend=` accepts. exclude_tags: torch's; backends here have no tags."""
    return backends.list_backends()


def register_backend(compiler_fn: Any = None, name: Any = None, tags: Sequence[str] = ()) -> Any:
    """Make a backend known by name: `register_backend(fn, "name")`, `register_backend("name", fn)` or a decorator.

    Its name is `fn.__name__` unless given. tags: torch's; ignored.
    Raises: TypeError for something that is neither a callable nor a name.
    """
    if compiler_fn is None:
        return functools.partial(register_backend, name=name, tags=tags)
    fn, label = (name, compiler_fn) if isinstance(compiler_fn, str) else (compiler_fn, name or getattr(compiler_fn, "__name__", None))
    if not callable(fn):
        raise TypeError(f"register_backend: got ({compiler_fn!r}, {name!r}); allowed: a callable and a name")
    adapted = _adapt(fn)
    _registered[adapted] = fn
    _register(str(label), adapted)
    return fn


def optimize(backend: Any = "inductor", *, nopython: bool = False, disable: bool = False, dynamic: bool | None = None) -> Any:
    """torch._dynamo's older form of `compile`: a decorator. nopython: `fullgraph`."""
    return functools.partial(compile, backend=backend, fullgraph=nopython, dynamic=dynamic, disable=disable)


def optimize_assert(backend: Any, *, dynamic: bool | None = None) -> Any:
    """`optimize` with nopython=True: a decorator whose functions raise where the graph would break."""
    return optimize(backend, nopython=True, dynamic=dynamic)


def run(fn: Any = None) -> Any:
    """Call `fn` so that existing compiled code runs and nothing is compiled. Usable as a decorator."""
    return run if fn is None else set_stance("eager_on_recompile")(fn)


def graph_break(msg: str = "") -> None:
    """Break the graph at this call in captured code; do nothing elsewhere. msg: the reason, for the report of the break."""


setattr(graph_break, DISABLED, causes.EXPLICIT)


def skip_frame(msg: str = "") -> None:
    """Run the captured function, with its callers in the capture, eagerly; do nothing outside a capture."""


setattr(skip_frame, DISABLED, causes.SKIPPED)


def allow_in_graph(fn: Any) -> Any:
    """Record calls of `fn` in the graph without following them. `fn` must take and return tensors and constants only."""
    if isinstance(fn, list | tuple):
        return [allow_in_graph(f) for f in fn]
    if not callable(fn):
        raise TypeError(f"allow_in_graph: got a {type(fn).__name__}; allowed: a callable")
    callees.allow(fn)
    return fn


def disallow_in_graph(fn: Any) -> Any:
    """Break the graph at calls of `fn`, which run in Python. The reverse of `allow_in_graph`. fn: a function, an op, or a list."""
    if isinstance(fn, list | tuple):
        return [disallow_in_graph(f) for f in fn]
    if not callable(fn):
        raise TypeError(f"disallow_in_graph: got a {type(fn).__name__}; allowed: a callable")
    callees.disallow(fn)
    return fn


def forbid_in_graph(fn: Any) -> Any:
    """Make a call of `fn` in a captured program an error, where `disallow_in_graph` would break the graph. fn: a callable, or a list.

    Raises: AssertionError for something that cannot be called.
    """
    if isinstance(fn, list | tuple):
        return [forbid_in_graph(f) for f in fn]
    if not callable(fn):
        raise AssertionError("forbid_in_graph applies only to callables")
    callees.forbid(fn)
    return fn


def nonstrict_trace(traceable_fn: Any) -> Any:
    """As `allow_in_graph`: the graph records calls of the function, and compiled code calls it with tensors.

    Its arguments and results may be tensors, constants, and lists, tuples and dicts of these; its side effects (prints,
    changes of Python objects) happen at each call. Raises: TypeError unless it can be called.
    """
    if not callable(traceable_fn):
        raise TypeError(f"nonstrict_trace: got a {type(traceable_fn).__name__}; allowed: a callable")

    @functools.wraps(traceable_fn)
    def whole(*args: Any, **kwargs: Any) -> Any:
        return traceable_fn(*args, **kwargs)

    callees.allow(whole)
    return whole


def assume_constant_result(fn: Any) -> Any:
    """Call `fn` once during a capture, and treat its result as a constant from then on."""
    callees.assume_constant(fn)
    return fn


def substitute_in_graph(
    original_fn: Any, *, can_constant_fold_through: bool = False, skip_signature_check: bool = False
) -> Callable[[Any], Any]:
    """Decorator: capture the decorated Python function wherever `original_fn` is called.

    can_constant_fold_through: where all arguments are constants, the original is called with them.
    Raises: TypeError unless both can be called, and where their parameters differ (skip_signature_check: let them).
    """
    if not callable(original_fn) or isinstance(original_fn, type):
        raise TypeError(f"substitute_in_graph expects a function but got {type(original_fn)!r}")

    def register(replacement: Any) -> Any:
        if not isinstance(replacement, types.FunctionType):
            kind = type(replacement).__name__
            raise TypeError(f"substitute_in_graph: the replacement of {original_fn!r} is a {kind}; allowed: a function")
        if not skip_signature_check:
            _check_same_parameters(original_fn, replacement)
        callees.substitute(original_fn, replacement, can_constant_fold_through)
        return replacement

    return register


def _check_same_parameters(original: Any, replacement: types.FunctionType) -> None:
    try:
        expected = inspect.signature(original)
    except (TypeError, ValueError):  # a C function without a signature
        return
    got = inspect.signature(replacement)

    def shape(s: inspect.Signature) -> list[tuple[Any, ...]]:
        return [(p.name, p.kind, p.default is p.empty) for p in s.parameters.values()]

    if shape(expected) != shape(got):
        raise TypeError(f"Signature mismatch between {original!r} and {replacement!r}: {expected} vs {got}; allowed: the same parameters, "
                        "or skip_signature_check=True")  # fmt: skip


def reset() -> None:
    """Forget all compiled code of the process, and the record of reported breaks and warnings."""
    reset_code_caches()
    causes.forget_sites()
    logs.forget_warnings()


def reset_code_caches() -> None:
    """Forget all compiled code of the process. The record of reported breaks and warnings stays."""
    for region in all_regions():
        region.reset()


_STANCES: Final = {
    "default": _native.STANCE_DEFAULT,
    "force_eager": _native.STANCE_EAGER,
    "eager_on_recompile": _native.STANCE_RUN_ONLY,
    "fail_on_recompile": _native.STANCE_DEFAULT,
    "eager_then_compile": _native.STANCE_DEFAULT,
}


class set_stance:  # noqa: N801 - torch's name
    """Set the reaction to a call that is not compiled: at once, for a `with` block, or as a decorator.

    "default": compile the call. "force_eager": run every call eagerly. "eager_on_recompile": run compiled code where it matches,
    and compile nothing. "fail_on_recompile": raise RuntimeError instead of a compilation. "eager_then_compile": run the first call
    of each function eagerly; a size or a number that differs at the second call becomes a symbol at once.
    Raises: RuntimeError for another name; NotImplementedError for torch's other switches.
    """

    def __init__(self, stance: str = "default", *, skip_guard_eval_unsafe: bool = False, force_backend: Any = None) -> None:
        name = stance
        if force_backend is not None and name != "default":
            raise RuntimeError("non-default stance cannot have force_backend set")
        if force_backend is not None or skip_guard_eval_unsafe:
            given = "force_backend" if force_backend is not None else "skip_guard_eval_unsafe"
            raise NotImplementedError(f"set_stance: {given} is not supported: code compiled for one backend, or for guards that "
                                      "are not checked, would run where it does not fit")  # fmt: skip
        if name == "aot_eager_then_compile":
            raise NotImplementedError(f"set_stance: {name!r} is not supported; 'eager_then_compile' runs the first call without any graph")
        if name not in _STANCES:
            raise RuntimeError(f"set_stance: {name!r} is not known; allowed: {', '.join(_STANCES)}")
        self._before = current_stance().name
        self._name = name
        _apply_stance(name)

    def __enter__(self) -> None:
        _apply_stance(self._name)

    def __exit__(self, *exc: object) -> None:
        _apply_stance(self._before)

    def __call__(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        _apply_stance(self._before)

        @functools.wraps(fn)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with set_stance(self._name):
                return fn(*args, **kwargs)

        return wrapper


def _apply_stance(name: str) -> None:
    current_stance().name = name
    _native.set_stance(_STANCES[name])


@dataclass(frozen=True, slots=True)
class BreakReason:
    """One graph break under torch's names. user_stack: the user's frames down to the break, outermost first."""

    reason: str
    user_stack: list[traceback.FrameSummary]


@dataclass(frozen=True, slots=True)
class Explanation:
    """The result of `explain`. graphs: the captured graphs; breaks: why they ended; guards: the facts that they rely on."""

    graphs: tuple[Any, ...]
    breaks: tuple[BreakRecord, ...]
    guards: tuple[Guard, ...]
    recompiles: tuple[Failure, ...]
    fallbacks: tuple[str, ...]
    compile_time_s: float

    @property
    def graph_count(self) -> int:
        return len(self.graphs)

    @property
    def graph_break_count(self) -> int:
        return len(self.breaks)

    @property
    def break_reasons(self) -> list[BreakReason]:
        """The graph breaks under torch's names."""
        return [BreakReason(f"{r.cause.title}: {r.detail}", r.user_stack()) for r in self.breaks]

    @property
    def out_guards(self) -> list[Guard]:
        return list(self.guards)

    @property
    def op_count(self) -> int:
        return sum(len(ops) for ops in self.ops_per_graph)

    @property
    def ops_per_graph(self) -> list[list[Any]]:
        calls = ("call_function", "call_method", "call_module")
        return [[n.target for n in g.graph.nodes if n.op in calls] for g in self.graphs]

    def __str__(self) -> str:
        return self.report()

    def report(self, verbose: bool = False) -> str:
        """The result as text. verbose: list each guard of modules and of the library."""
        lines = [f"Graph Count: {self.graph_count}", f"Graph Break Count: {self.graph_break_count}", f"Op Count: {self.op_count}"]
        for i, record in enumerate(self.breaks, 1):
            lines += [f"Break {i}:", *("  " + line for line in record.describe().splitlines())]
        for i, ops in enumerate(self.ops_per_graph, 1):
            lines.append(f"Ops {i}: " + ", ".join(str(getattr(op, "__name__", op)) for op in ops))
        notes = [g.note for g in self.guards] if verbose else [note for note, _ in folded(self.guards)]
        lines += [f"Guard: {note}" for note in notes]
        lines += [f"Runs eagerly: {text}" for text in self.fallbacks]
        lines.append(f"Compile time: {self.compile_time_s:.3f} s")
        return "\n".join(lines)


def explain(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Run `fn(*args, **kwargs)` under capture, and return an `Explanation` of the capture.

    Without arguments (torch's form): a function that takes them.
    """
    if not args and not kwargs:
        return lambda *a, **k: _explain(fn, a, k)
    return _explain(fn, args, kwargs)


def _explain(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Explanation:
    region = CompiledRegion(*_backend("eager"), CompileOptions())
    inner = fn._orig_mod if isinstance(fn, OptimizedModule) else fn
    compiled_with(inner, region)(*args, **kwargs)
    s = region.statistics
    return Explanation(tuple(s.graphs), tuple(s.breaks), tuple(s.guards), tuple(s.recompiles), tuple(s.fallbacks),
                       s.compile_time_s)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ExplainedGuard:
    """One guard of a compiled variant. what: the fact and the user's line that needs it. cost_ns: time of this check alone.

    when: "each call", "watched" (checked again only after a change of a container that the fact depends on) or "epoch".
    cost_ns: None without arguments to measure with, or if the guard fails for the arguments.
    """

    variant: int
    what: str
    when: str
    cost_ns: float | None


@dataclass(frozen=True, slots=True)
class GuardExplanation:
    """The result of `explain_guards`: every guard of every variant, newest variant last.

    variant_ns: time of all checks of a variant. folded: the guards as `str()` shows them, with one line for all guards of modules
    and one line for all guards of the library.
    """

    guards: tuple[ExplainedGuard, ...]
    variant_ns: tuple[float | None, ...]
    folded: tuple[ExplainedGuard, ...] = ()

    def __str__(self) -> str:
        return self.report()

    def report(self, verbose: bool = False) -> str:
        """The guards as text. verbose: list each guard of modules and of the library."""
        shown = self.guards if verbose else self.folded
        lines = []
        for k, total in enumerate(self.variant_ns):
            lines.append(f"Variant {k}: all guards {_nanoseconds(total)}")
            lines += [f"  {_nanoseconds(g.cost_ns)}  [{g.when}]  {g.what}" for g in shown if g.variant == k]
        return "\n".join(lines) or "Nothing is compiled yet"


def _nanoseconds(value: float | None) -> str:
    return "not measured" if value is None else f"{value:6.0f} ns"


def explain_guards(compiled: Any, *args: Any, **kwargs: Any) -> GuardExplanation:
    """Every guard of a compiled function or Module: the fact, the user's line that needs it, and its cost.

    args, kwargs: of a call to measure with; without them, no cost is measured. Each guard is timed in a separate program. A watched
    guard costs one comparison while nothing changes.
    Raises: TypeError if `compiled` does not come from `compile()`, or the arguments do not fit.
    """
    measured = bool(args or kwargs)
    if isinstance(compiled, OptimizedModule):
        compiled, args = compiled._compiled_call, (compiled._orig_mod, *args)
    if isinstance(compiled, types.MethodType):
        compiled, args = compiled.__func__, (compiled.__self__, *args)
    site = next((s for r in all_regions() for c, s in r.function_sites if c is compiled), None)
    if site is None:
        raise TypeError(f"explain_guards: got a {type(compiled).__name__}; allowed: the result of compile()")
    slots = _slots(compiled.__wrapped__, args, kwargs) if measured else None
    def explained(k: int, what: str, group: list[Guard]) -> ExplainedGuard:
        """One line for a group of guards of variant `k`."""
        return ExplainedGuard(k, what, when(group[0]), None if slots is None else guard_cost_ns(group, slots))

    found = [explained(k, g.note, [g]) for k, variant in enumerate(site.variants) for g in variant.guards]
    short = [explained(k, what, group) for k, variant in enumerate(site.variants) for what, group in folded(variant.guards)]
    totals = (None if slots is None else guard_cost_ns(v.guards, slots) for v in site.variants)
    return GuardExplanation(tuple(found), tuple(totals), tuple(short))


def _slots(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """The flat inputs of a guard program for a call: positional, keyword-only, *args, **kwargs, then the function."""
    bound = inspect.signature(fn, follow_wrapped=False).bind(*args, **kwargs)
    bound.apply_defaults()
    code = fn.__code__
    return (*(bound.arguments[name] for name in code.co_varnames[: argument_count(code)]), fn)


def statistics() -> Explanation:
    """An `Explanation` of all compilations of the process since the last reset."""
    found = [region.statistics for region in all_regions()]
    return Explanation(
        tuple(g for s in found for g in s.graphs),
        tuple(b for s in found for b in s.breaks),
        tuple(g for s in found for g in s.guards),
        tuple(r for s in found for r in s.recompiles),
        tuple(f for s in found for f in s.fallbacks),
        sum(s.compile_time_s for s in found),
    )


@contextmanager
def disabled() -> Iterator[None]:
    """A block in which compiled functions run their originals on the calling thread."""
    before = _native.set_disabled(True)
    try:
        yield
    finally:
        _native.set_disabled(before)
