"""`torch.distributed.tensor`: tensors spread over processes. There is one process: the names can be imported and asked for."""
from __future__ import annotations

from typing import Any, NoReturn

from eager._tensor.tensor import Tensor
from eager.startup.absent_names import missing

__all__ = ["DTensor", "distribute_module", "distribute_tensor"]


class DTensor(Tensor):
    """A tensor spread over processes. There are none, so no tensor is an instance. Raises: NotImplementedError."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        missing("torch.distributed.tensor.DTensor")


def distribute_tensor(*args: Any, **kwargs: Any) -> NoReturn:
    """Not available. Raises: NotImplementedError."""
    missing("torch.distributed.tensor.distribute_tensor")


def distribute_module(*args: Any, **kwargs: Any) -> NoReturn:
    """Not available. Raises: NotImplementedError."""
    missing("torch.distributed.tensor.distribute_module")
