"""The inputs of a compilation besides the graph: machine, mode and tuning knobs.

Owns no behaviour. The backend makes one `Request` per compilation and passes it down; no stage reads settings.
"""

from __future__ import annotations

from dataclasses import field
from typing import Literal, TypeAlias

from eager.base.records import dataclass
from fxir.base.options import CompileOptions
from inductor.base.toolchain import Toolchain

__all__ = ["Knobs", "Request"]


@dataclass(frozen=True, slots=True)
class Knobs:
    """The knobs that autotuning may vary; a plan made with other knobs computes the same values.

    vector_bits: preferred SIMD width of loops, 0 for the machine's widest; a compiler flag, which the code does not depend on.
    parallel_ns: least estimated time of a loop that runs on several threads.
    """

    vector_bits: int = 0
    parallel_ns: int = 30_000


Packing: TypeAlias = Literal["none", "repeated", "all"]


@dataclass(frozen=True, slots=True)
class Request:
    """One compilation: `inductor.driver.compile.compile_graph(graph, kind, request) -> artifact.Compiled`.

    tools: the C++ compiler and its capabilities. options: the user's options. threads: of the pool that will run the code.
    has_blas: whether `rt->gemm` is fast. packing: which weights may be kept packed between calls: "all" (inference), "repeated"
    (training, where weights change in each step): weights that one call multiplies in a loop over time, or "none".
    `GraphSignature.parameters` and lifted constants are the candidates.
    """

    tools: Toolchain
    options: CompileOptions = field(default_factory=CompileOptions)
    threads: int = 1
    has_blas: bool = True
    packing: Packing = "none"
    knobs: Knobs = field(default_factory=Knobs)
