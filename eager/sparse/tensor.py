"""SparseTensor: its parts, its conversion to dense form, dtypes and devices.

Owns the class, its coalescing and its printed form. `geometry` and `arithmetic` compute with it; `calls` attaches
these functions as methods and dispatches torch's functions to them.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from eager._tensor import text as printing
from eager._tensor.tensor import Size, Tensor
from eager.base import dtypes
from eager.base.memory_format import layout, sparse_coo
from eager.optable.table import OPS


def _of_values(name: str) -> Any:
    """A property of SparseTensor: the attribute `name` of the values."""
    return property(lambda self: getattr(self._elements, name))


def _result_of_values(name: str) -> Callable[[Any], Any]:
    """A method of SparseTensor: the result of the method `name` of the values."""
    return lambda self: getattr(self._elements, name)()


class SparseTensor:
    """A tensor of `size`, zero except at the columns of `indices` (d, n), int64, where it has `values` (n, *rest).

    The first d dims are sparse, the others dense. Positions may repeat until it is coalesced: their values add up.
    """

    is_sparse = True
    is_sparse_csr = is_quantized = is_mkldnn = is_nested = is_meta = is_fake = retains_grad = _is_param = False
    layout: layout = sparse_coo
    __torch_function__: Callable[..., Any]  # set in `calls`
    # isinstance(t, torch.Tensor) holds, as in torch; its type differs, so code for dense memory rejects it.
    __class__ = property(lambda self: Tensor)

    def __init__(self, indices: Any, values: Any, size: Sequence[int], coalesced: bool = False) -> None:
        self._positions = indices
        self._elements = values
        self.shape = Size(size)
        self._is_coalesced = coalesced

    # ---- parts ----

    def indices(self) -> Any:
        """Positions, (sparse dims, n). Raises RuntimeError unless coalesced."""
        _need_coalesced(self, "indices")
        return self._positions

    def values(self) -> Any:
        """Values, (n, *dense dims). Raises RuntimeError unless coalesced."""
        _need_coalesced(self, "values")
        return self._elements

    def _indices(self) -> Any:
        return self._positions

    def _values(self) -> Any:
        return self._elements

    def _nnz(self) -> int:
        return int(self._elements.shape[0])

    def is_coalesced(self) -> bool:
        """Whether the positions are sorted and unique."""
        return self._is_coalesced

    def _coalesced_(self, coalesced: bool) -> SparseTensor:
        """Declare that the positions are sorted and unique, or that they may not be."""
        self._is_coalesced = bool(coalesced)
        return self

    def sparse_dim(self) -> int:
        """The number of sparse dims."""
        return int(self._positions.shape[0])

    def dense_dim(self) -> int:
        """The number of dense dims."""
        return int(self._elements.ndim) - 1

    def rows(self) -> list[Any]:
        """The positions as one tensor (n,) per sparse dim."""
        return [OPS["select"](self._positions, 0, k) for k in range(self.sparse_dim())]

    dtype, device, grad_fn = _of_values("dtype"), _of_values("device"), _of_values("grad_fn")
    requires_grad, is_cuda, is_leaf = _of_values("requires_grad"), _of_values("is_cuda"), _of_values("is_leaf")

    @property
    def ndim(self) -> int:
        """The number of dims."""
        return len(self.shape)

    @property
    def grad(self) -> SparseTensor | None:
        """The gradient of the values, at the same positions."""
        g = self._elements.grad
        return None if g is None else self.with_values(g)

    T = mT = property(lambda self: self.t())
    data = property(lambda self: self.detach())

    def dim(self) -> int:
        """The number of dims."""
        return len(self.shape)

    def size(self, dim: int | None = None) -> Any:
        """The size, or the size of one dim."""
        return self.shape if dim is None else self.shape[dim]

    def numel(self) -> int:
        """The number of elements, zeros included."""
        return self.shape.numel()

    element_size = _result_of_values("element_size")
    is_floating_point, is_complex = _result_of_values("is_floating_point"), _result_of_values("is_complex")

    def is_pinned(self, device: Any = None) -> bool:
        """Always False."""
        return False

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Always False: there is no dense memory."""
        return False

    def stride(self, dim: int | None = None) -> Any:
        """Zeros: there is no dense memory."""
        return (0,) * self.ndim if dim is None else 0

    def with_values(self, values: Any) -> SparseTensor:
        """A tensor with other values at the same positions."""
        return SparseTensor(self._positions, values, self.shape, self._is_coalesced)

    def take(self, other: SparseTensor) -> SparseTensor:
        """Assume the parts of `other` and return self; the last step of every in-place function."""
        self._positions, self._elements = other._positions, other._elements
        self.shape, self._is_coalesced = other.shape, other._is_coalesced
        return self

    # ---- conversions ----

    def coalesce(self) -> SparseTensor:
        """The same tensor with sorted, unique positions."""
        if self._is_coalesced:
            return self
        if not self._nnz():  # also if a dim has size 0, which leaves no positions
            return SparseTensor(self._positions, self._elements, self.shape, True)
        places, inverse, _ = OPS["unique"](linear_positions(self), None)
        elements = OPS["full"]((places.shape[0], *self._elements.shape[1:]), 0, self.dtype, self.device)
        elements = OPS["index_add"](elements, 0, inverse, self._elements)
        rows, rest = [], places
        for n in reversed(self.shape[: self.sparse_dim()]):
            rows.append(OPS["remainder"](rest, n))
            rest = OPS["floor_divide"](rest, n)
        positions = OPS["stack"](rows[::-1], 0) if rows else self._positions[:, : places.shape[0]]
        return SparseTensor(positions, elements, self.shape, True)

    def to_dense(self, dtype: Any = None, *, masked_grad: bool | None = None) -> Any:
        """The tensor in dense form."""
        count = math.prod(self.shape[: self.sparse_dim()])
        blank = OPS["full"]((count, *self._elements.shape[1:]), 0, self.dtype, self.device)
        dense = OPS["view"](OPS["index_add"](blank, 0, linear_positions(self), self._elements), tuple(self.shape))
        return dense if dtype is None else OPS["to_dtype"](dense, dtype)

    def add_into(self, dense: Any, scale: Any = 1) -> Any:
        """dense += scale * self, in place, for a dense tensor of the same size. Returns: `dense`."""
        count = math.prod(self.shape[: self.sparse_dim()])
        flat = OPS["view"](dense, (count, *self.shape[self.sparse_dim() :]))
        OPS["index_add_"](flat, 0, linear_positions(self), self._elements if scale == 1 else self._elements * scale)
        return dense

    def to(self, *args: Any, **kwargs: Any) -> SparseTensor:
        """The tensor on another device or in another dtype."""
        elements = self._elements.to(*args, **kwargs)
        return SparseTensor(self._positions.to(elements.device), elements, self.shape, self._is_coalesced)

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """torch's name for the class of such tensors, or the tensor in another dtype."""
        if dtype is None:
            return self._elements.type().replace("torch.", "torch.sparse.", 1)
        return self.with_values(self._elements.type(dtype))

    def cpu(self) -> SparseTensor:
        """The tensor on the CPU."""
        return self.to("cpu")

    def cuda(self, device: Any = None) -> SparseTensor:
        """The tensor on a CUDA device."""
        return self.to("cuda" if device is None else device)

    def clone(self, *, memory_format: Any = None) -> SparseTensor:
        """A copy."""
        return SparseTensor(self._positions.clone(), self._elements.clone(), self.shape, self._is_coalesced)

    def detach(self) -> SparseTensor:
        """The tensor without history, sharing memory."""
        return self.with_values(self._elements.detach())

    def new_tensor(self, data: Any, **kwargs: Any) -> Any:
        """A dense tensor of `data`, by default with this dtype and device."""
        return self._elements.new_tensor(data, **kwargs)

    # ---- in place ----

    def requires_grad_(self, requires_grad: bool = True) -> SparseTensor:
        """Set whether the values require a gradient."""
        self._elements.requires_grad_(requires_grad)
        return self

    def detach_(self) -> SparseTensor:
        """Drop the history of the values, in place."""
        self._elements = self._elements.detach()
        return self

    def zero_(self) -> SparseTensor:
        """Remove all elements, in place."""
        return self.take(SparseTensor(self._positions[:, :0], self._elements.detach()[:0], self.shape, True))

    # ---- special methods ----

    def __getattr__(self, name: str) -> Any:
        # A method that only Tensor has raises when it is called, with its name.
        if not name.startswith("_") and callable(getattr(Tensor, name, None)):
            return partial(_refuse, name)
        raise AttributeError(f"'SparseTensor' object has no attribute '{name}'")

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-d tensor")
        return int(self.shape[0])

    def item(self) -> Any:
        """The element of a tensor that has one."""
        return _sum_of_one(self).item()

    def __bool__(self) -> bool:
        if self.numel() != 1:
            count = "no" if self.numel() == 0 else "more than one"
            raise RuntimeError(f"Boolean value of Tensor with {count} value{'s' if count == 'no' else ''} is ambiguous")
        return bool(_sum_of_one(self))

    is_nonzero = __bool__

    def __reduce_ex__(self, protocol: Any) -> Any:
        return SparseTensor, (self._positions, self._elements, self.shape, self._is_coalesced)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        inner, values = _text(self._positions, "tensor(indices=tensor("), _text(self._elements, "       values=tensor(")
        more = "" if self.device.type == "cpu" else f"device='{self.device}', "
        kind = "" if self.dtype in (dtypes.get_default_dtype(), dtypes.int64, dtypes.bool_) else f", dtype={self.dtype}"
        grad = ", requires_grad=True" if self.requires_grad else ""
        return (f"tensor(indices=tensor({inner}),\n       values=tensor({values}),\n       {more}size={tuple(self.shape)}, "
                f"nnz={self._nnz()}{kind}, layout=torch.sparse_coo{grad})")  # fmt: skip


def linear_positions(t: SparseTensor) -> Any:
    """Positions in the flattened sparse dims, int64, (n,)."""
    result, step = None, 1
    for row, n in zip(reversed(t.rows()), reversed(t.shape[: t.sparse_dim()]), strict=True):
        part = row * step
        result = part if result is None else result + part
        step *= n
    return OPS["full"]((t._nnz(),), 0, dtypes.int64, t.device) if result is None else result


def _need_coalesced(t: SparseTensor, what: str) -> None:
    if not t.is_coalesced():
        raise RuntimeError(f"Cannot get {what} on an uncoalesced tensor, please call .coalesce() first")


def _sum_of_one(t: SparseTensor) -> Any:
    """The element of a tensor of one element, as a dense tensor ()."""
    if t.numel() != 1:
        raise RuntimeError(f"a Tensor with {t.numel()} elements cannot be converted to Scalar")
    return t._values().sum()


def _refuse(name: str, *args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError(f"Tensor.{name}: not implemented for sparse tensors; convert the tensor with to_dense()")


def _text(part: Any, before: str) -> str:
    """The printed elements of indices or values after the text `before`."""
    if part.numel():
        return printing.values_text(part, len(before))
    return "[]" if part.ndim == 1 else f"[], size={tuple(part.shape)}"


def _without_memory(name: str, error: type[Exception], text: str) -> Callable[..., Any]:
    def refuse(self: SparseTensor, *args: Any, **kwargs: Any) -> Any:
        raise error(text)

    refuse.__name__ = refuse.__qualname__ = name
    return refuse


def _to_dtype(name: str) -> Callable[[SparseTensor], SparseTensor]:
    def call(self: SparseTensor) -> SparseTensor:
        return self.with_values(getattr(self._elements, name)())

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"The tensor in the dtype {name}."
    return call


# No single piece of memory holds the elements in order.
for _name, _error, _said in (
    ("data_ptr", RuntimeError, "Cannot access data pointer of Tensor that doesn't have storage"),
    ("tolist", RuntimeError, "Cannot access data pointer of Tensor that doesn't have storage"),
    ("storage", NotImplementedError, "Cannot access storage of SparseTensorImpl"),
    ("untyped_storage", NotImplementedError, "Cannot access storage of SparseTensorImpl"),
    ("numpy", TypeError, "can't convert Sparse layout tensor to numpy. Use Tensor.to_dense() first."),
    ("contiguous", RuntimeError, "unsupported memory format option Contiguous"),
    ("reshape", RuntimeError, "reshape is not implemented for sparse tensors"),
    ("flatten", RuntimeError, "reshape is not implemented for sparse tensors"),
    ("expand", RuntimeError, "expand is unsupported for Sparse tensors"),
    ("repeat", RuntimeError, "expand is unsupported for Sparse tensors"),
):
    setattr(SparseTensor, _name, _without_memory(_name, _error, _said))
for _name in ("bfloat16", "bool", "byte", "char", "double", "float", "half", "int", "long", "short"):
    setattr(SparseTensor, _name, _to_dtype(_name))
