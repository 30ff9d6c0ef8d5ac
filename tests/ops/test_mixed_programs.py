"""Programs of mixed dtypes with views, writes in place and `out=`: compiled as eager runs them."""
from __future__ import annotations

import warnings
from typing import Any

import pytest

import dynamo
import eager as torch
from tests.ops.mixed_programs import grow

_TOLERANCE = {torch.float16: 4e-3, torch.bfloat16: 3e-2, torch.float32: 2e-5, torch.complex64: 2e-5}


def _differ(found: Any, expected: Any) -> str | None:
    """In what two values differ, or None."""
    if (found.dtype, found.shape) != (expected.dtype, expected.shape):
        return f"{found.dtype} {list(found.shape)} for {expected.dtype} {list(expected.shape)}"
    steps = [[s for s, n in zip(t.stride(), t.shape, strict=True) if n > 1] for t in (found, expected)]
    if steps[0] != steps[1] and expected.numel() > 1:
        return f"strides {found.stride()} for {expected.stride()}"
    tolerance = _TOLERANCE.get(expected.dtype, 1e-9)
    same = torch.allclose(found, expected, rtol=tolerance, atol=tolerance, equal_nan=True)
    return None if same else f"values {found.tolist()} for {expected.tolist()}"


@pytest.mark.parametrize("start", range(0, 200, 20))
def test_compiled_programs_do_what_eager_does(start: int) -> None:
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
