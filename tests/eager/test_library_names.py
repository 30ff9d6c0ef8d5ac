"""Names outside torch's documentation that model libraries import, and what they mean here."""
from __future__ import annotations

import numpy as np
import pytest

import eager as torch
from eager._subclasses.fake_tensor import is_fake
from eager.distributions.utils import _standard_normal, _sum_rightmost
from eager.fake import fake_like
from eager.serialization import DEFAULT_PROTOCOL
from eager.utils.data._utils.collate import np_str_obj_array_pattern


def test_torch_in_torch() -> None:
    assert torch.torch is torch


def test_meshes_of_devices_can_be_named_but_not_made() -> None:
    with pytest.raises(NotImplementedError, match=r"distributed\.device_mesh\.DeviceMesh"):
        torch.distributed.device_mesh.DeviceMesh("cpu", [0])
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        torch.distributed.nothing  # noqa: B018


def test_streams_are_those_of_cuda() -> None:
    assert torch.Stream is torch.cuda.Stream and torch.Event is torch.cuda.Event


def test_fakes_are_told_from_tensors() -> None:
    x = torch.ones(2)
    assert is_fake(fake_like(x)) and not is_fake(x) and not is_fake(2)


def test_collate_knows_text() -> None:
    assert np_str_obj_array_pattern.search(np.array(["a"]).dtype.str)
    assert not np_str_obj_array_pattern.search(np.ones(1).dtype.str)


def test_draws_and_sums_of_distributions() -> None:
    torch.manual_seed(3)
    drawn = _standard_normal((2, 3), torch.float64, torch.device("cpu"))
    torch.manual_seed(3)
    assert torch.distributions.Normal(torch.zeros(2, 3).double(), 1.0).rsample().tolist() == drawn.tolist()
    assert _sum_rightmost(torch.ones(2, 3, 4), 2).tolist() == [12.0, 12.0] and DEFAULT_PROTOCOL == 2
