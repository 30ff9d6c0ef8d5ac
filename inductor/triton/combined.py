"""One kernel that runs another kernel over several sets of buffers: each program finds its set by its number."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Final

from inductor.triton.kernel import CHECKS_POINTER, TritonKernel

MOST_POINTERS: Final = 192  # of one kernel
MOST_SETS: Final = 32  # each program compares its number with all of them


def most_sets(kernel: TritonKernel) -> int:
    """How many sets of buffers one launch can serve: 1 if the kernel cannot be combined.

    A kernel with checks or with sizes runs alone.
    """
    if not isinstance(kernel.grid, int) or kernel.sizes or CHECKS_POINTER in kernel.pointers:
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


__all__ = ["combined", "most_sets"]
