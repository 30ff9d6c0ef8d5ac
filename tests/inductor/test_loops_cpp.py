"""The law of printed code: C++ of scheduled loops gives what the interpreter gives, for random definitions and schedules."""

from __future__ import annotations

import ctypes
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from eager.base import dtypes
from fxir.expr import rules as E
from inductor.base.toolchain import build, toolchain
from inductor.cpp.loops import print_kernel
from inductor.cpp.prelude import prelude
from inductor.cpp.units import Code, Place, declared, joined
from inductor.cpp.vector_math import forms_used
from inductor.ir import definitions as ir
from inductor.loops.interpret import interpret
from inductor.loops.steps import to_text
from inductor.loops.tree import Block, Kernel, Local, Loop, Store, allocated
from inductor.loops.tree import Place as Slot
from tests.inductor.loop_programs import Program, programs, scheduled, without_contractions

CASES = int(os.environ.get("FRAMEJIT_TEST_LOOP_CASES", "300"))
IS_SEARCH = "FRAMEJIT_TEST_LOOP_CASES" in os.environ  # new cases in every run; else the same cases
BATCH = 30  # kernels that one run of the compiler takes

# Runs parallel loops in parts of two iterations, on one thread.
HEAD = """
static const i64* FJ_SIZES;
static void parts(const Runtime*, LoopFn f, void* ctx, long n, long) {
  for (long b = 0; b < n; b += 2) f(ctx, b, b + 2 < n ? b + 2 : n);
}
alignas(64) static char memory[1 << 16];
static void *scratch(const Runtime*, int, long nbytes) { return nbytes <= (long)sizeof memory ? memory : 0; }
static Runtime runtime() { Runtime rt = {}; rt.parallel_for = parts; rt.scratch = scratch; return rt; }
"""


@dataclass(frozen=True, slots=True)
class _Unit:
    name: str
    text: str
    reusable: bool = False
    vector_bits: int = 0


@st.composite
def cases(draw: st.DrawFn) -> tuple[Program, Kernel, str]:
    """A program, its loops after a random legal schedule, and the schedule as text."""
    program = draw(programs(has_masks=True))
    kernel, steps, _ = draw(scheduled(program.kernel()))
    return program, without_contractions(kernel), to_text(steps)


def compiled(kernels: list[tuple[Program, Kernel, str]]) -> ctypes.CDLL:
    """A library with the function `run<k>(bufs, sizes)` for each kernel."""
    lines, codes = [HEAD], list[Code]()
    for k, (program, kernel, _) in enumerate(kernels):
        memory = {name: Place(i, 0, kernel.dtypes[name]) for i, name in enumerate(program.sizes) if name in kernel.dtypes}
        made = print_kernel(kernel, memory, 0, "")
        symbols = " ".join(f"[[maybe_unused]] {line}" for line in declared(program.symbols))
        codes.append(made.code.inside(f"k{k}"))
        lines.append(codes[-1].text)
        lines.append(f'extern "C" __attribute__((visibility("default"))) void run{k}(char** bufs, const i64* sizes) '
                     f"{{ FJ_SIZES = sizes; const Runtime r = runtime(), *rt = &r; {symbols} {made.run(f'k{k}')} }}\n")  # fmt: skip
    tools = toolchain()
    head, body = prelude(tools.vector_functions), "".join(lines)
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "loops.so"
        build([_Unit("loops", head + body + forms_used(joined(codes).operations, tools.vector_functions))], target, tools)
        return ctypes.CDLL(str(target))


def run(library: ctypes.CDLL, k: int, program: Program, memory: dict[str, np.ndarray]) -> None:
    """Run kernel k of a library, of a program, on memory."""
    values = {s.name: n for s, n in program.symbols.items()}
    sizes = (ctypes.c_int64 * 4)(*(values.get(f"n{k}", 0) for k in range(4)))
    bufs = (ctypes.c_void_p * len(memory))(*(memory[n].ctypes.data for n in program.sizes))
    getattr(library, f"run{k}")(bufs, sizes)


@given(kernels=st.lists(cases(), min_size=BATCH, max_size=BATCH), seed=st.integers(0, 1 << 16))
@settings(max_examples=max(CASES // BATCH, 1), deadline=None, derandomize=not IS_SEARCH)
def test_printed_loops_give_what_the_interpreter_gives(kernels: list[tuple[Program, Kernel, str]], seed: int) -> None:
    library = compiled(kernels)
    for k, (program, kernel, text) in enumerate(kernels):
        expected, found = program.memory(seed), program.memory(seed)
        interpret(kernel, expected, program.symbols)
        run(library, k, program, found)
        for name, value in expected.items():
            assert name in program.temporary or np.array_equal(value, found[name]), f"{name} differs after {text}\n{kernel}"


def test_locals_of_two_blocks_with_equal_names_are_separate_variables() -> None:
    of = {"a": dtypes.float32, "b": dtypes.int64}
    results = {"x0": dtypes.float32, "x1": dtypes.int64, "x2": dtypes.float32, "x3": dtypes.int64}

    def block(*names: str) -> Block:
        stores = [Store(Slot(name, E.as_expr(0)), ir.const(2, t)) for name, t in of.items()]
        ends = [Store(Slot(x, E.as_expr(0)), ir.load(name, 0, t)) for x, (name, t) in zip(names, of.items(), strict=True)]
        return allocated([Local(name, 1, t) for name, t in of.items()], (*stores, *ends))

    axis = E.sym("i", 0, 1)
    assert isinstance(axis, E.Sym)
    kernel = Kernel((Loop(axis, 2, "serial", block("x0", "x1") + block("x2", "x3")),), results)
    program = Program((), dict.fromkeys(results, 1), {}, frozenset(), results)
    library, memory = compiled([(program, kernel, "")]), program.memory(0)
    library.run0((ctypes.c_void_p * 4)(*(memory[name].ctypes.data for name in results)), (ctypes.c_int64 * 4)())
    assert [memory[name].tolist() for name in results] == [[2.0]] * 4
