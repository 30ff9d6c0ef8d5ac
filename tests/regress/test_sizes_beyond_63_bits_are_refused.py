"""Sizes whose bytes do not fit 63 bits: the count wrapped to a small number, and tensors reached beyond their memory."""
from __future__ import annotations

from typing import Any

import pytest

import eager as torch

ONE = torch.ones(1)
TOO_LARGE: list[Any] = [
    lambda: torch.empty(2**62), lambda: torch.zeros(2**32, 2**32), lambda: torch.full((2**32, 2**32), 1.0),
    lambda: torch.empty_strided((2, 2), (2**62, 2**62)), lambda: ONE.expand(2**62) + 1, lambda: torch.relu(ONE.expand(2**62)),
]  # fmt: skip


@pytest.mark.parametrize("make", TOO_LARGE)
def test_a_tensor_of_too_many_bytes_is_refused(make: Any) -> None:
    with pytest.raises(RuntimeError, match="Storage size calculation overflowed"):
        make()


def test_a_view_whose_end_wraps_round_is_out_of_bounds() -> None:
    with pytest.raises(RuntimeError, match="out of bounds for storage"):
        torch.as_strided(torch.ones(3), (2,), (2**62,))


def test_views_of_more_elements_than_32_bits_count() -> None:
    wide = ONE.expand(2**33)
    assert wide.shape == (2**33,) and wide.numel() == 2**33
    assert wide[2**32 + 5 :].shape == (2**32 - 5,) and wide[2**33 - 1].item() == 1
