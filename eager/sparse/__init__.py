"""`eager.sparse`: tensors in coordinate format (COO), for example adjacency matrices of graph networks.

A SparseTensor holds the positions and values of its elements and computes with ops on dense tensors, so that
gradients reach its values and the dense operands. `isinstance(t, Tensor)` holds, but it has no dense memory. Functions
accept it if torch's do, and reject it otherwise. `embedding(sparse=True)` gives
its weight a sparse gradient, which SGD, Adagrad and SparseAdam support. The compressed formats (CSR, CSC, BSR, BSC)
raise NotImplementedError.
"""
from __future__ import annotations

from typing import Any

from eager._tensor import torch_function
from eager._tensor.tensor import Tensor
from eager.base import dtypes
from eager.base.device import default_device
from eager.base.device import device as torch_device
from eager.functions import creation
from eager.optable.table import OPS
from eager.public.wrapper import wrap as _wrap
from eager.sparse import calls as _calls  # noqa: F401 - attaches the methods of SparseTensor
from eager.sparse import geometry
from eager.sparse.arithmetic import addmm as _addmm
from eager.sparse.arithmetic import log_softmax, softmax
from eager.sparse.arithmetic import matmul as mm
from eager.sparse.arithmetic import sum as _sum
from eager.sparse.geometry import sparse_mask as _sparse_mask
from eager.sparse.geometry import spdiags, to_sparse
from eager.sparse.tensor import SparseTensor


def sparse_coo_tensor(indices: Any, values: Any = None, size: Any = None, *, dtype: Any = None, device: Any = None,
                      requires_grad: bool = False, check_invariants: bool | None = None,
                      is_coalesced: bool = False) -> SparseTensor:  # fmt: skip
    """A tensor in coordinate format.

    indices: (d, n) of integers; values: (n, *rest); size: by default the smallest that fits. A size in place of
    the indices makes a tensor without elements.
    Raises: RuntimeError for indices out of range or another number of indices than values; TypeError for a flag that is not a bool.
    """
    for flag, value in (("requires_grad", requires_grad), ("check_invariants", check_invariants), ("is_coalesced", is_coalesced)):
        if not isinstance(value, bool) and not (flag == "check_invariants" and value is None):
            raise TypeError(f"sparse_coo_tensor(): argument '{flag}' must be bool, not {type(value).__name__}")
    torch_function.activate()
    if values is None:
        target = default_device() if device is None else torch_device(device)
        found = geometry.empty(tuple(indices if size is None else size), dtypes.chosen(dtype, dtypes.get_default_dtype()), target)
        return found.requires_grad_(requires_grad)
    elements = creation.as_tensor(values, dtype=dtype, device=device)
    positions = OPS["to_dtype"](creation.as_tensor(indices, device=elements.device), dtypes.int64)
    positions = OPS["unsqueeze"](positions, 0) if positions.ndim == 1 else positions
    elements = OPS["unsqueeze"](elements, 0) if elements.ndim == 0 else elements
    if positions.ndim != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(positions.shape)}")
    if positions.shape[1] != elements.shape[0]:
        raise RuntimeError(f"indices and values must have same nnz, but got nnz from indices: {positions.shape[1]}, nnz from values: "
                           f"{elements.shape[0]}")  # fmt: skip
    shape = _size(positions, elements, size)
    if elements.requires_grad is not requires_grad and requires_grad:
        elements = elements.detach().requires_grad_(True)
    return SparseTensor(positions, elements, shape, is_coalesced)


def _size(positions: Any, elements: Any, size: Any) -> tuple[int, ...]:
    """The given size, if the positions fit, or the smallest that fits them."""
    if size is None and positions.is_fake:
        raise NotImplementedError("sparse_coo_tensor: without a size, the shape depends on data, which the indices do not have; give size")
    d, needed = positions.shape[0], []
    if positions.numel() and not positions.is_fake:
        if int(positions.min()) < 0:
            raise RuntimeError(f"found negative index {int(positions.min())}")
        needed = [int(n) + 1 for n in OPS["amax"](positions, (1,), False).tolist()]
    shape = tuple(size) if size is not None else (*(needed or [0] * d), *elements.shape[1:])
    for k, n in enumerate(needed):
        if n > shape[k]:
            raise RuntimeError(f"size is inconsistent with indices: for dim {k}, size is {shape[k]} but found index {n - 1}")
    return shape


def sum(input: SparseTensor, dim: Any = None, dtype: Any = None) -> Any:
    """The sum of all elements, or over dims; sparse if a sparse dim remains."""
    return _sum(input, dim, dtype=dtype)


def addmm(mat: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """beta * mat + alpha * (mat1 @ mat2), for a sparse mat1."""
    return _addmm(mat, mat1, mat2, beta=beta, alpha=alpha)


def FloatTensor(indices: Any, values: Any, size: Any = None) -> SparseTensor:  # noqa: N802 - torch's name
    """The older constructor of a float32 sparse tensor."""
    return sparse_coo_tensor(indices, values, size, dtype=dtypes.float32)


def _no_coalescence(self: Any) -> bool:
    raise RuntimeError("is_coalesced expected sparse coordinate tensor layout but got Strided")


def _dense_to_sparse(self: Any, sparse_dim: int | None = None, *, layout: Any = None) -> SparseTensor:
    torch_function.activate()
    return to_sparse(self, sparse_dim, layout=layout)


def spmm(input: Any, mat2: Any) -> Any:
    """The product of two matrices, either of which may be sparse."""
    return OPS["mm"](input, mat2)


def _sparse_only(name: str) -> Any:
    def call(input: Any, mat2: Any) -> Any:
        raise RuntimeError(f"{name}: expected a sparse matrix, got a dense one")

    call.__name__ = call.__qualname__ = name
    call.__module__ = "eager"
    return call


def sparse_mask(input: Any, mask: SparseTensor) -> SparseTensor:
    """The elements of a tensor at the positions of a sparse tensor."""
    return _sparse_mask(input, mask)


def _compressed(name: str) -> Any:
    def make(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{name}: compressed sparse formats are not implemented; use sparse_coo_tensor")

    make.__name__ = make.__qualname__ = name
    make.__module__ = "eager"
    return make


_FORMATS = ("to_sparse_csr", "to_sparse_csc", "to_sparse_bsr", "to_sparse_bsc")
TOP_LEVEL: dict[str, Any] = {
    "sparse_coo_tensor": sparse_coo_tensor, "spmm": spmm, "dsmm": spmm,
    **{name: _sparse_only(name) for name in ("smm", "hspmm", "hsmm")},
    **{name: _compressed(name) for name in ("sparse_csr_tensor", "sparse_csc_tensor", "sparse_bsr_tensor", "sparse_bsc_tensor",
                                            "sparse_compressed_tensor")},
}  # fmt: skip
METHODS: dict[str, Any] = {
    **dict.fromkeys(("to_sparse", "to_sparse_coo"), _wrap(_dense_to_sparse, "to_sparse")),
    "sparse_mask": sparse_mask, "is_coalesced": _no_coalescence,
    "to_dense": lambda self, dtype=None: self if dtype is None else self.to(dtype),
    **{name: _compressed(name) for name in _FORMATS},
}  # fmt: skip
for _name, _method in METHODS.items():
    setattr(Tensor, _name, _method)
for _name in _FORMATS:
    setattr(SparseTensor, _name, _compressed(_name))

__all__ = ["FloatTensor", "SparseTensor", "addmm", "log_softmax", "mm", "softmax", "sparse_coo_tensor", "sparse_mask", "spdiags", "sum",
           "to_sparse"]  # fmt: skip
