"""Every op of the nn families: kernel = decomposition = meta, gradient = finite differences, to second order."""
from __future__ import annotations

from typing import Any

import pytest

import eager
from eager.optable import attention, loss, nn, rnn

from . import tables
from .tables import OPS, Make

MODULES = (nn, attention, loss, rnn)
NAMES = sorted({v.name for m in MODULES for v in vars(m).values() if isinstance(v, tables.TensorOp)})


def cases(make: Make | None = None) -> list[Any]:
    return [pytest.param(name, i, id=f"{name}-{i}") for name in NAMES for i in range(len(list(OPS[name].samples(Make()))))]


def sample(name: str, i: int, dtype: Any = eager.float64) -> tuple[Any, ...]:
    return list(OPS[name].samples(Make(dtype)))[i]


@pytest.mark.parametrize(("name", "i"), cases())
def test_kernel_agrees_with_decomposition(name: str, i: int) -> None:
    op = OPS[name]
    tables.check_against_decomposition(op, sample(name, i), 1e-10)
    tables.check_against_decomposition(op, sample(name, i, eager.float32), 3e-5)


@pytest.mark.parametrize(("name", "i"), cases())
@pytest.mark.parametrize("half", [eager.float16, eager.bfloat16])
def test_half_precision_computes_in_float32(name: str, i: int, half: Any) -> None:
    args = sample(name, i, half)
    tables.check_against_decomposition(OPS[name], args, 2e-2 if half is eager.bfloat16 else 3e-3)


@pytest.mark.parametrize(("name", "i"), cases())
def test_meta_agrees_with_kernel(name: str, i: int) -> None:
    for d in (eager.float32, eager.float16):
        tables.check_meta(OPS[name], sample(name, i, d))


@pytest.mark.parametrize(("name", "i"), cases())
def test_gradient_agrees_with_finite_differences(name: str, i: int) -> None:
    tables.check_gradient(OPS[name], sample(name, i))


@pytest.mark.parametrize(("name", "i"), [c for c in cases() if "backward" not in c.values[0]])
def test_second_gradient_agrees_with_finite_differences(name: str, i: int) -> None:
    args = sample(name, i)
    if any(isinstance(a, tables.TensorBase) and 0 in a.shape for a in args):
        return
    tables.check_gradient(tables.second_order(OPS[name]), args, tolerance=1e-4)
