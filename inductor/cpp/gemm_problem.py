"""The seam between the C++ code generator and the GEMM template: one matrix product with an epilogue.

The code generator (`cpp.kernel`) describes the product as a `GemmProblem` and asks `cpp.gemm` to
`emit(problem, name, epilogue)` it, or to decline (`None`), in which case it calls `rt->gemm` (OpenBLAS) and runs
the same epilogue over row blocks. Must not know: the loop IR, the template's tiling.

The emitted text defines

    static void NAME(const T* a, const T* b, T* c, long batch_index, char** bufs, const Runtime* rt)

and calls `EPILOGUE(char** bufs, long batch, long i0, long i1, long j0, long j1)` exactly once for every finished
block of rows i0..i1 and columns j0..j1 of c, soon after it is complete (while it is in cache), from any thread.
The epilogue is an ordinary fused loop nest over that block and knows how to find c itself.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GemmProblem:
    """c[b, i, j] = sum_k a[b, i, k] * b[b, k, j], all sizes static, strides in elements.

    dtype: "float32" or "float64". `a_strides` = (row i, column k); `b_strides` = (row k, column j);
    c is row-major with pitch `ldc`. `batch` products are stepped by `batch_strides` = (a, b, c).
    b_constant: b holds the same bytes for every call of the artifact (frozen weights), so packing it once pays.
    """

    dtype: str
    batch: int
    m: int
    n: int
    k: int
    a_strides: tuple[int, int]
    b_strides: tuple[int, int]
    ldc: int
    batch_strides: tuple[int, int, int] = (0, 0, 0)
    b_constant: bool = False
