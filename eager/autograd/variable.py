"""torch.autograd.Variable: the name that tensors with gradients had once."""
from __future__ import annotations

from typing import Any

from eager._tensor.tensor import Tensor
from eager.tape import engine


class _VariableMeta(type):
    def __instancecheck__(cls, other: object) -> bool:
        return isinstance(other, Tensor)


class _Engine:
    """The engine functions that programs call through `Variable._execution_engine`."""

    queue_callback = staticmethod(engine.queue_callback)
    run_backward = staticmethod(engine.backward)


class Variable(metaclass=_VariableMeta):
    """`Variable(t, requires_grad)` returns `t` itself, with `requires_grad` set; every tensor is an instance."""

    _execution_engine = _Engine()

    def __new__(cls, data: Any = None, requires_grad: bool = False, volatile: bool | None = None) -> Any:
        t = Tensor() if data is None else data.detach() if requires_grad or data.requires_grad else data
        return t.requires_grad_() if requires_grad else t


__all__ = ["Variable"]
