"""The compiler backend: from functional graphs to native kernels, plans and artifacts on disk.

A functional graph (`fxir`) enters at `driver.backend.compile_graph`. If the disk cache has an artifact for its key, `runtime`
loads it. Otherwise `lowering` turns ops into loop definitions (`ir`), `plan` fuses them into kernels and places buffers, `cpp`
prints C++ (`triton` prints Triton), `base.toolchain` compiles it, `artifact` stores it, and `runtime` calls it.

Layers, each of which imports only from those before it: `config` (torch's names of settings), `base`, `ir`, `lowering`, `plan`,
`artifact`, `runtime`, `cpp`, `triton`, `driver`. Start reading at `driver/compile.py`, then `ir/definitions.py`.
"""

from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    if name == "config":
        return importlib.import_module("inductor.config")
    if name in ("list_mode_options", "list_options"):
        return getattr(importlib.import_module("inductor.base.options"), name)
    raise AttributeError(f"module 'inductor' has no attribute {name!r}")
