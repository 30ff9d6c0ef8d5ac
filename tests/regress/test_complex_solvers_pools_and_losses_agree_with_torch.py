"""Wrong results that the comparison of generated calls with torch found (tests/data/generated_calls.py)."""
from __future__ import annotations

import pytest

import eager
from eager.nn import functional as F  # noqa: N812


def test_solutions_by_a_complex_cholesky_factor_conjugate_it() -> None:
    factor = eager.complex(eager.tensor([[2.0, 0.0], [1.0, 3.0]]), eager.tensor([[0.0, 0.0], [1.0, 0.0]]))
    whole, b = factor @ factor.mH, eager.complex(eager.ones(2, 1), eager.zeros(2, 1))
    for upper, given in ((False, factor), (True, factor.mH)):
        assert eager.allclose(whole @ eager.cholesky_solve(b, given, upper=upper), b, atol=1e-5)
        assert eager.allclose(whole @ eager.cholesky_inverse(given, upper=upper), eager.eye(2) + 0j, atol=1e-5)


def test_ormqr_transposes_and_conjugates_complex_reflectors() -> None:
    eager.manual_seed(0)
    a, x = eager.randn(3, 2, dtype=eager.complex64), eager.randn(3, 2, dtype=eager.complex64)
    reflectors, tau = eager.geqrf(a)
    there = eager.ormqr(reflectors, tau, x)
    assert eager.allclose(eager.ormqr(reflectors, tau, there, transpose=True), x, atol=1e-5)


def test_lp_pool_of_odd_order_keeps_negative_sums() -> None:
    assert F.lp_pool1d(eager.tensor([[1.0, -2.0, 3.0, -4.0]]), 1, 2).tolist() == [[-1.0, -1.0]]


def test_cosine_similarity_takes_norms_after_broadcasting() -> None:
    assert F.cosine_similarity(eager.ones(1, 1), eager.ones(3, 4)).tolist() == pytest.approx([1.0, 1.0, 1.0])


def test_losses_broadcast_and_cast_as_torchs() -> None:
    x = eager.zeros(1, 1)
    assert F.multilabel_soft_margin_loss(x, eager.ones(3, 4)).item() == pytest.approx(4 * 0.6931472)  # over one class of the input
    assert F.binary_cross_entropy_with_logits(eager.ones(2, dtype=eager.float64), eager.ones(2)).dtype is eager.float32
    with pytest.raises(RuntimeError, match="can't be cast"):
        F.binary_cross_entropy_with_logits(eager.ones(2), eager.ones(2, dtype=eager.int64))


def test_the_functions_of_the_top_level_are_torchs() -> None:
    values, index = eager.adaptive_max_pool1d(eager.arange(4.0).reshape(1, 4), 2)
    assert (values.tolist(), index.tolist()) == ([[1.0, 3.0]], [[1, 3]])
    assert F.threshold(eager.arange(3), 1.5, 0.5).dtype is eager.int64
    matrix = eager.eye(2)
    assert eager.matrix_power(matrix, 1).data_ptr() != matrix.data_ptr()
