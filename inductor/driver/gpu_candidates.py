"""The schedules of a kernel that are worth timing on a GPU, the default first.

Owns which sizes of tiles, warps and stages are tried. A candidate is scheduled and printed like the default; it is not compiled or run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from eager.base import dtypes
from eager.base.records import dataclass
from inductor.base.target import SM_90, Target
from inductor.ir.sizes import nominal, product
from inductor.loops.steps import Schedule, to_text
from inductor.loops.tree import Accumulate, Contract, Kernel, walk
from inductor.plan.gpu_schedule import (
    DEFAULT,
    LEAST_PRODUCT,
    Choice,
    block_of,
    itemsize_of,
    least_depth,
    schedule_gpu,
    sizes_of,
)
from inductor.plan.library_products import LibraryCall
from inductor.triton.kernel import Launches, Options, Scratch
from inductor.triton.loops import print_kernel

# (rows, columns, depth in bytes, warps, stages) of products. Operands of 16 or 8 bits:
_HALVES: Final = (
    (128, 256, 128, 8, 3), (128, 256, 128, 8, 4), (256, 128, 128, 8, 3), (256, 128, 128, 8, 4), (128, 128, 128, 8, 3),
    (128, 128, 128, 4, 4), (128, 128, 128, 8, 4), (128, 128, 64, 4, 5), (64, 256, 128, 4, 4), (256, 64, 128, 4, 4),
    (64, 128, 128, 4, 4), (128, 64, 128, 4, 4), (64, 128, 256, 4, 3), (64, 64, 128, 4, 5), (64, 64, 256, 4, 4),
    (32, 64, 256, 4, 4), (64, 32, 256, 4, 4), (32, 128, 128, 4, 4), (16, 32, 512, 4, 4), (16, 64, 256, 4, 5),
    (16, 128, 128, 4, 5), (16, 32, 512, 2, 5), (16, 16, 512, 2, 5), (32, 16, 512, 2, 5), (64, 16, 256, 4, 5),
)  # fmt: skip
_WIDER: Final = (
    (64, 64, 128, 4, 3), (128, 64, 128, 8, 3), (64, 128, 128, 8, 3), (128, 128, 64, 8, 3), (128, 128, 128, 8, 3), (64, 64, 64, 4, 4),
    (32, 64, 128, 4, 3), (32, 32, 128, 4, 4), (16, 32, 256, 4, 4), (16, 64, 128, 4, 4),
)  # fmt: skip
_PERSISTENT: Final = 8  # blocks, the likely ones, that persistent programs are tried with
_FULL: Final = 8  # warps of a program whose sums leave no registers to a second one
_POINTWISE: Final = ((1024, 8), (2048, 8), (2048, 4), (512, 4), (512, 2), (4096, 8), (4096, 16), (256, 2))  # elements, warps
_ROWS: Final = (
    (DEFAULT, 4), (DEFAULT, 2), (DEFAULT, 8), (DEFAULT, 16), (Choice(row=8192), 16), (Choice(row=16384), 16), (Choice(reduced=4096), 8),
    (Choice(reduced=4096), 16), (Choice(reduced=1024), 4), (Choice(block=2048), 8), (Choice(block=4096), 8), (Choice(columns=64), 8),
    (Choice(columns=128), 8), (Choice(columns=16), 4), (Choice(columns=64, reduced=4096), 8),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Candidate:
    """One schedule of a kernel and its launch parameters. choice: the sizes of tiles that the schedule was made with.

    library: the product that a library computes first; `kernel` is then the rest, which may be empty.
    """

    kernel: Kernel
    steps: Schedule
    options: Options
    choice: Choice = DEFAULT
    library: LibraryCall | None = None

    def printed(self, name: str) -> Launches:
        """The kernels, and the memory that they share with each other and the library. Raises: Unprintable."""
        made = print_kernel(self.kernel, name, self.options)
        return made if self.library is None else Launches(made.kernels, (*made.scratch, *_scratch(self.library)))

    def __str__(self) -> str:
        o = self.options
        return f"{to_text(self.steps)}; {o.num_warps or 'default'} warps, {o.num_stages or 'default'} stages"


def default_candidate(loops: Kernel, target: Target, options: Options) -> Candidate:
    """The schedule that rules choose, with the given launch parameters."""
    return Candidate(*schedule_gpu(loops, target), options)


def library_candidate(loops: Kernel, target: Target, call: LibraryCall) -> Candidate:
    """A kernel whose product a library computes. call: over a product of `library_products(loops)`."""
    precision = "tf32" if call.is_tf32 else "ieee"
    if call.workspace_bytes:
        call = call._replace(workspace=f"{call.product.result.buffer}_workspace")
    return Candidate(*schedule_gpu(call.product.after, target), Options(precision=precision), DEFAULT, call)


def _scratch(call: LibraryCall) -> list[Scratch]:
    result = call.product.result
    batch, rows, columns, _ = call.product.sizes
    found = [Scratch(result.buffer, batch * rows * columns, call.product.stored)] if call.product.is_temporary else []
    return [*found, Scratch(call.workspace, call.workspace_bytes, dtypes.uint8)] if call.workspace else found


def products_in(loops: Kernel) -> list[Contract]:
    """The contractions of plain loops. If there are any, the candidates differ in the blocks of the first."""
    return [x for x in loops.body if isinstance(x, Contract)]


def candidates(loops: Kernel, target: Target = SM_90, precision: str = "ieee", descriptors: bool = False) -> tuple[Candidate, ...]:
    """Schedules of plain loops, the default first, then the likely ones. precision: of products, as in `Options`.

    descriptors: whether persistent products whose operands have descriptors are among them, on targets that copy by descriptors.

    A schedule whose blocks of operands need more shared memory than the target has is left out. Registers and spills are known only
    after compilation.
    """
    found: list[Candidate] = []
    known: set[tuple[str, Options]] = set()
    for choice, options in ((DEFAULT, Options(precision=precision)), *_choices(loops, target, precision, descriptors)):
        kernel, steps = schedule_gpu(loops, target, choice)
        if (to_text(steps), options) not in known:
            known.add((to_text(steps), options))
            found.append(Candidate(kernel, steps, options, choice))
    return tuple(found)


def _choices(loops: Kernel, target: Target, precision: str, descriptors: bool) -> Iterator[tuple[Choice, Options]]:
    products = products_in(loops)
    if products:
        for number, (size, warps, stages) in enumerate(_blocks(products[0], target)):
            yield Choice(product=size), Options(warps, stages, precision)
            if number < _PERSISTENT:
                persistent = Choice(product=size, resident=_resident(products[0], target, size, warps, stages))
                yield persistent, Options(warps, stages, precision)
                if descriptors and target.multiplies_shared:
                    yield persistent._replace(descriptors=True), Options(warps, stages, precision)
    elif any(isinstance(x, Accumulate) for x in walk(loops.body)):
        for choice, warps in _ROWS:
            yield choice, Options(warps)
    else:
        for block, warps in _POINTWISE:
            yield Choice(block=block), Options(warps)


def _resident(x: Contract, target: Target, size: tuple[int, int, int], warps: int, stages: int) -> int:
    """Programs of a multiprocessor at once."""
    m, n, k = size
    return 1 if warps >= _FULL else max(1, min(2, target.shared_bytes // (stages * (m + n) * k * itemsize_of(x))))


def _blocks(x: Contract, target: Target) -> Iterator[tuple[tuple[int, int, int], int, int]]:
    """(blocks, warps, stages) of a product, the likely ones first: of about the size of the default's block."""
    itemsize = itemsize_of(x)
    rows, columns, depth = sizes_of(x)
    groups = nominal(product(n for _, n in x.axes.batch))
    default = block_of(target, x)
    found = []
    for m, n, deep_bytes, warps, stages in _HALVES if itemsize <= 2 else _WIDER:
        k = max(least_depth(itemsize), deep_bytes // itemsize)
        is_too_large = m >= 2 * max(rows, LEAST_PRODUCT) or n >= 2 * max(columns, LEAST_PRODUCT) or k >= 2 * max(depth, LEAST_PRODUCT)
        if is_too_large or stages * (m + n) * k * itemsize > target.shared_bytes:
            continue
        programs = groups * -(-rows // m) * -(-columns // n)
        rounds = -(-programs // target.cores) * target.cores / programs  # 1 where every multiprocessor always has a program
        distance = abs((m * n).bit_length() - (default[0] * default[1]).bit_length())
        found.append((distance + rounds, ((m, n, k), warps, stages)))
    for _, size in sorted(found, key=lambda f: f[0]):
        yield size


__all__ = ["Candidate", "candidates", "default_candidate", "library_candidate", "products_in"]
