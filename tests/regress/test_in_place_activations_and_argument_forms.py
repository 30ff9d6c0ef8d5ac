"""In-place activations leave the gradients of layers intact; functions take the argument forms that models use.

An activation writes into the result of a layer, so the gradient of the layer must not need the overwritten values. The zoo of
models found each case.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

import eager as torch
from eager.nn import functional as F


@pytest.mark.parametrize("layer", [
    torch.nn.BatchNorm1d(3), torch.nn.LayerNorm(3), lambda x: F.max_pool1d(x.view(1, 4, 3), 2), lambda x: x.sort(1)[0],
    lambda x: x.topk(2, 1)[0], lambda x: x.max(1)[0], lambda x: x.cummax(0)[0], lambda x: x.kthvalue(2, 1)[0],
    lambda x: x.median(1)[0], lambda x: F.cross_entropy(x, torch.tensor([0, 1, 2, 0]), reduction="none"),
])  # fmt: skip
def test_layers_keep_no_output_that_their_gradient_does_not_name(layer: Callable[[torch.Tensor], torch.Tensor]) -> None:
    torch.manual_seed(0)
    x = torch.randn(4, 3, requires_grad=True)
    expected = torch.autograd.grad(F.relu(layer(x)).sum(), x)[0]
    y = F.relu(layer(x), inplace=True)
    assert torch.allclose(torch.autograd.grad(y.sum(), x)[0], expected)


@pytest.mark.parametrize("activation", [
    F.relu, F.relu6, F.elu, F.selu, F.celu, F.silu, F.mish, F.hardtanh, F.hardsigmoid, F.hardswish, F.leaky_relu,
    lambda x, inplace=False: F.threshold(x, 0.1, 0.3, inplace), lambda x, inplace=False: F.rrelu(x, inplace=inplace),
])  # fmt: skip
def test_activations_in_place_have_the_gradient_of_their_plain_form(activation: Callable[..., torch.Tensor]) -> None:
    torch.manual_seed(0)
    x = (torch.randn(40) * 3).requires_grad_()
    plain = activation(x * 1)
    target = x * 1
    written = activation(target, inplace=True)
    assert written is target
    assert torch.allclose(plain, written)
    g = torch.randn(40)
    assert torch.allclose(torch.autograd.grad(written, x, g)[0], torch.autograd.grad(plain, x, g)[0])


def test_numpys_names_for_arguments() -> None:
    x = torch.tensor([[1.0, 5.0], [4.0, 3.0]])
    assert x.sum(axis=1, keepdims=True).tolist() == [[6.0], [7.0]]
    assert x.max(axis=0).indices.tolist() == [1, 0]
    assert torch.stack([x, x], axis=-1).shape == (2, 2, 2)
    assert x.argmax(axis=1, keepdims=True).tolist() == [[1], [0]]
    assert torch.equal(torch.softmax(x, axis=1), torch.softmax(x, dim=1))
    with pytest.raises(TypeError, match="axes"):
        x.sum(axes=1)


def test_sizes_by_name() -> None:
    x = torch.arange(end=6).float()
    assert x.reshape(shape=(2, 3)).shape == x.view(size=(2, 3)).shape == (2, 3)
    assert x.view(2, 3).permute(dims=(1, 0)).shape == (3, 2)
    assert x.expand(size=(2, 6)).shape == x.repeat(repeats=(2, 1)).shape == x.tile(dims=(2, 1)).shape == (2, 6)
    assert x.flip(dims=(0,))[0] == 5
    assert [len(p) for p in x.split(split_size=4)] == [4, 2]
    assert torch.empty(size=(2,)).shape == torch.randn(size=(2,)).shape == torch.rand(size=(2,)).shape == (2,)
    assert torch.randint(high=3, size=(2,)).max() < 3


INF = float("inf")


@pytest.mark.parametrize("weight", [0.25, 0.5, 0.75, 2.0, -0.75, torch.tensor([0.25, 0.5, 0.75])])
def test_lerp_goes_from_the_nearer_end(weight: float | torch.Tensor) -> None:
    """The half that is nearer to an infinite end keeps it; the gradients are the gradients of a line."""
    x = torch.tensor([-INF, 1.0, 3.0], requires_grad=True)
    end = torch.tensor([2.0, -INF, 5.0], requires_grad=True)
    w = torch.as_tensor(weight).expand(3)
    far = w.abs() >= 0.5
    base, step = torch.where(far, end, x), torch.where(far, w - 1, w) * (end - x)
    for f in (torch.lerp, torch.compile(torch.lerp)):
        got = f(x, end, weight)
        assert torch.equal(got.isnan(), (base + step).isnan()) and torch.allclose(got, base + step, equal_nan=True)
        gx, gend = torch.autograd.grad(got.sum(), (x, end))
        assert torch.equal(gx, 1 - w) and torch.equal(gend, w)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_sums_of_products_of_halves_are_rounded_once(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    x, a, b = (torch.randn(500).to(dtype) for _ in range(3))
    fx, fa, fb = (t.float() for t in (x, a, b))
    for half, full in (
        (torch.lerp(x, a, 0.3), torch.lerp(fx, fa, 0.3)), (torch.lerp(x, a, b), torch.lerp(fx, fa, fb)),
        (torch.addcmul(x, a, b, value=0.5), fx + fa * fb * 0.5), (x.clone().addcmul_(a, b, value=0.5), fx + fa * fb * 0.5),
        (torch.addcdiv(x, a, b, value=0.5), fx + fa / fb * 0.5), (x.clone().addcdiv_(a, b, value=0.5), fx + fa / fb * 0.5),
        (torch._foreach_lerp([x], [a], 0.3)[0], torch.lerp(fx, fa, 0.3)),
    ):  # fmt: skip
        assert half.dtype is dtype
        assert torch.equal(half, full.to(dtype))


def test_methods_with_a_list_of_ints_take_separate_ints() -> None:
    x = torch.arange(6.0).reshape(1, 2, 3, 1)
    assert x.broadcast_to(4, 2, 3, 5).shape == (4, 2, 3, 5)
    assert x.squeeze(0, 3).shape == x.squeeze((0, 3)).shape == x.clone().squeeze_(0, -1).shape == (2, 3)
    assert x.count_nonzero(1, 2).tolist() == x.count_nonzero((1, 2)).tolist() == [[5]]
    assert torch.compile(lambda x: x.broadcast_to(4, 2, 3, 5).squeeze(0, 1) + 1, fullgraph=True)(x).shape == (4, 2, 3, 5)
    with pytest.raises(TypeError):
        torch.broadcast_to(x, 4, 2, 3, 5)  # type: ignore[call-arg]
