"""Randomised factorisations, numbers of sizes, and draws of the rarer distributions, by their properties."""
from __future__ import annotations

import math

import pytest

import eager as torch


@pytest.mark.parametrize("shape", [(20, 10), (10, 20), (2, 9, 7)])
def test_svd_lowrank_finds_a_matrix_of_low_rank(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    a = torch.randn(*shape[:-1], 3, dtype=torch.float64) @ torch.randn(*shape[:-2], 3, shape[-1], dtype=torch.float64)
    u, s, v = torch.svd_lowrank(a, q=5)
    assert torch.allclose(u @ torch.diag_embed(s) @ v.mT, a, atol=1e-8)
    assert torch.allclose(s[..., :3], torch.linalg.svdvals(a)[..., :3])
    with pytest.raises(ValueError, match="q"):
        torch.svd_lowrank(a, q=99)


def test_pca_lowrank_subtracts_the_mean() -> None:
    torch.manual_seed(0)
    a = torch.randn(30, 4, dtype=torch.float64) * torch.tensor([5.0, 2.0, 1.0, 0.5], dtype=torch.float64) + 7
    u, s, v = torch.pca_lowrank(a, q=4)
    assert torch.allclose(u @ torch.diag(s) @ v.mT, a - a.mean(0), atol=1e-8)


def test_draws_have_the_moments_of_their_distributions() -> None:
    torch.manual_seed(0)
    n = 20000
    rates = torch.tensor([0.5, 3.0, 40.0], dtype=torch.float64)
    counts = torch.poisson(rates.expand(n, 3))
    assert torch.equal(counts, counts.round()) and bool((counts >= 0).all())
    assert torch.allclose(counts.mean(0), rates, rtol=0.05) and torch.allclose(counts.var(0), rates, rtol=0.08)
    hits = torch.binomial(torch.full((n,), 10.0), torch.full((n,), 0.3))
    assert math.isclose(float(hits.mean()), 3.0, rel_tol=0.03) and math.isclose(float(hits.var()), 2.1, rel_tol=0.08)
    waits = torch.empty(n).geometric_(0.25)
    assert int(waits.min()) == 1 and math.isclose(float(waits.mean()), 4.0, rel_tol=0.05)
    assert math.isclose(float(torch.empty(n).log_normal_(0.5, 0.25).log().mean()), 0.5, rel_tol=0.05)
    assert math.isclose(float(torch.empty(n).cauchy_(2.0, 0.5).median()), 2.0, rel_tol=0.03)


def test_spectra_of_frames_invert() -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 64, dtype=torch.float64, requires_grad=True)
    window = torch.hann_window(16, dtype=torch.float64)
    spectra = torch.stft(x, 16, hop_length=4, window=window, return_complex=True)
    back = torch.istft(spectra, 16, hop_length=4, window=window, length=64)
    assert torch.allclose(back, x)
    (g,) = torch.autograd.grad(back.sum(), x)
    assert torch.allclose(g, torch.ones_like(x))


def test_numbers_of_sizes() -> None:
    assert torch.sym_int(3.7) == 3 and torch.sym_max(1, 2.5) == 2.5 and isinstance(torch.sym_max(3, 2.5), float)
    assert torch.sym_min(3, 2) == 2 and torch.sym_not(0) and torch.sym_ite(True, 1, 2) == 1 and torch.sym_sum([1, 2, 3]) == 6
