"""The precision in which autocast runs an op or a public function: declared by `Op(precision=)` and `@public(autocast=)`.

torch documents the policies of its CUDA and CPU ops. `eager.optable.autocast` carries them out.
"""
from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Policy(Enum):
    """How autocast casts the floating-point inputs of a call. It casts neither float64 nor tensors of other devices."""

    LOWER = "cast to the low precision of the autocast block"
    FLOAT32 = "cast to float32"
    FLOAT32_UNLESS_ASKED = "cast to float32 unless the call names a dtype"
    PROMOTE = "cast to the widest dtype of the inputs"
    KEEP = "cast nothing, and run with autocast off inside"
    REFUSE = "raise RuntimeError: the call is unsafe in low precision"


class Precision(NamedTuple):
    """The policy per device type; None where autocast leaves the call alone."""

    cuda: Policy | None = None
    cpu: Policy | None = None

    def on(self, device_type: str) -> Policy | None:
        """The policy for calls with tensors of a device type, "cuda" or "cpu"."""
        return self.cuda if device_type == "cuda" else self.cpu


LOWER = Precision(Policy.LOWER, Policy.LOWER)
FLOAT32 = Precision(Policy.FLOAT32, Policy.FLOAT32)
PROMOTE = Precision(Policy.PROMOTE, Policy.PROMOTE)
FLOAT32_ON_CUDA = Precision(cuda=Policy.FLOAT32)
FLOAT32_ON_CPU = Precision(cpu=Policy.FLOAT32)
FLOAT32_UNLESS_ASKED = Precision(cuda=Policy.FLOAT32_UNLESS_ASKED)
PROMOTE_ON_CUDA = Precision(cuda=Policy.PROMOTE)
PROMOTE_ON_CPU = Precision(cpu=Policy.PROMOTE)
