"""Compiled programs of mixed dtypes with views, writes in place and `out=` agree with eager."""
from __future__ import annotations

import warnings
from typing import Any

import pytest

import dynamo
import eager as torch
from eager.base import settings
from tests.ops.mixed_programs import grow

_TOLERANCE = {torch.float16: 4e-3, torch.bfloat16: 3e-2, torch.float32: 2e-5, torch.complex64: 2e-5}


def _differ(found: Any, expected: Any) -> str | None:
    """The first property in which two tensors differ, or None."""
    if (found.dtype, found.shape) != (expected.dtype, expected.shape):
        return f"{found.dtype} {list(found.shape)} for {expected.dtype} {list(expected.shape)}"
    steps = [[s for s, n in zip(t.stride(), t.shape, strict=True) if n > 1] for t in (found, expected)]
    if steps[0] != steps[1] and expected.numel() > 1:
        return f"strides {found.stride()} for {expected.stride()}"
    tolerance = _TOLERANCE.get(expected.dtype, 1e-9)
    same = torch.allclose(found, expected, rtol=tolerance, atol=tolerance, equal_nan=True)
    return None if same else f"values {found.tolist()} for {expected.tolist()}"


@pytest.mark.parametrize("start", range(0, 200, 20))
def test_compiled_programs_agree_with_eager_in_values_layouts_and_writes(start: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about outputs that are resized, and integer divisions by zero
        for seed in range(start, start + 20):
            program = grow(seed)
            expected_arguments, arguments = program.arguments(), program.arguments()
            expected = program.function()(*expected_arguments)
            found = dynamo.compile(program.function(), backend="aot_eager")(*arguments)
            dynamo.reset()
            names = (*program.names, *program.names[:2])
            for name, f, e in zip(names, (*found, *arguments), (*expected, *expected_arguments), strict=True):
                text = _differ(f, e)
                assert text is None, f"seed {seed}, {name}: {text}\n{program.starts}\n{program.source}"


def _gradients(results: Any, leaves: Any) -> Any:
    """Gradients of a sum of all results that have a history, or None if autograd raises."""
    try:
        ends = [t.abs() if t.dtype.is_complex else t for t in results if t.grad_fn is not None]
        total = sum((t.double().sum() * (0.3 + 0.1 * i) for i, t in enumerate(ends)), torch.zeros(()))
        return torch.autograd.grad(total, leaves, allow_unused=True) if ends else [None] * len(leaves)
    except RuntimeError:  # the program wrote to a tensor that backward needs; a compiled program may have saved a copy
        return None


def _first_over_memory(tensors: Any) -> list[int]:
    first: dict[int, int] = {}
    return [first.setdefault(t.untyped_storage().data_ptr(), i) if t.numel() else -1 for i, t in enumerate(tensors)]


@pytest.mark.parametrize("start", range(0, 160, 20))
def test_compiled_programs_agree_with_eager_in_history_and_gradients(start: int) -> None:
    for seed in range(start, start + 20):
        program = grow(seed, history=True)
        compiled = dynamo.compile(program.function(), backend="aot_eager")
        sides = []
        with warnings.catch_warnings(), settings.scope(capture_suppress_errors=True):
            warnings.simplefilter("ignore")
            for fn in (program.function(), compiled, compiled):
                arguments = program.arguments()
                results = [*fn(*arguments), *arguments]
                leaves = [t for t in arguments if t.is_leaf and t.requires_grad]
                sides.append((results, _gradients(results, leaves), leaves))
        dynamo.reset()
        context = f"seed {seed}\n{program.starts}\n{program.source}"
        expected, expected_gradients, _ = sides[0]
        tolerance = max(_TOLERANCE.get(t.dtype, 2e-5) for t in expected)  # intermediate values are rounded to the dtypes of the results
        for found, gradients, _ in sides[1:]:
            assert _first_over_memory(found) == _first_over_memory(expected), context
            for f, e in zip(found, expected, strict=True):
                text = _differ(f.detach(), e.detach())
                assert text is None and f.requires_grad == e.requires_grad, f"{text}, {f.requires_grad}: {context}"
            for f, e in zip(gradients or (), expected_gradients or (), strict=expected_gradients is not None):
                assert (f is None) == (e is None), context
                assert f is None or torch.allclose(f, e, tolerance, tolerance, True), f"{f} for {e}: {context}"
