"""Errors of reductions, scans and statistics of float32, forward and backward, by layout and size.

The reference is the same function of the same inputs in float64. The error of a result is max|result - reference| divided
by max|reference|. The error of a case with several results is the largest of their errors. Imports neither torch nor eager.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

TITLE = "Reductions, scans and statistics of float32"
HEADERS = ("operation", "data", "layout", "elements")
UNIT = "relative"
FLOOR = 2.4e-7  # four roundings of float32

SIZES: Final = (10_000, 1_000_000)
LARGE: Final = (10_000_000,)
SMALL: Final = 4  # length of the dim that is kept
Function = Callable[..., Any]  # (torch, *tensors) -> tensor, or tuple of them


@dataclass(frozen=True, slots=True)
class Case:
    """One row of the table: `fn` applied to the inputs that `make` returns. backward: the gradients count as results too."""

    labels: tuple[str, ...]
    fn: Function
    make: Callable[[], Sequence[np.ndarray]]
    backward: bool = False

    @property
    def key(self) -> str:
        return " | ".join(self.labels)


# ---- inputs ----


def _random(kind: str, *shape: int, seed: int = 0) -> np.ndarray:
    """Reproducible numbers: "unit" in [0, 1), "signed" normal, "offset" near 100, "constant" 0.1, "near 1"."""
    r = np.random.default_rng(zlib.crc32(repr((kind, shape, seed)).encode()))
    if kind == "constant":
        return np.full(shape, 0.1, np.float32)
    if kind == "signed":
        return r.standard_normal(shape, dtype=np.float32)
    unit = r.random(shape, dtype=np.float32)
    if kind == "near 1":
        spread = 8 / (int(np.prod(shape)) ** 0.5)
        return (1 + (unit - 0.5) * np.float32(spread)).astype(np.float32)
    return unit + np.float32(100) if kind == "offset" else unit


def _layouts() -> dict[str, Callable[[Any, int], tuple[tuple[int, ...], Callable[[Any], Any], Any]]]:
    """name -> (elements) -> (shape in memory, view of it, dim)."""
    return {
        "columns": lambda n: ((n // SMALL, SMALL), lambda x: x, 0),
        "wide columns": lambda n: ((n // 200, 200), lambda x: x, 0),
        "rows": lambda n: ((SMALL, n // SMALL), lambda x: x, 1),
        "transposed": lambda n: ((n // SMALL, SMALL), lambda x: x.t(), 1),
        "strided": lambda n: ((SMALL, n // SMALL), lambda x: x[:, ::3], 1),
        "middle": lambda n: ((2, n // 8, 4), lambda x: x, 1),
        "outer and inner": lambda n: ((n // 20, SMALL, 5), lambda x: x, (0, 2)),
        "all": lambda n: ((n // 1000, 1000), lambda x: x, None),
    }  # type: ignore[return-value]


def _over(name: str, fn: Function, data: Sequence[str], layouts: Sequence[str], sizes: Sequence[int] = SIZES,
          backward: bool = False) -> Iterator[Case]:  # fmt: skip
    """Cases of `fn(torch, x, dim)` in several layouts."""
    for kind in data:
        for layout in layouts:
            for n in sizes:
                shape, view, dim = _layouts()[layout](n)

                def run(t: Any, x: Any, view: Any = view, dim: Any = dim) -> Any:
                    return fn(t, view(x), dim)

                yield Case((name, kind, layout, f"{n:.0e}"), run, lambda k=kind, s=shape: (_random(k, *s),), backward)


def _of(name: str, fn: Function, *inputs: tuple[Any, ...], backward: bool = True) -> Case:
    """One case. inputs: (kind, *shape), or ("int", high, *shape) for indices."""

    def make() -> list[np.ndarray]:
        return [np.random.default_rng(7).integers(0, i[1], i[2:]) if i[0] == "int" else _random(*i, seed=k) for k, i in enumerate(inputs)]

    n = max(int(np.prod(i[2:] if i[0] == "int" else i[1:])) for i in inputs)
    shape = "x".join(map(str, inputs[0][1:]))
    return Case((name + (" and gradient" if backward else ""), inputs[0][0], shape, f"{n:.0e}"), fn, make, backward)


# ---- cases ----

EVERY: Final = ("columns", "wide columns", "rows", "transposed", "strided", "middle", "outer and inner", "all")
ONE_DIM: Final = ("columns", "wide columns", "rows", "transposed", "strided", "middle")
FEW: Final = ("columns", "rows", "all")


def cases() -> list[Case]:
    """Every row of the table, in its order."""
    return [*_plain(), *_scans(), *_statistics(), *_layers(), *_losses(), *_indexed(), *_products()]


def _plain() -> Iterator[Case]:
    yield from _over("sum", lambda t, x, d: x.sum(d), ("unit", "constant"), EVERY)
    yield from _over("sum", lambda t, x, d: x.sum(d), ("unit", "constant"), FEW, LARGE)
    yield from _over("mean", lambda t, x, d: x.mean(d), ("unit", "offset"), EVERY)
    yield from _over("sum(x * x)", lambda t, x, d: (x * x).sum(d), ("signed",), EVERY)
    yield from _over("prod", lambda t, x, d: x.prod() if d is None else x.prod(d), ("near 1",), (*ONE_DIM, "all"))
    yield from _over("nansum", lambda t, x, d: x.nansum(d), ("unit",), FEW, SIZES[1:])
    yield from _over("norm", lambda t, x, d: t.linalg.vector_norm(x, 2, d), ("signed",), EVERY)
    yield from _over("norm 1", lambda t, x, d: t.linalg.vector_norm(x, 1, d), ("signed",), FEW, SIZES[1:])
    yield from _over("norm 3", lambda t, x, d: t.linalg.vector_norm(x, 3, d), ("signed",), FEW, SIZES[1:])
    yield from _over("logsumexp", lambda t, x, d: t.logsumexp(x, (0, 1) if d is None else d), ("signed",), EVERY, SIZES[1:])
    yield from _over("trapezoid", lambda t, x, d: t.trapezoid(x, dim=d), ("unit",), ("columns", "rows"), SIZES[1:])
    yield from _over("einsum", lambda t, x, d: t.einsum("ij->j" if d == 0 else "ij->i", x), ("unit",), ("columns", "rows"), SIZES[1:])
    yield from _over("sum_to_size", lambda t, x, d: x.sum_to_size(1, x.shape[1]), ("unit",), ("columns",))


def _scans() -> Iterator[Case]:
    yield from _over("cumsum", lambda t, x, d: x.cumsum(d), ("unit",), ONE_DIM)
    yield from _over("cumsum", lambda t, x, d: x.cumsum(d), ("unit",), ("columns", "rows"), LARGE)
    yield from _over("cumprod", lambda t, x, d: x.cumprod(d), ("near 1",), ONE_DIM)
    yield from _over("logcumsumexp", lambda t, x, d: x.logcumsumexp(d), ("signed",), ("columns", "rows"))
    yield from _over("cumsum and gradient", lambda t, x, d: x.cumsum(d), ("unit",), ("columns", "rows"), SIZES[1:], True)


def _statistics() -> Iterator[Case]:
    yield from _over("var", lambda t, x, d: x.var(d), ("unit", "offset"), EVERY)
    yield from _over("var", lambda t, x, d: x.var(d), ("offset",), FEW, LARGE)
    yield from _over("std", lambda t, x, d: x.std(d), ("offset",), EVERY)
    yield from _over("var_mean", lambda t, x, d: t.var_mean(x, d), ("offset",), FEW, SIZES[1:])
    yield from _over("std_mean", lambda t, x, d: t.std_mean(x, d), ("offset",), FEW, SIZES[1:])
    yield from _over("var and gradient", lambda t, x, d: x.var(d), ("offset",), ("columns", "rows"), SIZES[1:], True)
    yield _of("cov", lambda t, x: t.cov(x), ("offset", 4, 1_000_000), backward=False)
    yield _of("cov of columns", lambda t, x: t.cov(x.t()), ("offset", 250_000, 4), backward=False)
    yield _of("corrcoef", lambda t, x: t.corrcoef(x), ("offset", 4, 1_000_000), backward=False)


def _layers() -> Iterator[Case]:
    def f(t: Any) -> Any:
        return t.nn.functional

    yield from _over("softmax", lambda t, x, d: t.softmax(x, d), ("signed",), ("columns", "wide columns", "rows"), SIZES, True)
    yield from _over("log_softmax", lambda t, x, d: t.log_softmax(x, d), ("signed",), ("columns", "rows"), SIZES[1:], True)
    yield from _over("normalize", lambda t, x, d: f(t).normalize(x, dim=d), ("signed",), ("columns", "rows"), SIZES[1:], True)
    for shape in ((1_000, 1_000), (20, 100_000), (200_000, 16)):
        def layer(t: Any, x: Any, w: Any, b: Any) -> Any:
            return f(t).layer_norm(x, (x.shape[1],), w, b)

        yield _of("layer_norm", layer, ("offset", *shape), ("signed", shape[1]), ("signed", shape[1]))
        yield _of("rms_norm", lambda t, x, w: f(t).rms_norm(x, (x.shape[1],), w), ("signed", *shape), ("signed", shape[1]))
    for shape in ((500_000, 8), (16, 8, 64, 64), (2, 8, 100_000), (2_000, 300)):
        def batch(t: Any, x: Any, w: Any, b: Any) -> Any:
            return f(t).batch_norm(x, None, None, w, b, True)

        yield _of("batch_norm", batch, ("offset", *shape), ("signed", shape[1]), ("signed", shape[1]))
        yield _of("batch_norm and statistics", _running_statistics, ("offset", *shape), backward=False)
    rows = ("signed", 8), ("signed", 8)
    for shape in ((16, 8, 64, 64), (2, 8, 200_000)):
        yield _of("group_norm", lambda t, x, w, b: f(t).group_norm(x, 2, w, b), ("offset", *shape), *rows)
        yield _of("instance_norm", lambda t, x, w, b: f(t).instance_norm(x, None, None, w, b), ("offset", *shape), *rows)
    yield _of("linear with bias", lambda t, x, w, b: f(t).linear(x, w, b), ("unit", 600_000, 4), ("unit", 3, 4), ("unit", 3))
    yield _of("conv2d with bias", lambda t, x, w, b: f(t).conv2d(x, w, b), ("unit", 16, 3, 100, 100), ("unit", 4, 3, 1, 1), ("unit", 4))
    yield _of("add of a row", lambda t, x, b: x + b, ("unit", 600_000, 4), ("unit", 4))
    yield _of("product with a row", lambda t, x, w: x * w, ("unit", 600_000, 4), ("unit", 4))
    yield _of("product with a column", lambda t, x, w: x * w, ("unit", 4, 600_000), ("unit", 4, 1))
    yield _of("add of a number", lambda t, x, b: x + b, ("unit", 600_000, 4), ("unit", 1))
    yield _of("global average pool", lambda t, x: f(t).adaptive_avg_pool2d(x, 1), ("unit", 4, 3, 500, 500))
    yield _of("prelu", lambda t, x, w: f(t).prelu(x, w), ("signed", 100_000, 4), ("unit", 4))


def _running_statistics(t: Any, x: Any) -> Any:
    mean, var = t.zeros(x.shape[1], dtype=x.dtype), t.ones(x.shape[1], dtype=x.dtype)
    t.nn.functional.batch_norm(x, mean, var, None, None, True, 1.0)
    return mean, var


def _losses() -> Iterator[Case]:
    n = 2_000_000
    numbers, pair = ("unit", n), (("unit", n), ("unit", n))
    for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy",
                 "binary_cross_entropy_with_logits", "poisson_nll_loss", "kl_div"):  # fmt: skip
        yield _of(name, lambda t, x, y, name=name: getattr(t.nn.functional, name)(x, y), *pair)

    def cross_entropy(t: Any, x: Any, y: Any) -> Any:
        return t.nn.functional.cross_entropy(x, y)

    yield _of("soft_margin_loss", lambda t, x, y: t.nn.functional.soft_margin_loss(x, y.detach()), *pair)
    yield _of("gaussian_nll_loss", lambda t, x, y, v: t.nn.functional.gaussian_nll_loss(x, y, v + 1), *pair, numbers)
    yield _of("cross_entropy", cross_entropy, ("signed", 500_000, 4), ("int", 4, 500_000))
    yield _of("cross_entropy of many classes", cross_entropy, ("signed", 100, 20_000), ("int", 20_000, 100))
    yield _of("nll_loss", lambda t, x, y: t.nn.functional.nll_loss(x, y), ("unit", 500_000, 4), ("int", 4, 500_000))
    yield _of("cosine_similarity", lambda t, x, y: t.cosine_similarity(x, y, 0), ("unit", 500_000, 4), ("unit", 500_000, 4))
    yield _of("pairwise_distance", lambda t, x, y: t.pairwise_distance(x, y), ("signed", 4, 500_000), ("signed", 4, 500_000))
    yield _of("dist", lambda t, x, y: t.dist(x, y), ("signed", n), ("signed", n))
    yield _of("cdist", lambda t, x, y: t.cdist(x, y), ("signed", 4, 100_000), ("signed", 5, 100_000))
    yield _of("cdist 1", lambda t, x, y: t.cdist(x, y, p=1.0), ("signed", 4, 100_000), ("signed", 5, 100_000))


def _indexed() -> Iterator[Case]:
    n = 1_000_000
    spread = ("unit", n), ("int", 10, n)

    def zeros(t: Any, x: Any) -> Any:
        return t.zeros(10, dtype=x.dtype)

    yield _of("embedding", lambda t, w, i: t.nn.functional.embedding(i, w), ("unit", 10, 8), ("int", 10, 200_000))
    yield _of("index_select", lambda t, x, i: x.index_select(0, i), ("unit", 10, 8), ("int", 10, 200_000))
    yield _of("x[i]", lambda t, x, i: x[i], ("unit", 10, 8), ("int", 10, 200_000))
    yield _of("gather", lambda t, x, i: x.expand(5, 10).gather(1, i), ("unit", 10), ("int", 10, 5, 200_000))
    yield _of("index_add", lambda t, x, i: zeros(t, x).index_add(0, i, x), *spread)
    yield _of("scatter_add", lambda t, x, i: zeros(t, x).scatter_add(0, i, x), *spread)
    yield _of("scatter_reduce mean", lambda t, x, i: zeros(t, x).scatter_reduce(0, i, x, "mean"), *spread)
    yield _of("index_put accumulate", lambda t, x, i: zeros(t, x).index_put((i,), x, True), *spread)
    yield _of("bincount", lambda t, x, i: t.bincount(i, x), *spread, backward=False)
    yield _of("embedding_bag", lambda t, w, i: t.nn.functional.embedding_bag(i, w, mode="sum"), ("unit", 10, 8), ("int", 10, 4, 100_000))
    yield _of("expand", lambda t, x: x.expand(600_000, 4) * 1.5, ("unit", 4))
    yield _of("repeat", lambda t, x: x.repeat(600_000, 1), ("unit", 4))


def _products() -> Iterator[Case]:
    n = 2_000_000
    yield _of("dot", lambda t, x, y: t.dot(x, y), ("unit", n), ("unit", n))
    yield _of("mv", lambda t, x, y: t.mv(x, y), ("unit", 4, n), ("unit", n))
    yield _of("vector @ matrix", lambda t, x, y: x @ y, ("unit", n), ("unit", n, 4))
    yield _of("mm", lambda t, x, y: x @ y, ("unit", 4, n), ("unit", n, 3))
    three = ("unit", n // 4, 3), ("unit", n // 4, 3), ("unit", n // 4)
    yield _of("einsum of three", lambda t, x, y, z: t.einsum("ni,nj,n->ij", x, y, z), *three)


# ---- measuring ----


def measure(torch: Any, mode: str) -> dict[str, float]:
    """The error of each case."""
    return {case.key: error(torch, case, mode) for case in cases()}


def error(torch: Any, case: Case, mode: str) -> float:
    """The largest relative error of the results of one case, infinite if they have another shape or are not finite."""
    inputs = case.make()
    fn = torch.compile(case.fn) if mode == "compiled" else case.fn
    found = _results(torch, case, fn, inputs)
    exact = _results(torch, case, case.fn, [a.astype(np.float64) if a.dtype == np.float32 else a for a in inputs])
    worst = 0.0
    for y, x in zip(found, exact, strict=True):
        top = np.abs(x).max()
        off = float(np.abs(y - x).max() / top) if y.shape == x.shape and top else float(np.abs(y).max())
        worst = max(worst, off) if off == off else float("inf")
    return worst


def _results(torch: Any, case: Case, fn: Function, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The results of `fn`, and its inputs' gradients for cotangents that do not cancel, as float64."""
    given = [torch.from_numpy(a) for a in inputs]
    if case.backward:
        given = [t.requires_grad_() if t.dtype.is_floating_point else t for t in given]
    made = fn(torch, *given)
    results = list(made) if isinstance(made, tuple | list) else [made]
    if case.backward:
        results[0].backward(torch.from_numpy(_random("unit", *results[0].shape).astype(results[0].detach().numpy().dtype)))
        results += [t.grad for t in given if t.requires_grad and t.grad is not None]
    return [r.detach().numpy().astype(np.float64) for r in results]
