"""Runs a program eager or captured, and describes its visible results as plain data.

Mutable objects are numbered in the order of their first occurrence, so equal descriptions mean equal sharing.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import gc
import io
import itertools
import linecache
import math
import operator
import signal
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy

import dynamo
import eager
from eager import Tensor
from eager.base import settings as _settings
from tests.dynamo.fuzz.programs import CAST

_MODULES: Final = {"torch": eager, "dynamo": dynamo, "functools": functools, "collections": collections, "dataclasses": dataclasses,
                   "contextlib": contextlib, "itertools": itertools, "math": math, "operator": operator, "io": io, "np": numpy}  # fmt: skip
_STATE: Final = ("G", "GL", "GD", "GT", "LOG", "Base")
_CALLS: Final = (0, 1, 0, 0)
MODES: Final = {"default": "none", "break": "call", "leaf": "leaf", "settrace": "none"}


class TimeUp(BaseException):
    """A program ran for too long."""


@functools.lru_cache(maxsize=4)
def _compiled(source: str, filename: str, line: int) -> types.CodeType:
    """The code of a part of a program, which begins at `line`. Both runs, and all programs of one cast, share it."""
    return compile("\n" * (line - 1) + source, filename, "exec")


def load(source: str, filename: str) -> dict[str, Any]:
    """The namespace of a program."""
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    namespace: dict[str, Any] = {"__name__": "fuzzed", **_MODULES}
    module = types.ModuleType("fuzzed")
    sys.modules["fuzzed"] = module  # dataclasses look up their module
    cast = CAST if source.startswith(CAST) else ""
    exec(_compiled(cast, filename, 1), namespace)
    exec(_compiled(source[len(cast) :], filename, 1 + cast.count("\n")), namespace)
    return namespace


class Describer:
    """Values as plain data."""

    def __init__(self, filename: str) -> None:
        self.filename = filename
        self._numbers: dict[int, int] = {}
        self._keep: list[Any] = []

    def _number(self, value: Any) -> tuple[int, bool]:
        known = id(value) in self._numbers
        if not known:
            self._numbers[id(value)] = len(self._numbers)
            self._keep.append(value)
        return self._numbers[id(value)], known

    def __call__(self, value: Any) -> Any:
        kind = type(value)
        if value is None or kind in (int, bool, str, bytes, complex):
            return (kind.__name__, value)
        if kind is float:
            return ("float", "nan" if value != value else value.hex())
        if isinstance(value, type | types.ModuleType | types.BuiltinFunctionType):
            return (kind.__name__, getattr(value, "__qualname__", value.__name__))
        if isinstance(value, tuple) and _is_plain(value):
            return (kind.__name__, repr(value))  # equal tuples of constants may be one object or two: the compiler decides
        number, known = self._number(value)
        if known:
            return ("again", number)
        return (kind.__name__, number, *self._parts(value))

    def _parts(self, value: Any) -> tuple[Any, ...]:
        if isinstance(value, Tensor):
            return self._tensor(value)
        if isinstance(value, tuple | list | collections.deque):
            return tuple(self(v) for v in value)
        if isinstance(value, dict):
            return tuple((self(k), self(v)) for k, v in value.items())
        if isinstance(value, set | frozenset):
            return tuple(sorted(map(repr, map(self, value))))
        if isinstance(value, BaseException):
            return self._exception(value)
        if isinstance(value, types.FunctionType):
            return (value.__qualname__, self(value.__defaults__))
        if isinstance(value, types.GeneratorType):
            return (value.__qualname__, value.gi_frame is None)
        return self._object(value)

    def _tensor(self, value: Tensor) -> tuple[Any, ...]:
        storage, _ = self._number(value.untyped_storage())
        return (str(value.dtype), tuple(value.shape), value.stride(), value.storage_offset(), value.requires_grad, storage,
                self(value.grad if value.is_leaf else None), repr(value.detach().tolist()))  # fmt: skip

    def _object(self, value: Any) -> tuple[Any, ...]:
        slots = [(n, self(getattr(value, n))) for n in ("n", "t") if isinstance(type(value).__dict__.get(n), types.MemberDescriptorType)
                 and _has(value, n)]  # fmt: skip
        namespace = getattr(value, "__dict__", {})
        return (tuple(slots), tuple((k, self(v)) for k, v in namespace.items()))

    def _exception(self, error: BaseException) -> tuple[Any, ...]:
        return (self(error.args), ("cause", self(error.__cause__)), ("context", self(error.__context__)),
                error.__suppress_context__, tuple(getattr(error, "__notes__", ())),
                tuple((k, self(v)) for k, v in error.__dict__.items() if k != "__notes__"),
                tuple(self._lines(error.__traceback__, isinstance(error, UnboundLocalError))))  # fmt: skip

    def _lines(self, entry: types.TracebackType | None, unbound: bool) -> Iterator[tuple[str, int]]:
        while entry is not None:
            if entry.tb_frame.f_code.co_filename == self.filename:
                # CPython's STORE_FAST__LOAD_FAST, once specialised, reports an unbound local on the previous line.
                blurred = unbound and entry.tb_next is None
                yield entry.tb_frame.f_code.co_name, 0 if blurred else entry.tb_lineno
            entry = entry.tb_next


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_plain, value))
    return value is None or type(value) in (int, bool, str, float)


def _has(value: Any, name: str) -> bool:
    try:
        object.__getattribute__(value, name)
    except AttributeError:
        return False
    return True


def _call(fn: Callable[..., Any], namespace: dict[str, Any], k: int, filename: str) -> Any:
    """One call, described: result or exception, log, arguments, globals."""
    log: list[Any] = []
    namespace["LOG"].clear()
    args = namespace[f"inputs{k}"]()
    kept_args = list(args)
    result: Any = None
    error: BaseException | None = None
    try:
        result = fn(log, *args)
    except Exception as raised:  # noqa: BLE001 - the errors of the two runs are compared
        error = raised
    describe = Describer(filename)
    state = {name: namespace.get(name, "(deleted)") for name in _STATE if name != "Base"}
    seen = (("result", describe(result)), ("error", describe(error)), ("log", describe(log)), ("args", describe(kept_args)),
            ("state", describe(state)), ("count", namespace["Base"].count), ("out", namespace["OUT"].getvalue()),
            ("grad_mode", eager.is_grad_enabled()))  # fmt: skip
    error = None  # its traceback holds this frame: both must die here, and not at the next collection of cycles
    return seen


@contextlib.contextmanager
def _explicit_collections() -> Iterator[Callable[[], object]]:
    """Cyclic garbage is collected only where the yielded function is called: the end of an object may run code."""
    on = gc.isenabled()
    gc.disable()
    try:
        yield lambda: gc.collect(0)
    finally:
        if on:
            gc.enable()


def _tracer(frame: Any, event: str, arg: Any) -> Any:
    return _tracer


def run(source: str, mode: str, captured: bool, filename: str = "<fuzzed>") -> list[Any]:
    """The descriptions of all calls of the program. Raises: TimeUp."""
    namespace = load(source, filename)
    fn = namespace["f"]
    if captured:
        dynamo.reset()
        fn = dynamo.compile(fn, backend="eager")
    seen = []
    force = MODES[mode] if captured else "none"
    settings = _settings.scope(capture_force_break=force, capture_suppress_errors=False)
    with settings, _alarm(20.0 if captured else 3.0), _explicit_collections() as collect:
        for call, k in enumerate(_CALLS):
            if mode == "settrace" and call == 2:  # in the eager run too: tracing keeps frames alive for longer
                sys.settrace(_tracer)
            try:
                seen.append(_call(fn, namespace, k, filename))
            finally:
                sys.settrace(None)
                eager.set_grad_enabled(True)
            collect()
    return seen


@contextlib.contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    def ring(number: int, frame: Any) -> None:
        raise TimeUp

    before = signal.signal(signal.SIGVTALRM, ring)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


@dataclasses.dataclass(frozen=True)
class Difference:
    """The first difference between two runs of a program.

    call: the number of the call. what: result, error, log, ...
    """

    call: int
    what: str
    eager: Any
    captured: Any

    error: str = "NoneType"

    @property
    def signature(self) -> tuple[str, str, str]:
        """The parts of a difference that a shorter program must share to be the same finding.

        error: the class of eager's error.
        """
        return self.what, str(self.captured)[:60] if self.what == "crash" else _first(self.eager, self.captured, "")[0][:10], self.error

    def __str__(self) -> str:
        where, a, b = _first(self.eager, self.captured, "")
        return f"call {self.call}, {self.what}{where}:\n  eager    {a}\n  captured {b}"


def _first(a: Any, b: Any, where: str) -> tuple[str, Any, Any]:
    """The innermost place at which two descriptions differ."""
    if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            if x != y:
                return _first(x, y, f"{where}.{a[i - 1] if i == 1 and isinstance(a[0], str) else i}")
    return where, a, b


def compare(source: str, mode: str) -> Difference | None:
    """The first difference between eager and captured, or None.

    Raises: TimeUp, and the errors of the module in the eager run.
    """
    plain = run(source, mode, captured=False)
    try:
        captured = run(source, mode, captured=True)
    except TimeUp:
        return Difference(-1, "time", "ended", "did not end")
    except Exception as error:  # noqa: BLE001 - a finding
        return Difference(-1, "crash", "", f"{type(error).__name__}: {error}")
    for call, (a, b) in enumerate(zip(plain, captured, strict=True)):
        for (what, x), (_, y) in zip(a, b, strict=True):
            if x != y:
                return Difference(call, what, x, y, dict(a)["error"][0])
    return None
