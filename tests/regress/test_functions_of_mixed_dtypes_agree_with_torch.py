"""Functions of mixed dtypes agree with torch 2.13. Random programs found each difference."""
from __future__ import annotations

import math
from typing import Any

import pytest

import eager as torch
from eager.nn import functional as F  # noqa: N812 - torch's name
from eager.nn import utils


def test_norms_of_lists_of_complex_tensors() -> None:
    x = torch.tensor([1j, 2.0])
    assert torch._foreach_norm([x])[0].item() == pytest.approx(math.sqrt(5))
    p = torch.nn.Parameter(x.clone())
    p.grad = x.clone()
    assert utils.clip_grad_norm_([p], 1.0).item() == pytest.approx(math.sqrt(5))
    assert torch.allclose(p.grad, x / math.sqrt(5))


def test_norms_of_lists_of_half_tensors_do_not_overflow() -> None:
    x = torch.tensor([1000.0, 1000.0]).half()
    assert torch._foreach_norm([x])[0].item() == 1414.0
    p = torch.nn.Parameter(torch.zeros(2).half())
    p.grad = x
    assert utils.clip_grad_norm_([p], 1e4).item() == 1414.0


def test_the_norm_of_zeros_in_a_list_has_a_gradient_of_zero() -> None:
    x = torch.zeros(2, requires_grad=True)
    torch._foreach_norm([x])[0].backward()
    assert x.grad.tolist() == [0.0, 0.0]


def test_the_deviation_of_half_numbers_may_be_below_a_variance_that_overflows() -> None:
    x = torch.tensor([0.5, 1, -7, 0, 1000, 2.7]).half()
    assert x.std().item() == 408.5 and torch.std_mean(x)[0].item() == 408.5 and x.var().item() == math.inf


def test_tensordot_takes_a_contracted_dim_of_one_element_for_as_many_as_needed() -> None:
    assert torch.tensordot(torch.ones(2, 2), torch.ones(1, 3), 1).tolist() == [[2.0] * 3] * 2
    assert torch.tensordot(torch.ones(2, 1), torch.ones(4, 3), 1).tolist() == [[4.0] * 3] * 2


def test_logdet_of_complex_matrices_is_the_principal_value() -> None:
    found = torch.logdet(torch.tensor([[1j, 2], [3, 4]])).item()
    assert found == pytest.approx(1.9756 + 2.5536j, abs=1e-4)


def test_cosine_similarity_promotes_its_arguments() -> None:
    assert F.cosine_similarity(torch.tensor([1, 2]), torch.tensor([1.0, 3.0]), dim=0).item() == pytest.approx(0.98995, abs=1e-4)
    with pytest.raises(RuntimeError, match="expected common dtype to be floating point, yet common dtype is Long"):
        F.cosine_similarity(torch.tensor([1, 2]), torch.tensor([1, 3]), dim=0)


def test_huber_loss_has_the_dtype_of_its_input() -> None:
    assert F.huber_loss(torch.ones(2).half(), torch.zeros(2).double()).dtype is torch.float16


@pytest.mark.filterwarnings("ignore:reduction")
def test_the_divergence_from_a_negative_target_is_nan() -> None:
    assert F.kl_div(torch.tensor([0.5, 1.0]), torch.tensor([-0.5, 1.0])).isnan()
    assert F.kl_div(torch.tensor([0.5, 1.0]), torch.tensor([0.0, 1.0]), reduction="sum").item() == -1.0


@pytest.mark.parametrize("fn", [torch.cov, torch.corrcoef])
def test_one_variable_has_one_covariance(fn: Any) -> None:
    assert fn(torch.tensor([[0.5, 3.0, 1.0]])).shape == ()


def test_trapezoids_of_integers_are_summed_in_64_bits() -> None:
    y = torch.tensor([2, 0, 255, 7], dtype=torch.uint8)
    assert torch.trapezoid(y).item() == 259.5
    assert torch.trapezoid(torch.zeros(1, 0, dtype=torch.int64)).dtype is torch.int64
    with pytest.raises(RuntimeError, match="bool is not supported"):
        torch.trapezoid(torch.ones(3).bool())


def test_pairs_of_moments_are_plain_tuples() -> None:
    assert type(torch.var_mean(torch.ones(2))) is tuple and type(torch.std_mean(torch.ones(2))) is tuple


def test_an_argument_that_may_be_none_is_not_blamed_for_another_error() -> None:
    with pytest.raises(ValueError, match="Expected more than 1 value per channel"):
        F.batch_norm(torch.ones(1, 3, 1), None, None, training=True)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_the_third_argument_of_softmax_is_a_dtype(name: str) -> None:
    x = torch.ones(2).half()
    assert getattr(torch, name)(x, 0, torch.float64).dtype is torch.float64
    assert getattr(x, name)(0, torch.float64).dtype is torch.float64


def test_a_pseudo_inverse_drops_singular_values_up_to_atol() -> None:
    a = torch.diag(torch.tensor([4.0, 0.5, 0.01]))
    assert torch.allclose(torch.linalg.pinv(a, atol=0.1), torch.diag(torch.tensor([0.25, 2.0, 0.0])))
    assert torch.allclose(torch.linalg.pinv(a, rtol=0.2, atol=0.1), torch.diag(torch.tensor([0.25, 0.0, 0.0])))
    c = torch.tensor([[1j, 2.0], [0.0, 1.0]])
    assert torch.allclose(torch.linalg.pinv(c, atol=0.0) @ c, torch.eye(2, dtype=torch.complex64), atol=1e-5)
    assert torch.linalg.pinv(torch.ones(2, 3, 4), atol=0.1).shape == (2, 4, 3)


def test_complex_numbers_without_an_imaginary_part_are_real_numbers() -> None:
    assert int(torch.tensor(2 + 0j)) == 2 and float(torch.tensor([2.5 + 0j])) == 2.5
    with pytest.raises(RuntimeError, match="int64_t without overflow"):
        int(torch.tensor(1j))
