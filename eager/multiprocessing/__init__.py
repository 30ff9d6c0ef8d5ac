"""torch.multiprocessing: Python's `multiprocessing`, sending tensors through shared memory."""
from __future__ import annotations

from multiprocessing import *  # noqa: F403 - the same names
from multiprocessing import __all__ as _standard

from eager.multiprocessing.reductions import (
    get_all_sharing_strategies,
    get_sharing_strategy,
    init_reductions,
    set_sharing_strategy,
)
from eager.multiprocessing.spawn import (
    ProcessContext,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

init_reductions()
__all__ = [  # noqa: PLE0604 - the standard module's names are strings
    *_standard, "ProcessContext", "ProcessExitedException", "ProcessRaisedException", "SpawnContext",
    "get_all_sharing_strategies", "get_sharing_strategy", "set_sharing_strategy", "spawn", "start_processes",
]  # fmt: skip
