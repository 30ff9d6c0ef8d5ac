"""Code patterns of model libraries: results, and capture in one graph.

Each program runs eagerly and compiled, before and after each change of its state.
"""

from __future__ import annotations

import collections
import copy
import dataclasses
import inspect
import keyword
import math
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import dynamo
import eager as torch
from dynamo.compilation.region import all_regions
from eager import Tensor
from tests.dynamo.support import same


def agree(fn: Callable[..., Any], *changes: Callable[[], Any], graphs: int = 1) -> None:
    """Assert that compiled fn agrees with eager, now and after each change, and is captured in this number of graphs.
    """
    x = torch.arange(3.0)
    assert dynamo.explain(fn)(x).graph_count == graphs
    compiled = torch.compile(fn)
    same(fn(x), compiled(x))
    for change in changes:
        change()
        same(fn(x), compiled(x))
        same(fn(x), compiled(x))


# --- functions -------------------------------------------------------------------------------------------------


def test_attributes_of_functions_and_their_code() -> None:
    def helper(x: Any, a: int = 1, *, k: int = 2) -> Any:
        return x

    def fn(x: Tensor) -> Any:
        names = helper.__code__.co_varnames
        at = names.index("a") if "a" in names else -1
        return x * at + helper.__defaults__[0] + helper.__kwdefaults__["k"], names[: helper.__code__.co_argcount]

    agree(
        fn,
        lambda: setattr(helper, "__defaults__", (5,)),
        lambda: helper.__kwdefaults__.update(k=7),
        lambda: setattr(helper, "__kwdefaults__", {"k": 9}),
        lambda: setattr(helper, "__code__", (lambda x, b, *, k: x).__code__),
    )


def test_signatures() -> None:
    def chunk(x: Any, y: Any = 1, *rest: Any, flag: bool = False) -> Any:
        return x

    class Layer:
        def step(self, x: Any) -> Any:
            return x

    layer = Layer()

    def fn(x: Tensor) -> Any:
        parameters = inspect.signature(chunk).parameters
        plain = [n for n, p in parameters.items() if p.default is inspect.Parameter.empty]
        kinds = [p.kind for p in parameters.values()]
        return x * len(parameters) + len(inspect.signature(layer.step).parameters), plain, kinds, "flag" in parameters

    agree(
        fn,
        lambda: setattr(chunk, "__defaults__", None),
        lambda: setattr(chunk, "__code__", (lambda a, flag: a).__code__),
        lambda: setattr(Layer, "step", lambda self, x, y: x),
    )


def test_bound_methods_of_c_that_are_held() -> None:
    known, words = {"a": 1}, []
    find, add = known.get, words.append
    held = {"find": find, "add": add}

    def fn(x: Tensor) -> Any:
        held["add"]("w")
        return x * held["find"]("a", 5), keyword.iskeyword("for"), keyword.iskeyword("x"), len(words)

    x = torch.ones(2)
    same(fn(x), (x, True, False, 1))
    assert dynamo.explain(fn)(x).graph_count == 1
    compiled = torch.compile(fn)
    known.clear()
    before = len(words)
    same(compiled(x), (x * 5, True, False, before + 1))
    assert len(words) == before + 1


def test_deep_copies() -> None:
    shared = [1, 2]
    data = {"a": shared, "b": (shared, "t"), "c": ("constant", 1)}

    def fn(x: Tensor) -> Any:
        new = copy.deepcopy(data)
        new["a"].append(3)
        return x * len(new["b"][0]), new, new["b"][0] is new["a"], new["c"] is data["c"], new["a"] is not shared

    agree(fn, lambda: shared.append(7))


# --- the environment -------------------------------------------------------------------------------------------


def test_environment_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "A_VARIABLE_OF_THIS_TEST"
    monkeypatch.delenv(name, raising=False)

    def fn(x: Tensor) -> Any:
        if name in os.environ:
            x = x + float(os.environ[name])
        return x * (2 if os.environ.get(name, "0") == "1" else 3), os.getenv(name), os.getenv(name, "none")

    agree(fn, lambda: monkeypatch.setenv(name, "1"), lambda: monkeypatch.setenv(name, "4"), lambda: monkeypatch.delenv(name))


def test_a_module_imported_by_the_compiled_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "imported_late.py").write_text("import eager\nconstant = eager.ones(2)\nruns = []\nruns.append(1)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "imported_late", raising=False)

    def fn(x: Tensor) -> Any:
        import imported_late  # type: ignore[import-not-found]

        return x * imported_late.constant, len(imported_late.runs)

    def without(x: Tensor) -> Any:
        try:
            import no_such_module_anywhere  # type: ignore[import-not-found]
        except ImportError:
            return x + 1
        return no_such_module_anywhere

    x = torch.ones(2)
    explained = dynamo.explain(fn)(x)
    assert explained.graph_count == 1 and not explained.breaks
    compiled = torch.compile(fn)
    same(compiled(x), (x, 1))
    monkeypatch.setattr(sys.modules["imported_late"], "constant", x * 5)
    same(compiled(x), (x * 5, 1))
    same(torch.compile(without)(x), x + 1)


def test_an_import_after_an_effect_waits_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "imported_later.py").write_text("import os\nseen = os.__dict__['a_list_of_this_test'][:]\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "imported_later", raising=False)
    items: list[int] = []
    monkeypatch.setattr(os, "a_list_of_this_test", items, raising=False)

    def fn(x: Tensor) -> Any:
        items.append(1)
        import imported_later  # type: ignore[import-not-found]

        return x + 1, imported_later.seen

    same(torch.compile(fn)(torch.ones(1)), (torch.ones(1) + 1, [1]))


# --- objects ---------------------------------------------------------------------------------------------------


class Config:
    """Attribute names are first looked up in a map."""

    aliases: dict[str, str] = {"depth": "layers"}  # noqa: RUF012

    def __init__(self) -> None:
        self.layers = 3
        self.width = 2

    def __getattribute__(self, name: str) -> Any:
        if name != "aliases" and name in super().__getattribute__("aliases"):
            name = super().__getattribute__("aliases")[name]
        if super().__getattribute__("__dict__").get("frozen") is not None:
            return -1
        return super().__getattribute__(name)

    def __getattr__(self, name: str) -> Any:
        return len(name)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(super().__getattribute__("aliases").get(name, name), value)


def test_getattribute_looks_names_up_in_a_map(monkeypatch: pytest.MonkeyPatch) -> None:
    config = Config()

    def fn(x: Tensor) -> Any:
        config.depth = 4
        return x * config.layers + getattr(config, "width", 0) + config.missing

    agree(
        fn,
        lambda: setattr(config, "width", 8),
        lambda: monkeypatch.setattr(Config, "aliases", {"depth": "width"}),
        lambda: config.__dict__.update(other=1),
        lambda: config.__dict__.update(frozen=True),
    )


def test_dict_of_an_object_follows_its_attributes() -> None:
    class Plain:
        pass

    def fn(x: Tensor) -> Any:
        new = Plain()
        held = new.__dict__
        new.a = x + 1
        held["b"] = 2
        return held["a"] * new.b, list(held), len(held), new.__dict__ is held, new

    agree(fn)


def test_generator_left_in_a_try_block() -> None:
    class Layers(Sequence[int]):
        def __len__(self) -> int:
            return 5

        def __getitem__(self, i: int) -> int:  # type: ignore[override]
            if i >= 5:
                raise IndexError(i)
            return i * 10

    def fn(x: Tensor) -> Any:
        for kind, layer in zip(["a", "b"], Layers(), strict=False):
            x = x + layer + len(kind)
        return x

    agree(fn)


def test_a_generator_with_a_visible_end_is_kept() -> None:
    log: list[Any] = []

    def numbers() -> Any:
        try:
            yield from (1, 2, 3)
        finally:
            log.append("closed")

    def fn(x: Tensor) -> Any:
        for _, n in zip([0], numbers(), strict=False):
            x = x + n
        return x, list(log)

    torch.compile(fn)(torch.ones(1))
    assert log == ["closed"]


# --- containers ------------------------------------------------------------------------------------------------


class Output(collections.OrderedDict):  # type: ignore[type-arg]
    """Fields are attributes and, where they are not None, items."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            value = self.__dict__.get(field.name)
            if value is not None:
                self[field.name] = value

    def __setattr__(self, name: str, value: Any) -> None:
        if name in {field.name for field in dataclasses.fields(self)} and value is not None:  # type: ignore[arg-type]
            super().__setitem__(name, value)
        super().__setattr__(name, value)

    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(key, value)
        super().__setattr__(key, value)

    def __getitem__(self, key: Any) -> Any:
        return dict(self.items())[key] if isinstance(key, str) else self.to_tuple()[key]

    def to_tuple(self) -> tuple[Any, ...]:
        return tuple(self[key] for key in self.keys())  # noqa: SIM118 - as libraries do


@dataclasses.dataclass
class Result(Output):
    last: Any = None
    states: Any = None
    extra: Any = None


def test_model_outputs_made_in_the_compiled_function() -> None:
    def fn(x: Tensor) -> Any:
        out = Result(last=x + 1, extra=(x, 2))
        out["states"] = x * 2
        out.last = out[0] + out["states"]
        return out, out.to_tuple(), len(out), list(out), "extra" in out, {**out}

    agree(fn)
    made = torch.compile(fn)(torch.ones(2))[0]
    assert type(made) is Result
    assert list(made) == ["last", "extra", "states"]
    assert made.last is made["last"] and list(made.__dict__) == ["last", "states", "extra"]


def test_a_model_output_survives_a_break() -> None:
    def fn(x: Tensor) -> Any:
        out = Result(last=x + 1)
        sys.stdout.write("")
        out["states"] = x * 2
        return out

    agree(fn, graphs=2)


class Registry(dict):  # type: ignore[type-arg]
    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(str(key), value)

    def get(self, key: Any) -> Any:  # type: ignore[override]
        return super().get(str(key)) or {}

    def __missing__(self, key: Any) -> int:
        return 5


def test_a_dict_of_a_user_class(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = Registry()
    registry[1] = {"a": 2}

    def fn(x: Tensor) -> Any:
        total = len(registry.get(1)) + len(registry.get(7)) + registry["none"] + ("1" in registry) + len(registry)
        return x * total, [k for k in registry], dict(registry), bool(registry)  # noqa: C416

    agree(
        fn,
        lambda: registry.__setitem__(7, {"b": 1, "c": 2}),
        lambda: registry.pop("1"),
        lambda: monkeypatch.setattr(Registry, "__missing__", lambda self, key: 50),
        lambda: monkeypatch.setattr(Registry, "__iter__", lambda self: iter(["x"]), raising=False),
    )


def test_writes_to_a_dict_of_a_user_class() -> None:
    def fn(x: Tensor) -> Any:
        new = Registry(first=x)
        new[2] = x + 1
        new.tag = "t"  # type: ignore[attr-defined]
        shared.update(a=x)
        shared[3] = 4
        return new, new.tag, list(shared), new == {"first": x} if len(new) == 1 else new is new  # type: ignore[attr-defined]

    shared = Registry()
    agree(fn)
    assert list(shared) == ["a", "3"]


def test_an_ordered_dict_of_a_user_class_is_reordered() -> None:
    class Ordered(collections.OrderedDict):  # type: ignore[type-arg]
        pass

    order = Ordered(a=1, b=2)

    def fn(x: Tensor) -> Any:
        return x + 1, list(order), list(order.items()), order == Ordered(a=1, b=2)

    agree(fn, lambda: order.move_to_end("a"), lambda: order.__setitem__("c", 3))


class Doubled(list):  # type: ignore[type-arg]
    def __iter__(self) -> Any:
        return (v * 2 for v in list.__iter__(self))

    def __getitem__(self, i: Any) -> Any:
        found = super().__getitem__(i)
        return found if isinstance(i, slice) else found + 100


def test_a_list_of_a_user_class() -> None:
    held = Doubled([3, 4])

    def fn(x: Tensor) -> Any:
        new = Doubled([1, 2])
        new.append(x)
        new.extend((4,))
        new += [5]
        held.append(5)
        total = sum(held) + held[2] + len(held)
        held.pop()
        return new, [1, *new], [1] + new, new[1:], total + x, held.index(3), list(reversed(new))  # noqa: RUF005

    agree(fn, lambda: held.append(9), lambda: held.__setitem__(0, 3.5) or held.append(3))
    assert type(torch.compile(fn)(torch.ones(1))[0]) is Doubled


Pair = collections.namedtuple("Pair", "u v")


class Point(Pair):
    __slots__ = ()

    def norm(self) -> Any:
        return self.u * self.u + self.v


class Tagged(tuple):  # type: ignore[type-arg]
    def __new__(cls, *items: Any) -> Tagged:
        return super().__new__(cls, items)


def test_tuples_of_user_classes() -> None:
    held = [Point(2, 3)]

    def fn(x: Tensor) -> Any:
        point, tagged = Point(x, x + 1), Tagged(1, x)
        tagged.tag = "t"  # type: ignore[attr-defined]
        a, b = tagged
        return point, point.norm() * held[0].norm() + a + b, tagged, tagged + (1,), tagged.tag, held[0] == (2, 3)  # type: ignore[attr-defined]  # noqa: RUF005

    agree(fn, lambda: held.__setitem__(0, Point(5, 6)))


def test_subclasses_are_listed_at_each_call() -> None:
    """A library that searches for its backends among the subclasses of a base."""

    class Base:
        factor = 1

    class First(Base):
        factor = 2

    def f(x):
        for kind in Base.__subclasses__():
            x = x * kind.factor
        return x

    compiled = dynamo.compile(f, backend="eager", fullgraph=True)
    assert torch.equal(compiled(torch.ones(2)), torch.full((2,), 2.0))

    class Second(Base):
        factor = 3

    assert torch.equal(compiled(torch.ones(2)), torch.full((2,), 6.0)), Second


def test_a_module_of_this_project_is_imported_at_capture_after_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x, log):
        log.append(1)
        import eager.hub

        return x + 1, eager.hub.__name__

    monkeypatch.delitem(sys.modules, "eager.hub", raising=False)
    log: list[int] = []
    compiled = dynamo.compile(f, backend="eager", fullgraph=True)
    assert compiled(torch.ones(2), log)[1] == "eager.hub"
    assert log == [1]


def test_classes_of_functions_and_methods_are_constants() -> None:
    """A library that reports which of its functions and classes are used."""

    class Point:
        def method(self) -> str:
            return self.method.__class__.__name__

    def fn(x):
        torch._C._log_api_usage_once(f"{fn.__module__}.{fn.__class__.__name__}")  # type: ignore[attr-defined]
        made = lambda: 1  # noqa: E731
        if torch.onnx.is_in_onnx_export():
            return x
        return x + 1, fn.__class__ is made.__class__, made.__class__.__name__, Point().method()

    agree(fn)


def test_products_of_sizes_that_vary() -> None:
    def fn(x):
        torch._assert(x.ndim == 2, "a matrix, please")  # type: ignore[attr-defined]
        return x.reshape(math.prod(x.shape)) * math.prod(iter([2, 0.5, x.shape[0]]), start=3) + math.prod([])

    compiled = dynamo.compile(fn, backend="eager", fullgraph=True)
    for n in range(2, 7):
        same(fn(torch.ones(n, 2)), compiled(torch.ones(n, 2)))


def test_a_product_of_unsupported_operands_raises() -> None:
    def fn(x):
        try:
            return x + math.prod(5)  # type: ignore[call-overload]
        except TypeError as error:
            return x + 1, str(error)

    agree(fn)


def test_an_unread_message_does_not_fix_a_size() -> None:
    def fn(x):
        torch._assert(x.dim() == 2, f"a matrix, not {x.shape}, 100% of {x.shape[0]!r} rows of {x.shape[1:]} and {x.shape[0]!s}")
        return x + 1

    compiled = dynamo.compile(fn, backend="eager", fullgraph=True)
    for n in (2, 3, 4, 5):
        same(fn(torch.ones(n, 2)), compiled(torch.ones(n, 2)))
    (region,) = (r for r in all_regions() if any(c is compiled for c, _ in r.function_sites))
    assert len(region.statistics.graphs) == 2  # of one size, and of any
    with pytest.raises(AssertionError, match=r"a matrix, not torch.Size\(\[7\]\), 100% of 7 rows of torch.Size\(\[\]\) and 7"):
        compiled(torch.ones(7))


def test_texts_of_sizes_are_results_and_keys() -> None:
    def fn(x, seen):
        text = f"{x.shape[0]}%s rows: {(x.shape[0], 'a', 1.5)}, {(x.shape[0],)} of {x.shape[0] * 2:3d} {x.shape}"
        seen.append(text)
        return x + 1, text, f"<{text}>", {f"{x.shape[0]}": 1}, text.upper(), f"{x.shape[0]}" == "4", [f"{text!r}", text + "."]

    compiled = dynamo.compile(fn, backend="eager", fullgraph=True)
    for n in (2, 3, 4, 5, 4):
        seen: tuple[list[str], list[str]] = ([], [])
        same(fn(torch.ones(n, 2), seen[0]), compiled(torch.ones(n, 2), seen[1]))
        assert seen[0] == seen[1]


def test_a_text_of_a_size_is_a_result_without_fixing_it() -> None:
    def fn(x):
        return x + 1, f"{x.shape[0]} of {x.shape}"

    compiled = dynamo.compile(fn, backend="eager", fullgraph=True)
    for n in (2, 3, 4, 5):
        same(fn(torch.ones(n, 2)), compiled(torch.ones(n, 2)))
    (region,) = (r for r in all_regions() if any(c is compiled for c, _ in r.function_sites))
    assert len(region.statistics.graphs) == 2


def test_variables_named_like_builtins_do_not_affect_the_generated_code() -> None:
    def fn(x: Any, iter: Any, list: Any, dict: Any, zip: Any, slice: Any, super: Any, setattr: Any, type: Any, map: Any) -> Any:
        box = SimpleNamespace(n=0)
        box.n = iter
        done, pairs, part = reversed([]), {"a": x + list}, x[dict:]
        more = [pairs, {1, 2}, (y for y in ())]
        print(end="")  # the graph breaks here, and all of this is handed on
        more.append(box.n + zip + slice + super + setattr + type + map)
        return more[0]["a"] + more[-1], part, done, sorted(more[1]), box

    args = (torch.ones(3), 1, 2, 1, 3, 4, 5, 6, 7, 8)
    found, expected = dynamo.compile(fn, backend="eager")(*args), fn(*args)
    same(found[:2], expected[:2])
    assert [*map(type, found)] == [*map(type, expected)]
    assert [*found[2]] == [] and found[3:] == expected[3:]


def test_exhausted_iterators_keep_their_kind() -> None:
    def fn(x: Any) -> Any:
        made = [iter([]), iter(()), reversed([]), reversed(()), iter({}), iter({}.values()), iter({}.items())]
        for one in made:
            next(one, None)
        return x + 1, made

    assert [*map(type, dynamo.compile(fn, backend="eager")(torch.ones(2))[1])] == [*map(type, fn(torch.ones(2))[1])]
