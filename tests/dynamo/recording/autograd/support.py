"""Programs about gradients, run twice: with `compile` doing nothing, and with the compiler.

A program is a function `p(compile)` that makes its inputs, compiles functions of its choice, and returns every visible fact:
results, gradients (None for a missing gradient), versions, aliasing, texts of errors. Both runs must return the same facts.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import dynamo
import eager as torch
from dynamo.compilation.region import all_regions
from eager import Tensor
from eager.base import settings

Compile = Callable[..., Any]
BACKENDS = ("eager", "aot_eager")


@dataclass(frozen=True)
class Program:
    """whole: every compiled function of the program must be one graph.

    backends: the backends of the test (all programs also agree with the native backend, but its compilation takes
    long).
    """

    name: str
    run: Callable[[Compile], Any]
    whole: bool
    backends: tuple[str, ...]


class Programs(list[Program]):
    """The programs of one family, collected by a decorator."""

    def add(self, *, whole: bool = False, native: bool = False) -> Callable[[Callable[[Compile], Any]], Any]:
        def register(fn: Callable[[Compile], Any]) -> Callable[[Compile], Any]:
            self.append(Program(fn.__name__, fn, whole, (*BACKENDS, "inductor") if native else BACKENDS))
            return fn

        return register


def leaf(*shape: int, start: float = 0.3, dtype: Any = torch.float64) -> Tensor:
    """A tensor of distinct values that requires a gradient."""
    n = math.prod(shape)
    return (torch.arange(n, dtype=dtype).reshape(shape) * 0.37 + start).requires_grad_()


def error(fn: Callable[[], Any]) -> Any:
    """The result of `fn`, or the class and text of its error."""
    try:
        return fn()
    except Exception as e:
        return type(e).__name__, str(e)


def grads(output: Tensor, *inputs: Tensor, **options: Any) -> tuple[Any, ...]:
    """d(sum of output * weights)/d(inputs); None for an unused input."""
    weights = torch.arange(output.numel(), dtype=output.dtype).reshape(output.shape) * 0.11 + 1
    return torch.autograd.grad((output * weights).sum(), inputs, allow_unused=True, **options)


def same_memory(a: Tensor, b: Tensor) -> bool:
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


def same(a: Any, b: Any, path: str = "seen") -> None:
    """Assert that two observations are alike."""
    assert type(a).__name__ == type(b).__name__, f"{path}: {a!r} against {b!r}"
    if isinstance(a, Tensor):
        assert (a.dtype, tuple(a.shape), a.stride()) == (b.dtype, tuple(b.shape), b.stride()), f"{path}: {a} against {b}"
        assert a.requires_grad == b.requires_grad, f"{path}: requires_grad {a.requires_grad} against {b.requires_grad}"
        x, y = a.detach(), b.detach()
        tight = a.dtype in (torch.float64, torch.complex128)
        assert torch.allclose(x, y, 1e-9 if tight else 2e-4, 1e-9 if tight else 2e-5, equal_nan=True), f"{path}: {x} against {y}"
    elif isinstance(a, tuple | list):
        assert len(a) == len(b), f"{path}: {a} against {b}"
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            same(x, y, f"{path}[{i}]")
    elif isinstance(a, dict):
        assert list(a) == list(b), f"{path}: keys {list(a)} against {list(b)}"
        for k in a:
            same(a[k], b[k], f"{path}[{k!r}]")
    elif isinstance(a, float):
        assert math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-7) or (a != a and b != b), f"{path}: {a} against {b}"
    elif type(a).__module__ == "numpy":
        assert (a.dtype, a.shape) == (b.dtype, b.shape) and (abs(a - b) < 1e-6).all(), f"{path}: {a} against {b}"
    else:
        assert a == b, f"{path}: {a!r} against {b!r}"


def plainly(fn: Any = None, **options: Any) -> Any:
    """A `compile` without effect."""
    return (lambda f: f) if fn is None else fn


def check(program: Program, backend: str) -> None:
    """Run `program` plainly and compiled by `backend`, and compare the results."""
    dynamo.reset()

    def compiled(fn: Any = None, **options: Any) -> Any:
        return dynamo.compile(fn, **{"backend": backend, "fullgraph": program.whole, **options})

    torch.manual_seed(7)
    expected = copy.deepcopy(_detached(program.run(plainly)))
    torch.manual_seed(7)
    with settings.scope(capture_suppress_errors=False):
        got = program.run(compiled)
    same(expected, copy.deepcopy(_detached(got)))
    fallbacks = [f for region in all_regions() for f in region.statistics.fallbacks if f.startswith("compile:")]
    assert not fallbacks, fallbacks


def _detached(seen: Any) -> Any:
    """Tensors with a history as leaves that require gradients, which can be copied and compared."""
    if isinstance(seen, Tensor):
        return seen.detach().requires_grad_(seen.requires_grad) if seen.requires_grad else seen
    if isinstance(seen, tuple | list):
        return type(seen)(_detached(s) for s in seen)
    if isinstance(seen, dict):
        return {k: _detached(s) for k, s in seen.items()}
    return seen
