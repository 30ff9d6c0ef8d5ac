"""Calls of numpy's functions and methods on arrays, several for each row of `dynamo.builtins.numpy.table`.

a, b: (3, 4); t: a transposed, not contiguous; v: (4,); i: indices below 3. Each call returns an array, a scalar or
several of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Sample = Callable[..., Any]

METHODS_TOO: dict[str, list[Sample]] = {
    name: [
        lambda a, b, t, v, i, name=name: getattr(np, name)(a),
        lambda a, b, t, v, i, name=name: getattr(np, name)(t, axis=0),
        lambda a, b, t, v, i, name=name: getattr(a, name)(1),
        lambda a, b, t, v, i, name=name: getattr(t, name)(axis=-1),
        lambda a, b, t, v, i, name=name: getattr(v, name)(),
    ]
    for name in "sum prod mean max min any all var std argmax argmin cumsum cumprod".split()
}
KEEPING: dict[str, list[Sample]] = {
    name: [
        lambda a, b, t, v, i, name=name: getattr(np, name)(t, 0, keepdims=True),
        lambda a, b, t, v, i, name=name: getattr(np, name)(a, axis=(0, 1)),
        lambda a, b, t, v, i, name=name: getattr(np, name)(a[None], axis=(0, -1), keepdims=True),
    ]
    for name in "sum prod mean max min any all var std amax amin ptp".split()
}
SHAPES: dict[str, list[Sample]] = {
    "ravel": [lambda a, b, t, v, i: a.ravel(), lambda a, b, t, v, i: np.ravel(t)],
    "flatten": [lambda a, b, t, v, i: (a.flatten(), t.flatten())],
    "squeeze": [lambda a, b, t, v, i: a[None].squeeze(), lambda a, b, t, v, i: np.squeeze(a[:, None], axis=1)],
    "swapaxes": [lambda a, b, t, v, i: a.swapaxes(0, 1), lambda a, b, t, v, i: np.swapaxes(a[None], 0, -1)],
    "repeat": [lambda a, b, t, v, i: a.repeat(2), lambda a, b, t, v, i: np.repeat(t, 3, axis=1)],
    "take": [lambda a, b, t, v, i: a.take(i, axis=0), lambda a, b, t, v, i: np.take(a, i), lambda a, b, t, v, i: np.take(t, [0, 1], 1)],
    "diagonal": [lambda a, b, t, v, i: np.diagonal(a, 1), lambda a, b, t, v, i: a.diagonal()],
    "copy": [lambda a, b, t, v, i: a.copy(), lambda a, b, t, v, i: np.copy(t), lambda a, b, t, v, i: t.copy()],
    "reshape": [lambda a, b, t, v, i: a.reshape(4, 3), lambda a, b, t, v, i: np.reshape(t, (2, -1)), lambda a, b, t, v, i: a.reshape(-1)],
    "transpose": [lambda a, b, t, v, i: a.transpose(), lambda a, b, t, v, i: np.transpose(a[None], (2, 0, 1)),
                  lambda a, b, t, v, i: a.transpose(1, 0)],
    "moveaxis": [lambda a, b, t, v, i: np.moveaxis(a[None], 0, -1)],
    "expand_dims": [lambda a, b, t, v, i: np.expand_dims(a, 1), lambda a, b, t, v, i: np.expand_dims(a, (0, -1))],
    "concatenate": [lambda a, b, t, v, i: np.concatenate([a, b]), lambda a, b, t, v, i: np.concatenate((a, t.T), axis=1),
                    lambda a, b, t, v, i: np.concatenate((a, i[None, :1].T * 0 + np.ones((1, 4))), axis=0)],
    "stack": [lambda a, b, t, v, i: np.stack([a, b]), lambda a, b, t, v, i: np.stack((a, b), axis=-1)],
    "vstack": [lambda a, b, t, v, i: np.vstack((a, v)), lambda a, b, t, v, i: np.vstack([v, v])],
    "hstack": [lambda a, b, t, v, i: np.hstack((a, b)), lambda a, b, t, v, i: np.hstack([v, v])],
    "dstack": [lambda a, b, t, v, i: np.dstack((a, b))],
    "column_stack": [lambda a, b, t, v, i: np.column_stack((v, v))],
    "split": [lambda a, b, t, v, i: np.split(a, 2, axis=1), lambda a, b, t, v, i: np.split(v, [1, 3])],
    "array_split": [lambda a, b, t, v, i: np.array_split(v, 3)],
    "atleast_1d": [lambda a, b, t, v, i: np.atleast_1d(v)],
    "atleast_2d": [lambda a, b, t, v, i: np.atleast_2d(v)],
    "atleast_3d": [lambda a, b, t, v, i: np.atleast_3d(a)],
    "tile": [lambda a, b, t, v, i: np.tile(v, 2), lambda a, b, t, v, i: np.tile(a, (2, 1))],
    "roll": [lambda a, b, t, v, i: np.roll(a, 1), lambda a, b, t, v, i: np.roll(t, 2, axis=0)],
    "broadcast_to": [lambda a, b, t, v, i: np.broadcast_to(v, (3, 4)), lambda a, b, t, v, i: np.broadcast_to(v, (3, 4)) + 1],
    "tril": [lambda a, b, t, v, i: np.tril(a)],
    "triu": [lambda a, b, t, v, i: np.triu(t, 1)],
    "diag": [lambda a, b, t, v, i: np.diag(v), lambda a, b, t, v, i: np.diag(a, 1)],
    "pad": [lambda a, b, t, v, i: np.pad(a, 1), lambda a, b, t, v, i: np.pad(a, ((0, 1), (2, 0))),
            lambda a, b, t, v, i: np.pad(v, (1, 2), mode="constant", constant_values=1)],
    "T": [lambda a, b, t, v, i: (a.T, t.T, v.T, a[None].T, a.mT, a.real)],
}  # fmt: skip
NUMBERS: dict[str, list[Sample]] = {
    "round": [lambda a, b, t, v, i: a.round(), lambda a, b, t, v, i: np.round(t, 1)],
    "dot": [lambda a, b, t, v, i: a.dot(t), lambda a, b, t, v, i: np.dot(v, v), lambda a, b, t, v, i: np.dot(a, v)],
    "matmul": [lambda a, b, t, v, i: a @ t, lambda a, b, t, v, i: v @ v, lambda a, b, t, v, i: np.matmul(a[None], t)],
    "argsort": [lambda a, b, t, v, i: np.argsort(a, kind="stable"), lambda a, b, t, v, i: a.argsort(0, kind="stable")],
    "sort": [lambda a, b, t, v, i: np.sort(a), lambda a, b, t, v, i: np.sort(t, axis=0), lambda a, b, t, v, i: np.sort(a, axis=None)],
    "median": [lambda a, b, t, v, i: np.median(a), lambda a, b, t, v, i: np.median(a, axis=0), lambda a, b, t, v, i: np.median(t, 0)],
    "linalg.norm": [lambda a, b, t, v, i: np.linalg.norm(a), lambda a, b, t, v, i: np.linalg.norm(a, axis=1, keepdims=True),
                    lambda a, b, t, v, i: np.linalg.norm(v, 1), lambda a, b, t, v, i: np.linalg.norm(t, np.inf, axis=0)],
    "amax": [lambda a, b, t, v, i: np.amax(a, 1)],
    "amin": [lambda a, b, t, v, i: np.amin(a, 1)],
    "ptp": [lambda a, b, t, v, i: np.ptp(a, 1), lambda a, b, t, v, i: np.ptp(t)],
    "diff": [lambda a, b, t, v, i: np.diff(a), lambda a, b, t, v, i: np.diff(t, n=2, axis=0)],
    "where": [lambda a, b, t, v, i: np.where(a > b, a, b), lambda a, b, t, v, i: np.where(a, t.T, 0),
              lambda a, b, t, v, i: np.where(t > 1, 1.5, t)],
    "clip": [lambda a, b, t, v, i: np.clip(a, 1, 2), lambda a, b, t, v, i: a.clip(0, 1.5), lambda a, b, t, v, i: t.clip(max=1),
             lambda a, b, t, v, i: np.clip(a, b, None)],
    "outer": [lambda a, b, t, v, i: np.outer(v, v), lambda a, b, t, v, i: np.outer(a, v)],
    "inner": [lambda a, b, t, v, i: np.inner(v, v)],
    "einsum": [lambda a, b, t, v, i: np.einsum("ij,kj->ik", a, b), lambda a, b, t, v, i: np.einsum("ij->ji", a),
               lambda a, b, t, v, i: np.einsum("i,i", v, v)],
    "tensordot": [lambda a, b, t, v, i: np.tensordot(a, t, 1), lambda a, b, t, v, i: np.tensordot(a, b, axes=([0, 1], [0, 1]))],
    "meshgrid": [lambda a, b, t, v, i: np.meshgrid(v, v[:3]), lambda a, b, t, v, i: np.meshgrid(v, v[:2], indexing="ij")],
    "conj": [lambda a, b, t, v, i: a.conj()],
}  # fmt: skip
MAKING: dict[str, list[Sample]] = {
    "zeros_like": [lambda a, b, t, v, i: np.zeros_like(a), lambda a, b, t, v, i: np.zeros_like(t, dtype=np.float64)],
    "ones_like": [lambda a, b, t, v, i: np.ones_like(t)],
    "full_like": [lambda a, b, t, v, i: np.full_like(a, 1), lambda a, b, t, v, i: np.full_like(t, 2.5, dtype=float)],
    "empty_like": [lambda a, b, t, v, i: [(e.fill(1), e)[1] for e in (np.empty_like(t),)]],
    "array": [lambda a, b, t, v, i: np.array(a), lambda a, b, t, v, i: np.array(t, dtype=np.float32),
              lambda a, b, t, v, i: np.array([v.sum(), 1, 2.5]), lambda a, b, t, v, i: np.array([[v.max(), v.min()], [0, 1]])],
    "asarray": [lambda a, b, t, v, i: np.asarray(a) + 1, lambda a, b, t, v, i: np.asarray(t, dtype=np.float64)],
    "asanyarray": [lambda a, b, t, v, i: np.asanyarray(a) is a],
    "ascontiguousarray": [lambda a, b, t, v, i: np.ascontiguousarray(t), lambda a, b, t, v, i: np.ascontiguousarray(a) is a],
    "asfortranarray": [lambda a, b, t, v, i: np.asfortranarray(a)],
    "astype": [lambda a, b, t, v, i: a.astype(np.int32), lambda a, b, t, v, i: t.astype(float), lambda a, b, t, v, i: a.astype(bool),
               lambda a, b, t, v, i: a.astype("float32", copy=False), lambda a, b, t, v, i: t.astype(np.float64, order="C")],
}  # fmt: skip
ITEMS: dict[str, list[Sample]] = {
    "__getitem__": [
        lambda a, b, t, v, i: (a[0], a[-1, 2], a[1:, ::2], t[:, 1], a[..., 0], a[None, 1], v[3]),
        lambda a, b, t, v, i: (a[i], t[[0, 2]], a[:, [1, 1]], a[i, i], v[i]),
        lambda a, b, t, v, i: [row.sum() for row in a],
        lambda a, b, t, v, i: v[np.argmax(v)],
        lambda a, b, t, v, i: (len(a), a.shape, a.ndim, a.size, a.dtype, a.itemsize, a.nbytes, t.strides),
    ],
    "__setitem__": [
        lambda a, b, t, v, i: (a.__setitem__((0, slice(1, 3)), 1), a)[1],
        lambda a, b, t, v, i: (a.__setitem__(slice(1, None), b[:-1]), a)[1],
        lambda a, b, t, v, i: (a.__setitem__(a > b, 0), a)[1],
        lambda a, b, t, v, i: (t.__setitem__((slice(None), 0), v), a)[1],
        lambda a, b, t, v, i: (v.__setitem__(slice(1, None), v[:-1]), v)[1],
        lambda a, b, t, v, i: (a.__setitem__([2, 0], 2), a.__setitem__((0, 0), v[1]), a)[2],
    ],
    "fill": [lambda a, b, t, v, i: (a.fill(1), a)[1], lambda a, b, t, v, i: (t.fill(v[1]), a)[1]],
}
TABLE: dict[str, list[Sample]] = {}
for _part in (METHODS_TOO, KEEPING, SHAPES, NUMBERS, MAKING, ITEMS):
    for _name, _samples in _part.items():
        TABLE.setdefault(_name, []).extend(_samples)

DTYPES = ("float32", "float64", "int64", "int32", "uint8", "bool", "float16", "complex64")
# numbers that a ufunc takes together with an array
NUMBERS_BESIDE = (2, 0.5, True, np.float32(1.5), np.float64(2.5), np.int8(3))


def arrays(dtype: str, seed: int = 0) -> tuple[np.ndarray, ...]:
    """a, b, t, v, i of one dtype."""
    rng = np.random.default_rng(seed)
    numbers = [rng.integers(0, 4, shape).astype(float) for shape in ((3, 4), (3, 4), (4,))]
    if dtype.startswith(("float", "complex")):
        numbers = [n + rng.random(n.shape) for n in numbers]
    a, b, v = (n.astype(dtype) for n in numbers)
    return a, b, a.copy().T, v, np.array([2, 0, 1, 1])
