"""`torch._subclasses.fake_tensor`: the functions about fake tensors that libraries use."""
from __future__ import annotations

from typing import Any

from eager._tensor.tensor import Tensor
from eager.dispatch import calls

__all__ = ["FakeTensor", "is_fake", "unset_fake_temporarily"]


def is_fake(x: Any) -> bool:
    """Whether `x` is a fake tensor, which has no data, as capture uses them."""
    return isinstance(x, Tensor) and x.is_fake


class _Fakes(type):
    def __instancecheck__(cls, x: Any) -> bool:
        return is_fake(x)


class FakeTensor(metaclass=_Fakes):
    """The class that fake tensors are instances of, by `isinstance`.

    They are ordinary Tensors, and only capture makes them.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("FakeTensor: tensors without data are made while calls are captured; device='meta' makes your own")


def unset_fake_temporarily() -> Any:
    """A block in which calls compute results and are not traced."""
    return calls.modes_off()
