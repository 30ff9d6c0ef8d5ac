"""`torch.fx.passes.shape_prop`: runs a graph on example inputs and records the metadata of each result in `meta`."""

from __future__ import annotations

from typing import Any, NamedTuple

from eager._tensor.tensor import Tensor
from eager.base.dtypes import dtype
from eager.utils import _pytree as pytree
from fxir.ir.graph_module import Interpreter
from fxir.ir.node import Node


class TensorMetadata(NamedTuple):
    """The metadata of a tensor."""

    shape: Any
    dtype: dtype
    requires_grad: bool
    stride: tuple[int, ...]


def _metadata(x: Any) -> Any:
    return TensorMetadata(x.shape, x.dtype, x.requires_grad, tuple(x.stride())) if isinstance(x, Tensor) else x


class ShapeProp(Interpreter):
    """`ShapeProp(gm).propagate(*args)` fills `node.meta["tensor_meta"]` (of tensors, or structures of them) and "type"."""

    def run_node(self, node: Node) -> Any:
        result = super().run_node(node)
        if any(isinstance(leaf, Tensor) for leaf in pytree.tree_leaves(result)):
            node.meta["tensor_meta"] = pytree.tree_map(_metadata, result)
        node.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """The graph's output for `args`."""
        return self.run(*args)
