"""The op table: importing this package declares every family. `eager.ops.table.OPS` holds them by name."""
from eager.ops import (
    attention,
    complex_numbers,
    conv,
    counts,
    creation,
    fft,
    gamma,
    indexing,
    ldl,
    linalg,
    loss,
    masking,
    matmul,
    nn,
    patches,
    pointwise,
    pool,
    random,
    reduction,
    rnn,
    scan,
    shape,
    sorting,
    special,
    table,
    views,
)

__all__ = [
    "attention", "complex_numbers", "conv", "counts", "creation", "fft", "gamma", "indexing", "ldl", "linalg", "loss", "masking", "matmul",
    "nn", "patches", "pointwise", "pool", "random", "reduction", "rnn", "scan", "shape", "sorting", "special", "table", "views",
]  # fmt: skip
