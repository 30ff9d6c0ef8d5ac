"""A Python number stored into a tensor: negative numbers wrap in unsigned types, numbers out of range are a RuntimeError."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import eager as torch
from eager.nn import functional as F  # noqa: N812 - torch's name

INF, NAN = float("inf"), float("nan")
STORES: dict[str, Callable[[Any, Any], Any]] = {
    "fill_": lambda x, v: x.fill_(v),
    "full_like": torch.full_like,
    "new_full": lambda x, v: x.new_full((2,), v),
    "masked_fill_": lambda x, v: x.masked_fill_(x == x, v),
    "index_fill_": lambda x, v: x.index_fill_(0, torch.tensor([0, 1]), v),
    "scatter_": lambda x, v: x.scatter_(0, torch.tensor([0, 1]), v),
    "fill_diagonal_": lambda x, v: x.reshape(1, 2).expand(2, 2).contiguous().fill_diagonal_(v).diagonal(),
    "slice": lambda x, v: x.__setitem__(slice(None), v) or x,
    "mask": lambda x, v: x.__setitem__(x == x, v) or x,
    "positions": lambda x, v: x.__setitem__(torch.tensor([0, 1]), v) or x,
}  # fmt: skip
# dtype, number, and the value that torch 2.13 stores
KEPT: list[tuple[Any, Any, Any]] = [
    (torch.uint8, -1, 255), (torch.uint8, -255, 1), (torch.uint8, 1.7, 1), (torch.int8, 127, 127), (torch.int64, 2**62, 2**62),
    (torch.int8, -0.5, 0), (torch.bool, 3, True), (torch.bool, 1j, True), (torch.float32, INF, INF), (torch.float64, 1e50, 1e50),
]  # fmt: skip
REFUSED: list[tuple[Any, Any, str]] = [
    (torch.uint8, 300, "uint8_t"), (torch.uint8, -300, "uint8_t"), (torch.uint8, -0.25, "uint8_t"), (torch.int8, 200, "int8_t"),
    (torch.int8, -128.5, "int8_t"), (torch.int32, 2**40, "int"), (torch.int32, INF, "int"), (torch.int64, NAN, "int64_t"),
    (torch.float32, 1e50, "float"), (torch.float32, 1j, "float"), (torch.int64, 1j, "int64_t"),
]  # fmt: skip


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize(("dtype", "number", "kept"), KEPT)
def test_a_number_is_stored_as_torch_stores_it(store: str, dtype: Any, number: Any, kept: Any) -> None:
    assert STORES[store](torch.ones(2, dtype=dtype), number).tolist() == [kept, kept]


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize(("dtype", "number", "name"), REFUSED)
def test_a_number_out_of_range_is_refused(store: str, dtype: Any, number: Any, name: str) -> None:
    with pytest.raises(RuntimeError, match=f"value cannot be converted to type {name} without overflow"):
        STORES[store](torch.ones(2, dtype=dtype), number)


def test_padding_takes_its_value_for_a_float() -> None:
    assert F.pad(torch.ones(1, dtype=torch.uint8), (1, 0), value=7).tolist() == [7, 1]
    with pytest.raises(RuntimeError, match="uint8_t without overflow"):
        F.pad(torch.ones(1, dtype=torch.uint8), (1, 0), value=-1)


@pytest.mark.parametrize(("data", "dtype"), [
    ([NAN], torch.int64), ([INF], torch.int32), ([-0.5], torch.uint8), ([255.5], torch.uint8), ([128.0], torch.int8), ([1e20], torch.int64),
])  # fmt: skip
def test_a_tensor_of_numbers_out_of_range_is_refused(data: Any, dtype: Any) -> None:
    with pytest.raises(RuntimeError, match=f"value cannot be converted to type {dtype.name} without overflow"):
        torch.tensor(data, dtype=dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int32])
def test_imaginary_parts_are_not_dropped(dtype: Any) -> None:
    with pytest.raises(TypeError, match="complex"):
        torch.tensor([1j], dtype=dtype)


@pytest.mark.parametrize(("dtype", "name", "number"), [(torch.float16, "c10::Half", 70000.0), (torch.bfloat16, "c10::BFloat16", 3.4e38)])
def test_numbers_beyond_a_16_bit_float_are_refused_as_fill_values_and_rounded_as_items(dtype: Any, name: str, number: float) -> None:
    for fill in ("fill_", "full_like", "new_full", "masked_fill_", "index_fill_", "scatter_"):
        with pytest.raises(RuntimeError, match=f"value cannot be converted to type {name} without overflow"):
            STORES[fill](torch.ones(2, dtype=dtype), number)
    for assign in ("slice", "mask", "positions"):
        assert STORES[assign](torch.ones(2, dtype=dtype), number).tolist() == [INF, INF]


def test_int_operands_of_where_and_clamp_must_fit_the_dtype_of_the_tensor() -> None:
    x, some = torch.tensor([1, 100], dtype=torch.int8), torch.tensor([True, False])
    for call in (lambda: torch.where(some, 300, x), lambda: torch.where(some, x, 300), lambda: x.clamp(max=300), lambda: x.clamp_(min=300),
                 lambda: x.clamp_min(300)):  # fmt: skip
        with pytest.raises(RuntimeError, match="value cannot be converted to type int8_t without overflow"):
            call()
    assert x.clamp(max=127).tolist() == [1, 100]
