"""The text of a compiled core's caller, for tests that build a core alone."""

from __future__ import annotations

from inductor.cpp.gemm_problem import CoreCode
from inductor.cpp.units import joined


def text_of(code: CoreCode, epilogue: str = "", prologue: str = "") -> str:
    """The functions `core::run` and `core::pack` of a core's code, and their declarations."""
    made = joined([code.function("run", epilogue, prologue), *([code.pack] if code.pack is not None else [])])
    return "\n".join([*made.outside, made.inside("core").text])


SCARCE = """
static const Runtime *rich;
static long calls;
static void *sometimes(const Runtime *, int slot, long nbytes) { return calls++ % 2 ? 0 : rich->scratch(rich, slot, nbytes); }
static void *never(const Runtime *, int, long) { return 0; }
static void each_alone(const Runtime *, LoopFn fn, void *ctx, long n, long) { for (long i = 0; i < n; i++) fn(ctx, i, i + 1); }
static Runtime scarce(const Runtime *rt, void *(*scratch)(const Runtime *, int, long)) {
  rich = rt; calls = 0;
  Runtime poor = *rt; poor.scratch = scratch; poor.parallel_for = each_alone;
  return poor; }
"""  # `scarce(rt, never)` has no scratch memory; `scarce(rt, sometimes)` has some for every second task
