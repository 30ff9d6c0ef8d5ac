"""The result of a function made of several ops is not a view for its caller, even if the last op makes a view.

In-place writes to results of logsumexp and put were refused, and `_base` led to memory that the caller cannot reach.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import dynamo
import eager as torch
from eager.tape.record import owned

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "logsumexp": lambda x: x.logsumexp(1), "max": lambda x: x.max(1)[0], "min": lambda x: x.min(dim=0).values,
    "matmul": lambda x: torch.matmul(x.view(1, 1, 3, 3), x.expand(2, 3, 3)), "mv": lambda x: x.mv(x[0]), "dot": lambda x: x[0].dot(x[1]),
    "kron": lambda x: torch.kron(x, x), "quantile": lambda x: torch.quantile(x, 0.3), "rot90": torch.rot90,
    "nanquantile": lambda x: x.nanquantile(0.3, dim=1), "put": lambda x: torch.put(x, torch.tensor([0]), x[0, :1]),
    "stft": lambda x: torch.stft(x.view(-1), 4, return_complex=True).abs(),
    "pixel_shuffle": lambda x: torch.pixel_shuffle(x[:1, :1, None, None].expand(1, 4, 2, 2) * 1, 2),
}  # fmt: skip
READ_BY_BACKWARD = {"logsumexp"}


def square() -> Any:
    return torch.arange(9.0).reshape(3, 3).sin().requires_grad_()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_result_has_no_base_and_accepts_writes(name: str) -> None:
    fn, x = FUNCTIONS[name], square()
    (expected,) = torch.autograd.grad((fn(x) * 2).sum(), x)
    result = fn(x)
    assert not result._is_view() and result._base is None
    if name in READ_BY_BACKWARD:
        with torch.no_grad():
            assert torch.equal(fn(x).mul_(2), result * 2)
        assert fn(x.detach()).mul_(2).grad_fn is None
    else:
        (found,) = torch.autograd.grad(result.mul_(2).sum(), x)
        assert torch.allclose(found, expected)
    with torch.no_grad():
        part = fn(x)[..., None]
    assert not part.requires_grad


@pytest.mark.parametrize("name", ["logsumexp", "max", "matmul", "rot90"])
def test_so_it_is_compiled(name: str) -> None:
    compiled = dynamo.compile(FUNCTIONS[name])
    result = compiled(square())
    assert not result._is_view()
    result.mul_(2)


def test_shuffles_by_one_are_copies() -> None:
    x = torch.arange(8.0).reshape(1, 2, 2, 2)
    for result in (torch.pixel_shuffle(x, 1), torch.pixel_unshuffle(x, 1), torch.channel_shuffle(x, 1)):
        result.zero_()
    assert x.sum() == 28


def test_of_several_results_each_may_be_a_view_of_an_argument() -> None:
    x = square()
    made = x * 2
    views = owned((x[0], x[1], made[0]), iter((x,)))
    assert [v._base is x for v in views] == [True, True, False] and views[2]._base is None


def test_views_of_arguments_stay_views() -> None:
    x = square()
    assert torch.atleast_3d(x)._base is x and x.expand_as(x)._is_view() and x.T._base is x
