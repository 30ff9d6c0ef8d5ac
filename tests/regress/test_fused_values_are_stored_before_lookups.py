"""A value of one element, looked up by index in the kernel that makes it, was read before it was written."""
from __future__ import annotations

import eager as torch


def _masked_and_looked_up(x, g):
    a = torch.where(x <= 3.0, g, 0.0)
    a = torch.where(x >= -3.0, a, 0.0)
    a = torch.where(torch.isnan(x), 0.0, a)
    return a + a.index_select(0, torch.tensor([0]))


def test_a_value_of_one_element_is_stored_before_it_is_looked_up():
    args = torch.full((1,), 0.5), torch.ones(1)
    torch.compiler.reset()
    assert torch.compile(_masked_and_looked_up)(*args).tolist() == [2.0]


def test_gradient_of_index_add_into_itself():
    def double(x):
        return x.index_add(0, torch.tensor([0]), x).nan_to_num().clamp(-3, 3)

    torch.compiler.reset()
    x = torch.tensor([0.5], requires_grad=True)
    (g,) = torch.autograd.grad(torch.compile(double)(x).sum(), x)
    assert g.tolist() == [2.0]
