"""`torch.distributed` for a single process.

Portable code queries `is_available()` and `is_initialized()`, which are False, and works without process groups.
Functions that need a group raise torch's error for a missing one; `init_process_group` raises NotImplementedError.
"""
from __future__ import annotations

import enum
from typing import Any, NoReturn

from eager.startup.absent_names import missing

__all__ = [
    "Backend", "GroupMember", "ProcessGroup", "ReduceOp", "all_gather", "all_gather_object", "all_reduce", "all_to_all", "barrier",
    "broadcast", "broadcast_object_list", "destroy_process_group", "device_mesh",
    "gather", "get_backend", "get_rank", "get_world_size", "group",
    "init_process_group", "is_available", "is_gloo_available", "is_initialized", "is_mpi_available", "is_nccl_available",
    "is_torchelastic_launched", "new_group", "recv", "reduce", "reduce_scatter", "scatter", "send",
]  # fmt: skip

_NO_GROUP = "Default process group has not been initialized, please make sure to call init_process_group."


class ReduceOp(enum.Enum):
    """How values of several processes are combined."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7


class Backend(str):
    """The name of a transport."""

    __slots__ = ()
    UNDEFINED, GLOO, NCCL, MPI = "undefined", "gloo", "nccl", "mpi"


class ProcessGroup:
    """A set of processes. It cannot be created: the constructor raises NotImplementedError."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        missing("torch.distributed.ProcessGroup")


class GroupMember:
    """Placeholder for process groups; none exists."""

    WORLD: ProcessGroup | None = None
    NON_GROUP_MEMBER = object()


group = GroupMember


def is_available() -> bool:
    """Whether several processes can communicate: always False."""
    return False


def is_initialized() -> bool:
    """Whether a process group exists: always False."""
    return False


def is_nccl_available() -> bool:
    """Whether NCCL can be used: always False."""
    return False


def is_gloo_available() -> bool:
    """Whether Gloo can be used: always False."""
    return False


def is_mpi_available() -> bool:
    """Whether MPI can be used: always False."""
    return False


def is_torchelastic_launched() -> bool:
    """Whether torchelastic started this process: always False."""
    return False


def init_process_group(backend: str | None = None, init_method: str | None = None, **options: Any) -> None:
    """Raises NotImplementedError: there is a single process."""
    missing("torch.distributed.init_process_group")


def _needs_group(name: str) -> Any:
    def call(*args: Any, **kwargs: Any) -> NoReturn:
        raise ValueError(_NO_GROUP)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = "Needs a process group. Raises: ValueError, because no group exists."
    return call


get_rank, get_world_size, get_backend = (_needs_group(n) for n in ("get_rank", "get_world_size", "get_backend"))
destroy_process_group, new_group, barrier = (_needs_group(n) for n in ("destroy_process_group", "new_group", "barrier"))
all_reduce, all_gather, all_gather_object = (_needs_group(n) for n in ("all_reduce", "all_gather", "all_gather_object"))
broadcast, broadcast_object_list, reduce = (_needs_group(n) for n in ("broadcast", "broadcast_object_list", "reduce"))
gather, scatter, reduce_scatter = (_needs_group(n) for n in ("gather", "scatter", "reduce_scatter"))
all_to_all, send, recv = (_needs_group(n) for n in ("all_to_all", "send", "recv"))
