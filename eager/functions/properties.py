"""Questions about a tensor that read no elements (or one), as functions and as methods."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eager import _native
from eager.base import dtypes
from eager.base.spec import TensorSpec, broadcast_shapes
from eager.functions.creation import check_layout
from eager.optable.declaration import sum_to as _sum_to
from eager.optable.memory import empty
from eager.optable.table import OPS

TensorBase = _native.TensorBase


def is_nonzero(input: Any) -> bool:
    """Whether the single element is not zero. Raises RuntimeError for none or several."""
    if input.numel() != 1:
        raise RuntimeError("Boolean value of Tensor with no values is ambiguous" if not input.numel() else
                           "Boolean value of Tensor with more than one value is ambiguous")  # fmt: skip
    return bool(input.item())


def is_same_size(input: Any, other: Any) -> bool:
    """Whether both have the same shape."""
    return tuple(input.shape) == tuple(other.shape)


def is_signed(input: Any) -> bool:
    """Whether the dtype has negative numbers."""
    return bool(input.dtype.is_signed)


def is_conj(input: Any) -> bool:
    """False: conjugates are made at once here, never kept as a flag."""
    return False


def is_inference(input: Any) -> bool:
    """Whether the tensor was made under inference mode."""
    return bool(input.is_inference())


def resolve_neg(input: Any) -> Any:
    """The tensor itself: negatives are made at once here."""
    return input


def get_device(input: Any) -> int:
    """The index of the tensor's CUDA device; -1 on the CPU."""
    return int(input.get_device())


def typename(obj: Any) -> str:
    """The name of a tensor's type, as `Tensor.type()` gives it, or of any object's class with its module."""
    if isinstance(obj, TensorBase):
        return str(obj.type())  # type: ignore[attr-defined]
    kind = obj if isinstance(obj, type) else type(obj)
    module = getattr(kind, "__module__", "") or ""
    name = getattr(kind, "__qualname__", kind.__name__)
    return name if module in ("", "builtins", "__builtin__") else f"{module}.{name}"


def dim_order(self: Any) -> tuple[int, ...]:
    """The dims from outermost to innermost in memory."""
    return tuple(sorted(range(self.ndim), key=lambda d: (-self.stride()[d], d)))


def sum_to_size(self: Any, *sizes: Any, size: Any = ()) -> Any:
    """Summed over the dims along which `size` broadcasts to this shape. Raises RuntimeError if it does not."""
    if sizes and size != ():
        raise TypeError("sum_to_size() got multiple values for argument 'size'")
    sizes = sizes or tuple(size)
    shape = tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes
    fits = len(shape) <= self.ndim and broadcast_shapes(shape, self.shape) == tuple(self.shape) if all(
        a in (1, b) for a, b in zip(reversed(shape), reversed(self.shape), strict=False)) else False  # fmt: skip
    if not fits:
        raise RuntimeError(f"size {{{list(shape)}}} is not expandable to size {{{list(self.shape)}}}.")
    return _sum_to(self, shape)


def apply_(self: Any, fn: Callable[[Any], Any]) -> Any:
    """Put `fn(element)` in the place of every element: Python, one by one, on the CPU only."""
    values = [fn(v) for v in self.reshape(-1).tolist()]
    return OPS["copy_"](self, self.new_tensor(values, dtype=self.dtype).reshape(tuple(self.shape)))


def map_(self: Any, other: Any, fn: Callable[[Any, Any], Any]) -> Any:
    """Put `fn(element, other's element)` in the place of every element; other broadcasts."""
    theirs = OPS["expand"](other, tuple(self.shape)).reshape(-1).tolist()
    values = [fn(a, b) for a, b in zip(self.reshape(-1).tolist(), theirs, strict=True)]
    return OPS["copy_"](self, self.new_tensor(values, dtype=self.dtype).reshape(tuple(self.shape)))


def new_empty_strided(self: Any, size: Any, stride: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False,
                      layout: Any = None, pin_memory: bool = False) -> Any:  # fmt: skip
    """An uninitialised tensor of the given geometry, with this tensor's dtype and device unless given."""
    check_layout(layout)
    where = self.device if device is None else type(self.device)(device)
    made = empty(TensorSpec(tuple(size), dtypes.chosen(dtype, self.dtype), tuple(stride), where))
    made = made.pin_memory() if pin_memory and where.type != "meta" else made
    return made.requires_grad_(requires_grad) if requires_grad else made


def resize_as_(self: Any, the_template: Any, *, memory_format: Any = None) -> Any:
    """`resize_` to the shape of another tensor."""
    return self.resize_(*the_template.shape, memory_format=memory_format)


_BOTH = {"is_nonzero": is_nonzero, "is_same_size": is_same_size, "is_conj": is_conj, "is_neg": is_conj, "resolve_neg": resolve_neg}
FUNCTIONS: dict[str, Any] = {
    **_BOTH, "is_signed": is_signed, "is_inference": is_inference, "get_device": get_device, "typename": typename,
    "resize_as_": resize_as_,
}  # fmt: skip
METHODS: dict[str, Any] = {
    **_BOTH, "dim_order": dim_order, "sum_to_size": sum_to_size, "apply_": apply_, "map_": map_,
    "resize_as_": resize_as_, "new_empty_strided": new_empty_strided,
}  # fmt: skip
