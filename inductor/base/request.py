"""The inputs of a compilation besides the graph: machine, mode and measured schedules.

Owns no behaviour. The backend makes one `Request` per compilation and passes it down; no stage reads settings.
"""

from __future__ import annotations

from dataclasses import field
from typing import Literal, TypeAlias

from eager.base.records import dataclass
from fxir.base.options import CompileOptions
from inductor.base.choice import Choose
from inductor.base.toolchain import Toolchain

__all__ = ["Request"]


Packing: TypeAlias = Literal["none", "repeated", "all"]


@dataclass(frozen=True, slots=True)
class Request:
    """One compilation: `inductor.driver.compile.compile_graph(graph, kind, request) -> artifact.Compiled`.

    tools: the C++ compiler and its capabilities. options: the user's options. threads: of the pool that will run the code.
    has_blas: whether `rt->gemm` is fast. packing: which weights may be kept packed between calls: "all" (inference), "repeated"
    (training, where weights change in each step): weights that one call multiplies in a loop over time, or "none".
    `GraphSignature.parameters` and lifted constants are the candidates. choose: the numbers of each kernel; None: the default for all.
    """

    tools: Toolchain
    options: CompileOptions = field(default_factory=CompileOptions)
    threads: int = 1
    has_blas: bool = True
    packing: Packing = "none"
    choose: Choose | None = None
