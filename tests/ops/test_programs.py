"""Random programs of several ops against numpy: values, dtypes, views and writes through them."""
from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import eager

_UNARY = {
    "neg": np.negative, "abs": np.abs, "sin": np.sin, "tanh": np.tanh, "square": np.square, "floor": np.floor, "sign": np.sign,
    "relu": lambda a: np.maximum(a, 0), "sigmoid": lambda a: 1 / (1 + np.exp(-a)), "exp": lambda a: np.exp(a),
}  # fmt: skip
_BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "maximum": np.maximum, "minimum": np.minimum,
    "atan2": np.arctan2, "lt": np.less, "eq": np.equal,
}  # fmt: skip
_REDUCE = {"sum": np.sum, "mean": np.mean, "amax": np.max, "amin": np.min}
_CLIP = 3.0  # values stay small, so that no chain overflows


class Program:
    """A pool of pairs (tensor, array) that steps draw from and add to; both sides see every step."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.trace: list[str] = []
        self.pool: list[tuple[Any, Any]] = []
        for _ in range(2):
            self.start()

    def pick(self, choices: Any) -> Any:
        return self.draw(st.sampled_from(choices))

    def start(self) -> None:
        shape = tuple(self.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
        seed = self.draw(st.integers(0, 2**16))
        a = np.random.default_rng(seed).uniform(-2, 2, shape).astype(self.pick([np.float32, np.float64]))
        self.keep(f"start {shape} {a.dtype} seed {seed}", eager.tensor(a), a.copy())

    def keep(self, what: str, t: Any, a: Any) -> None:
        self.trace.append(f"{len(self.pool)}: {what}")
        self.pool.append((t, np.asarray(a)))

    def any(self) -> tuple[int, Any, Any]:
        i = self.draw(st.integers(0, len(self.pool) - 1))
        return i, *self.pool[i]

    def unary(self) -> None:
        i, t, a = self.any()
        name = self.pick(sorted(_UNARY))
        self.keep(f"{name}({i})", getattr(t, name)().clamp(-_CLIP, _CLIP), np.clip(_UNARY[name](a), -_CLIP, _CLIP))

    def binary(self) -> None:
        i, t, a = self.any()
        j, u, b = self.any()
        try:
            np.broadcast_shapes(a.shape, b.shape)
        except ValueError:
            return
        if a.ndim == 0 or b.ndim == 0:
            return  # 0-d tensors promote differently in torch; test_promotion_agrees_with_torch covers them
        name = self.pick(sorted(_BINARY))
        t, a = getattr(t, name)(u), _BINARY[name](a, b)
        if a.dtype == bool:
            t, a = t.float(), a.astype(np.float32)
        self.keep(f"{name}({i}, {j})", t.clamp(-_CLIP, _CLIP), np.clip(a, -_CLIP, _CLIP))

    def reduce(self) -> None:
        i, t, a = self.any()
        if a.ndim == 0:
            return
        name, dim, keep = self.pick(sorted(_REDUCE)), self.draw(st.integers(0, a.ndim - 1)), self.draw(st.booleans())
        self.keep(f"{name}({i}, {dim}, {keep})", getattr(t, name)(dim, keepdim=keep), _REDUCE[name](a, axis=dim, keepdims=keep))

    def transpose(self) -> None:
        i, t, a = self.any()
        order = self.draw(st.permutations(range(a.ndim)))
        self.keep(f"permute({i}, {order})", t.permute(*order) if order else t.view(()), a.transpose(order))

    def reshape(self) -> None:
        i, t, a = self.any()
        shape = self.pick([(-1,), (1, -1), (-1, 1), a.shape[::-1]])
        self.keep(f"clone().reshape({i}, {shape})", t.clone().reshape(shape), a.copy().reshape(shape))

    def index(self) -> None:
        i, t, a = self.any()
        key = tuple(self._item(n) for n in a.shape[: self.draw(st.integers(0, a.ndim))])
        if self.draw(st.booleans()):
            key = (*key, Ellipsis, None)
        view = key if Ellipsis in key else (*key, Ellipsis)  # numpy returns a view of a single element only with an ellipsis
        self.keep(f"{i}[{key}]", t[key], a[view])

    def _item(self, n: int) -> Any:
        kind = self.pick(["int", "slice", "all"])
        if kind == "int":
            return self.draw(st.integers(-n, n - 1))
        if kind == "all":
            return slice(None)
        return slice(self.draw(st.integers(-n, n)), None, self.draw(st.integers(1, 2)))

    def gather(self) -> None:
        i, t, a = self.any()
        if a.ndim == 0 or a.shape[0] == 0:
            return
        at = self.draw(st.lists(st.integers(-a.shape[0], a.shape[0] - 1), min_size=1, max_size=4))
        self.keep(f"{i}[tensor({at})]", t[eager.tensor(at)], a[np.array(at)])

    def select_by_mask(self) -> None:
        i, t, a = self.any()
        self.keep(f"{i}[{i} > 0]", t[t > 0], a[a > 0])

    def write(self) -> None:
        """Write through a view. Every tensor and every array that shares the memory must contain the new value."""
        i, t, a = self.any()
        if a.ndim == 0 or a.size == 0:
            return
        key = tuple(self._item(n) for n in a.shape[: self.draw(st.integers(1, a.ndim))])
        value = self.draw(st.integers(-3, 3))
        t[key] = float(value)
        a[key] = value
        self.trace.append(f"   {i}[{key}] = {value}")

    def add_in_place(self) -> None:
        i, t, a = self.any()
        t.add_(0.5).clamp_(-_CLIP, _CLIP)
        np.clip(a + 0.5, -_CLIP, _CLIP, out=a)
        self.trace.append(f"   {i} += 0.5, clipped")

    def scan(self) -> None:
        i, t, a = self.any()
        if a.ndim == 0:
            return
        dim = self.draw(st.integers(0, a.ndim - 1))
        self.keep(f"cumsum({i}, {dim})", t.cumsum(dim).clamp(-_CLIP, _CLIP), np.clip(np.cumsum(a, dim), -_CLIP, _CLIP))

    def sort(self) -> None:
        i, t, a = self.any()
        if a.ndim == 0:
            return
        dim = self.draw(st.integers(0, a.ndim - 1))
        self.keep(f"sort({i}, {dim})", t.sort(dim).values, np.sort(a, dim))

    def join(self) -> None:
        i, t, a = self.any()
        if a.ndim == 0:
            return
        dim = self.draw(st.integers(0, a.ndim - 1))
        self.keep(f"cat([{i}, flip({i})], {dim})", eager.cat([t, t.flip(dim)], dim), np.concatenate([a, np.flip(a, dim)], dim))

    def matmul(self) -> None:
        i, t, a = self.any()
        if a.ndim < 2 or a.size == 0:
            return
        self.keep(f"{i} @ {i}.mT / n", t @ t.mT / a.shape[-1], a @ np.swapaxes(a, -1, -2) / a.shape[-1])

    STEPS = (unary, binary, reduce, transpose, reshape, index, gather, select_by_mask, write, add_in_place, scan, sort, join, matmul)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], derandomize=True)
@given(st.data())
def test_random_programs_agree_with_numpy(data: Any) -> None:
    program = Program(data.draw)
    for step in data.draw(st.lists(st.sampled_from(Program.STEPS), min_size=4, max_size=12)):
        with np.errstate(all="ignore"):
            step(program)
    for i, (t, a) in enumerate(program.pool):
        a = np.asarray(a)
        assert t.dtype.name == a.dtype.name, f"{i}: {t.dtype} against {a.dtype}\n" + "\n".join(program.trace)
        np.testing.assert_allclose(t.numpy(), a, rtol=3e-4, atol=3e-4, err_msg=f"{i} of\n" + "\n".join(program.trace))
