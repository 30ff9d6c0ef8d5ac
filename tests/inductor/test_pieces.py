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
from inductor.cpp.pieces import pieces
from inductor.ir import definitions as ir


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
    i = ir.axis(1, size)
    condition = ir.make_op(name, (ir.index(i), ir.const(at, dtypes.int64)), dtypes.bool_)
    a = ir.load("a", i - at, dtypes.float32, condition)
    return ir.make_op("where", (condition, a, ir.const(1.0, dtypes.float32)), dtypes.float32)


def _truth(name: str, i: int, at: int) -> bool:
    return bool({"lt": i < at, "le": i <= at, "gt": i > at, "ge": i >= at, "eq": i == at, "ne": i != at}[name])


@pytest.mark.parametrize(("name", "at"), list(itertools.product(["lt", "le", "gt", "ge", "eq", "ne"], [0, 1, 20, 46, 47, 48])))
def test_every_piece_takes_the_side_that_the_condition_takes_there(name: str, at: int) -> None:
    size = 48
    found = pieces([_where(at, name, size)], 1, size)
    sides = [_truth(name, i, at) for i in range(size)]
    if len(set(sides)) == 1:
        assert found == ()  # nothing turns
        return
    covered = [i for piece in found for i in range(piece.start, piece.stop)]
    assert covered == list(range(size))
    for piece in found:
        assert {sides[i] for i in range(piece.start, piece.stop)} == {isinstance(piece.values[0], ir.Load)}
        assert all(not isinstance(v, ir.Load) or v.mask is None for v in piece.values)


def test_lines_where_positions_divide_the_axis() -> None:
    i = ir.axis(0, 384)
    condition = ir.make_op("ge", (ir.index(i), ir.const(256, dtypes.int64)), dtypes.bool_)
    read = ir.load("a", E.mod(i, 32) + 4096 * E.floordiv(i, 32), dtypes.float32, condition)
    low, high = pieces([ir.make_op("where", (condition, read, ir.const(0.0, dtypes.float32)), dtypes.float32)], 0, 384)
    assert (low.start, low.stop, low.line) == (0, 256, 0)
    assert (high.start, high.stop, high.line) == (256, 384, 32)
    assert str(high.values[0]) == "a[at0 + 4096*run0]"


def test_small_or_many_pieces_are_left_whole() -> None:
    assert pieces([_where(4, "lt", 8)], 1, 8) == ()
    many = [_where(k * 10, "lt", 100) for k in range(1, 9)]
    assert pieces(many, 1, 100) == ()
