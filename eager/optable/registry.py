"""The kinds of ops, and the table itself: every op by name.

`CALLS` is the table as modules below the class `Op` see it: gradient formulas and results call ops by name. `eager.optable.table.OPS`
is the same table, typed.
"""
from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, Final


class Kind(Enum):
    """The sort of computation of an op. The compiler lowers by it."""

    POINTWISE = "pointwise"  # scalar rule over broadcast inputs
    REDUCTION = "reduction"  # combines along dims
    VIEW = "view"  # other geometry over the same storage
    INDEXED = "indexed"  # moves elements: cat, gather, pad, scatter
    COMPOSITE = "composite"  # defined by its decomposition
    OPAQUE = "opaque"  # own kernel: matmul, sort, convolution
    CREATION = "creation"  # from numbers alone
    RANDOM = "random"  # from a generator state
    EFFECT = "effect"  # does something beside its result; order matters
    INPLACE = "inplace"  # writes its first argument; see Op.base


CALLS: Final[dict[str, Callable[..., Any]]] = {}  # `table.declare` alone adds to it
