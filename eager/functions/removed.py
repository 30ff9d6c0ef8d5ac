"""Names that torch keeps for removed functions and for methods of other layouts: each raises torch's message."""
from __future__ import annotations

import math
import warnings
from typing import Any

from eager.public.record import public

_REMOVED = {
    "eig": "`torch.linalg.eig` returns complex tensors", "symeig": "Use `torch.linalg.eigh` or `torch.linalg.eigvalsh`",
    "lstsq": "`torch.lstsq` is deprecated in favor of `torch.linalg.lstsq`.",
    "matrix_rank": "Please use the `torch.linalg.matrix_rank` function instead.",
    "solve": "`torch.solve` is deprecated in favor of `torch.linalg.solve`.",
}  # fmt: skip
# methods of sparse layouts, and which layout they expect
_OF_LAYOUTS = {
    "coalesce": "sparse coordinate tensor", "indices": "sparse coordinate tensor", "is_coalesced": "sparse coordinate tensor",
    "values": "sparse tensor", "crow_indices": "sparse row compressed tensor", "col_indices": "sparse row compressed tensor",
    "ccol_indices": "sparse column compressed tensor", "row_indices": "sparse column compressed tensor",
}  # fmt: skip


def _removed(name: str) -> Any:
    def gone(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"This function was deprecated since version 1.9 and is now removed. {_REMOVED[name]}")

    gone.__name__ = gone.__qualname__ = name
    gone.__doc__ = f"Removed from torch. Raises RuntimeError. {_REMOVED[name]}"
    return gone


def _expects(name: str) -> Any:
    def refuse(self: Any) -> Any:
        raise RuntimeError(f"{name} expected {_OF_LAYOUTS[name]} layout but got Strided")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = "Of sparse tensors. Raises RuntimeError for this dense one."
    return refuse


@public(parsed=False)
def resize(self: Any, *sizes: Any) -> Any:
    """The elements in another shape of as many; `reshape` is the name to use. Raises RuntimeError for another number."""
    warnings.warn("non-inplace resize is deprecated", stacklevel=2)
    wanted = tuple(sizes[0]) if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes
    if math.prod(wanted) != self.numel():
        raise RuntimeError(f"requested resize to {'x'.join(map(str, wanted))} ({math.prod(wanted)} elements in total), but the given "
                           f"tensor has a size of {'x'.join(map(str, self.shape))} ({self.numel()} elements). autograd's resize can only "
                           "change the shape of a given tensor, while preserving the number of elements. ")  # fmt: skip
    return self.contiguous().view(wanted)


@public(parsed=False)
def resize_as(self: Any, tensor: Any) -> Any:
    """`resize` to the shape of another tensor."""
    return resize(self, *tensor.shape)


def _nnz(self: Any) -> int:
    raise NotImplementedError("Could not run 'aten::_nnz' with arguments from the 'CPU' backend: it is of sparse tensors")


FUNCTIONS: dict[str, Any] = {name: _removed(name) for name in _REMOVED}
METHODS: dict[str, Any] = {
    **{name: _removed(name) for name in ("eig", "symeig", "lstsq", "solve")}, **{name: _expects(name) for name in _OF_LAYOUTS},
    "resize": resize, "resize_as": resize_as, "sparse_dim": lambda self: 0, "dense_dim": lambda self: self.ndim, "_nnz": _nnz,
}  # fmt: skip
