"""Probability distributions with torch's names: densities, sampling (reparametrised where possible), transforms, divergences.

Start with `distribution.py`: its docstrings describe the methods that every distribution overrides.
"""
from __future__ import annotations

from eager.distributions import constraints, transforms
from eager.distributions.bernoulli import Bernoulli
from eager.distributions.beta import Beta
from eager.distributions.binomial import Binomial
from eager.distributions.categorical import Categorical
from eager.distributions.cauchy import Cauchy
from eager.distributions.chi2 import Chi2
from eager.distributions.constraint_registry import biject_to, transform_to
from eager.distributions.continuous_bernoulli import ContinuousBernoulli
from eager.distributions.dirichlet import Dirichlet
from eager.distributions.distribution import Distribution
from eager.distributions.exp_family import ExponentialFamily
from eager.distributions.exponential import Exponential
from eager.distributions.fishersnedecor import FisherSnedecor
from eager.distributions.gamma import Gamma
from eager.distributions.generalized_pareto import GeneralizedPareto
from eager.distributions.geometric import Geometric
from eager.distributions.gumbel import Gumbel
from eager.distributions.half_cauchy import HalfCauchy
from eager.distributions.half_normal import HalfNormal
from eager.distributions.independent import Independent
from eager.distributions.inverse_gamma import InverseGamma
from eager.distributions.kl import kl_divergence, register_kl
from eager.distributions.kumaraswamy import Kumaraswamy
from eager.distributions.laplace import Laplace
from eager.distributions.lkj_cholesky import LKJCholesky
from eager.distributions.log_normal import LogNormal
from eager.distributions.logistic_normal import LogisticNormal
from eager.distributions.lowrank_multivariate_normal import LowRankMultivariateNormal
from eager.distributions.mixture_same_family import MixtureSameFamily
from eager.distributions.multinomial import Multinomial
from eager.distributions.multivariate_normal import MultivariateNormal
from eager.distributions.negative_binomial import NegativeBinomial
from eager.distributions.normal import Normal
from eager.distributions.one_hot_categorical import OneHotCategorical, OneHotCategoricalStraightThrough
from eager.distributions.pareto import Pareto
from eager.distributions.poisson import Poisson
from eager.distributions.relaxed_bernoulli import RelaxedBernoulli
from eager.distributions.relaxed_categorical import RelaxedOneHotCategorical
from eager.distributions.studentT import StudentT
from eager.distributions.transformed_distribution import TransformedDistribution
from eager.distributions.transforms import *  # noqa: F403 - its __all__ is torch's list of transforms
from eager.distributions.uniform import Uniform
from eager.distributions.von_mises import VonMises
from eager.distributions.weibull import Weibull
from eager.distributions.wishart import Wishart

__all__ = [
    "Bernoulli", "Beta", "Binomial", "Categorical", "Cauchy", "Chi2", "ContinuousBernoulli", "Dirichlet", "Distribution",
    "Exponential", "ExponentialFamily", "FisherSnedecor", "Gamma", "GeneralizedPareto", "Geometric", "Gumbel", "HalfCauchy",
    "HalfNormal", "Independent", "InverseGamma", "Kumaraswamy", "LKJCholesky", "Laplace", "LogNormal", "LogisticNormal",
    "LowRankMultivariateNormal", "MixtureSameFamily", "Multinomial", "MultivariateNormal",
    "NegativeBinomial", "Normal", "OneHotCategorical", "OneHotCategoricalStraightThrough", "Pareto", "Poisson",
    "RelaxedBernoulli", "RelaxedOneHotCategorical", "StudentT", "TransformedDistribution", "Uniform", "VonMises", "Weibull",
    "Wishart", "biject_to", "constraints", "kl_divergence", "register_kl", "transform_to", "transforms", *transforms.__all__,
]  # fmt: skip
