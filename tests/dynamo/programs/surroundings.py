"""Programs outside the other families: names that change between calls, modes, frames, caches, exception groups.

Each program is small and about one thing. A program with state is made again for each run.
"""
# ruff: noqa: B905, C416, F632, F841, PIE804, RET503, RET504, SIM105, SIM117, UP031, UP032, PERF203 - odd code is the point

from __future__ import annotations

import collections
import contextlib
import contextvars
import copy
import enum
import functools
import gc
import io
import itertools
import json
import math
import operator
import os
import re
import sys
import time
import types
import warnings
from fractions import Fraction
from pathlib import PurePosixPath
from typing import Any, Protocol, runtime_checkable

import dynamo
import eager as torch
from tests.dynamo.programs.flow import x23
from tests.dynamo.support import Table

PROGRAMS = Table()


def x() -> tuple[torch.Tensor]:
    return (torch.arange(3.0),)


def x_and(n: int) -> Any:
    return lambda: (torch.arange(3.0) + n, n)


@PROGRAMS.factory(x, x, x)
def globals_rebound_and_builtins_shadowed():
    namespace: dict[str, Any] = {"torch": torch, "K": 1}
    exec(
        "def f(log, x):\n"
        "    log.append((K, len([1, 2])))\n"
        "    y = x + K + len([1])\n"
        "    return y\n", namespace)  # fmt: skip
    steps = iter([lambda: namespace.update(K=5), lambda: namespace.update(len=lambda v: 40), lambda: namespace.pop("len"),
                  lambda: None, lambda: None, lambda: None])  # fmt: skip

    def f(log, x):
        result = inner(log, x)
        next(steps)()
        return result

    inner = namespace["f"]
    return f


@PROGRAMS.factory(x, x, x)
def defaults_and_code_change_between_calls():
    def callee(x, k=1, *, m=2):
        return x * k + m

    def other(x, k=1, *, m=2):
        return x - k - m

    steps = itertools.count()

    def f(log, x):
        y = callee(x)
        at = next(steps)
        if at == 0:
            callee.__defaults__ = (7,)
        elif at == 1:
            callee.__kwdefaults__ = {"m": 30}
        elif at == 2:
            callee.__code__ = other.__code__
        return y

    return f


@PROGRAMS.program(x)
def a_call_with_a_duplicate_key(log, x):
    def callee(*args, **named):
        return len(args), sorted(named)

    found = [callee(*(1, 2), *[3], **{"a": 1}, **{"b": 2})]
    try:
        callee(**{"a": 1}, **{"a": 2})
    except TypeError as e:
        found.append("multiple values" in str(e))
    (a, *b), (c, (d, *e)) = [1, 2, 3], (4, (5, 6, 7))
    return found, a, b, c, d, e, x + a


@PROGRAMS.program(x_and(2), x_and(3))
def names_in_comprehensions(log, x, n):
    i = n
    rows = [[(i, j) for j in range(i)] for i in range(n)]
    adders = [lambda v: v + i for i in range(3)]
    kept = [lambda v, i=i: v + i for i in range(3)]
    return i, rows, [a(x) for a in adders], [k(x) for k in kept], {k: v for k, v in zip("ab", range(n))}, {w := n, w + 1}


@PROGRAMS.program(x)
def generators_sent_to_thrown_at_and_closed(log, x):
    def worker():
        got = []
        try:
            while True:
                try:
                    got.append((yield len(got)))
                except KeyError as e:
                    log.append(("threw", e.args))
        finally:
            log.append(("closed", got))

    def outer():
        result = yield from inner()
        yield result

    def inner():
        yield x
        return x + 1

    g = worker()
    seen = [next(g), g.send("a"), g.throw(KeyError(3)), g.send("b")]
    dynamo.graph_break()
    g.close()
    return seen, list(outer())


@PROGRAMS.program(x_and(0), x_and(1), x_and(2))
def exception_groups(log, x, n):
    errors = [ValueError(1), KeyError(2), ExceptionGroup("inner", [TypeError(3), ValueError(4)])]
    y = x + 1
    try:
        try:
            if n < 2:
                raise ExceptionGroup("outer", errors[: n + 2])
        except* ValueError as group:
            log.append(("values", [str(e) for e in group.exceptions]))
        except* KeyError as group:
            log.append(("keys", len(group.exceptions)))
        else:
            log.append("else")
        finally:
            log.append("finally")
    except ExceptionGroup as rest:
        log.append(("rest", rest.message))
    return y * 2


@PROGRAMS.program(x)
def notes_and_chains(log, x):
    try:
        try:
            x[0] = 5
            raise KeyError("a")
        except KeyError as e:
            e.add_note("while testing")
            raise ValueError("b") from e
    except ValueError as e:
        log.append((e.__cause__.__notes__, e.__suppress_context__, e.__context__ is e.__cause__))
    try:
        assert x.sum() < 0, f"got {x.tolist()}"
    except AssertionError as e:
        log.append(str(e))
    return x


@PROGRAMS.factory(x, x)
def cached_functions_count_their_hits():
    @functools.lru_cache(maxsize=2)
    def cached(n):
        return [n]

    def f(log, x):
        cached(1).append(2)
        a = cached(1), cached(3)
        return x + len(a[0]), a, cached.cache_info()

    return f


@PROGRAMS.program(x)
def wrapped_functions(log, x):
    def decorate(fn):
        @functools.wraps(fn)
        def wrapper(*args: int):
            return fn(*args) + 1

        return wrapper

    @decorate
    @decorate
    def double(v: torch.Tensor) -> torch.Tensor:
        "twice"
        return v * 2

    return double(x), double.__name__, double.__doc__, double.__wrapped__.__wrapped__(x), sorted(double.__annotations__)


VARIABLE: contextvars.ContextVar[int] = contextvars.ContextVar("VARIABLE", default=1)


@PROGRAMS.program(x)
def context_variables(log, x):
    token = VARIABLE.set(5)
    inside = contextvars.copy_context().run(lambda: VARIABLE.get() + 1)
    y = x * VARIABLE.get()
    VARIABLE.reset(token)
    return y, inside, VARIABLE.get()


@PROGRAMS.program(x)
def frames_of_callers(log, x):
    def where(depth):
        frame = sys._getframe(depth)
        return frame.f_code.co_name, frame.f_lineno, frame.f_globals["__name__"] == __name__

    def outer(x):
        y = x + 1
        return where(0), where(1), sys._getframe(0).f_code.co_name, y

    return outer(x), where(1), sorted(locals()), sorted(vars())


@PROGRAMS.factory(x, x)
def one_code_in_two_namespaces():
    def make(k):
        exec("def g(x):\n    return x + K", namespace := {"K": k})
        return namespace["g"]

    first = make(1)
    second = types.FunctionType(first.__code__, {"K": 20}, "g")

    def f(log, x):
        return first(x), second(x)

    return f


@runtime_checkable
class Sized(Protocol):
    def size(self) -> int: ...


class HasSize:
    def size(self) -> int:
        return 3


class Key:
    def __init__(self, n: int) -> None:
        self.n = n

    def __hash__(self) -> int:
        return self.n % 2

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and self.n == other.n


@PROGRAMS.program(x)
def protocols_and_own_keys(log, x):
    table = {Key(1): "a", Key(3): "b"}
    table[Key(1)] = "c"
    sets = {1, 2, 3} & {2, 3, 9}, {1} | {2}, {1, 2} ^ {2, 3}, {1} <= {1, 2}, frozenset("ab") - {"a"}
    return isinstance(HasSize(), Sized), isinstance(x, Sized), list(table.values()), Key(3) in table, sets, x


@PROGRAMS.program(x_and(3))
def effects_of_iterables_are_counted(log, x, n):
    def noisy(k):
        for i in range(k):
            log.append(i)
            yield i

    a = any(i > 0 for i in noisy(n)), all(i < 1 for i in noisy(n)), sum(noisy(n)), max(noisy(n), key=lambda v: -v)
    it = noisy(5)
    try:
        list(zip(it, [1], strict=True))
    except ValueError as e:
        log.append(str(e))
    groups = [(k, list(g)) for k, g in itertools.groupby([1, 1, 2], key=lambda v: v)]
    left, right = itertools.tee(noisy(2))
    return a, next(it), groups, list(left), list(right), list(itertools.islice(itertools.cycle("ab"), 5)), x


@PROGRAMS.factory(x, x)
def nested_compilation_and_disabled_callees():
    inner = dynamo.compile(lambda x: x * 3, backend="eager")

    @dynamo.disable
    def plain(x):
        return x - 1

    def f(log, x):
        y = inner(x) + plain(x)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warnings.warn("look", stacklevel=1)
        return y, [str(w.message) for w in caught], gc.isenabled()

    return f


@PROGRAMS.program(x)
def texts_and_numbers(log, x):
    width, value = 8, 3.14159
    big = 2**80 + 1
    nan = float("nan")
    return (f"{value:>{width}.{2}f}|{value!r:^10}|{'a':*<3}", "%05.1f %s" % (value, None), "{0:x} {k}".format(255, k=big),
            big % 1000, True == 1, True is 1 if False else None, -0.0, nan is nan, nan == nan, [nan].count(nan), x)  # fmt: skip


@PROGRAMS.program(x, x)
def errors_of_the_library_have_their_attributes(log, x):
    for pattern in ("(a", "[b", "c(?P<d"):
        try:
            re.compile(pattern)
        except re.error as error:
            log.append((error.args, error.msg, error.pattern, error.pos, error.lineno, error.colno, str(error)))
    try:
        json.loads("[1, ")
    except ValueError as error:
        log.append((type(error).__name__, error.msg, error.doc, error.pos))
        raise


@PROGRAMS.program(x, x)
def calls_that_warn_or_print_repeat_at_each_call(log, x):
    re.purge()
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(io.StringIO()) as printed:
        warnings.simplefilter("always")
        found = re.sub("[[a]", "b", "cab"), ~bool(log), re.compile("ab", re.DEBUG).pattern
    return x + 1, found, [(os.path.basename(w.filename), w.lineno, str(w.message)) for w in caught], printed.getvalue()


class _Odd(int):
    """An int whose methods, when C code calls them, return other values than the int."""

    def __mul__(self, other):
        return _Odd(int(other) + 100)

    __rmul__ = __pow__ = __rpow__ = __floordiv__ = __mod__ = __divmod__ = __mul__

    def __floor__(self):
        return 7

    def __float__(self):
        return 8.0

    def __repr__(self):
        return "odd"

    __ceil__ = __trunc__ = __round__ = __floor__

    @property
    def numerator(self):
        return _Odd(9)


class _Loud(str):
    def __add__(self, other):
        return "added"

    __radd__ = __mod__ = __add__

    def __str__(self):
        return "LOUD"

    def __format__(self, spec):
        return "formatted"

    def __getitem__(self, at):
        return "item"


class _Plain(str):
    pass


class _Level(enum.IntEnum):
    HIGH = 3


@PROGRAMS.program(lambda: (*x(), _Odd(3), _Loud("ab")), lambda: (*x(), _Odd(2), _Loud("c")))
def number_and_text_subclasses(log, x, odd, loud):
    log.append((math.floor(odd), math.sqrt(odd), math.pow(odd, 2), round(odd), pow(2, odd), divmod(odd, 2), [1] * odd, ascii(odd)))
    log.append(("%s" % odd, "%5s" % loud, f"{loud:>5}", "{}".format(loud), loud + "x", "x" + loud, os.path.join("a", loud)))
    log.append((Fraction(odd, 2).numerator, PurePosixPath(loud).name, ascii(_Level.HIGH), complex(odd), loud[0], [1, 2, 3, 4][odd]))
    return x * 2


class _Degree(int, enum.Enum):
    LOW = 2


@PROGRAMS.program(*(lambda v=v: (*x(), v) for v in (2, 2.0, 2 + 0j, True, None, "a")))
def equality_of_number_subclasses(log, x, value):
    for kind in (_Degree.LOW, _Level.HIGH, _Plain("a")):
        for compare in (operator.eq, operator.ne, operator.lt):
            for a, b in ((value, kind), (kind, value)):
                try:
                    log.append(compare(a, b))
                except TypeError as error:
                    log.append(str(error))
    match value:
        case _Degree.LOW:
            return x + 2
    return x


class _Floats:
    def __init__(self, gives):
        self.gives = gives

    def __float__(self):
        return self.gives


class _Float(float):
    pass


@PROGRAMS.program(x)
def conversions_that_warn_and_hashes_of_nan(log, x):
    nan = float("nan")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        log.append((float(_Floats(2.5)), float(_Floats(_Float(1.5)))))
    log.append((len(caught), hash(nan) == object.__hash__(nan), hash((1, nan)) == hash((1, nan)), hash((1, 2.5)) == hash((1, 2.5))))
    return x


_MOMENT = time.struct_time(range(9))


@PROGRAMS.program(lambda: (*x(), time.struct_time(range(9))))
def sequences_of_structures(log, x, moment):
    log.append((moment.tm_hour, moment[3], len(moment), moment == _MOMENT, tuple(range(9)) == _MOMENT, copy.copy(moment).tm_min))
    return x + moment.tm_sec


@PROGRAMS.program(x)
def counters_that_hold_zeros(log, x):
    held = [collections.Counter(c) for c in ({}, {"a": 1}, {"a": 1, "b": 0}, {"b": 0}, {"a": float("nan")})]
    log.append([(a == b, a != b, [a] == [b], dict(a) == b) for a in held for b in held])
    return x


@PROGRAMS.program(lambda: (*x(), _Plain("ab")))
def methods_that_return_the_same_text_keep_its_class(log, x, text):
    kinds = [os.path.join(text), os.path.splitext(text)[0], re.match("a", text).string, re.compile(text).pattern, text.upper()]
    log.append([type(kind).__name__ for kind in kinds])
    try:
        sys.intern(text)
    except TypeError as error:
        log.append(str(error))
    return x + len(text)


@PROGRAMS.program(x)
def an_interrupt_keeps_earlier_effects(log, x):
    state = {"n": 0}
    try:
        for i in range(3):
            state["n"] += 1
            x.add_(1)
            if i == 1:
                raise KeyboardInterrupt
    except KeyboardInterrupt:
        log.append("stopped")
    return state, x


if sys.version_info >= (3, 12):
    _GENERIC: dict[str, Any] = {}
    exec("def first[T](values: list[T]) -> T:\n    return values[0]\nclass Box[T]:\n    def __init__(self, v: T):\n        self.v = v\n",
         _GENERIC)  # fmt: skip

    @PROGRAMS.program(x)
    def generic_functions_and_classes(log, x):
        return _GENERIC["first"]([x, 1]), _GENERIC["Box"](x).v + 1


class ReplacesModule:
    def __init__(self, log):
        self.log = log

    def __getattribute__(self, name):
        if name == "something":
            object.__getattribute__(self, "log").append(name)
            return 3
        return object.__getattribute__(self, name)


@PROGRAMS.program(lambda: (x23(),))
def an_object_replaces_a_module(log, x):
    sys.modules["replacement_module"] = ReplacesModule(log)
    try:
        from replacement_module import something
    finally:
        del sys.modules["replacement_module"]
    return something, x + 1
