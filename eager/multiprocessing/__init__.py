"""torch.multiprocessing: Python's `multiprocessing`, through which tensors go by shared memory."""
from __future__ import annotations

from multiprocessing import *  # noqa: F403 - the same names
from multiprocessing import __all__ as _standard

from eager.multiprocessing.reductions import init_reductions
from eager.multiprocessing.spawn import (
    ProcessContext,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)
from eager.tracebacks import filter_frames_of as _filter_frames_of

_STRATEGY = "file_descriptor"


def get_all_sharing_strategies() -> set[str]:
    """How memory can be shared: by descriptors of files without a name."""
    return {_STRATEGY}


def get_sharing_strategy() -> str:
    return _STRATEGY


def set_sharing_strategy(new_strategy: str) -> None:
    """Raises AssertionError for any other than the one there is."""
    if new_strategy != _STRATEGY:
        raise AssertionError(f"set_sharing_strategy: {new_strategy!r}; allowed: {_STRATEGY!r}")


init_reductions()
__all__ = [  # noqa: PLE0604 - the standard module's names are strings
    *_standard, "ProcessContext", "ProcessExitedException", "ProcessRaisedException", "SpawnContext",
    "get_all_sharing_strategies", "get_sharing_strategy", "set_sharing_strategy", "spawn", "start_processes",
]  # fmt: skip

_filter_frames_of(__name__)
