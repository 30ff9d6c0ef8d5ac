"""Compiled graphs and what they run on (sources in inductor/native/)."""

import os
from typing import Any

from eager import Tensor

abi_version: int

# A number, or that of one of a call's sizes.
_Size = int | tuple[int]
# (dtype code, sizes, strides in elements, index of the CUDA device or -1 for the CPU)
_Layout = tuple[int, tuple[_Size, ...], tuple[_Size, ...], int]

class Library:
    """A shared library, open as long as this object lives. Raises: OSError if it cannot be loaded."""

    def __init__(self, path: str | os.PathLike[str]) -> None: ...
    def address(self, name: str) -> int:
        """Of a function. Raises: LookupError if there is none."""

class CudaModule:
    """Machine code that is loaded on a CUDA device for as long as this object lives.

    Raises: RuntimeError without a driver, or if the device cannot run the code.
    """

    def __init__(self, image: bytes, device: int = 0) -> None: ...
    def function(self, name: str, shared_bytes: int) -> int:
        """The handle of a kernel, which may then use that many bytes of shared memory. Raises: RuntimeError."""

class MatrixProduct:
    """Products of matrices by cuBLASLt on a device: result[i] = a[i] @ b[i] + bias, for each i of the batch.

    dtype, stored: codes. sizes: batch, rows, columns and depth. a, b: (is_transposed, pitch, step), result: (pitch, step), in elements.
    bias_alignment: bytes that divide its address; 0 without a bias.
    Raises: RuntimeError without a driver or the library; ValueError, TypeError.
    """

    def __init__(
        self,
        device: int,
        dtype: int,
        stored: int,
        is_tf32: bool,
        sizes: tuple[int, int, int, int],
        a: tuple[bool, int, int],
        b: tuple[bool, int, int],
        result: tuple[int, int],
        bias_alignment: int,
    ) -> None: ...
    def suggestions(self, wanted: int, most_bytes: int, alignments: tuple[int, int, int]) -> list[tuple[bytes, int]]:
        """(algorithm, bytes of workspace) of each suggested algorithm, the likely ones first; [] if the library has none.

        most_bytes: of workspace. alignments: bytes that divide the addresses of a, b and the result.
        """
    def choose(self, algorithm: bytes) -> int:
        """Run with an algorithm from now on. Result: bytes of its workspace. Raises: RuntimeError if the library does not have it."""

def open_blas(path: str) -> int:
    """Open cuBLASLt, which stays open. Result: its version, at every call. Raises: OSError."""

def use_cuda_driver(path: str) -> None:
    """Use another library in place of libcuda.so.1. Raises: RuntimeError if the driver is in use already."""

class CompiledGraph:
    """A compiled graph: called with its inputs it returns its outputs.

    inputs: a layout each, None for an int. allocations: bytes of each new output buffer. packs: (address, source buffer, nbytes)
    each. steps: (kind, what it needs), see `enum step_kind`: (address, cost_ns) for a native segment; (callable, ((buffer,
    offset_bytes, layout), ...), numbers of the sizes it gets after the tensors) for an extern call; (function, grid, threads,
    shared bytes, ((buffer, offset or size), ...), waits) for a launch; (target, source, nbytes) for a copy on the device; (product, a, b,
    result, bias or None, workspace or None, bytes of workspace), with a place (buffer, offset) each, for a product of matrices. outputs:
    (kind, index, offset, layout, literal or None) each, see `enum output_kind` in graph.h. written: inputs that the steps
    overwrite. single: the only output is returned bare. keep: output tensors that nobody refers to are written again by the next
    call. checks: (exception, text, size).

    symbols: (kind, input, dim, least, greatest) each, see `enum symbol_kind`; n_sizes: how many numbers a call works out, the
    symbols first; derive: the address of the function that computes the others, or a program (`inductor.runtime.size_programs`).
    device: None for the CPU, else (index, allocate(nbytes) -> storage, stream() -> handle, address of the checks' memory, owner,
    kind of recording).
    """

    artifact: Any
    @property
    def __name__(self) -> str: ...
    @property
    def writes_inputs(self) -> bool: ...
    @property
    def arena_bytes(self) -> int: ...
    def __init__(
        self,
        name: str,
        library: Library | None,
        inputs: tuple[_Layout | None, ...],
        allocations: tuple[_Size, ...],
        constants: tuple[Tensor, ...],
        packs: tuple[tuple[int, tuple[int, ...], int], ...],
        steps: tuple[tuple[Any, ...], ...],
        outputs: tuple[tuple[int, int, _Size, Any], ...],
        written: tuple[int, ...],
        arena_bytes: _Size,
        single: bool,
        keep: bool,
        checks: tuple[tuple[type[Exception], str, _Size], ...],
        symbols: tuple[tuple[int, int, int, int, int], ...],
        n_sizes: int,
        derive: int | tuple[int, ...],
        device: tuple[int, Any, Any, int, Any, int] | None,
    ) -> None: ...
    def __call__(self, *inputs: Tensor | int) -> Any:
        """Raises: TypeError or RuntimeError for inputs of another number or layout; what an extern call raises."""
    def raise_failed(self) -> None:
        """Raise the error of a check that failed on the device in an earlier call."""
    def release(self) -> None:
        """Drop kept outputs and packed weights; they come back as needed."""
