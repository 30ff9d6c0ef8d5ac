"""Exceptions that a capture raises. Internal exceptions steer the executor; public exceptions reach the user.

Owns the classes, and the text of an error that is logged instead of raised. `causes` has the catalogue of graph-break causes.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eager.base.tracebacks import THEIRS, owner_of

if TYPE_CHECKING:
    from dynamo.report.causes import Cause


def _named(name: str) -> Callable[[type], type]:
    """Give a class its name in `torch._dynamo.exc`."""

    def rename(cls: type) -> type:
        cls.__name__ = cls.__qualname__ = name
        cls.__module__ = "dynamo.exc"
        return cls

    return rename


@_named("TorchDynamoException")
class CaptureError(RuntimeError):
    """Base class of the public exceptions: a capture cannot do what the user requires."""


@_named("Unsupported")
class UnsupportedUnderFullgraph(CaptureError):
    """A graph break where `fullgraph=True` forbids one. Names the user's line, the cause and a hint."""


@_named("BackendCompilerFailed")
class BackendFailed(CaptureError):
    """The backend failed to compile a graph, and the graph must not run eagerly. The traceback ends in the frames of the backend."""

    def __init__(self, backend_name: str, inner_exception: Exception, place: str, is_built_in: bool) -> None:
        why = f"{type(inner_exception).__name__}: {inner_exception}"
        where = _innermost(inner_exception, ours=True) if is_built_in else ""
        bug = f"; a bug of the compiler{where}: FRAMEJIT_FULL_TRACEBACK=1 shows its frames" if where else ""
        super().__init__(f"backend={backend_name!r} raised:\n{why}\n\nwhile compiling {place}{bug}")
        self.backend_name, self.inner_exception = backend_name, inner_exception


@_named("InternalTorchDynamoError")
class InternalCaptureError(CaptureError):
    """A bug of the capture itself; `__cause__` is the original exception."""


@_named("FailOnRecompileLimitHit")
class RecompileLimitExceeded(CaptureError):
    """The recompile limit was reached under `fullgraph=True`."""


class ConstraintViolationError(CaptureError):
    """A dim marked with `mark_dynamic` cannot be dynamic: the program depends on its size, or the size is out of its range."""


class FailOnRecompile(CaptureError):
    """A call needed a new compilation under `set_stance("fail_on_recompile")`."""


class ForbiddenCall(CaptureError, AssertionError):
    """A captured program calls a function that `forbid_in_graph` names."""


class Steering(Exception):
    """Internal: base class of the exceptions that steer the executor. No instance reaches the user."""


class Unsupported(Steering):
    """Internal: the current instruction cannot be captured. The exception becomes a graph break."""

    def __init__(self, cause: Cause, detail: str) -> None:
        super().__init__(f"{cause.id}: {detail}")
        self.cause = cause
        self.detail = detail


class Restart(Steering):
    """Internal: capture again from the start, breaking at executed instruction number `at`."""

    def __init__(self, at: int, cause: Cause, detail: str) -> None:
        super().__init__(at)
        self.at = at
        self.cause = cause
        self.detail = detail


class BreakFound(Steering):
    """Internal: the capture ends here with a graph break; `stop` describes it (capture.Stop)."""

    def __init__(self, stop: Any) -> None:
        super().__init__()
        self.stop = stop


class GiveUp(Steering):
    """Internal: no part of this code can be captured; the code runs in plain Python."""

    def __init__(self, cause: Cause, detail: str) -> None:
        super().__init__(f"{cause.id}: {detail}")
        self.cause = cause
        self.detail = detail


def describe(error: BaseException, ours: bool = True) -> str:
    """Class, text and innermost place of an error that is logged without a traceback. ours: the place may lie in this library."""
    first, *more = f"{type(error).__name__}: {error}".split("\n", 1)
    return "\n".join([first + _innermost(error, ours), *more])


def _innermost(error: BaseException, ours: bool) -> str:
    """The innermost place of the user in the traceback; without one, and with `ours`, the innermost place of this library."""
    places = traceback.extract_tb(error.__traceback__)
    shown = [p for p in places if owner_of(p.filename) == THEIRS] or places[len(places) * (not ours) :]
    return f" (at {'/'.join(Path(shown[-1].filename).parts[-2:])}:{shown[-1].lineno})" if shown else ""
