"""The time of candidates of one kernel on the CPU: compiled to a library, and run on memory of the kernel's sizes.

Owns the library, the memory, and the results of a run. It does not depend on how a candidate was chosen.

Memory is bounded: buffers that are only read share a pool; a buffer that is written has memory of its size, once for all candidates.
Results that are longer than `_COMPARED_BYTES` are compared in parts. Integers that are read as positions are positions of the buffer that
they are checked for, in random order, and other integers are zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from eager._tensor.tensor import Tensor
from eager.base.dtypes import dtype
from inductor.artifact import format as A
from inductor.base.toolchain import Toolchain, build
from inductor.cpp.prelude import prelude
from inductor.cpp.units import Functions, spread
from inductor.cpp.vector_math import forms_used
from inductor.driver.comparison import compared_ranges, written_by
from inductor.driver.cpu_candidates import Candidate, call_places
from inductor.driver.timing import synthetic_inputs
from inductor.ir import definitions as ir
from inductor.loops.tree import Block, places_of, values_of, walk
from inductor.plan.updates import CHECKS
from inductor.runtime import loader

__all__ = ["Memory", "Run", "compile_candidates", "load_candidate"]

Memory = Mapping[str, tuple[dtype, int]]  # dtype and bytes of each buffer of a kernel

_LINE: Final = 64  # bytes: buffers of a graph begin with a line of the cache
_CHECK_BYTES: Final = 64
_COST_NS: Final = 1_000_000  # of a call: the workers of the thread pool stay awake
_COMPARED_BYTES: Final = 8 << 20  # of a result
_PATTERN: Final = 1 << 16  # numbers that repeat in a buffer that is written and read
_HEAD: Final = 'extern "C" __attribute__((visibility("default"))) void'


def compile_candidates(found: Mapping[int, Candidate], memory: Memory, checks: int, tools: Toolchain, library: Path,
                       timeout_s: float | None = None) -> None:  # fmt: skip
    """Compile candidates, by number, into one library.

    checks: of the graph. timeout_s: of a run of the compiler. Raises: CompileError.
    """
    places = call_places(memory)
    functions, calls = Functions(), ""
    head = prelude(tools.vector_functions)
    if checks:
        head += f"#define FJ_CHECKS ((i64*)bufs[{len(memory)}])\n"
    for number, candidate in found.items():
        printed = candidate.printed(places)
        name = functions.add("k", printed.code, "")
        reset = "FJ_CHECKS[0] = 0; " if checks else ""
        calls += f"{_HEAD} run_{number}(char** bufs, const Runtime* rt) {{ {reset}{printed.run(name)} }}\n"
    units = spread(head, functions.codes, calls, 1, lambda called: forms_used(called, tools.vector_functions))
    build(units, library, tools, None, timeout_s)


def load_candidate(number: int, memory: Memory, checks: int, library: Path) -> Callable[..., object]:
    """A compiled candidate as a function of its buffers."""
    specs = tuple(A.Spec((_count(of, nbytes),), (1,), of.name) for of, nbytes in memory.values())
    named = tuple(A.Check("IndexError", "position {} of a generated input") for _ in range(checks))
    plan = A.ArtifactPlan(specs, (), steps=(A.NativeSegment(f"run_{number}", _COST_NS),), checks=named,
                          arena_bytes=_CHECK_BYTES if checks else 0)  # fmt: skip
    return loader.load(plan, library, {}, name=f"candidate {number}")


def _count(of: dtype, nbytes: int) -> int:
    """Elements of a buffer that ends with a line of the cache."""
    return max(1, -(-nbytes // _LINE)) * _LINE // of.itemsize


class Run:
    """The memory on which the candidates of one kernel run."""

    def __init__(self, found: Sequence[Candidate], memory: Memory) -> None:
        written = written_by([c.kernel for c in found])
        specs = [A.Spec((_count(of, nbytes),), (1,), of.name) for of, nbytes in memory.values()]
        sizes = _sizes_of_positions(found[0].kernel.body)
        made = synthetic_inputs(specs, [i for i, name in enumerate(memory) if name in written.all or name in sizes])
        for name, t in zip(memory, made, strict=True):
            if name in sizes:
                t._array[...] = np.random.default_rng(0).integers(0, sizes[name], len(t._array))
        self.buffers: list[Tensor] = made
        self._results = {name: t._array for name, t in zip(memory, made, strict=True) if name in written.results}
        self._updated = sorted(written.updated)
        self.before = self.restore if self._updated else None  # for `measure`

    def restore(self) -> None:
        """Give the buffers that a kernel reads and writes their first values: values that are updated often leave their range."""
        for name in self._updated:
            array = self._results[name]
            pattern = _numbers(array.dtype)
            for start in range(0, len(array), len(pattern)):
                array[start : start + len(pattern)] = pattern[: len(array) - start]

    def results(self, run: Callable[..., object]) -> dict[str, np.ndarray]:
        """The results of one run, of which the long ones in parts."""
        for name, array in self._results.items():
            if name not in self._updated:
                array.view(np.uint8)[...] = 0xFF  # a candidate must not find the right results in this memory
        self.restore()
        run(*self.buffers)
        return {name: _compared(array) for name, array in self._results.items()}

    def bind(self, run: Callable[..., object]) -> Callable[[], object]:
        """A candidate on this memory."""
        return partial(run, *self.buffers)


def _sizes_of_positions(body: Block) -> dict[str, int]:
    """The buffers of integers that are read as positions, and the number of elements that these may be positions of."""
    found: dict[str, int] = {}
    values = [v for s in walk(body) for v in (*values_of(s), *(v for p in places_of(s) for _, v in p.indirect))]
    for v in ir.walk(values):
        if not isinstance(v, ir.Op) or v.name not in CHECKS or not isinstance(v.args[1], ir.Const):
            continue
        size = int(v.args[1].value)
        for x in ir.loads_in(v.args[0]):
            if x.dtype.is_integral and size > 0:
                found[x.buffer] = min(size, found.get(x.buffer, size))
    return found


def _compared(array: np.ndarray) -> np.ndarray:
    """The elements that are compared."""
    ranges = compared_ranges(len(array), _COMPARED_BYTES // array.itemsize)
    return np.concatenate([array[start:end] for start, end in ranges])


def _numbers(of: np.dtype) -> np.ndarray:
    """Normal numbers of a dtype; zeros if it has integers."""
    if of.kind in "iub":
        return np.zeros(_PATTERN, of)
    return np.random.default_rng(0).standard_normal(_PATTERN, dtype=np.float32).astype(of)
