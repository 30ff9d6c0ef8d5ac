"""Loops over operands of different memory orders run in tiles: values equal eager for all sizes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import eager as torch
from eager.base.dtypes import dtype
from eager.base.spec import fake_like
from fxir.trace.trace import trace
from inductor.base.choice import DEFAULT
from inductor.cpp.transposes import transposition
from inductor.loops.steps import CacheRead, Mark, Reorder
from inductor.loops.tree import Loop, walk
from inductor.lowering import lower
from inductor.plan import kernels
from inductor.plan.heuristics import schedule_step
from inductor.plan.schedule import Nest, schedule


@pytest.mark.parametrize("of", [torch.float32, torch.float64, torch.int64, torch.bfloat16])
@pytest.mark.parametrize("shape", [(64, 72), (65, 80), (71, 96), (80, 65), (89, 79), (64, 1000)])
def test_tiles_that_are_transposed_in_registers(shape: tuple[int, int], of: torch.dtype) -> None:
    """Copies and sums of transposed operands, with and without rows and columns that fill no tile, also in batches."""

    def fn(x: torch.Tensor, y: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.t() + y, x.t().contiguous(), b.transpose(1, 2) * y, b.transpose(1, 2).contiguous()

    x, y, b = (torch.randint(-99, 99, s).to(of) for s in (shape, shape[::-1], (3, *shape)))
    found = torch.compile(fn, fullgraph=True, dynamic=False)(x, y, b)
    for a, e in zip(found, fn(x, y, b), strict=True):
        assert torch.equal(a, e)


@pytest.mark.parametrize("of", [torch.float32, torch.float64])
def test_copies_larger_than_the_caches_go_past_them(of: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the rows of the result begin between two cache lines."""
    choice = DEFAULT._replace(streamed=48 * 96 * 4)
    monkeypatch.setattr(kernels, "DEFAULT", choice)

    def fn(x: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.t().contiguous(), b.transpose(1, 2).contiguous(), x[:, :32].t().contiguous()

    x, b = torch.randn(96, 48, dtype=of), torch.randn(2, 80, 72, dtype=of)
    for a, e in zip(torch.compile(fn, fullgraph=True, dynamic=False)(x, b), fn(x, b), strict=True):
        assert torch.equal(a, e)
    steps, dtypes = _steps(lambda x, y: (x.t().contiguous(), x[:, :32].t().contiguous()), 96, 48)
    made = [schedule_step(step, dtypes, {step.members[0].name}, None, choice)[1] for step in steps]
    kinds = [[s.kind for s in schedule if isinstance(s, Mark)] for schedule in made]
    assert sorted(kinds, key=lambda marks: "streamed" in marks) == [["vector", "parallel"], ["streamed", "parallel"]]


@pytest.mark.parametrize("rows, length", [(512, 16), (208, 13), (336, 7)])
def test_tiles_run_along_the_lines_that_they_read(rows: int, length: int) -> None:
    (step,), dtypes = _steps(lambda x, y: (x.t().contiguous(),), 96, rows)
    kernel, _ = schedule_step(step, dtypes, {step.members[0].name})
    outer, run, *tile = [x for x in walk(kernel.body) if isinstance(x, Loop)]
    assert (outer.kind, run.extent, [x.extent for x in tile]) == ("parallel", length, [16, 16])
    assert outer.extent * run.extent == 6 * rows // 16


def test_the_reads_of_a_tile_are_cached() -> None:
    (step,), dtypes = _steps(lambda x, y: (x.t() + y,), 96, 99)
    kernel, steps = schedule_step(step, dtypes, {step.members[0].name})
    reads = [s for s in steps if isinstance(s, CacheRead)]
    tiles = [x for x in walk(kernel.body) if isinstance(x, Loop) and transposition(x) is not None]
    assert len(reads) == 1 and len(tiles) == 1


@pytest.mark.parametrize("shape", [(64, 64), (96, 80), (128, 8), (16, 512), (33, 200), (63, 65), (1, 4096), (512, 512)])
def test_a_transposed_operand(shape: tuple[int, int]) -> None:
    x, y = torch.randn(*shape), torch.randn(*reversed(shape))
    made = torch.compile(lambda x, y: (x.t() + y, x.t().contiguous() * y), fullgraph=True, dynamic=False)(x, y)
    assert torch.equal(made[0], x.t() + y) and torch.equal(made[1], x.t() * y)


@pytest.mark.parametrize("dims", [(0, 2, 3, 1), (3, 0, 1, 2), (2, 1, 0, 3), (3, 2, 1, 0)])
def test_permuted_dims(dims: tuple[int, ...]) -> None:
    x = torch.randn(8, 16, 24, 32)
    assert torch.equal(torch.compile(lambda x: x.permute(dims).contiguous() + 1, fullgraph=True)(x), x.permute(dims) + 1)


def _steps(fn: Callable[..., object], rows: int, columns: int) -> tuple[list[Nest], dict[str, dtype]]:
    made = schedule(lower(trace(fn, [fake_like(torch.zeros(rows, columns)), fake_like(torch.zeros(columns, rows))])))
    nests = [s for s in made.steps if isinstance(s, Nest)]
    assert len(nests) == len(made.steps)
    return nests, {n: b.layout.dtype for n, b in made.program.buffers.items()}


def test_tiles_are_made_of_steps() -> None:
    (step,), dtypes = _steps(lambda x, y: (x.t() + y,), 96, 96)
    _, steps = schedule_step(step, dtypes, {step.members[0].name})
    assert any(isinstance(s, Reorder) for s in steps)
