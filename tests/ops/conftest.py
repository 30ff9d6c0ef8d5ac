"""Helpers of the tests that are generated from the op table."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import eager
from eager.base.spec import TensorSpec, spec_of
from eager.optable.registry import Kind
from eager.optable.samples import Make, samples_of
from eager.optable.table import OPS, Op

TOLERANCE = {"float64": (1e-9, 1e-10), "float32": (2e-5, 2e-6), "float16": (4e-3, 4e-3), "bfloat16": (2e-2, 2e-2),
             "complex64": (2e-5, 2e-6), "complex128": (1e-9, 1e-10)}  # fmt: skip


@pytest.fixture
def make() -> Make:
    return Make(7)


def public_ops() -> list[str]:
    return sorted(name for name, op in OPS.items() if not op.is_custom)


def cases(names: list[str], dtype: Any = eager.float32) -> list[Any]:
    """One pytest case per op and sample, named `op-number`."""
    found = []
    for name in names:
        if OPS[name].samples is not None:
            n = len(list(samples_of(name, dtype)))
            found += [pytest.param(name, i, id=f"{name}-{i}") for i in range(n)]
    return found


def sample(name: str, number: int, dtype: Any = eager.float32) -> tuple[Any, ...]:
    for i, args in enumerate(samples_of(name, dtype)):
        if i == number:
            return args
    raise LookupError(f"{name} has no sample {number}")


def flat(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (tuple, list)) else [result]


def array(t: Any) -> Any:
    """The values as a numpy array. Half precision is converted to float32."""
    a = t.detach()._array
    return a.astype(np.float32) if t.dtype.is_floating_point and t.dtype.itemsize == 2 else a


def assert_same(actual: Any, expected: Any, what: str) -> None:
    """Assert equal dtypes, equal shapes, and equal values within the dtype's tolerance."""
    assert actual.dtype is expected.dtype, f"{what}: dtype {actual.dtype} against {expected.dtype}"
    assert tuple(actual.shape) == tuple(expected.shape), f"{what}: shape {actual.shape} against {expected.shape}"
    rtol, atol = TOLERANCE.get(actual.dtype.name, (0, 0))
    np.testing.assert_allclose(array(actual), array(expected), rtol=rtol, atol=atol, err_msg=what, equal_nan=True)


def specs(result: Any) -> list[TensorSpec]:
    return [s if isinstance(s, TensorSpec) else spec_of(s) for s in flat(result)]


def non_contiguous(t: Any) -> Any:
    """A tensor with the same values, whose memory has gaps and another order of dims."""
    if t.ndim == 0:
        base = eager.empty((3,), dtype=t.dtype)
        view = base[1]
    else:
        shape = tuple(t.shape)
        base = eager.empty((*shape[::-1][:-1], shape[0] * 2), dtype=t.dtype)
        view = base.permute(*range(t.ndim - 1, -1, -1))[::2]
    view.copy_(t.detach())
    return view


def map_tensors(fn: Any, args: Any) -> Any:
    if isinstance(args, eager.Tensor):
        return fn(args)
    if isinstance(args, (list, tuple)):
        return type(args)(map_tensors(fn, a) for a in args)
    return args


def is_differentiable(op: Op) -> bool:
    """Whether an op has gradients to compare."""
    if op.mutates or op.nondifferentiable or op.underived or op.kind in (Kind.CREATION, Kind.RANDOM, Kind.EFFECT):
        return False
    return bool(op.vjp) or op.decompose is not None


def is_random(op: Op) -> bool:
    return op.kind in (Kind.EFFECT,) or op.name == "empty"
