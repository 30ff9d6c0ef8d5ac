"""Compile with a counting backend, and compare with eager."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import eager as torch
from fxir.backends import lookup
from fxir.base.options import CompileOptions

BACKENDS = ("eager", "aot_eager", "inductor")


class Counting:
    """A backend by name that records the graphs that it compiles. A failure of the backend fails the test."""

    def __init__(self, name: str = "aot_eager") -> None:
        self.name = name
        self.graphs: list[Any] = []

    def __call__(self, gm: Any, examples: Any) -> Callable[..., Any]:
        made = lookup(self.name)(gm, examples, CompileOptions())
        self.graphs.append(gm)  # a refused graph does not count: the compiler passes it again with static sizes
        return made


def compiled(fn: Any, backend: str = "aot_eager", **options: Any) -> tuple[Any, Counting]:
    """(compiled function, its backend)"""
    counting = Counting(backend)
    return torch.compile(fn, backend=counting, fullgraph=options.pop("fullgraph", True), **options), counting


def assert_same(actual: Any, expected: Any) -> None:
    """Assert equal types, shapes, strides and dtypes, and equal values (within 1e-4 for tensors)."""
    assert type(actual) is type(expected), (actual, expected)
    if isinstance(expected, torch.Tensor):
        assert actual.shape == expected.shape and actual.stride() == expected.stride() and actual.dtype is expected.dtype
        assert torch.allclose(actual.double(), expected.double(), atol=1e-4, rtol=1e-4, equal_nan=True)
    elif isinstance(expected, tuple | list):
        assert len(actual) == len(expected)
        for a, e in zip(actual, expected, strict=True):
            assert_same(a, e)
    elif isinstance(expected, dict):
        assert_same(list(actual.items()), list(expected.items()))
    else:
        assert actual == expected


def check(
    fn: Callable[..., Any], calls: Iterable[tuple[Any, ...]], *, compilations: int, backend: str = "aot_eager", **options: Any
) -> Any:  # fmt: skip
    """Assert that compiled fn has eager's results for each of `calls`, from `compilations` graphs. Returns the compiled fn."""
    made, counting = compiled(fn, backend, **options)
    for args in calls:
        assert_same(made(*args), fn(*args))
    assert len(counting.graphs) == compilations
    return made


def rows(*sizes: int, columns: int = 3) -> list[tuple[Any]]:
    """One call with an (n, columns) tensor for each n."""
    return [(torch.randn(n, columns),) for n in sizes]
