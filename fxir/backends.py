"""The registry of backends. A backend is a function `(gm, example_inputs, options) -> callable`.

Owns the registry and the two backends that generate no code. The backend "inductor" is imported by module name at its first
lookup; nothing else here depends on it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeAlias

from fxir.base.compilation import no_collections
from fxir.base.options import CompileOptions
from fxir.ir.graph_module import GraphModule
from fxir.region.aot import aot_compile, interpret

Compiled: TypeAlias = Callable[..., Any]
CheckOptions: TypeAlias = Callable[[Mapping[str, Any]], None]


class Backend(Protocol):
    """Compile `gm` for inputs like `example_inputs` (fake tensors).

    The callable returned takes one real tensor per placeholder and returns what `gm` returns, with the same
    mutations and autograd behaviour.
    """

    def __call__(self, gm: GraphModule, example_inputs: Sequence[Any], options: CompileOptions) -> Compiled: ...


# Modules that are imported at the first lookup of their backend; they call `register_backend` on import.
_LAZY: Final = {"inductor": "inductor.driver.backend"}

BUILT_IN: Final = ("eager", "aot_eager", "inductor")

_registry: dict[str, Backend] = {}
_checks: dict[str, CheckOptions] = {}


class InvalidBackend(RuntimeError):
    """No backend of that name is registered."""


def register_backend(
    name: str, fn: Backend, check_options: CheckOptions | None = None, writes_at_end: bool = False
) -> Backend:
    """Make `fn` available as `compile(backend=name)`; a later registration of the same name replaces the first.

    check_options: raises for `options` of compile() that the backend does not accept. writes_at_end: compiled code writes to
    its inputs last, so that no input is written when the code raises for its data (an index out of range).
    Raises: TypeError if fn is not callable or name is not a str.
    """
    if not isinstance(name, str) or not callable(fn):
        raise TypeError(f"register_backend: got ({name!r}, {fn!r}); allowed: a str and a callable")
    if writes_at_end:
        setattr(fn, "writes_at_end", True)  # noqa: B010 - an attribute that a function's type does not declare
    _checks.pop(name, None)
    if check_options is not None:
        _checks[name] = check_options
    _registry[name] = fn  # last: other threads use the backend from now on
    return fn


def check_options(name: str, options: Mapping[str, Any]) -> None:
    """Check `options` of compile() for the backend `name`. Raises: InvalidBackend; any error of the backend's own check."""
    lookup(name)
    if name in _checks:
        _checks[name](options)


def lookup(name: str) -> Backend:
    """The backend registered as `name`. Raises: InvalidBackend (a RuntimeError)."""
    if name not in _registry and name in _LAZY:
        with no_collections():
            importlib.import_module(_LAZY[name])
    if name not in _registry:
        raise InvalidBackend(
            f"Invalid backend: {name!r}, see `torch._dynamo.list_backends()` for available backends."
        )
    return _registry[name]


def list_backends() -> list[str]:
    """The names that `lookup` accepts, sorted."""
    return sorted({*_registry, *_LAZY})


def named(name: str) -> Backend:
    """The backend `name`. A backend whose module is not loaded yet is imported by its first graph. Raises: InvalidBackend."""
    return NamedBackend(name) if name in _LAZY and name not in _registry else lookup(name)


class NamedBackend:
    """A backend that its first graph imports."""

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def writes_at_end(self) -> bool:
        return getattr(lookup(self.name), "writes_at_end", False)

    def __call__(self, gm: GraphModule, example_inputs: Sequence[Any], options: CompileOptions) -> Compiled:
        return lookup(self.name)(gm, example_inputs, options)


def eager_backend(gm: GraphModule, example_inputs: Sequence[Any], options: CompileOptions) -> Compiled:
    """Run the captured graph unchanged: tests capture alone."""
    return gm.forward


def aot_eager_backend(gm: GraphModule, example_inputs: Sequence[Any], options: CompileOptions) -> Compiled:
    """Run the functional graphs op by op: tests everything except code generation."""
    return aot_compile(gm, example_inputs, interpret, options)


register_backend("eager", eager_backend)
register_backend("aot_eager", aot_eager_backend, writes_at_end=True)
