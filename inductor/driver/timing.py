"""The time of compiled code on this machine's CPU, on generated inputs.

Owns the method of measurement, the inputs, and the rule by which a variant replaces the default. It does not depend on the variants.

Inputs share one pool of memory, so that measuring needs little of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from eager import _native as eager_native
from eager._tensor.tensor import Tensor
from eager.base import dtypes
from inductor.artifact.format import Spec

__all__ = ["Budget", "clearly_fastest", "measure", "span_of", "synthetic_inputs"]

_ROUNDS: Final = 7
_SLICE_S: Final = 0.004  # seconds of one timing of one variant: long against the clock's resolution, short against a scheduler's slice
_SERIES: Final = 32  # calls between which nothing is prepared
_MARGIN: Final = 0.97  # a variant must be this much faster than the default to replace it: smaller gains are noise
_CHUNK: Final = 1 << 20  # numbers that are generated at once
POOL_BYTES = 128 << 20  # of the inputs of measured code, unless one is larger: larger than the caches


class Budget:
    """A limit of time for several searches, from now on. At most half of it goes to compilation."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._start = time.perf_counter()

    @property
    def deadline(self) -> float:
        """The `time.perf_counter()` at which it is spent."""
        return self._start + self.seconds

    @property
    def compile_deadline(self) -> float:
        """The `time.perf_counter()` at which candidates that are not compiled are given up."""
        return self._start + self.seconds / 2

    @property
    def is_spent(self) -> bool:
        """Whether no further search starts."""
        return time.perf_counter() > self.deadline

    def share(self, part: float) -> float:
        """The deadline of a search that gets a part of the time that is left."""
        now = time.perf_counter()
        return now + (self.deadline - now) * part


def measure(variants: Mapping[str, Callable[[], object]], deadline: float, rounds: int = _ROUNDS,
            before: Callable[[], object] | None = None) -> dict[str, float]:  # fmt: skip
    """Seconds of one call of each variant: the least of several rounds, taken in turn.

    In turn, because the machine's speed drifts; the least, because every disturbance makes a call slower.
    deadline: `time.perf_counter()` after which no further variant and no further round starts (at least one round runs).
    before: called before each series of calls, which is then short; its time does not count.
    """
    prepare = before or (lambda: None)
    most = _SERIES if before else 1 << 30
    repeats: dict[str, int] = {}
    best: dict[str, float] = {}
    for name, run in variants.items():
        if best and time.perf_counter() > deadline:
            break
        prepare()
        run()
        start = time.perf_counter()
        run()
        elapsed = time.perf_counter() - start
        repeats[name] = min(most, max(1, int(_SLICE_S / max(elapsed, 1e-7))))
        best[name] = elapsed
    for _ in range(rounds):
        for name, count in repeats.items():
            run = variants[name]
            prepare()
            start = time.perf_counter()
            for _ in range(count):
                run()
            best[name] = min(best[name], (time.perf_counter() - start) / count)
        if time.perf_counter() > deadline:
            break
    return best


def synthetic_inputs(specs: Sequence[Spec], written: Sequence[int] = (), seed: int = 0) -> list[Tensor]:
    """Tensors of these layouts: normal numbers, and zeros for integers (they may be indices).

    Those of one dtype lie in a common pool, one after the other, and from its start again when it is full. written: positions of
    tensors with separate memory.
    """
    pools: dict[str, _Pool] = {}
    made = []
    for i, s in enumerate(specs):
        shape, strides = s.fixed()
        span = span_of(s)
        if i in written:
            made.append(eager_native.alias(_filled(s.dtype, span, seed + i), shape, strides, 0))
            continue
        if s.dtype not in pools:
            pools[s.dtype] = _Pool(s.dtype, [t for j, t in enumerate(specs) if t.dtype == s.dtype and j not in written], seed)
        made.append(pools[s.dtype].take(span, shape, strides))
    return made


def span_of(spec: Spec) -> int:
    """Elements from the first to the last of a layout."""
    shape, strides = spec.fixed()
    return 1 + sum((n - 1) * step for n, step in zip(shape, strides, strict=True)) if 0 not in shape else 0


class _Pool:
    """Memory that inputs of one dtype share."""

    def __init__(self, dtype: str, specs: Sequence[Spec], seed: int) -> None:
        spans = [span_of(s) for s in specs]
        most = POOL_BYTES // dtypes.by_name(dtype).itemsize
        self._size = max(max(spans, default=0), min(sum(spans), most))
        self._flat = _filled(dtype, self._size, seed)
        self._next = 0

    def take(self, span: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> Tensor:
        if self._next + span > self._size:
            self._next = 0
        start, self._next = self._next, self._next + span
        return eager_native.alias(self._flat, shape, strides, start)


def _filled(dtype: str, count: int, seed: int) -> Tensor:
    d = dtypes.by_name(dtype)
    flat: Tensor = eager_native.empty(d.code, (max(count, 0),), (1,))
    numbers, array = np.random.default_rng(seed), flat._array
    if not (d.is_floating_point or d.is_complex):
        array[...] = 0
        return flat
    for start in range(0, count, _CHUNK):  # a second array of this length would count as memory of the search
        array[start : start + _CHUNK] = numbers.standard_normal(min(_CHUNK, count - start), dtype=np.float32)
    return flat


def clearly_fastest(seconds: Mapping[str, float]) -> str:
    """The fastest variant, or variant "0", the default, if that was measured and no variant is clearly faster."""
    fastest = min(seconds, key=seconds.__getitem__)
    return fastest if "0" not in seconds or seconds[fastest] < _MARGIN * seconds["0"] else "0"
