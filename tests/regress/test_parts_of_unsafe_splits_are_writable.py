"""`unsafe_split`, `unsafe_split_with_sizes` and `unsafe_chunk` return views that may be written to; `split` and `chunk` do not."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import eager as torch

UNSAFE: dict[str, Callable[[Any], Any]] = {
    "unsafe_chunk": lambda x: x.unsafe_chunk(2),
    "unsafe_split": lambda x: x.unsafe_split(2),
    "unsafe_split_with_sizes": lambda x: torch.unsafe_split_with_sizes(x, [2, 2]),
}


@pytest.mark.parametrize("run", [lambda f: f, torch.compile], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", UNSAFE)
def test_parts_may_be_written_to(name: str, run: Any) -> None:
    def f(x: Any) -> Any:
        y = x * 2
        UNSAFE[name](y)[0].add_(1)
        return y

    assert run(f)(torch.ones(4, requires_grad=True)).tolist() == [3, 3, 2, 2]


@pytest.mark.parametrize("cut", [lambda x: x.chunk(2), lambda x: x.split(2), lambda x: x.split([1, 3])])
def test_parts_of_safe_splits_may_not(cut: Any) -> None:
    with pytest.raises(RuntimeError, match="do not allow the output views to be modified inplace"):
        cut(torch.ones(4, requires_grad=True) * 2)[0].add_(1)
