"""Draws: their moments, their values of the cdf, and the gradients that reach parameters through them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

import eager as torch
from tests.distributions.cases import DISTRIBUTIONS

D = torch.distributions
N = 20_000
# Their second or fourth moments are infinite or so large that averages do not settle.
HEAVY = {"Cauchy", "HalfCauchy", "StudentT", "FisherSnedecor", "Pareto", "InverseGamma", "LogNormal", "Weibull"}
NO_MOMENTS = {"Categorical", "Categorical logits", "RelaxedBernoulli", "LogitRelaxedBernoulli", "RelaxedOneHotCategorical",
              "TransformedDistribution", "LogisticNormal", "VonMises"}  # fmt: skip
CONTINUOUS_CDF = ["Normal", "LogNormal", "HalfNormal", "Uniform", "Exponential", "Laplace", "Cauchy", "HalfCauchy", "Gumbel",
                  "Weibull", "Pareto", "Kumaraswamy", "ContinuousBernoulli", "Gamma", "Chi2", "TransformedDistribution",
                  "MixtureSameFamily"]  # fmt: skip


def make(name: str) -> Any:
    names = {"D": D, "T": lambda v: torch.tensor(v, dtype=torch.float64), "L": torch.tensor}
    return eval(DISTRIBUTIONS[name][0], names)


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(1234)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_draws_have_the_shape_and_lie_in_the_support(name: str) -> None:
    d = make(name)
    for shape in ((), (3,), (2, 3), (0,)):
        x = d.sample(shape)
        assert x.shape == d._extended_shape(shape) and not x.requires_grad
    x = d.sample((500,))
    assert bool(d.support.check(x).all()) and bool(torch.isfinite(d.log_prob(x)).all())
    expanded = d.expand((4, *d.batch_shape))
    assert type(expanded) is type(d) and expanded.batch_shape == (4, *d.batch_shape) and expanded.sample((2,)).shape == (
        2, 4, *d.batch_shape, *d.event_shape)  # fmt: skip
    if d.has_rsample:
        assert d.rsample((2,)).shape == d._extended_shape((2,))
    else:
        with pytest.raises(NotImplementedError):
            d.rsample()


@pytest.mark.parametrize("name", [n for n in DISTRIBUTIONS if n not in HEAVY | NO_MOMENTS])
def test_moments_of_draws_are_mean_and_variance(name: str) -> None:
    d = make(name)
    x = d.sample((N,))
    error = 5 * (d.variance / N).sqrt() + 1e-12  # five standard errors
    assert bool(((x.mean(0) - d.mean).abs() <= error).all()), (x.mean(0), d.mean)
    assert bool(((x.var(0) - d.variance).abs() <= 0.12 * d.variance + 1e-3).all()), (x.var(0), d.variance)


@pytest.mark.parametrize("name", CONTINUOUS_CDF)
def test_the_cdf_of_draws_is_uniform(name: str) -> None:
    """The Kolmogorov-Smirnov distance of cdf(draws) from the uniform distribution is below its critical value."""
    d = make(name)
    u = d.cdf(d.sample((N,))).sort(0)[0]
    expected = ((torch.arange(N, dtype=torch.float64) + 0.5) / N).reshape(N, *(1,) * (u.ndim - 1))
    assert (u - expected).abs().max() < 1.95 / math.sqrt(N)  # a chance of 1 in 1,000, with a fixed seed


@pytest.mark.parametrize("name", ["StudentT", "FisherSnedecor", "Beta", "VonMises", "InverseGamma", "LogitRelaxedBernoulli"])
def test_draws_follow_the_density(name: str) -> None:
    """Frequencies in bins agree with the integrals of exp(log_prob) over the bins."""
    d = make(name)
    x = d.sample((N,))
    low, high = (0.02, 0.98) if name == "Beta" else (0.1, 3.0)
    edges = torch.linspace(low, high, 201, dtype=torch.float64)
    middle = (edges[1:] + edges[:-1]) / 2
    density = d.log_prob(middle.reshape(200, *(1,) * len(d.batch_shape)).expand(200, *d.batch_shape)).exp()
    inside = density.sum(0) * (high - low) / 200
    observed = ((x > low) & (x < high)).double().mean(0)
    assert bool(((observed - inside).abs() < 5 * (inside * (1 - inside) / N).sqrt() + 1e-3).all()), (observed, inside)


def test_categorical_frequencies() -> None:
    p = torch.tensor([[0.1, 0.2, 0.7], [0.5, 0.0, 0.5]])
    x = D.Categorical(p).sample((N,))
    frequencies = torch.stack([(x == i).double().mean(0) for i in range(3)], -1)
    assert (frequencies - p).abs().max() < 0.015 and not bool((x[:, 1] == 1).any())


def gradients(d: Callable[..., Any], parameters: list[Any], f: Callable[[Any], Any]) -> list[Any]:
    """Gradients of E[f(x)] in the parameters, estimated by differentiating draws."""
    return list(torch.autograd.grad(f(d(*parameters).rsample((N * 5,))).mean(0).sum(), parameters))


PATHWISE = {
    "Normal": (D.Normal, (0.3, 0.7)), "Gamma": (D.Gamma, (0.6, 2.0)), "Gamma large": (D.Gamma, (90.0, 30.0)), "Beta": (D.Beta, (0.8, 2.5)),
    "Chi2": (D.Chi2, (3.0,)), "Exponential": (D.Exponential, (1.7,)), "Laplace": (D.Laplace, (0.3, 0.7)),
    "Uniform": (D.Uniform, (0.2, 1.5)),
    "StudentT": (D.StudentT, (9.0, 0.3, 1.2)), "Gumbel": (D.Gumbel, (0.3, 0.7)), "Weibull": (D.Weibull, (0.7, 2.5)),
    "Kumaraswamy": (D.Kumaraswamy, (1.5, 2.0)), "HalfNormal": (D.HalfNormal, (0.7,)), "LogNormal": (D.LogNormal, (0.1, 0.4)),
    "ContinuousBernoulli": (D.ContinuousBernoulli, (0.3,)), "InverseGamma": (D.InverseGamma, (7.0, 2.0)),
}  # fmt: skip


@pytest.mark.parametrize("name", PATHWISE)
def test_gradients_through_draws_equal_the_gradients_of_the_moments(name: str) -> None:
    """Gradients of E[x] and E[x^2], estimated through draws, agree with the closed forms of mean and variance."""
    cls, values = PATHWISE[name]
    parameters = [torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in values]
    d = cls(*parameters)
    for power, moment in ((1, d.mean), (2, d.variance + d.mean**2)):
        exact = torch.autograd.grad(moment, parameters, retain_graph=True, allow_unused=True)
        estimated = gradients(cls, parameters, lambda x, power=power: x**power)
        for a, b in zip(estimated, exact, strict=True):
            wanted = 0.0 if b is None else b.item()
            assert abs(a.item() - wanted) < 0.05 * abs(wanted) + 0.02, (name, power, a.item(), wanted)


def test_gradients_through_dirichlet_draws() -> None:
    a = torch.tensor([0.5, 1.5, 3.0], dtype=torch.float64, requires_grad=True)
    weights = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
    (exact,) = torch.autograd.grad((D.Dirichlet(a).mean * weights).sum(), a, retain_graph=True)
    (estimated,) = torch.autograd.grad((D.Dirichlet(a).rsample((N * 5,)) * weights).sum(-1).mean(), a)
    assert (estimated - exact).abs().max() < 0.02


def test_gradients_through_multivariate_normal_draws() -> None:
    loc = torch.tensor([0.5, 1.5], dtype=torch.float64, requires_grad=True)
    tril = torch.tensor([[1.2, 0.0], [0.4, 0.7]], dtype=torch.float64, requires_grad=True)
    x = D.MultivariateNormal(loc, scale_tril=tril).rsample((N * 5,))
    g_loc, g_tril = torch.autograd.grad((x[:, 0] * x[:, 1]).mean(), (loc, tril))
    assert (g_loc - torch.tensor([1.5, 0.5], dtype=torch.float64)).abs().max() < 0.02
    # E[x0 x1] = loc0 loc1 + L00 L10
    assert (g_tril.tril() - torch.tensor([[0.4, 0.0], [1.2, 0.0]], dtype=torch.float64)).abs().max() < 0.03


def test_straight_through_draws_are_one_hot_with_the_gradient_of_the_probabilities() -> None:
    p = torch.tensor([0.2, 0.3, 0.5], requires_grad=True)
    d = D.OneHotCategoricalStraightThrough(p)
    x = d.rsample()
    assert sorted(x.tolist()) == pytest.approx([0.0, 0.0, 1.0])
    (g,) = torch.autograd.grad(x[0], p)
    (expected,) = torch.autograd.grad(D.OneHotCategoricalStraightThrough(p).probs[0], p)
    assert torch.equal(g, expected)


def test_gamma_variates_of_small_concentration_do_not_reach_zero() -> None:
    x = D.Gamma(torch.full((1000,), 1e-3), 1.0).sample()
    assert bool((x > 0).all()) and bool(torch.isfinite(x.log()).all())
    p = D.Dirichlet(torch.full((1000, 3), 1e-2)).sample()
    assert bool(torch.isfinite(p).all()) and (p.sum(-1) - 1).abs().max() < 1e-5


def test_second_derivatives_of_gamma_variates_are_refused() -> None:
    a = torch.tensor(2.0, requires_grad=True)
    (g,) = torch.autograd.grad(D.Gamma(a, 1.0).rsample(), a, create_graph=True)
    with pytest.raises(NotImplementedError, match="standard_gamma_grad"):
        g.backward()


def test_draws_repeat_after_a_seed() -> None:
    for name in DISTRIBUTIONS:
        d = make(name)
        torch.manual_seed(7)
        first = d.sample((4,))
        torch.manual_seed(7)
        assert torch.equal(first, d.sample((4,))), name
        assert not torch.equal(first, d.sample((4,))) or d.has_enumerate_support or name in ("Multinomial", "Geometric"), name
