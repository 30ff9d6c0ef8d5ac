"""`eager.sparse`: tensors in coordinate format (COO), as graph networks hold adjacency matrices.

A SparseTensor keeps the positions and the values of its elements and computes through the ops of dense tensors, so that
gradients reach its values and the dense operands. It is no `Tensor`: a function that does not know it refuses it.
`embedding(sparse=True)` gives its weight such a gradient, which SGD, Adagrad and SparseAdam descend by. The compressed
formats (CSR, CSC, BSR, BSC) are not here: asking for one raises NotImplementedError.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from eager import _native, dtypes, printing
from eager.functions import creation
from eager.memory_format import layout, sparse_coo
from eager.ops.table import OPS
from eager.promotion import result_type
from eager.spec import normalize_dim
from eager.tensor import Size, Tensor

TensorBase = _native.TensorBase


class SparseTensor:
    """A tensor of `size` that is zero but at the columns of `indices` (d, n), int64, where it has `values` (n, *rest).

    The first d dims are sparse, the rest dense. Positions may repeat until it is coalesced: their values count together.
    """

    is_sparse = True
    is_sparse_csr = is_quantized = is_mkldnn = False
    grad_fn = None
    layout: layout = sparse_coo

    def __init__(self, indices: Any, values: Any, size: Sequence[int], coalesced: bool = False) -> None:
        self._at = indices
        self._held = values
        self.shape = Size(size)
        self._is_coalesced = coalesced

    # ---- parts ----

    def indices(self) -> Any:
        """Positions, (sparse dims, n). Raises RuntimeError unless coalesced."""
        self._need_coalesced("indices")
        return self._at

    def values(self) -> Any:
        """Values, (n, *dense dims). Raises RuntimeError unless coalesced."""
        self._need_coalesced("values")
        return self._held

    def _indices(self) -> Any:
        return self._at

    def _values(self) -> Any:
        return self._held

    def _nnz(self) -> int:
        return int(self._held.shape[0])

    def _need_coalesced(self, what: str) -> None:
        if not self._is_coalesced:
            raise RuntimeError(f"Cannot get {what} on an uncoalesced tensor, please call .coalesce() first")

    def is_coalesced(self) -> bool:
        """Whether positions are in order and none repeats."""
        return self._is_coalesced

    def sparse_dim(self) -> int:
        return int(self._at.shape[0])

    def dense_dim(self) -> int:
        return int(self._held.ndim) - 1

    @property
    def dtype(self) -> Any:
        return self._held.dtype

    @property
    def device(self) -> Any:
        return self._held.device

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def requires_grad(self) -> bool:
        return bool(self._held.requires_grad)

    @property
    def is_cuda(self) -> bool:
        return bool(self._held.is_cuda)

    @property
    def grad(self) -> SparseTensor | None:
        """The gradient of the values, at the same positions."""
        g = self._held.grad
        return None if g is None else self.with_values(g)

    @property
    def is_leaf(self) -> bool:
        return bool(self._held.is_leaf)

    T = mT = property(lambda self: self.t())

    def __len__(self) -> int:
        return int(self.shape[0])

    def is_floating_point(self) -> bool:
        return bool(self._held.is_floating_point())

    def is_complex(self) -> bool:
        return bool(self._held.is_complex())

    def element_size(self) -> int:
        """Bytes of one element."""
        return int(self._held.element_size())

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The name of the class of such tensors in torch, or the tensor in another dtype."""
        return self._held.type().replace("torch.", "torch.sparse.", 1) if dtype is None else self.with_values(self._held.type(dtype))

    def dim(self) -> int:
        return len(self.shape)

    def size(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[dim]

    def numel(self) -> int:
        return self.shape.numel()

    def with_values(self, values: Any) -> SparseTensor:
        """Other values at the same positions."""
        return SparseTensor(self._at, values, self.shape, self._is_coalesced)

    # ---- other forms ----

    def _linear(self) -> Any:
        """Positions in the flattened sparse dims."""
        result, step = None, 1
        for d in reversed(range(self.sparse_dim())):
            part = OPS["select"](self._at, 0, d) * step
            result = part if result is None else result + part
            step *= self.shape[d]
        return OPS["full"]((self._nnz(),), 0, dtypes.int64, self.device) if result is None else result

    def coalesce(self) -> SparseTensor:
        """The same tensor with positions in order, each once."""
        if self._is_coalesced:
            return self
        places, inverse, _ = OPS["unique"](self._linear(), None)
        held = OPS["full"]((places.shape[0], *self._held.shape[1:]), 0, self.dtype, self.device)
        held = OPS["index_add"](held, 0, inverse, self._held)
        rows, rest = [], places
        for n in reversed(self.shape[: self.sparse_dim()]):
            rows.append(OPS["remainder"](rest, n))
            rest = OPS["floor_divide"](rest, n)
        return SparseTensor(OPS["stack"](rows[::-1], 0), held, self.shape, True)

    def copy_(self, source: SparseTensor, non_blocking: bool = False) -> SparseTensor:
        """Take the elements of `source` and their places, in the dtype and on the device of this one."""
        if not isinstance(source, SparseTensor):
            raise RuntimeError("copy_() between dense and sparse Tensors is not implemented! Found self type = "
                               f"{self.type()} and src type = {source.type()}")  # fmt: skip
        if source.shape != self.shape:
            raise RuntimeError(f"copy_: expected a sparse tensor of size {list(self.shape)}, but got one of size {list(source.shape)}")
        self._at = source._at.to(self.device)
        self._held = source._held.to(self.device, self.dtype)
        self._is_coalesced = source._is_coalesced
        return self

    def to_dense(self, dtype: Any = None) -> Any:
        """The tensor with its zeros."""
        count = math.prod(self.shape[: self.sparse_dim()])
        blank = OPS["full"]((count, *self._held.shape[1:]), 0, self.dtype, self.device)
        dense = OPS["view"](OPS["index_add"](blank, 0, self._linear(), self._held), tuple(self.shape))
        return dense if dtype is None else OPS["to_dtype"](dense, dtype)

    def to(self, *args: Any, **kwargs: Any) -> SparseTensor:
        held = self._held.to(*args, **kwargs)
        return SparseTensor(self._at.to(held.device), held, self.shape, self._is_coalesced)

    def cpu(self) -> SparseTensor:
        return self.to("cpu")

    def cuda(self, device: Any = None) -> SparseTensor:
        return self.to("cuda" if device is None else device)

    def clone(self) -> SparseTensor:
        return SparseTensor(self._at.clone(), self._held.clone(), self.shape, self._is_coalesced)

    def detach(self) -> SparseTensor:
        return self.with_values(self._held.detach())

    data = property(detach)

    def requires_grad_(self, requires_grad: bool = True) -> SparseTensor:
        self._held.requires_grad_(requires_grad)
        return self

    def detach_(self) -> SparseTensor:
        self._held = self._held.detach()
        return self

    def zero_(self) -> SparseTensor:
        """Forget every element."""
        self._at, self._held = self._at[:, :0], self._held.detach()[:0]
        self._is_coalesced = True
        return self

    def add_into(self, dense: Any, scale: Any = 1) -> Any:
        """`dense` += scale * this, in place. dense: a tensor of this size. Returns it."""
        count = math.prod(self.shape[: self.sparse_dim()])
        flat = OPS["view"](dense, (count, *self.shape[self.sparse_dim() :]))
        OPS["index_add_"](flat, 0, self._linear(), self._held if scale == 1 else self._held * scale)
        return dense

    def transpose(self, dim0: int, dim1: int) -> SparseTensor:
        """Two sparse dims exchanged."""
        d = self.sparse_dim()
        a, b = dim0 % self.ndim, dim1 % self.ndim
        if a >= d or b >= d:
            raise RuntimeError("transpose: only sparse dims of a sparse tensor can be exchanged")
        order = list(range(d))
        order[a], order[b] = b, a
        size = list(self.shape)
        size[a], size[b] = size[b], size[a]
        return SparseTensor(OPS["stack"]([OPS["select"](self._at, 0, k) for k in order], 0), self._held, size)

    def t(self) -> SparseTensor:
        if self.ndim > 2:
            raise RuntimeError(f"t() expects a tensor with <= 2 sparse and 0 dense dimensions, but self is {self.ndim}D")
        return self.transpose(0, 1) if self.ndim == 2 else self

    # ---- arithmetic ----

    def mm(self, mat2: Any) -> Any:
        """This (m, k) times a dense (k, n), dense; or times another sparse matrix, sparse."""
        if self.ndim != 2 or self.sparse_dim() != 2 or mat2.ndim != 2:
            raise RuntimeError(f"mm: expected matrices, got sizes {list(self.shape)} and {list(mat2.shape)}")
        if self.shape[1] != mat2.shape[0]:
            raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({self.shape[0]}x{self.shape[1]} and "
                               f"{mat2.shape[0]}x{mat2.shape[1]})")  # fmt: skip
        if isinstance(mat2, SparseTensor):
            return to_sparse(self.mm(mat2.to_dense()))
        row, column = OPS["select"](self._at, 0, 0), OPS["select"](self._at, 0, 1)
        terms = OPS["unsqueeze"](self._held, 1) * OPS["index_select"](mat2, 0, column)
        blank = OPS["full"]((self.shape[0], mat2.shape[1]), 0, result_type(self._held, mat2), self.device)
        return OPS["index_add"](blank, 0, row, terms)

    def matmul(self, other: Any) -> Any:
        if isinstance(other, TensorBase) and other.ndim == 1:
            return OPS["squeeze"](self.mm(OPS["unsqueeze"](other, 1)), (1,))
        return self.mm(other)

    __matmul__ = matmul

    def __rmatmul__(self, other: Any) -> Any:
        return OPS["permute"](self.t().mm(OPS["permute"](other, (1, 0))), (1, 0))

    def __mul__(self, other: Any) -> SparseTensor:
        """Times a number or a 0-d tensor; times a tensor of the same size, at this one's positions."""
        if isinstance(other, SparseTensor):
            return sparse_mask(other.to_dense() * self.to_dense(), self.coalesce())
        if isinstance(other, TensorBase) and other.ndim:
            return self.with_values(self._held * _at(other, self._at))
        return self.with_values(self._held * other)

    __rmul__ = mul = __mul__

    def __truediv__(self, other: Any) -> SparseTensor:
        return self.with_values(self._held / other)

    div = __truediv__

    def __neg__(self) -> SparseTensor:
        return self.with_values(-self._held)

    neg = __neg__

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, SparseTensor):
            return self.to_dense() + other
        if self.shape != other.shape:
            raise RuntimeError(f"add: expected 'self' and 'other' to have same size, but self has size {list(self.shape)} while "
                               f"other has size {list(other.shape)} (FYI: op2-sparse addition does not currently support "
                               "broadcasting)")  # fmt: skip
        both = SparseTensor(OPS["cat"]([self._at, other._at], 1), OPS["cat"]([self._held, other._held], 0), self.shape)
        return both.coalesce() if self._is_coalesced and other._is_coalesced else both

    __radd__ = add = __add__

    def __sub__(self, other: Any) -> Any:
        return self + -other

    sub = __sub__

    def sum(self, dim: Any = None) -> Any:
        """The sum of all elements, or over dims (then dense)."""
        return self._held.sum() if dim is None else self.to_dense().sum(dim)

    def pow(self, exponent: Any) -> SparseTensor:
        """Every element to a power that leaves zeros as they are. Raises NotImplementedError for an exponent of 0 or below."""
        if not exponent > 0:
            raise NotImplementedError(f"pow: of a sparse tensor only exponents above 0 are implemented, got {exponent}")
        held = self.coalesce()
        return held.with_values(held._held.pow(exponent))

    def norm(self, p: Any = 2) -> Any:
        """The norm of all elements."""
        return self.coalesce()._held.norm(p)

    def index_select(self, dim: int, index: Any) -> SparseTensor:
        """The slices of a dim at the places `index`."""
        return to_sparse(self.to_dense().index_select(dim, index), self.sparse_dim())

    def __getitem__(self, index: Any) -> Any:
        return self.to_dense()[index]

    def __repr__(self) -> str:
        inner, values = _text(self._at, "tensor(indices=tensor("), _text(self._held, "       values=tensor(")
        more = "" if self.device.type == "cpu" else f"device='{self.device}', "
        kind = "" if self.dtype in (dtypes.get_default_dtype(), dtypes.int64, dtypes.bool_) else f", dtype={self.dtype}"
        grad = ", requires_grad=True" if self.requires_grad else ""
        return (f"tensor(indices=tensor({inner}),\n       values=tensor({values}),\n       {more}size={tuple(self.shape)}, "
                f"nnz={self._nnz()}{kind}, layout=torch.sparse_coo{grad})")  # fmt: skip


def _of_elements(name: str) -> Any:
    method = getattr(Tensor, name)

    def call(self: SparseTensor) -> SparseTensor:
        held = self.coalesce()
        return held.with_values(method(held._held))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"`{name}` of every element; it leaves zeros as they are."
    return call


def _to_dtype(name: str) -> Any:
    def call(self: SparseTensor) -> SparseTensor:
        return self.with_values(getattr(self._held, name)())

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"The tensor in the dtype {name}."
    return call


for _name in ("abs", "asin", "asinh", "atan", "atanh", "ceil", "deg2rad", "erf", "expm1", "floor", "isinf", "isnan", "log1p", "rad2deg",
              "relu", "round", "sgn", "sign", "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc"):  # fmt: skip
    setattr(SparseTensor, _name, _of_elements(_name))
for _name in ("bfloat16", "bool", "byte", "char", "double", "float", "half", "int", "long", "short"):
    setattr(SparseTensor, _name, _to_dtype(_name))


def sparse_coo_tensor(indices: Any, values: Any = None, size: Any = None, *, dtype: Any = None, device: Any = None,
                      requires_grad: bool = False, check_invariants: bool | None = None,
                      is_coalesced: bool = False) -> SparseTensor:  # fmt: skip
    """A tensor in coordinate format.

    indices: (d, n) of integers; values: (n, *rest); size: by default the least that fits.

    Raises RuntimeError for indices out of range or of another count than the values.
    """
    held = creation.as_tensor(values, dtype=dtype, device=device)
    at = OPS["to_dtype"](creation.as_tensor(indices, device=held.device), dtypes.int64)
    at = OPS["unsqueeze"](at, 0) if at.ndim == 1 else at
    held = OPS["unsqueeze"](held, 0) if held.ndim == 0 else held
    if at.ndim != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(at.shape)}")
    if at.shape[1] != held.shape[0]:
        raise RuntimeError(f"indices and values must have same nnz, but got nnz from indices: {at.shape[1]}, nnz from values: "
                           f"{held.shape[0]}")  # fmt: skip
    if size is None and at.is_fake:
        raise NotImplementedError("sparse_coo_tensor: without a size, the shape depends on data, which the indices do not have; give size")
    d, least = at.shape[0], []
    if at.numel() and not at.is_fake:
        if int(at.min()) < 0:
            raise RuntimeError(f"found negative index {int(at.min())}")
        least = [int(n) + 1 for n in OPS["amax"](at, (1,), False).tolist()]
    shape = tuple(size) if size is not None else (*(least or [0] * d), *held.shape[1:])
    for k, n in enumerate(least):
        if n > shape[k]:
            raise RuntimeError(f"size is inconsistent with indices: for dim {k}, size is {shape[k]} but found index {n - 1}")
    if held.requires_grad is not requires_grad and requires_grad:
        held = held.detach().requires_grad_(True)
    return SparseTensor(at, held, shape, is_coalesced)


def _text(part: Any, before: str) -> str:
    """The elements of indices or values as they print behind `before`."""
    if part.numel():
        return printing.values_text(part, len(before))
    return "[]" if part.ndim == 1 else f"[], size={tuple(part.shape)}"


def _at(dense: Any, indices: Any) -> Any:
    """Elements of a dense tensor at the columns of `indices`."""
    if indices.shape[0] == 0:
        return OPS["expand"](OPS["unsqueeze"](dense, 0), (indices.shape[1], *dense.shape))
    return OPS["index"](dense, [OPS["select"](indices, 0, d) for d in range(indices.shape[0])])


def to_sparse(self: Any, sparse_dim: int | None = None, *, layout: Any = None) -> SparseTensor:
    """The tensor in coordinate format, with its first `sparse_dim` dims (default: all) sparse."""
    if layout not in (None, sparse_coo):
        raise NotImplementedError(f"to_sparse: layout {layout} is not implemented; allowed: torch.sparse_coo")
    d = self.ndim if sparse_dim is None else sparse_dim
    if not 0 <= d <= self.ndim:
        raise RuntimeError(f"dense_to_sparse: sparse_dim argument must be in [0,{self.ndim}] range, but {d} is given")
    if d == 0 < self.ndim:
        raise RuntimeError("dense_to_sparse: sparse_dim argument must be in >0 when self.dim()>0")
    there = self.detach() != 0
    if d < self.ndim:
        there = OPS["any"](there, tuple(range(d, self.ndim)), False)
    at = OPS["permute"](OPS["nonzero"](there), (1, 0))
    return SparseTensor(at, _at(self, at), tuple(self.shape), True)


def sparse_mask(self: Any, mask: SparseTensor) -> SparseTensor:
    """The elements of a dense tensor at the positions of a sparse one."""
    return SparseTensor(mask._at, _at(self, mask._at), tuple(self.shape), mask._is_coalesced)


def mm(mat1: Any, mat2: Any) -> Any:
    """The product of a sparse matrix with a dense or sparse one."""
    return mat1 @ mat2


def addmm(mat: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """beta * mat + alpha * (mat1 @ mat2), of a sparse mat1."""
    return mat * beta + (mat1 @ mat2) * alpha


def sum(input: SparseTensor, dim: Any = None, dtype: Any = None) -> Any:
    """The sum of all elements, or over dims (then dense)."""
    return (input if dtype is None else input.to(dtype)).sum(dim)


def softmax(input: SparseTensor, dim: int, *, dtype: Any = None) -> SparseTensor:
    """The softmax of the elements that are there, along a dim; the others count as minus infinity."""
    return _softmax(input, dim, dtype, False)


def log_softmax(input: SparseTensor, dim: int, *, dtype: Any = None) -> SparseTensor:
    """The logarithm of `softmax`."""
    return _softmax(input, dim, dtype, True)


def _softmax(input: SparseTensor, dim: int, dtype: Any, log: bool) -> SparseTensor:
    x = (input if dtype is None else input.to(dtype)).coalesce()
    d, dim = x.sparse_dim(), normalize_dim(dim, x.ndim)
    if dim >= d:
        return x.with_values(OPS["log_softmax" if log else "softmax"](x._held, dim - d + 1))
    others = [k for k in range(d) if k != dim]
    lines = SparseTensor(OPS["stack"]([OPS["select"](x._at, 0, k) for k in others], 0), x._held, [x.shape[k] for k in others])._linear() \
        if others else OPS["full"]((x._nnz(),), 0, dtypes.int64, x.device)  # fmt: skip
    kept, line, _ = OPS["unique"](lines, None)
    blank = OPS["full"]((kept.shape[0], *x._held.shape[1:]), 0, x.dtype, x.device)
    highest = blank.index_reduce(0, line, x._held.detach(), "amax", include_self=False)
    shifted = x._held - OPS["index_select"](highest, 0, line)
    powers = OPS["exp"](shifted)
    sums = OPS["index_select"](OPS["index_add"](blank, 0, line, powers), 0, line)
    return x.with_values(shifted - OPS["log"](sums) if log else powers / sums)


def FloatTensor(indices: Any, values: Any, size: Any = None) -> SparseTensor:  # noqa: N802 - torch's name
    """The older way to make a sparse tensor of float32."""
    return sparse_coo_tensor(indices, values, size, dtype=dtypes.float32)


def _no_coalescence(self: Any) -> bool:
    raise RuntimeError("is_coalesced expected sparse coordinate tensor layout but got Strided")


def _compressed(name: str) -> Any:
    def make(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{name}: compressed sparse formats are not implemented; use sparse_coo_tensor")

    make.__name__ = make.__qualname__ = name
    make.__module__ = "eager"
    return make


TOP_LEVEL: dict[str, Any] = {
    "sparse_coo_tensor": sparse_coo_tensor, "spmm": mm, "smm": mm, "dsmm": mm, "hsmm": mm,
    **{name: _compressed(name) for name in ("sparse_csr_tensor", "sparse_csc_tensor", "sparse_bsr_tensor", "sparse_bsc_tensor",
                                            "sparse_compressed_tensor")},
}  # fmt: skip
METHODS: dict[str, Any] = {
    "to_sparse": to_sparse, "to_sparse_coo": to_sparse, "sparse_mask": sparse_mask, "is_coalesced": _no_coalescence,
    "to_dense": lambda self, dtype=None: self if dtype is None else self.to(dtype),
    **{name: _compressed(name) for name in ("to_sparse_csr", "to_sparse_csc", "to_sparse_bsr", "to_sparse_bsc")},
}  # fmt: skip
for _name, _method in METHODS.items():
    setattr(Tensor, _name, _method)
