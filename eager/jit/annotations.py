"""`torch.jit.annotations`: the names of types that scripted code imports from here. They are typing's own."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple, Union  # noqa: UP035 - these names are what is asked for

from eager.tensor import Tensor

# A list of n items, for which scripted code could also give one item
BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = BroadcastingList4 = BroadcastingList5 = BroadcastingList6 = List  # noqa: UP006

__all__ = ["Any", "Dict", "List", "Optional", "Tensor", "Tuple", "Union"]
