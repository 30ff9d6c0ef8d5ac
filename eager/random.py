"""Generators: a seed and an offset into a counter-based random stream. See `eager.optable.random` for the stream."""
from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from eager import _native
from eager.base import dtypes
from eager.base.device import CPU, device
from eager.optable import random as random_ops
from eager.optable.memory import from_array
from eager.optable.table import OPS

TensorBase = _native.TensorBase


class Generator(_native.Stream):
    """The state of a random stream: 64-bit seed and offset.

    A draw of n elements advances the offset by n, rounded up to a multiple of 16 (`take`, `state`).
    """

    def __init__(self, device: Any = "cpu") -> None:
        self.device = _device(device)
        self._seed = 67280421310721
        self._offset = 0

    def manual_seed(self, seed: int) -> Generator:
        """Start the stream of `seed` at its beginning. Returns: self."""
        if not isinstance(seed, (int, np.integer)):
            raise RuntimeError(f"manual_seed expected a long, but got {type(seed).__name__}")
        if not -(1 << 63) <= seed < 1 << 64:
            raise ValueError("Overflow when unpacking long long")
        self._seed, self._offset = seed & 0xFFFFFFFFFFFFFFFF, 0
        return self

    def seed(self) -> int:
        """Seed with entropy from the system. Returns: the seed."""
        self.manual_seed(int.from_bytes(os.urandom(8), "little") >> 1)
        return self._seed

    def initial_seed(self) -> int:
        """The seed."""
        return self._seed

    def get_state(self) -> Any:
        """The state, a uint8 tensor (16,): seed and offset."""
        return from_array(np.array([self._seed, self._offset], np.uint64).view(np.uint8))

    def set_state(self, state: Any) -> Generator:
        """Restore a state from `get_state`. Returns: self. Raises: TypeError, RuntimeError for another tensor."""
        if not isinstance(state, TensorBase):
            raise TypeError(f"expected a torch.ByteTensor, but got {type(state).__name__}")
        if state.dtype is not dtypes.uint8:
            raise TypeError("RNG state must be a torch.ByteTensor")
        if state.numel() != 16:
            raise RuntimeError(f"set_state: expected a uint8 tensor of 16 bytes, got {tuple(state.shape)}")
        a = np.ascontiguousarray(state._array).view(np.uint64)
        if a.shape != (2,):
            raise RuntimeError(f"set_state: expected a uint8 tensor of 16 bytes, got {tuple(state.shape)}")
        self._seed, self._offset = int(a[0]), int(a[1])
        return self

    def __getstate__(self) -> tuple[Any, int, int]:
        return self.device, self._seed, self._offset

    def __setstate__(self, state: tuple[Any, int, int]) -> None:
        """Restore the stream and its offset."""
        self.device, self._seed, self._offset = state

    def get_offset(self) -> int:
        """The offset in the stream of a CUDA device. Raises: RuntimeError on the CPU, as torch does."""
        if self.device.type != "cuda":
            raise RuntimeError("CPU Generator does not use offset")
        return self._offset

    def set_offset(self, offset: int) -> Generator:
        """Set the offset. Raises: RuntimeError on the CPU, as torch does."""
        if self.device.type != "cuda":
            raise RuntimeError("CPU Generator does not use offset")
        self._offset = int(offset)
        return self

    def clone_state(self) -> Generator:
        """A separate generator with the same state."""
        g = Generator(self.device)
        g._seed, g._offset = self._seed, self._offset
        return g


def _device(d: Any) -> device:
    return device(d)


default_generator = Generator()
_native.set_default_stream(default_generator)
_cuda_generators: dict[int, Generator] = {}


def _generator_of(d: device | None) -> Generator:
    if d is None or d.type != "cuda":
        return default_generator
    return cuda_generator(d.index or 0)


_cuda_seed: int | None = None  # the seed of CUDA generators that are created later


def cuda_generator(index: int) -> Generator:
    """The default generator of a CUDA device."""
    found = _cuda_generators.get(index)
    if found is None:
        found = _cuda_generators[index] = Generator(device("cuda", index))
        if _cuda_seed is not None:
            found.manual_seed(_cuda_seed)
    return found


def default_generators() -> list[Generator]:
    """The default generators of all devices that were used or seeded."""
    return [default_generator, *_cuda_generators.values()]


def places() -> list[tuple[Generator, int, int]]:
    """The state of each default generator, for `go_back`."""
    return [(g, g._seed, g._offset) for g in default_generators()]


def go_back(places: list[tuple[Generator, int, int]]) -> None:
    """Restore the default generators to `places`, so that they repeat their draws.

    One that was not used before restarts.
    """
    known = {id(g) for g, _, _ in places}
    for g in list(_cuda_generators.values()):
        if id(g) not in known:
            g.manual_seed(g.initial_seed())
    for g, seed, offset in places:
        g._seed, g._offset = seed, offset


def seed_cuda(seed: int) -> None:
    """Seed the default generators of all CUDA devices, including devices not used yet."""
    global _cuda_seed
    _cuda_seed = seed
    for g in list(_cuda_generators.values()):  # a draw in another thread may add one
        g.manual_seed(seed)


random_ops.set_state_source(lambda n, d: _generator_of(d).take(n))


def state_for(n: int, generator: Generator | None = None, d: device | None = None) -> Any:
    """The state tensor (2,), int64, of a draw of `n` elements: from `generator`, or from the device's default generator."""
    if generator is None:
        return OPS["rng_state"](n, d or CPU)
    if not isinstance(generator, Generator):
        raise TypeError(f"argument 'generator' must be torch.Generator, not {type(generator).__name__}")
    return generator.state(n)


def manual_seed(seed: int) -> Generator:
    """Seed the default generators of all devices. Returns: the CPU's generator."""
    seed_cuda(int(seed))
    return default_generator.manual_seed(int(seed))


def seed() -> int:
    """Seed the CPU's default generator with entropy from the system. Returns: the seed."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed of the CPU's default generator."""
    return default_generator.initial_seed()


def get_rng_state() -> Any:
    """The state of the CPU's default generator, a uint8 tensor (16,)."""
    return default_generator.get_state()


def set_rng_state(new_state: Any) -> None:
    """Restore the CPU's default generator."""
    default_generator.set_state(new_state)


@contextlib.contextmanager
def fork_rng(devices: Any = None, enabled: bool = True, _caller: str = "fork_rng", _devices_kw: str = "devices",
             device_type: str | None = None) -> Iterator[None]:  # fmt: skip
    """Restore the default generators of the CPU and of `devices` (None: all devices) at the end of the block."""
    device_type = device_type or "cuda"
    if device_type not in ("cpu", "cuda", "meta"):
        raise RuntimeError(f"torch has no module of `{device_type}`")
    if not enabled:
        yield
        return
    named = None if devices is None else {device(device_type, d).index if isinstance(d, int) else device(d).index or 0 for d in devices}
    before = [(g, s, o) for g, s, o in places() if g is default_generator or named is None or g.device.index in named]
    try:
        yield
    finally:
        for g, seed, offset in before:
            g._seed, g._offset = seed, offset
