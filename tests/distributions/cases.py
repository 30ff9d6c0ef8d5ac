"""Cases of the comparison with torch: distributions as expressions that run under torch and under this library.

`T` makes a float64 tensor, `D` is `torch.distributions`. Values are points of the support at which densities are compared.
"""

# ruff: noqa: E501 - one case a line
from __future__ import annotations

MATRIX = "T([[2.0, 0.3, 0.1], [0.3, 1.5, -0.2], [0.1, -0.2, 1.0]])"
TRIL = "T([[1.2, 0.0], [0.4, 0.7]])"

# name -> (expression, values)
DISTRIBUTIONS: dict[str, tuple[str, str]] = {
    "Normal": ("D.Normal(T([0.3, -1.0]), T([0.7, 2.0]))", "T([[0.1, -2.0], [1.5, 3.0]])"),
    "LogNormal": ("D.LogNormal(T([0.3, -1.0]), T([0.7, 1.2]))", "T([0.4, 2.5])"),
    "HalfNormal": ("D.HalfNormal(T([0.7, 2.0]))", "T([0.4, 2.5])"),
    "Uniform": ("D.Uniform(T([0.2, -1.0]), T([0.7, 2.0]))", "T([0.4, 1.5])"),
    "Bernoulli": ("D.Bernoulli(T([0.3, 0.5, 0.9]))", "T([0.0, 1.0, 1.0])"),
    "Bernoulli logits": ("D.Bernoulli(logits=T([-30.0, 0.4]))", "T([0.0, 1.0])"),
    "Binomial": ("D.Binomial(5, T([0.3, 0.9]))", "T([2.0, 5.0])"),
    "Binomial logits": ("D.Binomial(T(5.0), logits=T([-2.0, 1.5]))", "T([0.0, 4.0])"),
    "Categorical": ("D.Categorical(T([[0.1, 0.2, 0.7], [3.0, 1.0, 0.0]]))", "L([2, 0])"),
    "Categorical logits": ("D.Categorical(logits=T([0.1, 2.0, -1.0]))", "L([0, 1, 2])"),
    "OneHotCategorical": ("D.OneHotCategorical(T([0.1, 0.2, 0.7]))", "T([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])"),
    "OneHotStraightThrough": ("D.OneHotCategoricalStraightThrough(T([0.1, 0.2, 0.7]))", "T([0.0, 1.0, 0.0])"),
    "Multinomial": ("D.Multinomial(4, T([0.1, 0.2, 0.7]))", "T([[1.0, 1.0, 2.0], [0.0, 0.0, 4.0]])"),
    "Beta": ("D.Beta(T([0.5, 2.0, 3.0]), T([0.7, 3.0, 1.0]))", "T([0.2, 0.6, 0.9])"),
    "Gamma": ("D.Gamma(T([0.5, 2.0]), T([1.0, 3.0]))", "T([0.2, 1.6])"),
    "Chi2": ("D.Chi2(T([1.0, 4.0]))", "T([0.2, 1.6])"),
    "InverseGamma": ("D.InverseGamma(T([2.5, 3.0]), T([1.0, 3.0]))", "T([0.2, 1.6])"),
    "Dirichlet": ("D.Dirichlet(T([[0.5, 1.0, 2.0], [3.0, 2.0, 4.0]]))", "T([[0.2, 0.3, 0.5], [0.1, 0.6, 0.3]])"),
    "Exponential": ("D.Exponential(T([0.5, 2.0]))", "T([0.2, 1.6])"),
    "Laplace": ("D.Laplace(T([0.3, -1.0]), T([0.7, 2.0]))", "T([0.1, 1.5])"),
    "Cauchy": ("D.Cauchy(T([0.3, -1.0]), T([0.7, 2.0]))", "T([0.1, 1.5])"),
    "HalfCauchy": ("D.HalfCauchy(T([0.7, 2.0]))", "T([0.1, 1.5])"),
    "StudentT": ("D.StudentT(T([0.8, 1.5, 5.0]), T([0.0, 1.0, 2.0]), T([1.0, 2.0, 0.5]))", "T([0.1, 1.5, 3.0])"),
    "FisherSnedecor": ("D.FisherSnedecor(T([1.0, 5.0]), T([3.0, 7.0]))", "T([0.2, 1.6])"),
    "Poisson": ("D.Poisson(T([0.5, 4.2]))", "T([0.0, 7.0])"),
    "Geometric": ("D.Geometric(T([0.3, 0.9]))", "T([4.0, 0.0])"),
    "Geometric logits": ("D.Geometric(logits=T([-1.0, 1.0]))", "T([4.0, 0.0])"),
    "NegativeBinomial": ("D.NegativeBinomial(T([3.0, 1.5]), T([0.3, 0.9]))", "T([4.0, 0.0])"),
    "Gumbel": ("D.Gumbel(T([0.3, -1.0]), T([0.7, 2.0]))", "T([0.1, 1.5])"),
    "Weibull": ("D.Weibull(T([0.7, 2.0]), T([0.8, 3.0]))", "T([0.1, 1.5])"),
    "Pareto": ("D.Pareto(T([0.7, 1.0]), T([0.8, 3.0]))", "T([0.9, 1.5])"),
    "Kumaraswamy": ("D.Kumaraswamy(T([0.8, 3.0]), T([0.7, 2.0]))", "T([0.1, 0.5])"),
    "VonMises": ("D.VonMises(T([0.3, -1.0, 2.0]), T([0.7, 20.0, 1e-3]))", "T([0.1, -1.5, 3.0])"),
    "ContinuousBernoulli": ("D.ContinuousBernoulli(T([0.2, 0.4999, 0.9]))", "T([0.1, 0.5, 0.7])"),
    "RelaxedBernoulli": ("D.RelaxedBernoulli(T(0.6), T([0.2, 0.9]))", "T([0.1, 0.7])"),
    "LogitRelaxedBernoulli": ("D.relaxed_bernoulli.LogitRelaxedBernoulli(T(0.6), logits=T([0.2, 0.9]))", "T([0.1, 0.7])"),
    "RelaxedOneHotCategorical": ("D.RelaxedOneHotCategorical(T(0.6), T([0.2, 0.5, 0.3]))", "T([0.1, 0.7, 0.2])"),
    "MultivariateNormal": (f"D.MultivariateNormal(T([0.1, 0.2, 0.3]), {MATRIX})", "T([[0.0, 1.0, -1.0], [0.5, 0.5, 0.5]])"),
    "MultivariateNormal precision": (
        f"D.MultivariateNormal(T([0.1, 0.2, 0.3]), precision_matrix={MATRIX})", "T([0.0, 1.0, -1.0])"),
    "MultivariateNormal batch": (
        f"D.MultivariateNormal(T([[0.1, 0.2], [1.0, 2.0]]), scale_tril={TRIL})", "T([[0.0, 1.0], [0.5, 0.5]])"),
    "LowRankMultivariateNormal": (
        "D.LowRankMultivariateNormal(T([0.1, 0.2, 0.3]), T([[1.0], [0.5], [-0.3]]), T([0.5, 0.8, 1.2]))", "T([0.0, 1.0, -1.0])"),
    "Independent": ("D.Independent(D.Normal(T([[0.3, -1.0], [0.0, 1.0]]), T([0.7, 2.0])), 1)", "T([0.1, -2.0])"),
    "TransformedDistribution": (
        "D.TransformedDistribution(D.Normal(T([0.3, -1.0]), T([0.7, 2.0])), [D.AffineTransform(1.0, T(-2.0)), D.SigmoidTransform()])",
        "T([0.1, 0.7])"),
    "MixtureSameFamily": (
        "D.MixtureSameFamily(D.Categorical(T([0.2, 0.8])), D.Normal(T([[0.0, 2.0], [1.0, -1.0]]), T([[1.0, 0.5], [0.3, 2.0]])))",
        "T([0.1, 0.7])"),
    "MixtureSameFamily of events": (
        "D.MixtureSameFamily(D.Categorical(T([0.2, 0.8])), D.Independent(D.Normal(T([[0.0, 2.0], [1.0, -1.0]]), T(1.0)), 1))",
        "T([[0.1, 0.7], [1.0, 1.0]])"),
    "LogisticNormal": ("D.LogisticNormal(T([0.3, -1.0]), T([0.7, 2.0]))", "T([0.2, 0.3, 0.5])"),
    "Wishart": (f"D.Wishart(T(4.5), {MATRIX})", f"{MATRIX}"),
    "Wishart batch": (f"D.Wishart(T([2.5, 4.0]), scale_tril={TRIL})", "T([[1.0, 0.2], [0.2, 2.0]])"),
}  # fmt: skip

# Attributes, and methods without arguments, that are compared besides log_prob.
ATTRIBUTES = ("mean", "mode", "variance", "stddev", "batch_shape", "event_shape", "has_rsample", "has_enumerate_support", "support")
# Points at which icdf is compared.
PLACES = "T([0.15, 0.8])"

# The divergence of every pair of these distributions is compared.
KL = {
    "Bernoulli": "D.Bernoulli(T([0.3, 0.0, 1.0]))", "Bernoulli2": "D.Bernoulli(T([0.6, 0.3, 1.0]))",
    "Beta": "D.Beta(T([0.5, 2.0]), T([0.7, 3.0]))", "Binomial": "D.Binomial(5, T([0.3, 0.9]))", "Binomial30": "D.Binomial(30, T([0.4, 0.2]))",
    "Categorical": "D.Categorical(T([0.1, 0.2, 0.7]))", "Categorical0": "D.Categorical(T([0.5, 0.5, 0.0]))",
    "Cauchy": "D.Cauchy(T([0.3, -1.0]), T([0.7, 2.0]))", "ContinuousBernoulli": "D.ContinuousBernoulli(T([0.2, 0.9]))",
    "Dirichlet": "D.Dirichlet(T([0.5, 1.0, 2.0]))", "Dirichlet2": "D.Dirichlet(T([1.5, 1.0, 4.0]))",
    "Exponential": "D.Exponential(T([0.5, 2.0]))", "Gamma": "D.Gamma(T([0.5, 2.0]), T([1.0, 3.0]))",
    "Geometric": "D.Geometric(T([0.3, 0.9]))", "Gumbel": "D.Gumbel(T([0.3, -1.0]), T([0.7, 2.0]))",
    "HalfNormal": "D.HalfNormal(T([0.7, 2.0]))", "HalfNormal2": "D.HalfNormal(T([1.7, 0.2]))",
    "Laplace": "D.Laplace(T([0.3, -1.0]), T([0.7, 2.0]))", "Laplace2": "D.Laplace(T([0.0, 1.0]), T([1.7, 0.5]))",
    "LogNormal": "D.LogNormal(T([0.3, -1.0]), T([0.7, 2.0]))", "LogNormal2": "D.LogNormal(T([0.0, 1.0]), T([1.7, 0.5]))",
    "MVN": f"D.MultivariateNormal(T([0.1, 0.2, 0.3]), {MATRIX})",
    "LowRank": "D.LowRankMultivariateNormal(T([0.5, 0.2, 0.3]), T([[1.0], [0.5], [-0.3]]), T([0.5, 0.8, 1.2]))",
    "LowRank2": "D.LowRankMultivariateNormal(T([0.1, 0.7, 0.3]), T([[0.0], [0.5], [0.3]]), T([1.5, 0.8, 0.2]))",
    "Normal": "D.Normal(T([0.3, -1.0]), T([0.7, 2.0]))", "Normal2": "D.Normal(T([1.3, 0.0]), T([1.7, 0.3]))",
    "OneHotCategorical": "D.OneHotCategorical(T([0.1, 0.2, 0.7]))", "Pareto": "D.Pareto(T([0.7, 1.0]), T([0.8, 3.0]))",
    "Poisson": "D.Poisson(T([0.5, 4.2]))", "Uniform": "D.Uniform(T([0.2, 0.1]), T([0.7, 0.9]))",
    "Uniform2": "D.Uniform(T([-1.0, 0.0]), T([1.0, 2.0]))",
    "Independent": "D.Independent(D.Normal(T([0.3, -1.0]), T([0.7, 2.0])), 1)",
    "Independent2": "D.Independent(D.Normal(T([1.3, -1.0]), T([1.7, 1.0])), 1)",
}  # fmt: skip

# transform -> points of its domain
TRANSFORMS = {
    "D.ExpTransform()": "T([-1.0, 0.5])", "D.SigmoidTransform()": "T([-1.0, 0.5])", "D.TanhTransform()": "T([-1.0, 0.5])",
    "D.SoftplusTransform()": "T([-1.0, 0.5])", "D.PowerTransform(T(2.5))": "T([0.3, 1.5])", "D.AffineTransform(T(1.0), T(-2.0))": "T([0.3, 1.5])",
    "D.AffineTransform(1.0, 3.0, event_dim=1)": "T([[0.3, 1.5], [2.0, 3.0]])", "D.StickBreakingTransform()": "T([[0.3, -1.5, 0.2], [0.0, 0.0, 0.0]])",
    "D.CorrCholeskyTransform()": "T([0.3, -0.5, 0.2])", "D.ReshapeTransform((4,), (2, 2))": "T([[1.0, 2.0, 3.0, 4.0]])",
    "D.ComposeTransform([D.AffineTransform(0.5, 2.0), D.ExpTransform()])": "T([-1.0, 0.5])",
    "D.ComposeTransform([D.ExpTransform(), D.StickBreakingTransform()])": "T([[-1.0, 0.5], [0.2, 0.1]])",
    "D.IndependentTransform(D.ExpTransform(), 1)": "T([[-1.0, 0.5]])", "D.ExpTransform().inv": "T([0.3, 1.5])",
    "D.CatTransform([D.ExpTransform(), D.SigmoidTransform()], dim=-1, lengths=[1, 2])": "T([[-1.0, 0.5, 0.2]])",
    "D.StackTransform([D.ExpTransform(), D.SigmoidTransform()], dim=-1)": "T([[-1.0, 0.5]])",
    "D.CumulativeDistributionTransform(D.Normal(T(0.0), T(1.0)))": "T([-1.0, 0.5])",
    "D.biject_to(D.constraints.positive)": "T([-1.0, 0.5])", "D.biject_to(D.constraints.interval(-1.0, 3.0))": "T([-1.0, 0.5])",
    "D.biject_to(D.constraints.less_than(2.0))": "T([-1.0, 0.5])", "D.biject_to(D.constraints.simplex)": "T([-1.0, 0.5])",
    "D.biject_to(D.constraints.greater_than_eq(1.5))": "T([-1.0, 0.5])", "D.biject_to(D.constraints.corr_cholesky)": "T([-1.0, 0.5, 0.1])",
    "D.biject_to(D.constraints.independent(D.constraints.positive, 1))": "T([-1.0, 0.5])",
}  # fmt: skip
# transforms without a log-determinant, or without an inverse in the strict sense
MAPS = {
    "D.AbsTransform()": "T([-1.0, 0.5])", "D.SoftmaxTransform()": "T([-1.0, 0.5])",
    "D.LowerCholeskyTransform()": "T([[0.3, 9.0], [0.2, -0.5]])", "D.PositiveDefiniteTransform()": "T([[0.3, 9.0], [0.2, -0.5]])",
    "D.transform_to(D.constraints.simplex)": "T([-1.0, 0.5])", "D.transform_to(D.constraints.positive_definite)": "T([[0.3, 9.0], [0.2, -0.5]])",
}  # fmt: skip

# expressions that raise: class and text are compared
ERRORS = [
    "D.Normal(T([0.0, 1.0]), T([1.0, -1.0]))", "D.Normal(T([0.0]), T([1.0])).log_prob(T([float('nan')]))", "D.Bernoulli(T(1.5))",
    "D.Bernoulli()", "D.Bernoulli(T(0.5), T(0.5))", "D.Categorical(T(0.5))", "D.Categorical(T([0.5, 0.5])).log_prob(T(2.0))",
    "D.Uniform(T(1.0), T(0.0))", "D.Uniform(T(0.0), T(1.0)).log_prob(T(2.0))", "D.Exponential(T(1.0)).log_prob(3.0)",
    "D.MultivariateNormal(T([0.0, 0.0]))", "D.MultivariateNormal(T(0.0), T([[1.0]]))", "D.Normal(T([0.0, 1.0]), T(1.0)).log_prob(T([0.0, 1.0, 2.0]))",
    "D.Dirichlet(T(1.0))", "D.Independent(D.Normal(T(0.0), T(1.0)), 1)", "D.kl_divergence(D.Poisson(T(1.0)), D.Normal(T(0.0), T(1.0)))",
    "D.Normal('a', 1.0)", "D.Normal(T(0.0), T(1.0)).enumerate_support()", "D.TransformedDistribution(D.Normal(T(0.0), T(1.0)), 3)",
    "D.transform_to(D.constraints.square)", "D.Multinomial(T(3.0), T([0.5, 0.5]))", "D.MixtureSameFamily(D.Normal(T(0.0), T(1.0)), D.Normal(T([0.0]), T([1.0])))",
    "D.Dirichlet(T([1.0, 2.0])).log_prob(T([0.5, 0.6]))", "D.Dirichlet(T([1.0, 2.0])).log_prob(T([0.5, 0.3, 0.2]))",
    "D.ExpTransform(cache_size=2)", "D.Geometric(T(0.0))", "D.Wishart(T(0.5), T([[1.0, 0.0], [0.0, 1.0]]))",
]  # fmt: skip
