"""`torch.jit.annotations`: the names of types that scripted code imports from here. They are typing's own."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple, Union  # noqa: UP035 - these names are what is asked for

from eager._tensor.tensor import Tensor

# A list of n items, for which scripted code could also give one item
BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = BroadcastingList4 = BroadcastingList5 = BroadcastingList6 = List  # noqa: UP006



class TensorType:
    """What scripted code calls the type of tensors, of which there is one: `TensorType.get()`. A name for annotations here."""

    annotation_str = "Tensor"
    _one: TensorType | None = None

    @classmethod
    def get(cls) -> TensorType:
        if cls._one is None:
            cls._one = cls()
        return cls._one

    def kind(self) -> str:
        return "TensorType"

    def __str__(self) -> str:
        return self.annotation_str


__all__ = ["Any", "Dict", "List", "Optional", "Tensor", "TensorType", "Tuple", "Union"]
