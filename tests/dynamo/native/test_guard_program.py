"""Guard programs: each operation admits the named values and refuses similar values."""
from __future__ import annotations

import gc
import math
import subprocess
import sys
import types
import weakref
from collections import OrderedDict, defaultdict, deque
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eager
from dynamo import _native
from dynamo._native import ANY, AT_LEAST_2, META_ALL, GuardProgram

NAN = math.nan


class Point:
    kind = "class attribute"

    def __init__(self, x: Any = 1) -> None:
        self.x = x

    @property
    def boom(self) -> int:
        raise KeyError("boom")


class Slotted:
    __slots__ = ("x",)


class Always:
    def __eq__(self, other: object) -> bool:
        raise ArithmeticError

    __hash__ = object.__hash__


class Interrupting:
    def __eq__(self, other: object) -> bool:
        raise KeyboardInterrupt

    __hash__ = object.__hash__


class Dynamic:
    def __getattr__(self, name: str) -> str:
        if name == "made":
            return "by __getattr__"
        raise AttributeError(name)


def outer_function(a: int) -> types.FunctionType:
    late: Any
    def inner() -> tuple[int, Any]:
        return a, late
    if a < 0:
        late = 1
    return inner  # type: ignore[return-value]


def class_that_had_a_new() -> type:
    """CPython keeps the slot, and then refuses arguments that it accepted before."""
    made = type("Had", (), {})
    made.__new__ = lambda cls: None  # type: ignore[method-assign, assignment]
    del made.__new__
    return made


class Text(str):
    """A text that equals no object: a guard must compare the stored text."""

    def __eq__(self, other: object) -> bool:
        return False

    __hash__ = str.__hash__


class Whole(int):
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = int.__hash__


class Real(float):
    def __float__(self) -> float:
        return 7.0


TRUE_CELL, EMPTY_CELL = _native.make_cell(True), _native.make_cell()
ONE, BIG, TEXT = 1, 2**70, "".join(["te", "xt"])
POINT, FUNCTION = Point(), outer_function(5)
EIGHT_FIRST, EIGHT_LAST = (8, 0), (0, 8)  # whose hashes collide: sets of them differ in their order

OPERATIONS: list[tuple[str, tuple[Any, ...], list[Any], list[Any]]] = [
    # id, (op, operands after the source slot), admitted values, refused values
    ("type", ("type", int), [1, BIG], [True, 1.0, None]),
    ("is", ("is", None), [None], [0, False]),
    ("is_not", ("is_not", None), [0], [None]),
    ("int", ("int_eq", 300), [300, int("300")], [301, 300.0, None, BIG, True]),
    ("int_one", ("int_eq", 1), [1], [True, 1.0]),
    ("int_big", ("int_eq", BIG), [2**70, int(str(2**70))], [2**70 + 1, 1, -BIG]),
    ("float", ("float_eq", 1.5), [1.5], [1.25, 1, None]),
    ("float_zero", ("float_eq", 0.0), [0.0], [-0.0, 0]),
    ("float_negative_zero", ("float_eq", -0.0), [-0.0], [0.0]),
    ("float_nan", ("float_eq", NAN), [NAN, float("nan")], [-NAN, 0.0]),
    ("str", ("str_eq", "text"), [TEXT, "text"], ["Text", b"text", None]),
    ("const_tuple", ("const_eq", (1, "a")), [(1, "a")], [(1, "b"), [1, "a"]]),
    ("const_bytes", ("const_eq", b"x"), [b"x"], ["x", b"y"]),
    ("const_bool", ("const_eq", True), [True], [1, False]),
    ("const_raises", ("const_eq", frozenset([1])), [frozenset([1])], [Always(), {1}]),
    ("content_str", ("content_eq", "text"), ["text", Text("text")], [Text("Text"), b"text", None, 1]),
    ("content_int", ("content_eq", 5), [5, Whole(5), Whole(5) + 0], [Whole(6), 5.0, "5", Whole(BIG)]),
    ("content_float", ("content_eq", -0.0), [-0.0, Real(-0.0)], [Real(0.0), 0, None]),
    ("len", ("len", 2), [(1, 2), [1, 2], {1: 1, 2: 2}, {1, 2}, frozenset([1, 2]), "ab"], [(1,), [], {}, "abc", 2, Point()]),
    ("dict_keys", ("dict_keys", ("a", 1)), [{"a": 0, 1: 0}, OrderedDict([("a", 0), (1, 0)])],
     [{1: 0, "a": 0}, {"a": 0}, {"a": 0, True: 0}, {"a": 0, 1.0: 0}, ["a", 1], {"a": 0, Always(): 0}]),
    ("set_elements", ("set_elements", (8, 0)), [set(EIGHT_FIRST), frozenset(EIGHT_FIRST)],
     [{8}, {8, 1}, {8, False}, set(EIGHT_LAST), [8, 0], {8: 1, 0: 2}, {8, Always()}]),
    ("no_attr", ("no_attr", "y"), [Point(), 3], []),
    ("no_attr_present", ("no_attr", "x"), [], [Point()]),
    ("no_attr_raises", ("no_attr", "boom"), [Slotted()], [Point()]),
    ("type_absent", ("type_absent", "y"), [Point, int], [type("T", (), {"y": 1}), Point()]),
    ("plain_new", ("plain_new",), [Point, object], [type("T", (), {"__new__": lambda cls: None}), int, Point(), class_that_had_a_new()]),
    ("len_deque", ("len", 2), [deque([1, 2])], [deque(), deque([1]), type("D", (deque,), {})([1, 2])]),
    ("dict_absent", ("dict_absent", "k"), [{}, {"j": 1}], [{"k": 0}, [], None]),
    ("cell_empty", ("cell_empty",), [EMPTY_CELL], [TRUE_CELL, None]),
    ("int_range", ("int_range", -1, 5), [-1, 0, 5], [-2, 6, 2.0, True, BIG]),
]


@pytest.mark.parametrize("name, operation, admitted, refused", OPERATIONS, ids=[row[0] for row in OPERATIONS])
def test_check_admits_only_the_named_values(name: str, operation: tuple, admitted: list, refused: list) -> None:
    program = GuardProgram([(operation[0], 0, *operation[1:], "the note")], 1)
    for value in admitted:
        assert program.check([value]), value
        assert program.failed([value]) is None
    for value in refused:
        assert not program.check([value]), value
        assert program.failed([value]) == (0, "the note")


FETCHES: list[tuple[str, list[tuple[Any, ...]], Any, Any]] = [
    # id, instructions from slot 0 to temporary 1, a value from which the fetch gives 1, a value for which the fetch
    # fails
    ("attr", [("attr", 0, "x", 1)], POINT, 3),
    ("attr_raises", [("attr", 0, "boom", 1)], types.SimpleNamespace(boom=1), POINT),
    ("attr_dynamic", [("attr", 0, "made", 1)], types.SimpleNamespace(made=1), Point()),
    ("generic_attr", [("generic_attr", 0, "made", 1)], types.SimpleNamespace(made=1), Dynamic()),
    ("dict_attr", [("dict_attr", 0, "x", 1)], POINT, Slotted()),
    ("dict_attr_not_class", [("dict_attr", 0, "kind", 1)], types.SimpleNamespace(kind=1), POINT),
    ("type_attr", [("type_attr", 0, "x", 1)], type("T", (), {"x": 1}), Point),
    ("type_attr_not_type", [("type_attr", 0, "x", 1)], type("T", (), {"x": 1}), POINT),
    ("dict_item", [("dict_item", 0, "k", 1)], {"k": 1}, {"j": 1}),
    ("dict_item_int", [("dict_item", 0, 7, 1)], {7: 1}, {}),
    ("dict_item_default", [("dict_item", 0, 7, 1)], defaultdict(int, {7: 1}), defaultdict(int)),
    ("item_list", [("item", 0, 1, 1)], [0, 1], [0]),
    ("item_tuple", [("item", 0, 0, 1)], (1,), ()),
    ("item_deque", [("item", 0, 1, 1)], deque([0, 1]), deque([0])),
    ("item_not_sequence", [("item", 0, 0, 1)], (1,), {0: 1}),
    ("cell", [("cell", 0, 1)], _native.make_cell(1), EMPTY_CELL),
    ("closure", [("closure", 0, 0, 1)], outer_function(1), outer_function),
    ("closure_empty", [("closure", 0, 1, 1)], outer_function(-1), outer_function(1)),
]


@pytest.mark.parametrize("name, instructions, good, bad", FETCHES, ids=[row[0] for row in FETCHES])
def test_fetch_reaches_the_value_or_fails(name: str, instructions: list, good: Any, bad: Any) -> None:
    program = GuardProgram([*instructions, ("int_eq", 1, 1)], 1)
    assert program.check([good])
    assert program.failed([bad]) == (0, None)
    for _ in range(3):
        assert not program.check([bad])


def test_type_of_const_and_global() -> None:
    namespace = {"flag": 1}
    program = GuardProgram(
        [("type_of", 0, 1), ("is", 1, Point), ("const", [7], 2), ("len", 2, 1), ("global", namespace, "flag", 3),
         ("int_eq", 3, 1)], 1)
    assert program.check([POINT]) and not program.check([1])
    namespace["flag"] = 2
    assert program.failed([POINT]) == (5, None)
    del namespace["flag"]
    assert program.failed([POINT]) == (4, None)


def test_held_objects_are_checked_without_a_fetch() -> None:
    class Other(Point):
        pass

    def f(a: int = 1, *, b: int = 2) -> int:
        return a + b

    point = Point()
    code, defaults, kwdefaults = f.__code__, f.__defaults__, f.__kwdefaults__
    program = GuardProgram(
        [("held_type", point, Point), ("function_is", f, "__code__", code), ("function_is", f, "__defaults__", defaults),
         ("function_is", f, "__kwdefaults__", kwdefaults)], 0)
    assert program.check([])
    for field, value, failed in (("__code__", (lambda a, *, b: 0).__code__, 1), ("__defaults__", None, 2), ("__kwdefaults__", {}, 3)):
        old = getattr(f, field)
        setattr(f, field, value)
        assert program.failed([]) == (failed, None)
        setattr(f, field, old)
    point.__class__ = Other
    assert program.failed([]) == (0, None)
    f.__defaults__ = f.__kwdefaults__ = None
    none = GuardProgram([("function_is", f, "__defaults__", None), ("function_is", f, "__kwdefaults__", None)], 0)
    assert none.check([])
    f.__kwdefaults__ = {"b": 1}
    assert none.failed([]) == (1, None)


def test_weak_fails_after_the_referent_is_freed() -> None:
    point = Point()
    program = GuardProgram([("weak", weakref.ref(point), 1), ("same", 0, 1)], 1)
    assert program.check([point]) and not program.check([Point()])
    del point
    gc.collect()
    assert program.failed([None]) == (0, None)


def test_interrupts_leave_a_check() -> None:
    program = GuardProgram([("attr", 0, "x", 1), ("dict_keys", 1, ("a",))], 1)
    with pytest.raises(KeyboardInterrupt):
        GuardProgram([("call_eq", _raise_interrupt, 1)], 0).check([])
    key = type("K", (str,), {"__eq__": lambda s, o: NotImplemented, "__hash__": str.__hash__})("a")
    assert not program.check([types.SimpleNamespace(x={key: 1})])


def _raise_interrupt() -> None:
    raise KeyboardInterrupt


def test_call_eq_and_grad_mode() -> None:
    state = {"v": 1}
    program = GuardProgram([("call_eq", lambda: state["v"], 1), ("grad_mode", True)], 0)
    assert program.check([])
    state["v"] = True
    assert program.failed([]) == (0, None)
    state.clear()
    assert program.failed([]) == (0, None)
    state["v"] = 1
    with eager.no_grad():
        assert program.failed([]) == (1, None)
        assert GuardProgram([("grad_mode", False)], 0).check([])


# --- tensors ----------------------------------------------------------------------------------------
def tensor_guard(t: eager.Tensor, mask: int = META_ALL, sizes: Any = None, strides: Any = ...) -> tuple:
    return ("tensor", 0, type(t), t._meta_word, mask, tuple(t.shape) if sizes is None else sizes,
            tuple(t.stride()) if strides is ... else strides)


def test_tensor_compares_everything_exactly() -> None:
    t = eager.zeros(2, 3)
    program = GuardProgram([tensor_guard(t)], 1)
    assert program.check([t]) and program.check([eager.ones(2, 3)])
    refused = [eager.zeros(2, 4), eager.zeros(3, 3), eager.zeros(2, 3, 1), eager.zeros(6), eager.zeros(3, 2).t(),
               eager.zeros(2, 3, dtype=eager.float64), eager.zeros(2, 3, requires_grad=True), eager.zeros(()), 1, None]
    for other in refused:
        assert not program.check([other]), other
    subclass = type("Sub", (eager.Tensor,), {})
    assert not GuardProgram([("tensor", 0, subclass, t._meta_word, META_ALL, (2, 3), (3, 1))], 1).check([t])


def test_tensor_mask_leaves_out_bits() -> None:
    t, wants_grad = eager.zeros(2), eager.zeros(2, requires_grad=True)
    program = GuardProgram([tensor_guard(t, mask=META_ALL & ~(1 << 32))], 1)
    assert program.check([t]) and program.check([wants_grad])
    assert not program.check([eager.zeros(2, dtype=eager.int64)])


def test_tensor_dynamic_sizes_and_strides() -> None:
    t = eager.zeros(4, 3)
    contiguous = GuardProgram([tensor_guard(t, sizes=(AT_LEAST_2, 3), strides=None)], 1)
    assert contiguous.check([t]) and contiguous.check([eager.zeros(2, 3)])
    for other in (eager.zeros(1, 3), eager.zeros(0, 3), eager.zeros(4, 4), eager.zeros(3, 4).t(), eager.zeros(8, 3)[::2]):
        assert not contiguous.check([other]), other.shape
    free = GuardProgram([tensor_guard(t, sizes=(ANY, 3), strides=(ANY, 1))], 1)
    for n in range(4):
        assert free.check([eager.zeros(n, 3)])
    assert free.check([eager.zeros(8, 3)[::2]]) and not free.check([eager.zeros(3, 4).t()])


SIZES = (8, 3), (3,)


@pytest.mark.parametrize(("steps", "holds"), [
    (("size", 0, 1, "size", 1, 0, "eq"), True),
    (("size", 0, 0, "size", 1, 0, "eq"), False),
    (("size", 0, 0, "const", 4, "mod", "const", 0, "eq"), True),
    (("size", 0, 0, "const", 3, "mod", "const", 2, "ne"), False),
    (("stride", 0, 0, "size", 1, 0, "le"), True),
    (("stride", 0, 0, "size", 1, 0, "lt"), False),
    (("offset", 0, "int", 2, "lt"), True),
    (("size", 0, 0, "int", 2, "const", -1, "mul", "add", "const", 1, "eq"), True),
    (("const", -7, "const", 2, "floordiv", "const", -4, "eq"), True),
    (("const", -7, "const", 3, "mod", "const", 2, "eq"), True),
    (("const", 7, "const", -3, "mod", "const", -2, "eq"), True),
    (("const", 3, "const", 5, "min", "const", 4, "max", "const", 4, "eq"), True),
    (("const", 1, "const", 0, "floordiv", "const", 1, "ne"), False),  # a relation without a value does not hold
    (("const", 1 << 62, "const", 2, "mul", "const", 0, "ne"), False),
    (("const", -(1 << 63), "const", -1, "floordiv", "const", 0, "ne"), False),
    (("const", (1 << 63) - 1, "const", 1, "add", "const", 0, "ne"), False),
    (("size", 0, 2, "const", 0, "le"), False),
    (("size", 2, 0, "const", 0, "le"), False),
    (("int", 0, "const", 0, "le"), False),
])  # fmt: skip
def test_shape_relations(steps: tuple[object, ...], holds: bool) -> None:
    program = GuardProgram([("shape", (0, 1, 2), steps, "the relation")], 3)
    slots = [*(eager.zeros(*s) for s in SIZES), 7]
    assert program.check(slots) is holds
    assert program.failed(slots) == (None if holds else (0, "the relation"))


def test_shape_relations_of_ints_fail_for_other_numbers() -> None:
    program = GuardProgram([("shape", (0,), ("int", 0, "const", 1, "le"))], 1)
    assert program.check([1]) and program.check([-(1 << 63)])
    for other in (2, True, 1.0, None, -(1 << 63) - 1):
        assert not program.check([other]), other


# --- relations --------------------------------------------------------------------------------------
def test_relations_run_last_and_compare_objects_and_memory() -> None:
    x, y = eager.zeros(4), eager.zeros(4)
    program = GuardProgram([("distinct", (0, 1, 2), "aliased"), ("type", 0, eager.Tensor), ("not_alias", (0, 1))], 3)
    assert [text.split()[0] for _, text, _ in program.describe()] == ["type", "distinct", "not_alias"]
    assert program.check([x, y, None])
    assert program.failed([x, x, None]) == (1, "aliased")
    assert program.failed([x, x[1:], None]) == (2, None)
    assert program.failed([x, y, x]) == (1, "aliased")
    same = GuardProgram([("same", 0, 1)], 2)
    assert same.check([x, x]) and not same.check([x, y])
    alias = GuardProgram([("alias", 0, 1)], 2)
    assert alias.check([x, x[1:]]) and alias.check([x, x.detach()]) and not alias.check([x, y]) and not alias.check([1, 1])


@pytest.mark.parametrize("n", [12, 40, 200])
def test_relations_over_many_slots(n: int) -> None:
    program = GuardProgram([("distinct", tuple(range(n)))], n)
    slots = [object() for _ in range(n)]
    assert program.check(slots)
    slots[-2] = slots[3]
    assert not program.check(slots)
    program = GuardProgram([("not_alias", tuple(range(n)))], n)
    array = np.zeros(8, np.float32)
    tensors = [eager.from_numpy(array[4:]), *(eager.zeros(2) for _ in range(n - 1))]
    assert program.check(tensors)
    assert not program.check([*tensors[:-2], tensors[1][1:], tensors[-1]])
    assert program.check([*tensors[:-1], eager.from_numpy(array[:4])])
    assert not program.check([*tensors[:-1], eager.from_numpy(array[:5])])
    assert not program.check([*tensors[:-1], None])


# --- blocks -----------------------------------------------------------------------------------------
class Counting:
    """A callable that reports how often the full checks ran."""

    def __init__(self) -> None:
        self.n = 0

    def __call__(self) -> int:
        self.n += 1
        return 0


def writes() -> list[tuple[str, Any]]:
    def set_item(d: dict) -> None: d["k"] = 2
    def add_item(d: dict) -> None: d["new"] = 1
    def delete(d: dict) -> None: del d["k"]
    def update(d: dict) -> None: d.update(k=2)
    def clear(d: dict) -> None: d.clear()
    def pop(d: dict) -> None: d.pop("k")
    def merge(d: dict) -> None: d |= {"k": 2}
    return [(f.__name__, f) for f in (set_item, add_item, delete, update, clear, pop, merge)]


@pytest.mark.parametrize("write", [f for _, f in writes()], ids=[n for n, _ in writes()])
@pytest.mark.parametrize("op", ["watch", "epoch"])
def test_block_is_free_until_its_dict_is_written(op: str, write: Any) -> None:
    runs, d = Counting(), {"k": 1, "other": 0}
    program = GuardProgram([(op, (d,), (("call_eq", runs, 0), ("global", d, "k", 0), ("int_eq", 0, 1, "k is 1")))], 0)
    for _ in range(3):
        assert program.check([])
    assert runs.n == 1
    write(d)
    holds = d.get("k") == 1
    assert program.check([]) is holds
    assert runs.n == 2
    if not holds:
        assert program.failed([]) == (3 if "k" in d else 2, "k is 1" if "k" in d else None)
        d["k"] = 1
    assert program.check([])
    before = runs.n
    assert program.check([]) and program.check([])
    assert runs.n == before


@pytest.mark.parametrize("how", ["setattr", "dict", "delattr", "object_setattr", "exec"])
def test_a_block_detects_writes_to_an_instance(how: str) -> None:
    runs, point = Counting(), Point()
    program = GuardProgram([("watch", (point,), (("call_eq", runs, 0), ("const", point, 0), ("attr", 0, "x", 1), ("int_eq", 1, 1)))], 0)
    for _ in range(200):                 # the write below is specialised by then
        point.x = 1
    assert program.check([]) and program.check([])
    assert runs.n == 1
    if how == "setattr":
        point.x = 2
    elif how == "dict":
        point.__dict__["x"] = 2
    elif how == "delattr":
        del point.x
    elif how == "object_setattr":
        object.__setattr__(point, "x", 2)
    else:
        exec("p.x = 2", {"p": point})
    assert not program.check([])


@pytest.mark.parametrize("attributes", [{}, {"x": 1}, {"b": 1, "a": 2, "c": 3}], ids=["empty", "one", "three"])
def test_watching_an_instance_does_not_change_it(attributes: dict[str, int]) -> None:
    point = Point()
    del point.x
    for name, value in attributes.items():
        setattr(point, name, value)
    namespace = point.__dict__
    program = GuardProgram([("watch", (point,), (("const", point, 0),))], 0)
    assert program.check([])
    assert point.__dict__ is namespace and list(namespace.items()) == list(attributes.items())
    assert {name: getattr(point, name) for name in attributes} == attributes
    point.late = 1
    assert namespace["late"] == 1 and list(namespace) == [*attributes, "late"]


def test_a_block_detects_specialised_attribute_writes() -> None:
    point = Point()
    program = GuardProgram([("watch", (point,), (("const", point, 0), ("attr", 0, "x", 1), ("int_eq", 1, 1)))], 0)

    def write(value: int) -> None:
        point.x = value
    for _ in range(300):
        write(1)
        assert program.check([])
        write(2)
        assert not program.check([])


def test_a_block_detects_globals_written_by_store_global() -> None:
    namespace: dict[str, Any] = {"flag": 1}
    exec("def set_flag(v):\n    global flag\n    flag = v", namespace)
    program = GuardProgram([("watch", (namespace,), (("global", namespace, "flag", 0), ("int_eq", 0, 1)))], 0)
    for _ in range(100):
        namespace["set_flag"](1)
        assert program.check([])
        namespace["set_flag"](2)
        assert not program.check([])


def test_a_block_detects_class_changes_along_the_mro() -> None:
    class Base:
        def method(self) -> int:
            return 1

    class Derived(Base):
        pass
    original, runs = Base.method, Counting()
    checks = ("call_eq", runs, 0), ("const", Derived, 0), ("type_attr", 0, "method", 1), ("is", 1, original)
    program = GuardProgram([("watch", (Derived,), checks)], 0)
    assert program.check([]) and program.check([]) and runs.n == 1
    Derived.method = lambda self: 2      # type: ignore[method-assign]
    assert not program.check([])
    del Derived.method
    assert program.check([]) and program.check([])
    Base.method = lambda self: 3         # type: ignore[method-assign]
    assert not program.check([])
    Base.method = original               # type: ignore[method-assign]
    Base.other = 1                       # type: ignore[attr-defined]
    assert program.check([])
    before = runs.n
    assert program.check([]) and runs.n == before


def test_a_write_to_one_dict_does_not_affect_other_blocks() -> None:
    first, second, runs = {"k": 1}, {"k": 1}, Counting()
    GuardProgram([("watch", (first,), (("global", first, "k", 0),))], 0).check([])
    program = GuardProgram([("watch", (second,), (("call_eq", runs, 0),))], 0)
    for _ in range(10):
        first["k"] += 1
        assert program.check([])
    assert runs.n == 1


def test_an_epoch_block_detects_the_epoch_and_a_watch_block_does_not() -> None:
    from eager import _native as eager_native
    runs: dict[str, Counting] = {"epoch": Counting(), "watch": Counting()}
    programs = {op: GuardProgram([(op, (), (("call_eq", runs[op], 0),))], 0) for op in runs}
    for program in programs.values():
        assert program.check([]) and program.check([])
    before = eager_native.epoch()
    eager_native.bump_epoch()
    assert eager_native.epoch() > before
    for program in programs.values():
        assert program.check([])
    assert (runs["epoch"].n, runs["watch"].n) == (2, 1)


def test_epoch_covers_a_module_tree() -> None:
    from eager import nn
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    runs, linear = Counting(), model[0]
    items = (model, model._modules, linear, linear._parameters)
    program = GuardProgram([("epoch", items, (("call_eq", runs, 0), ("const", linear, 0), ("attr", 0, "training", 1), ("is", 1, True)))], 0)
    assert program.check([]) and program.check([]) and runs.n == 1
    model.eval()
    assert not program.check([])
    model.train()
    assert program.check([])
    n = runs.n
    linear._parameters["weight"] = nn.Parameter(eager.zeros(3, 2))    # round __setattr__
    assert program.check([]) and runs.n == n + 1
    linear.__dict__["training"] = False
    assert not program.check([])


def test_a_write_during_the_checks_is_not_lost() -> None:
    d = {"k": 1}
    def touch() -> int:
        if d["k"] == 1:
            d["k"] = 2
        return 0
    program = GuardProgram([("watch", (d,), (("global", d, "k", 0), ("int_eq", 0, 1), ("call_eq", touch, 0)))], 0)
    assert program.check([])             # k was 1 at the comparison
    assert not program.check([])         # the write by touch() counts


def test_blocks_survive_the_death_of_other_programs() -> None:
    d = {"k": 1}
    def make() -> GuardProgram:
        return GuardProgram([("watch", (d,), (("global", d, "k", 0), ("int_eq", 0, 1)))], 0)
    programs = [make() for _ in range(20)]
    for p in programs:
        assert p.check([])
    keep = programs[7]
    del programs, p
    gc.collect()
    d["k"] = 2
    assert not keep.check([])
    d["k"] = 1
    assert keep.check([])
    del keep
    d["k"] = 3                           # no watcher is left


def test_many_watched_dicts() -> None:
    dicts = [{"k": i} for i in range(500)]
    programs = [GuardProgram([("watch", (d,), (("global", d, "k", 0), ("int_eq", 0, i)))], 0) for i, d in enumerate(dicts)]
    for p in programs:
        assert p.check([])
    del programs[::2]
    for d in dicts:
        d["k"] = -1
    assert not any(p.check([]) for p in programs)


# --- the program as a whole -------------------------------------------------------------------------
def test_describe_failed_and_notes() -> None:
    d = {"k": 1}
    program = GuardProgram(
        [("type", 0, int, "L['x'] at model.py:3"), ("watch", (d,), (("global", d, "k", 1, "G['k']"),)), ("int_eq", 0, 3)], 1)
    assert len(program) == 5
    assert program.describe() == [
        (0, "type 0 int", "L['x'] at model.py:3"), (1, "watch 1 items, 1 instructions", None),
        (2, "  global <dict of 1> 'k' 1", "G['k']"), (3, "end", None), (4, "int_eq 0 3", None)]
    assert program.failed([3.0]) == (0, "L['x'] at model.py:3")
    assert program.failed([4]) == (4, None)
    assert program.failed([3]) is None
    with pytest.raises(ValueError, match="2 slots given; this program has n_slots=1"):
        program.check([1, 2])


BAD = [
    (("nope", 0), "unknown operation"), (("type", 0), "operands"), (("type", 0, 3), "expected a type"), ("type", "tuple"),
    (("is", 4, None), "a slot to read"), (("attr", 0, "x", 0), "numbered from n_slots"), (("attr", 0, 3, 1), "must be a str"),
    (("item", 0, -1, 1), "negative"), (("int_eq", 0, True), "expected an int"), (("float_eq", 0, 1), "expected a float"),
    (("global", [], "k", 1), "expected a dict"), (("call_eq", 3, 3), "expected a callable"), (("type", 0, int, 7), "note"),
    (("watch", (3,), ()), "__dict__"), (("watch", (), (("same", 0, 0),)), "relational"), (("shape", (0,), ("size", 0, 0)), "relation"),
    (("shape", (0,), ("size", 1, 0, "const", 1, "eq")), "no such slot"), (("shape", (0,), ("eq",)), "missing"),
    (("shape", (0,), ("const", 1, "const", 1, "eq", "const", 1)), "at the end"), (("shape", (0,), ("sin",)), "no such step"),
    (("shape", (0,), ("const", 1, "const", 1, "const", 1, "eq")), "at the end"), (("shape", (0,), ()), "steps"),
    (("watch", (), (("watch", (), ()),)), "nest"), (("tensor", 0, int, 0, 0, (), ()), "TensorBase"),
    (("tensor", 0, eager.Tensor, 0, 0, (1,), ()), "strides"), (("tensor", 0, eager.Tensor, 0, 0, (-3,), (1,)), "sizes must"),
    (("held_type", 3, 3), "expected a type"), (("function_is", len, "__code__", None), "expected a Python function"),
    (("function_is", _native.__class__, "__code__", None), "Python function"), (("function_is", lambda: 0, "__dict__", {}), "field"),
    (("dict_item", 0, [], 1), "unhashable"), (("distinct", [0]), "tuple of slots"), (("weak", 3, 1), "weak reference"),
]


@pytest.mark.parametrize("instruction, message", BAD, ids=[str(i) for i in range(len(BAD))])
def test_malformed_instructions_are_refused(instruction: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        GuardProgram([("type", 0, int), instruction], 1)


def test_temporaries_are_written_once_and_end_with_their_block() -> None:
    with pytest.raises(ValueError, match="written only once"):
        GuardProgram([("const", 1, 1), ("const", 2, 1)], 1)
    with pytest.raises(ValueError, match="written before"):
        GuardProgram([("watch", (), (("const", 1, 1),)), ("is", 1, 1)], 1)
    with pytest.raises(ValueError, match="written before"):
        GuardProgram([("is", 1, 1), ("const", 1, 1)], 1)


def test_more_slots_than_the_inline_buffer() -> None:
    n = 300
    program = GuardProgram([(("int_eq"), i, i) for i in range(n)] + [("const", i, n + i) for i in range(n)]
                           + [("int_eq", n + i, i) for i in range(n)], n)
    assert program.check(list(range(n)))
    assert program.failed([*range(n - 1), -1]) == (n - 1, None)


def test_blocks_with_more_temporaries_than_the_inline_buffer() -> None:
    dicts = [{"k": i} for i in range(150)]
    half = [tuple(op for i in part for op in (("global", dicts[i], "k", 2 * i + 1), ("int_eq", 2 * i + 1, i), ("const", i, 2 * i + 2)))
            for part in (range(100), range(100, 150))]
    program = GuardProgram([("const", "x", 1000), ("watch", tuple(dicts[:100]), half[0]), ("is", 0, None),
                            ("watch", tuple(dicts[100:]), half[1]), ("const", "y", 1001), ("str_eq", 1001, "y"), ("str_eq", 1000, "x")], 1)
    cf = _native.CompiledFunction(lambda: "original", lambda self, slots: None)
    cf.add_entry(GuardProgram([("watch", tuple(dicts[:100]), half[0])], 1), lambda: "compiled")
    for _ in range(3):
        assert program.check([None]) and cf() == "compiled" and program.failed([None]) is None
    for i in (0, 99, 100, 149):
        dicts[i]["k"] = -1
        assert not program.check([None])
        assert (cf() == "original") is (i < 100)
        dicts[i]["k"] = i
        assert program.check([None]) and not program.check([1]) and cf() == "compiled"
    marker = object()
    keep = GuardProgram([("watch", (), (("const", marker, 1), ("call_eq", lambda: 1, 2)))], 0)
    before = sys.getrefcount(marker)
    for _ in range(100):
        assert not keep.check([])
    assert sys.getrefcount(marker) == before


def test_checks_leave_no_references() -> None:
    value, marker = Point(), object()
    value.x = [marker]
    program = GuardProgram([("attr", 0, "x", 1), ("item", 1, 0, 2), ("is", 2, marker), ("no_attr", 0, "zz"), ("is", 2, None)], 1)
    before = sys.getrefcount(marker), sys.getrefcount(value), sys.getrefcount(value.x)
    for _ in range(1000):
        assert not program.check([value])
    assert (sys.getrefcount(marker), sys.getrefcount(value), sys.getrefcount(value.x)) == before


def test_programs_in_a_cycle_are_collected() -> None:
    holder = Point()
    holder.x = GuardProgram([("const", holder, 0), ("watch", (holder,), (("const", holder, 1),))], 0)
    assert holder.x.check([])
    ref = weakref.ref(holder)
    del holder
    gc.collect()
    assert ref() is None


def test_an_empty_program_is_true_and_holds() -> None:
    program = GuardProgram([], 0)
    assert program and len(program) == 0 and program.check([]) and program.describe() == []


LIVE_AT_EXIT = """
import gc, sys, threading
import dynamo._native as n
d = {"k": 1}
program = n.GuardProgram([("watch", (d, sys), (("global", d, "k", 0), ("int_eq", 0, 1)))], 0)
assert program.check([])
sys.kept = program                      # outlives the module
def f(x): return x
cf = n.CompiledFunction(f, lambda self, slots: None, n.Region(lambda *a: None))
cf.add_entry(n.GuardProgram([("watch", (globals(),), (("global", globals(), "d", 2),))], 2), f)
cf.cycle = cf
assert cf(1) == 1
class Late:
    def __del__(self, cf=cf, program=program):
        cf(2), program.check([])
sys.late = Late()
threading.Thread(target=n.enter_region, daemon=True).start()
token = n.enter_region()                # never left
print("done")
"""


def test_the_interpreter_ends_while_all_objects_live() -> None:
    done = subprocess.run([sys.executable, "-c", LIVE_AT_EXIT], capture_output=True, text=True, timeout=300,
                          cwd=Path(_native.__file__).parent.parent)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_bench_reports_nanoseconds() -> None:
    program = GuardProgram([tensor_guard(eager.zeros(2, 3, 4))], 1)
    times_ns = [program.bench([eager.zeros(2, 3, 4)], 10_000) for _ in range(5)]
    assert 0 < min(times_ns) < 10_000  # another process may run in the middle of one
    with pytest.raises(ValueError, match="guards must hold"):
        program.bench([1], 10)
