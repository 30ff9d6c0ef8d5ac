"""The op table: importing this package declares every family. `eager.ops.table.OPS` holds them by name."""
from eager.ops import (
    attention,
    creation,
    indexing,
    loss,
    masking,
    matmul,
    nn,
    pointwise,
    random,
    reduction,
    scan,
    shape,
    sorting,
    table,
    views,
)

__all__ = [
    "attention", "creation", "indexing", "loss", "masking", "matmul", "nn", "pointwise", "random", "reduction", "scan",
    "shape", "sorting", "table", "views",
]  # fmt: skip
