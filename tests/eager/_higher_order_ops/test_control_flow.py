"""`cond` and `while_loop`, eager and compiled."""
from __future__ import annotations

from typing import Any

import pytest

import eager as torch


@pytest.mark.parametrize("compiled", [False, True])
def test_a_branch_by_data(compiled: bool) -> None:
    def program(x: Any, w: Any) -> Any:
        return torch.cond(x.sum() > 0, lambda a, b: (a * b).sin(), lambda a, b: a - b, (x, w)) * 2

    fn = torch.compile(program) if compiled else program
    for sign in (1.0, -1.0, 1.0):
        x, w = (torch.ones(3) * sign).requires_grad_(), torch.full((3,), 2.0, requires_grad=True)
        y = fn(x, w)
        expected = (x * w).sin() * 2 if sign > 0 else (x - w) * 2
        torch.testing.assert_close(y, expected)
        found, wanted = torch.autograd.grad(y.sum(), (x, w)), torch.autograd.grad(expected.sum(), (x, w))
        torch.testing.assert_close(found, wanted)


def test_branches_may_depend_on_tensors_and_numbers() -> None:
    x = torch.ones(2)
    for pred in (torch.tensor(True), torch.tensor([1]), torch.tensor(0.5), True, 1, 2.0):
        assert torch.equal(torch.cond(pred, torch.sin, torch.cos, (x,)), x.sin())
        assert torch.equal(torch.cond(pred, lambda d: d["x"].sin(), lambda d: d["x"], [{"x": x}]), x.sin())
    assert torch.cond(torch.tensor(False), lambda: 1, lambda: 2) == 2
    for wrong, said in ((torch.tensor([True, False]), "single-element tensor"), ("a", "tensor, but got a")):
        with pytest.raises(RuntimeError, match=f"Expected pred to be bool or {said}"):
            torch.cond(wrong, torch.sin, torch.cos, (x,))
    with pytest.raises(RuntimeError, match="Expect both branches to be callable"):
        torch.cond(True, torch.sin, 3, (x,))
    for operands in (x, (2,)):
        with pytest.raises(RuntimeError, match="only consists of tensor leaves"):
            torch.cond(True, torch.sin, torch.cos, operands)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_loop_by_data(compiled: bool) -> None:
    def program(i: Any, x: Any) -> Any:
        return torch.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (i, x))

    i, x = (torch.compile(program) if compiled else program)(torch.tensor(0), torch.ones(2))
    assert i.item() == 3 and x.tolist() == [8.0, 8.0]


def test_loops_carry_tensors_of_one_shape() -> None:
    assert torch.while_loop(lambda i: i < 3, lambda i: i + 1, (torch.tensor(0),)) == (torch.tensor(3),)
    assert torch.while_loop(lambda i: i < 3, lambda i: [i + 1], [0]) == [3]
    assert torch.while_loop(lambda i: i < 0, lambda i: i + 1, (5,)) == (5,)
    for condition, body, carried, said in (
        (lambda i: 3, lambda i: i, (1,), "boolean scalar tensor or a bool, but got 3"),
        (lambda i: torch.ones(2) > 0, lambda i: i, (1,), "boolean scalar tensor or a bool"),
        (lambda i: i < 3, lambda i: (i, i), (1,), "Expect body_fn to return 1 values"),
        (lambda i: i < 3, 3, (1,), "cond_fn and body_fn to be callable"), (lambda i: i < 3, lambda i: i, 1, "a tuple or list"),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match=said):
            torch.while_loop(condition, body, carried)
