"""Closures, signatures, globals, recursion."""
# ruff: noqa: B905, C400, C405, C408, C409, C416, F821, F841, PIE804, RET503, RET504, UP031, SIM105 - odd code is the point

from __future__ import annotations

import functools
import types

import eager as torch
from tests.dynamo.programs.flow import x23
from tests.dynamo.support import Table

PROGRAMS = Table()
SCALE = 3
COUNTER = 0


@PROGRAMS.factory(lambda: (x23(),), lambda: (x23() + 1,))
def outer_variable_reassigned():
    def f(log, x):
        k = 1

        def inner():
            return x * k

        a = inner()
        k = 5
        return a, inner()

    return f


@PROGRAMS.factory(lambda: (x23(),))
def nonlocal_counter():
    count = 0

    def f(log, x):
        nonlocal count
        count += 1
        log.append(count % 2)
        return x + 1

    return f


@PROGRAMS.factory(lambda: (x23(),))
def two_closures_share_a_cell():
    def f(log, x):
        value = x

        def put(v):
            nonlocal value
            value = v

        def get():
            return value

        put(get() * 2)
        put(get() + 1)
        return get()

    return f


@PROGRAMS.program(lambda: (x23(),))
def returned_closure(log, x):
    y = x + 1

    def inner(z=2, *, w=3):
        return y * z + w

    log.append(inner())
    return inner, inner(3), inner(w=1)


@PROGRAMS.program(lambda: (x23(), 2))
def argument_is_a_cell(log, x, n):
    def inner():
        nonlocal n
        n += 1
        return n

    return x * inner() + inner(), n


@PROGRAMS.program(lambda: (x23(),))
def global_read(log, x):
    return x * SCALE


@PROGRAMS.program(lambda: (x23(),))
def mutable_default(log, x, seen=None, *, items=(1, 2)):
    return x * items[1], seen


@PROGRAMS.program(lambda: (x23(), 1, 2, 3), lambda: (x23(),), lambda: (x23(), 4))
def star_args(log, x, *args):
    total = x
    for a in args:
        total = total + a
    return total, args, len(args)


@PROGRAMS.factory(lambda: (x23(),))
def keyword_forms():
    def callee(a, /, b, *rest, c=1, **more):
        return a, b, rest, c, more

    def f(log, x):
        first = callee(x, 2, 3, 4, c=5, d=6)
        second = callee(x, b=1)
        third = callee(*(x, 2), *[3], c=4, z=1)
        return first, second, third

    return f


@PROGRAMS.factory(lambda: (x23(),))
def wrong_arity_caught():
    def callee(a, b):
        return a

    def f(log, x):
        for args, kwargs in (((x,), {}), ((x, 1, 2), {}), ((x, 1), {"b": 2}), ((x,), {"c": 1})):
            try:
                callee(*args, **kwargs)
            except TypeError as error:
                log.append(str(error))
        try:
            callee(x, **{"b": 1}, **{"b": 2})
        except TypeError as error:
            log.append(str(error))
        return x

    return f


@PROGRAMS.factory(lambda: (x23(), 4))
def recursion():
    def power(x, n):
        return x if n == 0 else power(x * 2, n - 1) + 1

    def f(log, x, n):
        return power(x, n)

    return f


@PROGRAMS.factory(lambda: (x23(), 5))
def mutual_recursion():
    def even(n, log):
        log.append(n)
        return True if n == 0 else odd(n - 1, log)

    def odd(n, log):
        return False if n == 0 else even(n - 1, log)

    def f(log, x, n):
        return x * 2 if even(n, log) else x

    return f


@PROGRAMS.program(lambda: (x23(),))
def partials(log, x):
    def add(a, b, c=0):
        return a + b * c

    p = functools.partial(add, x)
    q = functools.partial(p, c=2)
    return p(1), q(3), q(b=1), functools.reduce(lambda a, b: a + b, [x, x, 1])


def _arguments(*args, **kwargs):
    return args, sorted(kwargs)


@PROGRAMS.program(lambda: (x23(), functools.partial(_arguments, 1, r=2)))
def partials_of_partials(log, x, given):
    made = functools.partial(_arguments, 1)
    log.append((functools.partial(made, bar=2).func is _arguments, functools.partial(made, 2).args))
    made.note = 3
    log.append((functools.partial(made, bar=2).func is made, functools.partial(given, 7, j=1).func is _arguments))
    outer = functools.partial(given, 7, j=1)
    given.keywords["later"] = 5
    log.append((outer(), outer.args, sorted(outer.keywords), given(), functools.partial(functools.partial(given, 8), 9)()))
    given.__dict__  # noqa: B018 - the read creates it
    return functools.partial(given, 8).func is given, x + 1


@PROGRAMS.program(lambda: (x23(),), held=True)
def attributes_of_new_functions(log, x):
    def fn():
        pass

    namespace = fn.__dict__
    fn.a = 1
    log.append((dict(namespace), namespace is fn.__dict__, fn.__dict__.pop("a"), hasattr(fn, "a"), fn.__closure__))
    fn.__dict__.update({"not a name": 2, "b": 3})
    namespace["__annotations__"] = namespace["__name__"] = namespace["__code__"] = 4
    log.append((list(namespace), fn.b, fn.__annotations__, fn.__name__, type(fn.__code__).__name__))
    namespace.clear()
    fn.__name__ = "other"
    return list(fn.__dict__), x + 1


@PROGRAMS.program(lambda: (x23(),))
def a_wrapper_of_type(log, x):
    def wrapper(*args):
        pass

    functools.update_wrapper(wrapper, type)
    return wrapper.__name__, wrapper.__annotations__, getattr(wrapper, "__type_params__", ()), x + 1


@PROGRAMS.factory(lambda: (x23(),))
def decorated():
    def twice(fn):
        @functools.wraps(fn)
        def wrapper(*args, **kwargs):
            return fn(*args, **kwargs) * 2

        return wrapper

    @twice
    def inner(v):
        return v + 1

    def f(log, x):
        return inner(x), inner.__name__

    return f


@PROGRAMS.factory(lambda: (x23(),))
def break_in_a_nested_call():
    def leaf(x, log):
        y = x + 1
        print(end="")
        log.append("leaf")
        return y * 2

    def middle(x, log):
        a = leaf(x, log)
        log.append("middle")
        return a + leaf(a, log)

    def f(log, x):
        y = middle(x * 3, log)
        log.append("outer")
        return y - 1

    return f


@PROGRAMS.program(lambda: (x23(),))
def lambdas(log, x):
    fs = {"a": lambda v: v + 1, "b": lambda v, k=2: v * k}
    return [fs[k](x) for k in fs], (lambda *a: a)(x, 1), sorted([3, 1, 2], key=lambda v: -v)


@PROGRAMS.program(lambda: (x23(),))
def globals_written(log, x):
    global COUNTER
    COUNTER = 10

    def reads():
        return COUNTER + 1

    COUNTER += 1
    r = reads()
    print(end="")
    COUNTER += 1
    return x * r, COUNTER


@PROGRAMS.program(lambda: (x23(),))
def builtins_on_values(log, x):
    return (
        max(3, 1), min([4, 2], key=lambda v: -v), sum([1, 2, 3]), any([0, 1]), all([]), list(zip([1, 2], "ab")),
        list(map(lambda a, b: a + b, [1, 2], [3, 4])), list(filter(None, [0, 1, 2])), list(enumerate("ab", 1)),
        isinstance(x, torch.Tensor), callable(len), x.ndim, hasattr(x, "nope"), abs(-3), len([1]), x.sum(),
        sum([x, x]), list(reversed([1, 2])), dict(a=1), tuple([1]), set([1]), bool([]), int("3"), str(4), int is int,
    )  # fmt: skip


@PROGRAMS.program(lambda: (x23(),))
def cells_compare_by_contents(log, x):
    n, cell = float("nan"), types.CellType
    one, other = (lambda: x.shape[0]).__closure__[0], (lambda: x.shape[1]).__closure__[0]
    log.append((cell(1) == cell(1.0), cell(1) != cell(2), cell() == cell(), cell() < cell(0), cell(3) > cell(), one is other))
    held = cell(n)
    log.append((held == held, [held] == [held], cell([n]) == cell([n]), cell(2) < cell(3), cell(1) in [cell(1)], cell(1) == 1))
    try:
        {cell(1)}
    except TypeError as error:
        log.append(str(error))
    return x + 1
