"""Functions without a derivative, and functions with `out=`, raise an error instead of silently dropping a gradient."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import eager as torch

UNDERIVED: dict[str, Callable[[Any], Any]] = {
    "floor_divide": lambda x: x // 2,
    "floor_divide of a number": lambda x: 2 // (x + 9),
    "floor_divide, in place": lambda x: (x * 1).floor_divide_(2),
    "heaviside": lambda x: torch.heaviside(x, torch.ones(4)),
    "heaviside, in place": lambda x: (x * 1).heaviside_(torch.ones(4)),
    "unique": torch.unique,
    "unique of a dim": lambda x: torch.unique(x.view(2, 2), return_inverse=True, dim=0)[0],
    "unique_consecutive": lambda x: x.unique_consecutive(),
    "weighted bincount": lambda x: torch.bincount(torch.tensor([0, 1, 1, 3]), x),
    "geqrf": lambda x: torch.geqrf(x.view(2, 2)).tau,
    "ldl_factor": lambda x: torch.linalg.ldl_factor(x.view(2, 2)).LD,
    "ldl_solve": lambda x: torch.linalg.ldl_solve(torch.eye(2), torch.tensor([1, 2]), x.view(2, 2)),
}


@pytest.mark.parametrize("name", UNDERIVED)
def test_the_result_requires_grad_and_its_backward_raises(name: str) -> None:
    x = torch.tensor([1.0, -2.0, 0.0, 3.0], requires_grad=True)
    y = UNDERIVED[name](x)
    assert y.requires_grad and not y.is_leaf
    with pytest.raises(NotImplementedError, match=r"the derivative for '.*' is not implemented"):
        (y.sum() + x.sum()).backward()
    with torch.no_grad():
        assert not UNDERIVED[name](x).requires_grad
    (UNDERIVED[name](x).detach().sum() + x.sum()).backward()
    assert x.grad.tolist() == [1.0] * 4


@pytest.mark.parametrize("name", UNDERIVED)
def test_compiled_backward_raises_for_a_missing_derivative(name: str) -> None:
    x = torch.tensor([1.0, -2.0, 0.0, 3.0], requires_grad=True)
    fn = torch.compile(lambda x: UNDERIVED[name](x).sum() + (x * x).sum())
    y = fn(x)
    assert torch.equal(y, UNDERIVED[name](x).sum() + (x * x).sum())
    with pytest.raises(NotImplementedError, match=r"the derivative for '.*' is not implemented"):
        y.backward()
    kept = torch.compile(lambda x: UNDERIVED[name](x).detach().sum() + (x * x).sum())
    kept(x).backward()
    assert torch.equal(x.grad, 2 * x)
    both = torch.compile(lambda x: (UNDERIVED[name](x), x * x), fullgraph=not name.startswith(("unique", "weighted")))
    x.grad = None
    both(x)[1].sum().backward()  # no gradient reaches the result that lacks a derivative
    assert torch.equal(x.grad, 2 * x)


def test_the_derivative_of_nextafter_is_one_except_at_equal_operands() -> None:
    x = torch.tensor([1.0, -2.0, float("nan")], requires_grad=True)
    other = torch.tensor([[1.0], [3.0]], requires_grad=True)
    torch.nextafter(x, other).sum().backward()
    assert x.grad.tolist() == [1.0, 2.0, 2.0]
    assert other.grad.tolist() == [[0.0], [0.0]]


def test_poisson_draws_have_a_gradient_of_zero() -> None:
    rate = torch.tensor([1.0, 2.0], requires_grad=True)
    torch.poisson(rate).sum().backward()
    assert rate.grad.tolist() == [0.0, 0.0]


OUT: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, out: torch.add(x, 1, out=out),
    "sin": lambda x, out: torch.sin(x, out=out),
    "matmul": lambda x, out: torch.matmul(torch.ones(2, 2), x, out=out),
    "sum": lambda x, out: torch.sum(x.view(2, 1), 1, out=out),
    "cat": lambda x, out: torch.cat([x[:1], x[:1]], out=out),
    "cumsum": lambda x, out: torch.cumsum(x, 0, out=out),
    "max": lambda x, out: torch.max(x.view(2, 1), 1, out=(out, torch.zeros(2, dtype=torch.long))),
    "where": lambda x, out: torch.where(x > 0, x, x, out=out),
    "index_select": lambda x, out: torch.index_select(x, 0, torch.tensor([0, 1]), out=out),
    "stack": lambda x, out: torch.stack([x[0], x[1]], out=out),
    "fft": lambda x, out: torch.fft.fft(x, out=out.to(torch.complex64)),
    "nextafter": lambda x, out: torch.nextafter(x, x, out=out),
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", OUT)
def test_out_raises_if_a_tensor_requires_grad(name: str, compiled: bool) -> None:
    fn = torch.compile(OUT[name]) if compiled else OUT[name]
    plain = torch.tensor([1.0, 2.0])
    wanting = torch.tensor([1.0, 2.0], requires_grad=True)
    for x, out in ((wanting, torch.zeros(2)), (plain, wanting * 1), (wanting, wanting * 1)):
        before = out.tolist()
        with pytest.raises(RuntimeError, match=r"functions with out=\.\.\. arguments don't support automatic differentiation"):
            fn(x, out)
        assert out.tolist() == before
        with torch.no_grad():
            fn(x, out)
    fn(plain, torch.zeros(2))


def test_out_accepts_ops_without_a_gradient() -> None:
    x, out = torch.tensor([1.0, 2.0], requires_grad=True), torch.zeros(2, dtype=torch.bool)
    torch.eq(x, 1, out=out)
    assert out.tolist() == [True, False]
    torch.argmax(x, 0, out=(at := torch.tensor(0)))
    assert at.item() == 1


def test_out_of_view_copies_and_of_composite_functions_is_differentiable() -> None:
    x, out = torch.ones(2, 2, requires_grad=True), torch.zeros(4)
    torch.view_copy(x, (4,), out=out)
    torch.diag(x, out=(diagonal := torch.zeros(2)))
    (out.sum() + diagonal.sum()).backward()
    assert x.grad.tolist() == [[2.0, 1.0], [1.0, 2.0]]


@pytest.mark.parametrize("requires_grad", [None, True, False])
@pytest.mark.parametrize("options", [{}, {"copy": True}, {"dtype": torch.float64}])
def test_asarray_keeps_the_history_unless_requires_grad_is_false(options: dict[str, Any], requires_grad: bool | None) -> None:
    x = torch.ones(2, requires_grad=True)
    given = x * 2
    made = torch.asarray(given, requires_grad=requires_grad, **options)
    assert (made is given) is (not options)
    assert made.requires_grad is (requires_grad is not False)
    assert made.is_leaf is (requires_grad is False)
    if made.requires_grad:
        made.sum().backward()
        assert x.grad.tolist() == [2.0, 2.0]
    assert torch.asarray([1.0], requires_grad=requires_grad).requires_grad is bool(requires_grad)
