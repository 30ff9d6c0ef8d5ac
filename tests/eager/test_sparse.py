"""Sparse tensors: gradients through products, conversions, and what is refused."""
from __future__ import annotations

import pytest

import eager as torch


def _adjacency() -> torch.sparse.SparseTensor:
    return torch.sparse_coo_tensor(torch.tensor([[0, 1, 1, 0], [1, 0, 2, 1]]), torch.tensor([1.0, 2.0, 3.0, 4.0]), (2, 3))


def test_product_equals_that_of_the_dense_tensor():
    a, x = _adjacency(), torch.randn(3, 4)
    for found in (a @ x, torch.spmm(a, x), torch.sparse.mm(a, x), torch.mm(a, x), a.coalesce() @ x):
        assert torch.allclose(found, a.to_dense() @ x)
    assert torch.allclose(x.t() @ a.t(), x.t() @ a.to_dense().t())


def test_gradients_reach_values_and_dense_operand():
    values = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, requires_grad=True)
    at, x = torch.tensor([[0, 1, 1], [1, 0, 2]]), torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
    weights = torch.tensor([[1.0, -2.0], [0.5, 3.0]], dtype=torch.float64)
    sparse = torch.sparse.SparseTensor(at, values, (2, 3))
    found = torch.autograd.grad(((sparse @ x) * weights).sum(), (values, x))
    dense = torch.zeros(2, 3, dtype=torch.float64).index_put((at[0], at[1]), values)
    expected = torch.autograd.grad(((dense @ x) * weights).sum(), (values, x))
    for a, b in zip(found, expected, strict=True):
        assert torch.allclose(a, b)


def test_a_leaf_collects_a_sparse_gradient():
    a = torch.sparse_coo_tensor(torch.tensor([[0, 1], [1, 0]]), [1.0, 2.0], (2, 2), requires_grad=True)
    (a @ torch.ones(2, 1)).sum().backward()
    assert a.grad.to_dense().tolist() == [[0.0, 1.0], [1.0, 0.0]]


def test_dense_and_back():
    x = torch.tensor([[0.0, 1.5, 0.0], [2.0, 0.0, -1.0]])
    s = x.to_sparse()
    assert s._nnz() == 3 and s.is_coalesced() and torch.equal(s.to_dense(), x)
    assert torch.equal((s * 2 - s).coalesce().to_dense(), x)
    assert torch.equal(s.t().coalesce().to_dense(), x.t())


def test_what_does_not_fit_is_refused():
    with pytest.raises(RuntimeError, match="size is inconsistent with indices: for dim 0, size is 2 but found index 5"):
        torch.sparse_coo_tensor(torch.tensor([[5]]), [1.0], (2,))
    with pytest.raises(RuntimeError, match="found negative index -1"):
        torch.sparse_coo_tensor(torch.tensor([[-1]]), [1.0], (2,))
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied"):
        _adjacency() @ torch.ones(2, 2)
    with pytest.raises(RuntimeError, match="uncoalesced"):
        _adjacency().values()
    with pytest.raises(NotImplementedError, match="sparse_csr_tensor"):
        torch.sparse_csr_tensor([0, 1], [0], [1.0])
