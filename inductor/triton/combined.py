"""One kernel for several: each program finds its work by its number.

`combined` runs one kernel over several sets of buffers, and chooses the pointers. `grouped` runs different kernels, and chooses the
function, of which the source has one for each.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

from inductor.triton.kernel import CHECKS_POINTER, TritonKernel

MOST_POINTERS: Final = 240  # of one kernel
MOST_SETS: Final = 32  # each program compares its number with all of them


def most_sets(kernel: TritonKernel) -> int:
    """How many sets of buffers one launch can serve: 1 if the kernel cannot be combined.

    A kernel with checks, with sizes or with descriptors runs alone: the memory of descriptors has no name in the source.
    """
    if not isinstance(kernel.grid, int) or kernel.sizes or kernel.descriptors or CHECKS_POINTER in kernel.pointers:
        return 1
    return max(1, min(MOST_SETS, MOST_POINTERS // len(kernel.pointers)))


def combined(kernel: TritonKernel, count: int, shared: Collection[int]) -> TritonKernel:
    """The kernel over `count` sets of buffers, the programs of one set after another.

    shared: the numbers of pointers that are equal in all sets. The pointers are the shared ones, then the others of each set.
    """
    own = [k for k in range(len(kernel.pointers)) if k not in shared]
    numbers = [*shared, *own * count]
    sets = [0] * len(shared) + [k for k in range(count) for _ in own]
    names = [kernel.parameters[k] if k in shared else f"{kernel.parameters[k]}_{s}" for k, s in zip(numbers, sets, strict=True)]
    pointers = [kernel.pointers[k] if k in shared else f"{kernel.pointers[k]}_{s}" for k, s in zip(numbers, sets, strict=True)]
    number, of = kernel.number
    lines = [f"which = program // {kernel.grid}"]
    if number:
        lines.append(f"{number} = (program % {kernel.grid}){f'.to({of})' if of else ''}")
    for name in (kernel.parameters[k] for k in own):
        lines += [f"{name} = {name}_0", *(f"{name} = tl.where(which == {s}, {name}_{s}, {name})" for s in range(1, count))]
    body = "".join(f"    {line}\n" for line in lines) + kernel.body
    outputs = tuple(p for p, k in zip(pointers, numbers, strict=True) if kernel.pointers[k] in kernel.outputs)
    assert isinstance(kernel.grid, int)
    return replace(
        kernel, parameters=tuple(names), body=body, pointers=tuple(pointers), outputs=outputs,
        dtypes=tuple(kernel.dtypes[k] for k in numbers), grid=kernel.grid * count,
        number=("program", ""),
    )  # fmt: skip


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


__all__ = ["MOST_POINTERS", "combined", "grouped", "most_sets"]
