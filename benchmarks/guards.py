"""`python -m benchmarks guards`: the cost of a warm call of a compiled module besides its kernels.

Owns the entry (binding of arguments, the guard program, the call of generated code) of modules with few and many parameters.
The graph is compiled by a backend that computes nothing, so that a call consists of the entry; the time of a direct call of the
backend's function, with the same arguments, is subtracted. `dynamo.explain_guards` lists each guard and its share.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import dynamo
import eager
from benchmarks.harness import Figure
from eager import nn

_PARAMETERS = (2, 20, 100)
_NUMBER, _REPEATS = 20_000, 7


class _Chain(nn.Module):
    """A module of n parameters that its forward all uses: n / 2 linear layers."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(n // 2))

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x


def _call_us(fn: Callable[..., Any], *args: Any) -> float:
    times = []
    for _ in range(_REPEATS):
        started = time.perf_counter()
        for _ in range(_NUMBER):
            fn(*args)
        times.append((time.perf_counter() - started) / _NUMBER)
    return median(times) * 1e6


def _entry_us(n: int) -> tuple[float, int]:
    """(microseconds of entry and guards of a module of n parameters, number of guards)."""
    kept: list[tuple[Any, ...]] = []

    def backend(gm: Any, example_inputs: Any) -> Callable[..., Any]:
        outputs = tuple(gm(*(eager.zeros(tuple(e.shape)) for e in example_inputs)))

        def run(*args: Any) -> Any:
            if not kept:
                kept.append((run, args))
            return outputs

        return run

    module = _Chain(n).requires_grad_(False)
    compiled = dynamo.compile(module, backend=backend)
    x = eager.ones(2, 4)
    compiled(x)
    guards = len(dynamo.explain_guards(compiled).guards)
    run, args = kept[0]
    # The kernels' share: a direct call of the function that generated code calls.
    return _call_us(compiled._compiled_call, module, x) - _call_us(run, *args), guards


def figures() -> list[Figure]:
    """Entry and guards of modules of several sizes; the limit of 2 us applies at 100 parameters."""
    found = []
    for n in _PARAMETERS:
        value, guards = _entry_us(n)
        limit = 2.0 if n == 100 else None
        found.append(Figure(f"entry and guards, module of {n} parameters", value, "us", limit, note=f"{guards} guards"))
    return found
