"""Matrix products inside kernels: on the CPU over the native threads, elsewhere by the array module.

Numpy's own products run on OpenBLAS's threads, which spin for tens of milliseconds after each one and take the cores
from the code that runs next; ours run OpenBLAS on blocks of the result, one thread each.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from eager import _native
from eager.base.spec import broadcast_shapes


def matmul(xp: Any, a: Any, b: Any, out: Any = None) -> Any:
    """a @ b with numpy's broadcasting of leading dims; arrays of at least 2 dims and one dtype. `out` overlaps neither."""
    if xp is not np or a.dtype.char not in "fd" or a.dtype is not b.dtype:
        return xp.matmul(a, b, out=out)
    if out is None:
        out = np.empty((*broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1]), a.dtype)
    # Where BLAS cannot read the strides, numpy would fall back to plain loops: a copy is cheaper.
    if not _native.gemm(out, a, b) and not _native.gemm(out, np.ascontiguousarray(a), np.ascontiguousarray(b)):
        np.matmul(a, b, out=out)
    return out


def add_matmul(xp: Any, total: Any, a: Any, b: Any) -> None:
    """total += a @ b."""
    if xp is not np or total.dtype.char not in "fd" or not _native.gemm(total, a, b, True):
        total += matmul(xp, a, b)
