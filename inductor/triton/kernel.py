"""A printed kernel: source, arguments and launch parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from eager.base.dtypes import dtype
from eager.base.records import dataclass
from inductor.ir.sizes import Size

# Two int64 for each index check of the program, zero before the launch; a failing check writes 1 and the position.
CHECKS_POINTER: Final = "checks"


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
    positions if it is wider than the number's.
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

    @property
    def source(self) -> str:
        """A Python module with the kernel."""
        name, of = self.number
        number = f"    {name} = tl.program_id(0){f'.to({of})' if of else ''}\n" if name else ""
        return f"{self.before}\n\n@triton.jit\ndef {self.name}({', '.join(self.parameters)}):\n{number}{self.body}"

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


def grouped(name: str, parts: Sequence[tuple[TritonKernel, Sequence[str]]]) -> TritonKernel:
    """One kernel whose programs are the programs of several kernels, in order.

    parts: kernels without sizes, whose grids are ints and which do not depend on each other, each with the buffers of its pointers.
    """
    buffers = {n: t for k, names in parts for n, t in zip(names, k.dtypes, strict=True)}
    parameter = {n: f"p{i}" for i, n in enumerate(buffers)}
    functions: dict[tuple[object, ...], str] = {}
    sources, calls, starts, start = [k.before for k, _ in parts], [], [], 0
    for k, names in parts:
        if k.function not in functions:
            functions[k.function] = f"part_{len(functions)}"
            number, of = k.number
            widened = f"    {number} = {number}.to({of})\n" if of else ""
            signature = ", ".join((number or "pid", *k.parameters))
            sources.append(f"\n\n@triton.jit\ndef {functions[k.function]}({signature}):\n{widened}{k.body}")
        calls.append(f"{functions[k.function]}(pid - {start}, {', '.join(parameter[n] for n in names)})")
        starts.append(start)
        assert isinstance(k.grid, int)
        start += k.grid
    outputs = tuple(dict.fromkeys(n for k, names in parts for n, own in zip(names, k.pointers, strict=True) if own in k.outputs))
    return TritonKernel(name, "".join(dict.fromkeys(sources)), tuple(parameter.values()), "".join(_choice(calls, starts, "    ")),
                        tuple(buffers), outputs, (), tuple(buffers.values()), start, max(k.num_warps for k, _ in parts),
                        max(k.tile for k, _ in parts), number=("pid", ""))  # fmt: skip


def _choice(calls: Sequence[str], starts: Sequence[int], indent: str) -> list[str]:
    """Lines that make the last call that starts at or before the number of the program."""
    if len(calls) == 1:
        return [f"{indent}{calls[0]}\n"]
    half = len(calls) // 2
    return [f"{indent}if pid < {starts[half]}:\n", *_choice(calls[:half], starts[:half], indent + "    "),
            f"{indent}else:\n", *_choice(calls[half:], starts[half:], indent + "    ")]  # fmt: skip
