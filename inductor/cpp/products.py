"""A matrix product with sizes and strides that may be expressions.

Owns the parts that both kernels need: the problem for the choice of a kernel, the source of the values that are known only at
run time, and the fields of a BLAS call. It does not depend on the choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fxir.expr import rules as E
from inductor.cpp.gemm_problem import GemmProblem, RunTimeSizes
from inductor.cpp.units import SIZES, SIZES_IN, declared
from inductor.cpp.values import size_source
from inductor.ir.sizes import Size, is_symbolic, nominal, plain

__all__ = ["Problem", "unit_strides"]

Strides = tuple[Size, Size]


@dataclass(frozen=True, slots=True)
class Problem:
    """c[b, i, j] = sum_k a[b, i, k] * b[b, k, j], like `GemmProblem`, but for every value of the symbols."""

    dtype: str
    batch: Size
    m: Size
    n: Size
    k: Size
    a_strides: Strides
    b_strides: Strides
    ldc: Size
    batch_strides: tuple[Size, Size, Size]

    def nominal(self) -> GemmProblem:
        """The problem for the choice of a kernel."""
        (a_row, a_column), (b_row, b_column), steps = self.a_strides, self.b_strides, self.batch_strides
        return GemmProblem(
            self.dtype, nominal(self.batch), nominal(self.m), nominal(self.n), nominal(self.k),
            (_not_unit(a_row), _not_unit(a_column)), (_not_unit(b_row), _not_unit(b_column)), _not_unit(self.ldc),
            (nominal(steps[0]), nominal(steps[1]), nominal(steps[2])),
        )  # fmt: skip

    def run_time(self, from_args: bool) -> RunTimeSizes | None:
        """The values that are known only at run time, or None. from_args: `bufs` is the array of an epilogue's pointers."""
        fields = {
            "batch": self.batch, "m": self.m, "n": self.n, "k": self.k, "a_row": self.a_strides[0],
            "a_col": self.a_strides[1], "b_row": self.b_strides[0], "b_col": self.b_strides[1], "ldc": self.ldc,
            "a_step": self.batch_strides[0], "b_step": self.batch_strides[1], "c_step": self.batch_strides[2],
        }  # fmt: skip
        if not is_symbolic(*fields.values()):
            return None
        source = {name: size_source(n) for name, n in fields.items() if is_symbolic(n)}
        lines = declared(source.values())
        if from_args:
            lines = [line.replace(SIZES, f"{SIZES_IN}((char**)bufs[0])") for line in lines]
        return RunTimeSizes(source, tuple(lines))

    def suits_blas(self) -> bool:
        """Whether CBLAS can express the operands for all sizes: one stride of each must be 1."""
        return _blas(self.a_strides, self.m, self.k) is not None and _blas(self.b_strides, self.k, self.n) is not None

    def blas_fields(self, alpha: float) -> str:
        """The fields of a `GemmCall` before its pointers."""
        a, b = _blas(self.a_strides, self.m, self.k), _blas(self.b_strides, self.k, self.n)
        assert a is not None and b is not None
        fields = [0 if self.dtype == "float32" else 1, a[0], b[0], self.batch, self.m, self.n, self.k, a[1], b[1], self.ldc,
                  *self.batch_strides]  # fmt: skip
        return ", ".join([*map(size_source, fields), str(alpha), "0.0"])


def _not_unit(stride: Size) -> int:
    """A nominal stride: not 1 unless it is always 1, since a kernel may rely on 1."""
    return stride if isinstance(stride, int) else max(nominal(stride), 2)


def unit_strides(strides: Sequence[Size], shape: tuple[Size, Size]) -> Strides:
    """Strides in which an axis of size 1 does not prevent a BLAS call."""
    row, column = strides
    rows, columns = shape
    if columns == 1 and row != 1:
        column = 1
    elif columns == 1:
        column = _larger(column, rows)
    if rows == 1:
        row = _larger(row, columns) if column == 1 else 1
    return row, column


def _larger(a: Size, b: Size) -> Size:
    return max(a, b) if isinstance(a, int) and isinstance(b, int) else plain(E.maximum(a, b))


def _blas(strides: Strides, rows: Size, columns: Size) -> tuple[int, Size] | None:
    """(transposed, pitch) of an operand for CBLAS, or None if CBLAS cannot express it for all sizes."""
    row, column = strides
    if column == 1 and E.known_le(columns, row):
        return 0, _larger(row, columns)
    return (1, _larger(column, rows)) if row == 1 and E.known_le(rows, column) else None
