"""The compiler backend: from functional graphs to native kernels, plans and artifacts on disk.

A functional graph (`fxir`) enters at `driver.backend.compile_graph`. If the disk cache has an artifact for its key, `runtime`
loads it. Otherwise `lowering` turns ops into definitions of buffers (`ir`), `plan` groups them into kernels and places buffers,
`loops` builds the loop tree of a kernel, `plan.heuristics` chooses the schedule that changes it, and `cpp` prints it as C++.
`base.toolchain` compiles the text, `artifact` stores it, and `runtime` calls it. For CUDA tensors `driver.cuda` makes a plan instead:
`plan.narrow_operands`, `plan.split_products`, `plan.padded_operands` and `plan.narrow_results` change how products read and store,
`plan.gpu_nests` joins sums, `plan.gpu_schedule` chooses schedules over programs and tiles for a `base.target`, `triton` prints the
trees, and `plan.launch_groups` finds the launches that run as one. A graph that computes on the CPU as well is divided by
`driver.device_parts`.

Layers, each of which imports only from the layers before it: `config` (torch's names of settings), `base`, `ir`, `loops`, `lowering`,
`plan`, `artifact`, `runtime`, `cpp`, `triton`, `driver`, `cache` (the command `python -m inductor.cache`). Start reading at
`driver/compile.py`, then `ir/definitions.py`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from eager.startup import absent_names, first_use

first_use.register("inductor", {name: f"inductor.base.options:{name}" for name in ("list_mode_options", "list_options")})

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...

else:
    __getattr__ = absent_names.attribute_finder(sys.modules[__name__], "torch._inductor", None)
