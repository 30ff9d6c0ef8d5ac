"""`torch._subclasses.fake_tensor`: what libraries ask of fakes."""
from __future__ import annotations

from typing import Any

from eager._tensor.tensor import Tensor
from eager.dispatch import calls

__all__ = ["FakeTensor", "is_fake", "unset_fake_temporarily"]


def is_fake(x: Any) -> bool:
    """Whether `x` is a tensor without data, as capture works with."""
    return isinstance(x, Tensor) and x.is_fake


class _Fakes(type):
    def __instancecheck__(cls, x: Any) -> bool:
        return is_fake(x)


class FakeTensor(metaclass=_Fakes):
    """What `isinstance` finds tensors without data to be; they are Tensors like the others here, and made by capture alone."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("FakeTensor: tensors without data are made while calls are captured; device='meta' makes your own")


def unset_fake_temporarily() -> Any:
    """A block in which calls are computed and not recorded by whoever traces."""
    return calls.modes_off()
