"""`torch.distributed.rpc`: remote procedure calls. Importable only: there is a single process."""
from __future__ import annotations

from typing import Any

from eager.startup.absent_names import missing

__all__ = ["RRef", "TensorPipeRpcBackendOptions", "get_worker_info", "init_rpc", "is_available", "remote", "rpc_async", "rpc_sync",
           "shutdown"]  # fmt: skip


def is_available() -> bool:
    """Whether functions can be called in other processes: always False."""
    return False


def _needs_processes(name: str) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        missing(f"torch.distributed.rpc.{name}")

    call.__name__ = call.__qualname__ = name
    call.__doc__ = "Needs other processes. Raises: NotImplementedError."
    return call


init_rpc, shutdown, get_worker_info = (_needs_processes(n) for n in ("init_rpc", "shutdown", "get_worker_info"))
remote, rpc_async, rpc_sync = (_needs_processes(n) for n in ("remote", "rpc_async", "rpc_sync"))


class RRef:
    """A reference to a value of another process. The constructor raises NotImplementedError."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        missing("torch.distributed.rpc.RRef")


class TensorPipeRpcBackendOptions:
    """Options of a transport. The constructor raises NotImplementedError."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        missing("torch.distributed.rpc.TensorPipeRpcBackendOptions")
