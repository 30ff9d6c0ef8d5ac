"""Which code a capture follows, which it calls, and which becomes a node of the graph.

Owns the lists, and `resolve`, which returns one record for a callee: how a capture treats its calls. This module never
reads captured values; it judges a callee by identity, file and package.
"""

from __future__ import annotations

import builtins
import enum
import functools
import importlib
import os
import sys
import sysconfig
import types
from collections.abc import Callable, Collection
from types import CodeType
from typing import Any, Final, TypeAlias

import eager
import eager.nn
import eager.nn.functional
from dynamo.guards.sources import type_attribute
from dynamo.policy import signatures
from dynamo.report import causes
from dynamo.report.causes import Cause
from dynamo.report.errors import ForbiddenCall
from eager._ops import OperatorBase, OpOverload, OpOverloadPacket
from eager.base.records import dataclass
from eager.nn import Module
from eager.optable.table import OPS, Op
from eager.public import wrapper
from eager.startup.places import EAGER_DIR, ROOT

OWN_PACKAGES: Final = ("eager", "fxir", "dynamo", "inductor")
CAPTURED_GRAPH: Final = "CapturedGraph"  # the name of the graphs of captures
DISABLED: Final = "_framejit_disabled"  # the attribute by which `disable` marks a callable
# Callees that inspect the frames of their callers: functions of C, and functions of Python modules ("*": all of a
# module).
_FRAME_READERS: Final = frozenset((
    breakpoint, locals, globals, dir, eval, exec, compile,
    *(getattr(sys, name) for name in ("_getframe", "_getframemodulename", "_current_frames") if hasattr(sys, name)),
))  # fmt: skip
_FRAME_READING_MODULES: Final = {
    **dict.fromkeys(("pdb", "bdb", "ipdb", "pudb", "debugpy", "IPython.core.debugger"), frozenset("*")),
    "traceback": frozenset(("extract_stack", "format_stack", "print_stack", "walk_stack")),
}
# Other callees that break the graph, with any arguments.
_BREAKS: Final[dict[Any, Cause]] = {
    **dict.fromkeys((print, input, open), causes.UNKNOWN_CALL),
    **dict.fromkeys((builtins.__import__, importlib.import_module), causes.IMPORT),
}
_OWN_DIRS: Final = tuple(
    os.path.join(ROOT, package, "") for package in OWN_PACKAGES
)
_STDLIB_DIR: Final = os.path.abspath(sysconfig.get_paths()["stdlib"]) + os.sep
_TESTS_DIR: Final = os.path.join(_STDLIB_DIR, "test", "")  # CPython's tests are like user code
_OPTIMIZERS: Final = os.path.join(EAGER_DIR, "optim", "")
# Optimizers whose steps run eagerly: most of their instructions would break the graph.
_EAGER_OPTIMIZERS: Final = tuple(os.path.join(_OPTIMIZERS, f"{name}.py") for name in ("lbfgs", "sparse_adam"))
# Parts of this library whose code is followed like user code.
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
    _OPTIMIZERS,
    os.path.join(ROOT, "dynamo", "api", "checkpoints.py"),
    os.path.join(ROOT, "dynamo", "report", "break_errors.py"),
)
# Parts whose functions compute on tensors and plain values, without state.
_LIBRARY: Final = (
    *(os.path.join(EAGER_DIR, package, "") for package in ("functions", "optable")),
    *(os.path.join(EAGER_DIR, f"{module}.py") for module in ("fft", "linalg", "special", "base/spec", "base/symint")),
)
# Standard library modules whose Python code is followed.
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


_PRIVATE_IN_GRAPH: Final = frozenset({"_scaled_mm"})  # names with an underscore that are functions of tensors in torch too
_DATA_DEPENDENT: Final = frozenset("nonzero masked_select unique item is_nonzero".split())  # functions of eager


def _body(fn: Any) -> Any:
    """The function inside the wrapper that improves the errors of eager's functions; any other function unchanged."""
    guarded = isinstance(fn, types.FunctionType) and fn.__code__.co_filename == wrapper.__file__
    return fn.__dict__.get("__wrapped__", fn) if guarded else fn


@functools.cache
def graph_functions() -> frozenset[int]:
    """ids of the public functions that become nodes when called with tensors."""
    found: set[int] = {id(op) for op in OPS.values()}
    for namespace in (eager, eager.nn.functional):
        for name, fn in list(vars(namespace).items()):  # an import in another thread may add names
            if (name.startswith("_") and name not in _PRIVATE_IN_GRAPH) or name in _NOT_IN_GRAPH or isinstance(fn, type):
                continue
            if isinstance(fn, Op) or (isinstance(fn, types.FunctionType) and is_own(fn.__code__)):
                found |= {id(fn), id(_body(fn))}
    return frozenset(found)


# Queries about the machine and the build, whose answers do not change while the process runs.
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
    """Break the graph at calls of `fn`."""
    _allowed.pop(id(fn), None)
    _disallowed[id(fn)] = fn


def forbid(fn: Any) -> None:
    """Make a captured call of `fn` an error."""
    _forbidden[id(fn)] = fn


def assume_constant(fn: Any) -> None:
    """Treat the result of `fn` as a constant of the capture."""
    _constant_result[id(fn)] = fn


@dataclass(frozen=True, slots=True)
class Substitute:
    """A function that is captured instead of `original`. folds: a call with constant arguments calls the original."""

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


def _is_constant_result(fn: Any) -> bool:
    return id(fn) in _constant_result or (getattr(fn, "__module__", ""), getattr(fn, "__name__", "")) in _QUERIES


def _is_library_function(fn: types.FunctionType) -> bool:
    """Whether `fn` is an internal function of eager on tensors: calls with tensors become nodes."""
    filename = _body(fn).__code__.co_filename
    return filename.startswith(_LIBRARY) and not filename.startswith(_INLINED_OWN) and fn.__name__ not in _NOT_IN_GRAPH


def is_own(code: CodeType) -> bool:
    """Whether the code belongs to this distribution."""
    return code.co_filename.startswith(_OWN_DIRS)


def is_of_program(raw: Any) -> bool:
    """Whether an entry of one of this library's classes is Python code of the program: a function, or a descriptor of
    one.
    """
    fn = raw.fget if isinstance(raw, property) else getattr(raw, "__func__", raw) if isinstance(raw, staticmethod | classmethod) else raw
    return isinstance(fn, types.FunctionType) and not is_own(fn.__code__)


_OPAQUE_PACKAGES: Final = ("numpy", "rich", "tqdm", "pytest", "_pytest", "bytecode")


def is_own_module(name: str) -> bool:
    """Whether an import of the module `name`, which is not loaded yet, runs only code of this project."""
    package = sys.modules.get(name.partition(".")[0])
    return (getattr(package, "__file__", None) or "").startswith(_OWN_DIRS)


def _is_installed(path: str) -> bool:
    return "site-packages" in path or "dist-packages" in path


def _follows_package(path: str) -> bool:
    """Whether the code of an installed package is followed: all packages except those in the list, which have no tensor
    code.
    """
    return not path.split("-packages" + os.sep, 1)[1].startswith(_OPAQUE_PACKAGES)


@functools.lru_cache(maxsize=4096)
def _may_inline_file(filename: str) -> bool:
    if filename.startswith("<"):
        return not filename.startswith("<frozen") or filename.startswith(("<frozen _collections_abc", "<frozen abc"))
    path = os.path.abspath(filename)
    if path.startswith(_OWN_DIRS):
        return path.startswith(_INLINED_OWN) and not path.startswith(_EAGER_OPTIMIZERS)
    if _is_installed(path):
        return _follows_package(path)
    if path.startswith(_STDLIB_DIR):
        return path[len(_STDLIB_DIR) :].removesuffix(".py") in _INLINED_STDLIB or path.startswith(_TESTS_DIR)
    return True


def may_inline(code: CodeType) -> bool:
    """Whether a call of this code in a captured function is followed."""
    return _may_inline_file(code.co_filename)


def is_unrolled(code: CodeType) -> bool:
    """Whether the iterations of loops in this code count towards the unroll limit. An optimizer's loops over its parameters do not
    count: the program cannot move these loops out of the graph.
    """
    return not code.co_filename.startswith(_OPTIMIZERS)


@functools.lru_cache(maxsize=4096)
def _may_capture_file(filename: str) -> bool:
    if filename.startswith(("<frozen", "<compiled region>")):  # the second prefix: code that `fxir.region.runtime` writes
        return False
    path = os.path.abspath(filename)
    if path.startswith(_OWN_DIRS):
        return path.startswith(_INLINED_OWN) and os.sep + "modules" + os.sep in path
    return _follows_package(path) if _is_installed(path) else not path.startswith(_STDLIB_DIR)


def may_capture(code: CodeType) -> bool:
    """Whether to capture a frame of this code separately when the hook encounters it.

    Constructors of this library's modules run plainly: they fill registries, which only ordinary Python can. A captured
    graph that runs uncompiled also runs plainly.
    """
    if code.co_name == "__init__" and code.co_filename.startswith(os.path.join(EAGER_DIR, "")):
        return False
    if code.co_filename.startswith(f"<{CAPTURED_GRAPH}."):
        return False
    return _may_capture_file(code.co_filename)


# --- one record for a callee --------------------------------------------------------------------------------------

Row: TypeAlias = "Callable[[Any, list[Any], dict[str, Any]], Any]"  # (machine, arguments, keyword arguments) -> value
ANSWERS: Final[dict[Any, Row]] = {}  # callee -> the row that answers its calls
# Each rule finds rows for callees that a table cannot name, such as the functions that transforms return.
ANSWER_RULES: Final[list[Callable[[Any], Row | None]]] = []


class Action(enum.Enum):
    """Treatments of a call by a capture."""

    FOLLOW = enum.auto()  # follow its code, or apply Python's rule for its kind, within the capture
    NODE = enum.auto()  # record it in the graph
    ANSWER = enum.auto()  # call the row of its callee
    CONSTANT = enum.auto()  # call it at capture: the result is a constant
    BREAK = enum.auto()  # break the graph


@dataclass(frozen=True, slots=True)
class Callee:
    """The treatment of all calls of one callable.

    target: the callable, or its substitute. original: the substitution, if target is a substitute. row: of an ANSWER.
    signature: bounds of the arguments that the row accepts. cause, detail: of a BREAK. looks_at_frames: it inspects its
    callers.
    """

    target: Any
    action: Action
    row: Row | None = None
    signature: signatures.Arity | None = None
    original: Substitute | None = None
    cause: Cause | None = None
    detail: str = ""

    @property
    def looks_at_frames(self) -> bool:
        return self.cause is causes.FRAME_INTROSPECTION

    def takes(self, n: int, names: dict[str, Any]) -> bool:
        """Whether the row accepts n positional arguments and these keyword arguments."""
        return signatures.fits(self.signature, n, names) and signatures.takes(self.target, n, names)


def name_of(target: Any) -> str:
    """The text of a callable in messages."""
    if isinstance(target, type):
        return f"class {target.__qualname__}"
    if isinstance(target, types.FunctionType):
        return f"function {target.__qualname__}"
    if isinstance(target, OperatorBase):
        return f"torch.{target.__qualname__}"
    return f"builtin {getattr(target, '__qualname__', target)}"


def resolve(target: Any, keywords: Collection[str] = ()) -> Callee:
    """The record of `target`, a function, class or builtin. keywords: names of the keyword arguments.

    Raises: ForbiddenCall if `forbid_in_graph` names the target.
    """
    if id(target) in _forbidden:
        raise ForbiddenCall(f"Attempt to trace forbidden callable {target!r}")
    refusal = _refused(target)
    if refusal is not None:
        return refusal
    replaced = _substitutes.get(id(target))
    if replaced is not None:
        return Callee(replaced.replacement, Action.FOLLOW, original=replaced)
    row = _row_of(target)
    if row is not None:
        return Callee(target, Action.ANSWER, row, signatures.FUNCTIONS.get(target))
    if isinstance(target, type):
        return Callee(target, Action.FOLLOW)
    is_function = isinstance(target, types.FunctionType)
    if is_function and _is_constant_result(target):
        return Callee(target, Action.CONSTANT)
    if is_allowed(target) or (is_function and _is_library_function(target)):
        return Callee(target, Action.NODE)
    for rule in ANSWER_RULES:
        row = rule(target)
        if row is not None:
            return Callee(target, Action.ANSWER, row)
    if is_function and not may_inline(target.__code__):
        return _not_followed(target, keywords)
    return Callee(target, Action.FOLLOW)


def _row_of(target: Any) -> Row | None:
    try:
        return ANSWERS.get(target)
    except TypeError:  # not hashable: not in the table
        return None


def _refused(target: Any) -> Callee | None:
    """The record of a callee that a mark or a list excludes from the graph."""
    if isinstance(target, type):
        mark = False if issubclass(target, Module) else type_attribute(target, DISABLED, False)
    else:
        mark = getattr(target, DISABLED, False)
        if not isinstance(target, types.FunctionType):
            mark = mark is True  # a builtin may return any object for a name
    if mark is causes.EXPLICIT or mark is causes.SKIPPED:
        return Callee(target, Action.BREAK, cause=mark)
    if mark or id(target) in _disallowed:
        who = target.__qualname__ if isinstance(target, types.FunctionType) else name_of(target)
        why = "disallow_in_graph" if not mark else f"disable ({mark})" if isinstance(mark, str) else "disable"
        return Callee(target, Action.BREAK, cause=causes.DISABLED_CALL, detail=f"{who} is marked with {why}")
    try:
        cause = causes.FRAME_INTROSPECTION if target in _FRAME_READERS else _BREAKS.get(target)
    except TypeError:  # not hashable
        return None
    return None if cause is None else Callee(target, Action.BREAK, cause=cause, detail=f"builtin {target.__name__}()")


def _not_followed(fn: types.FunctionType, keywords: Collection[str]) -> Callee:
    """The record of a Python function whose code is not followed."""
    if is_own(fn.__code__) and fn.__name__ in _DATA_DEPENDENT:
        detail = f"{fn.__name__}() of a tensor: the result depends on the data"
        return Callee(fn, Action.BREAK, cause=causes.DATA_DEPENDENT_VALUE, detail=detail)
    module = fn.__globals__.get("__name__", "?")
    names = _FRAME_READING_MODULES.get(module, frozenset())
    looks = "*" in names or fn.__name__ in names or (module == "logging" and "stacklevel" in keywords)
    cause = causes.FRAME_INTROSPECTION if looks else causes.UNKNOWN_CALL
    return Callee(fn, Action.BREAK, cause=cause, detail=f"{name_of(fn)}() of {module}")
