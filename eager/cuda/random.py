"""Seeds and states of the CUDA devices' generators. A seed set before a device's first use applies to it later."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from eager import random
from eager.base.device import device
from eager.cuda.backend import current_device, device_count, is_available

__all__ = ["get_rng_state", "get_rng_state_all", "initial_seed", "manual_seed", "manual_seed_all", "seed", "seed_all", "set_rng_state",
           "set_rng_state_all"]  # fmt: skip


def _generator(where: Any) -> random.Generator:
    """The default generator of a device. Raises: RuntimeError without a GPU."""
    found = device(where) if not isinstance(where, int) else device("cuda", where)
    index = found.index if found.index is not None else current_device()
    return random.cuda_generator(index)


def manual_seed(seed: int) -> None:
    """Seed the current device's generator. Does nothing without a GPU."""
    if is_available():
        random.cuda_generator(current_device()).manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Seed the generators of all devices, including devices not used yet."""
    random.seed_cuda(int(seed))


def seed() -> None:
    """Seed the current device's generator with a random number."""
    if is_available():
        random.cuda_generator(current_device()).seed()


def seed_all() -> None:
    """Seed all devices with the same random number."""
    random.seed_cuda(random.Generator().seed())


def initial_seed() -> int:
    """The seed of the current device's generator. Raises: RuntimeError without a GPU."""
    return random.cuda_generator(current_device()).initial_seed()


def get_rng_state(device: Any = "cuda") -> Any:
    """The state of a device's generator, a uint8 tensor (16,) on the CPU. Raises: RuntimeError without a GPU."""
    return _generator(device).get_state()


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """Restore a device's generator. Raises: RuntimeError without a GPU."""
    _generator(device).set_state(new_state)


def get_rng_state_all() -> list[Any]:
    """The states of all devices; empty without a GPU."""
    return [random.cuda_generator(i).get_state() for i in range(device_count())]


def set_rng_state_all(new_states: Iterable[Any]) -> None:
    """Restore the generators of all devices."""
    for i, state in enumerate(new_states):
        random.cuda_generator(i).set_state(state)
