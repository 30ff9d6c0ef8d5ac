"""The time of each kernel of a CUDA graph, measured alone: `TORCH_LOGS=kernel_times`.

Owns the table. A kernel runs on generated inputs after the last cache was overwritten (`inductor.driver.gpu_timing`), so that a graph,
in which a kernel may find its inputs in the cache, can take less than the sum.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich import box
from rich.console import Console
from rich.table import Table

from eager.base.device import device
from eager.base.dtypes import dtype
from inductor.driver.cuda import CudaPlan, Launch, Product
from inductor.driver.gpu_timing import EventTimer, Timer, Variant
from inductor.ir.sizes import fixed, is_symbolic
from inductor.triton.compile import Cubin
from inductor.triton.kernel import CHECKS_POINTER, TritonKernel

__all__ = ["KernelTime", "profiled", "report", "table"]

_TITLE = 70  # most characters of a kernel's title
_WIDTH = 140


class KernelTime(NamedTuple):
    """One kernel of a graph. runs: launches of it in a call of the graph. seconds: of one run. nbytes: of its buffers, each once.

    error: why it was not timed, or "".
    """

    title: str
    runs: int
    seconds: float
    nbytes: int
    error: str = ""

    @property
    def total(self) -> float:
        """Seconds in a call of the graph."""
        return self.runs * self.seconds


def report(plan: CudaPlan, cubins: Sequence[Cubin], where: device) -> str:
    """The table of a plan's kernels on a device. cubins: their machine code."""
    return table(profiled(plan, cubins, EventTimer(where, plan.target)))


def profiled(plan: CudaPlan, cubins: Sequence[Cubin] | None, timer: Timer) -> list[KernelTime]:
    """Every kernel of a plan, the longest total first. cubins: the machine code of its kernels; None for the emulated device."""
    try:
        found = [_timed(timer, *of) for of in (*_kernels(plan, cubins), *_products(plan, cubins))]
    finally:
        timer.release()
    return sorted(found, key=lambda k: k.total, reverse=True)


def _kernels(plan: CudaPlan, cubins: Sequence[Cubin] | None) -> Iterator[tuple[str, int, Variant | None]]:
    """The title, the runs and the variant of each kernel. No variant for a kernel of symbolic sizes."""
    runs = Counter(s.kernel for s in plan.steps if isinstance(s, Launch))
    first = {s.kernel: s for s in reversed(plan.steps) if isinstance(s, Launch)}
    for number, launch in first.items():
        if is_symbolic(*(plan.memory[n].nbytes for n in launch.arguments if n in plan.memory)):
            yield launch.title, runs[number], None
            continue
        memory = _memory(plan, plan.kernels[number], launch)
        code = None if cubins is None else (cubins[number],)
        yield launch.title, runs[number], Variant((plan.kernels[number],), code, memory, len(plan.checks))


def _products(plan: CudaPlan, cubins: Sequence[Cubin] | None) -> Iterator[tuple[str, int, Variant]]:
    """The same for the products of a library."""
    for step in plan.steps:
        if isinstance(step, Product):
            memory = {n: (of, fixed((plan.memory[n].nbytes,), "a buffer")[0]) for n, of in step.call.buffers.items()}
            yield f"cuBLASLt: {step.title}", 1, Variant((), None if cubins is None else (), memory, 0, step.call)


def _timed(timer: Timer, title: str, runs: int, variant: Variant | None) -> KernelTime:
    if variant is None:
        return KernelTime(title, runs, 0.0, 0, "its sizes are symbolic")
    try:
        seconds, error = timer.seconds(variant), ""
    except (RuntimeError, MemoryError) as failure:
        seconds, error = 0.0, f"{type(failure).__name__}: {failure}".partition("\n")[0]
    return KernelTime(title, runs, seconds, sum(n for _, n in variant.memory.values()), error)


def table(kernels: Sequence[KernelTime]) -> str:
    """The kernels as text: runs in a call, microseconds of a run, share of the sum, and bytes of the buffers a second."""
    whole = sum(k.total for k in kernels) or 1.0
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for heading in ("runs", "us", "share", "MB", "GB/s"):
        made.add_column(heading, justify="right", no_wrap=True)
    made.add_column("kernel", no_wrap=True)
    for k in kernels:
        title = k.title if len(k.title) <= _TITLE else k.title[: _TITLE - 3] + "..."
        figures = ("", "", "", "") if k.error else (f"{k.seconds * 1e6:.1f}", f"{k.total / whole:.1%}", f"{k.nbytes / 1e6:.2f}",
                                                    f"{k.nbytes / k.seconds / 1e9:.0f}" if k.seconds else "")  # fmt: skip
        made.add_row(str(k.runs), *figures, f"{title}: {k.error}" if k.error else title)
    text = io.StringIO()
    Console(file=text, width=_WIDTH, color_system=None).print(made)
    count = sum(k.runs for k in kernels)
    return f"{count} launches of {len(kernels)} kernels, {whole * 1e6:.1f} us one after another\n{text.getvalue().rstrip()}"


def _memory(plan: CudaPlan, kernel: TritonKernel, launch: Launch) -> dict[str, tuple[dtype, int]]:
    """The dtype and bytes of the buffer behind each pointer of a kernel, by the pointer's name."""
    found = {}
    for pointer, of, name in zip(kernel.pointers, kernel.dtypes, launch.arguments, strict=True):
        if pointer != CHECKS_POINTER:
            found[pointer] = of, fixed((plan.memory[name].nbytes,), "a buffer")[0]
    return found
