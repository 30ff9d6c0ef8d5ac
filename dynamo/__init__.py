"""Capture: from a user's Python function to graphs, guards and compiled code. The public names are in `dynamo.api`."""

from __future__ import annotations

from dynamo.api import (
    Explanation,
    allow_in_graph,
    assume_constant_result,
    compile,  # noqa: A004 - torch's name
    disable,
    explain,
    explain_guards,
    graph_break,
    is_compiling,
    list_backends,
    mark_dynamic,
    mark_static,
    maybe_mark_dynamic,
    register_backend,
    reset,
    set_stance,
    substitute_in_graph,
)

__all__ = [
    "Explanation",
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "disable",
    "explain",
    "explain_guards",
    "graph_break",
    "is_compiling",
    "list_backends",
    "mark_dynamic",
    "mark_static",
    "maybe_mark_dynamic",
    "register_backend",
    "reset",
    "set_stance",
    "substitute_in_graph",
]
