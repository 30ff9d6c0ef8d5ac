"""Updates at positions that data gives: they change the input itself, and a failed check leaves it as eager leaves it."""

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
from inductor.driver.compile import CHECK_BYTES


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


def _put(cache: Tensor, k: Tensor, i: Tensor) -> Tensor:
    cache[:, i] = k
    return cache.sum(0)


def _copy(cache: Tensor, k: Tensor, i: Tensor) -> None:
    cache.index_copy_(1, i, k)


def _add(cache: Tensor, k: Tensor, i: Tensor) -> Tensor:
    cache.index_add_(1, i, k)
    return cache @ cache.t()


def _twice(cache: Tensor, k: Tensor, i: Tensor) -> None:
    cache[:, i] = k
    cache[:, i + 1] = k * 2


def _after_an_update(cache: Tensor, k: Tensor, i: Tensor) -> None:
    cache.mul_(2)
    cache.index_add_(1, i, k)


def _gathered_update(cache: Tensor, k: Tensor, i: Tensor) -> None:
    cache.add_(k[:, :1] + k[0][i].sum())


def _looked_up(cache: Tensor, k: Tensor, i: Tensor) -> None:
    cache[:, i] = k[:, i]


def _reads_itself(cache: Tensor, k: Tensor, i: Tensor) -> None:
    cache[:, i] = cache[:, i.flip(0)] + k


def _old_value_is_read(cache: Tensor, k: Tensor, i: Tensor) -> Tensor:
    old = cache * 1.5
    cache[:, i] = k
    return old.cumsum(1) + cache


def _positions_are_computed(cache: Tensor, k: Tensor, i: Tensor) -> None:
    cache[:, (i.cumsum(0) + k.argmax(1)[0])] = k


IN_PLACE = (_put, _copy, _add, _twice, _after_an_update, _gathered_update, _looked_up)
COPIED = (_reads_itself, _positions_are_computed)
RIGHT = (_old_value_is_read,)


def _run(fn: Callable[..., Any], positions: list[int], shape: tuple[int, int] = (3, 7)) -> tuple[list[np.ndarray], bool]:
    """The inputs and the result after a call, and whether it raised."""
    torch.manual_seed(0)
    cache, k, i = torch.randn(*shape), torch.randn(shape[0], len(positions)), torch.tensor(positions)
    out, has_failed = None, False
    try:
        out = fn(cache, k, i)
    except (IndexError, RuntimeError):
        has_failed = True
    return [t.numpy().copy() for t in (cache, k, i, out) if t is not None], has_failed


@pytest.mark.parametrize("fn", [*IN_PLACE, *COPIED, *RIGHT], ids=lambda f: f.__name__.strip("_"))
def test_updates_equal_eager_where_checks_hold_and_where_they_fail(fn: Callable[..., Any], entries: list[Entry]) -> None:
    compiled = torch.compile(fn, dynamic=False)
    for positions in ([1, 0, 1], [0, 1, 2], [0, 9, 2], [1, 1, -9]):
        (expected, is_error), (found, has_failed) = _run(fn, positions), _run(compiled, positions)
        assert is_error == has_failed
        for a, b in zip(expected, found, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
    notes = "\n".join(note for e in entries for note in e.notes())
    assert ("not in place" in notes) == (fn in COPIED) or fn in RIGHT, notes


def test_an_update_of_a_cache_makes_no_new_memory(entries: list[Entry]) -> None:
    compiled = torch.compile(_copy)
    compiled(torch.zeros(8, 4096), torch.ones(8, 1), torch.tensor([5]))
    (entry,) = entries
    assert entry.plan.arena_bytes == CHECK_BYTES and not entry.plan.allocations


@pytest.mark.parametrize("seed", range(30))
def test_random_updates_at_positions(seed: int) -> None:
    """Two squares are updated, whole and at positions, by values that read either of them; some positions are out of range."""
    choose = random.Random(seed)
    lines = []
    for _ in range(choose.randint(1, 4)):
        t, u = choose.choice("ab"), choose.choice("ab")
        value = choose.choice([f"{u} * 0.5", f"{u}[i] + 1", f"{u}.flip(0)", f"{u}.t() * 2", "torch.ones(6, 6)"])
        lines.append(choose.choice([
            f"{t}[i] = {value}", f"{t}.index_add_(0, i, {value})", f"{t}.index_copy_(0, i, {value})", f"{t}[:, i] = {value}",
            f"{t}.add_({value})", f"{t}.copy_({value})", f"r = r + {t}[i].sum() + {u}.mean()",
        ]))  # fmt: skip
    body = "\n".join(f"    {line}" for line in lines)
    scope: dict[str, Any] = {"torch": torch}
    exec(f"def f(a, b, i, r):\n{body}\n    return r + a.sum()", scope)
    compiled = torch.compile(scope["f"], dynamic=False)
    for positions in ([3, 0, 5, 1, 4, 2], [0, 2, 2, 5, -1, 3], [0, 1, 2, 3, 4, 6]):
        runs = []
        for fn in (scope["f"], compiled):
            torch.manual_seed(seed)
            args = [torch.randn(6, 6), torch.randn(6, 6), torch.tensor(positions), torch.zeros(())]
            try:
                out = [fn(*args)]
            except (IndexError, RuntimeError):
                out = []
            runs.append([t.numpy().copy() for t in (*args, *out)])
        for x, y in zip(*runs, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-4, err_msg=body)
