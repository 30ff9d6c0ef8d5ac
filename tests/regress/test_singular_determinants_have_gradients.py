"""Determinants are polynomials: their derivatives exist at singular matrices, where the inverse does not."""
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import eager as torch

SINGULAR: dict[str, Any] = {
    "rank 1 of 2": [[1.0, 2.0], [2.0, 4.0]],
    "rank 0 of 2": [[0.0, 0.0], [0.0, 0.0]],
    "rank 2 of 3": [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]],
    "rank 1 of 3": [[1.0, 1.0, 1.0]] * 3,
    "rank 0 of 3": [[0.0] * 3] * 3,
    "diagonal": [[2.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 0.0]],
    "regular": [[0.0, 2.0, 1.0], [1.0, 3.0, -1.0], [4.0, 0.5, 2.0]],
    "1 by 1": [[0.0]],
    "complex": [[1.0, 2.0j, 3.0], [2.0, 4.0j, 6.0], [1.0j, 1.0, 5.0]],
}


def _minor(a: Any, gone_rows: Sequence[int], gone_columns: Sequence[int]) -> Any:
    rows = [i for i in range(len(a)) if i not in gone_rows]
    columns = [j for j in range(len(a)) if j not in gone_columns]
    return _by_permutations(a[np.ix_(rows, columns)])


def _sign(order: Sequence[int]) -> int:
    return 1 - 2 * (sum(a > b for a, b in itertools.combinations(order, 2)) % 2)


def _by_permutations(a: Any) -> Any:
    n = len(a)
    return sum(_sign(p) * np.prod([a[i, p[i]] for i in range(n)]) for p in itertools.permutations(range(n)))


def _first(a: Any) -> Any:
    n = len(a)
    return np.array([[(-1) ** (i + j) * _minor(a, (i,), (j,)) for j in range(n)] for i in range(n)])


def _second(a: Any, direction: Any) -> Any:
    """The derivative of the sum of direction * cofactors(a), minor by minor."""
    n, result = len(a), np.zeros_like(a)
    for i, j, k, m in itertools.product(range(n), repeat=4):
        if i != k and j != m:
            sign = (-1) ** (i + j + k + m) * (-1) ** ((i > k) + (j > m))
            result[k, m] += sign * direction[i, j] * _minor(a, (i, k), (j, m))
    return result


@pytest.mark.parametrize("case", SINGULAR)
def test_first_and_second_derivatives_of_det_are_its_minors(case: str) -> None:
    a = np.array(SINGULAR[case])
    direction = np.arange(1.0, a.size + 1).reshape(a.shape)
    x = torch.as_tensor(a).requires_grad_()
    (g,) = torch.autograd.grad(torch.det(x), x, torch.ones((), dtype=x.dtype), create_graph=True)
    np.testing.assert_allclose(g.detach().numpy(), np.conj(_first(a)), atol=1e-13)
    (h,) = torch.autograd.grad(g, x, torch.as_tensor(direction, dtype=x.dtype))
    np.testing.assert_allclose(h.numpy(), np.conj(_second(a, direction.astype(a.dtype))), atol=1e-12)


def test_a_singular_matrix_leaves_the_rest_of_its_batch_alone() -> None:
    batch = np.array([[[1.0, 2.0], [2.0, 4.0]], [[1.0, 2.0], [3.0, 5.0]]])
    for magnitude in (torch.logdet, lambda a: torch.linalg.slogdet(a)[1]):
        x = torch.as_tensor(batch).requires_grad_()
        (g,) = torch.autograd.grad(magnitude(-x)[1], x)
        assert torch.isfinite(g[1]).all()


def test_gradient_of_det_is_nan_for_a_matrix_that_holds_nan() -> None:
    x = torch.as_tensor([[[float("nan"), 1.0], [1.0, 2.0]], [[1.0, 2.0], [3.0, 4.0]]]).requires_grad_()
    torch.det(x).sum().backward()
    assert torch.isnan(x.grad[0]).all()
    assert torch.equal(x.grad[1].round(), torch.as_tensor([[4.0, -3.0], [-2.0, 1.0]]))


def test_third_derivative_of_det_in_three_dims_is_constant() -> None:
    x = torch.as_tensor(SINGULAR["regular"], dtype=torch.float64).requires_grad_()
    weights = torch.arange(9.0, dtype=torch.float64).view(3, 3).cos()
    (g,) = torch.autograd.grad(torch.det(x), x, create_graph=True)
    (h,) = torch.autograd.grad((g * weights).sum(), x, create_graph=True)
    (third,) = torch.autograd.grad((h * weights).sum(), x)
    np.testing.assert_allclose(third.numpy(), 2 * _first(weights.numpy()), atol=1e-12)


def test_gradient_of_a_complex_logdet_turns_with_the_angle() -> None:
    a = np.array([[1.0 + 2.0j, 0.5], [0.3j, 2.0 - 1.0j]])
    x = torch.as_tensor(a).requires_grad_()
    y = torch.logdet(x)
    (g,) = torch.autograd.grad(y, x, torch.as_tensor(0.7 - 0.4j, dtype=torch.complex128))
    np.testing.assert_allclose(g.numpy(), (0.7 - 0.4j) * np.linalg.inv(a).T.conj(), atol=1e-13)
