"""Functions and points for comparing gradients with torch's. The points are zeros of divisors, ties, kinks and nan.

A case is a function of the module, torch or ours, and of one-dimensional float64 tensors.
"""
# ruff: noqa: E501 - tables
from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

INF, NAN = float("inf"), float("nan")
POINTS: Final = (NAN, INF, -INF, 0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 6.0, -6.0, 20.0, 21.0, -30.0, 1e-200, 800.0, -800.0)
_PAIR: Final = (NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 2.0, -0.5)
LEFT: Final = tuple(a for a in _PAIR for _ in _PAIR)
RIGHT: Final = tuple(b for _ in _PAIR for b in _PAIR)
ROWS: Final = ((0.0, 0.0, 0.0), (0.0, 2.0, 3.0), (0.0, 0.0, 3.0), (2.0, 2.0, 1.0), (-1.0, NAN, 1.0), (INF, 1.0, INF), (-INF, -INF, -INF),
               (INF, -INF, 1.0), (-0.0, 0.0, 1.0), (NAN, NAN, 2.0), (3.0, 4.0, -3.0))  # fmt: skip

Case = Callable[..., Any]


def _named(names: str, prefix: str = "") -> dict[str, Case]:
    def case(name: str) -> Case:
        def call(torch: Any, *args: Any) -> Any:
            found = torch
            for part in (prefix + name).split("."):
                found = getattr(found, part)
            return found(*args)

        return call

    return {name: case(name) for name in names.split()}


UNARY: Final[dict[str, Case]] = {
    **_named("abs acos acosh angle asin asinh atan atanh ceil cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 floor frac i0 "
             "lgamma log log10 log1p log2 logit nan_to_num neg reciprocal round rsqrt sigmoid sign sgn sin sinc sinh sqrt square tan "
             "tanh trunc relu"),
    **_named("entr erfcx i0e i1 i1e log_ndtr ndtr ndtri", "special."),
    **_named("relu6 hardtanh hardswish hardsigmoid elu selu celu gelu silu mish softplus logsigmoid softsign tanhshrink hardshrink "
             "softshrink leaky_relu rrelu", "nn.functional."),
    "gelu_tanh": lambda t, x: t.nn.functional.gelu(x, approximate="tanh"), "elu(2)": lambda t, x: t.nn.functional.elu(x, 2.0),
    "celu(2)": lambda t, x: t.nn.functional.celu(x, 2.0), "hardtanh(-2, 3)": lambda t, x: t.nn.functional.hardtanh(x, -2.0, 3.0),
    "threshold": lambda t, x: t.nn.functional.threshold(x, 1.0, 20.0), "softplus(2)": lambda t, x: t.nn.functional.softplus(x, 2.0, 6.0),
    "hardshrink(0)": lambda t, x: t.nn.functional.hardshrink(x, 0.0), "softshrink(1)": lambda t, x: t.nn.functional.softshrink(x, 1.0),
    "prelu": lambda t, x: t.nn.functional.prelu(x, t.tensor([0.25], dtype=t.float64)), "leaky_relu(0)": lambda t, x: t.nn.functional.leaky_relu(x, 0.0),
    "clamp": lambda t, x: x.clamp(-1.0, 2.0), "clamp_min": lambda t, x: x.clamp(min=0.0), "clamp_max": lambda t, x: x.clamp(max=1.0),
    "clamp_crossed": lambda t, x: x.clamp(2.0, -1.0), "logit(0.5)": lambda t, x: t.logit(x, 0.25), "nan_to_num(1)": lambda t, x: t.nan_to_num(x, 1.0, 2.0, 3.0),
    "fmod(2)": lambda t, x: t.fmod(x, 2.0), "remainder(-2)": lambda t, x: t.remainder(x, -2.0), "x / 0": lambda t, x: x / 0.0, "1 / x": lambda t, x: 1.0 / x,
    "2 ** x": lambda t, x: 2.0**x, "0 ** x": lambda t, x: t.pow(0.0, x), "(-1) ** x": lambda t, x: t.pow(-1.0, x),
    "where": lambda t, x: t.where(x > 0, x, x * x), "masked_fill": lambda t, x: x.masked_fill(x > 0, 1.0), "xlogy(0, x)": lambda t, x: t.xlogy(0.0, x),
    "glu": lambda t, x: t.nn.functional.glu(t.stack([x, x]), 0)[0], "polygamma(1)": lambda t, x: t.polygamma(1, x),
    "x ** 0": lambda t, x: x**0, "x ** 0.5": lambda t, x: x**0.5, "x ** -0.5": lambda t, x: x**-0.5, "x ** 1": lambda t, x: x**1,
    "x ** 2": lambda t, x: x**2, "x ** 3": lambda t, x: x**3, "x ** -1": lambda t, x: x**-1, "x ** -2": lambda t, x: x**-2,
    "x ** 0.333333": lambda t, x: x ** (1 / 3), "x ** 2.5": lambda t, x: x**2.5,
}  # fmt: skip
BINARY: Final[dict[str, Case]] = {
    **_named("add sub mul div atan2 hypot maximum minimum fmax fmin fmod remainder pow copysign logaddexp logaddexp2 xlogy dist"),
    **_named("xlog1py", "special."),
    "clamp(min=)": lambda t, x, y: t.clamp(x, min=y), "clamp(max=)": lambda t, x, y: t.clamp(x, max=y), "clamp(y, x)": lambda t, x, y: t.clamp(x, y, x),
    "floor_divide": lambda t, x, y: t.div(x, y, rounding_mode="floor") + x, "trunc_divide": lambda t, x, y: t.div(x, y, rounding_mode="trunc") + x,
    "where": lambda t, x, y: t.where(x > y, x, y), "lerp": lambda t, x, y: t.lerp(x, y, 0.5), "addcdiv": lambda t, x, y: t.addcdiv(x, x, y),
    "smooth_l1": lambda t, x, y: t.nn.functional.smooth_l1_loss(x, y, reduction="none"),
    "huber": lambda t, x, y: t.nn.functional.huber_loss(x, y, reduction="none"), "l1": lambda t, x, y: t.nn.functional.l1_loss(x, y, reduction="none"),
    "prelu": lambda t, x, y: t.nn.functional.prelu(x.reshape(1, -1), y),
}  # fmt: skip
ROW: Final[dict[str, Case]] = {
    **_named("sum mean prod std var max min amax amin norm median nanmedian nansum nanmean"),
    "logsumexp": lambda t, x: t.logsumexp(x, 0), "softmax": lambda t, x: t.softmax(x, 0), "log_softmax": lambda t, x: t.log_softmax(x, 0),
    "cumprod": lambda t, x: t.cumprod(x, 0), "cumsum": lambda t, x: t.cumsum(x, 0), "cummax": lambda t, x: t.cummax(x, 0).values,
    "cummin": lambda t, x: t.cummin(x, 0).values, "logcumsumexp": lambda t, x: t.logcumsumexp(x, 0), "max(0)": lambda t, x: x.max(0).values,
    "min(0)": lambda t, x: x.min(0).values, "amax(0)": lambda t, x: x.amax(0), "prod(0)": lambda t, x: x.prod(0), "aminmax": lambda t, x: t.stack(list(t.aminmax(x))),
    "norm(1)": lambda t, x: x.norm(1), "norm(inf)": lambda t, x: x.norm(INF), "norm(-inf)": lambda t, x: x.norm(-INF), "norm(0)": lambda t, x: x.norm(0),
    "norm(3)": lambda t, x: x.norm(3), "norm(0.5)": lambda t, x: x.norm(0.5), "vector_norm": lambda t, x: t.linalg.vector_norm(x),
    "normalize": lambda t, x: t.nn.functional.normalize(x, dim=0), "std(0)": lambda t, x: x[:1].std(0), "std(unbiased)": lambda t, x: x[:1].std(unbiased=False),
    "var(0)": lambda t, x: x[:1].var(0), "sort": lambda t, x: x.sort().values, "topk": lambda t, x: x.topk(2).values, "kthvalue": lambda t, x: x.kthvalue(2).values,
    "mode": lambda t, x: x.mode().values, "quantile": lambda t, x: x.quantile(0.5), "renorm": lambda t, x: t.renorm(x.reshape(1, -1), 2, 0, 1.0),
    "cosine": lambda t, x: t.nn.functional.cosine_similarity(x, x * 2, 0), "cdist": lambda t, x: t.cdist(x.reshape(-1, 1), x.reshape(-1, 1)),
    "pdist": lambda t, x: t.pdist(x.reshape(-1, 1)), "sqrt(sum)": lambda t, x: (x * x).sum().sqrt(),
}  # fmt: skip
# Those that are compiled together: kinks and roots. The rest have the same formulas in both modes.
COMPILED: Final = {
    "unary": "abs sqrt rsqrt relu sign sigmoid tanh nan_to_num relu6 hardtanh hardswish hardsigmoid elu selu celu gelu silu mish softplus "
             "logsigmoid softsign hardshrink softshrink leaky_relu threshold clamp clamp_min where".split() + [n for n in UNARY if "**" in n],
    "binary": ["atan2", "hypot", "maximum", "fmax", "fmod", "remainder", "pow", "copysign", "logaddexp", "xlogy", "clamp(min=)", "huber", "prelu"],
}  # fmt: skip
GROUPS: Final = {"unary": UNARY, "binary": BINARY, "row": ROW}


def inputs(group: str) -> list[tuple[tuple[float, ...], ...]]:
    """The arguments of each case of a group: one tuple of columns for each call."""
    return {"unary": [(POINTS,)], "binary": [(LEFT, RIGHT)], "row": [(row,) for row in ROWS]}[group]


def gradients(torch: Any, case: Case, columns: tuple[tuple[float, ...], ...], dtype: str = "float64") -> list[list[float]]:
    """Gradients of the sum of a case's results: one list for each argument, empty if no result depends on the argument."""
    leaves = [torch.tensor(c, dtype=torch.float64).to(getattr(torch, dtype)).requires_grad_() for c in columns]
    y = case(torch, *leaves)
    if not y.requires_grad:
        return [[] for _ in leaves]
    found = torch.autograd.grad(y, leaves, torch.ones_like(y), allow_unused=True)
    return [[] if g is None else (g + torch.zeros_like(x)).to(torch.float64).tolist() for g, x in zip(found, leaves, strict=True)]
