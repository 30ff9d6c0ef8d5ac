"""One call of each public function and form of its arguments, and the derivatives of these calls.

`texts` takes the calls of torch_signatures.json.gz. `half_errors` measures a call in half precision against float64.
`second_derivatives` reports which second derivatives a call has. Both run under torch and under eager: `make_derivatives.py`
stores torch's results; tests/ops/test_half_precision.py and tests/ops/test_second_derivatives.py compare ours with them.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.data.calls import names
from tests.data.generated_calls import signatures

_LEFT_OUT = ("empty", "new_", "seed", "save", "load", "compile", "batch_norm_update")
_RANDOM = ("dropout", "rand", "bernoulli", "multinomial", "normal", "poisson", "rrelu", "gumbel", "exponential", "geometric", "cauchy",
           "uniform", "binomial", "fractional", "dirichlet", "gamma(")  # fmt: skip
ROUNDING = {"f2": 2.0**-11, "bf": 2.0**-8}  # half a unit in the last place of 1
_RANGE = {"f2": (2.0**-25, 65504.0), "bf": (1e-40, 3.38e38)}  # half of the smallest number, the largest number
# Piecewise linear functions, and other functions with second derivatives that are partly zero.
_MORE = """
F.rrelu({x}, training=True) | F.relu6({x}) | F.hardshrink({x}) | F.softshrink({x}) | F.threshold({x}, 0.1, 20.0) | F.hardtanh({x})
F.fractional_max_pool2d({image}, 2, output_size=3) | F.fractional_max_pool3d(t('f8', 1, 1, 6, 6, 6), 2, output_size=3)
F.leaky_relu({x}) | F.prelu({x}, t('f8', 4)) | {x}.abs() | {x}.clamp(-1, 1) | {x}.clamp({y}, t('f8', 3, 4, seed=3.0)) | T.maximum({x}, {y})
T.where(t('b1', 3, 4), {x}, {y}) | F.nll_loss({x}, at(3, 3)) | F.l1_loss({x}, {y}) | F.interpolate({image}, scale_factor=2, mode='bilinear')
F.grid_sample({image}, t('f8', 1, 3, 3, 2)) | F.max_pool2d({image}, 2) | F.adaptive_max_pool2d({image}, 2) | F.lp_pool2d({image}, 2.0, 2)
F.max_unpool2d(t('f8', 1, 1, 2, 2), at(4, 1, 1, 2, 2), 2) | F.embedding(at(3, 4), {x}) | F.embedding_bag(at(3, 2, 4), {x}, mode='max')
F.embedding_bag(at(3, 2, 4), {x}, mode='sum', per_sample_weights=t('f8', 2, 4)) | {x}.max() | {x}.median() | {x}.cummax(1)[0]
{x}.norm(1) | {x}.norm(inf) | T.cdist({x}, {y}, p=1.0) | T.cdist({x}, {y}, p=inf) | F.hinge_embedding_loss({x}, {y}.sign())
F.multi_margin_loss({x}, at(4, 3)) | T.fmod({x}, {y}) | T.remainder({x}, {y}) | T.copysign({x}, {y}) | F.smooth_l1_loss({x}, {y})
F.huber_loss({x}, {y}) | T.nan_to_num({x}) | F.pad({image}, (1, 1), mode='reflect') | T.lerp({x}, {y}, 0.5)
T.scatter_reduce({x}, 0, at(3, 3, 4), {y}, 'amax') | T.scatter_reduce({x}, 0, at(3, 3, 4), {y}, 'prod')
"""


def texts(random: bool) -> list[str]:
    """The calls that have an operand of float32. random: include the calls of random functions."""
    found = {}
    for record in signatures():
        path = record["path"]
        if any(part in path for part in _LEFT_OUT) or (not random and any(part in path for part in _RANDOM)):
            continue
        only = {p[0] for p in record["params"] if p[3]}
        for base in record["bases"]:
            parts = [f"{name}={value}" if name in only else value for name, value in base]
            text = f"{parts[0]}{path}({', '.join(parts[1:])})" if path.startswith(".") else f"{path}({', '.join(parts)})"
            if "'f4'" in text or "spd(" in text:
                found[text] = None
    return list(found)


def second_texts() -> list[str]:
    """The calls whose second derivatives are compared, in float64."""
    x, y, image = "t('f8', 3, 4)", "t('f8', 3, 4, seed=2.0)", "t('f8', 1, 1, 6, 6)"
    more = [part.strip().format(x=x, y=y, image=image) for line in _MORE.strip().splitlines() for part in line.split(" | ")]
    return list(dict.fromkeys([*more, *(text.replace("'f4'", "'f8'") for text in texts(random=True))]))


def _results(T: Any, result: Any) -> list[Any]:  # noqa: N803 - stands for a module
    if isinstance(result, T.Tensor):
        return [result]
    return [t for part in result for t in _results(T, part)] if isinstance(result, (tuple, list)) else []


def _run(T: Any, text: str, leaf: Callable[[Any], Any], on_leaf: bool) -> tuple[list[Any], list[Any]]:  # noqa: N803
    """(results, leaves) of a call. The leaves are `leaf(x)` for each floating operand x.

    on_leaf: the call receives the leaves, otherwise products of the leaves with 1, which are not leaves.
    """
    scope, leaves = names(T), []

    def watched(make: Any, code: str | None = None) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            x = make(args[0], code) if code else make(*("f8" if a == "f4" else a for a in args), **kwargs)
            if x.is_floating_point():
                leaves.append(leaf(x).detach().clone().requires_grad_())
                return leaves[-1] if on_leaf else leaves[-1] * 1
            return x

        return call

    scope |= {"t": watched(scope["t"]), "special": watched(scope["special"]), "spd": watched(scope["spd"], "f8")}
    T.manual_seed(0)
    return _results(T, eval(text, scope)), leaves  # noqa: S307 - our own table


def weights(T: Any, y: Any) -> Any:  # noqa: N803
    """Cotangents of `y`. Every dtype represents them exactly."""
    return T.from_numpy((np.round(8 * np.sin(0.7 * np.arange(y.numel()) + 0.4) + 10) / 8).reshape(tuple(y.shape))).to(y.dtype)


# ---- half precision ----


def _values(T: Any, text: str, dtype: Any, wide: bool) -> list[np.ndarray | None] | None:  # noqa: N803
    """Results and gradients for operands that are rounded to `dtype`. wide: compute with them in float64."""
    try:
        outs, leaves = _run(T, text, lambda x: x.to(dtype).double() if wide else x.to(dtype), on_leaf=True)
        wanted = [y for y in outs if y.requires_grad]
        grads = T.autograd.grad(wanted, leaves, [weights(T, y) for y in wanted], allow_unused=True) if wanted else ()
    except Exception:  # noqa: BLE001 - errors are compared elsewhere
        return None
    return [None if v is None or v.dtype.is_complex else (v.detach().double() + 0.0).numpy() for v in (*outs, *grads)]


def half_errors(T: Any, text: str, code: str) -> list[float | None] | None:  # noqa: N803
    """Error of each result and gradient in roundings of the half type. None for a result or gradient without a real value."""
    dtype = {"f2": T.float16, "bf": T.bfloat16}[code]
    found, exact = (_values(T, text, dtype, wide) for wide in (False, True))
    if found is None or exact is None or len(found) != len(exact):
        return None
    return [error(a, b, code) for a, b in zip(found, exact, strict=True)]


def error(found: np.ndarray | None, exact: np.ndarray | None, code: str) -> float | None:
    """The largest error over the values that the half type can hold, in its roundings of each value.

    A value below 1/20 of the largest value counts as 1/20 of the largest value.
    """
    if found is None or exact is None or found.shape != exact.shape or not found.size:
        return None
    smallest, largest = _RANGE[code]
    with np.errstate(all="ignore"):
        held = np.isfinite(exact) & (np.abs(exact) <= largest)
        if not held.any():
            return None
        if not np.isfinite(found[held]).all():
            return float("inf")
        size = np.maximum(np.abs(exact), np.abs(exact[held]).max() / 20) * ROUNDING[code] + smallest
        return float((np.abs(found - exact)[held] / size[held]).max())


# ---- second derivatives ----


def second_derivatives(T: Any, text: str) -> str | None:  # noqa: N803
    """Pattern of the second derivatives: one word for each operand, one letter in it for each operand of the second derivative.

    Letters: "-" no derivative, "0" zeros, "1" other values, "E" an error. An operand without a gradient has the word ".".
    None for a call that fails or has no differentiable result.
    """
    try:
        outs, leaves = _run(T, text, lambda x: x, on_leaf=False)
        outs = [y for y in outs if y.requires_grad and y.dtype is T.float64]
        if not outs:
            return None
        first = T.autograd.grad(outs, leaves, [weights(T, y) for y in outs], create_graph=True, allow_unused=True)
    except Exception:  # noqa: BLE001 - errors are compared elsewhere
        return None
    return " ".join("." if g is None else _pattern(T, g, leaves) for g in first)


def _pattern(T: Any, g: Any, leaves: list[Any]) -> str:  # noqa: N803
    if not g.requires_grad:
        return "-" * len(leaves)
    try:
        found = T.autograd.grad((g * weights(T, g)).sum(), leaves, allow_unused=True, retain_graph=True)
    except Exception:  # noqa: BLE001 - a formula without derivative
        return "E" * len(leaves)
    return "".join("-" if h is None else "1" if bool((h != 0).any()) else "0" for h in found)
