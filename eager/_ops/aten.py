"""The functions and schemas of the operators of `torch.ops.aten`.

Owns the operators that torch has only there (`slice`, `index`, `sym_size`, ...). Every other name is the function or
method of Tensor with the same name (`linalg_inv` is `linalg.inv`). These functions distinguish overloads by
their arguments, so all overloads of a name share one function.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

from eager import fft, linalg, nn, special
from eager._ops.tags import Tag
from eager._tensor.tensor import Tensor
from eager.autograd.grad_mode import set_grad_enabled
from eager.functions import FUNCTIONS
from eager.nn import functional
from eager.optable.signatures import schema_lines
from eager.optable.table import OPS
from eager.tape.engine import grad

__all__ = ["find", "schemas"]

# Functions that only `nn.functional` has and whose parameters equal the op's.
_OF_FUNCTIONAL: Final = frozenset(
    "elu gelu glu hardsigmoid hardswish hardtanh leaky_relu linear mish one_hot pad relu6 scaled_dot_product_attention silu "
    "softplus softshrink".split()
)  # fmt: skip

_NAMESPACES: Final = {"linalg": linalg, "special": special, "fft": fft}  # by the prefix of the operator's name


@functools.cache
def _all_schemas() -> dict[str, dict[str, tuple[str, tuple[Tag, ...]]]]:
    """By name and overload: the schema and the tags of the operator in torch 2.13."""
    found: dict[str, dict[str, tuple[str, tuple[Tag, ...]]]] = {}
    for name, lines in schema_lines().items():
        for line in lines:
            schema, _, tags = line.partition(" ; ")
            overload = schema[: schema.index("(")].partition(".")[2]
            known = (*(Tag[t] for t in tags.split() if t != "view"), Tag.pt2_compliant_tag)
            found.setdefault(name, {})[overload or "default"] = f"aten::{schema}", known
    return found


def schemas(name: str) -> dict[str, tuple[str, tuple[Tag, ...]]]:
    """Schema and tags of each overload of `aten::name`, in torch's order."""
    return _all_schemas().get(name, {})


def find(name: str) -> Callable[..., Any] | None:
    """The function that computes `aten::name`, or None."""
    if name.startswith("__"):
        return None
    for table in (_HERE_ONLY, FUNCTIONS, nn.functional.TOP_LEVEL):
        if name in table:
            return table[name]
    if name in _OF_FUNCTIONAL:
        return getattr(functional, name)
    prefix, _, rest = name.partition("_")
    if prefix in _NAMESPACES:
        return getattr(_NAMESPACES[prefix], rest, None)
    method = getattr(Tensor, name, None)
    return method if callable(method) else None


# -- operators that only aten has ------------------------------------------------------------------------------------
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
    """Gradients of the input, the weight and the bias that `output_mask` selects; None for the others."""
    leaves = [t.detach().requires_grad_(want) for t, want in zip((input, weight), output_mask, strict=False)]
    with set_grad_enabled(True):
        y = OPS["convolution"](*leaves, None, stride, padding, dilation, transposed, output_padding, groups)
    differentiated = [t for t in leaves if t.requires_grad]
    found = iter(grad(y, differentiated, grad_output) if differentiated else ())
    of_input, of_weight = (next(found) if t.requires_grad else None for t in leaves)
    of_bias = grad_output.sum([0, *range(2, grad_output.ndim)]) if output_mask[2] else None
    return of_input, of_weight, of_bias


_METHODS: Final[Any] = Tensor  # its methods come from a table that type checkers do not see
_HERE_ONLY: Final[dict[str, Callable[..., Any]]] = {
    "slice": _slice, "index": _index, "index_put": _index_put, "index_put_": _index_put_, "_to_copy": _to_copy, "alias": _alias,
    "sym_size": _size, "sym_stride": _stride, "sym_numel": _METHODS.numel, "sym_storage_offset": _METHODS.storage_offset,
    "_softmax": _softmax, "_log_softmax": _log_softmax, "_sparse_addmm": FUNCTIONS["addmm"], "_conj": _METHODS.conj,
    "_unsafe_view": _METHODS.view, "_reshape_alias": _METHODS.as_strided, "_local_scalar_dense": _METHODS.item,
    "_pin_memory": _METHODS.pin_memory, "lift_fresh": _alias, "lift_fresh_copy": _METHODS.clone,
    "convolution_backward": _convolution_backward,
}  # fmt: skip
