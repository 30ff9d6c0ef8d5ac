"""Random ops: functions of a generator state, so that eager and compiled code draw the same numbers.

`rng_state(n)` takes (seed, offset) from the default generator and advances it for a draw of `n` elements. The other ops are pure
functions of that state. Philox 4x32-10 gives a block of four 32-bit words for each counter; a draw uses all four.

The words of a draw:

    16 counters in a row give a chunk: 64 elements of one word, or 32 elements of two words.
    A chunk is in rows of 16 elements. Lane l of each row has words of counter offset + 16 * chunk + l.
    Row w of one word has word w of its counters. Row h of two words has the words 2h and 2h + 1.

So a vector of 16 elements, or of 8 or 4, has one word of as many counters, and no word changes its lane. `place_of` computes the place
of an element; `kernels/philox.h`, `inductor.cpp.random_bits` and `inductor.triton.helpers` state the same rule for their languages.

The elements of a draw:

    uniform, float32    the upper 24 bits of one word
    uniform, float64    the upper 27 bits of the first word, then the upper 26 bits of the second word
    integers            two words as a number of 64 bits, the first word below, modulo the width of the range
    normal              Box-Muller on two uniforms: elements i and i + 16, for i in an even row, are the cosine and the sine of the
                        pair of uniforms i and i + 16

A draw of n elements advances the offset by n, rounded up to a multiple of 16, so two draws share no counter.
Source: Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011.
"""
from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from eager import _native
from eager.base import dtypes
from eager.base.device import memory_device
from eager.base.spec import TensorSpec
from eager.optable.memory import cuda_backend
from eager.optable.registry import Kind
from eager.optable.table import declare

_M0, _M1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_W0, _W1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
_MASK = np.uint64(0xFFFFFFFF)


def philox(xp: Any, seed: Any, offset: Any, count: int) -> Any:
    """`count` blocks of four 32-bit words: shape (4, count), uint32. Counter of block i is offset + i.

    seed, offset: ints, of which the lower 64 bits count, or uint64 arrays of one element.
    """
    def number(x: Any) -> Any:
        return xp.uint64(x & 0xFFFFFFFFFFFFFFFF) if isinstance(x, int) else x

    half = xp.uint64(32)
    index = xp.arange(count, dtype=xp.uint64) + number(offset)
    c0, c1 = index & _MASK, index >> half
    c2 = xp.zeros(count, xp.uint64)
    c3 = xp.zeros(count, xp.uint64)
    k0, k1 = number(seed) & _MASK, number(seed) >> half
    for _ in range(10):
        p0, p1 = _M0 * c0, _M1 * c2
        c0, c1, c2, c3 = (p1 >> half) ^ c1 ^ k0, p1 & _MASK, (p0 >> half) ^ c3 ^ k1, p0 & _MASK
        k0, k1 = (k0 + _W0) & _MASK, (k1 + _W1) & _MASK
    return xp.stack([c0, c1, c2, c3]).astype(xp.uint32)


LANES: Final = 16  # counters of a chunk, and elements of a row
WORDS: Final = 4  # of a block


def place_of(i: Any, words: int) -> tuple[Any, Any]:
    """The counter of element `i`, as its distance from the draw's offset, and the first of its words.

    i: an int, or an array or expression of them. words: of an element, 1 or 2.
    """
    rows = WORDS // words
    return i // (LANES * rows) * LANES + i % LANES, i // LANES % rows * words


def draw_words(xp: Any, seed: Any, offset: Any, count: int, words: int) -> Any:
    """The words of elements 0, 1, ... of a draw: shape (words, count), uint32. words: of an element, 1 or 2. Others as in `philox`."""
    rows = WORDS // words
    chunks = -(-count // (LANES * rows))
    blocks = philox(xp, seed, offset, chunks * LANES).reshape(rows, words, chunks, LANES)
    return xp.moveaxis(blocks, (1, 2), (0, 1)).reshape(words, -1)[:, :count]


def _words(xp: Any, state: Any, count: int, words: int) -> Any:
    if is_recorded(xp):  # the state of a replay is on the device
        key = state.view(xp.uint64)
        return draw_words(xp, key[:1], key[1:], count, words)
    seed, offset = (int(v) for v in state.tolist())
    return draw_words(xp, seed, offset, count, words)


def is_recorded(xp: Any) -> bool:
    """Whether the work of the current stream is recorded into a CUDA graph: the host can then not read memory of the device."""
    return xp is not np and bool(xp.cuda.get_current_stream().is_capturing())


def _state_meta(n: int, device: Any) -> TensorSpec:
    return TensorSpec.contiguous((2,), dtypes.int64, memory_device(device))


def _state_kernel(xp: Any, out: Any, n: int, device: Any) -> None:
    if is_recorded(xp):
        draws = cuda_backend().draws.get(threading.get_ident())
        if draws is None:
            raise RuntimeError("the random numbers of a CUDA graph that torch.cuda.graph did not begin would be the same at each replay")
        draws.write(out, n)
        return
    seed, offset = _source(n, device)
    out[:] = xp.asarray(np.array([seed, offset], np.uint64).view(np.int64))


_source: Any = None


def set_state_source(source: Any) -> None:
    """Registered by `eager.random`: `source(n, device) -> (seed, offset)`, advancing for a draw of n elements."""
    global _source
    _source = source


def _state_samples(make: Any) -> Any:
    yield make.state(), (3, 4), make.dtype("float32")
    yield make.state(), (5,), make.dtype("float64")
    yield make.state(), (0, 2), make.dtype("float32")


RNG_STATE = declare("rng_state(int n, device? device=None) -> Tensor", Kind.EFFECT, meta=_state_meta, kernel=_state_kernel,
                    nondifferentiable=True, samples=lambda make: iter([(4, None)]))  # fmt: skip


def _draw_meta(state: Any, size: Sequence[int], dtype: Any) -> TensorSpec:
    return TensorSpec.contiguous(size, dtype or dtypes.get_default_dtype(), state.device)


def _units(xp: Any, state: Any, count: int, double: bool) -> Any:
    """Uniform in [0, 1): 24 bits of one word for float32 and below, 53 bits of two for float64."""
    words = _words(xp, state, count, 2 if double else 1)
    if double:
        high, low = words[0].astype(xp.uint64) >> xp.uint64(5), words[1].astype(xp.uint64) >> xp.uint64(6)
        return (high * xp.uint64(1 << 26) + low).astype(xp.float64) * 2.0**-53
    return (words[0] >> xp.uint32(8)).astype(xp.float32) * xp.float32(2.0**-24)


def _drawn_natively(xp: Any, out: Any, state: Any, normal: bool) -> bool:
    if xp is not np or out.dtype.char not in "fd":
        return False
    seed, offset = state.tolist()
    return _native.philox_fill(out, seed, offset, normal)


def _uniform(xp: Any, out: Any, state: Any, size: Any, dtype: Any) -> None:
    if _drawn_natively(xp, out, state, False):
        return
    xp.copyto(out, _units(xp, state, math.prod(size), out.dtype == xp.float64).reshape(out.shape), casting="unsafe")


def kept(xp: Any, state: Any, shape: Sequence[int], p: float) -> Any:
    """The bool array of `shape` that dropout with probability `p` multiplies by: `philox_uniform(state, shape) >= p`.

    For kernels of dropout.
    """
    u = xp.empty(shape, "f4")
    _uniform(xp, u, state, shape, None)
    return u >= xp.float32(p)


PHILOX_UNIFORM = declare("philox_uniform(Tensor state, int[] size, dtype? dtype=None) -> Tensor", Kind.RANDOM,
                         meta=_draw_meta, kernel=_uniform, nondifferentiable=True, samples=_state_samples, batch="drawn")  # fmt: skip


def _normal(xp: Any, out: Any, state: Any, size: Any, dtype: Any) -> None:
    """Box-Muller on the uniforms of the draw: a row of radii, then a row of angles. See the head of this file."""
    if _drawn_natively(xp, out, state, True):
        return
    n = math.prod(size)
    pairs = -(-n // (2 * LANES))
    units = _units(xp, state, 2 * LANES * pairs, out.dtype == xp.float64).reshape(pairs, 2, LANES)
    radius = xp.sqrt(-2.0 * xp.log1p(-units[:, :1]))
    angle = units[:, 1:] * (2.0 * math.pi)
    z = radius * xp.concatenate([xp.cos(angle), xp.sin(angle)], 1)
    xp.copyto(out, z.ravel()[:n].reshape(out.shape), casting="unsafe")


PHILOX_NORMAL = declare("philox_normal(Tensor state, int[] size, dtype? dtype=None) -> Tensor", Kind.RANDOM,
                        meta=_draw_meta, kernel=_normal, nondifferentiable=True, samples=_state_samples, batch="drawn")  # fmt: skip


def _randint(xp: Any, out: Any, state: Any, low: int, high: int, size: Any, dtype: Any) -> None:
    words = _words(xp, state, math.prod(size), 2)
    wide = words[0].astype(xp.uint64) | (words[1].astype(xp.uint64) << xp.uint64(32))
    drawn = (wide % xp.uint64(high - low)).astype(xp.int64) + low
    xp.copyto(out, drawn.reshape(out.shape), casting="unsafe")


def _randint_meta(state: Any, low: int, high: int, size: Sequence[int], dtype: Any) -> TensorSpec:
    if high <= low:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    return TensorSpec.contiguous(size, dtype or dtypes.int64, state.device)


PHILOX_RANDINT = declare("philox_randint(Tensor state, int low, int high, int[] size, dtype? dtype=None) -> Tensor",
                         Kind.RANDOM, meta=_randint_meta, kernel=_randint, nondifferentiable=True,
                         samples=lambda make: iter([(make.state(), 0, 10, (3, 4), None)]), batch="drawn")  # fmt: skip
