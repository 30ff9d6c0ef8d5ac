"""`torch._dynamo.backends.registry`: backends by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from dynamo.api.compile import list_backends, lookup_backend, register_backend

CompiledFn: TypeAlias = Callable[..., tuple[Any, ...]]
CompilerFn: TypeAlias = Callable[[Any, list[Any]], CompiledFn]

__all__ = ["CompiledFn", "CompilerFn", "list_backends", "lookup_backend", "register_backend"]
