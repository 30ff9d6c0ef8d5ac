"""Which ops are linear in which inputs: there the tangent of the result is the op applied to the tangents.

Owns two tables. `LINEAR`: ops linear in the named inputs taken together, the others being held fixed; an input of
these without a tangent counts as zeros. `BILINEAR`: ops linear in each of two inputs (the product rule), and
affine in a third. View ops are linear by kind and stand in no table; a generated test holds each entry against the
op's own gradient formula.
"""
from __future__ import annotations

from typing import Any

LINEAR: dict[str, tuple[str, ...]] = {
    "sum": ("x",), "mean": ("x",), "cumsum": ("x",), "conj": ("x",), "to_dtype": ("x",), "clone": ("x",),
    "flip": ("x",), "roll": ("x",), "repeat": ("x",), "repeat_each": ("x",), "tril": ("x",), "triu": ("x",),
    "cat": ("tensors",), "stack": ("tensors",), "pad_indexed": ("x",), "complex": ("x", "imag"),
    "gather": ("x",), "index_select": ("x",), "index": ("x",), "embedding": ("weight",), "take": ("x",),
    "masked_select": ("x",), "im2col": ("x",), "col2im": ("x",), "avg_pool": ("x",), "avg_pool_backward": ("grad",),
    "adaptive_avg_pool": ("x",), "adaptive_avg_pool_backward": ("grad",), "embedding_backward": ("grad",),
    "masked_scatter_backward": ("grad",), "as_strided_backward": ("grad",),
    "slice_scatter": ("x", "src"), "select_scatter": ("x", "src"), "diagonal_scatter": ("x", "src"),
    "as_strided_scatter": ("x", "src"), "scatter": ("x", "src"), "scatter_add": ("x", "src"),
    "index_add": ("x", "source"), "index_copy": ("x", "source"), "index_put": ("x", "values"),
    "index_fill": ("x", "value"), "masked_scatter": ("x", "source"), "masked_fill": ("x", "value"),
    "put": ("x", "source"), "constant_pad_nd": ("x",),
}  # fmt: skip

# (first, second, affine term or None)
BILINEAR: dict[str, tuple[str, str, str | None]] = {
    "mm": ("x", "other", None), "bmm": ("x", "other", None), "matmul": ("x", "other", None),
    "linear": ("x", "weight", "bias"), "convolution": ("x", "weight", "bias"), "conv_weight": ("x", "grad", None),
}  # fmt: skip

# Arguments that a linear op must be given zero for, when it is applied to tangents.
ZEROED: dict[str, dict[str, Any]] = {"constant_pad_nd": {"value": 0}}
