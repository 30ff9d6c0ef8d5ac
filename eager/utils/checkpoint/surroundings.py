"""The thread state that a recomputation must restore: random state, autocast, default device."""
from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

from eager import random
from eager._tensor.tensor import Tensor
from eager.base import thread_state
from eager.base.records import dataclass
from eager.random import Generator


@dataclass(frozen=True, slots=True)
class Surroundings:
    """A snapshot of this thread's state; `random_states` is None if the draws need not be repeated."""

    autocast: Any
    device: Any
    random_states: tuple[tuple[Generator, Tensor], ...] | None

    @staticmethod
    def now(with_random: bool) -> Surroundings:
        """The present state of this thread."""
        states = tuple((g, g.get_state()) for g in random.default_generators()) if with_random else None
        return Surroundings(thread_state.autocast(), thread_state.device(), states)

    @contextlib.contextmanager
    def restored(self) -> Iterator[None]:
        """Run the block in this state, and restore the previous state afterwards."""
        before = Surroundings.now(self.random_states is not None)
        self._enter()
        try:
            yield
        finally:
            before._enter()

    def _enter(self) -> None:
        thread_state.set_autocast(self.autocast)
        thread_state.set_device(self.device)
        for generator, state in self.random_states or ():
            generator.set_state(state)


class DefaultDeviceType:
    """The device type whose random state is kept besides the CPU's if no argument determines one."""

    _type = "cuda"

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Set the device type."""
        DefaultDeviceType._type = device

    @staticmethod
    def get_device_type() -> str:
        """The device type."""
        return DefaultDeviceType._type


def _tensors(args: Iterable[Any]) -> Iterator[Tensor]:
    for arg in args:
        if isinstance(arg, Tensor):
            yield arg
        elif isinstance(arg, (list, tuple)):
            yield from _tensors(arg)
        elif isinstance(arg, dict):
            yield from _tensors(arg.values())


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """The indices of the CUDA devices that hold a tensor of `args`, and the states of their generators."""
    devices = sorted({t.device.index or 0 for t in _tensors(args) if t.device.type == "cuda"})
    return devices, [random._generator_of(random._device(f"cuda:{i}")).get_state() for i in devices]


def set_device_states(devices: list[int], states: list[Tensor], *, device_type: str | None = None) -> None:
    """Set the generators of CUDA devices to states from `get_device_states`."""
    for i, state in zip(devices, states, strict=True):
        random._generator_of(random._device(f"{device_type or 'cuda'}:{i}")).set_state(state)


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The tensors of a tuple as leaves over the same memory, with the same requires_grad; other values unchanged.

    Raises: RuntimeError if `inputs` is not a tuple.
    """
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}")
    return tuple(x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs)


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warn if no input requires a gradient: a reentrant checkpoint then computes none for parameters either."""
    if not any(x.requires_grad for x in inputs if isinstance(x, Tensor)):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)
