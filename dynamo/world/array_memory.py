"""Memory that arrays and tensors share: functions that guards and generated code call at run time, and the memory of inputs."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

import numpy as np

from dynamo.values.tensor import TensorValue
from eager import Tensor
from eager.base import dtypes


def is_known(dtype: np.dtype[Any]) -> bool:
    """Whether tensors have elements of this dtype."""
    try:
        dtypes.from_numpy(dtype)
    except (TypeError, ValueError):
        return False
    return True


def share_memory(a: Tensor, b: Tensor) -> bool:
    """Whether the memory of two tensors overlaps. Each numpy array has a separate storage."""
    one, other = a.untyped_storage().root, b.untyped_storage().root
    if one is other:
        return True
    return one.data_ptr() < other.data_ptr() + other.nbytes() and other.data_ptr() < one.data_ptr() + one.nbytes()


def numpy_scalar(t: Tensor) -> Any:
    """The number in a tensor without dims, as a numpy scalar."""
    return t.numpy()[()]


def read_only(t: Tensor) -> Any:
    """A read-only array over the memory of the tensor."""
    array = t.numpy().view()
    array.flags.writeable = False
    return array


class InputMemory:
    """The memory of the inputs of a graph, sorted by address, so that a write finds the inputs that share its memory in logarithmic time.

    Inputs over one storage share a fake storage, which a write names. Different storages are disjoint, unless numpy arrays that
    overlap own their memory.
    """

    def __init__(self) -> None:
        self._inputs: list[TensorValue] = []
        self._of_storage: dict[int, list[TensorValue]] = {}  # by the id of the fake storage
        self._ranges: list[tuple[int, int]] = []  # (begin, end) of each storage, sorted; disjoint unless `_overlap`
        self._overlap = False

    def see(self, inputs: Sequence[TensorValue]) -> None:
        """Add the inputs that are new since the last call."""
        for v in inputs[len(self._inputs) :]:
            self._inputs.append(v)
            known = self._of_storage.setdefault(id(v.fake.untyped_storage()), [])
            known.append(v)
            if v.real is not None and len(known) == 1:
                self._add(v.real)

    def _add(self, real: Tensor) -> None:
        place = self._place(real)
        self._overlap = self._overlap or self._meets(*place)
        self._ranges.insert(bisect_left(self._ranges, place), place)

    @staticmethod
    def _place(real: Tensor) -> tuple[int, int]:
        root = real.untyped_storage().root
        begin: int = root.data_ptr()
        return begin, begin + root.nbytes()

    def _meets(self, begin: int, end: int) -> bool:
        """Whether the range overlaps one of the disjoint `_ranges`: the last range before it, or the first range after it."""
        k = bisect_left(self._ranges, (begin, end))
        return any(b < end and begin < e for b, e in self._ranges[max(0, k - 1) : k + 1])

    def over(self, written: Sequence[Tensor]) -> list[TensorValue]:
        """The inputs over the storages of these fakes."""
        storages = dict.fromkeys(id(t.untyped_storage()) for t in written)
        return [v for s in storages for v in self._of_storage.get(s, ())]

    def sharing(self, targets: Sequence[TensorValue]) -> TensorValue | None:
        """An input outside `targets` that shares memory with one of them."""
        if not self._overlap:
            return None
        mine = [v.real for v in targets if v.real is not None]
        others = (v for v in self._inputs if v.real is not None and v not in targets)
        return next((v for v in others if any(share_memory(v.real, real) for real in mine)), None)  # type: ignore[arg-type]

    def shared_with(self, real: Tensor) -> TensorValue | None:
        """An input that shares memory with a tensor of another storage."""
        if not (self._overlap or self._meets(*self._place(real))):
            return None
        root = real.untyped_storage().root
        others = (v for v in self._inputs if v.real is not None and v.real.untyped_storage().root is not root)
        return next((v for v in others if share_memory(v.real, real)), None)  # type: ignore[arg-type]
