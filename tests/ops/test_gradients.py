"""Gradient formulas against finite differences in double precision, first and second order."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import eager
from eager.optable.samples import samples_of
from eager.optable.table import OPS
from tests.autograd.transforms import double_samples
from tests.ops.conftest import cases, flat, is_differentiable, public_ops, sample

STEP = 1e-6

# Ops on symmetric matrices, which read one triangle: gradients are compared in their symmetric part.
SYMMETRIC = {"cholesky", "cholesky_status", "eigh"}
# Ops whose rule raises NotImplementedError, as torch's does.


def _symmetric_part(a: Any) -> Any:
    return (a + np.swapaxes(a, -1, -2)) / 2


def _leaves(args: Any) -> list[Any]:
    found = []
    for a in args:
        if isinstance(a, eager.Tensor) and a.dtype is eager.float64:
            found.append(a)
        elif isinstance(a, (list, tuple)):
            found += _leaves(a)
    return found


def _outputs(name: str, args: Any) -> list[Any]:
    op = OPS[name]
    return [y for i, y in enumerate(flat(op(*args))) if y.dtype.is_floating_point and i not in op.nondifferentiable_outputs]


def _weights(outputs: list[Any]) -> list[Any]:
    """Fixed cotangents, different for each element."""
    rng = np.random.default_rng(5)
    return [eager.from_numpy(rng.uniform(0.5, 1.5, tuple(y.shape))) for y in outputs]


def _analytic(name: str, args: Any, leaves: list[Any]) -> list[Any]:
    for x in leaves:
        x.requires_grad_(True)
    outputs = [y.to(eager.float64) for y in _outputs(name, args)]
    pairs = [(y, w) for y, w in zip(outputs, _weights(outputs), strict=True) if y.requires_grad]
    if not pairs:
        return [None] * len(leaves)
    return list(eager.autograd.grad([y for y, _ in pairs], leaves, [w for _, w in pairs], allow_unused=True, create_graph=True))


def _numeric(value: Any, x: Any, symmetric: bool = False) -> Any:
    """Central differences of `value()`, a float, in each element of `x`; with its mirror image, if `symmetric`."""
    a = x.detach()._array
    result = np.zeros(a.shape)
    for i in np.ndindex(a.shape):
        j = (*i[:-2], i[-1], i[-2]) if symmetric else i
        kept, kept_mirror = a[i], a[j]
        a[i], a[j] = kept + STEP, kept_mirror + STEP
        above = value()
        a[i], a[j] = kept - STEP, kept_mirror - STEP
        below = value()
        a[i], a[j] = kept, kept_mirror
        result[i] = (above - below) / (2 * STEP) / (1 if i == j else 2)
    return result


def _too_coarse(name: str, args: Any) -> bool:
    """Whether an output's dtype is too coarse for differences of 1e-6."""
    with eager.no_grad():
        return any(y.dtype is not eager.float64 for y in _outputs(name, args))


def _plain(name: str, args: Any) -> float:
    with eager.no_grad():
        outputs = _outputs(name, args)
        return float(sum(np.sum(y._array.astype(np.float64) * w._array) for y, w in zip(outputs, _weights(outputs), strict=True)))


def test_every_differentiable_op_is_compared_in_some_sample() -> None:
    """Ops on complex numbers alone are compared by gradcheck, in tests/autograd/test_every_op.py."""
    silent = []
    for name in sorted({c.values[0] for c in DOUBLE}):
        samples = [args for args in samples_of(name, eager.float64) if _leaves(args) and not _too_coarse(name, args)]
        if not any(g is not None for args in samples for g in _analytic(name, args, _leaves(args))) and not list(double_samples(name)):
            silent.append(name)
    assert not silent, f"ops whose gradient no sample compares: {silent}"


DOUBLE = cases([n for n in public_ops() if is_differentiable(OPS[n])], eager.float64)


@pytest.mark.parametrize(("name", "number"), DOUBLE)
def test_formula_agrees_with_finite_differences(name: str, number: int) -> None:
    args = sample(name, number, eager.float64)
    leaves = _leaves(args)
    if not leaves or _too_coarse(name, args):
        pytest.skip("this sample has no double input, or an output too coarse for differences")
    grads = _analytic(name, args, leaves)
    for position, (x, g) in enumerate(zip(leaves, grads, strict=True)):
        expected = _numeric(lambda: _plain(name, args), x, name in SYMMETRIC)
        if g is None:
            assert not np.any(expected), f"{name}: no gradient for input {position}, but the output depends on it"
            continue
        assert tuple(g.shape) == tuple(x.shape)
        assert g.dtype is x.dtype
        actual = _symmetric_part(g.detach()._array) if name in SYMMETRIC else g.detach()._array
        np.testing.assert_allclose(actual, expected, rtol=2e-5, atol=2e-7, err_msg=f"{name}: input {position}")


@pytest.mark.parametrize(("name", "number"), DOUBLE)
def test_second_order_agrees_with_finite_differences(name: str, number: int) -> None:
    args = sample(name, number, eager.float64)
    leaves = _leaves(args)
    if not leaves or _too_coarse(name, args):
        pytest.skip("this sample has no double input, or an output too coarse for differences")

    def slope(create_graph: bool = False) -> Any:
        grads = [g for g in _analytic(name, args, leaves) if g is not None]
        total = None
        for g, w in zip(grads, _weights(grads), strict=True):
            part = (g * w).sum()
            total = part if total is None else total + part
        return total

    total = slope()
    if total is None:
        pytest.skip("this sample has no gradient")
    # a slope without history does not depend on an input: the differences below must then be zero
    seconds = eager.autograd.grad([total], leaves, allow_unused=True) if total.requires_grad else [None] * len(leaves)
    for position, (x, h) in enumerate(zip(leaves, seconds, strict=True)):
        expected = _numeric(lambda: float(slope().item()), x, name in SYMMETRIC)
        actual = np.zeros_like(expected) if h is None else h.detach()._array
        actual = _symmetric_part(actual) if name in SYMMETRIC else actual
        np.testing.assert_allclose(actual, expected, rtol=5e-4, atol=5e-6, err_msg=f"{name}: input {position}")
