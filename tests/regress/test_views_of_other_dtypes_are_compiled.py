"""`x.view(dtype)` is a view op like others: compiled programs knew it by its memory alone, and gave it the dtype of x.

With it what programs of mixed dtypes found in compiled code: `tril` of bools was int64, norms of half overflowed.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import dynamo
import eager as torch

F32, BOOL = torch.arange(8.0).reshape(2, 4), torch.tensor([[True, False], [False, True]])
PROGRAMS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "returned": (lambda x: x.view(torch.uint8), F32), "computed with": (lambda x: x.view(torch.uint8) + 1, F32),
    "of a result": (lambda x: (x + x).view(torch.int8) * 2, F32), "of a slice": (lambda x: x[1:].view(torch.int16), F32),
    "and back": (lambda x: (x.view(torch.int32) & 0x7FFFFFFF).view(torch.float32) * 2, -F32),
    "wider": (lambda x: x.view(torch.float64).view(torch.float32) + 1, F32), "of bools": (lambda x: x.view(torch.uint8), BOOL),
    "tril of bools": (torch.tril, BOOL), "triu of bools": (lambda x: torch.triu(x, 1), BOOL),
    "norm of half": (lambda x: torch.linalg.vector_norm(x), F32.half() * 1000), "deviation of half": (lambda x: x.std(), F32.half() * 1000),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compiled_programs_give_what_eager_gives(name: str, backend: str) -> None:
    fn, x = PROGRAMS[name]
    found, expected = dynamo.compile(fn, backend=backend)(x.clone()), fn(x.clone())
    assert found.dtype is expected.dtype and found.stride() == expected.stride() and torch.equal(found, expected)


def test_a_view_of_another_dtype_shares_the_memory_of_an_input() -> None:
    def fn(x: Any) -> Any:
        y = x.view(torch.int16)
        x += 1
        return y

    x = torch.arange(4.0)
    y = dynamo.compile(fn, backend="aot_eager")(x)
    assert y.data_ptr() == x.data_ptr() and torch.equal(y, x.view(torch.int16)) and x.tolist() == [1.0, 2.0, 3.0, 4.0]


def test_a_write_through_a_view_of_another_dtype_is_seen() -> None:
    def fn(x: Any) -> Any:
        x.view(torch.int32).add_(1 << 23)  # the exponent: twice as large
        return x * 1

    x = torch.arange(1.0, 4.0)
    assert dynamo.compile(fn, backend="aot_eager")(x).tolist() == [2.0, 4.0, 6.0] == x.tolist()


WRITES: dict[str, Callable[[Any], Any]] = {
    "whole, narrower": lambda x: x.view(torch.uint8).fill_(0),
    "a column, narrower": lambda x: x.view(torch.int16)[:, 1].add_(3),
    "turned around": lambda x: x.t().view(torch.int32).bitwise_xor_(1 << 31),
    "rows of the other dtype": lambda x: x.view(torch.int32)[1:].zero_(),
    "twice": lambda x: x.view(torch.int16).view(torch.int32).neg_(),
    "wider": lambda x: x.view(torch.int64).bitwise_and_(0xFFFFFFFF),
}


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_writes_reach_the_other_dtype(name: str, backend: str) -> None:
    def fn(x: Any) -> Any:
        y = x * 2
        WRITES[name](y)
        WRITES[name](x)
        return y + 1, y, x.sum()

    given = torch.arange(1.0, 13.0).reshape(3, 4)
    expected, found = given.clone(), given.clone()
    for a, b in zip(dynamo.compile(fn, backend=backend, fullgraph=True)(found), fn(expected), strict=True):
        assert torch.equal(a, b)
    assert torch.equal(found, expected)


def test_vmap_reads_each_example_as_the_other_dtype() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    assert torch.equal(torch.func.vmap(lambda row: row.view(torch.uint8))(x), x.view(torch.uint8))
