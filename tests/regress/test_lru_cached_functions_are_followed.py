"""Capture calls a function behind functools.lru_cache if its arguments are constants, and follows it otherwise."""

from __future__ import annotations

import functools

import pytest

import eager as torch

CALLS: list[tuple[object, ...]] = []


class Recipe:
    def __init__(self, order: tuple[int, ...]) -> None:
        self.order = order


@functools.lru_cache(8)
def recipe(pattern: str, ndim: int) -> Recipe:
    CALLS.append((pattern, ndim))
    return Recipe(tuple(range(ndim))[::-1] if pattern == "reversed" else tuple(range(ndim)))


@functools.cache
def order_of(r: Recipe, shape: tuple[int, ...]) -> tuple[list[int], int]:
    return list(r.order), len(shape)


@functools.cache
def doubled(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def transposed(x: torch.Tensor, pattern: str) -> torch.Tensor:
    order, n = order_of(recipe(pattern, x.ndim), tuple(x.shape))
    return x.permute(order) * n


@pytest.mark.parametrize("pattern", ["reversed", "same"])
def test_cached_functions_of_constants_run_at_capture(pattern: str) -> None:
    x = torch.randn(2, 3)
    expected = transposed(x, pattern)
    CALLS.clear()
    compiled = torch.compile(transposed, backend="aot_eager", fullgraph=True)
    for _ in range(2):
        assert torch.equal(compiled(x, pattern), expected)
    assert not CALLS  # the cache had it


def test_cached_functions_of_tensors_are_followed() -> None:
    x = torch.randn(2, 3)
    assert torch.equal(torch.compile(lambda x: doubled(x) + 1, backend="aot_eager", fullgraph=True)(x), x * 2 + 1)


def test_an_error_of_a_cached_function_is_raised() -> None:
    @functools.cache
    def fails(n: int) -> int:
        raise KeyError(n)

    def fn(x: torch.Tensor) -> torch.Tensor:
        try:
            fails(3)
        except KeyError as error:
            return x + error.args[0]
        return x

    assert torch.compile(fn, backend="eager", fullgraph=True)(torch.ones(1)) == 4
