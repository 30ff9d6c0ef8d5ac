"""Our errors are at most twice torch's stored errors, for a fast selection of the rows of the accuracy table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import eager as torch
from tests.accuracy import reductions
from tests.accuracy.table import MODES, SEPARATOR, Row, stored_figures

STORED = stored_figures()["reductions"]
SIZES = {"1e+06", "2e+06", "3e+06", "5e+05"}
LAYOUTS = {"columns", "outer and inner", "middle"}
OPERATIONS = {
    "sum", "mean", "prod", "norm", "var", "std", "cumsum", "cumprod", "batch_norm and statistics", "layer_norm and gradient",
    "instance_norm and gradient",
    "add of a row and gradient", "huber_loss and gradient", "index_add and gradient", "global average pool and gradient",
}  # fmt: skip


def _selected(case: reductions.Case) -> bool:
    operation, _, layout, size = case.labels
    return operation in OPERATIONS and size in SIZES and (layout in LAYOUTS or layout.isdigit() or "x" in layout)


CASES = [case for case in reductions.cases() if _selected(case)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.key)
def test_error_is_within_twice_torchs(case: reductions.Case, mode: str) -> None:
    row = Row(tuple(case.key.split(SEPARATOR)), mode, reductions.error(torch, case, mode), STORED[case.key])
    assert not row.is_worse(reductions.FLOOR), row


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dim", [0, None])
def test_twenty_million_ones_add_up(mode: str, dim: int | None) -> None:
    def total(x: torch.Tensor) -> torch.Tensor:
        return x.sum() if dim is None else x.sum(dim)

    fn = torch.compile(total) if mode == "compiled" else total
    assert fn(torch.ones(20_000_000, 1)).item() == 20_000_000


@pytest.mark.parametrize(("shape", "dim"), [((60, 30_000), 1), ((30_000, 60), 0), ((5, 3_000, 10), (0, 1)), ((70_001,), 0)], ids=str)
def test_compiled_means_are_divided_before_they_are_rounded(shape: tuple[int, ...], dim: Any) -> None:
    x = (np.random.default_rng(0).random(shape) + 100).astype(np.float32)
    found = torch.compile(lambda t: t.mean(dim))(torch.from_numpy(x)).numpy()
    error_ulp = np.abs(found - x.astype(np.float64).mean(dim)) / np.spacing(np.float32(100))
    assert error_ulp.max() < 0.7


@pytest.mark.parametrize("n", [8, 70])
def test_sums_over_two_dims_of_unknown_size(n: int) -> None:
    """The inner dim may be shorter than the lanes of a sum: then no block of it is whole."""
    x = np.random.default_rng(0).random((16_385, 3, n)).astype(np.float32)
    found = torch.compile(lambda t: t.sum((0, 2)), dynamic=True)(torch.from_numpy(x)).numpy()
    want = x.astype(np.float64).sum((0, 2))
    assert (np.abs(found - want) / np.spacing(want.astype(np.float32))).max() < 1


@pytest.mark.parametrize("mode", MODES)
def test_infinite_sums_are_infinite_and_not_nan(mode: str) -> None:
    def sums(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.sum(0), x.sum(1), x.sum(), (-x).sum(0)

    x = torch.from_numpy(np.full((300, 300), 3e38, np.float32))
    found = torch.compile(sums)(x) if mode == "compiled" else sums(x)
    assert [t.flatten()[0].item() for t in found] == [float("inf")] * 3 + [-float("inf")]


@pytest.mark.parametrize("mode", MODES)
def test_running_products_do_not_overflow_before_their_results(mode: str) -> None:
    def run(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.cumprod(0), x.prod(0)

    x = torch.tensor([1e30, 1e30, 1e-30, 1e-30, 2.0])
    running, whole = torch.compile(run)(x) if mode == "compiled" else run(x)
    assert running[-1].item() == whole.item() == 2.0


@pytest.mark.parametrize("mode", MODES)
def test_variance_of_rows_near_one_hundred(mode: str) -> None:
    x = np.random.default_rng(0).normal(100, 1, (10_000, 3)).astype(np.float32)
    fn = torch.compile(lambda t: t.var(0)) if mode == "compiled" else lambda t: t.var(0)
    exact = x.astype(np.float64).var(0, ddof=1)
    assert np.abs(fn(torch.from_numpy(x)).numpy() - exact).max() < 1e-6
