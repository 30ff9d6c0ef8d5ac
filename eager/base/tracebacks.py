"""Tracebacks that show the user's frames only; FRAMEJIT_FULL_TRACEBACK=1 shows all.

The public Python functions of this library get an exception handler around their whole body, in their bytecode: it takes our
frames out of the exception's traceback (`_native.drop_library_frames`) and raises it again. A call that raises nothing pays
nothing, and the function stays the same object. Calls of ops filter in C (native/calls/traceback_filter.c), compiled calls in
dynamo/bytecode/tracebacks.py. Frames of user code that this library calls (hooks, custom functions) stay.

Source: CPython's Objects/exception_handling_notes.txt (the exception table) and Objects/locations.md (the line table).
"""
from __future__ import annotations

import dis
import functools
import inspect
import os
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from eager import _native
from eager.base import settings
from eager.startup import absent_names
from eager.startup.places import ROOT

THEIRS, OURS, SUPPORT = range(3)  # whose code it is, as native/calls/traceback_filter.c numbers them
OUR_DIRS: Final = tuple(os.path.join(ROOT, package, "") for package in ("eager", "fxir", "dynamo", "inductor"))
_CAPTURED_GRAPH: Final = "<CapturedGraph."  # begins the file names of graphs that run as Python code
_STDLIB_DIR: Final = os.path.join(os.path.dirname(os.path.abspath(os.__file__)), "")
_CPYTHON_TESTS_DIR: Final = os.path.join(_STDLIB_DIR, "test", "")
_SITE_DIRS: Final = ("site-packages", "dist-packages")
_DEPENDENCIES: Final = frozenset({"numpy", "ml_dtypes", "bytecode", "rich", "cupy", "cupy_backends", "triton"})


@functools.lru_cache(maxsize=1024)
def owner_of(filename: str) -> int:
    """The owner of the code in a file: THEIRS, OURS or SUPPORT. SUPPORT is the standard library and the dependencies."""
    if filename.startswith((*OUR_DIRS, _CAPTURED_GRAPH)):
        return OURS
    parts = filename.split(os.sep)
    site = next((i for i, part in enumerate(parts) if part in _SITE_DIRS), None)
    if site is not None:
        return SUPPORT if site + 1 < len(parts) and parts[site + 1] in _DEPENDENCIES else THEIRS
    is_stdlib = filename.startswith(_STDLIB_DIR) and not filename.startswith(_CPYTHON_TESTS_DIR)
    return SUPPORT if is_stdlib or filename.startswith(("<frozen ", "<__array_function__")) else THEIRS


def _shows_all() -> bool:
    return settings.current().debug.full_traceback


class _Entry(NamedTuple):
    """A row of an exception table, in code units; `stop` is exclusive."""

    start: int
    stop: int
    target: int
    depth_and_lasti: int


def _read_table(table: bytes) -> list[_Entry]:
    values: list[int] = []
    value = 0
    for byte in table:
        value = value << 6 | (byte & 63)
        if not byte & 64:
            values.append(value)
            value = 0
    return [_Entry(start, start + size, target, depth) for start, size, target, depth in
            zip(values[::4], values[1::4], values[2::4], values[3::4], strict=True)]  # fmt: skip


class _Handler:
    """The bytecode of `except: drop_own_frames(); raise`, as this interpreter's compiler writes it."""

    def __init__(self) -> None:
        namespace: dict[str, Any] = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a number is called: the function takes its place among the constants
            exec("def template():\n try:\n  body()\n except:\n  0.5()\n  raise\n", namespace)  # noqa: S102
        code = namespace["template"].__code__
        begin = next(e.target for e in _read_table(code.co_exceptiontable) if not e.depth_and_lasti)
        table = [e for e in _read_table(code.co_exceptiontable) if e.start >= begin]
        loads = dis.opmap["LOAD_CONST"]
        at = next(i for i in range(begin, len(code.co_code) // 2)
                  if code.co_code[2 * i] == loads and code.co_consts[code.co_code[2 * i + 1]] == 0.5)  # fmt: skip
        self.before, self.after = code.co_code[2 * begin : 2 * at], code.co_code[2 * at + 2 :]
        # Its rows of an exception table: every number fits in one group of six bits.
        moved = ([n - begin + (n > at) for n in e[:3]] for e in table)
        self.table = b"".join(bytes([128 | start, stop - start, target, e.depth_and_lasti])
                              for (start, stop, target), e in zip(moved, table, strict=True))  # fmt: skip
        self.stack = code.co_stacksize
        self.units = (len(self.before) + len(self.after)) // 2 + 2
        # Entries of a line table that say that these instructions have no line.
        self.locations = bytes(0x80 | 15 << 3 | (min(8, self.units - done) - 1) for done in range(0, self.units, 8))

    def text(self, constant: int) -> bytes:
        """The bytecode, with the function among the constants at that index."""
        load = bytes([dis.opmap["EXTENDED_ARG"], constant >> 8, dis.opmap["LOAD_CONST"], constant & 255])
        return self.before + load + self.after


_HANDLER: Final = _Handler()
_RESUME: Final = dis.opmap["RESUME"]
# Packages and modules whose functions users call.
_CALLED: Final = (
    "eager", "dynamo.api.compile", "dynamo.backends", "dynamo.compilation.export", "dynamo.compilation.module", "dynamo.functorch",
    "dynamo.testing", "dynamo.utils",
    "fxir.ir._pytree", "fxir.torchfx.experimental", "fxir.export", "fxir.ir.graph", "fxir.ir.graph_module", "fxir.ir.graph_module",
    "fxir.ir.leaves", "fxir.ir.node", "fxir.torchfx.passes.shape_prop", "fxir.torchfx.proxy", "fxir.torchfx.subgraph_rewriter",
    "fxir.trace.trace", "fxir.torchfx.tracer", "fxir.torchfx.transformer",
)  # fmt: skip
_CALLED_ALONE: Final = frozenset({"dynamo", "fxir", "inductor"})  # without their submodules
# Modules that no user calls: the public functions made of theirs are found in `eager` and in Tensor.
_BELOW: Final = ("eager.optable", "eager.public", "eager.functions", "eager.base.settings", "eager.base.logs", "eager.native",
                 "eager.base.spec", "eager.dispatch.calls")
_filtering: dict[int, tuple[types.CodeType, types.CodeType]] = {}  # by id: code of ours, without and with the handler


def _first_unit(code: bytes) -> int:
    """The code unit at which the body of a function begins, after the instructions that make its cells or its generator."""
    at = code.find(_RESUME)
    while at & 1:
        at = code.find(_RESUME, at + 1)
    return at // 2 + 1


def has_handler(code: types.CodeType) -> bool:
    return bool(code.co_consts) and code.co_consts[-1] is _native.drop_library_frames


def handler_offset(code: types.CodeType) -> int:
    """Offset of the added handler in the bytecode of `code`; the length of the bytecode if it has no handler."""
    return len(code.co_code) - (2 * _HANDLER.units if has_handler(code) else 0)


def _is_function(code: types.CodeType) -> bool:
    """Whether it is of a function that may be returned: of no comprehension and no class body."""
    return bool(code.co_flags & inspect.CO_OPTIMIZED) and (code.co_name[0] != "<" or code.co_name == "<lambda>")


def with_handler(code: types.CodeType) -> types.CodeType:
    """`code` with the handler around its body, in force wherever no other handler is; so the functions that are made in it."""
    if has_handler(code) or len(code.co_consts) >= 1 << 16:
        return code
    body, constants = code.co_code, code.co_consts
    for constant in constants:
        if constant.__class__ is types.CodeType:
            constants = tuple(with_handler(c) if isinstance(c, types.CodeType) and _is_function(c) else c for c in constants)
            break
    end = len(body) // 2
    return code.replace(
        co_code=body + _HANDLER.text(len(constants)), co_consts=(*constants, _native.drop_library_frames),
        co_exceptiontable=_native.extend_exception_table(code.co_exceptiontable, _first_unit(body), end, _HANDLER.table),
        co_stacksize=max(code.co_stacksize, _HANDLER.stack), co_linetable=code.co_linetable + _HANDLER.locations)  # fmt: skip


def _public_functions(module: types.ModuleType) -> Iterator[types.FunctionType]:
    """The public functions in a module's namespace, and the public methods of the classes defined there."""
    namespace, name = vars(module).copy(), module.__name__
    members = [namespace, *(dict(vars(value)) for value in namespace.values()
                            if isinstance(value, type) and value.__module__ == name)]  # fmt: skip
    for named in members:
        for key, value in named.items():
            kind = value.__class__
            if (kind in _HOLDERS or kind is types.FunctionType) and (key[0] != "_" or key[:2] == key[-2:] == "__"):
                found = (value,) if kind is types.FunctionType else _HOLDERS[kind](value)
                yield from (fn for fn in found if isinstance(fn, types.FunctionType))


_HOLDERS: Final[dict[type, Callable[[Any], tuple[Any, ...]]]] = {
    property: lambda value: (value.fget, value.fset, value.fdel),
    **dict.fromkeys((classmethod, staticmethod, types.MethodType), lambda value: (value.__func__,)),
}


def _is_called(module: str) -> bool:
    """Whether users call the functions of a module of ours."""
    inside = any(module.startswith(name) and module[len(name) : len(name) + 1] in ("", ".") for name in _CALLED)
    return module in _CALLED_ALONE or (inside and not module.startswith(_BELOW))


def _filter_frames_of(module: types.ModuleType) -> None:
    """Give the public functions and methods of a module that users call the handler."""
    if not _is_called(module.__name__):
        return
    for fn in _public_functions(module):
        code = fn.__code__
        if not has_handler(code) and code.co_filename.startswith(OUR_DIRS):
            # By identity: the hash of a code object reads all of its instructions.
            _, changed = _filtering.get(id(code)) or _filtering.setdefault(id(code), (code, with_handler(code)))
            fn.__code__ = changed


def filter_public_functions() -> None:
    """Add the handler to the public functions and methods of our loaded modules, and of further modules when they load."""
    for name, module in list(sys.modules.items()):
        if name.startswith("eager"):
            _filter_frames_of(module)
    absent_names.OwnLoader.loaded = _filter_frames_of


_native.set_frame_filter(owner_of, _shows_all)
