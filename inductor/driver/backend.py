"""The backend "inductor": graphs to native code, through the cache on disk.

Owns the order of steps (key, lookup, compile, build, store, load), the modes, and the logs of a compilation. It does not depend
on the loop IR; `_compiler` imports the compiler's stages, and only if the cache has no entry.

The modes:
  default         heuristics everywhere; matrix kernels that were measured on this machine before are used.
  reduce-overhead the same code; an output tensor without references is reused by the next call,
                  so that a call allocates nothing. An output that is still referenced (by a view, an ndarray or a
                  weak reference too) is never reused.
  max-autotune    matrix kernels and the schedules of all other kernels are measured for this graph; winners stay on disk.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

from eager._tensor.tensor import Tensor
from eager.base import logs, settings
from eager.base import machine as host
from eager.base.device import device
from eager.base.spec import TensorSpec
from eager.optable.registry import Kind
from eager.optable.table import OPS
from fxir.backends import register_backend
from fxir.base.options import CompileOptions, GraphKind
from fxir.ir.fingerprint import canonical_symbols, graph_hash, renamed
from fxir.ir.graph import Graph, devices_of
from fxir.ir.graph_module import GraphModule
from fxir.region.aot import aot_compile
from fxir.region.repro import BACKEND_NAMES
from fxir.trace.trace import Decompositions
from inductor.artifact import cache
from inductor.artifact.cache import Cache, Entry, Key
from inductor.artifact.format import ArtifactPlan, Compiled, ExternCall, Upload
from inductor.base import records, toolchain
from inductor.base.options import PASSES, budget_s, check_options, is_autotuned
from inductor.base.request import Request
from inductor.base.toolchain import Toolchain, build
from inductor.base.user_lines import Lines, with_lines
from inductor.driver import device_parts
from inductor.runtime import loader
from inductor.runtime.compiled import Artifact, explain_entry, kernels
from inductor.runtime.loader import CompiledGraph

__all__ = ["compile_by_device", "compile_graph", "inductor"]

# keep: the composite ops that have a lowering rule. expand: the composite ops that lowering replaces by other ops.
KEPT = Decompositions(keep=frozenset({"attention", "attention_backward"}), expand=frozenset({"optimizer_update"}))

_COMPONENT = logs.component("inductor")
_OUTPUT = logs.artifact("output_code")
_KERNELS = logs.artifact("kernel_code")
_TIME = logs.artifact("compile_time")
_HINTS = logs.artifact("perf_hints")
_CACHE = logs.artifact("cache")
_REPLAY = logs.artifact("cudagraphs")
_TIMES = logs.artifact("kernel_times")
_PRODUCTS = frozenset({"mm", "bmm"})  # ops whose code depends on the measured winners
_PRODUCTS_PART = 0.6  # most of the budget of a graph that its products may spend


def inductor(gm: GraphModule, example_inputs: Sequence[Any], options: CompileOptions) -> Callable[..., Any]:
    """Compile `gm` to native code (see `fxir.backends.Backend`).

    Raises: CompileError without a C++ compiler, or if generated code does not compile.
    """
    passes = [name for name in PASSES if options.options.get(name, True)]
    return aot_compile(gm, example_inputs, compile_by_device, options, KEPT, passes)


def compile_by_device(graph: Graph, kind: GraphKind, options: CompileOptions) -> Callable[..., Any]:
    """`compile_graph`, also for graphs over the CPU and a CUDA device: see `inductor.driver.device_parts`.

    Raises: NotImplementedError for tensors on two CUDA devices, or values that go between devices in another way than as a 0-d operand.
    """
    found = devices_of(graph)
    if len(found) > 1 and device_parts.needs_parts(graph):
        return device_parts.compile_parts(graph, lambda part: compile_graph(part, kind, options))
    return _compile_part(graph, kind, options, found)


# --------------------------------------------------------------------------- one graph


def compile_graph(graph: Graph, kind: GraphKind, options: CompileOptions) -> CompiledGraph:
    """A functional graph as a native callable from real tensors to a tuple.

    The `CompiledGraph` has an `artifact` (`inductor.runtime.compiled.Artifact`) that explains and saves it.
    Raises: NeedsStatic for a symbol that the compiler needs as an int; CompileError.
    """
    return _compile_part(graph, kind, options, devices_of(graph))


def _compile_part(graph: Graph, kind: GraphKind, options: CompileOptions, devices: Collection[device]) -> CompiledGraph:
    clock = _Clock()
    host.configure()
    store = cache.current()
    machine = _machine(devices, _is_tuned(options))
    key = _key(graph, kind, options, machine.key_parts(graph, options, store))
    clock.lap("key")
    entry = store.lookup(key)
    clock.lap("lookup")
    loaded: CompiledGraph | None = None
    if entry is not None:
        loaded = _load_found(store, entry, key, graph, kind, options)
        clock.lap("load")
    if loaded is None:
        entry = _make(graph, kind, options, machine, key, store, clock)
        loaded = _load(entry, key, graph, kind, options)
        clock.lap("load")
        loaded.artifact = Artifact(key, entry, _constants(graph), "compiled", clock.total_s, _lines(graph))
    if _REPLAY.enabled and _recording(kind, options):
        _REPLAY.log(f"graph {key.digest[:12]}: {_replay_text(loaded.artifact, kind, options)}")
    if _OUTPUT.enabled:
        _OUTPUT.log(explain_entry(loaded.artifact.entry, loaded.artifact.lines, sources=True))
    if _KERNELS.enabled:
        for name, text in loaded.artifact.entry.sources().items():
            _KERNELS.log(f"// {loaded.artifact.entry.folder / name}\n{kernels(text, loaded.artifact.lines)}")
    if _HINTS.enabled:
        _log_hints(loaded.artifact.entry.plan, loaded.artifact.lines)
    if _TIME.enabled:
        _TIME.log(f"{kind.value} graph {key.digest[:12]}, {loaded.artifact.origin}: {clock}")
    _dump(graph, kind, key, loaded.artifact.entry)
    return loaded


def _replay_text(artifact: Artifact, kind: GraphKind, options: CompileOptions) -> str:
    """Whether calls are recorded as CUDA graphs, and why not."""
    plan = artifact.entry.plan
    if plan.device == "cpu":
        if kind is GraphKind.FORWARD or options.mode != "reduce-overhead":
            return "no CUDA graph on the CPU"
        kept = sum(a.nbytes for a in plan.allocations)
        return (f"no CUDA graph on the CPU; its plan is static, and {kept} bytes of outputs and {plan.arena_bytes} of scratch are reused "
                "by each call unless they are still referenced")  # fmt: skip
    if plan.symbols:
        return f"not recorded as a CUDA graph: {len(plan.symbols)} of its sizes vary; with dynamic=False each shape is recorded"
    calls = [step for step in plan.steps if isinstance(step, ExternCall)]
    if calls:
        where = f" ({artifact.lines[calls[0].node]})" if calls[0].node in artifact.lines else ""
        return f"not recorded as a CUDA graph: it calls the eager kernel of {calls[0].op}{where}"
    launches = sum(not isinstance(step, Upload) for step in plan.steps)
    return f"{launches} launches are recorded as a CUDA graph when their addresses come a second time"


def _log_hints(plan: ArtifactPlan, lines: Lines) -> None:
    """Log each of the user's calls that runs as an eager kernel, once in a process. Calls without a user line are omitted."""
    for step in plan.steps:
        if isinstance(step, ExternCall) and step.node in lines and OPS[step.op].kind is not Kind.EFFECT:
            text = f"{step.op} ({lines[step.node]}) runs as a call of its eager kernel: the loops before and after it are not fused with it"
            if logs.first_time(text):
                _HINTS.log(text)


def _lines(graph: Graph) -> Lines:
    """The user's line of each node that has one."""
    found = ((i, node.info.origin) for i, node in enumerate(graph.in_order()))
    return {i: f"{origin.file}:{origin.line}" for i, origin in found if origin is not None}


class _Clock:
    """The time of each stage of one compilation."""

    def __init__(self) -> None:
        self._start = self._last = time.perf_counter()
        self._laps: list[tuple[str, float]] = []

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self._laps.append((name, now - self._last))
        self._last = now

    @property
    def total_s(self) -> float:
        return self._last - self._start

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {seconds * 1e3:.1f} ms" for name, seconds in self._laps)
        return f"{self.total_s * 1e3:.1f} ms ({parts})"


# --------------------------------------------------------------------------- the machine


class Machine(Protocol):
    """Where graphs run: the part of a compilation that depends on it."""

    def key_parts(self, graph: Graph, options: CompileOptions, store: Cache) -> dict[str, str]:
        """The parts of the cache key besides graph and options."""

    def build(
        self, graph: Graph, kind: GraphKind, options: CompileOptions, store: Cache, folder: Path, lap: Callable[[str], None]
    ) -> tuple[Compiled, Path | None]:
        """The compiled graph, and the file in `folder` with its native code. lap: called with the name of each stage that ends."""


def _is_tuned(options: CompileOptions) -> bool:
    """Whether the mode, the options or the settings enable autotuning."""
    asked = options.mode.startswith("max-autotune") or bool(options.options and is_autotuned(options.options))
    return asked or settings.current().cpu.max_autotune


def _machine(devices: Collection[device], is_tuned: bool) -> Machine:
    """The machine of a graph of one part (`inductor.driver.device_parts`). is_tuned: whether it measures variants."""
    where = next((d for d in devices if d.type != "cpu"), None)
    if where is None:
        return _Cpu(is_tuned)
    found: Machine = importlib.import_module("inductor.driver.cuda_machine").CudaMachine(where, is_tuned)
    return found


class _Cpu:
    """This machine's CPU: C++ and its compiler."""

    def __init__(self, is_tuned: bool) -> None:
        self.is_tuned = is_tuned
        self.tools = toolchain.toolchain()

    def key_parts(self, graph: Graph, options: CompileOptions, store: Cache) -> dict[str, str]:
        return {
            "winners": "" if self.is_tuned or not _has_products(graph) else _measured_winners(store),
            "toolchain": self.tools.key(),
            "threads": str(host.threads()),
            "blas": str(host.has_blas()),
        }

    def build(
        self, graph: Graph, kind: GraphKind, options: CompileOptions, store: Cache, folder: Path, lap: Callable[[str], None]
    ) -> tuple[Compiled, Path | None]:
        request = _request(kind, options, self.tools)
        compile_ = _compiler()
        lap("import compiler")
        if self.is_tuned:
            compiled = _autotuned(graph, kind, request, store, compile_)
            lap("autotune")
        else:
            compiled = _with_winners(store, request, lambda: compile_(graph, kind, request))
            lap("generate code")
        library = _build(compiled, folder, request, store)
        lap("g++")
        if _TIMES.enabled:
            _TIMES.log("kernels are measured one by one on a CUDA device only; on a CPU, perf names them as TORCH_LOGS=kernel_code does")
        return compiled, library


# --------------------------------------------------------------------------- the key


def _has_products(graph: Graph) -> bool:
    return any(getattr(node.target, "name", None) in _PRODUCTS for node in graph.find("call_function"))


def _measured_winners(store: Cache) -> str:
    """Which products have been measured in this cache. A product is measured once, so their names determine the winners."""
    return records.inventory(store.dir / "autotune")


def _key(graph: Graph, kind: GraphKind, options: CompileOptions, parts: Mapping[str, str]) -> Key:
    names = canonical_symbols(graph)
    inputs = ", ".join(_spec_text(renamed(n.info.spec, names)) for n in graph.placeholders)
    return Key.of(
        {
            "graph": graph_hash(graph)[:32],
            "inputs": inputs,
            "kind": kind.value,
            # default and reduce-overhead run the same code: one artifact serves both.
            "mode": "max-autotune" if _is_tuned(options) else "default",
            "options": ", ".join(f"{name}={value!r}" for name, value in options.options.items()),
            "compiler": cache.source_digest(),
            **parts,
        }
    )


def _spec_text(spec: Any) -> str:
    if not isinstance(spec, TensorSpec):
        return "int" if spec is None else repr(spec)
    strides = "" if spec.is_contiguous() else f" strides {spec.strides}"
    return f"{spec.dtype.name}{list(spec.shape)}{strides}" + ("" if spec.device.type == "cpu" else f" {spec.device}")


# --------------------------------------------------------------------------- from the cache


def _constants(graph: Graph) -> dict[str, Tensor]:
    """The graph's lifted tensors by position: the key contains no names, so a cached plan may use other names."""
    names = dict.fromkeys(str(node.target) for node in graph.find("get_attr"))
    return {str(i): graph.root[name] for i, name in enumerate(names)}


def _load(entry: Entry, key: Key, graph: Graph, kind: GraphKind, options: CompileOptions) -> CompiledGraph:
    # The outputs of a forward graph get a history. A kept output would hold its history, and could never be reused.
    recording = _recording(kind, options)
    keep = kind is not GraphKind.FORWARD and (options.mode == "reduce-overhead" or (recording > 0 and entry.plan.device != "cpu"))
    return loader.load(entry.plan, entry.library, _constants(graph), name=f"graph {key.digest[:12]}", keep_outputs=keep,
                       recording=recording, lines=_lines(graph))  # fmt: skip


def _recording(kind: GraphKind, options: CompileOptions) -> int:
    """A number of `inductor.runtime.cuda.Recording`: tensors that autograd saves are too many to copy."""
    if options.mode not in ("reduce-overhead", "max-autotune"):
        return 0
    return 1 if kind is GraphKind.INFERENCE else 2


def _load_found(
    store: Cache, entry: Entry, key: Key, graph: Graph, kind: GraphKind, options: CompileOptions
) -> CompiledGraph | None:
    """The entry made callable, or None if loading fails (then it is removed, and the graph is compiled again)."""
    try:
        loaded = _load(entry, key, graph, kind, options)
    except (OSError, LookupError) as error:
        _CACHE.log(f"the entry {key.digest} is not used: {error}; compiling again")
        store.discard(key)
        return None
    loaded.artifact = Artifact(key, entry, _constants(graph), "disk cache", 0.0, _lines(graph))
    return loaded


# --------------------------------------------------------------------------- from the compiler


def _compiler() -> Callable[[Graph, GraphKind, Request], Compiled]:
    """The compiler's entry. Imported here so that a cache hit does not pay for the import."""
    compile_: Callable[[Graph, GraphKind, Request], Compiled] = importlib.import_module(
        "inductor.driver.compile"
    ).compile_graph
    return compile_


def _request(kind: GraphKind, options: CompileOptions, tools: Toolchain) -> Request:
    return Request(
        tools=tools,
        options=options,
        threads=host.threads(),
        has_blas=host.has_blas(),
        packing="none" if not options.options.get("packing", True) else "all" if kind is GraphKind.INFERENCE else "repeated",
    )


def _make(
    graph: Graph, kind: GraphKind, options: CompileOptions, machine: Machine, key: Key, store: Cache, clock: _Clock
) -> Entry:
    with TemporaryDirectory(prefix="framejit-build-") as folder:
        compiled, library = machine.build(graph, kind, options, store, Path(folder), clock.lap)
        plan = _by_position(compiled, graph)
        entry = cache.keep(store, key, plan, library, compiled.units, compiled.notes)
    clock.lap("store")
    return entry


def _by_position(compiled: Compiled, graph: Graph) -> Any:
    names = list(dict.fromkeys(str(node.target) for node in graph.find("get_attr")))
    renamed = tuple(replace(c, name=str(names.index(c.name))) for c in compiled.plan.constants)
    return replace(compiled.plan, constants=renamed)


def _build(compiled: Compiled, folder: Path, request: Request, store: Cache) -> Path | None:
    if not compiled.units:
        return None
    library = folder / "kernels.so"
    build(compiled.units, library, request.tools, store.objects, request.options.compiler_timeout_s)
    return library


# --------------------------------------------------------------------------- autotuning


def _with_winners(store: Cache, request: Request, run: Callable[[], Compiled]) -> Compiled:
    """`run` with the stored matrix kernels of this machine."""
    folder = store.dir / "autotune"
    if not folder.is_dir():
        return run()
    gemm, autotune = _tuning()
    with gemm.decided(autotune.Winners(folder, request.tools, request.threads)):
        return run()


def _tuning() -> tuple[Any, Any]:
    return importlib.import_module("inductor.cpp.gemm"), importlib.import_module("inductor.driver.autotune")


def _autotuned(
    graph: Graph,
    kind: GraphKind,
    request: Request,
    store: Cache,
    compile_: Callable[[Graph, GraphKind, Request], Compiled],
) -> Compiled:
    """Matrix kernels first, then the schedules of the other kernels, each alone."""
    gemm, autotune = _tuning()
    start, seconds = time.perf_counter(), budget_s(request.options)
    winners = autotune.Winners(store.dir / "autotune", request.tools, request.threads)
    with gemm.collect() as wanted:
        compile_(graph, kind, request)
    if wanted:
        autotune.tune_gemms(wanted, request.tools, winners, store.objects, seconds * _PRODUCTS_PART)
    with gemm.decided(winners):
        kernels = importlib.import_module("inductor.driver.cpu_autotune")
        left_s = max(0.0, start + seconds - time.perf_counter()) if seconds > 0 else seconds
        choose = kernels.measured(graph, request, store.dir / cache.CPU_WINNERS, left_s)
        return compile_(graph, kind, replace(request, choose=choose))


# --------------------------------------------------------------------------- looking at it


def _dump(graph: Graph, kind: GraphKind, key: Key, entry: Entry) -> None:
    """With TORCH_COMPILE_DEBUG=1: write the graph, the plan and the sources to a separate folder."""
    debug = settings.current().debug
    if not debug.enabled:
        return
    folder = debug.dir / f"{kind.value}-{key.digest[:12]}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "graph.py").write_text(GraphModule(graph.root, graph).readable())
        (folder / "plan.json").write_text(entry.plan.to_json())
        for name, text in entry.sources().items():
            (folder / name).write_text(with_lines(text, _lines(graph)))
    except OSError as error:
        _COMPONENT.warning(f"the debug folder {folder} cannot be written: {error}")


BACKEND_NAMES[compile_by_device] = "inductor"


# Last: other threads find the backend by its name from now on, and need all functions of this module.
register_backend("inductor", inductor, check_options, writes_at_end=True)
