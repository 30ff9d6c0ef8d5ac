"""`torch.distributed.device_mesh`: grids of devices of several processes. There is one process: the names can be imported."""
from __future__ import annotations

from typing import Any, NoReturn

from eager.startup.absent_names import missing

__all__ = ["DeviceMesh", "init_device_mesh"]


class DeviceMesh:
    """A grid of devices. There are none. Raises: NotImplementedError."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        missing("torch.distributed.device_mesh.DeviceMesh")


def init_device_mesh(*args: Any, **kwargs: Any) -> NoReturn:
    """Not available. Raises: NotImplementedError."""
    missing("torch.distributed.device_mesh.init_device_mesh")
