"""`eager.compile` and torch.compiler's names: doors to `dynamo`, which is imported on first use.

eager stands below dynamo and must not import it; these functions find it by name when they are called,
so that a program that never compiles never loads the compiler.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any


def _dynamo() -> Any:
    return importlib.import_module("dynamo.api")


def compile(model: Any = None, *, fullgraph: bool = False, dynamic: bool | None = None, backend: Any = "inductor",  # noqa: A001
            mode: str | None = None, options: dict[str, Any] | None = None, disable: bool = False) -> Any:  # fmt: skip
    """Compile a function or Module on its first call; as `@compile` or `@compile(...)` a decorator.

    fullgraph: raise where the graph would break. dynamic: None lets a dimension that changes become symbolic.
    backend: a name of `list_backends()` or a callable (graph_module, example_inputs) -> callable.
    mode: "default", "reduce-overhead" or "max-autotune". disable: return `model` as it is.
    """
    return _dynamo().compile(model, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options,
                             disable=disable)  # fmt: skip


def disable(fn: Callable[..., Any] | None = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Never capture `fn` (and what it calls, if `recursive`)."""
    return _dynamo().disable(fn, recursive, reason=reason)


def call_outside(fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Call `fn` as if no compiled function were running: nothing is captured in it on behalf of a caller.

    For what is run again later, outside of the caller: both runs must then do the same ops. Functions that are
    compiled themselves still run compiled.
    """
    native = sys.modules.get("dynamo._native")
    return fn(*args, **kwargs) if native is None else native.call_outside(fn, *args, **kwargs)


def reset() -> None:
    """Forget everything compiled in this process."""
    _dynamo().reset()


def list_backends(exclude_tags: Any = ()) -> list[str]:
    """Names that `backend=` accepts."""
    return list(_dynamo().list_backends())


def allow_in_graph(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Put calls of `fn` into the graph as they are, without looking inside."""
    return _dynamo().allow_in_graph(fn)


def assume_constant_result(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Call `fn` once during capture and take its result for a constant."""
    return _dynamo().assume_constant_result(fn)


def is_compiling() -> bool:
    """True inside code that is being captured; capture answers the call itself, so here it is False."""
    return False


def is_dynamo_compiling() -> bool:
    """The same as `is_compiling`."""
    return False
