"""Orthogonal matrices as a parametrization.

Source: Lezcano-Casado, "Trivializations for Gradient-Based Optimization on Manifolds", 2019 (arXiv:1909.09501).
"""
from __future__ import annotations

from typing import Any

from eager import linalg
from eager._tensor.tensor import Tensor
from eager.autograd.grad_mode import no_grad
from eager.base import dtypes
from eager.nn.module import Module
from eager.nn.utils import parametrize
from eager.optable.matmul import transpose_last
from eager.optable.table import OPS

_MAPS = ("matrix_exp", "cayley", "householder")
_EPSILON = {"float32": 2.0**-23, "float64": 2.0**-52, "complex64": 2.0**-23, "complex128": 2.0**-52}


def _adjoint(x: Tensor) -> Tensor:
    t = transpose_last(x)
    return OPS["conj"](t) if t.is_complex() else t


def _eye(n: int, like: Tensor) -> Tensor:
    row = OPS["arange"](0, n, 1, dtypes.int64, like.device)
    return (row.unsqueeze(1) == row).to(like.dtype)


def _is_orthogonal(q: Tensor) -> bool:
    n, k = q.shape[-2:]
    tall = q if n >= k else _adjoint(q)
    n, k = max(n, k), min(n, k)
    error = (OPS["matmul"](_adjoint(tall), tall) - _eye(k, q)).abs().amax((-2, -1))
    return bool((error < n * _EPSILON[q.dtype.name] * 10).all())


def _orthonormalized(a: Tensor) -> Tensor:
    """Q of a QR decomposition whose R has a positive diagonal; an orthogonal `a` is returned unchanged."""
    q, r = linalg.qr(a)
    diagonal = OPS["diagonal"](r, 0, r.ndim - 2, r.ndim - 1)
    return q * (diagonal / diagonal.abs()).unsqueeze(-2)


def _householder_product(vectors: Tensor, tau: Tensor) -> Tensor:
    """The first k columns of H_0 H_1 ..., H = I - tau v v^T. vectors: (*, n, k), with an implied unit diagonal."""
    n, k = vectors.shape[-2:]
    unit = _eye(n, vectors)[:, :k]
    q = unit + vectors * 0
    full = OPS["tril"](vectors, -1) + unit
    for j in reversed(range(k)):
        v = OPS["slice"](full, full.ndim - 1, j, j + 1, 1)
        q = q - v @ (transpose_last(v) @ q) * tau[..., j : j + 1].unsqueeze(-1)
    return q


def _reflections(a: Tensor) -> Tensor:
    """Householder QR of `a` (*, n, k): vectors below the diagonal, R above it, signs of R's diagonal on it."""
    n, k = a.shape[-2:]
    rest, columns = a, []
    row = OPS["arange"](0, n, 1, dtypes.int64, a.device)
    for j in range(k):
        x = rest[..., j]
        head, below = x[..., j : j + 1], OPS["where"](row > j, x, 0.0)
        square = (below * below).sum(-1, keepdim=True)
        flat = square == 0
        length = OPS["sqrt"](head * head + square)
        pivot = OPS["where"](head >= 0, -length, length)
        v = OPS["where"](flat, 0.0, below / OPS["where"](flat, 1.0, head - pivot)) + (row == j).to(a.dtype)
        tau = OPS["where"](flat, 0.0, (pivot - head) / OPS["where"](flat, 1.0, pivot))
        rest = rest - v.unsqueeze(-1) @ (v.unsqueeze(-2) @ rest) * tau.unsqueeze(-1)
        sign = OPS["where"](flat, -OPS["sign"](head), OPS["sign"](pivot))
        columns.append(OPS["where"](row > j, v, 0.0) + (row == j).to(a.dtype) * sign)
    return OPS["stack"](columns, a.ndim - 1) + OPS["triu"](rest, 1)


class _Orthogonal(Module):
    """Maps any matrix to one with orthonormal columns, or orthonormal rows if there are fewer rows than columns."""

    base: Tensor | None

    def __init__(self, weight: Tensor, orthogonal_map: str, *, use_trivialization: bool = True) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        self._trivialized = use_trivialization
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        wide = X.shape[-2] < X.shape[-1]
        x = transpose_last(X) if wide else X
        q = self._by_householder(x) if self.orthogonal_map == "householder" else self._by_skew(x)
        if self._trivialized:
            q = self.base @ q
        return transpose_last(q) if wide else q

    def _by_skew(self, x: Tensor) -> Tensor:
        n, k = x.shape[-2:]
        lower = OPS["tril"](x, 0)
        if n != k:
            lower = OPS["constant_pad_nd"](lower, (0, n - k), 0)
        skew = lower - _adjoint(lower)
        if self.orthogonal_map == "matrix_exp":
            q = OPS["matrix_exp"](skew)
        else:
            q = linalg.solve(_eye(n, skew) - skew * 0.5, _eye(n, skew) + skew * 0.5)
        return OPS["slice"](q, q.ndim - 1, 0, k, 1)

    def _by_householder(self, x: Tensor) -> Tensor:
        vectors = OPS["tril"](x, -1)
        q = _householder_product(vectors, 2.0 / (1.0 + (vectors * vectors).sum(-2)))
        signs = OPS["trunc"](OPS["diagonal"](x.detach(), 0, x.ndim - 2, x.ndim - 1))
        return q * signs.unsqueeze(-2)

    @no_grad()
    def right_inverse(self, Q: Tensor) -> Tensor:
        if Q.shape != self.shape:
            raise ValueError(f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {Q.shape}.")
        n, k = Q.shape[-2:]
        wide = n < k
        q = transpose_last(Q) if wide else Q
        if not self._trivialized:
            if self.orthogonal_map != "householder":
                raise NotImplementedError("It is not possible to assign to the matrix exponential or the Cayley parametrizations "
                                          "when use_trivialization=False.")  # fmt: skip
            a = _reflections(q)
            return transpose_last(a) if wide else a
        n, k = max(n, k), min(n, k)
        if n != k:
            fresh = q.new_empty((*q.shape[:-2], n, n - k)).normal_()
            q = _orthonormalized(OPS["cat"]([q, fresh], q.ndim - 1))
        else:
            q = q.clone() if _is_orthogonal(q) else _orthonormalized(q)
        self.base = q
        # Start from minus the identity: the householder map takes it to the identity, as do exp and Cayley of its skew part.
        square = 0 - _eye(max(Q.shape[-2:]), Q)[: Q.shape[-2], : Q.shape[-1]]
        return square.expand(tuple(Q.shape)).clone()


def orthogonal(module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True) -> Module:
    """Keep the matrices of `module.name` orthogonal (unitary, if complex).

    orthogonal_map: "matrix_exp", "cayley" or "householder"; by default the first for square or complex matrices,
    else the last. use_trivialization: parametrize relative to the present value.
    Raises: ValueError for a missing parameter, fewer than 2 dims, or another map.
    """
    weight: Any = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        orthogonal_map = "matrix_exp" if weight.shape[-2] == weight.shape[-1] or weight.is_complex() else "householder"
    if orthogonal_map not in _MAPS:
        raise ValueError('orthogonal_map has to be one of "matrix_exp", "cayley", "householder". ' f"Got: {orthogonal_map}")
    made = _Orthogonal(weight, orthogonal_map, use_trivialization=use_trivialization)
    return parametrize.register_parametrization(module, name, made, unsafe=True)
