"""The device's library of matrix products: which algorithms it suggests for a kernel, and its products as steps of an artifact."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol, TypeAlias

from eager.base import logs
from eager.base.device import device
from eager.base.dtypes import dtype
from inductor.artifact import format as A
from inductor.base.target import Target
from inductor.driver.gpu_candidates import Candidate, library_candidate
from inductor.ir.sizes import plain
from inductor.loops.tree import Kernel
from inductor.plan.library_products import LibraryCall, LibraryProduct, Operand, library_products
from inductor.runtime import blas

__all__ = ["Cublas", "Library", "library_candidates", "matrix_product"]

_LOG: Final = logs.artifact("autotuning")
_ALIGNED: Final = 16  # bytes; where inputs and buffers of a plan begin
_SUGGESTIONS: Final = 4  # algorithms of a product that are timed
_WORKSPACE_BYTES: Final = 32 << 20  # most bytes of an algorithm, as NVIDIA recommends for sm_90
Place: TypeAlias = Callable[[str], tuple[int, Any]]  # a buffer's index in `bufs` and offset in bytes


class Library(Protocol):
    """A library of matrix products on one device. version: of the library."""

    version: int

    def suggestions(self, product: LibraryProduct, is_tf32: bool) -> list[tuple[bytes, int]]:
        """(algorithm, bytes of workspace) of each algorithm that fits, the likely ones first."""


class Cublas:
    """cuBLASLt on one device."""

    def __init__(self, where: device) -> None:
        self._index, self.version = where.index or 0, blas.version()

    def suggestions(self, product: LibraryProduct, is_tf32: bool) -> list[tuple[bytes, int]]:
        """See `Library`. The log says why the library refuses a product."""
        call = LibraryCall(product, 0, 0, b"", 0, self.version, is_tf32)
        try:
            return blas.suggestions(matrix_product(call, lambda name: (0, 0)), self._index, _SUGGESTIONS, _WORKSPACE_BYTES)
        except RuntimeError as error:
            _LOG.log(f"{call}: {error}")
            return []


def library_candidates(loops: Kernel, target: Target, precision: str, library: Library) -> Iterator[Candidate]:
    """The kernel with its product computed by each algorithm that the library suggests.

    Of the ways to compute it, the first for which the library has an algorithm. precision: of products, as in `Options`.
    """
    is_tf32 = precision == "tf32"
    for way, product in enumerate(library_products(loops)):
        found = library.suggestions(product, is_tf32)
        for number, (algorithm, nbytes) in enumerate(found):
            yield library_candidate(loops, target, LibraryCall(product, way, number, algorithm, nbytes, library.version, is_tf32))
        if found:
            return


def matrix_product(call: LibraryCall, place: Place) -> A.MatrixProduct:
    """A product as a step of an artifact."""
    p = call.product
    a, b, result = (_operand(m, of, place) for m, of in ((p.a, p.multiplied), (p.b, p.multiplied), (p.result, p.stored)))
    bias = None if p.bias is None else _operand(p.bias, p.stored, place)
    return A.MatrixProduct(p.multiplied.name, p.stored.name, call.is_tf32, p.sizes, a, b, result, bias, call.algorithm.hex(),
                           place(call.workspace) if call.workspace else (0, 0), call.workspace_bytes)  # fmt: skip


def _operand(m: Operand, of: dtype, place: Place) -> A.MatrixOperand:
    buffer, at = place(m.buffer)
    start = m.start * of.itemsize
    alignment = min(_ALIGNED, start & -start) if start else _ALIGNED
    return A.MatrixOperand((buffer, plain(at + start)), m.is_transposed, m.pitch, m.step, alignment)
