"""Code at which models of the zoo broke their graphs: one graph captures each, with eager's results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import eager as torch
from eager import nn
from eager.nn import functional as F


class Layers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stack = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3))
        self.items = nn.ModuleList([nn.Linear(3, 3) for _ in range(3)])
        with pytest.warns(FutureWarning, match="parametrizations.weight_norm"):
            self.normed = nn.utils.weight_norm(nn.Linear(3, 3))
        self.spectral = nn.utils.spectral_norm(nn.Linear(3, 3)).eval()
        self.parametrized = nn.utils.parametrizations.spectral_norm(nn.Linear(3, 3)).eval()


def slices_of_containers(m: Layers, x: torch.Tensor) -> torch.Tensor:
    first, rest = m.stack[0], m.stack[1:]
    for layer in m.items[:-1]:
        x = layer(x)
    return rest(first(x)) + m.items[-1](x)


def modules_made_in_passing(m: Layers, x: torch.Tensor) -> torch.Tensor:
    return nn.Softmax(dim=-1)(x) + nn.CrossEntropyLoss(reduction="sum")(x, torch.tensor([0, 2])) + nn.Sequential(m.stack[1], nn.ReLU())(x)


def tensors_by_class(m: Layers, x: torch.Tensor) -> torch.Tensor:
    return x + torch.Tensor([1.0, 2.0, 3.0])


def tensors_by_old_names(m: Layers, x: torch.Tensor) -> torch.Tensor:
    return x + torch.FloatTensor([1.0, 2.0, 3.0]) * torch.LongTensor([2])


def limits_of_dtypes(m: Layers, x: torch.Tensor) -> torch.Tensor:
    return x.masked_fill(x > 0, torch.finfo(x.dtype).min).clamp(min=-torch.iinfo(torch.int8).max) + torch.finfo().eps


def containers_backwards(m: Layers, x: torch.Tensor) -> torch.Tensor:
    for layer in reversed(m.items):
        x = layer(x).tanh()
    return x


def writes_to_data(m: Layers, x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y.data *= 2
    return m.stack(y)


def weights_by_power_iteration(m: Layers, x: torch.Tensor) -> torch.Tensor:
    return m.spectral(x) + m.spectral(x + 1) + m.parametrized(x)


def weights_computed_by_a_hook(m: Layers, x: torch.Tensor) -> torch.Tensor:
    return m.normed(x)


@pytest.mark.parametrize("fn", [
    slices_of_containers, modules_made_in_passing, tensors_by_class, tensors_by_old_names, limits_of_dtypes,
    containers_backwards, writes_to_data, weights_by_power_iteration, weights_computed_by_a_hook,
])  # fmt: skip
def test_captured_whole(fn: Callable[[Layers, torch.Tensor], torch.Tensor]) -> None:
    torch.manual_seed(0)
    m, x = Layers(), torch.randn(2, 3)
    compiled = torch.compile(fn, backend="aot_eager", fullgraph=True)
    for _ in range(2):
        expected, found = fn(m, x), compiled(m, x)
        assert torch.allclose(found, expected)
        assert found.requires_grad == expected.requires_grad
        if expected.requires_grad:
            wanted = [p for p in m.parameters() if p.requires_grad]
            grads = [torch.autograd.grad(y.sum(), wanted, allow_unused=True) for y in (expected, found)]
            for a, b in zip(*grads, strict=True):
                assert (a is None) == (b is None)
                assert a is None or torch.allclose(a, b, atol=1e-6)


def test_upsampling_and_norms_are_captured_whole() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        return nn.Upsample(scale_factor=2, mode="nearest")(x[None]).sum(0)[:, :3] + nn.RMSNorm(3, elementwise_affine=False)(x)

    x = torch.randn(2, 3)
    assert torch.allclose(torch.compile(fn, backend="eager", fullgraph=True)(x), fn(x))


def test_a_module_that_leaves_the_call_is_made_in_each_call() -> None:
    def fn(x: torch.Tensor) -> Any:
        act = nn.ReLU()
        return act(x), act

    compiled = torch.compile(fn, backend="eager")
    (y, a), (_, b) = compiled(torch.ones(2)), compiled(torch.ones(2))
    assert torch.equal(y, torch.ones(2))
    assert isinstance(a, nn.ReLU)
    assert a is not b


def test_a_module_with_parameters_draws_them_in_every_call() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        return nn.Linear(3, 2)(x)

    compiled = torch.compile(fn, backend="eager")
    x = torch.randn(4, 3)
    torch.manual_seed(5)
    expected = [fn(x), fn(x)]
    torch.manual_seed(5)
    assert all(torch.equal(compiled(x), e) for e in expected)
    assert not torch.equal(*expected)


def test_a_causal_mask_given_as_a_tensor_needs_no_look_at_its_data() -> None:
    layer = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, 0.0, F.gelu, batch_first=True), 1, enable_nested_tensor=False)
    mask = nn.Transformer.generate_square_subsequent_mask(5)
    x = torch.randn(2, 5, 4)
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    assert torch.allclose(compiled(x, mask=mask), layer(x, mask=mask), atol=1e-6)


def test_power_iterations_write_their_buffers_in_place() -> None:
    layer = nn.utils.parametrizations.spectral_norm(nn.Linear(3, 3))
    held = layer.parametrizations.weight[0]
    u, before = held._u, held._u.clone()
    layer(torch.randn(2, 3))
    assert held._u is u
    assert not torch.equal(u, before)
