"""`python -m benchmarks triton`: the machine code of the Triton kernels of typical graphs, compiled without a GPU.

Owns the facts of a kernel: registers, spills, shared memory, the widest access to global memory, instructions of the matrix unit.
Kernels are compiled by forked processes, after Triton has hashed itself once.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from rich.table import Table

from benchmarks.cuda_graphs import PROGRAMS
from benchmarks.rows import chosen
from inductor.base.target import SM_80, SM_90
from inductor.driver.cuda import CudaPlan, Launch, lower_to_cuda
from inductor.triton.compile import compile_kernel, instructions, load_triton, resources
from inductor.triton.kernel import TritonKernel

TARGETS: Final = {80: SM_80, 90: SM_90}
_MATRIX: Final = ("HGMMA", "HMMA", "IMMA", "DMMA")


@dataclass(frozen=True, slots=True)
class Code:
    """The machine code of one kernel of a program. capability: 90 for sm_90. error: why there is none, else "".

    spilled_bytes: of a thread, out of registers. width: bits of the widest load or store of global memory; 0 without one. matrix: the
    matrix unit's instruction, "" without one. is_dot: whether the kernel multiplies tiles of 16-bit numbers. is_copied: whether loads
    run ahead of products.
    """

    group: str
    program: str
    kernel: str
    title: str
    capability: int
    error: str = ""
    registers: int = 0
    spilled_bytes: int = 0
    shared_bytes: int = 0
    width: int = 0
    matrix: str = ""
    is_dot: bool = False
    is_copied: bool = False
    tile: int = 0
    num_warps: int = 0
    num_stages: int = 0

    @property
    def faults(self) -> list[str]:
        """The requirements that the code misses."""
        found = [self.error] if self.error else []
        if self.spilled_bytes:
            found.append(f"spills {self.spilled_bytes} bytes")
        if self.shared_bytes > TARGETS[self.capability].shared_bytes:
            found.append("too much shared memory")
        if self.is_dot and not self.matrix and not self.error:
            found.append("no matrix instruction")
        if self.group == "pointwise" and self.width < 128 and not self.error:
            found.append("no 16-byte access")
        return found


def measured(text: str | None = None, capabilities: Sequence[int] = tuple(TARGETS), workers: int = 0) -> list[Code]:
    """The code of every kernel of the programs whose name or group contains `text`. workers: processes, by default one a core.

    Raises: TritonUnavailable; ValueError if no program has the text.
    """
    load_triton()
    importlib.import_module("triton.runtime.cache").triton_key()
    jobs: list[tuple[Code, TritonKernel]] = []
    found = []
    for program in chosen(PROGRAMS, text):
        for capability in capabilities:
            code = Code(program.group, program.name, "", "", capability)
            try:
                jobs += _kernels(code, any(of.itemsize == 2 for _, of in program.of), lower_to_cuda(program.graph(), TARGETS[capability]))
            except Exception as error:  # noqa: BLE001 - a program without a plan is a line of the table
                found.append(_failed(code, error))
    with multiprocessing.get_context("fork").Pool(workers or os.cpu_count()) as pool:
        return [*found, *pool.imap(_compiled, jobs)]


def _kernels(code: Code, is_half: bool, plan: CudaPlan) -> Iterable[tuple[Code, TritonKernel]]:
    titles = {s.kernel: s.title for s in plan.steps if isinstance(s, Launch)}
    for number, kernel in enumerate(plan.kernels):
        yield _named(code, kernel, titles[number], is_half), kernel


def _named(code: Code, kernel: TritonKernel, title: str, is_half: bool) -> Code:
    return Code(code.group, code.program, kernel.name, title, code.capability, is_dot=is_half and "tl.dot" in kernel.source,
                tile=kernel.tile, num_warps=kernel.num_warps, num_stages=kernel.num_stages)  # fmt: skip


def _failed(code: Code, error: Exception) -> Code:
    text = str(error).strip().splitlines() or [""]
    return Code(code.group, code.program, code.kernel, code.title, code.capability, f"{type(error).__name__}: {text[0]}")


def _compiled(job: tuple[Code, TritonKernel]) -> Code:
    code, kernel = job
    try:
        cubin = compile_kernel(kernel, code.capability)
        used, found = resources(cubin), instructions(cubin)
    except Exception as error:  # noqa: BLE001 - a kernel that does not compile is a line of the table
        return _failed(code, error)
    matrix = next((word for word in _MATRIX if any(i.startswith(word) for i in found)), "")
    return Code(code.group, code.program, code.kernel, code.title, code.capability, "", used.registers, used.spilled_bytes,
                cubin.shared_bytes, widest(found), matrix, code.is_dot, any(i.startswith(("LDGSTS", "UTMALDG")) for i in found),
                kernel.tile, kernel.num_warps, kernel.num_stages)  # fmt: skip


def widest(found: Sequence[str]) -> int:
    """Bits of the widest load or store of global memory among instructions."""
    bits = [0]
    for name in found:
        word, *parts = name.split(".")
        if word in ("LDG", "STG", "LDGSTS"):
            bits.append(next((int(p) for p in parts if p in ("64", "128")), 32))
    return max(bits)


def table(rows: Sequence[Code]) -> Table:
    """A line for each kernel."""
    made = Table(title="triton", title_justify="left")
    for heading in ("program", "kernel", "sm", "registers", "spilled", "shared", "access", "matrix", "tile", "warps", "stages", ""):
        made.add_column(heading, justify="left" if heading in ("program", "kernel", "matrix", "") else "right")
    for r in rows:
        faults = f"[red]{'; '.join(r.faults)}[/red]" if r.faults else ""
        matrix = f"{r.matrix}{', copies ahead' if r.matrix and r.is_copied else ''}"
        made.add_row(f"{r.group}: {r.program}", r.kernel, str(r.capability), str(r.registers), str(r.spilled_bytes), str(r.shared_bytes),
                     str(r.width), matrix, str(r.tile), str(r.num_warps), str(r.num_stages), faults)  # fmt: skip
    return made


__all__ = ["TARGETS", "Code", "measured", "table", "widest"]
