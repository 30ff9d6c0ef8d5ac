"""Random programs (programs.py): eager against numpy, compiled against eager, gradients against finite differences."""
from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import eager
from tests.ops.programs import grow

_FUZZ = settings(deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@settings(_FUZZ, max_examples=250)
@given(st.data())
def test_programs_agree_with_numpy(data: Any) -> None:
    program = grow(data.draw, 12)
    found = program.on_tensors([eager.tensor(a) for a in program.inputs])
    for i, (t, a) in enumerate(zip(found, program.on_arrays(), strict=True)):
        assert t.dtype is eager.float64
        np.testing.assert_allclose(t.numpy(), a, rtol=1e-7, atol=1e-8, err_msg=f"value {i} of\n{program}")


def _objective(program: Any, leaves: list[Any]) -> Any:
    """A smooth-ish number of everything that was computed, weighted apart."""
    total = 0.0
    for i, t in enumerate(program.on_tensors(leaves)[len(leaves) :]):
        total = total + (t * (0.3 + 0.1 * i)).sum()
    return total


@settings(_FUZZ, max_examples=60)
@given(st.data())
def test_gradients_agree_with_differences_along_a_direction(data: Any) -> None:
    program = grow(data.draw, 8)
    if not program.steps:
        return
    leaves = [eager.tensor(a, requires_grad=True) for a in program.inputs]
    grads = eager.autograd.grad(_objective(program, leaves), leaves, allow_unused=True)
    random = np.random.default_rng(3)
    directions = [random.standard_normal(a.shape) for a in program.inputs]
    slope = sum(float((g * eager.tensor(d)).sum()) for g, d in zip(grads, directions, strict=True) if g is not None)

    def along(step: float) -> float:
        moved = [eager.tensor(a + step * d) for a, d in zip(program.inputs, directions, strict=True)]
        return float(_objective(program, moved))

    with eager.no_grad():
        steps = [(along(h) - along(-h)) / (2 * h) for h in (1e-6, 3e-6)]
    if not np.isclose(*steps, rtol=1e-4, atol=1e-4):
        return  # a kink (a clamp, a maximum) lies within the step: the difference quotient does not approximate the derivative
    np.testing.assert_allclose(slope, steps[0], rtol=1e-4, atol=1e-4, err_msg=str(program))


# Without shrinking: a failing program is short already, and shrinking would compile each variant.
@settings(_FUZZ, max_examples=12, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(st.data())
def test_compiled_programs_agree_with_eager(data: Any) -> None:
    program = grow(data.draw, 8)
    if not program.steps:
        return
    eager.compiler.reset()

    def values(*leaves: Any) -> tuple[Any, ...]:
        return tuple(program.on_tensors(list(leaves))[len(leaves) :])

    def run(fn: Any) -> tuple[Any, Any]:
        leaves = [eager.tensor(a, requires_grad=True) for a in program.inputs]
        results = fn(*leaves)
        total = sum((t * (0.3 + 0.1 * i)).sum() for i, t in enumerate(results))
        return results, eager.autograd.grad(total, leaves, allow_unused=True)

    expected, found = run(values), run(eager.compile(values, fullgraph=True))
    for kind, theirs, ours in zip(("value", "gradient"), expected, found, strict=True):
        for i, (a, b) in enumerate(zip(theirs, ours, strict=True)):
            assert (a is None) == (b is None), f"{kind} {i} of\n{program}"
            if a is not None:
                assert a.shape == b.shape and a.dtype is b.dtype
                np.testing.assert_allclose(b.detach().numpy(), a.detach().numpy(), rtol=1e-7, atol=1e-8,
                                           err_msg=f"{kind} {i} of\n{program}")  # fmt: skip
