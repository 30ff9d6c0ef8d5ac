"""TorchScript's names. There is no TorchScript: `script` hands back what it is given, to run as Python.

A scripted function computes what the Python function computes, so running the Python is right; that it is not compiled
is said once. `compile` is this library's compiler. What only exists as TorchScript (`save`, `load`, `trace` with its
frozen control flow) raises NotImplementedError. Annotations (`ignore`, `export`, `Final`, ...) are identities.
"""
# No `from __future__ import annotations`: it would take the name of the submodule.
import contextlib
from collections.abc import Iterator
from typing import Any, Final, NoReturn, TypeVar

from eager.base import logs
from eager.jit import annotations
from eager.nn import Module

__all__ = [
    "Attribute", "Error", "Final", "ScriptFunction", "ScriptModule", "TracerWarning", "annotate", "export", "freeze", "ignore",
    "interface", "is_scripting", "is_tracing", "isinstance", "load", "optimize_for_inference", "optimized_execution", "save",
    "script", "script_if_tracing", "script_method", "trace", "trace_module", "unused",
]  # fmt: skip

T = TypeVar("T")
_isinstance = isinstance


class Error(RuntimeError):
    """What TorchScript code raises; nothing here does."""


class TracerWarning(Warning):
    """What tracing warns with; nothing here does."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Silence warnings that tracing would raise: there are none."""


def is_scripting() -> bool:
    """Whether this code runs as TorchScript: never."""
    return False


def is_tracing() -> bool:
    """Whether this code is being traced by `trace`: never."""
    return False


def _say_that_it_runs_as_python(what: str) -> None:
    text = f"jit.{what}: there is no TorchScript in framejit; the code runs as Python. Use compile() to make it fast."
    logs.warn_once(f"jit.{what}", text)


def script(obj: T, optimize: Any = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None) -> T:
    """`obj` (a function, class or Module) itself, to run as Python; said once per process."""
    _say_that_it_runs_as_python("script")
    return obj


def script_method(fn: T) -> T:
    """`fn` itself: see `script`."""
    _say_that_it_runs_as_python("script_method")
    return fn


def script_if_tracing(fn: T) -> T:
    """`fn` itself, for nothing is ever being traced."""
    return fn


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """An annotation for TorchScript's compiler: `@ignore` or `@ignore(drop=True)` hand back the function."""
    return drop if callable(drop) else lambda fn: fn


_script_if_tracing = script_if_tracing  # the name that torchvision takes


def _overload_method(fn: T) -> T:
    """`fn` itself: a signature for TorchScript only, whose function of the same name comes after it."""
    return fn


_overload = _overload_method


def unused(fn: T) -> T:
    """An annotation: `fn` itself."""
    return fn


def export(fn: T) -> T:
    """An annotation: `fn` itself."""
    return fn


def interface(obj: T) -> T:
    """An annotation: `obj` itself."""
    return obj


def annotate(the_type: Any, the_value: T) -> T:
    """An annotation: the value."""
    return the_value


def isinstance(obj: Any, target_type: Any) -> bool:  # noqa: A001 - torch's name
    """As the built-in; of generic types (`List[int]`) the container is looked at."""
    return _isinstance(obj, getattr(target_type, "__origin__", target_type))


class Attribute:
    """A value with a type for TorchScript's compiler."""

    def __init__(self, value: Any, type: Any) -> None:  # noqa: A002
        self.value, self.type = value, type


class ScriptFunction:
    """The class of functions compiled by TorchScript. It has no instances."""

    def __init__(self, *args: Any) -> None:
        _missing("ScriptFunction")


class ScriptModule(Module):
    """The class of modules compiled by TorchScript. A subclass is an ordinary Module; `isinstance` tells no more."""


def _missing(what: str) -> NoReturn:
    raise NotImplementedError(
        f"jit.{what}: there is no TorchScript in framejit; use compile() to make code fast, and save() of a state_dict to keep weights"
    )


def trace(func: Any, example_inputs: Any = None, **options: Any) -> Any:
    """Not available: a trace freezes control flow, which running the Python would not. Raises: NotImplementedError."""
    _missing("trace")


def trace_module(mod: Any, inputs: Any, **options: Any) -> Any:
    """Not available: see `trace`. Raises: NotImplementedError."""
    _missing("trace_module")


def _get_trace_graph(f: Any, args: Any = (), kwargs: Any = None, **options: Any) -> Any:
    """Not available: see `trace`. Raises: NotImplementedError."""
    _missing("_get_trace_graph")


def save(m: Any, f: Any, _extra_files: Any = None) -> None:
    """Not available. Raises: NotImplementedError."""
    _missing("save")


def load(f: Any, map_location: Any = None, _extra_files: Any = None) -> Any:
    """Not available. Raises: NotImplementedError."""
    _missing("load")


def freeze(mod: Any, preserved_attrs: Any = None, optimize_numerics: bool = True) -> Any:
    """`mod` in the form of TorchScript. Raises: NotImplementedError, for that form does not exist."""
    _missing("freeze")


def optimize_for_inference(mod: T, other_methods: Any = None) -> T:
    """`mod` itself: optimising is the business of `compile`."""
    _say_that_it_runs_as_python("optimize_for_inference")
    return mod


@contextlib.contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """A block in which TorchScript would optimise or not: nothing is TorchScript."""
    yield
