"""TorchScript's names. TorchScript does not exist here: `script` returns its argument, which runs as Python.

A scripted function computes the same values as the Python function, so running the Python is correct; a log line states
once that it is not compiled. `compile` is this library's compiler. Functions that need TorchScript itself (`save`,
`load`, `trace` with its frozen control flow) raise NotImplementedError. Annotations (`ignore`, `export`, `Final`, ...)
are identities.
"""
# No `from __future__ import annotations`: it would shadow the submodule `annotations`.
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
    """The error of TorchScript code; never raised here."""


class TracerWarning(Warning):
    """The warning of tracing; never issued here."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Does nothing: tracing issues no warnings."""


def is_scripting() -> bool:
    """Whether this code runs as TorchScript: always False."""
    return False


def is_tracing() -> bool:
    """Whether `trace` is tracing this code: always False."""
    return False


def _say_that_it_runs_as_python(what: str) -> None:
    text = f"jit.{what}: there is no TorchScript in framejit; the code runs as Python. Use compile() to make it fast."
    logs.warn_once(f"jit.{what}", text)


def script(obj: T, optimize: Any = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None) -> T:
    """`obj` (a function, class or Module) itself, which runs as Python. The first call logs that."""
    _say_that_it_runs_as_python("script")
    return obj


def script_method(fn: T) -> T:
    """`fn` itself; see `script`."""
    _say_that_it_runs_as_python("script_method")
    return fn


def script_if_tracing(fn: T) -> T:
    """`fn` itself, because nothing is ever traced."""
    return fn


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """An annotation for TorchScript's compiler: `@ignore` and `@ignore(drop=True)` return the function."""
    return drop if callable(drop) else lambda fn: fn


_script_if_tracing = script_if_tracing  # torchvision imports this name


def _overload_method(fn: T) -> T:
    """`fn` itself: declares an additional signature for TorchScript."""
    return fn


_overload = _overload_method


def unused(fn: T) -> T:
    """An annotation: returns `fn`."""
    return fn


def export(fn: T) -> T:
    """An annotation: returns `fn`."""
    return fn


def interface(obj: T) -> T:
    """An annotation: returns `obj`."""
    return obj


def annotate(the_type: Any, the_value: T) -> T:
    """An annotation: returns the value."""
    return the_value


def isinstance(obj: Any, target_type: Any) -> bool:  # noqa: A001 - torch's name
    """The built-in `isinstance`; for generic types (`List[int]`) it checks the container only."""
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
    """The class of modules compiled by TorchScript. A subclass is an ordinary Module."""


def _missing(what: str) -> NoReturn:
    raise NotImplementedError(
        f"jit.{what}: there is no TorchScript in framejit; use compile() to make code fast, and save() of a state_dict to keep weights"
    )


def trace(func: Any, example_inputs: Any = None, **options: Any) -> Any:
    """Raises NotImplementedError: a trace freezes control flow, which plain Python execution would not."""
    _missing("trace")


def trace_module(mod: Any, inputs: Any, **options: Any) -> Any:
    """Raises NotImplementedError; see `trace`."""
    _missing("trace_module")


def _get_trace_graph(f: Any, args: Any = (), kwargs: Any = None, **options: Any) -> Any:
    """Raises NotImplementedError; see `trace`."""
    _missing("_get_trace_graph")


def save(m: Any, f: Any, _extra_files: Any = None) -> None:
    """Raises NotImplementedError: there is no TorchScript."""
    _missing("save")


def load(f: Any, map_location: Any = None, _extra_files: Any = None) -> Any:
    """Raises NotImplementedError: there is no TorchScript."""
    _missing("load")


def freeze(mod: Any, preserved_attrs: Any = None, optimize_numerics: bool = True) -> Any:
    """Raises NotImplementedError: there is no TorchScript."""
    _missing("freeze")


def optimize_for_inference(mod: T, other_methods: Any = None) -> T:
    """`mod` itself; `compile` is the optimiser."""
    _say_that_it_runs_as_python("optimize_for_inference")
    return mod


@contextlib.contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """A block without effect: it controls the optimisation of TorchScript code."""
    yield
