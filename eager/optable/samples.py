"""`make`: the deterministic tensors that ops' sample inputs are made of.

Every call draws from one stream, seeded per op, so that a sample is the same in each run and
in each process, independent of earlier calls.
"""
from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from eager.base import dtypes
from eager.base.dtypes import dtype
from eager.optable.memory import from_array
from eager.optable.table import OPS, Op

Size = int  # `int` and `bool` name methods below
Flag = bool


class Make:
    """A maker of random tensors. `make(3, 4)` is a (3, 4) float32 in [-1, 1)."""

    def __init__(self, seed: int = 0, dtype: dtype = dtypes.float32) -> None:
        self._random = np.random.default_rng(seed)
        self._float = dtype

    def __call__(self, *shape: Size, dtype: dtype | None = None, low: float = -1.0, high: float = 1.0,
                 requires_grad: Flag = False) -> Any:  # fmt: skip
        """A tensor of `shape` with values in [low, high): floating, or complex in both parts."""
        d = dtype or self._float
        values = self._random.uniform(low, high, shape)
        if d.is_complex:
            values = values + 1j * self._random.uniform(low, high, shape)
        t = from_array(np.asarray(values).astype(d.numpy))
        if requires_grad:
            t._requires_grad = True
        return t

    def int(self, *shape: Size, high: Size, low: Size = 0, dtype: dtype = dtypes.int64) -> Any:
        """Integers in [low, high)."""
        return from_array(np.asarray(self._random.integers(low, high, shape)).astype(dtype.numpy))

    def bool(self, *shape: Size) -> Any:
        """Fair coin flips."""
        return from_array(np.asarray(self._random.random(shape) < 0.5))

    def distinct(self, *shape: Size, high: Size, dim: Size = 0) -> Any:
        """Positions in [0, high), none twice along `dim`."""
        draws = self._random.permuted(np.broadcast_to(np.arange(high), (*shape[:dim], *shape[dim + 1 :], high)).copy(), axis=-1)
        return from_array(np.ascontiguousarray(np.moveaxis(draws[..., : shape[dim]], -1, dim)))

    def symmetric(self, *shape: Size, definite: Flag = False) -> Any:
        """Symmetric matrices (*, n, n) with eigenvalues well apart; positive ones if `definite`."""
        n = shape[-1]
        q, _ = np.linalg.qr(self._random.standard_normal(shape))
        values = np.arange(1.0, n + 1) if definite else np.arange(n) * 1.5 - 1.0
        return from_array(((q * values) @ np.swapaxes(q, -1, -2)).astype(self._float.numpy))

    def invertible(self, *shape: Size) -> Any:
        """Well-conditioned matrices (*, n, n)."""
        a = self._random.uniform(-1, 1, shape) + 2.0 * np.eye(shape[-1])
        return from_array(a.astype(self._float.numpy))

    def state(self) -> Any:
        """A state of the counter-based generator: (seed, offset)."""
        return from_array(np.array([int(self._random.integers(1 << 40)), 16], np.int64))

    @staticmethod
    def dtype(name: str) -> dtype:
        """The dtype called `name`."""
        return dtypes.by_name(name)


def samples_of(op: Op | str, dtype: dtype = dtypes.float32) -> Iterator[tuple[Any, ...]]:
    """Full argument tuples of an op, with floating tensors in `dtype`. Raises ValueError for an op without samples."""
    op = OPS[op] if isinstance(op, str) else op
    if op.samples is None:
        raise ValueError(f"samples_of: op {op.name} has no samples; give `samples=` in its declaration")
    # one stream per op; an in-place form sees the inputs of its base
    name = op.base.name if op.base is not None else op.name
    for args in op.samples(Make(zlib.crc32(name.encode()), dtype)):
        yield op.schema.bind(args, {})
