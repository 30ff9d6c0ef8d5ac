"""Sparse gradients of embeddings, and the optimizers that descend by them. Numbers are torch 2.13's."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import eager as torch
from eager.nn import functional as F  # noqa: N812

# optimizer, settings, padding_idx, whether of bags, the weights after three steps
TRAINED: list[tuple[str, dict[str, Any], int | None, bool, list[float]]] = [
    ("SparseAdam", {"lr": 0.1}, None, False,
     [-1.0, -0.74377, -0.56195, -0.29502, -0.01343, 0.02609, -0.07459, 0.09505, 0.27316, 0.57248, 0.7543, 0.93612]),
    ("SparseAdam", {"lr": 0.05, "betas": [0.8, 0.9], "maximize": True}, 1, False,
     [-1.0, -0.85647, -0.67465, -0.45455, -0.27273, -0.09091, 0.18349, 0.36483, 0.54717, 0.6701, 0.85192, 1.03373]),
    ("SGD", {"lr": 0.01}, None, False,
     [-1.0, -0.80182, -0.58545, -0.03564, -0.00011, -0.00656, 0.00745, -0.05564, -0.17727, 0.52182, 0.54, 0.42]),
    ("SGD", {"lr": 0.01, "momentum": 0.9}, None, True,
     [-1.0, -0.81217, -0.62054, -0.232, -0.04756, 0.01047, 0.04656, 0.04223, -0.16525, 0.63636, 0.80182, 0.92]),
    ("SGD", {"lr": 0.01, "momentum": 0.9, "nesterov": True}, 2, False,
     [-1.0, -0.77384, -0.4984, 0.20353, 0.01348, -0.08129, 0.09091, 0.27273, 0.45455, 0.41873, 0.28964, -0.102]),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1}, None, True,
     [-1.0, -0.72727, -0.54545, -0.31158, -0.13559, -0.0616, -0.00909, 0.17609, 0.35673, 0.63636, 0.73485, 0.91667]),
]  # fmt: skip
STEPS = ([1, 2, 2], [0, 2, 1], [3, 3, 1])


@pytest.mark.parametrize(("name", "settings", "padding", "bags", "expected"), TRAINED)
def test_training_gives_the_weights_of_torch(name: str, settings: Any, padding: Any, bags: bool, expected: list[float]) -> None:
    w = torch.linspace(-1, 1, 12).view(4, 3).clone().requires_grad_()
    optimizer = getattr(torch.optim, name)([w], **settings)
    for rows in STEPS:
        optimizer.zero_grad()
        at = torch.tensor(rows)
        if bags:
            y = F.embedding_bag(at, w, torch.tensor([0, 2]), sparse=True, mode="mean")
        else:
            y = F.embedding(at, w, sparse=True, padding_idx=padding)
        (y * torch.arange(y.numel()).view(y.shape).float()).pow(2).sum().backward()
        assert w.grad.is_sparse
        optimizer.step()
    np.testing.assert_allclose(w.detach().numpy().reshape(-1), expected, atol=2e-5)


def test_the_gradient_has_the_rows_that_were_used() -> None:
    embedding = torch.nn.Embedding(10, 3, sparse=True, padding_idx=0)
    embedding(torch.tensor([[1, 2], [2, 0]])).sum().backward()
    g = embedding.weight.grad
    assert (g.layout, tuple(g.shape), g._nnz()) == (torch.sparse_coo, (10, 3), 3)
    assert g.coalesce().indices().tolist() == [[1, 2]] and g.coalesce().values().tolist() == [[1.0] * 3, [2.0] * 3]
    found = torch.autograd.grad(embedding(torch.tensor([4])).sum(), embedding.weight)[0]
    assert found.is_sparse and found.to_dense()[4].tolist() == [1.0] * 3


def test_sparse_and_dense_gradients_add_up() -> None:
    w = torch.ones(4, 2, requires_grad=True)
    at = torch.tensor([1, 1])
    F.embedding(at, w, sparse=True).sum().backward()
    F.embedding(at, w, sparse=True).sum().backward()
    assert w.grad.is_sparse and w.grad.to_dense()[1].tolist() == [4.0, 4.0]
    (F.embedding(at, w, sparse=True).sum() + (w * 2).sum()).backward()
    assert not w.grad.is_sparse and w.grad.tolist() == [[2.0, 2.0], [8.0, 8.0], [2.0, 2.0], [2.0, 2.0]]


@pytest.mark.parametrize(("name", "text"), [("Adam", "Adam does not support sparse gradients, please consider SparseAdam instead"),
                                            ("AdamW", "AdamW does not support sparse gradients"),
                                            ("RMSprop", "RMSprop does not support sparse gradients")])  # fmt: skip
def test_other_rules_refuse(name: str, text: str) -> None:
    w = torch.ones(4, 2, requires_grad=True)
    optimizer = getattr(torch.optim, name)([w])
    F.embedding(torch.tensor([1]), w, sparse=True).sum().backward()
    with pytest.raises(RuntimeError, match=text):
        optimizer.step()
    w.grad = None
    w.sum().backward()
    with pytest.raises(RuntimeError, match="SparseAdam does not support dense gradients"):
        torch.optim.SparseAdam([w]).step()


def test_ops_without_a_sparse_gradient_raise() -> None:
    w = torch.ones(4, 2, requires_grad=True)
    with pytest.raises(RuntimeError, match="scale_grad_by_freq not supported with sparse gradients"):
        F.embedding(torch.tensor([1]), w, sparse=True, scale_grad_by_freq=True)
    with pytest.raises(RuntimeError, match="max mode does not support sparse weights"):
        F.embedding_bag(torch.tensor([[1]]), w, sparse=True, mode="max")


def test_a_compiled_model_trains_by_sparse_gradients() -> None:
    embedding = torch.nn.Embedding(5, 2, sparse=True)
    compiled = torch.compile(lambda i: embedding(i) * 3, backend="eager")
    compiled(torch.tensor([1, 1])).sum().backward()
    assert embedding.weight.grad.is_sparse and embedding.weight.grad.to_dense()[1].tolist() == [6.0, 6.0]
