"""The op table: importing this package declares every family. `eager.optable.table.OPS` holds them by name.

It is `torch.ops` as well, where `torch.library` adds the ops of the user's own.
"""
import os as _os
from typing import NoReturn as _NoReturn

from eager.optable import (
    asserting,
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


def load_library(path: _os.PathLike[str] | str) -> _NoReturn:
    """Raises: OSError, as for any library that cannot be loaded: those of torch's operators are linked with libtorch."""
    raise OSError(f"torch.ops.load_library: {_os.fspath(path)}: no libtorch, which libraries of operators are linked with; "
                  "torch.library.custom_op adds an op that is written in Python")  # fmt: skip
