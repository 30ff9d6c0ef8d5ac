"""Values, shapes and layouts of arguments that eager once took, or refused, where torch does otherwise."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import eager as torch
from eager.nn import functional as F  # noqa: N812 - torch's name

AT = torch.zeros(1, 2, 2, dtype=torch.int64)
REFUSED: dict[str, tuple[type[Exception], Callable[[], Any]]] = {
    "indices of another shape": (RuntimeError, lambda: F.max_unpool2d(torch.ones(1, 2, 2), AT[:, :, :1], 2)),
    "indices of another dtype": (RuntimeError, lambda: F.max_unpool2d(torch.ones(1, 2, 2), AT.int(), 2)),
    "a size that no window reaches": (ValueError, lambda: F.max_unpool2d(torch.ones(1, 2, 2), AT, 2, output_size=(9, 9))),
    "a batch of another size": (RuntimeError, lambda: F.affine_grid(torch.ones(2, 2, 3), (3, 1, 2, 2), align_corners=False)),
    "a name as an index": (TypeError, lambda: torch.ones(3)["a"]),
    "tables of three dims": (ValueError, lambda: F.embedding_bag(AT[0], torch.ones(2, 2, 2))),
    "offsets of two dims": (ValueError, lambda: F.embedding_bag(AT[0, 0], torch.ones(2, 2), AT[0])),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_the_error_is_of_torchs_class(case: str) -> None:
    error, call = REFUSED[case]
    with pytest.raises(error) as caught:
        call()
    assert type(caught.value) is error


def test_sort_refuses_an_out_over_part_of_its_input() -> None:
    x, at = torch.tensor([3.0, 1.0, 2.0, 5.0]), torch.empty(3, dtype=torch.int64)
    with pytest.raises(RuntimeError, match="some elements of the input tensor and the written-to tensor refer to a single memory"):
        torch.sort(x[:3], out=(x[1:], at))
    torch.sort(x[:3], out=(x[:3], at))
    assert x.tolist() == [1.0, 2.0, 3.0, 5.0]


def test_fills_write_the_elements_that_an_expanded_tensor_shares() -> None:
    for write in (lambda x: x.masked_fill_(torch.tensor([True, False, False]).unsqueeze(1), 7.0), lambda x: x.index_fill_(
            0, torch.tensor([0]), 7.0)):  # fmt: skip
        x = torch.ones(1, 4)
        with pytest.warns(UserWarning, match="on expanded tensors is deprecated"):
            write(x.expand(3, 4))
        assert x.tolist() == [[7.0] * 4]


def test_a_draw_has_a_gradient_of_zero() -> None:
    x = torch.full((3,), 0.5, requires_grad=True)
    torch.bernoulli(x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0.0, 0.0, 0.0]


def test_bfloat16_nans_sort_last() -> None:
    nan = float("nan")
    x = torch.tensor([2.0, nan, 1.0, nan, 0.0], dtype=torch.bfloat16)
    assert torch.unique(x)[:3].tolist() == [0.0, 1.0, 2.0]
    assert torch.kthvalue(x, 2)[0].item() == 1.0
