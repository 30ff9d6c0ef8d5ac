"""SparseTensor: what one consists of, its other forms, and moves between dtypes and devices.

Owns: the class, its coalescing, its text. What is computed with it stands in `geometry` and `arithmetic`; `calls` makes
those functions its methods and the answer of torch's functions.
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
    return property(lambda self: getattr(self._held, name))


def _result_of_values(name: str) -> Callable[[Any], Any]:
    """A method of SparseTensor: the result of the method `name` of the values."""
    return lambda self: getattr(self._held, name)()


class SparseTensor:
    """A tensor of `size` that is zero but at the columns of `indices` (d, n), int64, where it has `values` (n, *rest).

    The first d dims are sparse, the rest dense. Positions may repeat until it is coalesced: their values count together.
    """

    is_sparse = True
    is_sparse_csr = is_quantized = is_mkldnn = is_nested = is_meta = is_fake = retains_grad = _is_param = False
    layout: layout = sparse_coo
    __torch_function__: Callable[..., Any]  # `calls` gives it
    # isinstance(t, torch.Tensor) holds, as in torch. In truth it is of another type, which no code for dense memory takes.
    __class__ = property(lambda self: Tensor)

    def __init__(self, indices: Any, values: Any, size: Sequence[int], coalesced: bool = False) -> None:
        self._at = indices
        self._held = values
        self.shape = Size(size)
        self._is_coalesced = coalesced

    # ---- parts ----

    def indices(self) -> Any:
        """Positions, (sparse dims, n). Raises RuntimeError unless coalesced."""
        _need_coalesced(self, "indices")
        return self._at

    def values(self) -> Any:
        """Values, (n, *dense dims). Raises RuntimeError unless coalesced."""
        _need_coalesced(self, "values")
        return self._held

    def _indices(self) -> Any:
        return self._at

    def _values(self) -> Any:
        return self._held

    def _nnz(self) -> int:
        return int(self._held.shape[0])

    def is_coalesced(self) -> bool:
        """Whether positions are in order and none repeats."""
        return self._is_coalesced

    def _coalesced_(self, coalesced: bool) -> SparseTensor:
        """Take it from the caller that positions are in order and none repeats, or that they may not be."""
        self._is_coalesced = bool(coalesced)
        return self

    def sparse_dim(self) -> int:
        return int(self._at.shape[0])

    def dense_dim(self) -> int:
        return int(self._held.ndim) - 1

    def rows(self) -> list[Any]:
        """The positions, one tensor (n,) for each sparse dim."""
        return [OPS["select"](self._at, 0, k) for k in range(self.sparse_dim())]

    dtype, device, grad_fn = _of_values("dtype"), _of_values("device"), _of_values("grad_fn")
    requires_grad, is_cuda, is_leaf = _of_values("requires_grad"), _of_values("is_cuda"), _of_values("is_leaf")

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def grad(self) -> SparseTensor | None:
        """The gradient of the values, at the same positions."""
        g = self._held.grad
        return None if g is None else self.with_values(g)

    T = mT = property(lambda self: self.t())
    data = property(lambda self: self.detach())

    def dim(self) -> int:
        return len(self.shape)

    def size(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[dim]

    def numel(self) -> int:
        return self.shape.numel()

    element_size = _result_of_values("element_size")
    is_floating_point, is_complex = _result_of_values("is_floating_point"), _result_of_values("is_complex")

    def is_pinned(self, device: Any = None) -> bool:
        return False

    def is_contiguous(self, memory_format: Any = None) -> bool:
        return False

    def stride(self, dim: int | None = None) -> Any:
        """Zeros: there is no memory to stride through."""
        return (0,) * self.ndim if dim is None else 0

    def with_values(self, values: Any) -> SparseTensor:
        """Other values at the same positions."""
        return SparseTensor(self._at, values, self.shape, self._is_coalesced)

    def take(self, other: SparseTensor) -> SparseTensor:
        """Become what `other` is, and return it: how every write in place ends."""
        self._at, self._held = other._at, other._held
        self.shape, self._is_coalesced = other.shape, other._is_coalesced
        return self

    # ---- other forms ----

    def linear(self) -> Any:
        """Positions in the flattened sparse dims, (n,)."""
        result, step = None, 1
        for row, n in zip(reversed(self.rows()), reversed(self.shape[: self.sparse_dim()]), strict=True):
            part = row * step
            result = part if result is None else result + part
            step *= n
        return OPS["full"]((self._nnz(),), 0, dtypes.int64, self.device) if result is None else result

    def coalesce(self) -> SparseTensor:
        """The same tensor with positions in order, each once."""
        if self._is_coalesced:
            return self
        if not self._nnz():  # also where a dim of size 0 leaves no position to speak of
            return SparseTensor(self._at, self._held, self.shape, True)
        places, inverse, _ = OPS["unique"](self.linear(), None)
        held = OPS["full"]((places.shape[0], *self._held.shape[1:]), 0, self.dtype, self.device)
        held = OPS["index_add"](held, 0, inverse, self._held)
        rows, rest = [], places
        for n in reversed(self.shape[: self.sparse_dim()]):
            rows.append(OPS["remainder"](rest, n))
            rest = OPS["floor_divide"](rest, n)
        at = OPS["stack"](rows[::-1], 0) if rows else self._at[:, : places.shape[0]]
        return SparseTensor(at, held, self.shape, True)

    def to_dense(self, dtype: Any = None, *, masked_grad: bool | None = None) -> Any:
        """The tensor with its zeros."""
        count = math.prod(self.shape[: self.sparse_dim()])
        blank = OPS["full"]((count, *self._held.shape[1:]), 0, self.dtype, self.device)
        dense = OPS["view"](OPS["index_add"](blank, 0, self.linear(), self._held), tuple(self.shape))
        return dense if dtype is None else OPS["to_dtype"](dense, dtype)

    def add_into(self, dense: Any, scale: Any = 1) -> Any:
        """`dense` += scale * this, in place. dense: a tensor of this size. Returns it."""
        count = math.prod(self.shape[: self.sparse_dim()])
        flat = OPS["view"](dense, (count, *self.shape[self.sparse_dim() :]))
        OPS["index_add_"](flat, 0, self.linear(), self._held if scale == 1 else self._held * scale)
        return dense

    def to(self, *args: Any, **kwargs: Any) -> SparseTensor:
        held = self._held.to(*args, **kwargs)
        return SparseTensor(self._at.to(held.device), held, self.shape, self._is_coalesced)

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The name of the class of such tensors in torch, or the tensor in another dtype."""
        return self._held.type().replace("torch.", "torch.sparse.", 1) if dtype is None else self.with_values(self._held.type(dtype))

    def cpu(self) -> SparseTensor:
        return self.to("cpu")

    def cuda(self, device: Any = None) -> SparseTensor:
        return self.to("cuda" if device is None else device)

    def clone(self, *, memory_format: Any = None) -> SparseTensor:
        return SparseTensor(self._at.clone(), self._held.clone(), self.shape, self._is_coalesced)

    def detach(self) -> SparseTensor:
        return self.with_values(self._held.detach())

    def new_tensor(self, data: Any, **kwargs: Any) -> Any:
        """A dense tensor of `data`, by default of this dtype and device."""
        return self._held.new_tensor(data, **kwargs)

    # ---- in place ----

    def requires_grad_(self, requires_grad: bool = True) -> SparseTensor:
        self._held.requires_grad_(requires_grad)
        return self

    def detach_(self) -> SparseTensor:
        self._held = self._held.detach()
        return self

    def zero_(self) -> SparseTensor:
        """Forget every element."""
        return self.take(SparseTensor(self._at[:, :0], self._held.detach()[:0], self.shape, True))

    # ---- Python's own ----

    def __getattr__(self, name: str) -> Any:
        # What a Tensor has and this has not: refused when it is called, by a name that says what is missing.
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
            what = "no" if self.numel() == 0 else "more than one"
            raise RuntimeError(f"Boolean value of Tensor with {what} value{'s' if what == 'no' else ''} is ambiguous")
        return bool(_sum_of_one(self))

    is_nonzero = __bool__

    def __reduce_ex__(self, protocol: Any) -> Any:
        return SparseTensor, (self._at, self._held, self.shape, self._is_coalesced)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        inner, values = _text(self._at, "tensor(indices=tensor("), _text(self._held, "       values=tensor(")
        more = "" if self.device.type == "cpu" else f"device='{self.device}', "
        kind = "" if self.dtype in (dtypes.get_default_dtype(), dtypes.int64, dtypes.bool_) else f", dtype={self.dtype}"
        grad = ", requires_grad=True" if self.requires_grad else ""
        return (f"tensor(indices=tensor({inner}),\n       values=tensor({values}),\n       {more}size={tuple(self.shape)}, "
                f"nnz={self._nnz()}{kind}, layout=torch.sparse_coo{grad})")  # fmt: skip


def _need_coalesced(t: SparseTensor, what: str) -> None:
    if not t.is_coalesced():
        raise RuntimeError(f"Cannot get {what} on an uncoalesced tensor, please call .coalesce() first")


def _sum_of_one(t: SparseTensor) -> Any:
    """The element of a tensor of one element, as a dense tensor ()."""
    if t.numel() != 1:
        raise RuntimeError(f"a Tensor with {t.numel()} elements cannot be converted to Scalar")
    return t._values().sum()


def _refuse(name: str, *args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError(f"Tensor.{name}: not implemented for sparse tensors; to_dense() gives one that has it")


def _text(part: Any, before: str) -> str:
    """The elements of indices or values as they print behind `before`."""
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
        return self.with_values(getattr(self._held, name)())

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"The tensor in the dtype {name}."
    return call


# There is no one piece of memory that holds the elements in order.
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
