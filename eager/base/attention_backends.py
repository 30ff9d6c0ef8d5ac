"""Which implementations of attention are allowed: the state behind `torch.nn.attention` and `torch.backends.cuda`."""
from __future__ import annotations

import contextlib
from collections.abc import Iterator
from enum import IntEnum
from typing import Any


class SDPBackend(IntEnum):
    """torch's names for the implementations of attention."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


_allowed: list[SDPBackend] = [b for b in SDPBackend if b is not SDPBackend.ERROR]


def set_allowed(backends: list[SDPBackend]) -> None:
    """Allow these backends from now on."""
    global _allowed
    _allowed = list(backends)


def allowed(with_priority: bool = False) -> list[SDPBackend]:
    """The backends that are allowed, in the order of `set_allowed`. with_priority: accepted for torch's signature."""
    return list(_allowed)


@contextlib.contextmanager
def sdpa_kernel(backends: Any, set_priority: bool = False) -> Iterator[None]:
    """Allow these backends within the block.

    Raises: AssertionError for an argument that is not an SDPBackend; RuntimeError for an empty list.
    """
    global _allowed
    chosen = [backends] if isinstance(backends, SDPBackend) else list(backends)
    if not all(isinstance(b, SDPBackend) for b in chosen):
        raise AssertionError("Backend must be an instance of SDPBackend or a list of SDPBackend instances")
    if not chosen:
        raise RuntimeError("No available kernel. Aborting execution. (sdpa_kernel: no backend is allowed)")
    before, _allowed = _allowed, chosen
    try:
        yield
    finally:
        _allowed = before
