"""Objects that a compiled entry holds by identity.

Their classes may change, and so may the objects that their parts refer to.
"""

from __future__ import annotations

import collections
import enum
import sys
import types
from typing import Any

import eager as torch
from eager import nn
from tests.dynamo.guards.states.table import State, namespace, setter, state


@state
def class_of_a_class() -> State:
    class First(type):
        scale = 2

        def __call__(cls, *args: Any) -> int:
            return 5

    class Second(type):
        scale = 3

        def __call__(cls, *args: Any) -> int:
            return 7

        def __len__(cls) -> int:
            return 0

    class C(metaclass=First):
        pass

    changes = (setter(C, "__class__", Second), setter(C, "__class__", First))
    return State(lambda x: x * C.scale + C() + (1 if C else 0), changes)  # type: ignore[attr-defined,operator]


@state
def class_of_a_python_module() -> State:
    class Computed(types.ModuleType):
        @property
        def k(self) -> int:
            return self.base * 2  # type: ignore[no-any-return]

    class Intercepting(types.ModuleType):
        def __getattribute__(self, name: str) -> Any:
            return 11

    class Adding(types.ModuleType):
        extra = 4

        def method(self) -> int:
            return self.k + 1  # type: ignore[no-any-return]

    class Answering(types.ModuleType):
        def __getattr__(self, name: str) -> int:
            return len(name)

    module = types.ModuleType("module_of_a_test")
    module.__dict__.update(k=1, base=10)

    def read(x: Any) -> Any:
        y = x * module.k
        if hasattr(module, "extra"):
            y = y + module.extra
        if hasattr(module, "method"):
            y = y + module.method()
        return y

    classes = (Computed, Intercepting, Adding, Answering)
    added = (setter(module, "k", 3), setter(module, "base", 20), setter(Adding, "extra", 6))
    return State(read, (*(lambda cls=cls: types.ModuleType.__setattr__(module, "__class__", cls) for cls in classes), *added))


@state
def class_of_an_enum_member() -> State:
    class Color(enum.Enum):
        RED = 1

        def size(self) -> int:
            return 1

    class Shade(enum.Enum):
        def size(self) -> int:
            return 2

    return State(lambda x: x + Color.RED.size(), (setter(Color.RED, "__class__", Shade), setter(Color.RED, "__class__", Color)))


@state
def class_of_a_named_tuple() -> State:
    Point = collections.namedtuple("Point", "a b")  # noqa: PYI024
    Other = collections.namedtuple("Other", "b a")  # noqa: PYI024
    names = namespace("def read(x): return x * point.a + point.b", point=Point(2, 3))
    changes = [setter(names["point"], "__class__", cls) for cls in (Other, Point)]
    try:
        changes[0]()
    except TypeError:  # newer versions refuse the change: no change to test
        changes = []
    return State(names["read"], (*changes, lambda: names.update(point=Point(5, 3))))


@state
def class_of_a_registry() -> State:
    """No instance of Registry can change its class; another dict that replaces it, and a write to it, are noticed."""

    class Loud(dict[Any, Any]):
        def __len__(self) -> int:
            return 1

    torch.manual_seed(0)
    act = nn.Sequential(nn.ReLU(), nn.Tanh())

    def swap() -> None:
        try:
            act[0]._forward_hooks.__class__ = Loud
        except TypeError:
            return
        raise AssertionError("a registry has changed class")

    return State(
        act,
        (
            swap,
            lambda: act[0].__dict__.update(_forward_hooks={1: lambda m, a, y: y * 3}),
            lambda: dict.__setitem__(act[1]._forward_hooks, 2, lambda m, a, y: y + 2),
            lambda: dict.clear(act[1]._forward_hooks),
            lambda: act[0].__dict__.update(_forward_hooks=type(act[1]._forward_hooks)()),
        ),
    )


@state
def items_of_a_held_tuple() -> State:
    """The tuple keeps its items; the contents of the items may change."""

    class Box:
        def __init__(self, k: float) -> None:
            self.k = k

    box, numbers, table = Box(2.0), [1, 2], {"a": 1}
    names = namespace(
        "def read(x): return x * held[0].k + held[1][0] + len(held[1]) + held[2]['a'] + held[3][0] + held[4]",
        held=(box, numbers, table, (7,), 0.5),
    )
    return State(
        names["read"],
        (
            setter(box, "k", 3.0),
            lambda: numbers.__setitem__(0, numbers[0] + 1),
            lambda: numbers.append(1),
            lambda: table.update(a=table["a"] + 5),
            lambda: names.update(held=(*names["held"][:4], names["held"][4] + 1)),
        ),
    )


@state
def parts_of_a_held_method() -> State:
    class C:
        k = 2

        def scale(self, x: Any, by: int = 1) -> Any:
            return x * self.k * by

    c = C()
    names = namespace("def read(x): return method(x)", method=c.scale)
    old = C.scale.__code__

    def other(self: Any, x: Any, by: int = 1) -> Any:
        return x - by

    return State(
        names["read"],
        (
            setter(c, "k", 5),
            lambda: setattr(C.scale, "__defaults__", (3,)),
            lambda: setattr(C.scale, "__defaults__", (1,)),
            lambda: setattr(C.scale, "__code__", other.__code__),
            lambda: setattr(C.scale, "__code__", old),
            lambda: names.update(method=C().scale),
        ),
    )


@state
def fields_of_a_held_function() -> State:
    """Code and defaults, also defaults that become None and return."""

    def inner(x: Any, a: int = 1, *, b: int = 2) -> Any:
        return x * a + b

    def other(x: Any, a: int = 1, *, b: int = 2) -> Any:
        return x - a * b

    def read(x: Any) -> Any:
        try:
            return inner(x)
        except TypeError:
            return x

    code = inner.__code__
    return State(
        read,
        (
            setter(inner, "__defaults__", (4,)),
            setter(inner, "__defaults__", None),
            setter(inner, "__kwdefaults__", None),
            setter(inner, "__kwdefaults__", {"b": 9}),
            lambda: (inner.__kwdefaults__ or {}).update(b=6),
            setter(inner, "__code__", other.__code__),
            setter(inner, "__code__", code),
        ),
    )


@state
def held_slice() -> State:
    names = namespace("def read(x): return x[window] * 2", window=slice(0, 1))
    return State(names["read"], (lambda: names.update(window=slice(0, 2)), lambda: names.update(window=slice(1, None))))


@state
def class_of_an_imported_module() -> State:
    """A module that changes its class, like modules with properties."""
    name = "framejit_module_of_a_test"
    module = types.ModuleType(name)
    module.__dict__["k"] = 1

    class Counting(types.ModuleType):
        k = property(lambda self: 9)

    def read(x: Any) -> Any:
        import framejit_module_of_a_test as m  # type: ignore[import-not-found]  # noqa: PLC0415

        return x + m.k

    sys.modules[name] = module
    return State(read, (setter(module, "__class__", Counting), lambda: module.__dict__.update(k=4)), lambda: sys.modules.pop(name))
