"""Forward mode by hand: dual tensors inside a `dual_level`."""
from __future__ import annotations

from typing import Any, NamedTuple

from eager import _native
from eager.transforms.forward import DualTensor, Forward
from eager.transforms.push import check_tangent

TensorBase = _native.TensorBase
_levels: list[DualLevel] = []


class RecordedDual(DualTensor):
    """A dual tensor of a `dual_level`. As in torch, autograd records the ops on its value: its history is the value's history."""

    @property  # type: ignore[misc]
    def requires_grad(self) -> bool:
        return self._value.requires_grad  # type: ignore[no-any-return]

    @property
    def grad_fn(self) -> Any:
        return self._value.grad_fn

    @property
    def is_leaf(self) -> bool:
        return self._value.is_leaf  # type: ignore[no-any-return]

    def register_hook(self, hook: Any) -> Any:
        return self._value.register_hook(hook)

    def retain_grad(self) -> None:
        self._value.retain_grad()

    def _recorded(self) -> Any:
        if self.tangent is not None and self.requires_grad:
            raise NotImplementedError("backward of a dual tensor that has a tangent: the gradient's own tangent is not computed; take "
                                      "unpack_dual(tensor).primal or .tangent, or use torch.func.jvp of torch.func.grad")  # fmt: skip
        return self._value


class DualLevel(Forward):
    """The level that a program enters by hand."""

    wrapper = RecordedDual


class UnpackedDualTensor(NamedTuple):
    """The result of `unpack_dual`: the primal, and its tangent or None."""

    primal: Any
    tangent: Any


def enter_dual_level() -> int:
    """Begin a level; returns its number, 0. Raises RuntimeError inside another."""
    if _levels:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    level = DualLevel(0)
    level.__enter__()
    _levels.append(level)
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """End the level and drop its tangents. Raises: RuntimeError if there is no level or `level` is not its number."""
    if not _levels:
        raise RuntimeError("Trying to exit a forward AD level but no level exists, make sure to enter_dual_level() first.")
    if level not in (None, 0):
        raise RuntimeError("Trying to exit a forward AD level that was not the last one that was created. This is not supported.")
    _levels.pop().__exit__()


class dual_level:  # noqa: N801 - torch's name
    """A block in which dual tensors exist."""

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exc: object) -> None:
        exit_dual_level()


def _current(what: str) -> Forward:
    if not _levels:
        raise RuntimeError(f"Trying to {what} a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() "
                           "first.")  # fmt: skip
    return _levels[-1]


def make_dual(tensor: Any, tangent: Any, *, level: int | None = None) -> Any:
    """`tensor` with a tangent, which ops of this level carry along. Both: floating or complex, of one shape.

    Raises: RuntimeError outside of a level or for shapes or dtypes that differ; ValueError for integers.
    """
    current = _current("create")
    for x, what in ((tensor, "primal"), (tangent, "tangent")):
        if not (x.dtype.is_floating_point or x.dtype.is_complex):
            raise ValueError(f"Expected {what} to be floating point or complex, but got: {x.dtype}")
    check_tangent(tensor, tangent)
    if tensor.dtype is not tangent.dtype:
        raise RuntimeError(f"Expected tangent to have the same dtype as the primal: {tensor.dtype} but got: {tangent.dtype}")
    return current.dual(current.value(tensor), tangent)


def unpack_dual(tensor: Any, *, level: int | None = None) -> UnpackedDualTensor:
    """(primal, tangent) of a tensor. The tangent is None outside a level and for a tensor without a tangent."""
    if not isinstance(tensor, DualTensor):
        return UnpackedDualTensor(tensor, None)
    return UnpackedDualTensor(tensor._value, tensor.tangent)


__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]
