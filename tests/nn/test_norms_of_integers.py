"""Norms refuse tensors that are not floating, as in torch, before they round a value to the input's dtype."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import eager as torch
from eager.nn import functional as F  # noqa: N812 - torch's name

NORMS: dict[str, Callable[[Any], Any]] = {
    "batch_norm in training": lambda x: F.batch_norm(x, None, None, training=True),
    "batch_norm by running statistics": lambda x: F.batch_norm(x, torch.zeros(3), torch.ones(3)),
    "instance_norm": F.instance_norm,
    "instance_norm by running statistics": lambda x: F.instance_norm(x, torch.zeros(3), torch.ones(3), use_input_stats=False),
    "layer_norm": lambda x: F.layer_norm(x, (4,)),
    "group_norm": lambda x: F.group_norm(x, 3),
}


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.complex64])
@pytest.mark.parametrize("name", NORMS)
def test_a_norm_of_a_tensor_that_is_not_floating_is_refused(name: str, dtype: torch.dtype) -> None:
    with pytest.raises(NotImplementedError, match=r"_norm.* not implemented for '(Long|Bool|ComplexFloat)'"):
        NORMS[name](torch.ones(2, 3, 4).to(dtype))
