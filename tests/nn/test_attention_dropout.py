"""Dropout in attention: one op whose mask is a function of a random state, drawn again in the gradient."""
from __future__ import annotations

import math
from typing import Any

import pytest

import eager as torch
from eager.nn import functional as F
from eager.utils.checkpoint import checkpoint

P = 0.3
T, S = 37, 300  # keys beyond one block of random numbers
MASKS: dict[str, Any] = {
    "none": lambda: None,
    "causal": lambda: None,
    "bool": lambda: torch.rand(T, S) > 0.4,
    "float": lambda: torch.randn(2, 1, T, S),
}


def _inputs(dtype: Any = torch.float32, lead: tuple[int, ...] = (2, 3)) -> list[Any]:
    torch.manual_seed(0)
    return [torch.randn(*lead, n, 8).to(dtype).requires_grad_() for n in (T, S, S)]


def _attend(q: Any, k: Any, v: Any, mask: Any = None, p: float = P, **more: Any) -> Any:
    torch.manual_seed(1)
    return F.scaled_dot_product_attention(q, k, v, mask, dropout_p=p, **more)


def _kept(q: Any, p: float = P) -> Any:
    """The weights that dropout keeps, 1 or 0: from equal weights, and values that are the identity."""
    lead = tuple(q.shape[:-2])
    zeros, identity = torch.zeros(*lead, T, 1), torch.eye(S).expand(*lead, S, S)
    return (_attend(zeros, torch.zeros(*lead, S, 1), identity, p=p) > 0).double()


def _composed(q: Any, k: Any, v: Any, mask: Any, is_causal: bool, kept: Any) -> Any:
    s = q @ k.mT / math.sqrt(q.shape[-1])
    if is_causal:
        mask = torch.ones(T, S).tril() > 0
    if mask is not None:
        s = torch.where(mask, s, -math.inf) if mask.dtype is torch.bool else s + mask
    return (torch.softmax(s, -1) * kept / (1 - P)) @ v


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5), (torch.bfloat16, 2e-2)])
def test_values_and_gradients_are_the_values_of_the_composition(mask: str, dtype: Any, tolerance: float) -> None:
    inputs = _inputs(dtype)
    m = MASKS[mask]()
    given = m.to(dtype) if mask == "float" else m
    wide = [x.detach().double().requires_grad_() for x in inputs]
    want = _composed(*wide, given.double() if mask == "float" else given, mask == "causal", _kept(inputs[0]))
    got = _attend(*inputs, given, is_causal=mask == "causal")
    g = torch.randn(*want.shape).to(dtype)
    pairs = zip((got, *torch.autograd.grad(got, inputs, g)), (want, *torch.autograd.grad(want, wide, g.double())), strict=True)
    for a, b in pairs:
        assert a.dtype is dtype
        assert (a.double() - b).abs().max().item() <= tolerance * max(1.0, b.abs().max().item())


def test_the_mask_is_the_mask_of_dropout_of_the_weights() -> None:
    q, k, v = _inputs()
    got = _attend(q, k, v)
    torch.manual_seed(1)
    want = F.dropout(torch.softmax(q @ k.mT / math.sqrt(8), -1), P) @ v
    assert torch.allclose(got, want, atol=1e-5)


def test_values_with_more_leading_dims_share_the_mask() -> None:
    q, k, _ = _inputs()
    v = torch.randn(4, 2, 3, S, 8, requires_grad=True)
    got = _attend(q, k, v)
    torch.manual_seed(1)
    want = F.dropout(torch.softmax(q @ k.mT / math.sqrt(8), -1), P) @ v
    for a, b in zip(*(torch.autograd.grad(y.sin().sum(), (q, k, v)) for y in (got, want)), strict=True):
        assert torch.allclose(a, b, atol=1e-4)


def test_calls_draw_separate_masks_of_the_given_probability() -> None:
    q, *_ = _inputs()
    first = _kept(q)
    torch.manual_seed(1)
    again = [F.dropout(torch.ones(*first.shape), P) > 0 for _ in range(2)]
    assert torch.equal(first > 0, again[0])  # the seed repeats the mask, and the generator advances by the number of weights
    count = first.numel()
    assert abs(first.mean().item() - (1 - P)) < 4 * math.sqrt(P * (1 - P) / count)
    both = (first * again[1].double()).mean().item()
    assert abs(both - (1 - P) ** 2) < 4 / math.sqrt(count)


def test_probability_one_gives_zeros_and_zero_gradients() -> None:
    inputs = _inputs()
    state = torch.get_rng_state()
    y = F.scaled_dot_product_attention(*inputs, dropout_p=1.0)
    assert torch.equal(torch.get_rng_state(), state)  # as torch: nothing is drawn
    assert all((x == 0).all() for x in (y, *torch.autograd.grad(y.sum(), inputs)))


@pytest.mark.parametrize("p", [-0.1, 1.5, math.nan])
def test_a_probability_outside_of_the_unit_interval_is_an_error(p: float) -> None:
    with pytest.raises(RuntimeError, match="dropout probability has to be between 0 and 1"):
        _attend(*_inputs(), p=p)


def test_no_tensor_of_the_size_of_the_weights_is_saved() -> None:
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t) or t, lambda t: t):
        _attend(*_inputs())
    assert saved and max(t.numel() for t in saved) <= 2 * 3 * S * 8


def test_recomputation_in_a_checkpoint_draws_the_same_mask() -> None:
    def attend(q: Any, k: Any, v: Any) -> Any:
        return F.scaled_dot_product_attention(q, k, v, dropout_p=P)

    found = []
    for f in (attend, lambda *xs: checkpoint(attend, *xs, use_reentrant=False)):
        inputs = _inputs()  # which seeds the generator
        y = f(*inputs)
        torch.rand(5)
        found.append(torch.autograd.grad(y.sin().sum(), inputs))
    for a, b in zip(*found, strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("randomness", ["different", "same"])
def test_vmap_draws_for_each_row_or_once(randomness: str) -> None:
    q, k, v = (x.detach() for x in _inputs())
    weights, y = (
        torch.func.vmap(_attend, randomness=randomness)(q, k, values) for values in (torch.eye(S).expand(2, 3, S, S), v)
    )
    assert torch.allclose(weights @ v, y, atol=1e-5)
    assert torch.equal(weights[0] > 0, weights[1] > 0) is (randomness == "same")
