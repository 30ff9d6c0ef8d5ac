"""try, with, generators."""
# ruff: noqa: B905, C400, C405, C408, C409, C416, F821, F841, PIE804, RET503, RET504, UP031, SIM105 - odd code is the point

from __future__ import annotations

import contextlib

import eager as torch
from tests.dynamo.programs.flow import x23
from tests.dynamo.support import Table

PROGRAMS = Table()


class Manager:
    def __init__(self, log, name, suppress=False, fail=False):
        self.log, self.name, self.suppress, self.fail = log, name, suppress, fail

    def __enter__(self):
        self.log.append(("enter", self.name))
        if self.fail:
            raise RuntimeError("enter failed")
        return self

    def __exit__(self, cls, value, tb):
        self.log.append(("exit", self.name, cls and cls.__name__))
        return self.suppress


@PROGRAMS.program(lambda: (x23(), 0), lambda: (x23(), 1), lambda: (x23(), 2))
def try_paths(log, x, n):
    try:
        log.append("try")
        if n == 0:
            raise ValueError("v")
        if n == 1:
            1 // 0
    except ValueError as e:
        log.append(("value", str(e)))
        r = x + 1
    except ZeroDivisionError as e:
        log.append(("zero", str(e)))
        r = x + 2
    else:
        log.append("else")
        r = x + 3
    finally:
        log.append("finally")
    return r


@PROGRAMS.program(lambda: (x23(), 1), lambda: (x23(), 2))
def flow_in_finally(log, x, n):
    for i in range(3):
        try:
            if i == n:
                break
            continue
        finally:
            log.append(i)
    try:
        return x
    finally:
        log.append("end")


@PROGRAMS.program(lambda: (x23(),))
def reraised(log, x):
    try:
        try:
            raise KeyError("k")
        except KeyError:
            log.append("inner")
            raise
    except KeyError as e:
        log.append(e.args)
    try:
        try:
            raise KeyError(1)
        except KeyError as k:
            raise ValueError("v") from k
    except ValueError as v:
        log.append((type(v.__cause__).__name__, type(v.__context__).__name__, v.__suppress_context__))
    return x


@PROGRAMS.program(lambda: (x23(),))
def name_deleted(log, x):
    e = 1
    try:
        raise ValueError
    except ValueError:
        pass
    try:
        return e
    except UnboundLocalError as error:
        return x, str(error)


@PROGRAMS.program(lambda: (x23(),), lambda: (x23()[0],))
def shape_error_caught(log, x):
    try:
        y = x @ x
    except RuntimeError as error:
        log.append(str(error))
        y = x + 1
    return y


@PROGRAMS.program(lambda: (x23(),))
def shape_error(log, x):
    log.append("before")
    return x + torch.ones(5)


@PROGRAMS.program(lambda: (x23(), 3), lambda: (x23(), 0))
def raised_through(log, x, n):
    def deep(k):
        if k == 0:
            raise LookupError("bottom")
        log.append(k)
        deep(k - 1)

    try:
        deep(n)
    except LookupError as e:
        return x, str(e)


@PROGRAMS.program(lambda: (x23(), [1]))
def effects_before_an_escaping_error(log, x, items):
    items.append(2)
    log.append("a")
    y = x + 1
    raise ValueError(f"out {len(items)}")


@PROGRAMS.program(lambda: (x23(),))
def error_across_a_break(log, x):
    def bad():
        print(end="")
        raise OSError("bad")

    y = x + 1
    try:
        bad()
    except OSError as e:
        log.append(str(e))
        y = y * 2
    finally:
        log.append("finally")
    return y


@PROGRAMS.program(lambda: (x23(),))
def break_in_handler(log, x):
    try:
        raise ValueError("v")
    except ValueError as e:
        print(end="")
        log.append(str(e))
        y = x + 1
    print(end="")
    return y * 2


@PROGRAMS.program(lambda: (x23(),))
def break_in_try(log, x):
    try:
        y = x + 1
        print(end="")
        y = y * 2
        raise KeyError("after")
    except KeyError as e:
        log.append(e.args)
        return y


class Custom(Exception):
    def __init__(self, a, b):
        super().__init__(f"{a}/{b}")
        self.a = a


@PROGRAMS.program(lambda: (x23(),))
def custom_exception(log, x):
    try:
        raise Custom(1, 2)
    except Custom as e:
        log.append((e.a, str(e), e.args))
        kept = e
    return x, kept


@PROGRAMS.program(lambda: (x23(),))
def with_user_manager(log, x):
    with Manager(log, "A") as a, Manager(log, "B"):
        y = x + 1
        log.append(a.name)
    with Manager(log, "C", suppress=True):
        raise ValueError("gone")
    return y


@PROGRAMS.program(lambda: (x23(),))
def second_enter_raises(log, x):
    try:
        with Manager(log, "A"), Manager(log, "B", fail=True):
            log.append("body")
    except RuntimeError as e:
        log.append(str(e))
    return x


@PROGRAMS.program(lambda: (x23(),))
def break_inside_with(log, x):
    with Manager(log, "A") as m:
        y = x + 1
        print(end="")
        log.append(m.name)
        y = y * 2
    return y


@PROGRAMS.program(lambda: (x23(),))
def return_inside_with_inside_loop(log, x):
    for i in range(3):
        with Manager(log, i):
            if i == 1:
                return x * i


@PROGRAMS.factory(lambda: (x23(),))
def context_manager_generator():
    @contextlib.contextmanager
    def manager(log, k):
        log.append(("in", k))
        try:
            yield k * 2
        finally:
            log.append(("out", k))

    def f(log, x):
        with manager(log, 1) as v:
            y = x * v
        with manager(log, 2) as v:
            y = y * v
            print(end="")
            log.append("body")
        try:
            with manager(log, 3):
                raise KeyError(3)
        except KeyError:
            log.append("caught")
        return y

    return f


@PROGRAMS.program(lambda: (x23(),))
def suppress_and_nullcontext(log, x):
    with contextlib.suppress(KeyError):
        {}["a"]
    with contextlib.nullcontext(5) as n:
        return x + n


@PROGRAMS.program(lambda: (x23().requires_grad_(),))
def grad_modes(log, x):
    with torch.no_grad():
        y = x * 2
        inner = torch.is_grad_enabled()
        print(end="")
        with torch.enable_grad():
            z = x * 3
    w = x * 4
    return y, z, w, inner, torch.is_grad_enabled()


@PROGRAMS.program(lambda: (x23().requires_grad_(),))
def no_grad_no_break(log, x):
    with torch.no_grad():
        y = x * 2
    return y, x * 2, y.requires_grad


@PROGRAMS.program(lambda: (x23(), 3))
def generators(log, x, n):
    def gen(k):
        try:
            for i in range(k):
                got = yield x * i
                log.append(got)
        finally:
            log.append("closed")
        return "value"

    def delegating(k):
        r = yield from gen(k)
        log.append(r)
        yield r

    g = gen(n)
    a = next(g)
    b = g.send("sent")
    g.close()
    return a, b, list(delegating(2)), sum(v for v in range(n))


@PROGRAMS.program(lambda: (x23(),))
def generator_across_a_break(log, x):
    def gen():
        for i in range(4):
            log.append(i)
            yield x + i

    g = gen()
    a = next(g)
    print(end="")
    return a, list(g)


@PROGRAMS.program(lambda: (x23(),))
def generator_returned(log, x):
    y = x + 1
    return list(v * 2 for v in [x, y])


@PROGRAMS.program(lambda: (x23(), iter([1, 2, 3])))
def started_iterator_passed_in(log, x, it):
    total = x
    for v in it:
        total = total + v
        log.append(v)
    return total


@PROGRAMS.program(lambda: (x23(),))
def exception_group(log, x):
    try:
        raise ExceptionGroup("g", [ValueError(1), KeyError(2)])
    except* ValueError as eg:
        log.append([type(e).__name__ for e in eg.exceptions])
    except* KeyError as eg:
        log.append([type(e).__name__ for e in eg.exceptions])
    return x + 1


@PROGRAMS.program(lambda: (x23(),))
def stop_iteration(log, x):
    def gen():
        yield 1
        raise StopIteration("inner")

    try:
        list(gen())
    except RuntimeError as e:
        log.append(str(e))
    try:
        next(iter([]))
    except StopIteration as e:
        log.append(e.value)
    return x
