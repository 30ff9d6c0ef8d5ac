"""Globals, closures, defaults, code, modules of Python."""

from __future__ import annotations

import contextlib
import functools
import sys
import types
from typing import Any

import eager as torch
from eager import nn
from tests.dynamo.guards.states.table import State, namespace, setter, state


# --- names ---
@state
def global_number() -> State:
    g = namespace("K = 2\ndef f(x): return x * K")
    return State(
        g["f"],
        (lambda: g.update(K=3), lambda: g.update(K=2.5), lambda: g.update(K=True), lambda: g.update(K=torch.ones(2))),
    )


@state
def global_function_rebound() -> State:
    g = namespace("def h(x): return x + 1\ndef f(x): return h(x) * 2")
    old = g["h"]
    return State(g["f"], (lambda: g.update(h=lambda x: x - 1), lambda: g.update(h=torch.relu), lambda: g.update(h=old)))


@state
def builtin_shadowed_and_freed() -> State:
    g = namespace("def f(x): return x * max(2, 5)")
    return State(g["f"], (lambda: g.update(max=min), lambda: g.pop("max", None)))


@state
def builtin_replaced() -> State:
    import builtins

    g = namespace("def f(x): return x * abs(-3)")
    old = abs
    return State(
        g["f"], (setter(builtins, "abs", lambda v: 7), setter(builtins, "abs", old)), setter(builtins, "abs", old)
    )


@state
def global_deleted_and_made_again() -> State:
    g = namespace("K = 4\ndef f(x):\n    try:\n        return x * K\n    except NameError:\n        return x")
    return State(g["f"], (lambda: g.pop("K", None), lambda: g.update(K=5)))


@state
def globals_of_a_callee() -> State:
    lower = namespace("K = 2\ndef h(x): return x * K")
    g = namespace("def f(x): return h(x) + 1", h=lower["h"])
    return State(g["f"], (lambda: lower.update(K=9), lambda: lower.update(K=-1)))


@state
def closure_variable() -> State:
    k = 2

    def put(v: Any) -> None:
        nonlocal k
        k = v

    return State(lambda x: x * k, (lambda: put(3), lambda: put(0.5), lambda: put(torch.ones(2) * 4)))


@state
def closure_of_a_callee() -> State:
    box = [1]

    def make() -> tuple[Any, Any]:
        n = 1

        def bump() -> None:
            nonlocal n
            n += 1

        return (lambda x: x * n), bump

    read, bump = make()
    return State(lambda x: read(x) + box[0], (bump, lambda: box.__setitem__(0, box[0] + 1)))


@state
def closure_emptied() -> State:
    k = 3

    def read(x: Any) -> Any:
        try:
            return x * k
        except NameError:
            return x

    def drop() -> None:
        nonlocal k
        with contextlib.suppress(NameError):
            del k

    def put() -> None:
        nonlocal k
        k = 6

    return State(read, (drop, put))


@state
def positional_defaults() -> State:
    def h(x: Any, k: int = 2) -> Any:
        return x * k

    return State(lambda x: h(x), (setter(h, "__defaults__", (3,)), setter(h, "__defaults__", (4.5,))))


@state
def keyword_defaults() -> State:
    def h(x: Any, *, k: int = 2) -> Any:
        return x * k

    return State(lambda x: h(x), (setter(h, "__kwdefaults__", {"k": 3}), lambda: h.__kwdefaults__.update(k=8)))


@state
def own_defaults() -> State:
    def f(x: Any, k: int = 2) -> Any:
        return x * k

    return State(f, (setter(f, "__defaults__", (3,)), setter(f, "__defaults__", (5,))))


@state
def mutable_default() -> State:
    def h(x: Any, ks: list = [2]) -> Any:  # noqa: B006
        return x * ks[0]

    return State(lambda x: h(x), (lambda: h.__defaults__[0].__setitem__(0, 5), lambda: h.__defaults__[0].insert(0, 7)))


@state
def code_of_a_callee() -> State:
    def h(x: Any) -> Any:
        return x + 1

    def other(x: Any) -> Any:
        return x - 5

    codes = h.__code__, other.__code__
    return State(lambda x: h(x), (setter(h, "__code__", codes[1]), setter(h, "__code__", codes[0])))


@state
def own_code() -> State:
    def f(x: Any) -> Any:
        return x + 1

    def other(x: Any) -> Any:
        return x - 5

    codes = f.__code__, other.__code__
    return State(f, (setter(f, "__code__", codes[1]), setter(f, "__code__", codes[0])))


@state
def attribute_of_a_function() -> State:
    def h(x: Any) -> Any:
        return x * h.k

    h.k = 2
    return State(lambda x: h(x), (setter(h, "k", 3), setter(h, "k", 4.0)))


# --- modules of Python ---
@state
def attribute_of_a_module() -> State:
    m = types.ModuleType("m")
    m.k = 2
    g = namespace("def f(x): return x * m.k", m=m)
    return State(g["f"], (setter(m, "k", 3), lambda: vars(m).update(k=4)))


@state
def module_getattr() -> State:
    m = types.ModuleType("m")
    m.__getattr__ = lambda name: 2
    g = namespace("def f(x): return x * m.k", m=m)
    return State(g["f"], (setter(m, "k", 3), lambda: vars(m).pop("k", None), setter(m, "__getattr__", lambda name: 7)))


@state
def function_of_a_module_patched() -> State:
    m = types.ModuleType("m")
    exec("def h(x): return x + 1", vars(m))
    old = m.h
    g = namespace("def f(x): return m.h(x)", m=m)
    return State(g["f"], (setter(m, "h", lambda x: x * 3), setter(m, "h", old)))


@state
def function_of_the_library_patched() -> State:
    old = torch.relu
    return State(
        lambda x: torch.relu(x - 1),
        (setter(torch, "relu", torch.sigmoid), setter(torch, "relu", old)),
        setter(torch, "relu", old),
    )


@state
def functional_patched() -> State:
    old = nn.functional.relu
    layer = nn.ReLU()
    put = functools.partial(setter, nn.functional, "relu")
    return State(lambda x: layer(x - 1), (put(lambda x, inplace=False: x * 2), put(old)), put(old))


@state
def import_inside() -> State:
    m = types.ModuleType("state_module_of_a_test")
    m.k = 2
    sys.modules[m.__name__] = m
    other = types.ModuleType(m.__name__)
    other.k = 11

    def f(x: Any) -> Any:
        import state_module_of_a_test as found

        return x * found.k

    changes = (
        setter(m, "k", 3),
        lambda: sys.modules.update({m.__name__: other}),
        lambda: sys.modules.update({m.__name__: m}),
    )
    return State(f, changes, lambda: sys.modules.pop(m.__name__, None))
