"""`torch.distributed.tensor`: tensors sharded over processes. Its names serve imports and `isinstance` checks only."""
from __future__ import annotations

from typing import Any, NoReturn

from eager._tensor.tensor import Tensor
from eager.startup.absent_names import missing

__all__ = ["DTensor", "distribute_module", "distribute_tensor"]


class DTensor(Tensor):
    """A tensor sharded over processes. The constructor raises NotImplementedError, so no tensor is an instance."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        missing("torch.distributed.tensor.DTensor")


def distribute_tensor(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises NotImplementedError: there is a single process."""
    missing("torch.distributed.tensor.distribute_tensor")


def distribute_module(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises NotImplementedError: there is a single process."""
    missing("torch.distributed.tensor.distribute_module")
