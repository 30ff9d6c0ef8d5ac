"""cuDNN is not used: GPU convolutions run on CuPy and Triton. The flags can be set and have no effect."""
from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

enabled = True
benchmark = False
benchmark_limit: int | None = 10
deterministic = False
allow_tf32 = True
CUDNN_TENSOR_DTYPES: frozenset[Any] = frozenset()


def is_available() -> bool:
    """Whether cuDNN is used: always False."""
    return False


def version() -> int | None:
    """cuDNN's version: None."""
    return None


def is_acceptable(tensor: Any) -> bool:
    """Whether cuDNN supports a tensor: always False."""
    return False


def set_flags(
    _enabled: bool | None = None, _benchmark: bool | None = None, _benchmark_limit: int | None = None,
    _deterministic: bool | None = None, _allow_tf32: bool | None = None,
) -> tuple[bool, bool, int | None, bool, bool]:  # fmt: skip
    """Set the given flags. Returns: the previous values of all flags, in the order of the parameters."""
    module = sys.modules[__name__]
    before = (enabled, benchmark, benchmark_limit, deterministic, allow_tf32)
    given = {"enabled": _enabled, "benchmark": _benchmark, "benchmark_limit": _benchmark_limit,
             "deterministic": _deterministic, "allow_tf32": _allow_tf32}  # fmt: skip
    for name, value in given.items():
        if value is not None:
            setattr(module, name, value)
    return before


@contextlib.contextmanager
def flags(enabled: bool = False, benchmark: bool = False, benchmark_limit: int | None = 10, deterministic: bool = False,
          allow_tf32: bool = True) -> Iterator[None]:  # fmt: skip
    """Set flags within a block."""
    before = set_flags(enabled, benchmark, benchmark_limit, deterministic, allow_tf32)
    try:
        yield
    finally:
        set_flags(*before)
