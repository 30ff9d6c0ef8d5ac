"""The graph IR: nodes, symbolic shapes, passes, and compiled regions with their gradients.

A captured graph of API calls (`ir.graph_module.GraphModule`) enters at `region.aot.aot_compile`. `trace` runs it on fake
tensors and records a functional graph of primitive ops; `autodiff` adds the gradients and splits the result into a forward and
a backward graph; `ir.passes` simplify both; a backend's `compile_graph` compiles each; `region` wraps the compiled graphs in a
callable with eager's mutation, aliasing and autograd.

Layers, each of which imports only from those before it: `base` (options, helpers), `expr` (integer expressions), `symbols`
(symbolic shapes), `ir` (the graph), `trace`, `autodiff`, `region`, `export` (torch.export), `torchfx` (the rest of torch.fx),
`backends` (the registry). Start reading at `ir/graph.py`, then `region/aot.py`.

Under the alias `torch` this package is `torch.fx`: its public names are imported on first use.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from eager.startup import absent_names, first_use

# Public name -> the module that defines it. `eager.startup.torch_names` has the modules.
_PUBLIC = {
    "CodeGen": "ir.node_sequence", "Graph": "ir.graph", "GraphModule": "ir.graph_module", "Interpreter": "ir.graph_module",
    "Node": "ir.node", "PH": "torchfx.tracer", "Proxy": "torchfx.proxy", "Tracer": "torchfx.tracer", "Transformer": "torchfx.transformer",
    "has_side_effect": "ir.leaves", "map_arg": "ir.node", "replace_pattern": "torchfx.subgraph_rewriter",
    "symbolic_trace": "torchfx.tracer", "wrap": "ir.leaves",
}  # fmt: skip
__all__ = sorted(_PUBLIC)
first_use.register("fxir", {name: f"fxir.{module}:{name}" for name, module in _PUBLIC.items()})

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...

else:
    __getattr__ = absent_names.attribute_finder(sys.modules[__name__], "torch.fx", None)
