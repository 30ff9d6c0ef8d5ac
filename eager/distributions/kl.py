"""Kullback-Leibler divergences KL(p || q), dispatched on the classes of p and q.

`register_kl(P, Q)` adds a formula; `kl_divergence(p, q)` uses the formula registered for the nearest ancestors.
"""
from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

from eager._tensor.tensor import Tensor
from eager.distributions._functions import full_like, softplus, xlogy
from eager.distributions.bernoulli import Bernoulli
from eager.distributions.beta import Beta
from eager.distributions.binomial import Binomial
from eager.distributions.categorical import Categorical
from eager.distributions.cauchy import Cauchy
from eager.distributions.continuous_bernoulli import ContinuousBernoulli
from eager.distributions.dirichlet import Dirichlet
from eager.distributions.distribution import LOG_2PI, Distribution
from eager.distributions.exp_family import ExponentialFamily
from eager.distributions.exponential import Exponential
from eager.distributions.gamma import Gamma
from eager.distributions.geometric import Geometric
from eager.distributions.gumbel import EULER, Gumbel
from eager.distributions.half_normal import HalfNormal
from eager.distributions.independent import Independent
from eager.distributions.laplace import Laplace
from eager.distributions.lowrank_multivariate_normal import LowRankMultivariateNormal
from eager.distributions.multivariate_normal import MultivariateNormal
from eager.distributions.normal import Normal
from eager.distributions.one_hot_categorical import OneHotCategorical
from eager.distributions.pareto import Pareto
from eager.distributions.poisson import Poisson
from eager.distributions.transformed_distribution import TransformedDistribution
from eager.distributions.uniform import Uniform
from eager.distributions.utils import batch_mahalanobis, solve_lower, sum_rightmost
from eager.tape.engine import grad

__all__ = ["kl_divergence", "register_kl"]

Formula = Callable[[Any, Any], Tensor]
_REGISTRY: dict[tuple[type, type], Formula] = {}
_FOUND: dict[tuple[type, type], Formula] = {}  # cache of looked-up pairs of classes


def register_kl(type_p: type, type_q: type) -> Callable[[Formula], Formula]:
    """Decorator that registers a formula for classes p and q and their subclasses.

    Raises: TypeError for a class that is not a Distribution.
    """
    for cls, name in ((type_p, "type_p"), (type_q, "type_q")):
        if not (isinstance(cls, type) and issubclass(cls, Distribution)):
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {cls}")

    def register(formula: Formula) -> Formula:
        _REGISTRY[type_p, type_q] = formula
        _FOUND.clear()
        return formula

    return register


def _find(type_p: type, type_q: type) -> Formula | None:
    """The formula for the nearest ancestors, p's first; warns if q's nearest ancestor has a different formula."""
    matches = [(p, q) for p, q in _REGISTRY if issubclass(type_p, p) and issubclass(type_q, q)]
    if not matches:
        return None

    def distance(pair: tuple[type, type]) -> tuple[int, int]:
        return type_p.__mro__.index(pair[0]), type_q.__mro__.index(pair[1])

    left = min(matches, key=distance)
    right = min(matches, key=lambda pair: distance(pair)[::-1])
    if _REGISTRY[left] is not _REGISTRY[right]:
        warnings.warn(f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). Please register_kl({left[0].__name__}, "
                      f"{right[1].__name__})", RuntimeWarning, stacklevel=3)  # fmt: skip
    return _REGISTRY[left]


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """KL(p || q), of shape batch_shape. Raises: NotImplementedError for a pair without a formula."""
    key = (type(p), type(q))
    formula = _FOUND.get(key)
    if formula is None:
        formula = _find(*key)
        if formula is None:
            raise NotImplementedError(f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}")
        _FOUND[key] = formula
    return formula(p, q)


def _infinite(x: Tensor) -> Tensor:
    return full_like(x, math.inf)


def _x_log_x(x: Tensor) -> Tensor:
    return xlogy(x, x)


# ---- both of one family ----


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_families(p: Any, q: Any) -> Tensor:
    """The Bregman divergence of the log normalizer. Source: Nielsen & Nock, ICIP 2010."""
    if type(p) is not type(q):
        raise NotImplementedError("The cross KL-divergence between different exponential families cannot be computed using Bregman "
                                  "divergences")  # fmt: skip
    at_p = [x.detach().requires_grad_() for x in p._natural_params]
    at_q = q._natural_params
    normalizer = p._log_normalizer(*at_p)
    gradients = grad(normalizer.sum(), at_p, create_graph=True)
    result = q._log_normalizer(*at_q) - normalizer
    for a, b, g in zip(at_p, at_q, gradients, strict=True):
        result = result - sum_rightmost((b - a) * g, len(q.event_shape))
    return result


@register_kl(Bernoulli, Bernoulli)
def _bernoulli_bernoulli(p: Any, q: Any) -> Tensor:
    one = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    zero = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    one = one.masked_fill(q.probs == 0, math.inf).masked_fill(p.probs == 0, 0)
    zero = zero.masked_fill(q.probs == 1, math.inf).masked_fill(p.probs == 1, 0)
    return one + zero


@register_kl(Beta, Beta)
def _beta_beta(p: Any, q: Any) -> Tensor:
    total_p, total_q = p.concentration1 + p.concentration0, q.concentration1 + q.concentration0
    t1 = q.concentration1.lgamma() + q.concentration0.lgamma() + total_p.lgamma()
    t2 = p.concentration1.lgamma() + p.concentration0.lgamma() + total_q.lgamma()
    t3 = (p.concentration1 - q.concentration1) * p.concentration1.digamma()
    t4 = (p.concentration0 - q.concentration0) * p.concentration0.digamma()
    t5 = (total_q - total_p) * total_p.digamma()
    return t1 - t2 + t3 + t4 + t5


@register_kl(Binomial, Binomial)
def _binomial_binomial(p: Any, q: Any) -> Tensor:
    """Raises: NotImplementedError if p has fewer trials than q."""
    if bool((p.total_count < q.total_count).any()):
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    kl = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    return kl.masked_fill(p.total_count > q.total_count, math.inf)


@register_kl(Categorical, Categorical)
def _categorical_categorical(p: Any, q: Any) -> Tensor:
    terms = p.probs * (p.logits - q.logits)
    terms = terms.masked_fill((q.probs == 0).expand(terms.shape), math.inf)
    return terms.masked_fill((p.probs == 0).expand(terms.shape), 0).sum(-1)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli_continuous_bernoulli(p: Any, q: Any) -> Tensor:
    return (p.mean * (p.logits - q.logits) + p._log_constant() + (-p.probs).log1p() - q._log_constant() - (-q.probs).log1p())


@register_kl(Dirichlet, Dirichlet)
def _dirichlet_dirichlet(p: Any, q: Any) -> Tensor:
    total_p, total_q = p.concentration.sum(-1), q.concentration.sum(-1)
    t1 = total_p.lgamma() - total_q.lgamma()
    t2 = (p.concentration.lgamma() - q.concentration.lgamma()).sum(-1)
    t3 = p.concentration - q.concentration
    t4 = p.concentration.digamma() - total_p.digamma().unsqueeze(-1)
    return t1 - t2 + (t3 * t4).sum(-1)


@register_kl(Exponential, Exponential)
def _exponential_exponential(p: Any, q: Any) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1


@register_kl(Gamma, Gamma)
def _gamma_gamma(p: Any, q: Any) -> Tensor:
    t1 = q.concentration * (p.rate / q.rate).log()
    t2 = q.concentration.lgamma() - p.concentration.lgamma()
    t3 = (p.concentration - q.concentration) * p.concentration.digamma()
    t4 = (q.rate - p.rate) * (p.concentration / p.rate)
    return t1 + t2 + t3 + t4


@register_kl(Gumbel, Gumbel)
def _gumbel_gumbel(p: Any, q: Any) -> Tensor:
    ct1 = p.scale / q.scale
    ct2 = q.loc / q.scale
    ct3 = p.loc / q.scale
    t1 = -ct1.log() - ct2 + ct3
    t2 = ct1 * EULER
    t3 = (ct2 + (1 + ct1).lgamma() - ct3).exp()
    return t1 + t2 + t3 - (1 + EULER)


@register_kl(Geometric, Geometric)
def _geometric_geometric(p: Any, q: Any) -> Tensor:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(HalfNormal, HalfNormal)
def _half_normal_half_normal(p: Any, q: Any) -> Tensor:
    return _normal_normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _laplace_laplace(p: Any, q: Any) -> Tensor:
    ratio, off = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + off / q.scale + ratio * (-off / p.scale).exp() - 1


@register_kl(Normal, Normal)
def _normal_normal(p: Any, q: Any) -> Tensor:
    variance_ratio = (p.scale / q.scale).pow(2)
    t1 = ((p.loc - q.loc) / q.scale).pow(2)
    return 0.5 * (variance_ratio + t1 - 1 - variance_ratio.log())


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot_one_hot(p: Any, q: Any) -> Tensor:
    return _categorical_categorical(p._categorical, q._categorical)


@register_kl(Pareto, Pareto)
def _pareto_pareto(p: Any, q: Any) -> Tensor:
    scale_ratio, alpha_ratio = p.scale / q.scale, q.alpha / p.alpha
    result = q.alpha * scale_ratio.log() - alpha_ratio.log() + alpha_ratio - 1
    return result.masked_fill(p.support.lower_bound < q.support.lower_bound, math.inf)


@register_kl(Poisson, Poisson)
def _poisson_poisson(p: Any, q: Any) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Uniform, Uniform)
def _uniform_uniform(p: Any, q: Any) -> Tensor:
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return result.masked_fill((q.low > p.low) | (q.high < p.high), math.inf)


@register_kl(Cauchy, Cauchy)
def _cauchy_cauchy(p: Any, q: Any) -> Tensor:
    """Source: Chyzak & Nielsen, "A closed-form formula for the KL divergence between Cauchy distributions", arXiv:1905.10965."""
    t1 = ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log()
    return t1 - (4 * p.scale * q.scale).log()


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed_transformed(p: Any, q: Any) -> Tensor:
    """The divergence of the bases, if both have equal transforms. Raises: NotImplementedError otherwise."""
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("kl_divergence of transformed distributions with different transforms")
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def _independent_independent(p: Any, q: Any) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError(f"kl_divergence of Independent over {p.reinterpreted_batch_ndims} and {q.reinterpreted_batch_ndims} dims")
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


# ---- multivariate normals ----


def _check_events(p: Any, q: Any, what: str) -> None:
    if p.event_shape != q.event_shape:
        raise ValueError(f"KL-divergence between two {what} with different event shapes cannot be computed")


def _half_log_det(tril: Tensor) -> Tensor:
    return tril.diagonal(0, -2, -1).log().sum(-1)


def _trace_of_inverse(lower: Tensor, factor: Tensor) -> Tensor:
    """trace((L L^T)^-1 F F^T): the sum of squares of L^-1 F."""
    return solve_lower(lower, factor).pow(2).flatten(-2).sum(-1)


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate_multivariate(p: Any, q: Any) -> Tensor:
    _check_events(p, q, "Multivariate Normals")
    lower_p, lower_q = p._unbroadcasted_scale_tril, q._unbroadcasted_scale_tril
    t1 = _half_log_det(lower_q) - _half_log_det(lower_p)
    t2 = _trace_of_inverse(lower_q, lower_p)
    t3 = batch_mahalanobis(lower_q, q.loc - p.loc)
    return t1 + 0.5 * (t2 + t3 - p.event_shape[0])


def _low_rank_trace(q: Any, factor: Tensor) -> Tensor:
    """trace(Q^-1 F F^T) for a low-rank Q, by Woodbury: trace(D^-1 F F^T) minus the sum of squares of C^-1 W^T D^-1 F."""
    d = q._unbroadcasted_cov_diag
    scaled = q._unbroadcasted_cov_factor.mT / d.unsqueeze(-2)
    direct = (factor.pow(2) / d.unsqueeze(-1)).flatten(-2).sum(-1)
    return direct - solve_lower(q._capacitance_tril, scaled @ factor).pow(2).flatten(-2).sum(-1)


def _low_rank_distance(q: Any, difference: Tensor) -> Tensor:
    d = q._unbroadcasted_cov_diag
    scaled = q._unbroadcasted_cov_factor.mT / d.unsqueeze(-2)
    projected = (scaled @ difference.unsqueeze(-1)).squeeze(-1)
    return (difference.pow(2) / d).sum(-1) - batch_mahalanobis(q._capacitance_tril, projected)


def _root_of_diagonal(p: Any) -> Tensor:
    root = p._unbroadcasted_cov_diag.sqrt()
    return root.unsqueeze(-1) * root.new_ones(root.shape[-1]).diag()


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _low_rank_low_rank(p: Any, q: Any) -> Tensor:
    _check_events(p, q, "Low Rank Multivariate Normals")
    t1 = q._log_det() - p._log_det()
    t2 = _low_rank_distance(q, q.loc - p.loc)
    t3 = _low_rank_trace(q, p._unbroadcasted_cov_factor) + _low_rank_trace(q, _root_of_diagonal(p))
    return 0.5 * (t1 + t2 + t3 - p.event_shape[0])


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _multivariate_low_rank(p: Any, q: Any) -> Tensor:
    _check_events(p, q, "(Low Rank) Multivariate Normals")
    t1 = q._log_det() - 2 * _half_log_det(p._unbroadcasted_scale_tril)
    t2 = _low_rank_distance(q, q.loc - p.loc)
    return 0.5 * (t1 + t2 + _low_rank_trace(q, p._unbroadcasted_scale_tril) - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _low_rank_multivariate(p: Any, q: Any) -> Tensor:
    _check_events(p, q, "(Low Rank) Multivariate Normals")
    lower = q._unbroadcasted_scale_tril
    t1 = 2 * _half_log_det(lower) - p._log_det()
    t2 = batch_mahalanobis(lower, q.loc - p.loc)
    t3 = _trace_of_inverse(lower, p._unbroadcasted_cov_factor) + _trace_of_inverse(lower, _root_of_diagonal(p))
    return 0.5 * (t1 + t2 + t3 - p.event_shape[0])


# ---- of different families ----


def _never_inside(*pairs: tuple[type, type]) -> None:
    """Register an infinite divergence: p has mass outside the support of q."""
    for type_p, type_q in pairs:
        register_kl(type_p, type_q)(lambda p, q: _infinite(getattr(p, next(iter(p.arg_constraints)))))


_REALS = (Gumbel, Laplace, Normal)
_POSITIVES = (Exponential, Gamma, Pareto)
_never_inside(
    (Poisson, Bernoulli), (Poisson, Binomial),
    *((p, q) for p in _POSITIVES for q in (Beta, ContinuousBernoulli, Uniform)),
    *((p, Pareto) for p in (Beta, ContinuousBernoulli, Exponential, Gamma)),
    *((p, q) for p in _REALS for q in (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)),
)  # fmt: skip


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Any, q: Any) -> Tensor:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Beta, ContinuousBernoulli)
def _beta_continuous_bernoulli(p: Any, q: Any) -> Tensor:
    return -p.entropy() - p.mean * q.logits - (-q.probs).log1p() - q._log_constant()


@register_kl(Beta, Exponential)
def _beta_exponential(p: Any, q: Any) -> Tensor:
    return -p.entropy() - q.rate.log() + q.rate * p.mean


@register_kl(Beta, Gamma)
def _beta_gamma(p: Any, q: Any) -> Tensor:
    t1 = q.concentration.lgamma() - q.concentration * q.rate.log()
    log_mean = p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
    return -p.entropy() + t1 - (q.concentration - 1) * log_mean + q.rate * p.mean


@register_kl(Beta, Normal)
def _beta_normal(p: Any, q: Any) -> Tensor:
    variance = q.scale.pow(2)
    t1 = 0.5 * (variance * 2 * math.pi).log()
    t2 = p.variance + p.mean.pow(2)
    return -p.entropy() + t1 + (t2 * 0.5 - p.mean * q.loc + q.loc.pow(2) * 0.5) / variance


@register_kl(Beta, Uniform)
def _beta_uniform(p: Any, q: Any) -> Tensor:
    result = -p.entropy() + (q.high - q.low).log()
    return result.masked_fill((q.low > p.support.lower_bound) | (q.high < p.support.upper_bound), math.inf)


@register_kl(ContinuousBernoulli, Exponential)
def _continuous_bernoulli_exponential(p: Any, q: Any) -> Tensor:
    return -p.entropy() - q.rate.log() + q.rate * p.mean


@register_kl(ContinuousBernoulli, Normal)
def _continuous_bernoulli_normal(p: Any, q: Any) -> Tensor:
    second = p.variance + p.mean.pow(2)
    t1 = 0.5 * (LOG_2PI + (q.loc / q.scale).square()) + q.scale.log()
    return -p.entropy() + t1 + (second - 2 * q.loc * p.mean) / (2 * q.scale.square())


@register_kl(ContinuousBernoulli, Uniform)
def _continuous_bernoulli_uniform(p: Any, q: Any) -> Tensor:
    result = -p.entropy() + (q.high - q.low).log()
    return result.masked_fill((q.low > p.support.lower_bound) | (q.high < p.support.upper_bound), math.inf)


@register_kl(Exponential, Gamma)
def _exponential_gamma(p: Any, q: Any) -> Tensor:
    ratio = q.rate / p.rate
    t1 = -q.concentration * ratio.log()
    return t1 + ratio + q.concentration.lgamma() + q.concentration * EULER - (1 + EULER)


@register_kl(Exponential, Gumbel)
def _exponential_gumbel(p: Any, q: Any) -> Tensor:
    product = p.rate * q.scale
    t1 = product.log() - 1
    t2 = (q.loc / q.scale).exp() * product / (product + 1)
    return t1 - q.loc / q.scale + t2 + product.reciprocal()


@register_kl(Exponential, Normal)
def _exponential_normal(p: Any, q: Any) -> Tensor:
    variance, rate2 = q.scale.pow(2), p.rate.pow(2)
    t1 = 0.5 * (rate2 * variance * 2 * math.pi).log()
    return t1 - 1 + (rate2.reciprocal() - q.loc / p.rate + q.loc.pow(2) * 0.5) / variance


@register_kl(Gamma, Exponential)
def _gamma_exponential(p: Any, q: Any) -> Tensor:
    return -p.entropy() - q.rate.log() + q.rate * p.concentration / p.rate


@register_kl(Gamma, Gumbel)
def _gamma_gumbel(p: Any, q: Any) -> Tensor:
    beta = p.rate * q.scale
    loc = q.loc / q.scale
    t1 = (p.concentration - 1) * p.concentration.digamma() - p.concentration.lgamma() - p.concentration
    t2 = beta.log() + p.concentration / beta
    return t1 + t2 + loc.exp() * (1 + beta.reciprocal()).pow(-p.concentration) - loc


@register_kl(Gamma, Normal)
def _gamma_normal(p: Any, q: Any) -> Tensor:
    variance, rate2 = q.scale.pow(2), p.rate.pow(2)
    t1 = 0.5 * (rate2 * variance * 2 * math.pi).log() - p.concentration - p.concentration.lgamma()
    t2 = 0.5 * (p.concentration.pow(2) + p.concentration) / rate2
    t3 = q.loc * p.concentration / p.rate
    return t1 + (p.concentration - 1) * p.concentration.digamma() + (t2 - t3 + 0.5 * q.loc.pow(2)) / variance


@register_kl(Gumbel, Normal)
def _gumbel_normal(p: Any, q: Any) -> Tensor:
    ratio = p.scale / q.scale
    t1 = (ratio / math.sqrt(2 * math.pi)).log()
    t2 = (math.pi * ratio * 0.5).pow(2) / 3
    t3 = ((p.loc + p.scale * EULER - q.loc) / q.scale).pow(2) * 0.5
    return -t1 + t2 + t3 - (EULER + 1)


@register_kl(Laplace, Normal)
def _laplace_normal(p: Any, q: Any) -> Tensor:
    variance = q.scale.pow(2)
    ratio = p.scale.pow(2) / variance
    t1 = 0.5 * (2 * ratio / math.pi).log()
    return -t1 + ratio + (0.5 * p.loc.pow(2) - p.loc * q.loc + 0.5 * q.loc.pow(2)) / variance - 1


@register_kl(Normal, Gumbel)
def _normal_gumbel(p: Any, q: Any) -> Tensor:
    mean_ratio, variance_ratio, loc = p.loc / q.scale, (p.scale / q.scale).pow(2), q.loc / q.scale
    t1 = variance_ratio.log() * 0.5
    return -t1 + mean_ratio - loc + (-mean_ratio + 0.5 * variance_ratio + loc).exp() - 0.5 * (1 + LOG_2PI)


@register_kl(Normal, Laplace)
def _normal_laplace(p: Any, q: Any) -> Tensor:
    off = p.loc - q.loc
    scaled, ratio = off / p.scale, p.scale / q.scale
    t1 = ratio.log()
    t2 = math.sqrt(2 / math.pi) * p.scale * (-0.5 * scaled.pow(2)).exp()
    t3 = off * (math.sqrt(0.5) * scaled).erf()
    return -t1 + (t2 + t3) / q.scale - 0.5 * (1 + math.log(0.5 * math.pi))


@register_kl(Pareto, Exponential)
def _pareto_exponential(p: Any, q: Any) -> Tensor:
    product = p.scale * q.rate
    result = (p.alpha / product).log() - p.alpha.reciprocal() + p.alpha * product / (p.alpha - 1) - 1
    return result.masked_fill(p.alpha <= 1, math.inf)


@register_kl(Pareto, Gamma)
def _pareto_gamma(p: Any, q: Any) -> Tensor:
    common = p.scale.log() + p.alpha.reciprocal()
    t1 = p.alpha.log() - common
    t2 = q.concentration.lgamma() - q.concentration * q.rate.log()
    t3 = (1 - q.concentration) * common
    result = t1 + t2 + t3 + q.rate * p.alpha * p.scale / (p.alpha - 1) - 1
    return result.masked_fill(p.alpha <= 1, math.inf)


@register_kl(Pareto, Normal)
def _pareto_normal(p: Any, q: Any) -> Tensor:
    variance, common = 2 * q.scale.pow(2), p.scale / (p.alpha - 1)
    t1 = (math.sqrt(2 * math.pi) * q.scale * p.alpha / p.scale).log()
    t3 = p.alpha * common.pow(2) / (p.alpha - 2)
    result = t1 - p.alpha.reciprocal() + (t3 + (p.alpha * common - q.loc).pow(2)) / variance - 1
    return result.masked_fill(p.alpha <= 2, math.inf)


@register_kl(Uniform, Beta)
def _uniform_beta(p: Any, q: Any) -> Tensor:
    common = p.high - p.low
    t2 = (q.concentration1 - 1) * (_x_log_x(p.high) - _x_log_x(p.low) - common) / common
    t3 = (q.concentration0 - 1) * (_x_log_x(1 - p.high) - _x_log_x(1 - p.low) + common) / common
    t4 = q.concentration1.lgamma() + q.concentration0.lgamma() - (q.concentration1 + q.concentration0).lgamma()
    result = t3 + t4 - common.log() - t2
    return result.masked_fill((p.high > q.support.upper_bound) | (p.low < q.support.lower_bound), math.inf)


@register_kl(Uniform, ContinuousBernoulli)
def _uniform_continuous_bernoulli(p: Any, q: Any) -> Tensor:
    result = -p.entropy() - p.mean * q.logits - (-q.probs).log1p() - q._log_constant()
    return result.masked_fill((p.high >= q.support.upper_bound) | (p.low <= q.support.lower_bound), math.inf)


@register_kl(Uniform, Exponential)
def _uniform_exponential(p: Any, q: Any) -> Tensor:
    result = q.rate * (p.high + p.low) / 2 - ((p.high - p.low) * q.rate).log()
    return result.masked_fill(p.low < q.support.lower_bound, math.inf)


@register_kl(Uniform, Gamma)
def _uniform_gamma(p: Any, q: Any) -> Tensor:
    common = p.high - p.low
    t1 = common.log()
    t2 = q.concentration.lgamma() - q.concentration * q.rate.log()
    t3 = (1 - q.concentration) * (_x_log_x(p.high) - _x_log_x(p.low) - common) / common
    result = -t1 + t2 + t3 + q.rate * (p.high + p.low) / 2
    return result.masked_fill(p.low < q.support.lower_bound, math.inf)


@register_kl(Uniform, Gumbel)
def _uniform_gumbel(p: Any, q: Any) -> Tensor:
    common = q.scale / (p.high - p.low)
    high, low = (p.high - q.loc) / q.scale, (p.low - q.loc) / q.scale
    return common.log() + 0.5 * (high + low) - common * ((-high).exp() - (-low).exp())


@register_kl(Uniform, Normal)
def _uniform_normal(p: Any, q: Any) -> Tensor:
    common = p.high - p.low
    t1 = (math.sqrt(math.pi * 2) * q.scale / common).log()
    return t1 + 0.5 * (common.pow(2) / 12 + ((p.high + p.low - 2 * q.loc) / 2).pow(2)) / q.scale.pow(2)


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Any, q: Any) -> Tensor:
    support = p.high - p.low
    t1 = (q.alpha * q.scale.pow(q.alpha) * support).log()
    t2 = (_x_log_x(p.high) - _x_log_x(p.low) - support) / support
    return (t2 * (q.alpha + 1) - t1).masked_fill(p.low < q.support.lower_bound, math.inf)
