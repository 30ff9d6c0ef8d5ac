"""`torch._dynamo.exc`: the exceptions of a compilation under torch's names."""

from __future__ import annotations

from dynamo.report.errors import (
    BackendFailed,
    CaptureError,
    ConstraintViolationError,
    FailOnRecompile,
    InternalCaptureError,
    RecompileLimitExceeded,
    UnsupportedUnderFullgraph,
)
from fxir.backends import InvalidBackend
from fxir.export.dims import UserError

TorchDynamoException = CaptureError
Unsupported = UnsupportedUnderFullgraph
BackendCompilerFailed = BackendFailed
InternalTorchDynamoError = InternalCaptureError
FailOnRecompileLimitHit = RecompileLimitExceeded

__all__ = [
    "BackendCompilerFailed",
    "ConstraintViolationError",
    "FailOnRecompile",
    "FailOnRecompileLimitHit",
    "InternalTorchDynamoError",
    "InvalidBackend",
    "RecompileLimitExceeded",
    "TorchDynamoException",
    "Unsupported",
    "UserError",
]
