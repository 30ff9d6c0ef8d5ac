"""The log: the artifacts, their switches, and the format of a line.

Owns: the TORCH_LOGS language, the artifact registry, the handlers. The text of a line comes from its caller.

    GRAPH_BREAKS = artifact("graph_breaks")           # once, at import
    if GRAPH_BREAKS.enabled:                          # an attribute read when it is off
        GRAPH_BREAKS.log(f"Graph break in ...", frame_id=frame)

An *artifact* is one kind of decision or product, on or off. A *component* is a package with a level:
`dynamo` shows its INFO lines, `+dynamo` its DEBUG lines and the artifacts that belong to it,
`-dynamo` errors only. Lines go to the standard library's logger `framejit.<name>`, so an application
can attach other handlers; the default handler writes to the current `sys.stderr`.
"""

from __future__ import annotations

import difflib
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import ClassVar, NamedTuple, TextIO, cast

from eager.base import settings
from eager.base.records import dataclass

__all__ = [
    "FRAME",
    "Component",
    "FrameId",
    "Log",
    "Record",
    "artifact",
    "artifacts",
    "capture",
    "component",
    "components",
    "current_frame",
    "help_text",
    "set_logs",
    "warn_once",
]


class FrameId(NamedTuple):
    """Which compilation a line is about: the compiled frame, its n-th compilation, its n-th attempt."""

    frame: int
    recompile: int
    attempt: int = 0

    def __str__(self) -> str:
        return f"{self.frame}/{self.recompile}" + (f"_{self.attempt}" if self.attempt else "")


FRAME: ContextVar[FrameId | None] = ContextVar("framejit_frame", default=None)  # the compilation that lines name


def current_frame() -> FrameId | None:
    """The compilation that this thread is in, or None."""
    return FRAME.get()


@dataclass(slots=True, eq=False)
class Log:
    """One artifact: a switch and a place to write.

    name: as in TORCH_LOGS. owner: the component whose DEBUG level turns it on. verbose: only its own
    name turns it on. help: the question it answers. enabled: whether `log` writes.
    """

    name: str
    owner: str
    help: str
    verbose: bool
    enabled: bool
    _logger: logging.Logger

    def log(self, message: str, *, frame_id: FrameId | str | None = None) -> None:
        """Write `message`, each of its lines prefixed, if the artifact is on.

        frame_id: the compilation it is about; the surrounding `frame()` block's when not given.
        """
        if self.enabled:
            _emit(self._logger, logging.DEBUG, f"[__{self.name}] ", message, frame_id)


@dataclass(slots=True, eq=False)
class Component:
    """One package's running commentary. enabled: INFO is shown. debug: DEBUG is shown too."""

    name: str
    help: str
    enabled: bool
    debug: bool
    _logger: logging.Logger

    def log(self, message: str, *, frame_id: FrameId | str | None = None, level: int = logging.INFO) -> None:
        """Write `message` at `level` (a `logging` level) if the component shows it."""
        if level >= self._logger.level:
            _emit(self._logger, level, "", message, frame_id)

    def warning(self, message: str, *, frame_id: FrameId | str | None = None) -> None:
        """Write `message` at WARNING: shown unless the component was silenced with `-name`."""
        self.log(message, frame_id=frame_id, level=logging.WARNING)


class Record(NamedTuple):
    """One captured message: the artifact or component, its level, its frame id, its whole text."""

    name: str
    level: int
    frame_id: str
    message: str


_root = logging.getLogger("framejit")
_components: dict[str, Component] = {}
_artifacts: dict[str, Log] = {}


def _declare_component(name: str, text: str) -> None:
    logger = _root.getChild(name)
    logger.setLevel(logging.WARNING)
    _components[name] = Component(name, text, False, False, logger)


def _declare(name: str, owner: str, text: str, *, verbose: bool = False) -> None:
    logger = _root.getChild(f"{owner}.{name}")
    logger.setLevel(logging.DEBUG)  # the switch is `enabled`, tested before the message is built
    _artifacts[name] = Log(name, owner, text, verbose, False, logger)


_declare_component("dynamo", "Capture: the frames captured, skipped, reused and recompiled.")
_declare_component("aot", "Graph passes: decomposition, functionalisation, joint graph, partition.")
_declare_component("inductor", "The backend: lowering, scheduling, code generation, compilers run.")
_declare_component("dynamic", "Dynamic shapes: which dimension became symbolic, and why.")

_declare("graph_breaks", "dynamo", "Where and why did a graph end, and how can the break be avoided?")
_declare("recompiles", "dynamo", "Why was a function compiled again: which guard failed, old and new value?")
_declare("recompiles_verbose", "dynamo", "As recompiles, with the failed guard of every variant.", verbose=True)
_declare("guards", "dynamo", "What must hold for a compiled variant to be used again?")
_declare("bytecode", "dynamo", "Which bytecode was captured, and which generated code replaces it?", verbose=True)
_declare("graph", "dynamo", "What was captured, as a table of nodes?", verbose=True)
_declare("graph_code", "dynamo", "What was captured, as Python?")
_declare("graph_sizes", "dynamo", "Which shape, stride and dtype has each captured value?")
_declare("trace_source", "dynamo", "Which user lines does the capture walk through?", verbose=True)
_declare("trace_bytecode", "dynamo", "Which instructions does the capture execute, on which stack?", verbose=True)
_declare("aot_graphs", "aot", "What are the functional graphs, forward and backward, after partition?")
_declare("aot_joint_graph", "aot", "What is the joint forward and backward graph before partition?")
_declare("graph_passes", "aot", "Which optional graph passes changed a graph, and how did it look before and after?", verbose=True)
_declare("output_code", "inductor", "What code runs for a graph: kernels and the plan that calls them?")
_declare("kernel_code", "inductor", "What source does each kernel have, and which file is it in?")
_declare("schedule", "inductor", "In which order do the loops run, in which buffers?")
_declare("loops", "inductor", "Which loops does each kernel run after its schedule, and how?")
_declare("fusion", "inductor", "Which loops were joined, and why were the others refused?")
_declare("perf_hints", "inductor", "What keeps this graph from running faster?")
_declare("cudagraphs", "inductor", "Was a graph recorded as a CUDA graph, or why not?")
_declare("autotuning", "inductor", "Which variants were measured, how fast was each, which one won?")
_declare("kernel_times", "inductor", "How long does each kernel of a CUDA graph take alone, at which bandwidth?", verbose=True)
_declare("cache", "inductor", "Was an artifact found on disk, and if not, which part of its key differed?")
_declare("compile_time", "inductor", "Where did the time of a compilation go?")


def artifact(name: str) -> Log:
    """The artifact `name`. Raises: ValueError with the nearest name for an unknown name."""
    if name not in _artifacts:
        raise ValueError(_unknown("artifact", name, list(_artifacts)))
    return _artifacts[name]


def component(name: str) -> Component:
    """The component `name`. Raises: ValueError with the nearest name for an unknown name."""
    if name not in _components:
        raise ValueError(_unknown("component", name, list(_components)))
    return _components[name]


def artifacts() -> tuple[Log, ...]:
    """Every artifact, in the order of the documentation."""
    return tuple(_artifacts.values())


def components() -> tuple[Component, ...]:
    """Every component, in the order of the documentation."""
    return tuple(_components.values())


def _unknown(what: str, name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"allowed: {', '.join(known)}"
    return f"TORCH_LOGS: unknown {what} {name!r}; {hint} (TORCH_LOGS=help lists them)"


# --------------------------------------------------------------------------- writing


class _Formatter(logging.Formatter):
    """`V1121 04:20:24.123 [0/1] [__graph_breaks] text`, on every line, so that grep keeps whole messages."""

    _LETTERS: ClassVar[dict[int, str]] = {logging.DEBUG: "V", logging.INFO: "I", logging.WARNING: "W", logging.ERROR: "E"}

    def format(self, record: logging.LogRecord) -> str:
        letter = self._LETTERS.get(record.levelno, "E")
        stamp = self.formatTime(record, "%m%d %H:%M:%S")
        frame_id = getattr(record, "framejit_frame", "")
        tag = getattr(record, "framejit_tag", "")
        prefix = f"{letter}{stamp}.{int(record.msecs):03d} " + (f"[{frame_id}] " if frame_id else "") + tag
        return "\n".join(prefix + line for line in record.getMessage().splitlines() or [""])


class _StderrHandler(logging.StreamHandler[TextIO]):
    """Writes to the sys.stderr of the moment: redirection after import must work."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> TextIO:  # type: ignore[override]
        return cast(TextIO, sys.stderr)


def _emit(logger: logging.Logger, level: int, tag: str, message: str, frame_id: FrameId | str | None) -> None:
    where = frame_id if frame_id is not None else FRAME.get()
    extra = {"framejit_frame": "" if where is None else str(where), "framejit_tag": tag}
    logger.log(level, "%s", message, extra=extra)


class _Collector(logging.Handler):
    def __init__(self, records: list[Record]) -> None:
        super().__init__()
        self.records = records

    def emit(self, record: logging.LogRecord) -> None:
        name = record.name.rpartition(".")[2]
        frame_id = getattr(record, "framejit_frame", "")
        self.records.append(Record(name, record.levelno, frame_id, record.getMessage()))


@contextmanager
def capture(*names: str) -> Iterator[list[Record]]:
    """Turn the named artifacts on for the block and collect every message, artifact or warning.

    Nothing captured reaches stderr. Raises: ValueError for an unknown artifact.
    """
    wanted = [artifact(name) for name in names]
    were = [log.enabled for log in wanted]
    records: list[Record] = []
    collector = _Collector(records)
    handlers = list(_root.handlers)
    _root.handlers[:] = [collector]
    for log in wanted:
        log.enabled = True
    try:
        yield records
    finally:
        _root.handlers[:] = handlers
        for log, was in zip(wanted, were, strict=True):
            log.enabled = was


_warned: dict[str, object] = {}  # by key: the mark of the call that saw it first


def warn_once(key: str, message: str, *, component: str = "dynamo") -> bool:
    """Warn the first time `key` is seen in this process. Returns whether it warned."""
    if not first_time(key):
        return False
    _components[component].warning(message)
    return True


def first_time(key: str) -> bool:
    """Whether `key` is seen for the first time in this process (see `forget_warnings`)."""
    mark = object()
    return _warned.setdefault(key, mark) is mark


def forget_warnings() -> None:
    """Let every message that is written once be written again (after `reset()`, and between tests)."""
    _warned.clear()


# --------------------------------------------------------------------------- switching


def help_text() -> str:
    """The help that TORCH_LOGS=help prints: the accepted values."""
    lines = [
        "TORCH_LOGS: a comma-separated list of names.",
        "",
        "  name    an artifact: print it.   A component: its INFO lines.",
        "  +name   a component: its DEBUG lines and the artifacts that belong to it, except those marked *.",
        "  -name   an artifact: off.   A component: errors only.",
        "  all     every component at INFO and every artifact except those marked *;  +all: everything.",
        "  help    this text.",
        "",
        "Components:",
    ]
    lines += [f"  {c.name:<20} {c.help}" for c in _components.values()]
    lines += ["", "Artifacts:"]
    lines += [f"  {a.name + ('*' if a.verbose else ''):<20} {a.help}" for a in _artifacts.values()]
    lines += ["", "Examples:  TORCH_LOGS=graph_breaks,recompiles   TORCH_LOGS=+dynamo   TORCH_LOGS=all,-guards"]
    lines += ["From Python:  eager.base.logs.set_logs(graph_breaks=True, dynamo=logging.DEBUG)"]
    lines += ["TORCH_LOGS_OUT=FILE writes the log to FILE as well."]
    return "\n".join(lines)


def _set_component(target: Component, level: int) -> None:
    target._logger.setLevel(level)
    target.enabled = level <= logging.INFO
    target.debug = level <= logging.DEBUG
    if target.debug:
        for log in _artifacts.values():
            if log.owner == target.name and not log.verbose:
                log.enabled = True


def _clear() -> None:
    for target in _components.values():
        _set_component(target, logging.WARNING)
    for log in _artifacts.values():
        log.enabled = False


def _set_all(level: int) -> None:
    for target in _components.values():
        _set_component(target, level)
    if level > logging.INFO:
        return
    for log in _artifacts.values():
        log.enabled = not log.verbose or level <= logging.DEBUG


_SIGN_LEVELS = {"": logging.INFO, "+": logging.DEBUG, "-": logging.ERROR}


def _parse(spec: str) -> list[tuple[str, str]]:
    """`"+dynamo,graph_breaks"` -> `[("+", "dynamo"), ("", "graph_breaks")]`, names checked, `all` first."""
    known = ["all", "help", *_components, *_artifacts]
    parsed = []
    for word in filter(None, (w.strip() for w in spec.split(","))):
        sign = word[0] if word[0] in "+-" else ""
        name = word[len(sign) :]
        if name not in known:
            raise ValueError(_unknown("name", name, known))
        parsed.append((sign, name))
    # "-guards,all" means the same as "all,-guards": the widest first, then the exceptions.
    return sorted(parsed, key=lambda item: (item[1] != "all", item[1] not in _components))


def apply(spec: str) -> None:
    """Set every artifact and component by a TORCH_LOGS value. Raises: ValueError for a value that it does not accept."""
    parsed = _parse(spec)
    _clear()
    for sign, name in parsed:
        if name == "help":
            print(help_text(), file=sys.stderr)
        elif name == "all":
            _set_all(_SIGN_LEVELS[sign])
        elif name in _components:
            _set_component(_components[name], _SIGN_LEVELS[sign])
        else:
            _artifacts[name].enabled = sign != "-"


def set_logs(*, all: int | None = None, **switches: int | bool) -> None:
    """Set the log from Python: `set_logs(graph_breaks=True, dynamo=logging.DEBUG)`.

    Everything not named is set back to its default, so `set_logs()` turns the log off. Artifacts
    take a bool, components and `all` a `logging` level. As in torch, TORCH_LOGS in the environment
    wins: the call is then ignored with a warning.
    Raises: ValueError for an unknown name, TypeError for a value of the wrong kind.
    """
    for name, value in switches.items():
        if name in _artifacts:
            if not isinstance(value, bool):
                raise TypeError(f"set_logs: {name}={value!r}; allowed for an artifact: True or False")
        elif name in _components:
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"set_logs: {name}={value!r}; allowed for a component: a level such as logging.DEBUG")
        else:
            raise ValueError(_unknown("name", name, [*_components, *_artifacts]))
    if settings.current().logs.spec:
        warn_once("set_logs", "set_logs: ignored, because TORCH_LOGS is set in the environment")
        return
    _clear()
    if all is not None:
        _set_all(all)
    for name, value in switches.items():
        if name in _components:
            _set_component(_components[name], int(value))
    for name, value in switches.items():
        if name in _artifacts:
            _artifacts[name].enabled = bool(value)


def _install() -> None:
    """Attach our handlers and read TORCH_LOGS. Once, at import."""
    _root.propagate = False
    _root.setLevel(logging.DEBUG)
    formatter = _Formatter()
    logs = settings.current().logs
    handlers: list[logging.Handler] = [_StderrHandler()]
    if logs.out:
        handlers.append(logging.FileHandler(logs.out, delay=True))
    for handler in handlers:
        handler.setFormatter(formatter)
        _root.addHandler(handler)
    apply(logs.spec)


_install()
