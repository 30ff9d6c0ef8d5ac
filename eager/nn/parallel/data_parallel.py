"""DataParallel over at most one device: a wrapper whose state keys have the prefix `module.`."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eager import cuda
from eager.base.device import device
from eager.nn.module import Module


class DataParallel(Module):
    """Calls `module`, after moving it to the device if one is given.

    Raises: NotImplementedError for several devices.
    """

    def __init__(self, module: Module, device_ids: Sequence[Any] | None = None, output_device: Any = None, dim: int = 0) -> None:
        super().__init__()
        if device_ids is None:
            device_ids = list(range(cuda.device_count())) if cuda.is_available() else []
        if len(device_ids) > 1:
            raise NotImplementedError(f"DataParallel: {len(device_ids)} devices were given; allowed: at most one. Give device_ids=[0]")
        self.dim = dim
        self.module = module
        self.device_ids = list(device_ids)
        self.output_device = output_device if output_device is not None else self.device_ids[0] if self.device_ids else None
        if self.device_ids:
            module.to(device(self.device_ids[0]))

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)
