"""Calls of torch's functions with sparse tensors have the values and gradients of the same calls with dense tensors."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import eager as torch
from eager.nn import functional as F

AT = torch.tensor([[0, 1, 1, 0], [2, 0, 2, 2]])  # (0, 2) twice
AT3 = torch.tensor([[0, 1, 1], [0, 0, 1], [2, 0, 2]])


def _sparse(values: Any, at: Any = AT, size: tuple[int, ...] = (2, 3)) -> Any:
    return torch.sparse_coo_tensor(at, values, size)


def _dense(values: Any, at: Any = AT, size: tuple[int, ...] = (2, 3)) -> Any:
    return torch.zeros(size, dtype=values.dtype).index_put(tuple(at), values, accumulate=True)


# Of a (2, 3) matrix and a dense one; each is called with the matrix sparse, and with it dense.
CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "add of two": lambda s, d: torch.add(s, s * 3, alpha=2), "add to dense": lambda s, d: torch.add(d, s, alpha=2),
    "dense + sparse": lambda s, d: d + s, "dense - sparse": lambda s, d: d - s, "sub of two": lambda s, d: torch.sub(s, s * 3, alpha=2),
    "mul by number": lambda s, d: torch.mul(s, 2), "number * sparse": lambda s, d: 2 * s, "mul by dense": lambda s, d: torch.mul(s, d),
    "dense * sparse": lambda s, d: d * s, "mul by row": lambda s, d: s * d[:1], "mul by 0-d": lambda s, d: s * d[0, 0],
    "mul of two": lambda s, d: s * (s * 2), "div": lambda s, d: torch.div(s, 2),
    "floor": lambda s, d: torch.div(s, 2, rounding_mode="floor"),
    "rounded": lambda s, d: torch.div(s, 2, rounding_mode="trunc"), "power": lambda s, d: s**2, "negative": lambda s, d: torch.neg(-s),
    "mm": lambda s, d: torch.mm(s, d.t()), "mm from the right": lambda s, d: torch.mm(d.t(), s), "@": lambda s, d: s @ d.t(),
    "@ from the right": lambda s, d: d.t() @ s, "mv": lambda s, d: torch.mv(s, d[0]), "vector @": lambda s, d: d[:, 0] @ s,
    "product of two": lambda s, d: torch.mm(s, (s * 2).t()),
    "matmul with batch": lambda s, d: torch.matmul(s, torch.stack([d.t(), d.t() * 2])),
    "batch @": lambda s, d: torch.stack([d.t(), d.t() * 2]) @ s, "addmm": lambda s, d: torch.addmm(d[:, :2], s, d.t(), beta=0.5, alpha=2),
    "torch.sparse.addmm": lambda s, d: torch.addmm(d[:, :2], s, d.t()), "spmm": lambda s, d: torch.spmm(s, d.t()),
    "linear": lambda s, d: F.linear(s, d), "linear with sparse weight": lambda s, d: F.linear(d, s),
    "sum": lambda s, d: torch.sum(s), "sum over rows": lambda s, d: torch.sum(s, 0), "sum over columns": lambda s, d: s.sum(-1),
    "sum over both": lambda s, d: torch.sum(s, (0, 1)), "sum kept": lambda s, d: torch.sum(s, 1, keepdim=True),
    "cat": lambda s, d: torch.cat([s, s * 2]), "cat of columns": lambda s, d: torch.cat([s, s * 2], -1),
    "stack": lambda s, d: torch.stack([s, s * 2], 1), "hstack": lambda s, d: torch.hstack([s, s]),
    "vstack": lambda s, d: torch.vstack([s, s]),
    "t": lambda s, d: torch.t(s), "transpose": lambda s, d: torch.transpose(s, 0, -1), "permute": lambda s, d: torch.permute(s, (1, 0)),
    "unsqueeze": lambda s, d: torch.unsqueeze(s, 1), "unsqueeze last": lambda s, d: s.unsqueeze(-1), "clone": lambda s, d: torch.clone(s),
    "select": lambda s, d: torch.select(s, 1, 2), "row": lambda s, d: s[1], "element": lambda s, d: s[0, -1],
    "new dim": lambda s, d: s[None],
    "index_select": lambda s, d: torch.index_select(s, 1, torch.tensor([2, 0, 2, 1])), "unbind": lambda s, d: s.unbind(1)[2],
    "index_select none": lambda s, d: s.index_select(0, torch.tensor([], dtype=torch.int64)),
    "narrow_copy": lambda s, d: s.narrow_copy(1, 1, 2), "norm": lambda s, d: torch.norm(s),
    "dropout": lambda s, d: F.dropout(s, 0.5, False),
    "relu": lambda s, d: F.relu(s), "sqrt": lambda s, d: torch.sqrt(s), "sin": lambda s, d: torch.sin(s), "erf": lambda s, d: torch.erf(s),
    "nan_to_num": lambda s, d: torch.nan_to_num(s), "to_dense": lambda s, d: s.to_dense(),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_a_call_with_a_sparse_tensor_equals_the_call_with_the_dense_tensor(name: str) -> None:
    found = []
    for make in (_sparse, _dense):
        values = torch.tensor([3.0, 4.0, 5.0, 0.5], dtype=torch.float64, requires_grad=True)
        dense = torch.arange(1.0, 7.0, dtype=torch.float64).view(2, 3).requires_grad_()
        result = CALLS[name](make(values), dense)
        result = result.to_dense()
        weights = torch.linspace(-1, 2, result.numel(), dtype=torch.float64).view(result.shape)
        grads = torch.autograd.grad((result * weights).sum(), (values, dense), allow_unused=True, materialize_grads=True) \
            if result.requires_grad else ()  # fmt: skip
        found.append((result, *grads))
    for a, b in zip(*found, strict=True):
        assert a.shape == b.shape and torch.allclose(a, b)


def test_products_of_batches() -> None:
    values, dense = torch.tensor([3.0, 4.0, 5.0]), torch.randn(2, 3, 2)
    s, d = _sparse(values, AT3, (2, 2, 3)), _dense(values, AT3, (2, 2, 3))
    assert torch.allclose(torch.bmm(s, dense), torch.bmm(d, dense)) and torch.allclose(s @ dense, d @ dense)


def test_dense_dims_after_sparse_dims() -> None:
    h = torch.sparse_coo_tensor(AT[:, :3], torch.arange(6.0).view(3, 2), (2, 3, 2))
    d = h.to_dense()
    for call in (lambda x: torch.sum(x, 0), lambda x: torch.sum(x, 2), lambda x: torch.sum(x, (0, 1)), lambda x: x.select(2, 1),
                 lambda x: x[0, 2], lambda x: torch.cat([x, x], 2), lambda x: torch.cat([x, x], 1), lambda x: x.permute(1, 0, 2),
                 lambda x: x.unsqueeze(3), lambda x: x.unsqueeze(1), lambda x: x * torch.arange(12.0).view(2, 3, 2),
                 lambda x: x.index_select(2, torch.tensor([1, 1]))):  # fmt: skip
        assert torch.equal(call(h).to_dense(), call(d))
    assert torch.sum(h, 0).is_sparse and not torch.sum(h, (0, 1)).is_sparse


def test_results_are_sparse_where_they_are_in_torch() -> None:
    s, d = _sparse(torch.ones(4)), torch.ones(2, 3)
    sparse = (s + s, d * s, s @ s.t(), torch.smm(s, d.t()), torch.hspmm(s, d.t()), torch.sum(s, 0), s[0], torch.zeros_like(s),
              torch.empty_like(s), s.new_zeros(2, 2), torch.isnan(s), torch.cat([s, s]))  # fmt: skip
    assert all(r.is_sparse for r in sparse)
    dense = (d + s, s @ d.t(), d.t() @ s, torch.sum(s), s.sum((0, 1)), s[0, 0], torch.any(s), s.new_tensor([1.0]))
    assert not any(r.is_sparse for r in dense)
    assert isinstance(s, torch.Tensor) and not isinstance(s, torch.nn.Parameter) and isinstance(s, torch.sparse.SparseTensor)
    assert torch.zeros_like(s)._nnz() == 0 and torch.is_tensor(s) and torch.numel(s) == 6 and s.stride() == (0, 0)


def test_sums_of_integers_and_bools_count() -> None:
    for values in (torch.tensor([1, 2], dtype=torch.int32), torch.tensor([True, True])):
        s = torch.sparse_coo_tensor([[0, 1], [2, 2]], values, (2, 3))
        for dim in (0, 1, (0, 1), None):
            found, expected = torch.sum(s, dim).to_dense(), s.to_dense().sum(dim)
            assert found.dtype is expected.dtype is torch.int64 and torch.equal(found, expected)
    assert torch.sum(s, 0, dtype=torch.float64).dtype is torch.float64


def test_no_elements_and_dims_of_size_zero() -> None:
    d = torch.ones(3, 2)
    for size in ((2, 3), (0, 3)):
        z = torch.sparse_coo_tensor(torch.zeros(2, 0, dtype=torch.int64), torch.zeros(0), size)
        for call in (lambda x: x + x, lambda x: x * 2, lambda x: x @ d, lambda x: x.t(), lambda x: torch.sum(x, 0), lambda x: torch.sum(x),
                     lambda x: torch.cat([x, x]), lambda x: x.narrow_copy(1, 1, 0), lambda x: x.index_select(1, torch.tensor([2, 0])),
                     lambda x: x.unsqueeze(1), lambda x: x.abs()):  # fmt: skip
            assert torch.equal(call(z).to_dense(), call(torch.zeros(size)))
        assert z.coalesce().values().shape == (0,) and not torch.any(z)


def test_writes_in_place() -> None:
    s, d = _sparse(torch.ones(4)), torch.ones(2, 3)
    for name, other in (("mul_", 2), ("mul_", d * 3), ("div_", 2), ("add_", s), ("sub_", s), ("mul_", s)):
        x = s.clone()
        plain = s.to_dense()
        y = getattr(x, name)(other)
        assert y is x
        getattr(plain, name)(other.to_dense() if isinstance(other, torch.sparse.SparseTensor) else other)
        assert torch.equal(x.to_dense(), plain), name
    x = d.clone()
    assert x.add_(s, alpha=2) is x and torch.equal(x, d + 2 * s.to_dense())
    x = s.clone().abs_().neg_()
    assert torch.equal(x.to_dense(), -s.to_dense())
    assert torch.equal(s.clone().sparse_resize_((3, 4), 2, 0).to_dense()[:2, :3], s.to_dense())
    assert s.clone().sparse_resize_and_clear_((5,), 1, 0).shape == (5,)


def test_diagonals() -> None:
    found = torch.sparse.spdiags(torch.arange(6.0).view(2, 3), torch.tensor([0, 1]), (3, 3))
    assert found.to_dense().tolist() == [[0.0, 4.0, 0.0], [0.0, 1.0, 5.0], [0.0, 0.0, 2.0]]
    with pytest.raises(RuntimeError, match="duplicate"):
        torch.sparse.spdiags(torch.ones(2, 3), torch.tensor([0, 0]), (3, 3))


@pytest.mark.parametrize(("error", "text", "call"), [
    (RuntimeError, "Use add.dense, sparse. instead", lambda s, d: s + d),
    (RuntimeError, "Use add.dense, sparse. instead", lambda s, d: s + 1),
    (RuntimeError, "same size", lambda s, d: d[0] + s), (RuntimeError, "Sparse division requires a scalar", lambda s, d: s / d),
    (RuntimeError, "Sparse division requires a scalar", lambda s, d: d / s),
    (RuntimeError, "a dense tensor was found", lambda s, d: torch.cat([s, d])),
    (IndexError, "Dimension out of range", lambda s, d: s.sum(3)), (IndexError, "index 5 out of range", lambda s, d: s.select(0, 5)),
    (IndexError, "index contains 9", lambda s, d: s.index_select(0, torch.tensor([9]))),
    (NotImplementedError, "torch.exp: not implemented for sparse", lambda s, d: torch.exp(s)),
    (NotImplementedError, "Tensor.view: not implemented for sparse", lambda s, d: s.view(6)),
    (NotImplementedError, "comparisons of sparse", lambda s, d: s == s), (NotImplementedError, "indexing of a sparse", lambda s, d: s[0:1]),
    (NotImplementedError, "in training", lambda s, d: F.dropout(s)),
    (NotImplementedError, "mask must be a sparse", lambda s, d: d.sparse_mask(d)),
    (RuntimeError, "doesn't have storage", lambda s, d: s.data_ptr()), (TypeError, "Sparse layout", lambda s, d: s.numpy()),
    (RuntimeError, "copy_.. between dense and sparse", lambda s, d: d.copy_(s)), (RuntimeError, "ambiguous", lambda s, d: bool(s)),
    (RuntimeError, "full reductions", lambda s, d: torch.norm(s, dim=0)), (RuntimeError, "3 sparse dims", lambda s, d: torch.bmm(s, d)),
    (AttributeError, "no attribute 'no_such'", lambda s, d: s.no_such),
    (NotImplementedError, "to_sparse_csr", lambda s, d: s.to_sparse_csr()),
])  # fmt: skip
def test_calls_that_torch_refuses_are_refused(error: type[Exception], text: str, call: Callable[[Any, Any], Any]) -> None:
    with pytest.raises(error, match=text):
        call(_sparse(torch.ones(4)), torch.ones(2, 3))


class _Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = torch.nn.Linear(3, 5), torch.nn.Linear(5, 2)

    def forward(self, x: Any, graph: Any) -> Any:
        x = torch.relu(self.a(torch.spmm(graph, x)))
        return self.b(torch.mm(graph, x) + graph @ x)


def test_a_compiled_graph_network_equals_the_eager_network() -> None:
    torch.manual_seed(0)
    m, x = _Layer(), torch.randn(3, 3)
    graph = torch.sparse_coo_tensor(AT[[1, 1]], torch.rand(4), (3, 3))
    found = []
    for fn in (m, torch.compile(m)):
        m.zero_grad()
        y = fn(x, graph)
        y.sum().backward()
        found.append([y, *(p.grad.clone() for p in m.parameters())])
    for a, b in zip(*found, strict=True):
        assert torch.allclose(a, b, atol=1e-6)
