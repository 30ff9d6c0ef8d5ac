"""Results, gradients and errors are eager's for any sequence of sizes, with 0, 1 and equal sizes among them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eager as torch
from eager import nn
from tests.dynamic.support import assert_same

F = nn.functional

PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "broadcast": lambda x, y: x.unsqueeze(1) * y + x.shape[0],
    "product": lambda x, y: (x @ y.t()).softmax(-1) / max(y.shape[0], 1),
    "joined": lambda x, y: torch.cat([x, y], 0)[1:].sum(0),
    "flattened": lambda x, y: x.reshape(-1) * x.numel() + y.sum(),
    "turned": lambda x, y: (x.t().contiguous().view(-1) * 2, y.flip(0)),
    "sliced": lambda x, y: (x[: y.shape[0]] * 2, y[-2:], x[::2]),
    "sizes of results": lambda x, y: x.mean(0) * (y.shape[0] / (x.shape[0] + 1)) + x.new_ones(x.shape[1]) * len(y),
    "padded": lambda x, y: F.pad(x, (0, 0, 1, y.shape[0])).cumsum(0),
    "stacked": lambda x, y: torch.stack([x, x * 2], 1).flatten(0, 1) + y.mean(),
    "masked by position": lambda x, y: x.masked_fill(torch.arange(x.shape[0]).unsqueeze(1) < y.shape[0], 0.0),
    "split": lambda x, y: (*(p * 2 for p in x.chunk(2, 0)), y.amax() if y.shape[0] else x.sum()),
    "branch": lambda x, y: x * 2 if x.shape[0] == y.shape[0] else x.sum() + y.sum() if x.shape[0] > y.shape[0] else y * 3,
    "normalised": lambda x, y: F.layer_norm(x, (3,)) + y.norm(),
    "expanded": lambda x, y: x.unsqueeze(0).expand(y.shape[0], -1, -1).sum(1) + y,
}  # fmt: skip
sizes = st.lists(st.tuples(*[st.sampled_from([0, 1, 2, 3, 4, 5, 7])] * 2), min_size=3, max_size=6)


def _run(fn: Callable[..., Any], a: int, b: int) -> tuple[Any, ...]:
    """(results, gradients), or the error's class and text."""
    x = torch.arange(3.0 * a).view(a, 3).cos().requires_grad_()
    y = torch.arange(3.0 * b).view(b, 3).sin().requires_grad_()
    try:
        found = fn(x, y)
        results = found if isinstance(found, tuple) else (found,)
        sum((r * (k + 1)).sum() for k, r in enumerate(results)).backward()
    except (RuntimeError, IndexError, ValueError) as error:
        return type(error), str(error)
    # The stride of a dim of size 1 is unspecified, so that gradients are compared without strides.
    return tuple(r.detach() for r in results), *((tuple(t.grad.shape), t.grad.reshape(-1)) for t in (x, y) if t.grad is not None)


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("name", PROGRAMS)
@settings(max_examples=6, deadline=None)
@given(drawn=sizes)
def test_any_sequence_of_sizes_agrees_with_eager(name: str, dynamic: bool | None, drawn: list[tuple[int, int]]) -> None:
    fn = PROGRAMS[name]
    made = torch.compile(fn, backend="aot_eager", dynamic=dynamic)
    for a, b in drawn:
        mine, theirs = _run(made, a, b), _run(fn, a, b)
        if isinstance(theirs[0], type):
            assert mine == theirs
        else:
            assert_same(mine, theirs)


@pytest.mark.parametrize("name", ["broadcast", "product", "sliced"])
def test_sizes_that_collide_after_code_for_all(name: str) -> None:
    fn = PROGRAMS[name]
    made = torch.compile(fn)
    for a, b in ((3, 5), (4, 7), (6, 6), (1, 6), (0, 4), (2, 9)):
        mine, theirs = _run(made, a, b), _run(fn, a, b)
        if isinstance(theirs[0], type):
            assert mine == theirs
        else:
            assert_same(mine, theirs)
