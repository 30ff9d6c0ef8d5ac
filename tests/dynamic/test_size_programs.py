"""Random programs over sizes, compiled and called with a sequence of shapes, have eager's results, numbers and gradients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import eager as torch
from dynamo.compilation import attempt
from tests.dynamic.size_programs import STEPS, Program

FOUND = (40, 98, 286)  # seeds of programs that once failed


def _assert_close(actual: Any, expected: Any) -> None:
    assert type(actual) is type(expected), (actual, expected)
    if isinstance(expected, tuple):
        for a, e in zip(actual, expected, strict=True):
            _assert_close(a, e)
    elif isinstance(expected, torch.Tensor):
        assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype)
        assert [s for n, s in zip(actual.shape, actual.stride(), strict=True) if n > 1] == [
            s for n, s in zip(expected.shape, expected.stride(), strict=True) if n > 1]  # fmt: skip
        scale = float(expected.abs().max()) + 1e-3
        assert torch.allclose(actual / scale, expected / scale, atol=1e-9, rtol=1e-9, equal_nan=True)
    else:
        assert actual == expected


@pytest.fixture(autouse=True)
def _no_help(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiled graph that raises fails the test: the compiler does not fall back to eager."""

    def again(error: Exception, *_: Any) -> Any:
        raise error

    monkeypatch.setattr(attempt, "_eager_again", again)


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    """Compute in float64: gradients through a normalisation cancel and would be only rounding errors in float32."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def _assert_like_eager(program: Program, backend: str) -> None:
    compiled = torch.compile(program.__call__, backend=backend, dynamic=program.dynamic)
    for k in range(len(program.shapes)):
        _assert_close(program.run(compiled, k), program.run(program, k))


@pytest.mark.parametrize("seed", [*FOUND, *range(24)])
def test_a_program_over_sizes_gives_eagers_results_for_every_shape(seed: int) -> None:
    _assert_like_eager(Program(seed), "aot_eager")


@pytest.mark.parametrize("name", STEPS)
def test_every_step_runs_in_eager_for_most_shapes(name: str) -> None:
    """A step that always raises would not test the compiler."""
    program = Program(0)
    program.names, program.shapes = [name], [(4, 6), (5, 5), (2, 3), (1, 4), (7, 2)]
    raised = sum(isinstance(program.run(program, k), str) for k in range(len(program.shapes)))
    assert raised <= 1


@pytest.mark.parametrize("seed", [11])
def test_native_code_of_a_program_over_sizes(seed: int) -> None:
    _assert_like_eager(Program(seed), "inductor")


def test_no_size_is_inferred_from_the_stride_of_a_dim_of_size_1() -> None:
    """The backward once read sizes from the strides of a saved tensor that did not determine them."""

    def fn(x: Any) -> Any:
        y = x[torch.arange(x.shape[0])][:, x.shape[1] // 2 :]
        return y.t() @ y

    compiled = torch.compile(fn, backend="aot_eager", dynamic=True)
    for m in (9, 6, 4):
        x = torch.arange(float(m)).view(1, m).cos().requires_grad_()
        y = x.detach().clone().requires_grad_()
        compiled(x).sum().backward()
        fn(y).sum().backward()
        _assert_close(x.grad, y.grad)
