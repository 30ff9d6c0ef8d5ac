"""All settings of the product: name, environment variable, default and help.

Owns: the only reads of the environment in the product. The effect of a setting is in the module that reads it.

    from eager.base import settings
    settings.current().cache.dir                 # read
    with settings.scope(cache_dir=p, cpu_threads=1):   # override, restored on exit
        ...

A setting's full name is its group and field joined by an underscore (`cache.dir` is `cache_dir`).
`current()` is an immutable snapshot: take it once per compilation and pass the group on, so that a
compilation sees one set of options from end to end. `scope` is process-wide, not per thread: worker
threads of a compilation must see the settings of its caller.
"""

from __future__ import annotations

import difflib
import os
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from eager.base.locks import new_lock
from eager.base.records import dataclass

__all__ = ["Description", "Settings", "assign", "current", "describe", "reload", "scope"]

_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off", ""})
_SIZE_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def _flag(text: str) -> bool:
    word = text.strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise ValueError("allowed: 1/true/yes/on or 0/false/no/off")


def _count(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = -1
    if value < 0:
        raise ValueError("allowed: a whole number, 0 or more")
    return value


def _fraction(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError("allowed: a number") from None


def _size(text: str) -> int:
    word = text.strip().lower().removesuffix("b").removesuffix("i")
    unit = word[-1] if word and word[-1].isalpha() else ""
    try:
        return int(float(word.removesuffix(unit)) * _SIZE_UNITS[unit])
    except (ValueError, KeyError, OverflowError):
        raise ValueError("allowed: a size in bytes, or with a unit such as 512M or 2G") from None


def _path(text: str) -> Path:
    return Path(text).expanduser()


def _one_of(*allowed: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in allowed:
            raise ValueError(f"allowed: {', '.join(repr(a) for a in allowed)}")
        return text

    return parse


class _Source(NamedTuple):
    """How one field is read: environment names (the first that is set wins), parser, help."""

    env: tuple[str, ...]
    parse: Callable[[str], Any]
    help: str


class Description(NamedTuple):
    """One setting as a reader sees it: full name, group, field, variables, default, help."""

    name: str
    group: str
    field: str
    env: tuple[str, ...]
    default: Any
    help: str


def _setting(env: str, default: Any, parse: Callable[[str], Any], text: str) -> Any:
    source = _Source(tuple(env.split()), parse, text)
    if callable(default):
        return field(default_factory=default, metadata={"source": source})
    return field(default=default, metadata={"source": source})


def _cache_folder(name: str) -> Path:
    base = os.environ.get("XDG_CACHE_HOME", "")
    if base and os.path.isabs(base):  # the XDG specification: relative values are ignored
        return Path(base) / name
    try:
        return Path.home() / ".cache" / name
    except RuntimeError:  # no home directory: a container user without a passwd entry
        return Path("/tmp") / f"{name}-{os.getuid()}"


def _default_cache_dir() -> Path:
    return _cache_folder("framejit")


def _default_torch_home() -> Path:
    return _cache_folder("torch")


@dataclass(frozen=True, slots=True)
class Logs:
    """Settings of the log: its artifacts, format and file."""

    spec: str = _setting(
        "TORCH_LOGS", "", str, "What to log, for example 'graph_breaks,recompiles' or '+dynamo'; 'help' lists it all."
    )
    out: str = _setting("TORCH_LOGS_OUT", "", str, "A file that gets the log as well as stderr.")


@dataclass(frozen=True, slots=True)
class Capture:
    """How functions are captured."""

    disable: bool = _setting(
        "TORCH_COMPILE_DISABLE TORCHDYNAMO_DISABLE", False, _flag, "Run everything eagerly: compile() does nothing."
    )
    suppress_errors: bool = _setting(
        "TORCHDYNAMO_SUPPRESS_ERRORS", True, _flag, "A compiler bug falls back to eager with a warning; 0 raises it."
    )
    recompile_limit: int = _setting(
        "FRAMEJIT_RECOMPILE_LIMIT", 8, _count, "Variants of a function, or of a part between graph breaks, before it runs eagerly."
    )
    accumulated_recompile_limit: int = _setting(
        "FRAMEJIT_ACCUMULATED_RECOMPILE_LIMIT", 256, _count, "Compiled variants of one function's code, over all compile() calls."
    )
    error_on_recompile: bool = _setting(
        "FRAMEJIT_ERROR_ON_RECOMPILE", False, _flag, "A call that no compiled variant fits is an error."
    )
    fail_on_recompile_limit: bool = _setting(
        "FRAMEJIT_FAIL_ON_RECOMPILE_LIMIT", False, _flag, "Reaching the recompile limit is an error, not a reason to run eagerly."
    )
    assume_static: bool = _setting(
        "FRAMEJIT_ASSUME_STATIC", True, _flag, "Sizes are constants until they change; 0: symbols from the first call on."
    )
    specialize_int: bool = _setting("FRAMEJIT_SPECIALIZE_INT", False, _flag, "An int argument that changes stays a constant.")
    specialize_float: bool = _setting("FRAMEJIT_SPECIALIZE_FLOAT", False, _flag, "A float argument that changes stays a constant.")
    automatic_dynamic: bool = _setting(
        "FRAMEJIT_AUTOMATIC_DYNAMIC TORCH_DYNAMO_AUTOMATIC_DYNAMIC_SHAPES", True, _flag,
        "Make a dimension symbolic once it has been seen to change."
    )
    scalar_outputs: bool = _setting(
        "TORCHDYNAMO_CAPTURE_SCALAR_OUTPUTS", False, _flag, "Capture item() and similar calls as symbolic numbers, instead of a break."
    )
    dynamic_outputs: bool = _setting(
        "TORCHDYNAMO_CAPTURE_DYNAMIC_OUTPUT_SHAPE_OPS", False, _flag,
        "Capture ops whose result sizes depend on data (nonzero, masks, unique), instead of a break.",
    )  # fmt: skip
    inline_depth: int = _setting(
        "FRAMEJIT_INLINE_DEPTH", 200, _count, "Calls inlined into one another before the capture breaks the graph."
    )
    unroll_limit: int = _setting(
        "FRAMEJIT_UNROLL_LIMIT", 20_000, _count, "Instructions of an unrolled loop before the capture breaks the graph."
    )
    unroll_timeout_s: int = _setting(
        "FRAMEJIT_UNROLL_TIMEOUT_S", 30, _count, "Seconds after which a compiler run is given up if a long loop was unrolled."
    )
    force_break: str = _setting(
        "FRAMEJIT_FORCE_BREAK",
        "none",
        _one_of("none", "call", "leaf"),
        "For tests: break the graph at every call, or in every inlined leaf function.",
    )
    resume: str = _setting(
        "FRAMEJIT_RESUME",
        "auto",
        _one_of("auto", "reenter", "generate"),
        "How a frame continues after a graph break: re-entry of the original code, or generated code.",
    )


@dataclass(frozen=True, slots=True)
class Cpu:
    """How CPU code is generated and run."""

    cxx: str = _setting("FRAMEJIT_CXX CXX", "", str, "C++ compiler; empty: the first of g++, c++, clang++ on PATH.")
    march: str = _setting("FRAMEJIT_MARCH TORCHINDUCTOR_CPP_MARCH", "native", str, "-march of generated code.")
    sanitize: bool = _setting(
        "FRAMEJIT_SANITIZE", False, _flag, "Build generated code with AddressSanitizer and UBSan; needs a loaded libasan (make sanitize)."
    )
    threads: int = _setting("FRAMEJIT_THREADS OMP_NUM_THREADS", 0, _count, "Threads of native loops; 0: the cores.")
    blas: str = _setting(
        "FRAMEJIT_BLAS", "", str, "A CBLAS library to use for products; empty: numpy's own; 'none': numpy multiplies."
    )
    compile_workers: int = _setting(
        "FRAMEJIT_COMPILE_WORKERS TORCHINDUCTOR_COMPILE_THREADS", 0, _count, "Compiler processes run at once; 0: the cores."
    )
    compile_timeout_s: int = _setting(
        "FRAMEJIT_COMPILE_TIMEOUT_S", 120, _count, "Seconds after which a compiler run is given up."
    )
    max_autotune: bool = _setting(
        "FRAMEJIT_MAX_AUTOTUNE TORCHINDUCTOR_MAX_AUTOTUNE", False, _flag, "Autotune in every mode, as mode='max-autotune' does."
    )
    autotune_budget_s: int = _setting(
        "FRAMEJIT_AUTOTUNE_BUDGET_S", 30, _count, "Seconds that one graph may spend on measuring variants."
    )
    allocator_limit_bytes: int = _setting(
        "FRAMEJIT_ALLOCATOR_LIMIT", 2 << 30, _size, "Bytes of free memory that the CPU allocator keeps for reuse."
    )


@dataclass(frozen=True, slots=True)
class Gpu:
    """How GPU code is generated and run."""

    arch: int = _setting("FRAMEJIT_GPU_ARCH", 0, _count, "Compute capability to compile for (90: sm_90); 0: the GPU's.")
    compile_workers: int = _setting("FRAMEJIT_GPU_WORKERS", 0, _count, "Triton compilations run at once; 0: the cores.")
    emulate: bool = _setting(
        "FRAMEJIT_EMULATE_CUDA", False, _flag, "For tests: numpy plays the part of a CUDA device; read at the first use of CUDA."
    )


@dataclass(frozen=True, slots=True)
class Cache:
    """Where compiled artifacts and downloaded models are kept."""

    enabled: bool = _setting("FRAMEJIT_CACHE TORCHINDUCTOR_FX_GRAPH_CACHE", True, _flag, "Keep compiled artifacts on disk.")
    dir: Path = _setting(
        "FRAMEJIT_CACHE_DIR TORCHINDUCTOR_CACHE_DIR", _default_cache_dir, _path, "The artifact folder; $XDG_CACHE_HOME/framejit by default."
    )
    limit_bytes: int = _setting(
        "FRAMEJIT_CACHE_LIMIT", 4 << 30, _size, "Size at which the artifacts used longest ago are removed."
    )
    torch_home: Path = _setting(
        "TORCH_HOME", _default_torch_home, _path, "Where hub keeps models; $XDG_CACHE_HOME/torch by default."
    )


@dataclass(frozen=True, slots=True)
class Debug:
    """For finding faults."""

    enabled: bool = _setting("TORCH_COMPILE_DEBUG", False, _flag, "Write every stage of each compilation to debug_dir.")
    dir: Path = _setting(
        "TORCH_COMPILE_DEBUG_DIR", lambda: Path("torch_compile_debug"), _path, "Where TORCH_COMPILE_DEBUG=1 writes."
    )
    full_traceback: bool = _setting(
        "FRAMEJIT_FULL_TRACEBACK TORCHDYNAMO_VERBOSE", False, _flag,
        "Show this library's own frames in tracebacks, which otherwise hold the user's only."
    )
    repro_after: str = _setting(
        "TORCHDYNAMO_REPRO_AFTER", "", _one_of("", "dynamo", "aot"),
        "Write a script that repeats a backend's failure: for the captured graph (dynamo) or the functional graphs (aot)."
    )  # fmt: skip
    repro_level: int = _setting(
        "TORCHDYNAMO_REPRO_LEVEL", 2, _count, "Graphs with a script: 1 and 2: if it fails; 3: all; 4: if its results are wrong."
    )
    repro_forward_only: bool = _setting("TORCHDYNAMO_REPRO_FORWARD_ONLY", False, _flag, "Check graphs without their backward pass.")
    repro_ignore_non_fp: bool = _setting("TORCHDYNAMO_REPRO_IGNORE_NON_FP", False, _flag, "Compare floating results only.")
    repro_tolerance: float = _setting(
        "FRAMEJIT_REPRO_TOLERANCE", 0.001, _fraction, "Difference to eager results, relative and absolute, that is not reported."
    )
    verify: bool = _setting("FRAMEJIT_VERIFY", False, _flag, "Verify the graph after every pass (the tests do).")


@dataclass(frozen=True, slots=True)
class Settings:
    """An immutable snapshot of every setting, by group."""

    logs: Logs
    capture: Capture
    cpu: Cpu
    gpu: Gpu
    cache: Cache
    debug: Debug


_GROUPS: dict[str, type] = {
    "logs": Logs,
    "capture": Capture,
    "cpu": Cpu,
    "gpu": Gpu,
    "cache": Cache,
    "debug": Debug,
}


def describe() -> list[Description]:
    """Every setting in the order of the groups, for documentation and `--help`."""
    found = []
    for group, cls in _GROUPS.items():
        defaults = cls()
        for f in fields(cls):
            source: _Source = f.metadata["source"]
            found.append(
                Description(f"{group}_{f.name}", group, f.name, source.env, getattr(defaults, f.name), source.help)
            )
    return found


def _read_group(cls: type, environ: Mapping[str, str]) -> Any:
    values: dict[str, Any] = {}
    for f in fields(cls):
        source: _Source = f.metadata["source"]
        # An empty variable counts as unset: `VAR= command` is how a shell user takes a setting back.
        name = next((n for n in source.env if environ.get(n)), None)
        if name is None:
            continue
        try:
            values[f.name] = source.parse(environ[name])
        except ValueError as error:
            # OMP_NUM_THREADS and CXX belong to others too and may hold more than we read ("4,2").
            if not name.startswith(("FRAMEJIT_", "TORCH")):
                continue
            raise ValueError(f"environment variable {name}={environ[name]!r} is not understood; {error}") from None
    return cls(**values)


def _warn_of_unknown(environ: Mapping[str, str]) -> None:
    """Warn of a variable of ours that no setting reads, with the nearest name that one reads."""
    known = {n for cls in _GROUPS.values() for f in fields(cls) for n in f.metadata["source"].env}
    for name in environ:
        if name.startswith("FRAMEJIT_") and not name.startswith("FRAMEJIT_TEST") and name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            ours = ", ".join(sorted(n for n in known if n.startswith("FRAMEJIT_")))
            hint = f"; did you mean {near[0]}?" if near else f"; there are {ours}"
            warnings.warn(f"environment variable {name} is not a setting of framejit{hint}", stacklevel=2)


def _read(environ: Mapping[str, str]) -> Settings:
    _warn_of_unknown(environ)
    return Settings(**{name: _read_group(cls, environ) for name, cls in _GROUPS.items()})


_lock = new_lock()
_in_force: list[Settings] = [_read(os.environ)]  # one item: the environment's settings, with every open `scope` on top
# () -> the settings in force. Not a function of Python: every stage of a compilation calls it.
current: Final[Callable[[], Settings]] = partial(_in_force.__getitem__, 0)


def variables(prefixes: tuple[str, ...], names: Collection[str]) -> list[tuple[str, str]]:
    """Environment variables that are set, begin with a prefix or are among `names`, and do not name a setting: (name, value)."""
    known = {n for cls in _GROUPS.values() for f in fields(cls) for n in f.metadata["source"].env}
    return [(name, value) for name, value in os.environ.items()
            if value and (name in names or name.startswith(prefixes)) and name not in known]  # fmt: skip


def environment(prefixes: tuple[str, ...], without: tuple[str, ...]) -> dict[str, str]:
    """The variables that begin with one of `prefixes` and with none of `without`, sorted: for a script that repeats this process."""
    return {k: v for k, v in sorted(os.environ.items()) if k.startswith(prefixes) and not k.startswith(without)}


def reload() -> Settings:
    """Read the environment again, dropping what open scopes changed. For tests and notebooks."""
    with _lock:
        _in_force[0] = _read(os.environ)
        return _in_force[0]


def _with_overrides(base: Settings, overrides: Mapping[str, Any]) -> Settings:
    by_group: dict[str, dict[str, Any]] = {}
    known = {f"{group}_{f.name}": (group, f.name) for group, cls in _GROUPS.items() for f in fields(cls)}
    parsers = {f"{group}_{f.name}": f.metadata["source"].parse for group, cls in _GROUPS.items() for f in fields(cls)}
    for name, value in overrides.items():
        if name not in known:
            raise TypeError(f"settings.scope: unknown setting {name!r}; known settings: {', '.join(known)}")
        group, field_name = known[name]
        wanted = type(getattr(getattr(base, group), field_name))
        if issubclass(wanted, Path) and isinstance(value, str):
            value = _path(value)
        if wanted is float and type(value) is int:
            value = float(value)
        accepted = Path if issubclass(wanted, Path) else wanted
        if not isinstance(value, accepted) or (accepted is int and isinstance(value, bool)):
            raise TypeError(
                f"settings.scope: {name}={value!r} is a {type(value).__name__}; allowed: {accepted.__name__}"
            )
        if isinstance(value, int) and value < 0:
            raise ValueError(f"settings.scope: {name}={value!r}; allowed: a whole number, 0 or more")
        if isinstance(value, str):
            parsers[name](value)  # raises ValueError for a word that is not one of the setting's
        by_group.setdefault(group, {})[field_name] = value
    changed = {group: replace(getattr(base, group), **values) for group, values in by_group.items()}
    return replace(base, **changed)


def assign(**overrides: Any) -> None:
    """Set settings by full name for the rest of the process, or of the `scope` that is open.

    Raises: TypeError for an unknown name or a value of the wrong type, before anything changes.
    """
    with _lock:
        _in_force[0] = _with_overrides(_in_force[0], overrides)


@contextmanager
def scope(**overrides: Any) -> Iterator[Settings]:
    """Override settings by full name until the block ends; nested scopes stack.

    Raises: TypeError for an unknown name or a value of the wrong type, before anything changes.
    """
    with _lock:
        before = _in_force[0]
        inside = _in_force[0] = _with_overrides(before, overrides)
    try:
        yield inside
    finally:
        with _lock:
            _in_force[0] = before
