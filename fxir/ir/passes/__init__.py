"""Passes over functional graphs. Each is a function `graph -> number of changes` that edits the graph in place.

`simplify.run_passes` is the pipeline; `PIPELINE` gives its order. `run_optional` runs the passes that a backend requests, of `OPTIONAL`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from fxir.ir.passes.channels_last import IMAGES, channels_last
from fxir.ir.passes.fold_batch_norm import fold_batch_norm
from fxir.ir.passes.simplify import (
    PIPELINE,
    Optional,
    Pass,
    canonicalise,
    constant_fold,
    cse,
    dce,
    run_optional,
    run_passes,
)

OPTIONAL: Final[Mapping[str, Optional]] = MappingProxyType(
    {
        "fold_batch_norm": Optional(fold_batch_norm, frozenset({"convolution"})),
        "channels_last": Optional(channels_last, frozenset(IMAGES)),
    }
)

__all__ = [
    "OPTIONAL",
    "PIPELINE",
    "Optional",
    "Pass",
    "canonicalise",
    "channels_last",
    "constant_fold",
    "cse",
    "dce",
    "fold_batch_norm",
    "run_optional",
    "run_passes",
]
