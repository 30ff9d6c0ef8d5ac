"""The graph layer: nodes, passes, joint forward+backward graphs and an integer-expression language.

Under the alias this package is `torch.fx`: the classes that torch has under that name are found here on first use.
"""

from __future__ import annotations

import importlib
from typing import Any

# Public name -> the module that defines it.
_PUBLIC = {
    "CodeGen": "ir.codegen", "Graph": "ir.graph", "GraphModule": "ir.graph_module", "Interpreter": "ir.interpreter", "Node": "ir.node",
    "PH": "torchfx.tracer", "Proxy": "torchfx.proxy", "Tracer": "torchfx.tracer", "Transformer": "torchfx.transformer",
    "has_side_effect": "ir.leaves", "map_arg": "ir.node", "replace_pattern": "torchfx.subgraph_rewriter",
    "symbolic_trace": "torchfx.tracer", "wrap": "ir.leaves",
}  # fmt: skip
# Submodules of torch.fx -> the folder that holds them.
_MODULES = {
    **dict.fromkeys("_pytree graph graph_module immutable_collections interpreter node".split(), "ir"),
    **dict.fromkeys("experimental passes proxy subgraph_rewriter tracer transformer".split(), "torchfx"),
}
__all__ = sorted(_PUBLIC)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"fxir.{_MODULES[name]}.{name}")
    if name not in _PUBLIC:
        raise AttributeError(f"module 'fxir' has no attribute {name!r}")
    return getattr(importlib.import_module(f"fxir.{_PUBLIC[name]}"), name)
