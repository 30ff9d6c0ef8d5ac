"""Instances, classes, descriptors, special methods."""

from __future__ import annotations

import types
from typing import Any

from tests.dynamo.guards.states.table import State, setter, state


@state
def instance_attribute() -> State:
    o = types.SimpleNamespace(k=2)
    return State(lambda x: x * o.k, (setter(o, "k", 3), lambda: vars(o).update(k=4)))


@state
def attribute_of_a_user_object() -> State:
    class C:
        k = 1

    o = C()
    return State(
        lambda x: x * o.k,
        (
            setter(C, "k", 3),
            setter(o, "k", 4),
            lambda: vars(o).update(k=5),
            lambda: vars(o).pop("k", None),
            setter(C, "k", 6),
        ),
    )


@state
def attribute_of_an_argument_bound_method() -> State:
    class C:
        k = 1

        def m(self, x: Any) -> Any:
            return x * self.k

    o = C()
    return State(
        o.m, (setter(C, "k", 3), setter(o, "k", 4), lambda: vars(o).update(k=5), lambda: vars(o).pop("k", None))
    )


@state
def class_of_an_object() -> State:
    class A:
        def m(self, x: Any) -> Any:
            return x + 1

    class B:
        def m(self, x: Any) -> Any:
            return x * 10

    o = A()
    return State(lambda x: o.m(x), (setter(o, "__class__", B), setter(o, "__class__", A)))


@state
def method_patched_on_the_class() -> State:
    class C:
        def m(self, x: Any) -> Any:
            return x + 1

    o, old = C(), C.m
    return State(lambda x: o.m(x), (setter(C, "m", lambda self, x: x * 3), setter(C, "m", old)))


@state
def method_patched_on_the_instance() -> State:
    class C:
        def m(self, x: Any) -> Any:
            return x + 1

    o = C()
    return State(lambda x: o.m(x), (setter(o, "m", lambda x: x * 3), lambda: vars(o).pop("m", None)))


@state
def method_of_a_base_class() -> State:
    class A:
        def m(self, x: Any) -> Any:
            return x + 1

    class B(A):
        pass

    o, old = B(), A.m
    changes = (
        setter(A, "m", lambda self, x: x * 3), setter(B, "m", lambda self, x: x * 5), lambda: "m" in vars(B) and delattr(B, "m"),
        setter(A, "m", old),
    )  # fmt: skip
    return State(lambda x: o.m(x), changes)


@state
def bases_of_a_class() -> State:
    class A:
        def m(self, x: Any) -> Any:
            return x + 1

    class B:
        def m(self, x: Any) -> Any:
            return x * 4

    class C(A):
        pass

    o = C()
    return State(lambda x: o.m(x), (setter(C, "__bases__", (B,)), setter(C, "__bases__", (A,))))


@state
def property_of_an_object() -> State:
    class C:
        def __init__(self) -> None:
            self.k = 2

        @property
        def twice(self) -> int:
            return self.k * 2

    o, old = C(), C.twice
    return State(
        lambda x: x * o.twice,
        (setter(o, "k", 3), setter(C, "twice", property(lambda self: 11)), setter(C, "twice", old)),
    )


@state
def data_descriptor() -> State:
    class D:
        def __init__(self) -> None:
            self.k = 2

        def __get__(self, o: Any, cls: Any) -> Any:
            return self.k

        def __set__(self, o: Any, v: Any) -> None:
            self.k = v

    class C:
        d = D()

    o = C()
    return State(lambda x: x * o.d, (setter(o, "d", 3), setter(vars(C)["d"], "k", 4), lambda: vars(o).update(d=9)))


@state
def non_data_descriptor() -> State:
    class D:
        def __get__(self, o: Any, cls: Any) -> Any:
            return 2

    class C:
        d = D()

    o = C()
    return State(
        lambda x: x * o.d,
        (lambda: vars(o).update(d=9), lambda: vars(o).pop("d", None), setter(D, "__get__", lambda *a: 5)),
    )


@state
def getattr_of_a_class() -> State:
    class C:
        def __getattr__(self, name: str) -> Any:
            return 2

    o = C()
    return State(
        lambda x: x * o.k,
        (lambda: vars(o).update(k=5), lambda: vars(o).pop("k", None), setter(C, "__getattr__", lambda self, n: 9)),
    )


@state
def getattribute_of_a_class() -> State:
    class C:
        k = 1

    o = C()

    def remove() -> None:
        if "__getattribute__" in vars(C):
            del C.__getattribute__

    return State(lambda x: x * o.k, (setter(C, "__getattribute__", lambda self, n: 9), remove, setter(C, "k", 4)))


@state
def slots() -> State:
    class C:
        __slots__ = ("k",)

    o = C()
    o.k = 2
    return State(lambda x: x * o.k, (setter(o, "k", 3), setter(o, "k", 4.5)))


@state
def has_attr() -> State:
    class C:
        pass

    o = C()
    changes = (
        setter(o, "k", 3),
        lambda: vars(o).pop("k", None),
        setter(C, "k", 5),
        lambda: "k" in vars(C) and delattr(C, "k"),
    )
    return State(lambda x: x * o.k if hasattr(o, "k") else x - 1, changes)
