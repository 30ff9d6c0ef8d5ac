"""Programs run eager and captured, compared in everything that a user can see.

A program is a function `f(log, *args)`; `log` is a list to which it appends, so that the order of effects is compared
too.
"""

from __future__ import annotations

import collections
import copy
import enum
import gc
import inspect
import math
import pathlib
import sys
import traceback
import types
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import dynamo
from eager import Tensor
from eager.base import settings

_HELD = type | types.ModuleType | types.FunctionType | enum.Enum  # compiled entries hold references to these
_FOLDER = str(pathlib.Path(__file__).parent)


@dataclass(frozen=True)
class Program:
    """make(): returns a fresh function, with fresh closures and classes. inputs: argument tuples, called in this order.

    held: at each call, the program makes an object that the guards compare (a class, a cache, a key without a value).
    Compiled entries hold these objects, so their reference counts are not compared.
    """

    name: str
    make: Callable[[], Callable[..., Any]]
    inputs: tuple[Callable[[], tuple[Any, ...]], ...]
    held: bool = False


class Table(list[Program]):
    """Programs of one family, collected by decorators."""

    def program(self, *inputs: Callable[[], tuple[Any, ...]], held: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """The decorated function is the program itself (it must not keep state between calls)."""

        def register(fn: Callable[..., Any]) -> Callable[..., Any]:
            self.append(Program(fn.__name__, lambda: fn, inputs, held))
            return fn

        return register

    def factory(self, *inputs: Callable[[], tuple[Any, ...]]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """The decorated function returns a fresh program, which may keep state."""

        def register(fn: Callable[..., Any]) -> Callable[..., Any]:
            self.append(Program(fn.__name__, fn, inputs))
            return fn

        return register


@dataclass
class Seen:
    """The visible outcome of one call."""

    result: Any = None
    error: BaseException | None = None
    log: Any = None
    args: Any = None
    lines: tuple[tuple[str, int], ...] = ()
    counts: tuple[tuple[str, int], ...] = ()


def observe(fn: Callable[..., Any], make_args: Callable[[], tuple[Any, ...]]) -> Seen:
    log: list[Any] = []
    args = make_args()
    seen = Seen(log=log, args=args)
    try:
        seen.result = fn(log, *args)
    except Exception as error:
        seen.error = error
        seen.lines = _lines(error)
    for raised in _exceptions((seen.error, seen.result, log), set()):
        traceback.clear_frames(raised.__traceback__)  # captured code has fewer frames, and frames hold their variables
    gc.collect()
    seen.counts = tuple(_counts((log, args), "args", set()))
    return seen


def _lines(error: BaseException) -> tuple[tuple[str, int], ...]:
    """(function, line) of the entries of its traceback that are in the folder of the programs."""
    found = traceback.extract_tb(error.__traceback__)
    return tuple((f.name, f.lineno or 0) for f in found if f.filename.startswith(_FOLDER) and f.filename != __file__)


def _exceptions(value: Any, met: set[int]) -> Iterator[BaseException]:
    """The exceptions in a result, with their causes and contexts."""
    if id(value) in met:
        return
    met.add(id(value))
    parts: Iterable[Any] = ()
    if isinstance(value, BaseException):
        yield value
        parts = (value.__context__, value.__cause__, getattr(value, "exceptions", ()))
    elif isinstance(value, tuple | list):
        parts = value
    for part in parts:
        yield from _exceptions(part, met)


def _counts(value: Any, path: str, met: set[int]) -> Iterator[tuple[str, int]]:
    """Reference counts of the mutable objects in the arguments and the log, and of the objects that these hold."""
    if id(value) in met:
        return
    met.add(id(value))
    if isinstance(value, tuple | list | collections.deque):
        parts = [(f"{path}[{i}]", v) for i, v in enumerate(value)]
    elif isinstance(value, dict):
        parts = [(f"{path}[{k!r}]", v) for k, v in value.items()]
    elif hasattr(type(value), "__dict__") and not isinstance(value, _HELD):
        parts = [(f"{path}.{k}", v) for k, v in ((inspect.getattr_static(value, "__dict__", None) and vars(value)) or {}).items()]
    else:
        parts = []
    if not isinstance(value, tuple) and (isinstance(value, Tensor | list | dict | set) or parts):  # a tuple may be a constant
        yield path, sys.getrefcount(value)
    for name, part in parts:
        yield from _counts(part, name, met)


def same(a: Any, b: Any, path: str = "result", memo: dict[Any, Any] | None = None) -> None:
    """Assert that two observed values are alike: types, values, structure, sharing."""
    memo = {} if memo is None else memo
    if id(a) in memo:
        assert memo[id(a)][1] is b, f"{path}: shared with another value in one run but not in the other"
        return
    assert type(a).__name__ == type(b).__name__, f"{path}: {type(a)} against {type(b)}: {a!r} {b!r}"
    if isinstance(a, Tensor):
        assert a.dtype is b.dtype and tuple(a.shape) == tuple(b.shape), f"{path}: {a.dtype} {a.shape}, {b.dtype} {b.shape}"
        assert a.stride() == b.stride(), f"{path}: strides {a.stride()} against {b.stride()}"
        assert a.requires_grad == b.requires_grad, f"{path}: requires_grad {a.requires_grad} against {b.requires_grad}"
        x, y = a.detach().tolist(), b.detach().tolist()
        assert x == y or _close(x, y), f"{path}: {x} against {y}"
        memo[id(a)] = (a, b)  # held, so that no other object gets its id
        return
    if isinstance(a, np.ndarray | np.generic):
        _same_arrays(a, b, path)
        if isinstance(a, np.ndarray):
            memo[id(a)] = (a, b)  # held, so that no other object gets its id
        return
    if isinstance(a, float):
        assert (a == b and math.copysign(1, a) == math.copysign(1, b)) or (a != a and b != b), f"{path}: {a} against {b}"
        return
    if isinstance(a, tuple | list | collections.deque):
        memo[id(a)] = (a, b)  # held, so that no other object gets its id
        assert len(a) == len(b), f"{path}: {a} against {b}"
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            same(x, y, f"{path}[{i}]", memo)
        return
    if isinstance(a, dict):
        memo[id(a)] = (a, b)  # held, so that no other object gets its id
        assert [str(k) for k in a] == [str(k) for k in b], f"{path}: keys {list(a)} against {list(b)}"
        for (k, x), y in zip(a.items(), b.values(), strict=True):
            same(x, y, f"{path}[{k!r}]", memo)
        return
    if isinstance(a, BaseException):
        same(a.args, b.args, f"{path}.args", memo)
        return
    if callable(a) or isinstance(a, type):
        assert getattr(a, "__qualname__", None) == getattr(b, "__qualname__", None), path
        return
    namespace = getattr(a, "__dict__", None)
    if namespace is not None and not hasattr(type(a), "__eq__"):
        memo[id(a)] = (a, b)  # held, so that no other object gets its id
        same(namespace, b.__dict__, f"{path}.__dict__", memo)
        return
    if namespace:
        memo[id(a)] = (a, b)  # held, so that no other object gets its id
        same(dict(namespace), dict(b.__dict__), f"{path}.__dict__", memo)
        return
    if type(a).__eq__ is not object.__eq__:
        assert a == b, f"{path}: {a!r} against {b!r}"


def _same_arrays(a: Any, b: Any, path: str) -> None:
    """Arrays or scalars of numpy: dtype, shape, flags, memory order, and numbers to a few last bits."""
    assert (a.dtype, a.shape, a.flags.writeable) == (b.dtype, b.shape, b.flags.writeable), f"{path}: {a!r} against {b!r}"
    assert a.size == 0 or all(n == 1 or s == r for s, r, n in zip(a.strides, b.strides, a.shape, strict=True)), f"{path}: strides"
    if a.dtype.kind in "fc":
        last = 16 * float(np.finfo(a.dtype).eps)
        assert np.allclose(a, b, rtol=last, atol=last, equal_nan=True), f"{path}: {a!r} against {b!r}"
    else:
        assert a.tolist() == b.tolist(), f"{path}: {a!r} against {b!r}"


def _close(x: Any, y: Any) -> bool:
    if isinstance(x, list):
        return isinstance(y, list) and len(x) == len(y) and all(_close(a, b) for a, b in zip(x, y, strict=True))
    if isinstance(x, float) and isinstance(y, float):
        return x == y or (x != x and y != y) or math.isclose(x, y, rel_tol=1e-6, abs_tol=1e-6)
    return x == y


def same_call(eager: Seen, captured: Seen, counted: bool = True) -> None:
    if eager.error is not None or captured.error is not None:
        assert type(eager.error) is type(captured.error) or type(eager.error).__name__ == type(captured.error).__name__, (
            f"eager {eager.error!r}, captured {captured.error!r}"
        )
        assert str(eager.error) == str(captured.error)
        assert eager.lines == captured.lines, f"lines of {eager.error!r}: eager {eager.lines}, captured {captured.lines}"
    memo: dict[Any, Any] = {}
    same(eager.args, captured.args, "args", memo)
    same(eager.log, captured.log, "log", memo)
    same(eager.result, captured.result, "result", memo)
    counts = [(name, a, b) for (name, a), (_, b) in zip(eager.counts, captured.counts, strict=True) if a != b]
    assert not counts or not counted, f"references (eager, captured): {counts}"


def _trace(frame: Any, event: str, arg: Any) -> Any:
    return _trace


def check(program: Program, force: str = "none", backend: str = "eager", traced: bool = False) -> Any:
    """Run every input eager and captured, each twice, and compare. traced: the second time under sys.settrace."""
    dynamo.reset()
    eager_fn, captured_fn = program.make(), program.make()
    compiled = dynamo.compile(captured_fn, backend=backend)
    gc.freeze()  # so that `observe` collects the cycles of one call quickly
    with settings.scope(capture_force_break=force, capture_suppress_errors=False):
        for k, make_args in enumerate((*program.inputs, *program.inputs)):
            before = sys.gettrace()
            if traced and k >= len(program.inputs):
                sys.settrace(_trace)
            try:
                seen = observe(eager_fn, make_args), observe(compiled, make_args)
            finally:
                sys.settrace(before)
            same_call(*seen, counted=not program.held)
    gc.unfreeze()
    return compiled


def clone(value: Any) -> Any:
    """A deep copy for before-and-after comparison."""
    return copy.deepcopy(value)
