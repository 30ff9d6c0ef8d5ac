"""Graphs that overwrite their inputs: results are stored into the input's memory where the order of reads allows it."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import eager as torch
from eager import Tensor
from inductor.artifact.cache import Entry
from inductor.driver import backend


@pytest.fixture
def entries(monkeypatch: pytest.MonkeyPatch) -> list[Entry]:
    """The artifact of each graph that the backend compiles during the test."""
    found: list[Entry] = []
    compile_part = backend._compile_part

    def spy(*args: Any) -> Any:
        made = compile_part(*args)
        found.append(made.artifact.entry)
        return made

    monkeypatch.setattr(backend, "_compile_part", spy)
    return found


def _pair(fn: Callable[..., object], *shapes: tuple[int, ...]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Inputs and results after an eager and after a compiled call."""
    torch.manual_seed(0)
    given = [torch.randn(*s) for s in shapes]
    runs = []
    for f in (fn, torch.compile(fn, fullgraph=True)):
        args = [t.clone() for t in given]
        out = f(*args)
        results = out if isinstance(out, tuple) else () if out is None else (out,)
        runs.append([t.numpy().copy() for t in (*args, *results) if isinstance(t, Tensor)])
    return runs[0], runs[1]


def _add(x: Tensor, g: Tensor) -> None:
    x.add_(g)


def _adam(p: Tensor, g: Tensor, m: Tensor, v: Tensor) -> None:
    m.mul_(0.9).add_(g, alpha=0.1)
    v.mul_(0.99).addcmul_(g, g, value=0.01)
    p.addcdiv_(m, v.abs().sqrt().add_(1e-8), value=-1e-2)


def _softmax(x: Tensor) -> None:
    x.copy_(torch.softmax(x, -1))


def _center_rows(x: Tensor) -> None:
    x.sub_(x.mean(1, keepdim=True))


def _center_columns(x: Tensor) -> None:
    x.sub_(x.mean(0))


def _result_is_read_after(x: Tensor, y: Tensor) -> Tensor:
    x.mul_(y)
    return (x + 1).sum()


def _transpose(x: Tensor) -> None:
    x.copy_(x.t().clone())


def _flip(x: Tensor) -> None:
    x.copy_(x.flip(0))


def _shift(x: Tensor) -> None:
    x[1:].add_(x[:-1].clone())


def _swap(x: Tensor, y: Tensor) -> None:
    a = x.clone()
    x.copy_(y)
    y.copy_(a)


def _old_value_is_returned(x: Tensor) -> Tensor:
    old = x * 2
    x.add_(1)
    return old.flip(0) + x


def _new_value_is_returned(x: Tensor) -> Tensor:
    y = x + 1
    x.copy_(y)
    return y


def _read_by_a_later_product(x: Tensor, y: Tensor) -> Tensor:
    old = x @ y
    x.mul_(2)
    return old @ x


def _two_inputs_one_value(x: Tensor, y: Tensor) -> None:
    v = x * y
    x.copy_(v)
    y.copy_(v)


def _old_value_is_read_by_many(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    """More results than one kernel joins into one loop."""
    old = x.clone()
    x.add_(1)
    return tuple(old * y + k for k in range(80))


IN_PLACE = (_add, _adam, _softmax, _center_rows, _result_is_read_after)
COPIED = (_transpose, _flip)
RIGHT = (
    _old_value_is_read_by_many,
    _new_value_is_returned,
    _center_columns,
    _shift,
    _swap,
    _old_value_is_returned,
    _read_by_a_later_product,
    _two_inputs_one_value,
)


def _shapes(fn: Callable[..., object]) -> list[tuple[int, int]]:
    return [(40, 40)] * fn.__code__.co_argcount


@pytest.mark.parametrize("fn", [*IN_PLACE, *COPIED, *RIGHT], ids=lambda f: f.__name__.strip("_"))
def test_inputs_and_results_equal_eager(fn: Callable[..., object], entries: list[Entry]) -> None:
    eager, compiled = _pair(fn, *_shapes(fn))
    notes = "\n".join(note for e in entries for note in e.notes())
    for a, b in zip(eager, compiled, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-4)
    if fn in IN_PLACE:
        assert "not in place" not in notes
    if fn in COPIED:
        assert "not in place" in notes


def test_an_update_makes_no_new_memory(entries: list[Entry]) -> None:
    compiled = torch.compile(_adam)
    args = [torch.rand(1 << 12) for _ in range(4)]
    compiled(*args)
    (entry,) = entries
    plan = entry.plan
    assert plan.arena_bytes == 0 and not plan.allocations and not plan.outputs


def test_a_failed_call_writes_what_eager_writes() -> None:
    def f(x: Tensor, i: Tensor) -> None:
        x.add_(1)
        x.index_add_(0, i, torch.ones(2, 4))

    ends = []
    for g in (f, torch.compile(f)):
        x = torch.zeros(3, 4)
        g(x, torch.tensor([0, 1]))
        with pytest.raises((IndexError, RuntimeError)):
            g(x, torch.tensor([0, 7]))
        ends.append(x.tolist())
    assert ends[0] == ends[1]


def test_version_counters_grow_as_in_eager() -> None:
    x, g = torch.ones(5), torch.ones(5)
    torch.compile(_add)(x, g)
    assert x._version == 1 and g._version == 0


@pytest.mark.parametrize("seed", range(40))
def test_random_updates_of_views(seed: int) -> None:
    """Three squares are updated by values that read any of them, straight, transposed, flipped, shifted or reduced."""
    choose = random.Random(seed)

    def read(names: list[str]) -> str:
        t = choose.choice(names)
        return choose.choice([
            t, t, f"{t}.t()", f"{t}.flip(0)", f"{t}.roll(1, 1)", f"{t}.mean(0)", f"{t}.mean(1, keepdim=True)", f"{t}.cumsum(1)",
            f"({t} @ {choose.choice(names)} * 0.1)",
        ])  # fmt: skip

    names, lines, results = ["a", "b", "c"], [], []
    for k in range(choose.randint(1, 5)):
        value = f"{choose.choice('abc')} * 0.2 + {read(names)} * 0.5 + {read(names)}"
        target = choose.choice(["a", "b", "c"])
        form = choose.choice(["add_", "copy_", "mul_", "rows", "new"])
        if form == "new":
            lines.append(f"v{k} = {value}")
            names.append(f"v{k}")
            results.append(f"v{k}")
        elif form == "rows":
            lines.append(f"{target}[1:].add_(({value})[:-1])" if "mean" not in value else f"{target}.add_({value})")
        else:
            lines.append(f"{target}.{form}({value})")
    body = "\n".join(f"    {line}" for line in [*lines, f"return ({''.join(f'{r}, ' for r in results)})"])
    scope: dict[str, Callable[..., object]] = {}
    exec(f"def f(a, b, c):\n{body}", scope)
    eager, compiled = _pair(scope["f"], (6, 6), (6, 6), (6, 6))
    for a, b in zip(eager, compiled, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4, err_msg=body)
