"""Random programs that compute, view and write: aot against eager, values, aliasing and gradients.

A failure prints the program as source; paste it into `programs.py` to keep it.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import eager
from eager import Tensor
from tests.fxir.helpers import aliasing, as_list, assert_same_tensors, compile_like

UNARY = ["{} * 2", "{} + 1", "{}.sin()", "{}.tanh()", "{}.abs().sqrt()", "-{}", "{}.relu()", "{}.clone()"]
BINARY = ["{} + {}", "{} * {}", "eager.maximum({}, {})", "eager.where({} > 0, {}, 0.5)"]
REDUCE = ["{}.sum(-1, keepdim=True)", "{}.mean(0, keepdim=True)", "{}.amax(-1, keepdim=True)", "{}.softmax(-1)"]
VIEWS = ["{}.t()", "{}.reshape(-1)", "{}[0]", "{}[1:]", "{}[..., ::2]", "{}.unsqueeze(0)", "{}.detach()", "{}.flip(0)"]
WRITES = ["{}.add_(1)", "{}.mul_({})", "{}.copy_({})", "{}.zero_()", "{}[0] = 0.25", "{}.tanh_()", "{}[..., 1:] *= 2"]
RANDOM = ["{} * eager.rand(3)"]


@st.composite
def programs(draw: Any, writes: bool) -> str:
    """Source of `f(x0, x1)`: every statement reads variables made before it; some results are returned."""
    names = ["x0", "x1"]
    lines = []
    tables = [UNARY, BINARY, REDUCE, VIEWS] + ([WRITES, WRITES, VIEWS] if writes else []) + [RANDOM]
    for _ in range(draw(st.integers(2, 9))):
        template = draw(st.sampled_from(draw(st.sampled_from(tables))))
        picked = [draw(st.sampled_from(names)) for _ in range(template.count("{}"))]
        text = template.format(*picked)
        if template in WRITES:
            body = text
        else:
            names.append(f"v{len(names)}")
            body = f"{names[-1]} = {text}"
        if draw(st.integers(0, 9)) == 0:
            lines += ["    with eager.no_grad():", f"        {body}"]
        else:
            lines.append(f"    {body}")
    results = draw(st.lists(st.sampled_from(names), min_size=1, max_size=4))
    return "def f(x0, x1):\n" + "\n".join(lines) + f"\n    return {', '.join(results)},"


def inputs(grad: bool) -> tuple[list[Tensor], list[Tensor]]:
    """(roots, inputs made of them): the inputs have a history when they want gradients, so they may be written to."""
    eager.manual_seed(4)
    roots = [eager.randn(3, 3).requires_grad_(grad), eager.randn(3).requires_grad_(grad)]
    return roots, [r * 1 if grad else r for r in roots]


def world(run: Any, grad: bool) -> tuple[list[Any], list[Tensor], list[Any]]:
    roots, given = inputs(grad)
    eager.manual_seed(9)
    results = as_list(run(*given))
    everything = [*results, *given]
    total: Any = 0
    for k, t in enumerate(everything):
        if t.requires_grad:
            total = total + (t * t.detach() * (k + 1)).sum()
    grads = list(eager.autograd.grad(total, roots, allow_unused=True)) if isinstance(total, Tensor) else []
    return results, given, grads


def check(source: str, grad: bool) -> None:
    space: dict[str, Any] = {"eager": eager}
    exec(source, space)
    f = space["f"]
    try:
        want = world(f, grad)
    except (RuntimeError, IndexError):
        assume(False)
        return
    if not all(bool(t.detach().isfinite().all()) for t in [*want[0], *want[1]]):
        assume(False)
    _, example = inputs(grad)
    try:
        compiled = compile_like(f, example)
    except NotImplementedError as e:
        assert "separate gradient history" in str(e) or "share memory" in str(e), source
        assume(False)
        return
    got = world(compiled, grad)
    for a, b in zip(got, want, strict=True):
        assert_same_tensors(a, b, rtol=1e-3, atol=1e-4)
    assert aliasing([*got[1], *got[0]]) == aliasing([*want[1], *want[0]])


SLOW = settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow]
)


@SLOW
@given(programs(writes=True))
def test_programs_that_write(source):
    check(source, grad=False)


LEAF_MADE_INSIDE = """def f(x0, x1):
    v2 = x0 * 2
    with eager.no_grad():
        x0.add_(1)
        v3 = v2.t()
        v4 = x0.t()
    return v2, v3, v4, v2.t()
"""
VIEW_OF_NO_RESULT = """def f(x0, x1):
    v2 = x0 * 2
    with eager.no_grad():
        v3 = v2.t()
    return v3,
"""


@pytest.mark.parametrize("source", [LEAF_MADE_INSIDE, VIEW_OF_NO_RESULT])
def test_a_view_made_under_no_grad_is_a_leaf_that_requires_grad(source):
    check(source, grad=True)


@SLOW
@given(programs(writes=True))
def test_programs_that_write_with_gradients(source):
    check(source, grad=True)


@SLOW
@given(programs(writes=False))
def test_pure_programs_with_gradients(source):
    check(source, grad=True)
