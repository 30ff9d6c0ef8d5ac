"""`torch.distributed.device_mesh`: grids of devices of several processes.

Importable only: there is a single process.
"""
from __future__ import annotations

from typing import Any, NoReturn

from eager.startup.absent_names import missing

__all__ = ["DeviceMesh", "init_device_mesh"]


class DeviceMesh:
    """A grid of devices. The constructor raises NotImplementedError."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        missing("torch.distributed.device_mesh.DeviceMesh")


def init_device_mesh(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises NotImplementedError: there is a single process."""
    missing("torch.distributed.device_mesh.init_device_mesh")
