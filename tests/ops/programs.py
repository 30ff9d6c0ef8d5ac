"""Random programs as data: steps that run on eager tensors, on numpy arrays, or as one compiled function.

A program starts from double arrays and grows a pool of values: each step reads values of the pool by number and appends a
value. Every step has an eager and a numpy form, so that a test can compare them. No step has side effects, so that the
program can be differentiated and compiled.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

import eager

_LIMIT = 3.0


@dataclass(frozen=True)
class Step:
    """A line of a program: its text, its value for a pool of tensors, and its value for a pool of arrays."""

    text: str
    tensors: Callable[[list[Any]], Any]
    arrays: Callable[[list[Any]], Any]


@dataclass
class Program:
    """Input arrays and the steps on them."""

    inputs: list[Any]
    steps: list[Step] = field(default_factory=list)

    def on_tensors(self, inputs: list[Any]) -> list[Any]:
        pool = list(inputs)
        for step in self.steps:
            pool.append(step.tensors(pool))
        return pool

    def on_arrays(self) -> list[Any]:
        pool = [a.copy() for a in self.inputs]
        with np.errstate(all="ignore"):
            for step in self.steps:
                pool.append(np.asarray(step.arrays(pool), np.float64))
        return pool

    def __str__(self) -> str:
        lines = [f"{i}: input {a.shape}" for i, a in enumerate(self.inputs)]
        return "\n".join(lines + [f"{i}: {s.text}" for i, s in enumerate(self.steps, len(self.inputs))])


def _clip(a: Any) -> Any:
    return np.clip(np.nan_to_num(a), -_LIMIT, _LIMIT)


def _clipped(t: Any) -> Any:
    return t.nan_to_num().clamp(-_LIMIT, _LIMIT)


def _softmax(a: Any, dim: int) -> Any:
    e = np.exp(a - a.max(dim, keepdims=True))
    return e / e.sum(dim, keepdims=True)


_UNARY: dict[str, Any] = {
    "sin": np.sin, "tanh": np.tanh, "exp": np.exp, "square": np.square, "neg": np.negative, "abs": np.abs,
    "log1p": lambda a: np.log1p(np.abs(a)),
    "sqrt": lambda a: np.sqrt(np.abs(a)), "sigmoid": lambda a: 1 / (1 + np.exp(-a)), "relu": lambda a: np.maximum(a, 0), "atan": np.arctan,
    "expm1": np.expm1, "sinc": np.sinc, "reciprocal": lambda a: 1 / (np.abs(a) + 0.5), "cosh": np.cosh, "deg2rad": np.deg2rad,
    "logit": lambda a: np.log((np.tanh(a) / 4 + 0.5) / (0.5 - np.tanh(a) / 4)),
}  # fmt: skip
_DOMAIN: dict[str, Any] = {"log1p": lambda t: t.abs(), "sqrt": lambda t: t.abs(), "reciprocal": lambda t: t.abs() + 0.5,
                           "logit": lambda t: t.tanh() / 4 + 0.5}  # fmt: skip
_BINARY: dict[str, Any] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "maximum": np.maximum, "minimum": np.minimum, "atan2": np.arctan2,
    "hypot": np.hypot, "logaddexp": np.logaddexp, "fmax": np.fmax, "copysign": np.copysign,
}  # fmt: skip
_REDUCTIONS: dict[str, Any] = {
    "sum": np.sum, "mean": np.mean, "amax": np.max, "amin": np.min, "prod": np.prod, "std": lambda a, axis, keepdims: np.std(
        a, axis=axis, keepdims=keepdims, ddof=0),
    "logsumexp": lambda a, axis, keepdims: np.log(np.sum(np.exp(a), axis=axis, keepdims=keepdims)),
    "norm": lambda a, axis, keepdims: np.sqrt(np.sum(a * a, axis=axis, keepdims=keepdims)),
}  # fmt: skip
_SCANS: dict[str, Any] = {"cumsum": np.cumsum, "cumprod": np.cumprod, "logcumsumexp": np.logaddexp.accumulate}


class Grower:
    """Draws steps that fit the shapes reached so far."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        shapes = [tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))) for _ in range(2)]
        seeds = [draw(st.integers(0, 2**16)) for _ in shapes]
        self.program = Program([np.random.default_rng(s).uniform(-2, 2, shape) for s, shape in zip(seeds, shapes, strict=True)])
        self.shapes: list[tuple[int, ...]] = list(shapes)

    def pick(self, choices: Any) -> Any:
        return self.draw(st.sampled_from(sorted(choices)))

    def value(self, min_ndim: int = 0) -> int | None:
        """The number of a value with at least so many dims, or None."""
        fit = [i for i, s in enumerate(self.shapes) if len(s) >= min_ndim]
        return self.draw(st.sampled_from(fit)) if fit else None

    def dim(self, i: int) -> int:
        return self.draw(st.integers(0, len(self.shapes[i]) - 1))

    def add(self, text: str, tensors: Any, arrays: Any) -> None:
        step = Step(text, tensors, arrays)
        self.program.steps.append(step)
        self.shapes.append(self.program.on_arrays()[-1].shape)

    def unary(self) -> None:
        i, name = self.value(), self.pick(_UNARY)
        domain, fn = _DOMAIN.get(name, lambda t: t), _UNARY[name]
        self.add(f"{name}({i})", lambda p: _clipped(getattr(domain(p[i]), name)()), lambda p: _clip(fn(p[i])))

    def binary(self) -> None:
        i, j, name = self.value(), self.value(), self.pick(_BINARY)
        try:
            np.broadcast_shapes(self.shapes[i], self.shapes[j])  # type: ignore[index]
        except ValueError:
            return
        fn = _BINARY[name]
        self.add(f"{name}({i}, {j})", lambda p: _clipped(getattr(eager, name)(p[i], p[j])), lambda p: _clip(fn(p[i], p[j])))

    def reduction(self) -> None:
        i = self.value(1)
        if i is None:
            return
        name, dim, keep = self.pick(_REDUCTIONS), self.dim(i), self.draw(st.booleans())
        options = {"correction": 0} if name == "std" else {}
        fn = _REDUCTIONS[name]
        self.add(f"{name}({i}, dim={dim}, keepdim={keep})",
                 lambda p: _clipped(getattr(p[i] + (1e-3 if name in ("std", "norm") else 0), name)(dim=dim, keepdim=keep, **options)),
                 lambda p: _clip(fn(p[i] + (1e-3 if name in ("std", "norm") else 0), axis=dim, keepdims=keep)))  # fmt: skip

    def scan(self) -> None:
        i = self.value(1)
        if i is None:
            return
        name, dim = self.pick(_SCANS), self.dim(i)
        fn = _SCANS[name]
        self.add(f"{name}({i}, {dim})", lambda p: _clipped(getattr(p[i], name)(dim)), lambda p: _clip(fn(p[i], axis=dim)))

    def rows(self) -> None:
        """Ops along one dim that keep the shape."""
        i = self.value(1)
        if i is None:
            return
        dim = self.dim(i)
        name, tensors, arrays = self.draw(st.sampled_from([
            ("softmax", lambda t: t.softmax(dim), lambda a: _softmax(a, dim)),
            ("log_softmax", lambda t: _clipped(t.log_softmax(dim)), lambda a: _clip(np.log(_softmax(a, dim)))),
            ("sort", lambda t: t.sort(dim)[0], lambda a: np.sort(a, dim)),
            ("flip", lambda t: t.flip(dim), lambda a: np.flip(a, dim)),
            ("roll", lambda t: t.roll(2, dim), lambda a: np.roll(a, 2, dim)),
            ("cummax", lambda t: t.cummax(dim)[0], lambda a: np.maximum.accumulate(a, dim)),
            ("rfft-irfft", lambda t: eager.fft.irfft(eager.fft.rfft(t, dim=dim) * 1.5, n=t.shape[dim], dim=dim), lambda a: a * 1.5),
            ("fft", lambda t: _clipped(eager.fft.fft(t, dim=dim).real), lambda a: _clip(np.fft.fft(a, axis=dim).real)),
        ]))  # fmt: skip
        self.add(f"{name}({i}, {dim})", lambda p: tensors(p[i]), lambda p: arrays(p[i]))

    def layout(self) -> None:
        i = self.value()
        assert i is not None
        order = tuple(self.draw(st.permutations(range(len(self.shapes[i])))))
        self.add(f"permute({i}, {order})", lambda p: p[i].permute(order), lambda p: p[i].transpose(order))

    def reshape(self) -> None:
        i = self.value()
        assert i is not None
        shape = self.draw(st.sampled_from([(-1,), (1, -1), self.shapes[i][::-1]]))
        self.add(f"reshape({i}, {shape})", lambda p: p[i].reshape(shape), lambda p: p[i].reshape(shape))

    def slice(self) -> None:
        i = self.value(1)
        if i is None:
            return
        n = self.shapes[i][0]
        start, step = self.draw(st.integers(0, n - 1)), self.draw(st.integers(1, 2))
        self.add(f"{i}[{start}::{step}]", lambda p: p[i][start::step], lambda p: p[i][start::step])

    def gather(self) -> None:
        i = self.value(1)
        if i is None:
            return
        dim = self.dim(i)
        at = self.draw(st.lists(st.integers(0, self.shapes[i][dim] - 1), min_size=1, max_size=4))
        self.add(f"index_select({i}, {dim}, {at})", lambda p: p[i].index_select(dim, eager.tensor(at)), lambda p: np.take(p[i], at, dim))

    def scatter(self) -> None:
        """Rows added into other rows: positions may repeat."""
        i = self.value(1)
        if i is None:
            return
        n = self.shapes[i][0]
        at = self.draw(st.lists(st.integers(0, n - 1), min_size=n, max_size=n))

        def arrays(p: list[Any]) -> Any:
            result = p[i].copy()
            np.add.at(result, at, p[i])
            return _clip(result)

        self.add(f"index_add({i}, 0, {at}, {i})", lambda p: _clipped(p[i].index_add(0, eager.tensor(at), p[i])), arrays)

    def select(self) -> None:
        i, j = self.value(), self.value()
        try:
            np.broadcast_shapes(self.shapes[i], self.shapes[j])  # type: ignore[index]
        except ValueError:
            return
        self.add(f"where({i} > {j}, {i}, 2 * {j})", lambda p: _clipped(eager.where(p[i] > p[j], p[i], p[j] * 2)),
                 lambda p: _clip(np.where(p[i] > p[j], p[i], p[j] * 2)))  # fmt: skip

    def matmul(self) -> None:
        i = self.value(2)
        if i is not None:
            self.add(f"{i} @ {i}.mT", lambda p: _clipped(p[i] @ p[i].mT), lambda p: _clip(p[i] @ np.swapaxes(p[i], -1, -2)))

    def join(self) -> None:
        i = self.value(1)
        if i is not None:
            dim = self.dim(i)
            self.add(f"cat([{i}, {i} * 2], {dim})", lambda p: eager.cat([p[i], p[i] * 2], dim).clamp(-_LIMIT, _LIMIT),
                     lambda p: np.concatenate([p[i], p[i] * 2], dim).clip(-_LIMIT, _LIMIT))  # fmt: skip

    def triangle(self) -> None:
        i = self.value(2)
        if i is not None:
            self.add(f"tril({i})", lambda p: p[i].tril(), lambda p: np.tril(p[i]))

    STEPS = (unary, unary, binary, binary, reduction, scan, rows, layout, reshape, slice, gather, scatter, select, matmul, join, triangle)


def grow(draw: Any, most: int) -> Program:
    """A program of up to `most` steps."""
    grower = Grower(draw)
    for step in draw(st.lists(st.sampled_from(Grower.STEPS), min_size=3, max_size=most)):
        if np.prod(grower.shapes[-1]) > 400:
            break
        step(grower)
    return grower.program
