"""Sparse tensors: gradients through products, conversions, and refusals."""
from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import pytest

import eager as torch
from eager import _utils


def _adjacency() -> torch.sparse.SparseTensor:
    return torch.sparse_coo_tensor(torch.tensor([[0, 1, 1, 0], [1, 0, 2, 1]]), torch.tensor([1.0, 2.0, 3.0, 4.0]), (2, 3))


def test_product_equals_the_dense_product():
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


def test_operands_that_do_not_fit_are_refused():
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


class _Graph(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("adjacency", _adjacency())
        self.register_buffer("kept_out", torch.eye(2).to_sparse(), persistent=False)
        self.layer = torch.nn.Linear(3, 3)

    def forward(self, x: Any) -> Any:
        return torch.sparse.mm(self.adjacency, self.layer(x))


def test_modules_have_sparse_buffers() -> None:
    m = _Graph()
    assert [n for n, _ in m.named_buffers()] == ["adjacency", "kept_out"] and list(m.state_dict()) == [
        "adjacency", "layer.weight", "layer.bias"]  # fmt: skip
    assert m.double().adjacency.dtype is torch.float64 and m.to("cpu", torch.float32).adjacency.dtype is torch.float32
    other = _Graph()
    other.adjacency = other.adjacency * 3
    assert str(other.load_state_dict(m.state_dict())) == "<All keys matched successfully>"
    assert torch.equal(other.adjacency.to_dense(), m.adjacency.to_dense())
    other.load_state_dict({**m.state_dict(), "adjacency": m.adjacency * 2}, assign=True)
    assert torch.equal(other.adjacency.to_dense(), 2 * m.adjacency.to_dense())
    with pytest.raises(RuntimeError, match="expected a sparse tensor of size"):
        other.adjacency.copy_(torch.eye(9).to_sparse())
    with pytest.raises(TypeError, match="cannot assign 'list' object to buffer"):
        other.register_buffer("wrong", [1])


@pytest.mark.parametrize("compiled", [False, True])
def test_gradients_pass_a_sparse_buffer(compiled: bool) -> None:
    m = _Graph()
    n = m.adjacency.shape[1]
    fn = torch.compile(m) if compiled else m
    x = torch.randn(n, 3, requires_grad=True)
    fn(x).sum().backward()
    expected = m.adjacency.to_dense().sum(0)[:, None] * m.layer.weight.sum(0)
    assert torch.allclose(x.grad, expected, atol=1e-6)


@pytest.mark.parametrize("zipped", [True, False])
def test_sparse_tensors_are_saved_and_loaded(zipped: bool) -> None:
    given = {"a": _adjacency().coalesce(), "b": torch.sparse_coo_tensor([[0, 0]], [[1.0, 2.0], [3.0, 4.0]], (3, 2))}
    file = io.BytesIO()
    torch.save(given, file, _use_new_zipfile_serialization=zipped)
    file.seek(0)
    found = torch.load(file)
    for name, t in given.items():
        assert torch.equal(found[name].to_dense(), t.to_dense()) and found[name].is_coalesced() is t.is_coalesced()
    assert torch.equal(copy.deepcopy(given["a"]).to_dense(), given["a"].to_dense())


def test_a_damaged_sparse_tensor_is_refused() -> None:
    with pytest.raises(pickle.UnpicklingError, match="does not fit its parts"):
        _utils._rebuild_sparse_tensor(torch.sparse_coo, (torch.tensor([[0, 5]]), torch.ones(2), (3,), True))
    with pytest.raises(NotImplementedError, match="sparse_csr"):
        _utils._rebuild_sparse_tensor(torch.sparse_csr, (torch.ones(1),))


def test_a_sparse_softmax_normalises_the_stored_elements() -> None:
    dense = torch.tensor([[0.0, 2.0, 1.0], [3.0, 0.0, 0.0], [0.0, 0.0, 0.0]], requires_grad=True)
    for dim in (0, 1, -1):
        full = dense.masked_fill(dense == 0, -float("inf")).softmax(dim).nan_to_num()
        found = torch.sparse.softmax(dense.to_sparse(), dim)
        assert torch.allclose(found.to_dense(), full)
        weights = torch.arange(9.0).view(3, 3)
        a, b = (torch.autograd.grad((y * weights).sum(), dense)[0] for y in (found.to_dense(), full))
        assert torch.allclose(a, b, atol=1e-6)
        assert torch.allclose(torch.sparse.log_softmax(dense.to_sparse(), dim).values().exp(), found.values())
    mixed = torch.randn(2, 3, 4).to_sparse(2)
    assert torch.allclose(torch.sparse.softmax(mixed, 2).to_dense(), mixed.to_dense().softmax(2))
    assert torch.allclose(torch.sparse.softmax(mixed, 1).to_dense(), mixed.to_dense().softmax(1))


def test_functions_of_single_elements_add_up_places_first() -> None:
    twice = torch.sparse_coo_tensor([[0, 0, 1]], [1.0, 2.0, -4.0], (3,))
    assert twice.abs().to_dense().tolist() == [3.0, 4.0, 0.0] and twice.square().to_dense().tolist() == [9.0, 16.0, 0.0]
    assert twice.pow(2).to_dense().tolist() == [9.0, 16.0, 0.0] and twice.norm().item() == 5.0
    assert twice.half().dtype is torch.float16 and twice.is_floating_point() and len(twice) == 3 and twice.is_leaf
    assert (twice - twice).to_dense().tolist() == [0.0] * 3 and twice.neg().add(twice).to_dense().tolist() == [0.0] * 3
    with pytest.raises(RuntimeError, match="cannot raise to zeroth power on sparse tensor"):
        twice.pow(0)
