"""How a graph's functions are spread over source units."""

from __future__ import annotations

from typing import Any

import pytest

import eager as torch
import inductor.driver.compile as compiling
from inductor.artifact.format import SourceUnit
from inductor.cpp import units
from inductor.cpp.units import Code, spread

HEAD = "typedef long i64;\n"


def _functions(count: int, chars: int) -> list[Code]:
    return [
        Code(f"/* {i} */\nFJ_LOCAL void k{i}(char** bufs) {{\n  /* {'x' * chars} */\n}}\n", (f"void k{i}(char** bufs);",),
             frozenset({f"k{i}"}), ("struct Task;", f"struct Task{i % 2};"))
        for i in range(count)
    ]  # fmt: skip


def test_a_small_graph_is_one_unit_whose_functions_are_static() -> None:
    (unit,) = spread(HEAD, _functions(3, 100), "calls", 8, lambda called: " ".join(sorted(called)))
    assert unit.name == "graph" and "#undef FJ_LOCAL" not in unit.text and unit.text.endswith("callsk0 k1 k2")
    assert "struct Task;\nstruct Task0;\nstruct Task1;\n/* 0 */\n" in unit.text and unit.text.count("struct") == 3


def test_every_function_is_defined_once_and_declared_in_every_unit() -> None:
    found = spread(HEAD, _functions(10, units.LEAST_CHARS // 2), "calls", 4, lambda called: f"/* forms of {sorted(called)} */")
    assert [u.name for u in found] == ["graph0", "graph1", "graph2", "graph3"]
    for i in range(10):
        assert all(f"\nvoid k{i}(char** bufs);\n" in u.text for u in found)
        here = [f"\nFJ_LOCAL void k{i}(char** bufs) {{" in u.text for u in found]
        assert sum(here) == 1 and [f"'k{i}'" in u.text for u in found] == here
    assert all("#undef FJ_LOCAL\n#define FJ_LOCAL\n" in u.text and u.text.count("struct Task;\n") == 1 for u in found)
    assert [u.text.count("calls") for u in found] == [0, 0, 0, 1]
    sizes = [len(u.text) for u in found]
    assert max(sizes) < 2 * min(sizes)


def test_a_unit_never_grows_past_what_a_compiler_is_given_time_for() -> None:
    found = spread(HEAD, _functions(20, units.MOST_CHARS // 4), "", workers=1)
    assert len(found) == 6 and all(len(u.text) < 1.5 * units.MOST_CHARS for u in found)


@pytest.mark.parametrize("rows", [7, 40_000])  # kernels called directly, and from the thread pool
def test_a_graph_in_several_units_computes_what_eager_does(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(units, "LEAST_CHARS", 200)
    monkeypatch.setattr(units, "MOST_CHARS", 400)
    made: list[int] = []

    def counted(*args: Any) -> list[SourceUnit]:
        found = spread(*args)
        made.append(len(found))
        return found

    monkeypatch.setattr(compiling, "spread", counted)

    def f(x: torch.Tensor, w: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        h = torch.relu(x @ w)
        h = h - h.mean(1, keepdim=True)
        h = h.cumsum(0).index_add(0, i, h[: len(i)])
        return torch.softmax(h, 1).sum() + h.std()

    torch.manual_seed(0)
    x, w = torch.randn(rows, 6, requires_grad=True), torch.randn(6, 9, requires_grad=True)
    i = torch.tensor([2, 0, 2])
    want = f(x, w, i)
    want_grads = torch.autograd.grad(want, (x, w))
    got = torch.compile(f)(x, w, i)
    torch.testing.assert_close(got, want, rtol=2e-4, atol=1e-3)
    for a, b in zip(torch.autograd.grad(got, (x, w)), want_grads, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-3)
    assert len(made) == 2 and min(made) > 1
