"""Loops cut where conditions on their axis turn: the same numbers as eager's, and no condition left in the loop."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

import eager as torch
from eager.base import dtypes
from eager.nn import functional as F
from fxir.expr import rules as E
from inductor.ir import definitions as ir
from inductor.loops.apply import apply
from inductor.loops.build import build
from inductor.loops.steps import Cut
from inductor.loops.tree import Kernel, Loop, Store
from inductor.plan.heuristics import cuts, line


def _numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape).astype("float32"))


def _heads(x: torch.Tensor, n: int) -> torch.Tensor:
    return x.view(x.shape[0], x.shape[1], n, -1).transpose(1, 2)


def _joined_heads(x: torch.Tensor) -> torch.Tensor:
    q, k, v = x.chunk(3, dim=-1)
    return (_heads(q, 4) * 2 + _heads(k, 4).sin() * _heads(v, 4)).sum()


PROGRAMS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "cat of two": lambda x: torch.cat([x, x * 2], dim=-1) + 1,
    "cat of four": lambda x: torch.cat([x[..., :1], x.exp(), x[..., 3:], -x], dim=-1),
    "cat of turned parts": lambda x: torch.cat([x.transpose(0, 1), x.transpose(0, 1).flip(-1)], dim=-1) * 3,
    "padded": lambda x: F.pad(x, (1, 1)) * 2,
    "padded widely": lambda x: F.pad(x.sin(), (20, 7), value=2.0) + 1,
    "padded in front": lambda x: F.pad(x, (0, 0, 3, 0), value=-1.0).relu(),
    "rolled": lambda x: torch.roll(x, 5, -1) - x,
    "part written": lambda x: (x * 2).slice_scatter(x[..., 2:18].exp(), -1, 2, 18),
    "one column written": lambda x: (x * 2).select_scatter(x[..., 0], -1, 7) + x,
    "two columns compared": lambda x: torch.where(torch.arange(x.shape[-1]) == 5, x, -x) + 1,
    "up to here": lambda x: torch.where(torch.arange(x.shape[-1]) <= 8, x, x * 2).cos(),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_same_numbers_as_eager(name: str) -> None:
    fn = PROGRAMS[name]
    compiled = torch.compile(fn, fullgraph=True, dynamic=False)
    for shape in [(5, 40), (3, 5, 33), (2, 3, 64), (33, 20)]:
        x = _numbers(*shape)
        torch.testing.assert_close(compiled(x), fn(x))


@pytest.mark.parametrize("width", [96, 192, 100 * 12])
def test_gradients_of_parts_of_one_tensor(width: int) -> None:
    results = []
    for fn in (_joined_heads, torch.compile(_joined_heads, fullgraph=True, dynamic=False)):
        x = _numbers(2, 6, width).requires_grad_()
        fn(x).backward()
        results.append(x.grad)
    torch.testing.assert_close(results[1], results[0])


def _where(at: int, name: str, size: int) -> ir.Value:
    i = ir.axis(0, size)
    condition = ir.make_op(name, (ir.index(i), ir.const(at, dtypes.int64)), dtypes.bool_)
    a = ir.load("a", i - at, dtypes.float32, condition)
    return ir.make_op("where", (condition, a, ir.const(1.0, dtypes.float32)), dtypes.float32)


def _pieces(value: ir.Value, size: int) -> list[tuple[Loop, ir.Value]]:
    """The loops of a buffer of `size` elements after the cuts that `cuts` finds, and the value that each stores."""
    kernel = build([ir.Buffer("b", ir.row_major((size,), dtypes.float32), ir.Pointwise((size,), value))], {"a": dtypes.float32})
    (loop,) = kernel.body
    assert isinstance(loop, Loop)
    at = cuts([store.value for store in loop.body if isinstance(store, Store)], loop.axis, size)
    if not at:
        return []
    cut = apply(kernel, (Cut(loop.axis.name, at),))
    assert isinstance(cut, Kernel)
    return [(piece, piece.body[0].value) for piece in cut.body if isinstance(piece, Loop) and isinstance(piece.body[0], Store)]


def _truth(name: str, i: int, at: int) -> bool:
    return bool({"lt": i < at, "le": i <= at, "gt": i > at, "ge": i >= at, "eq": i == at, "ne": i != at}[name])


@pytest.mark.parametrize(("name", "at"), list(itertools.product(["lt", "le", "gt", "ge", "eq", "ne"], [0, 2, 20, 45, 47, 48])))
def test_every_piece_takes_the_side_that_the_condition_takes_there(name: str, at: int) -> None:
    size = 48
    sides = [_truth(name, i, at) for i in range(size)]
    runs = [(side, len(list(same))) for side, same in itertools.groupby(sides)]
    found = _pieces(_where(at, name, size), size)
    if len(runs) == 1:
        assert found == []  # no condition turns
        return
    # A piece of one element is a statement without a loop.
    assert [piece.extent for piece, _ in found] == [n for _, n in runs if n > 1]
    assert [isinstance(value, ir.Load) for _, value in found] == [side for side, n in runs if n > 1]
    assert all(not isinstance(v, ir.Load) or v.mask is None for _, value in found for v in ir.walk([value]))


def test_lines_where_positions_divide_the_axis() -> None:
    i = ir.axis(0, 384)
    condition = ir.make_op("ge", (ir.index(i), ir.const(256, dtypes.int64)), dtypes.bool_)
    read = ir.load("a", E.mod(i, 32) + 4096 * E.floordiv(i, 32), dtypes.float32, condition)
    (low, one), (high, other) = _pieces(ir.make_op("where", (condition, read, ir.const(0.0, dtypes.float32)), dtypes.float32), 384)
    assert (low.extent, line([one], low.axis, low.extent)) == (256, 0)
    assert (high.extent, line([other], high.axis, high.extent)) == (128, 32)


def test_small_or_many_pieces_are_left_whole() -> None:
    assert cuts([_where(4, "lt", 8)], ir.axis(0, 8), 8) == ()
    many = [_where(k * 10, "lt", 100) for k in range(1, 9)]
    assert cuts(many, ir.axis(0, 100), 100) == ()
