"""Special methods, abstract classes, dataclasses, enums and other features of classes."""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools
import os
import sys
import types
import typing
from collections.abc import Iterator
from typing import Any, ClassVar

import eager as torch
from eager import nn
from tests.dynamo.guards.states.table import State, namespace, setter, state


@state
def truth_of_an_object() -> State:
    class C:
        full = True

        def __bool__(self) -> bool:
            return self.full

    o, old = C(), C.__bool__
    changes = (
        setter(o, "full", False),
        setter(o, "full", True),
        setter(C, "__bool__", lambda self: False),
        setter(C, "__bool__", old),
    )
    return State(lambda x: x + 1 if o else x - 1, changes)


@state
def truth_by_length() -> State:
    class C:
        def __init__(self) -> None:
            self.items: list[int] = []

        def __len__(self) -> int:
            return len(self.items)

    o = C()

    def add_bool() -> None:
        C.__bool__ = lambda self: False

    def drop_bool() -> None:
        if "__bool__" in vars(C):
            del C.__bool__

    return State(lambda x: x + 1 if o else x - 1, (lambda: o.items.append(1), o.items.clear, add_bool, drop_bool))


@state
def truth_appears() -> State:
    class C:
        pass

    o = C()

    def drop() -> None:
        if "__bool__" in vars(C):
            del C.__bool__

    return State(lambda x: x + 1 if o else x - 1, (setter(C, "__bool__", lambda self: False), drop))


@state
def equality_appears() -> State:
    class C:
        pass

    a, b = C(), C()

    def drop() -> None:
        if "__eq__" in vars(C):
            del C.__eq__

    return State(lambda x: x + 1 if a == b else x - 1, (setter(C, "__eq__", lambda self, o: True), drop))


@state
def operators_patched() -> State:
    class C:
        def __add__(self, o: Any) -> int:
            return 2

    a, old = C(), C.__add__
    return State(lambda x: x * (a + 1), (setter(C, "__add__", lambda self, o: 5), setter(C, "__add__", old)))


@state
def call_patched() -> State:
    class C:
        def __call__(self, x: Any) -> Any:
            return x + 1

    o, old = C(), C.__call__
    return State(
        lambda x: o(x),
        (setter(C, "__call__", lambda self, x: x * 5), setter(C, "__call__", old), lambda: vars(o).update(__call__=0)),
    )


@state
def iteration_patched() -> State:
    class C:
        def __init__(self) -> None:
            self.n = 2

        def __iter__(self) -> Iterator[int]:
            return iter(range(1, self.n + 1))

    o = C()
    return State(
        lambda x: sum((x * k for k in o), x), (setter(o, "n", 4), setter(C, "__iter__", lambda self: iter([7])))
    )


@state
def is_instance() -> State:
    class A:
        pass

    class B(A):
        pass

    box: dict[str, Any] = {"o": A(), "cls": B}
    return State(
        lambda x: x * 2 if isinstance(box["o"], box["cls"]) else x,
        (lambda: box.update(o=B()), lambda: box.update(cls=A), lambda: box.update(o=A(), cls=B)),
    )


@state
def registered_with_an_abc() -> State:
    import abc

    class A(abc.ABC):  # noqa: B024
        pass

    class B:
        pass

    o = B()
    return State(lambda x: x * 2 if isinstance(o, A) else x, (lambda: A.register(B),))


@state
def dataclass_fields() -> State:
    @dataclasses.dataclass
    class C:
        k: int = 1
        ks: list = dataclasses.field(default_factory=lambda: [2])

    o = C()
    return State(
        lambda x: x * o.k + o.ks[0] + len(dataclasses.fields(o)),
        (setter(o, "k", 3), lambda: o.ks.__setitem__(0, 7), setter(o, "ks", [5])),
    )


@state
def dataclass_frozen_changed_underhand() -> State:
    @dataclasses.dataclass(frozen=True)
    class C:
        k: int = 1

    o = C()
    return State(lambda x: x * o.k, (lambda: object.__setattr__(o, "k", 3), lambda: object.__setattr__(o, "k", 4)))


@state
def enum_member() -> State:
    class E(enum.Enum):
        A = 1
        B = 2

    box = [E.A]
    return State(
        lambda x: x * box[0].value if box[0] is E.A else x - box[0].value,
        (lambda: box.__setitem__(0, E.B), lambda: box.__setitem__(0, E.A)),
    )


@state
def enum_attribute() -> State:
    class E(enum.Enum):
        A = 1

    E.A.extra = 2
    return State(lambda x: x * E.A.extra, (setter(E.A, "extra", 3), setter(E.A, "extra", 4)))


@state
def named_tuple_in_a_box() -> State:
    P = collections.namedtuple("P", "a b")
    box = [P(1, 2)]
    return State(
        lambda x: x * box[0].a + box[0].b,
        (lambda: box.__setitem__(0, P(3, 2)), lambda: box.__setitem__(0, P(3, torch.ones(2)))),
    )


@state
def class_attribute_container() -> State:
    class C:
        table: ClassVar = {"k": 1}

    return State(lambda x: x * C.table["k"], (lambda: C.table.update(k=3), setter(C, "table", {"k": 8})))


@state
def metaclass_attribute() -> State:
    class M(type):
        @property
        def k(cls) -> int:
            return cls.base

    class C(metaclass=M):
        base = 2

    return State(lambda x: x * C.k, (setter(C, "base", 3), setter(M, "k", property(lambda cls: 9))))


@state
def class_method_and_static_method() -> State:
    class C:
        k = 2

        @classmethod
        def c(cls, x: Any) -> Any:
            return x * cls.k

        @staticmethod
        def s(x: Any) -> Any:
            return x + 1

    return State(lambda x: C.c(x) + C.s(x), (setter(C, "k", 3), setter(C, "s", staticmethod(lambda x: x * 9))))


@state
def cached_property() -> State:
    class C:
        k = 2

        @functools.cached_property
        def v(self) -> int:
            return self.k * 3

    o = C()
    return State(lambda x: x * o.v, (setter(C, "k", 5), lambda: vars(o).pop("v", None), lambda: vars(o).update(v=11)))


@state
def object_replaced() -> State:
    class C:
        def __init__(self, k: int) -> None:
            self.k = k

    box = [C(1)]
    return State(
        lambda x: x * box[0].k,
        (lambda: box.__setitem__(0, C(2)), lambda: box.__setitem__(0, C(3)), setter(box[0], "k", 4)),
    )


@state
def aliases() -> State:
    a, b = [1], [1]
    box = [a, b]
    return State(
        lambda x: x * 2 if box[0] is box[1] else x, (lambda: box.__setitem__(1, a), lambda: box.__setitem__(1, b))
    )


@state
def partial_arguments() -> State:
    def h(k: Any, x: Any, add: int = 0) -> Any:
        return x * k[0] + add

    ks = [2]
    p = functools.partial(h, ks, add=1)
    return State(
        lambda x: p(x),
        (lambda: ks.__setitem__(0, 5), lambda: p.keywords.update(add=7), lambda: p.__setstate__((h, ([3],), {}, None))),
    )


@state
def lru_cache_cleared() -> State:
    box = [2]

    @functools.lru_cache
    def h() -> int:
        return box[0]

    return State(lambda x: x * h(), (lambda: box.__setitem__(0, 5), h.cache_clear, lambda: box.__setitem__(0, 6)))


@state
def bound_method_in_a_box() -> State:
    class C:
        def __init__(self, k: int) -> None:
            self.k = k

        def m(self, x: Any) -> Any:
            return x * self.k

    a, b = C(2), C(3)
    box = [a.m]
    return State(
        lambda x: box[0](x), (lambda: box.__setitem__(0, b.m), setter(b, "k", 7), lambda: box.__setitem__(0, a.m))
    )


@state
def context_variable() -> State:
    import contextvars

    v = contextvars.ContextVar("v", default=2)
    return State(lambda x: x * v.get(), (lambda: v.set(3), lambda: v.set(4)))


@state
def environment() -> State:
    name = "FRAMEJIT_STATE_OF_A_TEST"

    def read(x: Any) -> Any:
        return x * 2 if os.environ.get(name) == "on" else x - int(name in os.environ) - int(os.getenv(name + "_N", "0"))

    def close() -> None:
        os.environ.pop(name, None)
        os.environ.pop(name + "_N", None)

    changes = (
        lambda: os.environ.update({name: "on"}),
        lambda: os.environ.update({name: "off"}),
        lambda: os.environ.update({name + "_N": "5"}),
        close,
    )
    return State(read, changes, close)


@state
def recursion_limit() -> State:
    old = sys.getrecursionlimit()
    return State(
        lambda x: x * (sys.getrecursionlimit() - old + 1),
        (lambda: sys.setrecursionlimit(old + 3), lambda: sys.setrecursionlimit(old)),
        lambda: sys.setrecursionlimit(old),
    )


@state
def namespace_of_an_object_replaced() -> State:
    class C:
        def __init__(self) -> None:
            self.k = 2

    o = C()
    return State(
        lambda x: x * o.k, (setter(o, "__dict__", {"k": 7}), setter(o, "k", 3), setter(o, "__dict__", {"k": 8}))
    )


@state
def protocol() -> State:
    @typing.runtime_checkable
    class P(typing.Protocol):
        def quack(self) -> int: ...

    class C:
        pass

    o = C()

    def drop() -> None:
        if "quack" in vars(C):
            del C.quack

    changes = (setter(C, "quack", lambda self: 1), drop, lambda: vars(o).update(quack=1), vars(o).clear)
    return State(lambda x: x * 2 if isinstance(o, P) else x, changes)


@state
def special_methods_of_a_container() -> State:
    class C:
        def __getitem__(self, i: int) -> int:
            return range(9)[i]

        def __contains__(self, i: int) -> bool:
            return i == 2

        def __len__(self) -> int:
            return 3

    o = C()
    old = {name: vars(C)[name] for name in ("__getitem__", "__contains__", "__len__")}

    def restore() -> None:
        for name, value in old.items():
            setattr(C, name, value)

    changes = (
        setter(C, "__getitem__", lambda self, i: range(7, 12)[i]), setter(C, "__contains__", lambda self, i: False), restore,
        setter(C, "__len__", lambda self: 5), lambda: "__contains__" in vars(C) and delattr(C, "__contains__"), restore,
    )  # fmt: skip
    return State(lambda x: x * o[4] + (2 in o) + len(o), changes)


@state
def reflected_operators_appear() -> State:
    class C:
        def __add__(self, o: Any) -> int:
            return 1

    class D(C):
        pass

    a, b = C(), D()

    def drop() -> None:
        if "__radd__" in vars(D):
            del D.__radd__

    return State(lambda x: x * (a + b), (setter(D, "__radd__", lambda self, o: 5), drop))


@state
def text_of_an_object() -> State:
    class C:
        pass

    o, names = C(), ("__str__", "__repr__", "__format__")

    def drop() -> None:
        for name in names:
            if name in vars(C):
                delattr(C, name)

    C.__repr__ = lambda self: "abc"
    changes = (setter(C, "__repr__", lambda self: "ab"), setter(C, "__str__", lambda self: "a"),
               setter(C, "__format__", lambda self, spec: "abcdef"), drop)  # fmt: skip

    def read(x: Any) -> Any:
        return x * len(f"{o}") if "object" not in str(o) else x

    return State(read, changes)


@state
def hash_of_an_object() -> State:
    class C:
        pass

    a, b = C(), C()

    def drop() -> None:
        for name in ("__eq__", "__hash__"):
            if name in vars(C):
                delattr(C, name)

    def equal() -> None:
        C.__eq__ = lambda self, o: True
        C.__hash__ = lambda self: 1

    return State(lambda x: x * len({a, b}), (equal, drop))


@state
def constructor_patched() -> State:
    class C:
        def __init__(self, k: int) -> None:
            self.k = k

    old = C.__init__

    def init(self: Any, k: int) -> None:
        self.k = k + 5

    def drop() -> None:
        if "__new__" in vars(C):
            del C.__new__

    changes = (
        setter(C, "__init__", init),
        setter(C, "__new__", lambda cls, k: types.SimpleNamespace(k=k * 3)),
        drop,
        setter(C, "__init__", old),
    )
    return State(lambda x: x * C(2).k, changes)


@state
def attribute_writes_patched() -> State:
    class C:
        pass

    def drop() -> None:
        if "__setattr__" in vars(C):
            del C.__setattr__

    def read(x: Any) -> Any:
        o = C()
        o.k = 2
        return x * o.k

    def double(self: Any, name: str, v: int) -> None:
        object.__setattr__(self, name, v * 2)

    return State(read, (setter(C, "__setattr__", double), drop))


@state
def context_manager_patched() -> State:
    class C:
        def __enter__(self) -> int:
            return 2

        def __exit__(self, *exc: object) -> bool:
            return False

    o = C()

    def read(x: Any) -> Any:
        with o as k:
            x = x * k
            if k == 5:
                raise ValueError("five")
        return x

    old = C.__enter__
    return State(
        read,
        (
            setter(C, "__enter__", lambda self: 5),
            setter(C, "__exit__", lambda self, *e: True),
            setter(C, "__enter__", old),
        ),
    )


@state
def class_made_again() -> State:
    g = namespace("class C:\n    k = 2\ndef f(x): return x * C.k + isinstance(o, C)")
    old = g["C"]
    g["o"] = old()
    return State(
        g["f"], (lambda: g.update(C=type("C", (), {"k": 7})), lambda: g.update(C=old), lambda: g.update(o=g["C"]()))
    )


@state
def dictionary_with_objects_as_keys() -> State:
    a, b = object(), object()
    d = {a: 1}
    return State(
        lambda x: x * d.get(a, 0) + d.get(b, 5),
        (lambda: d.update({b: 3}), lambda: d.pop(a, None), lambda: d.update({a: 4})),
    )


@state
def list_of_modules() -> State:
    layers = [nn.Tanh(), nn.ReLU()]

    def read(x: Any) -> Any:
        for layer in layers:
            x = layer(x)
        return x

    return State(
        read,
        (layers.reverse, lambda: layers.append(nn.Sigmoid()), lambda: layers.pop(), lambda: layers.append(nn.ReLU())),
    )


@state
def super_of_a_patched_base() -> State:
    class A:
        def m(self, x: Any) -> Any:
            return x + 1

    class B(A):
        pass

    class C(B):
        def m(self, x: Any) -> Any:
            return super().m(x) * 2

    o, old = C(), A.m

    def drop() -> None:
        if "m" in vars(B):
            del B.m

    return State(
        lambda x: o.m(x),
        (setter(A, "m", lambda self, x: x - 9), setter(B, "m", lambda self, x: x * 7), drop, setter(A, "m", old)),
    )


@state
def attribute_of_a_base_instance_type() -> State:
    class A:
        k = 1

    class B(A):
        pass

    class C(B):
        pass

    o = C()

    def drop() -> None:
        if "k" in vars(B):
            del B.k

    return State(lambda x: x * o.k + x * C.k, (setter(B, "k", 5), setter(A, "k", 3), drop))


@state
def generator_function_patched() -> State:
    g = namespace(
        "def h():\n    yield 1\n    yield K\nK = 2\ndef f(x):\n    for k in h():\n        x = x * k + 1\n    return x"
    )
    return State(g["f"], (lambda: g.update(K=3), lambda: g.update(h=lambda: iter([4])), lambda: g.update(K=5)))
