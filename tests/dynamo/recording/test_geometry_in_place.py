"""Tensors whose shape changes in place (`t_`, `unsqueeze_`, `resize_`, `out=` of another shape): compiled as in eager.

A graph of functions has no tensor that changes its shape. A tensor that the program made becomes the view for later reads
(`tests/regress/test_tensors_become_views_in_place.py`); any other such call breaks the graph. Capture recorded only the result
of such a call, and lost the new shape of the tensor.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import dynamo
import eager as torch

pytestmark = pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
CALLS: dict[str, Callable[[Any], Any]] = {
    "t_": lambda x: x.t_(), "unsqueeze_": lambda x: x.unsqueeze_(0), "squeeze_": lambda x: x.squeeze_(),
    "transpose_": lambda x: x.transpose_(0, 1), "swapaxes_": lambda x: x.swapaxes_(0, 1), "resize_": lambda x: x.resize_(2),
    "as_strided_": lambda x: x.as_strided_((2,), (1,)), "out=": lambda x: torch.add(torch.ones(2, 2), 1, out=x),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("of_input", [True, False])
def test_a_shape_that_changes_in_place_agrees_with_eager(name: str, of_input: bool) -> None:
    def fn(x: Any) -> Any:
        y = x if of_input else x + 1
        z = CALLS[name](y)
        return z * 2, y, z is y

    start = torch.arange(3.0).reshape(3, 1)
    given, expected_given = start.clone(), start.clone()
    found, expected = dynamo.compile(fn)(given), fn(expected_given)
    for a, b in zip((*found[:2], given), (*expected[:2], expected_given), strict=True):
        assert a.shape == b.shape and a.stride() == b.stride() and torch.equal(a, b)
    assert found[2] and expected[2]


def test_fullgraph_refuses_a_change_of_shape() -> None:
    with pytest.raises(Exception, match="in place while it is traced"):
        dynamo.compile(lambda x: x.t_() * 2, fullgraph=True)(torch.ones(2, 3))


def test_shapes_change_in_place_on_the_meta_device() -> None:
    x = torch.ones(2, 3, device="meta")
    assert x.t_() is x and x.shape == (3, 2)


@pytest.mark.parametrize("requires_grad", [False, True])
def test_a_tensor_that_became_a_view_is_the_base_of_its_views(requires_grad: bool) -> None:
    def fn(x: Any) -> Any:
        y = (x * 2).clone()
        before = y.view(-1)
        y.t_()
        after = y[0]
        y.mul_(3)
        y.unsqueeze_(0).transpose_(0, 1)
        return y, before, after

    start = torch.arange(6.0).reshape(2, 3)
    for call in (dynamo.compile(fn), fn):
        x = start.clone().requires_grad_(requires_grad)
        y, before, after = call(x)
        assert y._base is None and before._base is y and after._base is y
        assert y.tolist() == (start * 6).t().unsqueeze(1).tolist() and y.stride() == (1, 3, 3) and after.tolist() == [0.0, 18.0]
        y.mul_(2)
        assert before.tolist() == (start * 12).reshape(-1).tolist()
        if requires_grad:
            (before.sum() + (after * after).sum()).backward()
            expected = (start * 0 + 12).index_put((torch.tensor([0, 1]), torch.tensor([0, 0])), 12 + start[:, 0] * 2 * 12 * 12)
            assert x.grad.tolist() == expected.tolist()


@pytest.mark.parametrize("through_view", [False, True])
def test_a_write_after_a_change_of_shape_has_the_history_of_eager(through_view: bool) -> None:
    def fn(x: Any) -> Any:
        y = x.clone()
        view = y.view_as(y)
        y.t_()
        (view if through_view else y).mul_(3)
        return y, view

    given = torch.arange(6.0).reshape(2, 3)
    for call in (fn, dynamo.compile(fn)):
        x = given.clone().requires_grad_()
        y, view = call(x)
        assert y.grad_fn.name() == ("torch::autograd::CopySlices" if through_view else "MulBackward0")
        assert view.grad_fn.name() == "AsStridedBackward0"
        (y * y + view.t()).sum().backward()
        assert x.grad.tolist() == (given * 18 + 3).tolist()


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_change_of_shape_without_grad_mode_keeps_the_history(backend: str) -> None:
    """A shape that changes without grad mode does not change the history; an earlier change is part of it."""

    def after(x: Any) -> Any:
        y = x.view(3, 1)
        with torch.no_grad():
            y.unsqueeze_(0)
        return (y * 3).view(-1)

    def before(x: Any) -> Any:
        y = (x * 2).median(-1)[0]
        y.transpose_(0, 1)
        with torch.no_grad():
            y.add_(3.0)
        return y

    for fn in (after, before):
        grads = []
        for call in (fn, dynamo.compile(fn, backend=backend)):
            x = torch.arange(3.0).reshape(3, 1, 1).requires_grad_()
            result = call(x)
            grads.append((result, *torch.autograd.grad(result.sum(), x)))
        for expected, found in zip(*grads, strict=True):
            assert expected.shape == found.shape and torch.equal(expected, found)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("breaks", [False, True])
def test_a_tensor_that_backward_needs_may_have_changed_its_shape_before(backend: str, breaks: bool) -> None:
    def fn(x: Any) -> Any:
        y = torch.stack([x, x.sin()], 0)
        y.unsqueeze_(0)
        z = y @ y.mT
        if breaks:
            dynamo.graph_break()
        return z.exp(), y

    grads = []
    for call in (fn, dynamo.compile(fn, backend=backend)):
        x = torch.linspace(-1, 1, 3).requires_grad_()
        z, y = call(x)
        assert y.shape == (1, 2, 3)
        grads.append(torch.autograd.grad(z.sum() + (y * y).sum(), x)[0])
    assert torch.allclose(*grads)
