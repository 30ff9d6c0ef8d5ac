"""CUDA devices as a machine of the backend: the cache key, and the build of a graph's library."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from eager.base import logs, precision
from eager.base.device import device
from eager.cuda import backend as cuda
from fxir.base.options import CompileOptions, GraphKind
from fxir.ir.graph import Graph
from inductor.artifact.cache import CUDA_WINNERS, PRODUCT_WINNER, Cache
from inductor.artifact.format import Compiled
from inductor.base import records
from inductor.base.options import budget_s, launches_early, tries_descriptors
from inductor.base.target import Target
from inductor.runtime import blas

TIMES = logs.artifact("kernel_times")
_TUNING = logs.artifact("autotuning")
_PRODUCTS: Final = frozenset({"mm", "bmm", "convolution", "conv_weight"})  # ops whose kernels are contractions


class CudaMachine:
    """One CUDA device. See `inductor.driver.backend.Machine`."""

    def __init__(self, where: device, is_tuned: bool) -> None:
        """is_tuned: whether kernels without a stored schedule are measured. Raises: RuntimeError without a GPU."""
        self.where, self.is_tuned = where, is_tuned
        self.is_emulated = cuda.backend().is_emulated
        self.capability = cuda.get_device_capability(where)

    def key_parts(self, graph: Graph, options: CompileOptions, store: Cache) -> dict[str, str]:
        name = "emulated" if self.is_emulated else cuda.get_device_name(self.where)
        major, minor = self.capability
        has_products = any(getattr(n.target, "name", None) in _PRODUCTS for n in graph.find("call_function"))
        uses_winners = has_products and not self.is_emulated and not self.is_tuned
        winners = records.inventory(store.dir / CUDA_WINNERS, PRODUCT_WINNER) if uses_winners else ""
        return {
            "winners": winners,
            "cuBLASLt": str(self._library()) if has_products and (winners or self.is_tuned) else "",
            "toolchain": f"triton {_triton_version()}, {name}, capability {major}.{minor}",
            "float32 products": _precision(),
            "deterministic": str(precision.are_deterministic_algorithms_enabled()),
        }

    def build(
        self, graph: Graph, kind: GraphKind, options: CompileOptions, store: Cache, folder: Path, lap: Callable[[str], None]
    ) -> tuple[Compiled, Path | None]:
        compiler = importlib.import_module("inductor.driver.cuda_artifact")  # here, so that a hit does not pay for the import
        lap("import compiler")
        target = compiler.target_of(self.capability)
        choose = self._choose(graph, options, store, target)
        lap("autotune")
        made = compiler.compile_for_cuda(graph, self.where, target, _precision(), choose, is_emulated=self.is_emulated,
                                         is_deterministic=precision.are_deterministic_algorithms_enabled(),
                                         launches_early=launches_early(options.options))  # fmt: skip
        lap("generate code")
        if TIMES.enabled:
            self._log_times(made)
            lap("measure kernels")
        if made.code is None:
            return made.compiled, None
        library = folder / "kernels.cubins"
        library.write_bytes(made.code)
        return made.compiled, library

    def _library(self) -> int:
        """The version of the library of matrix products; 0 without one. It is opened only where a product may use it."""
        return 0 if self.is_emulated else blas.version()

    def _log_times(self, made: Any) -> None:
        """Log the time of each kernel of a compiled graph. made: a `cuda_artifact.CompiledForCuda`."""
        if self.is_emulated:
            TIMES.log("an emulated device has no times to measure")
            return
        TIMES.log(importlib.import_module("inductor.driver.gpu_profile").report(made.plan, made.cubins, self.where))

    def _choose(self, graph: Graph, options: CompileOptions, store: Cache, target: Target) -> Any:
        """The schedules of the kernels (`inductor.driver.cuda.Choose`): measured ones, or by default the stored ones of products."""
        parts = self.key_parts(graph, options, store)
        library = int(parts["cuBLASLt"] or 0)
        stored = importlib.import_module("inductor.driver.gpu_winners").Winners
        winners = stored(store.dir / CUDA_WINNERS, parts["toolchain"], library, tries_descriptors(options.options))
        if self.is_tuned and not self.is_emulated:
            tuner = importlib.import_module("inductor.driver.gpu_autotune")
            return tuner.measured(graph, self.where, target, _precision(), winners, budget_s(options))
        if self.is_tuned:
            _TUNING.log("an emulated device has no times to measure: every kernel keeps the default")
        return winners.choose_product


def _precision() -> str:
    """How products of float32 are computed: "ieee", or "tf32" if the program allows it."""
    return "ieee" if precision.get_float32_matmul_precision() == "highest" else "tf32"


def _triton_version() -> str:
    """The installed version, without an import; "" if triton is not installed."""
    try:
        return metadata.version("triton")
    except metadata.PackageNotFoundError:
        return ""
