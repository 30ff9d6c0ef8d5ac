"""`torch.ops.aten`: the ops under the names of torch's operator library, such as `torch.ops.aten.add.Tensor`.

Owns what stands there only (`slice`, `index`, `sym_size`, ...). Every other name is the function, or the method of Tensor, that
has the same name; functions choose among overloads by their arguments, so all overloads of a name run the same one. Libraries
use overloads as keys of tables, too: each is one object.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from eager import nn
from eager.autograd.engine import grad
from eager.autograd.grad_mode import set_grad_enabled
from eager.functions import FUNCTIONS
from eager.nn import functional
from eager.optable.table import OPS
from eager.tensor import Tensor

__all__ = ["ATEN", "OpOverload", "OpOverloadPacket"]

# Functions of `nn.functional` alone whose parameters are those of the op.
_OF_FUNCTIONAL: Final = frozenset(
    "elu gelu glu hardsigmoid hardswish hardtanh leaky_relu linear mish one_hot pad relu6 scaled_dot_product_attention silu "
    "softplus softshrink".split()
)  # fmt: skip
# The part of an overload's name that says which of its arguments are tensors, numbers, dims, or given under which name.
_OVERLOADS: Final = frozenset(
    "default Tensor Scalar Tensor_Tensor Tensor_Scalar Scalar_Tensor Scalar_out Tensor_out out int int_out dim dims dim_max dim_min "
    "dim_IntList dim_DimnameList dim_int self other dtype dtype_out dtype_layout device prim_Device size names src value reduce "
    "value_reduce two two_out start start_step step sizes sections indices correction stable values p Tensor_mode Scalar_mode "
    "input IntList ScalarOpt_dim ScalarOpt_dim_dtype low low_dtype generator ScalarSelf ScalarSelfOther ScalarOther vec unary_out "
    "self_int self_Tensor self_tensor self_scalar Tensor_float float int_Scalar int_Tensor Tensor_int Dimname Storage padding bool "
    "complex".split()
)  # fmt: skip


class _Operator:
    """What is called as a function, and is one object wherever it is copied to. name: as it stands in `aten`."""

    def __init__(self, name: str, op: Callable[..., Any]) -> None:
        self.__name__ = name
        self.__module__ = "eager.ops.aten"
        self._op = op

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._op(*args, **kwargs)

    def __str__(self) -> str:
        return f"aten.{self.__name__}"

    def __deepcopy__(self, memo: Any) -> _Operator:
        return self


class OpOverload(_Operator):
    """One overload: called as the function that it is."""

    def __init__(self, packet: OpOverloadPacket, overload: str) -> None:
        super().__init__(f"{packet.__name__}.{overload}", packet._op)
        self.overloadpacket = packet
        self.namespace = "aten"
        self._overloadname = overload

    def name(self) -> str:
        """Name of the operator, "aten::add.Tensor"; without the overload where it is the only one."""
        return f"{self.overloadpacket._qualname}{'' if self._overloadname == 'default' else '.' + self._overloadname}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.overloadpacket}', overload='{self._overloadname}')>"


class OpOverloadPacket(_Operator):
    """All overloads of a name. Calling it lets the arguments choose; an attribute is the overload of that name."""

    def __init__(self, name: str, op: Callable[..., Any]) -> None:
        super().__init__(name, op)
        self._qualname = f"aten::{name}"

    def __getattr__(self, name: str) -> OpOverload:
        if name not in _OVERLOADS:
            raise AttributeError(f"The underlying op of '{self}' has no overload name '{name}'")
        overload = OpOverload(self, name)
        setattr(self, name, overload)
        return overload

    def overloads(self) -> list[str]:
        """Names of the overloads that were asked for so far."""
        return [name for name, value in vars(self).items() if isinstance(value, OpOverload)]

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"


class _Namespace:
    """`torch.ops.aten`. Raises: AttributeError for a name that no function or method has."""

    def __getattr__(self, name: str) -> OpOverloadPacket:
        op = _find(name)
        if op is None:
            raise AttributeError(f"'_OpNamespace' 'aten' object has no attribute '{name}'")
        packet = OpOverloadPacket(name, op)
        setattr(self, name, packet)
        return packet

    def __iter__(self) -> Iterator[str]:
        return (name for name, value in vars(self).items() if isinstance(value, OpOverloadPacket))

    def __repr__(self) -> str:
        return "<OpNamespace 'aten'>"


def _find(name: str) -> Callable[..., Any] | None:
    if name.startswith("__"):
        return None
    for table in (_HERE_ONLY, FUNCTIONS, nn.functional.TOP_LEVEL):
        if name in table:
            return table[name]
    if name in _OF_FUNCTIONAL:
        return getattr(functional, name)
    method = getattr(Tensor, name, None)
    return method if callable(method) else None


# -- what stands there only ------------------------------------------------------------------------------------------
def _slice(self: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    dim = dim + self.ndim if dim < 0 else dim
    return self[(slice(None),) * dim + (slice(start, end, step),)]


def _index(self: Tensor, indices: list[Tensor | None]) -> Tensor:
    return self[tuple(slice(None) if i is None else i for i in indices)]


def _index_put(self: Tensor, indices: list[Tensor | None], values: Tensor, accumulate: bool = False) -> Tensor:
    return _index_put_(self.clone(), indices, values, accumulate)


def _index_put_(self: Tensor, indices: list[Tensor | None], values: Tensor, accumulate: bool = False) -> Tensor:
    if None not in indices:
        return self.index_put_(tuple(indices), values, accumulate)
    if accumulate:
        raise NotImplementedError("aten.index_put_: accumulate=True with None among the indices is not supported; allowed: tensors")
    self[tuple(slice(None) if i is None else i for i in indices)] = values
    return self


def _to_copy(self: Tensor, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool | None = None,
             non_blocking: bool = False, memory_format: Any = None) -> Tensor:  # fmt: skip
    format_ = {} if memory_format is None else {"memory_format": memory_format}
    return self.to(dtype=dtype or self.dtype, device=device or self.device, non_blocking=non_blocking, copy=True, **format_)


def _size(self: Tensor, dim: int | None = None) -> Any:
    return self.size() if dim is None else self.size(dim)


def _stride(self: Tensor, dim: int | None = None) -> Any:
    return self.stride() if dim is None else self.stride(dim)


def _alias(self: Tensor) -> Tensor:
    return self.view(self.shape)


def _softmax(self: Tensor, dim: int, half_to_float: bool) -> Tensor:
    return functional.softmax(self.float() if half_to_float else self, dim)


def _log_softmax(self: Tensor, dim: int, half_to_float: bool) -> Tensor:
    return functional.log_softmax(self.float() if half_to_float else self, dim)


def _convolution_backward(grad_output: Tensor, input: Tensor, weight: Tensor, bias_sizes: list[int] | None, stride: Any,
                          padding: Any, dilation: Any, transposed: bool, output_padding: Any, groups: int,
                          output_mask: list[bool]) -> tuple[Tensor | None, Tensor | None, Tensor | None]:  # fmt: skip
    """Gradients for the input, the weight and the bias, as far as `output_mask` wants them."""
    wanted = [t.detach().requires_grad_(want) for t, want in zip((input, weight), output_mask, strict=False)]
    with set_grad_enabled(True):
        y = OPS["convolution"](*wanted, None, stride, padding, dilation, transposed, output_padding, groups)
    asked = [t for t in wanted if t.requires_grad]
    found = iter(grad(y, asked, grad_output) if asked else ())
    of_input, of_weight = (next(found) if t.requires_grad else None for t in wanted)
    of_bias = grad_output.sum([0, *range(2, grad_output.ndim)]) if output_mask[2] else None
    return of_input, of_weight, of_bias


_METHODS: Final[Any] = Tensor  # whose methods stand in a table that type checkers do not see
_HERE_ONLY: Final[dict[str, Callable[..., Any]]] = {
    "slice": _slice, "index": _index, "index_put": _index_put, "index_put_": _index_put_, "_to_copy": _to_copy, "alias": _alias,
    "sym_size": _size, "sym_stride": _stride, "sym_numel": _METHODS.numel, "sym_storage_offset": _METHODS.storage_offset,
    "_softmax": _softmax, "_log_softmax": _log_softmax, "_sparse_addmm": FUNCTIONS["addmm"], "_conj": _METHODS.conj,
    "_unsafe_view": _METHODS.view, "_reshape_alias": _METHODS.as_strided, "_local_scalar_dense": _METHODS.item,
    "_pin_memory": _METHODS.pin_memory, "lift_fresh": _alias, "lift_fresh_copy": _METHODS.clone,
    "convolution_backward": _convolution_backward,
}  # fmt: skip

ATEN: Final = _Namespace()
