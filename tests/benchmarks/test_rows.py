"""Every program of a benchmark runs, and a measuring process answers its requests."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import eager as torch
from benchmarks import kernel_rows, model_rows
from benchmarks.kernels import Kernel, measured
from benchmarks.models import Model
from benchmarks.peers import PeerError, Runs, Worker, agreement
from benchmarks.rows import Row, chosen, draw, drawn


def test_a_drawn_number_has_no_dims() -> None:
    assert draw().shape == () and draw(2, 3).shape == (2, 3)


def test_names_of_rows_are_distinct_and_every_group_has_a_required_ratio() -> None:
    names = [r.name for r in kernel_rows.ROWS]
    assert len(set(names)) == len(names)
    assert {r.group for r in kernel_rows.ROWS} == set(kernel_rows.REQUIRED)


def test_every_row_names_its_bytes_or_its_operations() -> None:
    assert all((r.nbytes > 0) != (r.flops > 0) for r in kernel_rows.ROWS)


def test_rows_are_chosen_by_name_or_group() -> None:
    assert [r.name for r in chosen(kernel_rows.ROWS, "AdamW")] == ["AdamW step, 4M parameters"]
    assert {r.group for r in chosen(kernel_rows.ROWS, "attention")} == {"attention"}
    with pytest.raises(ValueError, match="no row contains 'nothing'"):
        chosen(kernel_rows.ROWS, "nothing")


@pytest.mark.parametrize("row", chosen(kernel_rows.ROWS, "lookup"), ids=lambda r: r.name)
def test_a_row_gives_a_result_and_the_gradients_it_names(row: Row) -> None:
    case = row.make()
    result = case.runner()()
    assert len(result) == 1 + len(case.wrt) if case.wrt else result.shape


def test_a_process_times_samples_and_reports_its_memory(tmp_path: Path) -> None:
    with Worker(sys.executable, "eager", 1, tmp_path) as worker:
        worker.request("open", row="embedding", suite="kernel_rows", mode="default")
        assert worker.request("warm", variant="eager")["s"] > 0
        assert worker.request("time", variant="eager", count=2)["s"] > 0
        (values,) = worker.request("sample", variant="eager")["values"]
        assert 0 < len(values) <= 4096
        peak = worker.request("peak")
        assert peak["mb"] >= peak["running_mb"] > 100  # the weight alone has 62 MB
        with pytest.raises(PeerError, match="KeyError"):
            worker.request("time", variant="compiled", count=1)
        assert worker.request("time", variant="eager", count=1)["s"] > 0  # an error leaves the process usable


def test_a_process_that_cannot_start_is_an_error_with_its_last_words(tmp_path: Path) -> None:
    with Worker(sys.executable, "no_such_library", 1, tmp_path) as worker, pytest.raises(PeerError):
        worker.request("open", row="embedding", suite="kernel_rows", mode="default")


def test_a_table_without_a_peer_has_no_verdict() -> None:
    (kernel,) = measured(torch_at=None, threads=[1], text="embedding, training", runs=1, mode="default")
    assert kernel.holds is None and kernel.ms["framejit"] > 0 and kernel.copies is not None


def test_ratios_are_medians_of_neighbouring_slices_by_run() -> None:
    runs = Runs({"a": [[2.0, 4.0, 90.0], [1.0, 1.0, 1.0]], "b": [[1.0, 2.0, 30.0], [1.0, 2.0, 2.0]]})
    assert runs.ratios("a", "b") == [2.0, 0.5]


def test_two_of_three_runs_decide() -> None:
    assert Kernel("k", "norm", 1, {}, ratios=[1.6, 1.0, 1.7], required=1.5).holds is True
    assert Kernel("k", "norm", 1, {}, ratios=[1.6, 1.0, 1.4], required=1.5).holds is False
    assert Kernel("k", "norm", 1, {}, ratios=[9.0], required=1.5, note="result 0 differs").holds is False


def test_results_that_differ_are_noted() -> None:
    assert agreement([[1.0, 2.0]], [[1.0, 2.0 + 1e-6]], 1e-4) == ""
    assert "differs by" in agreement([[1.0, 2.1]], [[1.0, 2.0]], 1e-4)
    assert "differs" in agreement([[float("nan")]], [[1.0]], 1e-4)
    assert agreement([[1.0]], [[1.0], [2.0]], 1e-4) == "1 results, peer 2"


def test_the_weights_of_a_row_are_the_same_in_every_process() -> None:
    first, second = (drawn(torch.nn.Linear(3, 4)) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))
    assert bool((drawn(torch.nn.LayerNorm(3)).weight == 1).all())


PUBLISHED = {"ResNet-50": 25.56e6, "BERT-base": 108.9e6, "ViT-B/16": 86.57e6, "GPT-2 124M": 124.4e6, "MLP-Mixer S/16": 18.5e6}


@pytest.mark.slow
@pytest.mark.parametrize("name", PUBLISHED)
def test_networks_have_the_published_number_of_parameters(name: str) -> None:
    (row,) = [r for r in model_rows.ROWS if r.name == name]
    count = sum(p.numel() for p in row.make().fn.parameters())
    assert abs(count - PUBLISHED[name]) < 0.01 * PUBLISHED[name]


def test_a_training_row_changes_the_weights_and_lowers_the_loss() -> None:
    (row,) = [r for r in model_rows.ROWS if r.name == "small GPT, training"]
    run = row.make().runner()
    losses = [float(run()) for _ in range(3)]
    assert losses[0] > losses[1] > losses[2]


def test_the_fastest_peer_decides_and_memory_counts() -> None:
    ratios = {"torch": [2.0, 2.0, 2.0], "openvino": [1.0, 1.2, 1.3], "torch eager": [0.1, 0.1, 0.1]}
    model = Model("m", "inference", 1, {"framejit": 1.0}, ratios, {"framejit": 90.0, "torch": 100.0, "torch eager": 50.0}, required=1.1)
    assert model.ratio == 1.2 and model.memory == 0.9 and model.misses == []
    training = Model("m", "training", 1, {"framejit": 1.0}, {"torch": [1.0]}, model.peak_mb, required=1.4)
    assert training.memory == 1.8 and training.misses == ["time", "memory"]
