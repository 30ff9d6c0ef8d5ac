"""torch.utils.dlpack: tensors from and to DLPack capsules. See `eager.functions.dlpack`."""
from __future__ import annotations

from typing import Any

from eager._tensor.tensor import Tensor
from eager.functions.dlpack import DLDeviceType, __dlpack__, from_dlpack


def to_dlpack(tensor: Tensor) -> Any:
    """A DLPack capsule over the tensor's memory, usable once. Raises: as `Tensor.__dlpack__`."""
    return __dlpack__(tensor)


__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]
