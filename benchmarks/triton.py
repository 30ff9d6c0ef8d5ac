"""`python -m benchmarks triton`: the machine code of Triton kernels for GPUs, compiled without a GPU.

Owns the facts of a kernel: registers, spills, shared memory, the widest access to global memory, instructions of the matrix unit.
`benchmarks.plans` says which kernels. Equal kernels are compiled once, by forked processes after Triton has hashed itself.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Final, TypeAlias

from rich.table import Table

from benchmarks.plans import COUNTED, SOURCES, TARGETS, Planned, described
from inductor.triton.compile import compile_kernel, instructions, prepare, resources
from inductor.triton.kernel import TritonKernel

_MATRIX: Final = ("UTCHMMA", "UTCQMMA", "HGMMA", "QGMMA", "HMMA", "IMMA", "DMMA")
_SUMMED: Final = frozenset({"ops", "large", "zoo"})  # groups with a line for a program instead of a line for a kernel
Job: TypeAlias = tuple["Code", TritonKernel]


@dataclass(frozen=True, slots=True)
class Code:
    """The machine code of one kernel of a program. capability: 90 for sm_90. error: the reason if it did not compile, else "".

    spilled_bytes: of a thread, out of registers. width: bits of the widest load or store of global memory; 0 without one. matrix: the
    matrix unit's instruction, "" without one. is_dot: whether the kernel multiplies tiles of 16-bit numbers, or of float32 as tf32.
    is_copied: whether loads run ahead of products.
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


def measured(text: str | None = None, capabilities: Sequence[int] = COUNTED, workers: int = 0,
             sources: Sequence[str] = ("programs",)) -> list[Code]:  # fmt: skip
    """The code of every kernel of the sources' programs whose name or group contains `text`. workers: processes, by default one a core.

    Raises: TritonUnavailable; ValueError if no program has the text.
    """
    plans = [p for source in sources for p in SOURCES[source](text, capabilities)]
    if not plans:
        raise ValueError(f"no program of {', '.join(sources)} contains {text!r}")
    return compiled(plans, workers)


def compiled(plans: Iterable[Planned], workers: int = 0) -> list[Code]:
    """The code of every kernel of plans, in their order. workers: processes, by default one a core; 1 compiles in this process."""
    prepare()
    rows: list[tuple[Code, Any]] = []  # names, and the key of the kernel; None for a plan with an error
    jobs: dict[Any, Job] = {}
    for p in plans:
        if p.error:
            rows.append((Code(p.group, p.name, "", "", p.capability, p.error), None))
        for kernel, title in p.kernels:
            code = Code(p.group, p.name, kernel.name, title, p.capability)
            key = (p.capability, *kernel.code)
            jobs.setdefault(key, (code, replace(kernel, name="kernel")))
            rows.append((code, key))
    workers = workers or os.cpu_count() or 1
    if workers == 1:
        made = [_compiled(job) for job in jobs.values()]
    else:
        with multiprocessing.get_context("fork").Pool(workers) as pool:
            made = pool.map(_compiled, jobs.values(), 8)
    found = dict(zip(jobs, made, strict=True))
    return [code if key is None else replace(found[key], group=code.group, program=code.program, kernel=code.kernel, title=code.title)
            for code, key in rows]  # fmt: skip


def _compiled(job: Job) -> Code:
    code, kernel = job
    is_product = "tl.dot" in kernel.source
    try:
        cubin = compile_kernel(kernel, code.capability)
        used, found = resources(cubin), instructions(cubin) if is_product or code.group not in _SUMMED else []
    except Exception as error:  # noqa: BLE001 - a kernel that does not compile is a line of the table
        return replace(code, error=described(error))
    return replace(
        code, registers=used.registers, spilled_bytes=used.spilled_bytes, shared_bytes=cubin.shared_bytes, width=widest(found),
        matrix=next((word for word in _MATRIX if any(i.startswith(word) for i in found)), ""),
        is_dot=any("tl.dot" in line and "'ieee'" not in line for line in kernel.source.splitlines()),
        is_copied=any(i.startswith(("LDGSTS", "UTMALDG")) for i in found), tile=kernel.tile, num_warps=kernel.num_warps,
        num_stages=kernel.num_stages,
    )  # fmt: skip


def widest(found: Sequence[str]) -> int:
    """Bits of the widest load or store of global memory among instructions."""
    bits = [0]
    for name in found:
        word, *parts = name.split(".")
        if word in ("LDG", "STG", "LDGSTS"):
            bits.append(next((int(p) for p in parts if p in ("64", "128")), 32))
    return max(bits)


def table(rows: Sequence[Code]) -> Table:
    """A line for each kernel of the benchmark programs; for ops and models a line for each program, and for each kernel with faults."""
    made = Table(title="triton", title_justify="left")
    for heading in ("program", "kernel", "sm", "registers", "spilled", "shared", "access", "matrix", "tile", "warps", "stages", ""):
        made.add_column(heading, justify="left" if heading in ("program", "kernel", "matrix", "") else "right")
    for r in rows:
        if r.group not in _SUMMED or r.faults:
            faults = f"[red]{'; '.join(r.faults)}[/red]" if r.faults else ""
            matrix = f"{r.matrix}{', copies ahead' if r.matrix and r.is_copied else ''}"
            made.add_row(f"{r.group}: {r.program}", r.kernel, str(r.capability), str(r.registers), str(r.spilled_bytes),
                         str(r.shared_bytes), str(r.width), matrix, str(r.tile), str(r.num_warps), str(r.num_stages), faults)  # fmt: skip
    summed = sorted((r for r in rows if r.group in _SUMMED), key=_program)
    for (group, name, capability), kernels in groupby(summed, _program):
        codes = list(kernels)
        registers, shared = (max(n) for n in zip(*((r.registers, r.shared_bytes) for r in codes), strict=True))
        spilled, faulty = sum(r.spilled_bytes for r in codes), sum(bool(r.faults) for r in codes)
        made.add_row(f"{group}: {name}", f"{len(codes)} kernels", str(capability), str(registers), str(spilled), str(shared), "",
                     f"{sum(bool(r.matrix) for r in codes)} kernels", "", "", "", f"{faulty} faults" if faulty else "")  # fmt: skip
    return made


def _program(r: Code) -> tuple[str, str, int]:
    """Of a line that is the sum of the kernels of an op or a model."""
    return r.group, r.program.split(",")[0].split("-")[0], r.capability


__all__ = ["Code", "compiled", "measured", "table", "widest"]
