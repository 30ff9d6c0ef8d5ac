"""Python code that torch.compile captures whole: each function in one graph, with eager's results for every set of
arguments.

A function is called compiled with all its arguments in turn, so that the facts on which the capture relies are guarded.
"""

from __future__ import annotations

import copy
import enum
import json
import math
import os.path
import random
import re
import struct
import textwrap
import weakref
from collections.abc import Callable
from fractions import Fraction
from pathlib import PurePosixPath
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest

import dynamo
import eager as torch
from dynamo.report.errors import UnsupportedUnderFullgraph
from tests.dynamo.support import same


class Name(str):
    def twice(self) -> str:
        return self + self

    def __str__(self) -> str:
        return "a name"


class Count(int):
    def half(self) -> int:
        return self // 2

    def __index__(self) -> int:
        raise AssertionError("Python does not call __index__ of an int")


class Rate(float):
    def __new__(cls, value: Any) -> Rate:
        made = super().__new__(cls, value)
        made.unit = "1/s"  # type: ignore[attr-defined]
        return made


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


PATTERN = re.compile(r"layer\.(\d+)")
HELD = SimpleNamespace(size=3)
OTHER = SimpleNamespace(size=4)


class Referent:
    size = 3


REFERENT = Referent()
REFERENCE = weakref.ref(REFERENT)


def _x() -> Any:
    return torch.arange(4.0)


def _named(x: Any, s: Any) -> Any:
    return x + len(s.twice()), s.upper(), s[0], f"{s} {s!r} {s:>4}", s + "x", "y" + s, s == "ab", {s: 1}, list(s), bool(s), type(s)


def _counted(x: Any, n: Any) -> Any:
    return x * n, x + n.half(), x[n], n + 1, 1 + n, n < 2, -n, [5, 6, 7, 8][n], int(n), float(n), str(n), {n: 0}


def _made(x: Any) -> Any:
    rate = Rate("1.5")
    return x * rate, rate, rate.unit, type(rate), Name(12), Count("7")  # type: ignore[attr-defined]


CASES: list[tuple[Callable[..., Any], list[tuple[Any, ...]]]] = [
    (_named, [(Name("ab"),), (Name("ab"),), (Name("cd"),)]),
    (_counted, [(Count(2),), (Count(2),), (Count(1),)]),
    (_made, [()]),
    (lambda x, r: x * r, [(Rate(1.5),), (Rate(2.5),)]),
    (lambda x, n: (x + n, n + x, x[n], x < n, n < 2), [(Level.LOW,), (Level.HIGH,)]),
    (lambda x, s: x + int(PATTERN.search(s).group(1)), [("layer.12.w",), ("layer.3",)]),
    (lambda x, s: (x, re.sub("a", "bb", s), re.split(",", s), [m.start() for m in re.finditer("a", s)]), [("a,a",), ("ba",)]),
    (lambda x: x * float(Fraction(1, 3) + 1) + Fraction(3, 2).numerator, [()]),
    (lambda x, p: (x, PurePosixPath(p) / "b", os.path.join(p, "c"), PurePosixPath(p).suffix), [("a.x",), ("d",)]),
    (lambda x, s: (x, json.loads(s), json.dumps({"k": [1, s]}), textwrap.dedent(s), struct.calcsize("i")), [('{"a": [1]}',), ("[2]",)]),
    (lambda x: (x, int.from_bytes(b"\x01\x02", "big"), float.fromhex("0x1p1"), "ab".translate(str.maketrans("a", "b"))), [()]),
    (lambda x: x + REFERENCE().size, [()]),
    (lambda x: (x, MappingProxyType({"a": x})["a"], MappingProxyType({"b": 1}), list(Level.__members__), Level.__members__["LOW"]), [()]),
    (lambda x: (x + getattr(math.sqrt, "no_such_name", 2), hasattr(len, "__annotations__")), [()]),
    (lambda x: x + 1 if torch.__version__ and torch.__version__ >= "2.0" else x, [()]),
    (lambda x, i: (x[i] + 1, x[None, i], x.reshape(2, 2)[..., i - i], x.reshape(2, 2)[i - i, 1]),
     [(torch.tensor(2),), (torch.tensor(-3),)]),
    (lambda x, i: x * x[i].item() + x.sum().item(), [(torch.tensor(2),), (torch.tensor(1),)]),
]


def _results(fn: Callable[..., Any], calls: list[tuple[Any, ...]]) -> list[Any]:
    return [fn(_x(), *copy.copy(args)) for args in calls]


@pytest.mark.parametrize(("fn", "calls"), CASES, ids=range(len(CASES)))
def test_a_function_is_captured_in_one_graph(fn: Callable[..., Any], calls: list[tuple[Any, ...]]) -> None:
    expected = _results(fn, calls)
    found = _results(torch.compile(fn, backend="eager", fullgraph=True), calls)
    assert len(found) == len(expected)
    for mine, theirs in zip(found, expected, strict=True):
        same(mine, theirs)
        assert repr(mine) == repr(theirs)


def test_an_item_at_a_data_dependent_index_is_a_view() -> None:
    def item(x: Any, i: Any) -> Any:
        y = x * 2
        return y, y[i], y[:, i]

    x, i = torch.arange(6.0).reshape(2, 3), torch.tensor(1)
    y, row, column = torch.compile(item, backend="eager", fullgraph=True)(x, i)
    row += 100
    assert y[1].tolist() == [106.0, 108.0, 110.0]
    assert column.tolist() == [2.0, 108.0]


@pytest.mark.parametrize("write", ["of the tensor", "of the item"])
def test_writes_are_visible_through_an_item_at_a_data_dependent_index(write: str) -> None:
    def item(x: Any, i: Any) -> Any:
        y = x * 2
        row = y[i]
        (y if write == "of the tensor" else row).add_(1)
        return y + 0, row * 2

    x, i = torch.arange(6.0).reshape(2, 3), torch.tensor(1)
    same(torch.compile(item, backend="eager")(x, i), item(x, i))


def test_items_are_set_at_data_dependent_indices() -> None:
    def put(cache: Any, i: Any, value: Any) -> Any:
        cache[:, i] = value
        cache[i] = 7.0
        cache[..., i, None] = value.unsqueeze(1)
        return cache.sum()

    for k in (1, -1, 0):
        mine, theirs = torch.zeros(3, 3), torch.zeros(3, 3)
        args = torch.tensor(k), torch.arange(1.0, 4.0)
        same(torch.compile(put, backend="eager", fullgraph=True)(mine, *args), put(theirs, *args))
        same(mine, theirs)


def test_an_item_out_of_range_raises_as_eager_does() -> None:
    with pytest.raises(IndexError, match="out of"):
        torch.compile(lambda x, i: x[i], backend="eager", fullgraph=True)(_x(), torch.tensor(7))


def test_a_referent_is_not_kept_alive_by_compiled_code() -> None:
    held = Referent()
    reference = weakref.ref(held)

    @torch.compile(backend="eager")
    def read(x: Any) -> Any:
        found = reference()
        return x + 1 if found is None else x + found.size

    assert read(torch.ones(1)).item() == 4
    del held
    assert reference() is None
    assert read(torch.ones(1)).item() == 2


def test_regions_of_the_profiler_do_not_end_the_graph() -> None:
    def run(x: Any) -> Any:
        with torch.profiler.record_function("region"):
            return x + 1

    same(torch.compile(run, backend="eager", fullgraph=True)(_x()), _x() + 1)

    def broken(x: Any) -> Any:
        with torch.profiler.record_function("region"):
            y = x + 1
            torch._dynamo.graph_break()
            return y * 2

    same(torch.compile(broken, backend="eager")(_x()), broken(_x()))


# --- blocks in which breaks are errors -------------------------------------------------------------------------


def _allowed(error: bool) -> Callable[[Any], Any]:
    def run(x: Any) -> Any:
        with torch._dynamo.error_on_graph_break(error):
            x = x + 1
            torch._dynamo.graph_break()
        return x + 1

    return run


def test_blocks_that_allow_or_forbid_breaks_are_captured() -> None:
    def quiet(x: Any) -> Any:
        with torch._dynamo.error_on_graph_break(True):
            x = x + 1
        return x + 1

    assert dynamo.explain(quiet, _x()).graph_count == 1
    same(torch.compile(_allowed(False), backend="eager")(_x()), _x() + 2)
    with pytest.raises(UnsupportedUnderFullgraph, match=r"error_on_graph_break\(True\)"):
        torch.compile(_allowed(True), backend="eager")(_x())
    with torch._dynamo.error_on_graph_break(True):
        same(torch.compile(_allowed(False), backend="eager")(_x()), _x() + 2)
    with pytest.raises(UnsupportedUnderFullgraph, match="fullgraph"):
        torch.compile(_allowed(False), backend="eager", fullgraph=True)(_x())


def test_a_block_holds_for_callees_and_ends_after_a_break_within() -> None:
    def callee(x: Any) -> Any:
        torch._dynamo.graph_break()
        return x + 1

    def run(x: Any) -> Any:
        with torch._dynamo.error_on_graph_break(True), torch._dynamo.error_on_graph_break(False):
            x = callee(x)
        torch._dynamo.graph_break()
        return torch._dynamo.error_on_graph_break(True)(lambda y: y * 2)(x)

    compiled = torch.compile(run, backend="eager")
    for _ in range(2):
        same(compiled(_x()), (_x() + 1) * 2)
    same(torch.compile(callee, backend="eager")(_x()), _x() + 1)  # no setting remains after the block
    with pytest.raises(UnsupportedUnderFullgraph):
        torch.compile(torch._dynamo.error_on_graph_break(True)(callee), backend="eager")(_x())


# --- numbers from Python's generator ---------------------------------------------------------------------------


def _scaled(x: Any) -> Any:
    return x * random.random() + random.uniform(1, 2), random.randint(3, 9), x + random.randrange(5)


def _drawn_around_a_break(x: Any) -> Any:
    y = x.sin() * random.random()
    torch._dynamo.graph_break()
    return y * random.random(), random.random()


def _out_of_range(x: Any, i: Any) -> Any:
    return x[i] * random.random()


def _branching(x: Any) -> Any:
    return x + 1 if random.random() < 0.5 else x - 1


@pytest.mark.parametrize(("fn", "graphs"), [(_scaled, 1), (_drawn_around_a_break, 2), (_branching, 2)])
def test_draws_are_made_again_at_each_call(fn: Callable[..., Any], graphs: int) -> None:
    runs = []
    for run in (fn, torch.compile(fn, backend="aot_eager")):
        random.seed(0)
        runs.append(([run(_x()) for _ in range(4)], random.getstate()))
    same(runs[1][0], runs[0][0])
    assert runs[0][1] == runs[1][1]
    assert dynamo.explain(fn, _x()).graph_count == graphs


def test_a_call_that_raises_draws_once() -> None:
    states = []
    for run in (_out_of_range, torch.compile(_out_of_range, backend="aot_eager")):
        random.seed(0)
        with pytest.raises(IndexError):
            run(_x(), torch.tensor([7]))
        states.append(random.getstate())
    assert states[0] == states[1]
