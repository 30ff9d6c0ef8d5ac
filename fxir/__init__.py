"""The graph layer: nodes, passes, joint forward+backward graphs and an integer-expression language.

Under the alias this package is `torch.fx`: the classes that torch has under that name are found here on first use.
"""

from __future__ import annotations

import importlib
from typing import Any

_PUBLIC = {
    "CodeGen": "codegen", "Graph": "graph", "GraphModule": "graph_module", "Interpreter": "interpreter", "Node": "node", "Proxy": "proxy",
    "Tracer": "tracer", "Transformer": "transformer", "map_arg": "node", "replace_pattern": "subgraph_rewriter",
    "symbolic_trace": "tracer", "wrap": "leaves", "has_side_effect": "leaves", "PH": "tracer",
}  # fmt: skip
_MODULES = frozenset("_pytree immutable_collections graph graph_module interpreter node proxy subgraph_rewriter tracer transformer".split())
__all__ = sorted(_PUBLIC)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"fxir.{name}")
    if name not in _PUBLIC:
        raise AttributeError(f"module 'fxir' has no attribute {name!r}")
    return getattr(importlib.import_module(f"fxir.{_PUBLIC[name]}"), name)
