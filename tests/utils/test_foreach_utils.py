"""Groups of tensors by device and dtype, which optimizers of other packages use."""

from __future__ import annotations

import pytest

import eager as torch
from eager.utils import _foreach_utils as foreach


def test_groups_keep_order_and_places() -> None:
    a, b, c = torch.ones(1), torch.ones(2, dtype=torch.float64), torch.ones(3)
    step = torch.tensor(1.0)
    groups = foreach._group_tensors_by_device_and_dtype([[a, b, c], [step, None, step], []], with_indices=True)
    cpu = torch.device("cpu")
    assert list(groups) == [(cpu, torch.float32), (cpu, torch.float64)]
    (ones, steps, empty), places = groups[cpu, torch.float32]
    assert ones[0] is a and ones[1] is c and steps[1] is step and empty == [] and places == [0, 2]
    assert groups[cpu, torch.float64] == ([[b], [None], []], [1])
    assert foreach._group_tensors_by_device_and_dtype([[a]]) == {(cpu, torch.float32): ([[a]], [])}


@pytest.mark.parametrize("lists", [
    [], [[None]], [[torch.ones(1)], [torch.ones(1), torch.ones(1)]], [[torch.ones(1)] * 2, [torch.ones(1)]],
    [[torch.ones(1).half()], [torch.ones(1).int()]],
])  # fmt: skip
def test_tensors_that_cannot_be_grouped_raise(lists) -> None:
    with pytest.raises(RuntimeError):
        foreach._group_tensors_by_device_and_dtype(lists)


def test_foreach_support_depends_on_class_and_device() -> None:
    cpu = torch.device("cpu")
    assert foreach._has_foreach_support([torch.ones(1), None], cpu)
    assert not foreach._has_foreach_support([torch.nn.Parameter(torch.ones(1))], cpu)
    assert not foreach._has_foreach_support([torch.ones(1)], torch.device("meta"))
