"""torch's former argument order, with a number before a tensor, equals the call with keywords, eager and compiled."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import eager as torch
from eager.public import wrapper


def m(*shape: int) -> Any:
    torch.manual_seed(len(shape))
    return torch.rand(*shape) + 1


# Pairs: a call in the former order, and the equivalent call. x: (2, 2); v: a vector; b: batches.
CASES: list[tuple[str, str]] = [
    ("x.add(0.5, y)", "x.add(y, alpha=0.5)"),
    ("x.add_(0.5, y)", "x.add_(y, alpha=0.5)"),
    ("torch.add(x, 0.5, y)", "torch.add(x, y, alpha=0.5)"),
    ("torch.add(x, 0.5, y, out=torch.empty(2, 2))", "torch.add(x, y, alpha=0.5)"),
    ("x.sub(2, y)", "x.sub(y, alpha=2)"),
    ("x.sub_(2, y)", "x.sub_(y, alpha=2)"),
    ("torch.sub(x, 2, y)", "torch.sub(x, y, alpha=2)"),
    ("x.addcmul(0.5, y, x)", "x.addcmul(y, x, value=0.5)"),
    ("x.addcmul_(0.5, y, y)", "x.addcmul_(y, y, value=0.5)"),
    ("torch.addcdiv(x, -0.5, y, x)", "torch.addcdiv(x, y, x, value=-0.5)"),
    ("x.addcdiv_(-0.5, y, y)", "x.addcdiv_(y, y, value=-0.5)"),
    ("torch.addmm(0.5, x, 2, y, y)", "torch.addmm(x, y, y, beta=0.5, alpha=2)"),
    ("torch.addmm(0.5, x, y, y)", "torch.addmm(x, y, y, beta=0.5)"),
    ("x.addmm(0.5, 2, y, y)", "x.addmm(y, y, beta=0.5, alpha=2)"),
    ("x.addmm_(0.5, y, y)", "x.addmm_(y, y, beta=0.5)"),
    ("torch.addmv(0.5, v, 2, y, v)", "torch.addmv(v, y, v, beta=0.5, alpha=2)"),
    ("x.addr_(0.5, 2, v, v)", "x.addr_(v, v, beta=0.5, alpha=2)"),
    ("torch.addbmm(0.5, x, 2, b, b)", "torch.addbmm(x, b, b, beta=0.5, alpha=2)"),
    ("b.baddbmm(0.5, b, b)", "b.baddbmm(b, b, beta=0.5)"),
]


def program(text: str) -> Callable[..., Any]:
    made: Callable[..., Any] = eval(f"lambda x, y, v, b: {text}", {"torch": torch})
    return made


@pytest.mark.filterwarnings("ignore:This overload")
@pytest.mark.parametrize(("former", "now"), CASES)
def test_a_former_order_means_the_keywords(former: str, now: str) -> None:
    def args() -> tuple[Any, ...]:
        return m(2, 2), m(2, 2).t(), m(2), m(3, 2, 2)

    expected = program(now)(*args())
    assert torch.equal(program(former)(*args()), expected)
    assert torch.equal(torch.compile(program(former), fullgraph=True, backend="aot_eager")(*args()), expected)


def test_gradients_flow() -> None:
    x = torch.ones(2, requires_grad=True)
    with warnings.catch_warnings(action="ignore"):
        torch.add(x, 3, x * x).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [7.0, 7.0]


def test_it_warns_once() -> None:
    wrapper._warned.clear()
    with pytest.warns(UserWarning, match=r"This overload of add_ is deprecated.*alpha"):
        m(2).add_(2, m(2))
    with warnings.catch_warnings(action="error"):
        m(2).addcmul_(2, m(2), m(2))


def test_other_orders_and_a_number_given_twice_are_refused() -> None:
    for call in (lambda: m(2).addcmul(m(2), 2, m(2)), lambda: m(2).add(2, m(2), alpha=3), lambda: m(2).add(m(2), 2, m(2))):
        with pytest.raises(TypeError):
            call()


def test_a_function_and_its_method_are_different_objects() -> None:
    """`__torch_function__` receives `torch.add` for a function call and `torch.Tensor.add` for a method call."""
    names = ("add", "sub", "addcmul", "addcdiv")
    assert not [name for name in names if getattr(torch, name) is getattr(torch.Tensor, name)]
