"""Loops over operands of different memory orders run in tiles: values equal eager for all sizes."""

from __future__ import annotations

import pytest

import eager as torch
from eager.base.spec import fake_like
from fxir.trace.trace import trace
from inductor.loops.steps import Reorder
from inductor.lowering import lower
from inductor.plan.heuristics import schedule_step
from inductor.plan.schedule import Nest, schedule


@pytest.mark.parametrize("shape", [(64, 64), (96, 80), (128, 8), (16, 512), (33, 200), (63, 65), (1, 4096), (512, 512)])
def test_a_transposed_operand(shape: tuple[int, int]) -> None:
    x, y = torch.randn(*shape), torch.randn(*reversed(shape))
    made = torch.compile(lambda x, y: (x.t() + y, x.t().contiguous() * y), fullgraph=True, dynamic=False)(x, y)
    assert torch.equal(made[0], x.t() + y) and torch.equal(made[1], x.t() * y)


@pytest.mark.parametrize("dims", [(0, 2, 3, 1), (3, 0, 1, 2), (2, 1, 0, 3), (3, 2, 1, 0)])
def test_permuted_dims(dims: tuple[int, ...]) -> None:
    x = torch.randn(8, 16, 24, 32)
    assert torch.equal(torch.compile(lambda x: x.permute(dims).contiguous() + 1, fullgraph=True)(x), x.permute(dims) + 1)


def test_tiles_are_made_of_steps() -> None:
    def fn(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor]:
        return (x.t() + y,)

    made = schedule(lower(trace(fn, [fake_like(torch.zeros(96, 96))] * 2)))
    (step,) = made.steps
    assert isinstance(step, Nest)
    _, steps = schedule_step(step, {n: b.layout.dtype for n, b in made.program.buffers.items()}, {step.members[0].name})
    assert any(isinstance(s, Reorder) for s in steps)
