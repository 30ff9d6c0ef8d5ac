"""Which code is looked into, which is called as it is, and which becomes a node of the graph.

Owns the lists. Nothing here looks at values; a function is judged by identity, by its file and by its package.
"""

from __future__ import annotations

import functools
import os
import sys
import sysconfig
import types
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType
from typing import Any, Final

import eager
import eager.nn
import eager.nn.functional
from dynamo.report.errors import ForbiddenCall
from eager._ops import OpOverload, OpOverloadPacket
from eager.optable.table import OPS, Op
from eager.public import wrapper
from eager.startup.places import EAGER_DIR, ROOT

OWN_PACKAGES: Final = ("eager", "fxir", "dynamo", "inductor")
CAPTURED_GRAPH: Final = "CapturedGraph"  # the name of the graphs of captures
_DEBUGGERS: Final = frozenset({"pdb", "bdb", "ipdb", "pudb", "debugpy", "IPython.core.debugger"})  # they look at the caller's frame
_LOOK_UP_THE_STACK: Final = frozenset(("extract_stack", "format_stack", "print_stack", "walk_stack"))  # of traceback
_OWN_DIRS: Final = tuple(
    os.path.join(ROOT, package, "") for package in OWN_PACKAGES
)
_STDLIB_DIR: Final = os.path.abspath(sysconfig.get_paths()["stdlib"]) + os.sep
_TESTS_DIR: Final = os.path.join(_STDLIB_DIR, "test", "")  # CPython's tests are like user code
# Parts of our own library that are written to be looked into like user code.
_INLINED_OWN: Final = (
    os.path.join(EAGER_DIR, "nn", ""),
    os.path.join(EAGER_DIR, "jit", ""),
    os.path.join(EAGER_DIR, "onnx", ""),
    os.path.join(EAGER_DIR, "ao", ""),
    os.path.join(EAGER_DIR, "_C", ""),
    os.path.join(EAGER_DIR, "_ops", ""),
    os.path.join(EAGER_DIR, "_higher_order_ops", ""),
    os.path.join(EAGER_DIR, "functions", "assertions.py"),
    os.path.join(EAGER_DIR, "base", "flags.py"),
    os.path.join(EAGER_DIR, "base", "precision.py"),
    os.path.join(EAGER_DIR, "autograd", "grad_mode.py"),
    os.path.join(EAGER_DIR, "autograd", "profiler.py"),
    os.path.join(EAGER_DIR, "version.py"),
    os.path.join(EAGER_DIR, "base", "pytree", ""),
    os.path.join(EAGER_DIR, "utils", "_pytree", ""),
    os.path.join(EAGER_DIR, "distributions", ""),
    os.path.join(EAGER_DIR, "amp", "autocast_mode.py"),
    os.path.join(ROOT, "dynamo", "api", "checkpoints.py"),
    os.path.join(ROOT, "dynamo", "report", "break_errors.py"),
)
# Parts whose functions compute on tensors and plain values, with no state of their own.
_LIBRARY: Final = (
    *(os.path.join(EAGER_DIR, package, "") for package in ("functions", "optable")),
    *(os.path.join(EAGER_DIR, f"{module}.py") for module in ("fft", "linalg", "special", "base/spec", "base/symint")),
)
# Standard library modules whose Python code is looked into.
_INLINED_STDLIB: Final = frozenset(
    "contextlib functools collections/__init__ dataclasses enum abc _collections_abc types operator copy typing reprlib "
    "numbers inspect".split()
)

# Functions of the public namespace that cannot be nodes: they read data, change global state, or return no tensors.
_NOT_IN_GRAPH: Final = frozenset(
    "manual_seed seed initial_seed get_rng_state set_rng_state set_default_dtype set_printoptions compile allclose equal "
    "from_numpy frombuffer set_grad_enabled is_grad_enabled get_default_dtype save load is_tensor is_floating_point numel "
    "can_cast promote_types item is_nonzero is_same_size is_signed is_conj is_neg "
    "is_inference get_device typename nonzero_static combinations apply_ map_ get_float32_matmul_precision "
    "are_deterministic_algorithms_enabled is_deterministic_algorithms_warn_only_enabled get_deterministic_debug_mode "
    "get_num_threads get_num_interop_threads".split()
)


DATA_DEPENDENT: Final = frozenset("nonzero masked_select unique item is_nonzero".split())  # functions of ours


def _body(fn: Any) -> Any:
    """A function of ours, behind what looks at its failed calls."""
    guarded = isinstance(fn, types.FunctionType) and fn.__code__.co_filename == wrapper.__file__
    return fn.__dict__.get("__wrapped__", fn) if guarded else fn


@functools.cache
def graph_functions() -> frozenset[int]:
    """ids of the public functions that become nodes when called with tensors."""
    found: set[int] = {id(op) for op in OPS.values()}
    for namespace in (eager, eager.nn.functional):
        for name, fn in vars(namespace).items():
            if name.startswith("_") or name in _NOT_IN_GRAPH or isinstance(fn, type):
                continue
            if isinstance(fn, Op) or (isinstance(fn, types.FunctionType) and is_own(fn.__code__)):
                found |= {id(fn), id(_body(fn))}
    return frozenset(found)


# Questions about the machine and this build, which have one answer for as long as the process runs.
_QUERIES: Final = frozenset({
    ("eager.cuda.backend", "is_available"), ("eager.cuda.backend", "device_count"), ("eager.distributed", "is_available"),
    ("eager.distributed", "is_initialized"), ("eager.backends.mps", "is_available"),
})  # fmt: skip
_allowed: dict[int, Any] = {}
_constant_result: dict[int, Any] = {}
_disallowed: dict[int, Any] = {}
_forbidden: dict[int, Any] = {}
_substitutes: dict[int, Substitute] = {}


def allow(fn: Any) -> None:
    """Make calls of `fn` nodes of the graph."""
    _disallowed.pop(id(fn), None)
    _allowed[id(fn)] = fn


def disallow(fn: Any) -> None:
    """End the graph at calls of `fn`."""
    _allowed.pop(id(fn), None)
    _disallowed[id(fn)] = fn


def forbid(fn: Any) -> None:
    """Make a captured call of `fn` an error."""
    _forbidden[id(fn)] = fn


def refuse_forbidden(fn: Any) -> None:
    """Raises: ForbiddenCall if calls of `fn` are."""
    if id(fn) in _forbidden:
        raise ForbiddenCall(f"Attempt to trace forbidden callable {fn!r}")


def is_disallowed(fn: Any) -> bool:
    return id(fn) in _disallowed


def assume_constant(fn: Any) -> None:
    """Take the result of `fn` for a constant of the capture."""
    _constant_result[id(fn)] = fn


@dataclass(frozen=True, slots=True)
class Substitute:
    """What is captured in the place of `original`. folds: with constants the original is called."""

    original: Any
    replacement: Callable[..., Any]
    folds: bool


def substitute(original: Any, replacement: Callable[..., Any], folds: bool = False) -> None:
    """Capture `replacement` wherever `original` is called."""
    _substitutes[id(original)] = Substitute(original, replacement, folds)


def is_allowed(fn: Any) -> bool:
    """Whether calls of `fn` become nodes."""
    kind = type(fn)  # isinstance would run the `__class__` of a user's class
    return id(fn) in graph_functions() or id(fn) in _allowed or issubclass(kind, Op | OpOverload | OpOverloadPacket)


def is_constant_result(fn: Any) -> bool:
    return id(fn) in _constant_result or (getattr(fn, "__module__", ""), getattr(fn, "__name__", "")) in _QUERIES


def is_library_function(fn: types.FunctionType) -> bool:
    """Whether `fn` is one of ours that works on tensors alone, below the public names: a node where it meets tensors."""
    filename = _body(fn).__code__.co_filename
    return filename.startswith(_LIBRARY) and not filename.startswith(_INLINED_OWN) and fn.__name__ not in _NOT_IN_GRAPH


def substitute_of(fn: Any) -> Substitute | None:
    return _substitutes.get(id(fn))


def looks_at_callers(fn: types.FunctionType) -> bool:
    """Whether a function of a library looks at the frames that led to its call."""
    module = fn.__globals__.get("__name__")
    return module in _DEBUGGERS or (module == "traceback" and fn.__name__ in _LOOK_UP_THE_STACK)


def is_own(code: CodeType) -> bool:
    """Whether the code belongs to this distribution."""
    return code.co_filename.startswith(_OWN_DIRS)


def is_of_program(raw: Any) -> bool:
    """Whether an entry of a class of ours is Python code of the program: a function, or the descriptor of one."""
    fn = raw.fget if isinstance(raw, property) else getattr(raw, "__func__", raw) if isinstance(raw, staticmethod | classmethod) else raw
    return isinstance(fn, types.FunctionType) and not is_own(fn.__code__)


_OPAQUE_PACKAGES: Final = ("numpy", "rich", "tqdm", "pytest", "_pytest", "bytecode")


def is_own_module(name: str) -> bool:
    """Whether importing the module `name`, not loaded yet, runs only this project's code: its package is one of ours."""
    package = sys.modules.get(name.partition(".")[0])
    return (getattr(package, "__file__", None) or "").startswith(_OWN_DIRS)


def _is_installed(path: str) -> bool:
    return "site-packages" in path or "dist-packages" in path


def _follows_package(path: str) -> bool:
    """Whether an installed package is looked into: a library of models is, what never computes on tensors is not."""
    return not path.split("-packages" + os.sep, 1)[1].startswith(_OPAQUE_PACKAGES)


@functools.lru_cache(maxsize=4096)
def _may_inline_file(filename: str) -> bool:
    if filename.startswith("<"):
        return not filename.startswith("<frozen") or filename.startswith(("<frozen _collections_abc", "<frozen abc"))
    path = os.path.abspath(filename)
    if path.startswith(_OWN_DIRS):
        return path.startswith(_INLINED_OWN)
    if _is_installed(path):
        return _follows_package(path)
    if path.startswith(_STDLIB_DIR):
        return path[len(_STDLIB_DIR) :].removesuffix(".py") in _INLINED_STDLIB or path.startswith(_TESTS_DIR)
    return True


def may_inline(code: CodeType) -> bool:
    """Whether a call of this code is followed when met in a captured function."""
    return _may_inline_file(code.co_filename)


@functools.lru_cache(maxsize=4096)
def _may_capture_file(filename: str) -> bool:
    if filename.startswith(("<frozen", "<compiled region>")):  # the latter: what `fxir.region.runtime` writes
        return False
    path = os.path.abspath(filename)
    if path.startswith(_OWN_DIRS):
        return path.startswith(_INLINED_OWN) and os.sep + "modules" + os.sep in path
    return _follows_package(path) if _is_installed(path) else not path.startswith(_STDLIB_DIR)


def may_capture(code: CodeType) -> bool:
    """Whether a frame of this code that the hook meets is worth a capture of its own.

    Constructors of our modules are not: they fill registries, which only ordinary Python can. Nor is a captured graph
    that runs as it is, as where its backward is gone into.
    """
    if code.co_name == "__init__" and code.co_filename.startswith(os.path.join(EAGER_DIR, "")):
        return False
    if code.co_filename.startswith(f"<{CAPTURED_GRAPH}."):
        return False
    return _may_capture_file(code.co_filename)
