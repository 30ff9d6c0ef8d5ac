"""Numbers and tensors of wider dtypes beside tensors of 16 bits, eager and compiled: rounded to 16 bits first, except where one number
multiplies or divides."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import eager as torch

ROUNDED: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, c: x + c, "sub": lambda x, c: x - c, "rsub": lambda x, c: c - x, "fmod": lambda x, c: torch.fmod(x, c),
    "remainder": lambda x, c: x % c, "pow": lambda x, c: x.abs() ** c, "gt": lambda x, c: x > c, "ge": lambda x, c: x >= c,
    "lt": lambda x, c: x < c, "le": lambda x, c: x <= c, "eq": lambda x, c: x == c, "ne": lambda x, c: x != c,
}  # fmt: skip
AS_GIVEN: dict[str, Callable[[Any, Any], Any]] = {
    "mul": lambda x, c: x * c, "div": lambda x, c: x / c, "floor": lambda x, c: torch.div(x, c, rounding_mode="floor"),
    "trunc": lambda x, c: torch.div(x, c, rounding_mode="trunc"),
}  # fmt: skip
NUMBERS = (0.1, 0.3, -0.7, 2.3)


def halves(of: torch.dtype, number: float) -> torch.Tensor:
    x = torch.tensor(np.linspace(-3, 3, 41, dtype=np.float32)).to(of)
    return torch.cat([x, torch.tensor([number, -number, 2 * number]).to(of)])


def rounded(number: float, of: torch.dtype) -> float:
    return torch.tensor(number, dtype=torch.float64).to(of).item()


def both_ways(fn: Callable[[Any, Any], Any], *args: Any) -> list[torch.Tensor]:
    torch._dynamo.reset()
    return [fn(*args), torch.compile(fn, fullgraph=True)(*args)]


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("of", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", [*ROUNDED, *AS_GIVEN])
def test_a_number(name: str, of: torch.dtype, number: float) -> None:
    fn = (ROUNDED | AS_GIVEN)[name]
    x = halves(of, number)
    operand = rounded(number, of) if name in ROUNDED else number
    wanted = fn(x.float(), torch.tensor(operand)).to(torch.bool if name in ("gt", "ge", "lt", "le", "eq", "ne") else of)
    for found in both_ways(fn, x, number):
        assert found.dtype is wanted.dtype and torch.equal(found, wanted)


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("name", [*ROUNDED, *AS_GIVEN])
def test_a_tensor_without_dims(name: str, number: float) -> None:
    """It has no part in the dtype. As the second operand it is one number, as the first it is rounded."""
    fn, of = (ROUNDED | AS_GIVEN)[name], torch.bfloat16
    x, single = halves(of, number), torch.tensor(number)
    operand = single.to(of) if name in ROUNDED else single
    for found in both_ways(fn, x, single):
        assert torch.equal(found, fn(x.float(), operand.float()).to(found.dtype))
    if name in ("mul", "div"):
        for found in both_ways(lambda x, c: fn(c, x), x, single):
            assert torch.equal(found, fn(single.to(of).float(), x.float()).to(of))


def test_whole_numbers_of_a_wider_dtype_are_rounded() -> None:
    x, n = torch.ones(3, dtype=torch.bfloat16), torch.tensor([257, 259, -1023])
    for found in both_ways(lambda x, n: x * n, x, n):
        assert found.tolist() == [256.0, 260.0, -1024.0]


def test_a_square_of_halves_stays_a_product() -> None:
    x = halves(torch.bfloat16, 0.1)
    for found in both_ways(lambda x, c: x**c, x, 2):
        assert torch.equal(found, (x.float() * x.float()).bfloat16())
    for found in both_ways(lambda x, c: x**c, torch.tensor([-0.0, 4.0]).bfloat16(), 0.5):
        assert found.tolist() == [0.0, 2.0] and torch.signbit(found).tolist() == [True, False]


@pytest.mark.parametrize(("of", "number", "held"), [
    (torch.bfloat16, 0.1, 0.10009765625), (torch.float16, 0.1, 0.0999755859375), (torch.float32, 0.1, 0.10000000149011612),
])  # fmt: skip
def test_a_constant_keeps_the_rounding_of_its_dtype(of: torch.dtype, number: float, held: float) -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        return torch.full((2,), number, dtype=of).double() + x

    for found in both_ways(lambda x, _: fn(x), torch.zeros(2, dtype=torch.float64), None):
        assert found.tolist() == [held, held]
