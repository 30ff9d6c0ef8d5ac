"""Programs that inspect the interpreter: frames, time, randomness, imports, contexts, threads, texts from outside."""
# ruff: noqa: B905, C400, C405, C408, C409, C416, F821, F841, PIE804, RET503, RET504, UP031, SIM105, RUF005, RUF012, B015, UP032 - odd code is the point

from __future__ import annotations

import asyncio
import collections
import contextlib
import contextvars
import functools
import gc
import logging
import math
import operator
import os
import random
import sys
import threading
import time
import types
import warnings
import weakref

import eager as torch
from tests.dynamo.programs.flow import x23
from tests.dynamo.support import Table

PROGRAMS = Table()
VARIABLE: contextvars.ContextVar[int] = contextvars.ContextVar("VARIABLE", default=0)


@PROGRAMS.program(lambda: (x23(),))
def frame_locals(log, x):
    secret = 3
    other = x + secret
    log.append(sorted(locals()))
    return eval("secret + 1"), sorted(vars()), other * 2, "PROGRAMS" in globals(), sorted(dir())


@PROGRAMS.program(lambda: (x23(),))
def frame_of_the_caller(log, x):
    y = x + 1
    frame = sys._getframe()
    return frame.f_code.co_name, y, frame.f_lineno > 0


@PROGRAMS.program(lambda: (x23(),))
def executed_text(log, x):
    namespace = {"x": x}
    exec("y = x * 2", namespace)
    return namespace["y"] + 1


@PROGRAMS.factory(lambda: (x23(),))
def time_and_randomness_move():
    seen = set()

    def f(log, x):
        seen.add((time.perf_counter_ns(), random.random()))
        log.append(len(seen) > 0)
        os.environ["FRAMEJIT_TEST_VARIABLE"] = str(len(seen))
        return x + int(os.environ["FRAMEJIT_TEST_VARIABLE"]), len(seen)

    return f


@PROGRAMS.program(lambda: (x23(),))
def imports_inside(log, x):
    import colorsys
    import os.path as osp
    from math import pi, sqrt

    return x * sqrt(4), colorsys.rgb_to_hsv(0, 0, 0), osp.join("a", "b"), math.floor(pi)


@PROGRAMS.program(lambda: (x23(),))
def context_variables(log, x):
    token = VARIABLE.set(5)
    try:
        y = x * VARIABLE.get()
        inner = contextvars.copy_context().run(lambda: VARIABLE.get() + 1)
    finally:
        VARIABLE.reset(token)
    return y, inner, VARIABLE.get()


@PROGRAMS.program(lambda: (x23(),))
def weak_references(log, x):
    class Thing:
        pass

    t = Thing()
    ref = weakref.ref(t, lambda r: log.append("gone"))
    alive = ref() is t
    del t
    gc.collect()
    return x + 1, alive, ref() is None


@PROGRAMS.program(lambda: (x23(),))
def warnings_given(log, x):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn("careful", stacklevel=1)
        y = x + 1
    return y, [(str(w.message), os.path.basename(w.filename), w.lineno > 0) for w in caught]


@PROGRAMS.program(lambda: (x23(),))
def logging_calls(log, x):
    logger = logging.getLogger("framejit.tests.program")
    y = x + 1
    logger.debug("value %s", y)
    return y * 2


@PROGRAMS.program(lambda: (x23(),))
def threads_inside(log, x):
    def work(k):
        log.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
    for t in threads:
        t.start()
        t.join()
    return x * len(log)


@PROGRAMS.program(lambda: (x23(),))
def async_function(log, x):
    async def work(v):
        await asyncio.sleep(0)
        log.append("awaited")
        return v * 2

    return asyncio.run(work(x + 1))


@PROGRAMS.program(lambda: (x23(),), held=True)
def cached_function(log, x):
    @functools.lru_cache
    def cached(n):
        log.append(n)
        return n * 2

    return x * cached(2) + cached(2), cached.cache_info().hits


@PROGRAMS.program(lambda: (x23(),))
def single_dispatch(log, x):
    @functools.singledispatch
    def show(v):
        return "other"

    @show.register
    def _(v: int):
        return "int"

    return show(3), show("a"), x + 1


@PROGRAMS.program(lambda: (x23(),))
def operator_module(log, x):
    d = {"a": [1, 2]}
    return (
        operator.add(x, 1), operator.itemgetter("a")(d), operator.attrgetter("ndim")(x), operator.methodcaller("sum")(x),
        operator.mul(2, 3), operator.getitem(x, 0), math.sqrt(16.0), math.prod([2, 3]), divmod(7, 3), round(2.5), pow(2, 3),
    )  # fmt: skip


@PROGRAMS.program(lambda: (x23(),))
def formats_of_tensors(log, x):
    s = x.sum()
    return "{}".format(s), "%s" % (s,), f"{s:.2f}", str(x[0, 0]), repr(x)[:6], x * 2


@PROGRAMS.program(lambda: (x23(),))
def identity_of_intermediates(log, x):
    y = x + 1
    z = y
    d = {id(y): "y"}
    return z is y, id(z) in d, hash(y) == hash(z), y + 1


@PROGRAMS.program(lambda: (x23(),))
def numpy_inside(log, x):
    a = (x + 1).numpy()
    return torch.from_numpy(a * 2) + x, float(a.sum())


@PROGRAMS.program(lambda: (x23(),))
def deep_recursion_error(log, x):
    def forever(n):
        return forever(n + 1)

    try:
        forever(0)
    except RecursionError:
        log.append("recursion")
    return x + 1


@PROGRAMS.program(lambda: (x23(),))
def nested_functions_with_defaults(log, x):
    def outer(a, *, b=x.shape[0]):
        def inner(c=a, /, *rest, d: int = 4, **kw):
            return a, b, c, d, rest, sorted(kw)

        return inner

    fn = outer(1)
    return fn(), fn(2, 3, d=5, e=6), fn.__name__, x + 1


@PROGRAMS.program(lambda: (x23(),))
def exit_stack(log, x):
    with contextlib.ExitStack() as stack:
        stack.callback(log.append, "callback")
        n = stack.enter_context(contextlib.nullcontext(3))
        y = x * n
    return y


def _many_locals() -> types.FunctionType:
    lines = ["def many_locals(log, x):", *(f"    v{i} = x + {i}" for i in range(300))]
    lines.append("    print(end='')")
    lines.append("    return " + " + ".join(f"v{i}" for i in range(300)))
    namespace: dict = {}
    exec("\n".join(lines), namespace)
    return namespace["many_locals"]


PROGRAMS.program(lambda: (x23(),))(_many_locals())

if sys.version_info >= (3, 12):
    _space: dict = {}
    exec("def generic[T](log, x: T) -> T:\n    def inner[U](v: U) -> U:\n        return v * 2\n    return inner(x)\n", _space)
    PROGRAMS.program(lambda: (x23(),))(_space["generic"])


class Short:
    pass


@PROGRAMS.program(lambda: (x23(),))
def a_weak_proxy_outlives_its_object(log, x):
    short = Short()
    proxy = weakref.proxy(short)
    del short
    print(end="")
    try:
        proxy.anything  # noqa: B018
    except ReferenceError:
        log.append("gone")
    return x + 1


@PROGRAMS.program(lambda: (x23(), Short()))
def referents_of_weak_references_live_as_long_as_their_variable(log, x, given):
    short, parts = Short(), [Short()]
    ref, part = weakref.ref(short), weakref.ref(parts[0])
    print(end="")
    watched, second = weakref.ref(given), weakref.ref(short, lambda r: log.append("gone"))
    log.append(weakref.getweakrefcount(short))
    gc.collect()

    def local():
        return 1

    of_local = weakref.ref(local)
    print(end="")
    return x + 1, ref() is not None, part() is not None, of_local() is not None, watched() is given


def _held_by_keys():
    def made():
        cycles = [Short() for _ in range(3)]
        for cycle in cycles:
            cycle.itself = cycle
        return cycles

    items = made()
    keys = weakref.WeakKeyDictionary((item, 1) for item in items)
    before = len(keys)
    del items
    gc.collect()
    return before, len(keys)


@PROGRAMS.program(lambda: (x23(),))
def objects_of_an_inlined_function_die_with_its_variables(log, x):
    log.append(_held_by_keys())
    return x + 1


class Telling(Exception):
    def __init__(self, what):
        self.what = what


@PROGRAMS.program(lambda: (x23(),))
def a_handled_exception_dies_with_its_block(log, x):
    short = Short()
    ref = weakref.ref(short)
    try:
        raise Telling(short)
    except Telling:
        log.append("caught")
    short = None
    log.append(ref() is None)
    short = Short()
    ref = weakref.ref(short)
    try:
        (lambda: (print(end=""), [][short]))()
    except TypeError:
        pass
    short = None
    gc.collect()
    return x + 1, ref() is None


@PROGRAMS.program(lambda: (x23(),), held=True)
def a_class_of_a_function_lives_as_long_as_its_variable(log, x):
    class Above:
        pass

    class Below(Above):
        pass

    gc.collect()
    log.append([c.__name__ for c in Above.__subclasses__()])
    return x + 1


_elsewhere: dict = {"__name__": "tests.elsewhere", "collections": collections}
exec("def made(names):\n    return collections.namedtuple('Made', names).__module__\n", _elsewhere)


@PROGRAMS.program(lambda: (x23(),))
def a_callee_reads_the_module_of_its_caller(log, x):
    return x + 1, _elsewhere["made"]("a b"), collections.namedtuple("Here", "a").__module__ == __name__
