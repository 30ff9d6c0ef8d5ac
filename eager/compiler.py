"""`eager.compile` and torch.compiler's names: entry points of `dynamo`, which is imported at first use.

eager is below dynamo and must not import it. These functions find it by name when they are called,
so that a program that never compiles never loads the compiler.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from eager._tensor.tensor import Tensor
from eager.functions.creation import from_numpy
from eager.startup import first_use


def _dynamo() -> Any:
    return first_use.find(__name__, "_dynamo")


def compile(model: Any = None, *, fullgraph: bool = False, dynamic: bool | None = None, backend: Any = "inductor",  # noqa: A001
            mode: str | None = None, options: dict[str, Any] | None = None, disable: bool = False) -> Any:  # fmt: skip
    """Compile a function or Module at its first call; also a decorator, `@compile` or `@compile(...)`.

    fullgraph: raise instead of breaking the graph. dynamic: None makes a size symbolic once it changes.
    backend: a name from `list_backends()` or a callable (graph_module, example_inputs) -> callable.
    mode: "default", "reduce-overhead" or "max-autotune". disable: return `model` unchanged.
    """
    return _dynamo().compile(model, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options,
                             disable=disable)  # fmt: skip


def disable(fn: Callable[..., Any] | None = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Never capture `fn` (and, if `recursive`, the functions that it calls)."""
    return _dynamo().disable(fn, recursive, reason=reason)


def call_outside(fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Call `fn` as if no compiled function were running: its calls are not captured for the caller.

    Used for functions that run again later, outside the caller: both runs must call the same ops. Compiled functions
    inside `fn` still run compiled.
    """
    native = sys.modules.get("dynamo._native")
    return fn(*args, **kwargs) if native is None else native.call_outside(fn, *args, **kwargs)


def reset() -> None:
    """Discard all compiled code of this process."""
    _dynamo().reset()


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """The names that `backend=` accepts. exclude_tags: ignored; backends here have no tags."""
    return list(_dynamo().list_backends(exclude_tags))


def allow_in_graph(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Put calls of `fn` into the graph unchanged, without tracing into it."""
    return _dynamo().allow_in_graph(fn)


def assume_constant_result(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Call `fn` once during capture and treat its result as a constant."""
    return _dynamo().assume_constant_result(fn)


def is_compiling() -> bool:
    """Whether this code is being captured. Capture replaces the call by True, so the function itself returns False."""
    return False


def is_dynamo_compiling() -> bool:
    """The same as `is_compiling`."""
    return False


def is_exporting() -> bool:
    """Whether this code is being exported. `export` replaces the call by True, so the function itself returns False."""
    return False


def substitute_in_graph(original_fn: Any, *, can_constant_fold_through: bool = False, skip_signature_check: bool = False) -> Any:
    """Decorator: capture the decorated Python function in place of calls of `original_fn`.

    can_constant_fold_through: call the original if all arguments are constants. skip_signature_check: allow differing parameters.
    """
    return _dynamo().substitute_in_graph(
        original_fn, can_constant_fold_through=can_constant_fold_through, skip_signature_check=skip_signature_check
    )


class set_stance:  # noqa: N801 - torch's name
    """The treatment of calls that are not compiled yet; see `dynamo.api.compile.set_stance`.

    Takes effect at once, within a block, or as a decorator.
    """

    def __init__(self, stance: str = "default", *, skip_guard_eval_unsafe: bool = False, force_backend: Any = None) -> None:
        self._made = _dynamo().set_stance(stance, skip_guard_eval_unsafe=skip_guard_eval_unsafe, force_backend=force_backend)

    def __enter__(self) -> None:
        self._made.__enter__()

    def __exit__(self, *exc: object) -> None:
        self._made.__exit__(*exc)

    def __call__(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        return self._made(fn)


def explain(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The result of capturing `fn(*args, **kwargs)`: graphs, breaks, guards."""
    return _dynamo().explain(fn, *args, **kwargs)


def save_cache_artifacts() -> tuple[bytes, Any] | None:
    """The code that this process has compiled or found on disk: its bytes and their `CacheInfo`; None without code.

    The bytes can be loaded into the cache of another machine with the same processor and versions.
    """
    return first_use.find(__name__, "_bundle").save_cache_artifacts()


def load_cache_artifacts(serialized_artifacts: bytes) -> Any:
    """Store the code of `save_cache_artifacts` in this cache, so that compilations find it. Returns its `CacheInfo`.

    None, with a warning, for bytes that are damaged or of another version. The bytes hold machine code: load trusted bytes only.
    """
    return first_use.find(__name__, "_bundle").load_cache_artifacts(serialized_artifacts)


def cudagraph_mark_step_begin() -> None:
    """Mark the start of an iteration. Does nothing: each call overwrites the outputs that the previous one kept."""


def nested_compile_region(fn: Any = None, **options: Any) -> Any:
    """Mark a function that a model calls many times. Each call is captured, with the same result."""
    return (lambda f: f) if fn is None else fn


def wrap_numpy(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function of ndarrays take and return tensors."""

    def given(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return type(value)(map(given, value))
        return value.detach().numpy() if isinstance(value, Tensor) else value

    def made(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return type(value)(map(made, value))
        return from_numpy(value) if type(value).__module__ == "numpy" and hasattr(value, "__array_interface__") else value

    @functools.wraps(fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return made(fn(*map(given, args), **{k: given(v) for k, v in kwargs.items()}))

    return wrapped


__path__: list[str] = []  # `import torch.compiler.config` requires a package

# Names of torch.compiler without a counterpart here, with the reason.
_MISSING = {
    **dict.fromkeys(("keep_portable_guards_unsafe", "keep_tensor_guards_unsafe", "skip_guard_on_inbuilt_nn_modules_unsafe",
                     "skip_guard_on_all_nn_modules_unsafe", "skip_guard_on_globals_unsafe", "skip_all_guards_unsafe"),
                    "guards are not skipped: a guard whose subject does not change costs nothing"),
    **dict.fromkeys(("set_default_backend", "get_default_backend"), "pass backend= to compile()"),
    "set_enable_guard_collectives": "there are no collectives", "load_compiled_function": "compiled functions are not files; see export",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _MISSING:
        raise AttributeError(f"module 'eager.compiler' has no attribute {name!r}")

    def missing(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"torch.compiler.{name}: not supported; {_MISSING[name]}")

    return missing
