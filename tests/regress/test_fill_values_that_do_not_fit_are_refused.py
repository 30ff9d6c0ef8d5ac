"""A number that does not fit the tensor that it fills is refused, compiled as well as not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import eager as torch
from eager._tensor.tensor import Tensor
from eager.nn import functional as F

WRITERS: dict[str, Callable[[Tensor, Any], Any]] = {
    "fill_": lambda x, v: x.clone().fill_(v),
    "full": lambda x, v: torch.full((3,), v, dtype=x.dtype),
    "full_like": torch.full_like,
    "new_full": lambda x, v: x.new_full((2,), v),
    "masked_fill": lambda x, v: x.masked_fill(x == 0, v),
    "setitem": lambda x, v: x.clone().__setitem__(0, v),
    "index_fill": lambda x, v: x.index_fill(0, torch.tensor([0]), v),
    "scatter": lambda x, v: x.scatter(0, torch.tensor([0]), v),
    "pad": lambda x, v: F.pad(x, (1, 1), value=v),
}
VALUES = ((torch.int8, 300), (torch.uint8, float("inf")), (torch.int64, 2.0**70), (torch.float32, 1e39))


@pytest.mark.parametrize("name", WRITERS)
def test_a_number_that_does_not_fit_is_refused(name: str) -> None:
    write = WRITERS[name]
    for d, value in VALUES:
        x = torch.zeros(2, dtype=d)
        for fn in (write, torch.compile(write)):
            with pytest.raises(RuntimeError, match=r"value cannot be converted to type .* without overflow"):
                fn(x, value)


@pytest.mark.parametrize("name", WRITERS)
def test_a_number_that_fits_is_written(name: str) -> None:
    write = WRITERS[name]
    x = torch.zeros(2, dtype=torch.int8)
    want, got = write(x, -128), torch.compile(write)(x, -128)
    assert got is want is None or got.tolist() == want.tolist()
