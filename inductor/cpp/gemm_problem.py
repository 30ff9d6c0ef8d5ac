"""The interface between the C++ code generator and the compiled cores: one matrix product or convolution with an epilogue.

The code generator describes a product as a `GemmProblem` and calls `cpp.gemm.emit(problem, is_followed, tools)`. The result is a
`CoreCode`, or None, in which case the generator calls `rt->gemm` (OpenBLAS). This module does not depend on the loop IR or on the
tiling of the cores.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from eager.base.records import dataclass
from inductor.artifact.format import SourceUnit
from inductor.cpp.units import Code

REAL: Final = {"float32": "float", "float64": "double"}  # C types of the elements that the cores compute


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
class CoreCode:
    """A call of a compiled core.

    unit: the core, one per dtype and tile: add it once to the plan's units. dtype: of the elements of a, b and c. task: the type of the
    core's arguments; outside: its declaration, then the declaration of the core. fields: of the task, apart from the epilogue, as
    source over a, b, c and the names that `lines` declare. pack: defines `void pack(const void* source, void* target)`, which packs b
    between calls into packed_bytes; None if b is not packed. To use it, add a pack to the plan whose function (`pack_function`) calls
    it, and pass the packed memory as b. note: why this core was chosen, for the log.
    """

    unit: SourceUnit
    dtype: str
    task: str
    outside: tuple[str, ...]
    fields: Mapping[str, object]
    note: str
    lines: tuple[str, ...] = ()
    pack: Code | None = None
    packed_bytes: int = 0

    def function(self, name: str, epilogue: str = "", prologue: str = "") -> Code:
        """The function `void name(const T* a, const T* b, T* c, char** args, const Runtime* rt)`, which runs the core.

        prologue: the name of a function that is defined before it and that computes blocks of a, or "" for an a in memory. The core
        calls `prologue(char** args, void* a, long pitch, long batch, long i0, long i1, long k0, long k1)` from any thread, at least
        once for each block of rows i0..i1 and columns k0..k1. It writes element (i, k) to `a[i * pitch + k]`.
        epilogue: the name of a function that is defined before it, or "". The core calls `epilogue(char** args, void* c, long batch,
        long i0, long i1, long j0, long j1)` exactly once for each finished block of rows i0..i1 and columns j0..j1 of c, soon after
        the block is complete, from any thread. If the function's `c` is null, a block is in memory of the thread, and the epilogue's
        `c` is such that the elements of the block have their positions in c.
        """
        real = REAL[self.dtype]
        head = f"void {name}(const {real} *a, const {real} *b, {real} *c, char **args, const Runtime *rt)"
        called = {field: f for field, f in (("prologue", prologue), ("epilogue", epilogue)) if f}
        fields = {**self.fields, **called, **({"args": "args"} if called else {})}
        lines = [*self.lines, f"const {self.task} task = {initialiser(fields)};", f"{self.unit.name}(&task, rt);"]
        body = "".join(f"  {line}\n" for line in lines)
        return Code(f"FJ_LOCAL {head} {{\n{body}}}\n", (f"{head};",), outside=self.outside)


def initialiser(fields: Mapping[str, object]) -> str:
    """The fields of a struct as C++ source, in the order of their declarations."""
    return f"{{{', '.join([f'.{name} = {value}' for name, value in fields.items()])}}}"


def pack_code(statements: str, outside: tuple[str, ...]) -> Code:
    """The function `pack` of a core that packs an operand. statements: over `source` and `target`."""
    head = "void pack(const void *source, void *target)"
    return Code(f"FJ_LOCAL {head} {{\n  {statements}\n}}\n", (f"{head};",), outside=outside)


def pack_function(name: str, namespace: str, source: str, target: int) -> str:
    """The function `name` of a plan's pack: calls `pack` of a namespace for the pointer `source` and an entry of `bufs`."""
    return f"""extern "C" __attribute__((visibility("default"))) void {name}(char **bufs, const Runtime *) {{
  {namespace}::pack({source}, bufs[{target}]);
}}
"""
