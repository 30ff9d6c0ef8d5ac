"""Type aliases for annotations: `torch.types`."""
from __future__ import annotations

import builtins
import os
from collections.abc import Sequence
from typing import Any, TypeAlias

from eager._tensor.tensor import Size, Tensor
from eager.base.device import device
from eager.base.dtypes import dtype

_int, _float, _bool, _complex = builtins.int, builtins.float, builtins.bool, builtins.complex
_dtype, _device = dtype, device

_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]
_size: TypeAlias = Size | list[int] | tuple[int, ...]
IntLikeType: TypeAlias = int
FloatLikeType: TypeAlias = float
BoolLikeType: TypeAlias = bool
Number: TypeAlias = int | float | bool
Device: TypeAlias = device | str | int | None
FileLike: TypeAlias = str | os.PathLike[str] | Any
Storage: TypeAlias = Any
