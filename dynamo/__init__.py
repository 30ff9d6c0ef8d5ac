"""Capture: from a user's Python function to graphs, guards and compiled code.

The layers, from the ground up; each imports only layers before it:

- `native/`: the C half (frame hook, compiled callables, guard programs, re-entry); `_native.pyi` describes it.
- `report`: causes of graph breaks, errors and counters. `bytecode`: decoded instructions and tracebacks.
- `guards`: sources, kinds of guards, guard programs. `policy`: which functions are captured, which sizes are dynamic.
- `values`: one class for each kind of Python value. `world`: existing objects and side effects. `recording`: the graph.
- `python`: operators, attributes, calls and exceptions. `builtins`: rules for built-in and library functions.
- `frames`: the interpreter of bytecode. `emit`: generated code. `compilation`: regions and variants. `api`: public functions.

A call without a matching variant goes from `compilation.region` to `frames.capture`, which executes the bytecode over `values`,
records a graph and guards, and ends; `emit.function` generates the function that runs the graph. Start reading there. The public
names are in `dynamo.api.compile`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from dynamo import config  # reads the environment's TORCHDYNAMO_* variables
from dynamo.api.compile import (
    Explanation,
    allow_in_graph,
    assume_constant_result,
    compile,  # noqa: A004 - torch's name
    disable,
    disallow_in_graph,
    error_on_graph_break,
    explain,
    explain_guards,
    forbid_in_graph,
    graph_break,
    is_compiling,
    list_backends,
    lookup_backend,
    mark_dynamic,
    mark_static,
    mark_static_address,
    mark_unbacked,
    maybe_mark_dynamic,
    nonstrict_trace,
    optimize,
    optimize_assert,
    register_backend,
    reset,
    reset_code_caches,
    run,
    set_stance,
    skip_frame,
    substitute_in_graph,
)
from dynamo.compilation.export import export
from dynamo.compilation.module import OptimizedModule
from eager.startup import absent_names

__all__ = [
    "Explanation",
    "OptimizedModule",
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "config",
    "disable",
    "disallow_in_graph",
    "error_on_graph_break",
    "explain",
    "explain_guards",
    "export",
    "forbid_in_graph",
    "graph_break",
    "is_compiling",
    "is_dynamo_supported",
    "list_backends",
    "lookup_backend",
    "mark_dynamic",
    "mark_static",
    "mark_static_address",
    "mark_unbacked",
    "maybe_mark_dynamic",
    "nonstrict_trace",
    "optimize",
    "optimize_assert",
    "register_backend",
    "reset",
    "reset_code_caches",
    "run",
    "set_stance",
    "skip_frame",
    "substitute_in_graph",
]

def is_dynamo_supported() -> bool:
    """True: `compile` works on every Python version that the package supports."""
    return True


if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...

else:
    __getattr__ = absent_names.attribute_finder(sys.modules[__name__], "torch._dynamo", None)
