"""The interface between the C++ code generator and the GEMM template: one matrix product with an epilogue.

The code generator describes the product as a `GemmProblem` and calls `cpp.gemm.emit(problem, name, epilogue, tools)`. The
result is a `GemmCode`, or None, in which case the generator calls `rt->gemm` (OpenBLAS) and runs the same epilogue over row
blocks. This module does not depend on the loop IR or on the template's tiling.

The emitted text defines

    FJ_LOCAL void NAME(const T* a, const T* b, T* c, long batch_index, char** args, const Runtime* rt)

which computes all `problem.batch` products, numbered from batch_index, and calls

    EPILOGUE(char** args, void* c, long batch, long i0, long i1, long j0, long j1)

exactly once for every finished block of rows i0..i1 and columns j0..j1 of c, soon after it is complete (while it is in cache), from
any thread. The epilogue is an ordinary fused loop nest over that block. If NAME's `c` is null, a block is in memory of the thread,
and the epilogue's `c` is such that its elements have their positions in c.
"""

from __future__ import annotations

from collections.abc import Mapping

from eager.base.records import dataclass
from inductor.artifact.format import SourceUnit


@dataclass(frozen=True, slots=True)
class GemmProblem:
    """c[b, i, j] = sum_k a[b, i, k] * b[b, k, j], strides in elements.

    dtype: "float32" or "float64". `a_strides` = (row i, column k); `b_strides` = (row k, column j);
    c is row-major with pitch `ldc`. `batch` products are stepped by `batch_strides` = (a, b, c).
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


@dataclass(frozen=True, slots=True)
class RunTimeSizes:
    """The sizes and strides of a problem that are known only at run time, as C++ source: by field of `GemmTask`.

    lines: statements before the product that this source needs; `bufs`, the first of `args`, is in scope.
    """

    fields: Mapping[str, str]
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GemmCode:
    """The result of `cpp.gemm.emit`.

    text: belongs in the kernel's unit, after the runtime ABI; defines NAME. head: of NAME. unit: the GEMM core that NAME calls, one per
    (dtype, tile): add it once to the plan's units. pack_text: only if `emit` was called with packed=True; it defines `extern "C" void
    NAME_pack(const void* b, void* packed)`, which packs b between calls into packed_bytes. To use it, add a pack to the plan whose
    function (`pack_function`) calls it, and pass the packed buffer as NAME's `b`. note: why this kernel was chosen, for the log.
    """

    head: str
    text: str
    unit: SourceUnit
    pack_text: str = ""
    packed_bytes: int = 0
    note: str = ""


def pack_function(name: str, pack_symbol: str, source: str, target: int) -> str:
    """The function `name` of a plan's pack: pack_symbol from the pointer `source` to an entry of `bufs`."""
    return f"""extern "C" void {pack_symbol}(const void *, void *);
extern "C" __attribute__((visibility("default"))) void {name}(char **bufs, const Runtime *) {{
  {pack_symbol}({source}, bufs[{target}]);
}}
"""
