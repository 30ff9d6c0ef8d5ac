"""Parameter and Buffer: tensors that a Module registers when they are assigned to an attribute.

A Parameter is a Tensor whose meta word carries the IS_PARAM bit: the C side then counts every change
of its metadata or data pointer in the epoch that compiled code checks.
"""
from __future__ import annotations

from typing import Any

from eager import _native
from eager._tensor.tensor import Tensor
from eager._tensor.torch_function import _disabled_torch_function_impl, subclasses_off
from eager.base import dtypes
from eager.base.device import device as torch_device
from eager.base.flags import check_flags as _check_flags
from eager.optable.table import OPS

REQUIRES_GRAD_FLAG = 1 << 32
FAKE_FLAG = 1 << 33
IS_PARAM_FLAG = 1 << 34


def _empty() -> Tensor:
    return _native.empty(8, (0,), (1,))  # float32, torch's `torch.empty(0)`


class _ParameterMeta(type):
    """Makes `isinstance(t, Parameter)` true also for parameters made from a custom Tensor subclass."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if type.__instancecheck__(cls, instance):
            return True
        return cls is Parameter and isinstance(instance, Tensor) and bool(instance._is_param)


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that appears in a Module's `parameters()` once it is assigned as an attribute.

    data: any tensor; the parameter shares its memory and drops its history. requires_grad: True by default.
    Raises: RuntimeError for requires_grad=True with a dtype other than floating point or complex.
    """

    __torch_function__ = _disabled_torch_function_impl
    _shown_as = "tensor"

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        if data is None:
            data = _empty()
        if not isinstance(data, Tensor):
            raise AttributeError(f"'{type(data).__name__}' object has no attribute 'detach': Parameter takes a Tensor")
        kind = type(data)
        if kind is not Tensor and not issubclass(kind, Parameter):
            return _alias_as(kind, data, requires_grad)  # keeps a custom subclass
        return _alias_as(cls, data, requires_grad)

    def __init__(self, data: Tensor | None = None, requires_grad: bool = True) -> None:
        """`__new__` does all the work."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        found = memo.get(id(self))
        if found is None:
            found = type(self)(OPS["clone"](self.detach()), self.requires_grad)
            memo[id(self)] = found
        return found

    def __repr__(self) -> str:
        text = Tensor.__repr__(self)
        return "Parameter containing:\n" + (text if type(self) is Parameter else f"Parameter({text})")

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _rebuild_parameter, (self.detach(), self.requires_grad, dict(self.__dict__))


def _alias_as(kind: type[Any], data: Tensor, requires_grad: bool) -> Any:
    """A leaf of class `kind` over the memory of `data`, marked as a parameter."""
    if type(requires_grad) is not bool:
        _check_flags("_make_subclass", require_grad=requires_grad)
    if requires_grad and not (data.dtype.is_floating_point or data.dtype.is_complex):
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    flags = IS_PARAM_FLAG | (data._meta_word & FAKE_FLAG) | (REQUIRES_GRAD_FLAG if requires_grad else 0)
    with subclasses_off():
        return _native.new_tensor(kind, data.untyped_storage(), data.dtype.code, tuple(data.shape), data.stride(),
                            data.storage_offset(), flags)  # fmt: skip


def _rebuild_parameter(data: Tensor, requires_grad: bool, attributes: dict[str, Any]) -> Parameter:
    p = Parameter(data, requires_grad)
    p.__dict__.update(attributes)
    return p


class _BufferMeta(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        if type.__instancecheck__(cls, instance):
            return True
        return cls is Buffer and isinstance(instance, Tensor) and instance.__dict__.get("_is_buffer", False)


class Buffer(Tensor, metaclass=_BufferMeta):
    """A tensor that a Module registers as a buffer when it is assigned as an attribute.

    data: any tensor. persistent: include the buffer in the module's `state_dict`.
    The result is a plain Tensor that shares the memory of `data` and carries two marker attributes.
    """

    __torch_function__ = _disabled_torch_function_impl

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Any:
        t = (_empty() if data is None else data).detach()
        t.requires_grad_(data.requires_grad if data is not None else False)
        t.__dict__["persistent"] = persistent
        t.__dict__["_is_buffer"] = True
        return t


def _nothing(device: Any, dtype: Any) -> Tensor:
    """A tensor of no elements."""
    return OPS["empty"]((0,), dtypes.chosen(dtype, _empty().dtype), None if device is None else torch_device(device))


class UninitializedTensorMixin:
    """Common part of lazy parameters and buffers: a tensor of no elements until `materialize` sets a shape."""

    def materialize(self: Any, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Become an ordinary parameter or buffer of `shape`, with undefined contents."""
        fresh = OPS["empty"](tuple(shape), dtypes.chosen(dtype, self.dtype), device or self.device)
        self.data = fresh
        self.__class__ = Parameter if isinstance(self, UninitializedParameter) else Tensor

    @property
    def shape(self) -> Any:
        """Raises RuntimeError: the tensor has no shape yet."""
        raise RuntimeError("Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
                           "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. Call "
                           "`forward` to initialize the parameters before accessing their attributes.")  # fmt: skip

    def share_memory_(self: Any) -> Any:
        """Raises RuntimeError: the tensor has no memory yet."""
        raise RuntimeError("Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the parameters "
                           "before calling `module.share_memory()`.")  # fmt: skip

    def detach(self: Any) -> Tensor:
        """A plain tensor of no elements."""
        return _native.new_tensor(None, self.untyped_storage(), self.dtype.code, (0,), (1,))

    def __deepcopy__(self: Any, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.device, self.dtype)
        return memo[id(self)]

    def __copy__(self: Any) -> Any:
        return type(self)(self.requires_grad, self.device, self.dtype)

    def __reduce_ex__(self: Any, protocol: Any) -> Any:
        return type(self), (self.requires_grad, self.device, self.dtype)


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape is not known yet; a lazy module materialises it at its first call."""

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> UninitializedParameter:
        return _alias_as(cls, _nothing(device, dtype), requires_grad)

    def __init__(self, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> None:
        """`__new__` does all the work."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer whose shape is not known yet."""

    __torch_function__ = _disabled_torch_function_impl

    def __new__(cls, requires_grad: bool = False, device: Any = None, dtype: Any = None,
                persistent: bool = True) -> UninitializedBuffer:  # fmt: skip
        data = _nothing(device, dtype)
        t = _native.new_tensor(cls, data.untyped_storage(), data.dtype.code, (0,), (1,))
        t.__dict__["persistent"] = persistent
        t.__dict__["_is_buffer"] = True
        return t

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


def is_lazy(param: Any) -> bool:
    """Whether `param` is an uninitialised parameter or buffer."""
    return isinstance(param, UninitializedTensorMixin)
