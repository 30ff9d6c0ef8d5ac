"""CUDA devices as a machine of the backend: the cache key, and the build of a graph's library."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

from eager.base import precision
from eager.base.device import device
from eager.cuda import backend as cuda
from fxir.base.options import CompileOptions, GraphKind
from fxir.ir.graph import Graph
from inductor.artifact.cache import Cache
from inductor.artifact.format import Compiled


class CudaMachine:
    """One CUDA device. See `inductor.driver.backend.Machine`."""

    def __init__(self, where: device) -> None:
        """Raises: RuntimeError without a GPU."""
        self.where = where
        self.is_emulated = cuda.backend().is_emulated
        self.capability = cuda.get_device_capability(where)

    def key_parts(self, graph: Graph, options: CompileOptions, store: Cache) -> dict[str, str]:
        name = "emulated" if self.is_emulated else cuda.get_device_name(self.where)
        major, minor = self.capability
        return {
            "toolchain": f"triton {_triton_version()}, {name}, capability {major}.{minor}",
            "float32 products": _precision(),
        }

    def build(
        self, graph: Graph, kind: GraphKind, options: CompileOptions, store: Cache, folder: Path, lap: Callable[[str], None]
    ) -> tuple[Compiled, Path | None]:
        compiler = importlib.import_module("inductor.driver.cuda_artifact")  # here, so that a hit does not pay for the import
        lap("import compiler")
        target = compiler.target_of(self.capability)
        made = compiler.compile_for_cuda(graph, self.where, target, _precision(), is_emulated=self.is_emulated)
        lap("generate code")
        if made.code is None:
            return made.compiled, None
        library = folder / "kernels.cubins"
        library.write_bytes(made.code)
        return made.compiled, library


def _precision() -> str:
    """How products of float32 are computed: "ieee", or "tf32" if the program allows it."""
    return "ieee" if precision.get_float32_matmul_precision() == "highest" else "tf32"


def _triton_version() -> str:
    """The installed version, without an import; "" if triton is not installed."""
    try:
        return metadata.version("triton")
    except metadata.PackageNotFoundError:
        return ""
