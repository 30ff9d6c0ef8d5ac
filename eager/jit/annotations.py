"""`torch.jit.annotations`: the names of types that scripted code imports from here. All come from `typing`."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple, Union  # noqa: UP035 - scripted code imports these names

from eager._tensor.tensor import Tensor

# A list of n items, for which scripted code may pass a single item
BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = BroadcastingList4 = BroadcastingList5 = BroadcastingList6 = List  # noqa: UP006



class TensorType:
    """TorchScript's type of tensors, a singleton: `TensorType.get()`. Only a name for annotations here."""

    annotation_str = "Tensor"
    _one: TensorType | None = None

    @classmethod
    def get(cls) -> TensorType:
        """The single instance."""
        if cls._one is None:
            cls._one = cls()
        return cls._one

    def kind(self) -> str:
        """"TensorType"."""
        return "TensorType"

    def __str__(self) -> str:
        return self.annotation_str


__all__ = ["Any", "Dict", "List", "Optional", "Tensor", "TensorType", "Tuple", "Union"]
