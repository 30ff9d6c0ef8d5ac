"""A contraction as a matrix product with sizes and strides that may be expressions.

Owns the test whether a contraction is one (`problem_of`), and the parts that all kernels need: the problem for the choice of a
kernel, the source of the values that are known only at run time, and the fields of a BLAS call. It does not depend on the choice.
"""

from __future__ import annotations

from eager.base import dtypes
from eager.base.dtypes import dtype
from eager.base.records import dataclass
from inductor.cpp.gemm_problem import GemmProblem, RunTimeSizes
from inductor.cpp.units import declared
from inductor.cpp.values import size_source
from inductor.ir.sizes import Size, is_symbolic, nominal, product
from inductor.ir.values import load
from inductor.loops.matrices import Strides, blas_layout, matrix_of, unit_strides
from inductor.loops.tree import Contract

__all__ = ["Problem", "problem_of"]


@dataclass(frozen=True, slots=True)
class Problem:
    """c[b, i, j] = sum_k a[b, i, k] * b[b, k, j], like `GemmProblem`, but for every value of the symbols.

    starts: the positions of the first elements of a, b and c in their buffers.
    """

    dtype: str
    batch: Size
    m: Size
    n: Size
    k: Size
    a_strides: Strides
    b_strides: Strides
    ldc: Size
    batch_strides: tuple[Size, Size, Size]
    starts: tuple[Size, Size, Size] = (0, 0, 0)

    def nominal(self) -> GemmProblem:
        """The problem for the choice of a kernel."""
        (a_row, a_column), (b_row, b_column), steps = self.a_strides, self.b_strides, self.batch_strides
        return GemmProblem(
            self.dtype, nominal(self.batch), nominal(self.m), nominal(self.n), nominal(self.k),
            (_not_unit(a_row), _not_unit(a_column)), (_not_unit(b_row), _not_unit(b_column)), _not_unit(self.ldc),
            (nominal(steps[0]), nominal(steps[1]), nominal(steps[2])),
        )  # fmt: skip

    def run_time(self) -> RunTimeSizes | None:
        """The values that are known only at run time, or None."""
        fields = {
            "batch": self.batch, "m": self.m, "n": self.n, "k": self.k, "a_row": self.a_strides[0],
            "a_col": self.a_strides[1], "b_row": self.b_strides[0], "b_col": self.b_strides[1], "ldc": self.ldc,
            "a_step": self.batch_strides[0], "b_step": self.batch_strides[1], "c_step": self.batch_strides[2],
        }  # fmt: skip
        if not is_symbolic(*fields.values()):
            return None
        symbolic = {name: n for name, n in fields.items() if is_symbolic(n)}
        return RunTimeSizes({name: size_source(n) for name, n in symbolic.items()}, tuple(declared(symbolic.values())))

    def suits_blas(self) -> bool:
        """Whether CBLAS can express the operands for all sizes: one stride of each must be 1."""
        return blas_layout(self.a_strides, self.m, self.k) is not None and blas_layout(self.b_strides, self.k, self.n) is not None

    def blas_fields(self) -> str:
        """The fields of a `GemmCall` before its pointers."""
        a, b = blas_layout(self.a_strides, self.m, self.k), blas_layout(self.b_strides, self.k, self.n)
        assert a is not None and b is not None
        fields = [0 if self.dtype == "float32" else 1, a[0], b[0], self.batch, self.m, self.n, self.k, a[1], b[1], self.ldc,
                  *self.batch_strides]  # fmt: skip
        return ", ".join([*map(size_source, fields), "1.0", "0.0"])


def problem_of(s: Contract, of: dtype) -> Problem | None:
    """The contraction as a product of matrices of dtype `of`, or None if it is not one.

    Each operand must be a plain load, and the axes of each role must count through equal steps in it.
    """
    if of not in (dtypes.float32, dtypes.float64):
        return None
    axes = s.axes
    result = load(s.place.name, s.place.index, of)
    a = matrix_of(s.a, of, axes.batch, axes.rows, axes.depth)
    b = matrix_of(s.b, of, axes.batch, axes.depth, axes.columns)
    c = matrix_of(result, of, axes.batch, axes.rows, axes.columns)
    if a is None or b is None or c is None or s.place.indirect:
        return None
    batch, m, n, k = (product(extent for _, extent in role) for role in (axes.batch, axes.rows, axes.columns, axes.depth))
    if c.column != 1 and n != 1:
        return None
    pitch = n if isinstance(m, int) and m <= 1 else c.row
    whole = m * pitch if isinstance(m, int) and isinstance(pitch, int) else 0
    steps = (a.step, b.step, c.step) if axes.batch else (0, 0, whole)  # one product has no next one
    return Problem(of.name, batch, m, n, k, unit_strides((a.row, a.column), (m, k)), unit_strides((b.row, b.column), (k, n)), pitch,
                   steps, (a.start, b.start, c.start))  # fmt: skip


def _not_unit(stride: Size) -> int:
    """A nominal stride: not 1 unless it is always 1, since a kernel may rely on 1."""
    return stride if isinstance(stride, int) else max(nominal(stride), 2)
