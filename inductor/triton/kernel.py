"""A printed kernel: source, arguments and launch parameters."""

from __future__ import annotations

from typing import Final

from eager.base.dtypes import dtype
from eager.base.records import dataclass
from inductor.ir.sizes import Size

# Two int64 for each index check of the program, zero before the launch; a failing check writes 1 and the position.
CHECKS_POINTER: Final = "checks"
DESCRIPTOR_BYTES: Final = 128  # of one descriptor of a matrix, and its alignment


@dataclass(frozen=True, slots=True)
class Options:
    """Launch parameters that do not follow from the loops; 0 means: chosen from the size of the tiles.

    num_stages: blocks of the operands of a product that are loaded ahead, plus one. precision: of products of float32, "ieee" or
    "tf32" (10 bits of the operands' mantissas).
    """

    num_warps: int = 0
    num_stages: int = 0
    precision: str = "ieee"


@dataclass(frozen=True, slots=True)
class TritonKernel:
    """Source of one kernel and its launch parameters.

    before: functions that it calls. parameters: names in the source, of `pointers`, then of `sizes`. pointers: buffers in argument
    order. outputs: the pointers that it writes. sizes: the symbols that are passed as int64. dtypes: of the pointers. grid: the number
    of programs along x. tile: elements of its largest tile. number: the name of the number of the program in `body`, and the type of
    positions if it is wider than the number's. waits: whether it may be launched before the kernel in front of it ends: it waits for
    the end before it touches memory, and lets the kernel behind it be launched. descriptors: of matrices, which each program makes in
    the memory of the last pointer. No name in the source is for this pointer: it is the first of Triton's two hidden arguments. A
    kernel with descriptors has no sizes.
    """

    name: str
    before: str
    parameters: tuple[str, ...]
    body: str
    pointers: tuple[str, ...]
    outputs: tuple[str, ...]
    sizes: tuple[str, ...]
    dtypes: tuple[dtype, ...]
    grid: Size
    num_warps: int
    tile: int = 1
    num_stages: int = 1
    number: tuple[str, str] = ("", "")
    waits: bool = False
    descriptors: int = 0

    @property
    def source(self) -> str:
        """A Python module with the kernel."""
        name, of = self.number
        number = f"    {name} = tl.program_id(0){f'.to({of})' if of else ''}\n" if name else ""
        early = "    tl.extra.cuda.gdc_wait()\n    tl.extra.cuda.gdc_launch_dependents()\n" if self.waits else ""
        return f"{self.before}\n\n@triton.jit\ndef {self.name}({', '.join(self.parameters)}):\n{early}{number}{self.body}"

    @property
    def code(self) -> tuple[object, ...]:
        """The parts that kernels over other buffers may share: everything but names of the kernel and of its arguments."""
        return (*self.function, self.sizes, self.dtypes, self.grid, self.num_warps, self.num_stages)

    @property
    def function(self) -> tuple[str, tuple[str, ...], str, tuple[str, str]]:
        """The parts of its source that do not depend on its name."""
        return self.before, self.parameters, self.body, self.number


@dataclass(frozen=True, slots=True)
class Scratch:
    """Memory that the kernels of one group share: `size` elements."""

    name: str
    size: Size
    dtype: dtype


@dataclass(frozen=True, slots=True)
class Launches:
    """The kernels of one scheduled loop tree, in order, and the memory that they share."""

    kernels: tuple[TritonKernel, ...]
    scratch: tuple[Scratch, ...] = ()
