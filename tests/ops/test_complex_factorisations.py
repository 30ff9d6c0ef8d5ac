"""First and second order gradients of factorisations of complex matrices, for functions that no free phase affects."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import eager as torch
from eager.autograd import gradcheck, gradgradcheck

L = torch.linalg


def _matrix(*shape: int, seed: int = 0, real: bool = False) -> Any:
    stream = np.random.default_rng(seed)
    a = stream.standard_normal(shape) + 1j * stream.standard_normal(shape)
    a = a + 2 * np.eye(*shape[-2:])
    return torch.from_numpy(a.real.copy() if real else a).requires_grad_()


def _definite(a: Any) -> Any:
    return a @ a.mH + torch.eye(a.shape[-1])


def _low_rank(a: Any) -> Any:
    u, s, vh = L.svd(a, full_matrices=False)
    return s, (u[..., :2] * s[..., None, :2]) @ vh[..., :2, :]


def _projections(a: Any) -> Any:
    values, vectors = L.eigh(_definite(a))
    return values, vectors[..., :1] @ vectors[..., :1].mH


def _lengths(a: Any) -> Any:
    values, vectors = L.eig(a)
    return values, vectors.abs()


SQUARE: dict[str, Callable[[Any], Any]] = {
    "inv": L.inv, "det": L.det, "logabsdet": lambda a: L.slogdet(a).logabsdet, "cholesky": lambda a: L.cholesky(_definite(a)),
    "qr": lambda a: tuple(L.qr(a)), "svd": _low_rank, "svdvals": L.svdvals, "eigh": _projections, "eig": _lengths,
    "eigvals": L.eigvals, "lu_factor": lambda a: L.lu_factor(a)[0], "lu": lambda a: tuple(L.lu(a)[1:]),
    "pinv": L.pinv, "matrix_exp": L.matrix_exp,
    "solve": lambda a: L.solve(a, a @ a), "solve_triangular": lambda a: L.solve_triangular(a.triu(), a[:, :2].conj(), upper=True),
    "norm": lambda a: tuple(L.vector_norm(a, p, dim=1) for p in (1, 2, 3, float("inf"))),
    "nuclear": lambda a: L.matrix_norm(a, "nuc"), "cond": L.cond,
}  # fmt: skip
RECTANGULAR = ("qr", "svd", "svdvals", "lu_factor", "pinv")


@pytest.mark.parametrize("name", SQUARE)
def test_gradients_of_square_complex_matrices(name: str) -> None:
    assert gradcheck(SQUARE[name], [_matrix(3, 3)])
    assert gradgradcheck(SQUARE[name], [_matrix(3, 3)])


@pytest.mark.parametrize("shape", [(4, 3), (2, 3), (2, 3, 2)])
@pytest.mark.parametrize("name", RECTANGULAR)
def test_gradients_of_rectangular_complex_matrices(name: str, shape: tuple[int, ...]) -> None:
    assert gradcheck(SQUARE[name], [_matrix(*shape)])


@pytest.mark.parametrize("name", ["eig", "eigvals", "lu_factor", "lu"])
@pytest.mark.parametrize("shape", [(3, 3), (2, 2, 2)])
def test_gradients_of_real_matrices(name: str, shape: tuple[int, ...]) -> None:
    assert gradcheck(SQUARE[name], [_matrix(*shape, real=True)])


def test_complex_draws_have_both_parts() -> None:
    torch.manual_seed(0)
    for drawn in (torch.randn(20000, dtype=torch.complex64), torch.randn_like(torch.zeros(20000, dtype=torch.complex64)),
                  torch.zeros(20000, dtype=torch.complex64).normal_()):  # fmt: skip
        assert abs(drawn.real.var().item() - 0.5) < 0.02 and abs(drawn.imag.var().item() - 0.5) < 0.02
        assert abs((drawn.real * drawn.imag).mean().item()) < 0.02
    uniform = torch.rand(20000, dtype=torch.complex128)
    assert abs(uniform.real.mean().item() - 0.5) < 0.02 and abs(uniform.imag.mean().item() - 0.5) < 0.02


@pytest.mark.parametrize("real", [True, False])
def test_the_gradient_of_eigh_is_hermitian(real: bool) -> None:
    """A step along a gradient with an antihermitian part would leave the hermitian matrices, the domain of eigh."""
    a = _definite(_matrix(4, 4, real=real)).detach().requires_grad_()
    values, vectors = L.eigh(a)
    weights = torch.arange(16.0, dtype=torch.float64).view(4, 4).cos()
    (values.sum() + (vectors.abs().square() * weights).sum()).backward()
    assert torch.allclose(a.grad, a.grad.mH) and (a.grad - torch.eye(4)).abs().max() > 1e-3
