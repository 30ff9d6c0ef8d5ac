"""Hand-written plans for tests of the runtime: no compiler stage is involved."""

from __future__ import annotations

import resource
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from eager import Tensor
from inductor.artifact.format import RUNTIME_ABI, Allocation, ArtifactPlan, NativeSegment, NewOutput, SourceUnit, Spec
from inductor.base import toolchain
from inductor.base.toolchain import build
from inductor.runtime import loader

PRELUDE = RUNTIME_ABI + '\n#define EXPORT extern "C" __attribute__((visibility("default")))\n'


def spec(*shape: int, dtype: str = "float32") -> Spec:
    """A row-major layout."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return Spec(tuple(shape), tuple(reversed(strides)), dtype)


def affine_source(n: int, scale: float = 2.0, symbol: str = "segment") -> SourceUnit:
    """y = x * scale + 1 over n floats; x is buffer 0, y buffer 1."""
    text = f"""{PRELUDE}
EXPORT void {symbol}(char **bufs, const Runtime *rt) {{
  const float *x = (const float *)bufs[0]; float *y = (float *)bufs[1];
  for (long i = 0; i < {n}; i++) y[i] = x[i] * {scale}f + 1;
}}"""
    return SourceUnit("affine", text)


def affine_plan(n: int, symbol: str = "segment", cost_ns: int = 10) -> ArtifactPlan:
    return ArtifactPlan(
        (spec(n),), (NewOutput(0, spec(n)),), (Allocation(4 * n),), steps=(NativeSegment(symbol, cost_ns),)
    )


def make(
    folder: Path,
    plan: ArtifactPlan,
    source: str | Sequence[SourceUnit],
    constants: Mapping[str, Tensor] | None = None,
    **options: Any,
) -> Any:
    """Compile `source` and load it under `plan`."""
    units = [SourceUnit("unit", PRELUDE + source)] if isinstance(source, str) else list(source)
    library = folder / f"lib{len(list(folder.iterdir()))}.so"
    build(units, library, toolchain.toolchain())
    return loader.load(plan, library, constants or {}, name="graph", **options)


def peak_growth(run: Callable[[], object]) -> float:
    """Bytes by which the resident memory of this process grows at most while `run` runs.

    Linux forgets earlier peaks on request, so that a larger earlier test hides nothing; where it refuses, only a new peak counts.
    """
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    before = _peak()
    run()
    return _peak() - before


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0
